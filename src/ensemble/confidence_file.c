/* confidence_file.c - see confidence_file.h. */
#include "ensemble/confidence_file.h"

#include <math.h>
#include <string.h>

#include "wire/json_in.h"
#include "wire/json_out.h"

#define MAX_BYTES ((size_t)64 << 10)
#define MAX_ROWS 1e15
#define SUM_ERROR 1e-3 /* shares are written as text */

static int bad(const char *name, const char *why, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "%s: %s; 'shoal calibrate' writes such a file", name, why);
}

static bool number(const cJSON *o, const char *key, double min, double max, double *out)
{
    const cJSON *v = json_in_item(o, key);
    *out = cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
    return *out >= min && *out <= max;
}

static int read_shares(struct confidence_calibration *c, const char *name, const cJSON *o,
                       struct err *e)
{
    const cJSON *list = json_in_item(o, "confidence"), *v;
    double sum = 0;
    uint32_t i = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)CONFIDENCE_BINS)
        return bad(name, "\"confidence\" is not a list of 12 shares", e);
    cJSON_ArrayForEach(v, list)
    {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= 1))
            return bad(name, "\"confidence\" has a share that is not from 0 to 1", e);
        c->shares[i++] = v->valuedouble;
        sum += v->valuedouble;
    }
    if (fabs(sum - 1) > SUM_ERROR)
        return bad(name, "the shares of \"confidence\" do not sum to 1", e);
    return 0;
}

static int read_object(struct confidence_calibration *c, const char *name, const cJSON *o,
                       struct err *e)
{
    const char *kind = cJSON_GetStringValue(json_in_item(o, "shoal"));
    double version, rows;
    if (!kind || strcmp(kind, "calibration") != 0)
        return bad(name, "this is not a calibration", e);
    if (!number(o, "version", 1, 1, &version))
        return bad(name, "the version of this calibration is unknown", e);
    if (!number(o, "temperature", CONFIDENCE_MIN_TEMPERATURE, CONFIDENCE_MAX_TEMPERATURE,
                &c->temperature))
        return bad(name, "\"temperature\" is not a number from 0.05 to 20", e);
    if (!number(o, "rows", 1, MAX_ROWS, &rows))
        return bad(name, "\"rows\" is not a number of rows", e);
    c->rows = (uint64_t)rows;
    return read_shares(c, name, o, e);
}

static int take(struct confidence_calibration *out, const char *name, cJSON *o, struct err *e)
{
    struct confidence_calibration c = {.temperature = 0};
    int rc = read_object(&c, name, o, e);
    if (rc == 0)
        *out = c;
    cJSON_Delete(o);
    return rc;
}

int confidence_file_parse(struct confidence_calibration *out, const char *name, const void *bytes,
                          size_t n, struct err *e)
{
    cJSON *o;
    int rc = json_in_object(&o, name, bytes, n, MAX_BYTES, e);
    return rc < 0 ? rc : take(out, name, o, e);
}

int confidence_file_read(struct confidence_calibration *out, const char *path, struct err *e)
{
    cJSON *o;
    int rc = json_in_file(&o, "calibration", path, MAX_BYTES, e);
    return rc < 0 ? rc : take(out, path, o, e);
}

void confidence_file_put(struct json_out *j, const struct confidence_calibration *c)
{
    json_out_member_str(j, "shoal", "calibration");
    json_out_member_uint(j, "version", 1);
    json_out_member_num(j, "temperature", c->temperature);
    json_out_member_uint(j, "rows", c->rows);
    json_out_member_array(j, "confidence");
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        json_out_num(j, c->shares[i]);
    json_out_array_end(j);
}
