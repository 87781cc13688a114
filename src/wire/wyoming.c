/* wyoming.c - see wyoming.h. */
#include "wire/wyoming.h"

#include <math.h>
#include <string.h>

#include "shoal/shoal_version.h"
#include "wire/json_out.h"
#include "wire/json_scan.h"

#define MAX_VALUES 20000u

static cJSON *parse(const char *p, size_t n, struct err *e)
{
    struct json_scan scan;
    if (json_scan(&scan, p, n, MAX_VALUES, NULL) < 0) {
        err_set(e, SHOAL_EFORMAT, "the JSON of an event has NUL or too many values");
        return NULL;
    }
    cJSON *json = cJSON_ParseWithLength(p, n);
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        err_set(e, SHOAL_EFORMAT, "an event must be a JSON object on a line");
        return NULL;
    }
    return json;
}

/* A length of the header; missing or null: 0. */
static int read_length(const cJSON *header, const char *key, size_t most, size_t *out,
                       struct err *e)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(header, key);
    *out = 0;
    if (!v || cJSON_IsNull(v))
        return 0;
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || v->valuedouble != floor(v->valuedouble))
        return err_set(e, SHOAL_EFORMAT, "%s must be a number of bytes", key);
    if (v->valuedouble > (double)most)
        return err_set(e, SHOAL_ELIMIT, "%s is %.0f, the most is %zu", key, v->valuedouble, most);
    *out = (size_t)v->valuedouble;
    return 0;
}

/* Adds the members of `more`, which it takes. */
static int merge(cJSON **data, cJSON *more)
{
    if (!*data) {
        *data = more;
        return 0;
    }
    for (cJSON *v; (v = more->child);) {
        cJSON_DetachItemViaPointer(more, v);
        cJSON_DeleteItemFromObjectCaseSensitive(*data, v->string);
        if (!cJSON_AddItemToObject(*data, v->string, v)) {
            cJSON_Delete(v);
            cJSON_Delete(more);
            return SHOAL_ENOMEM;
        }
    }
    cJSON_Delete(more);
    return 0;
}

static int read_header(struct wyoming_event *out, cJSON *header, size_t *n_data, size_t *n_payload,
                       struct err *e)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(header, "type"));
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(header, "data");
    if (!type || !type[0] || strlen(type) >= sizeof(out->type))
        return err_set(e, SHOAL_EFORMAT, "an event needs a \"type\" of 1 to 63 bytes");
    if (data && !cJSON_IsNull(data) && !cJSON_IsObject(data))
        return err_set(e, SHOAL_EFORMAT, "the data of an event must be an object");
    memcpy(out->type, type, strlen(type) + 1);
    if (cJSON_IsObject(data))
        out->data = cJSON_DetachItemFromObjectCaseSensitive(header, "data");
    int rc = read_length(header, "data_length", WYOMING_MAX_DATA, n_data, e);
    return rc < 0 ? rc : read_length(header, "payload_length", WYOMING_MAX_PAYLOAD, n_payload, e);
}

int64_t wyoming_next(struct wyoming_event *out, const char *p, size_t n, size_t *want,
                     struct err *e)
{
    const size_t most = n < WYOMING_MAX_HEADER ? n : WYOMING_MAX_HEADER;
    const char *line = n > 0 ? memchr(p, '\n', most) : NULL;
    size_t n_data = 0, n_payload = 0;
    *out = (struct wyoming_event){.payload = ""};
    *want = n + 1;
    if (!line && n >= WYOMING_MAX_HEADER)
        return err_set(e, SHOAL_ELIMIT, "the line of an event has more than %zu bytes",
                       WYOMING_MAX_HEADER);
    if (!line)
        return 0;
    const size_t head = (size_t)(line - p) + 1;
    cJSON *header = parse(p, head, e);
    int64_t rc = header ? read_header(out, header, &n_data, &n_payload, e) : SHOAL_EFORMAT;
    cJSON_Delete(header);
    *want = head + n_data + n_payload;
    const bool whole = rc == 0 && n >= *want;
    if (whole && n_data > 0) {
        cJSON *more = parse(line + 1, n_data, e);
        rc = more ? merge(&out->data, more) : SHOAL_EFORMAT;
        if (rc == SHOAL_ENOMEM)
            (void)err_set(e, SHOAL_ENOMEM, "out of memory for an event");
    }
    if (rc < 0 || !whole) {
        wyoming_free(out);
        return rc;
    }
    out->payload = line + 1 + n_data;
    out->payload_bytes = n_payload;
    return (int64_t)*want;
}

void wyoming_free(struct wyoming_event *ev)
{
    cJSON_Delete(ev->data);
    ev->data = NULL;
}

const char *wyoming_text(const struct wyoming_event *ev, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(ev->data, key));
}

uint32_t wyoming_number(const struct wyoming_event *ev, const char *key, uint32_t otherwise)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(ev->data, key);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= 4e9
               ? (uint32_t)v->valuedouble
               : otherwise;
}

void wyoming_put(struct buf *out, const char *type, const char *data, size_t n, const void *payload,
                 size_t n_payload)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_member_str(&j, "type", type);
    json_out_member_str(&j, "version", "1.8.0");
    if (n > 0)
        json_out_member_num(&j, "data_length", (double)n);
    if (n_payload > 0)
        json_out_member_num(&j, "payload_length", (double)n_payload);
    json_out_object_end(&j);
    buf_putc(out, '\n');
    buf_put(out, data, n);
    buf_put(out, payload, n_payload);
}

void wyoming_put_artifact(struct json_out *j, const char *name, const char *description)
{
    json_out_member_str(j, "name", name);
    json_out_member_object(j, "attribution");
    json_out_member_str(j, "name", "Shoal");
    json_out_member_str(j, "url", "");
    json_out_object_end(j);
    json_out_member_bool(j, "installed", true);
    json_out_member_str(j, "description", description);
    json_out_member_str(j, "version", SHOAL_VERSION);
}

void wyoming_put_wake(struct json_out *j, const char *word)
{
    json_out_member_array(j, "wake");
    if (word) {
        json_out_object(j);
        wyoming_put_artifact(j, "shoal", "wake word");
        json_out_member_array(j, "models");
        json_out_object(j);
        wyoming_put_artifact(j, word, "wake word");
        json_out_member_array(j, "languages");
        json_out_str(j, "en");
        json_out_array_end(j);
        json_out_member_str(j, "phrase", word);
        json_out_object_end(j);
        json_out_array_end(j);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}
