/* payload.c - see payload.h. */
#include "mqtt/payload.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/json_scan.h"

#define MAX_PATH_BYTES 256u
#define MAX_NUMBER_BYTES 64u

/* ---- values and times ---- */

double payload_number(const char *p, size_t n)
{
    char text[MAX_NUMBER_BYTES], *end;
    while (n > 0 && isspace((unsigned char)p[0]))
        p++, n--;
    while (n > 0 && isspace((unsigned char)p[n - 1]))
        n--;
    if (n == 0 || n >= sizeof(text))
        return NAN;
    memcpy(text, p, n);
    text[n] = '\0';
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return text[0] == 't';
    if (strspn(text, "+-.0123456789eE") != n) /* neither hex digits nor "inf" */
        return NAN;
    double v = strtod(text, &end);
    return *end ? NAN : v;
}

/* Milliseconds since 1970 of a number of s, ms, us or ns; 0: not a time. */
static int64_t time_of_number(double v)
{
    double a = fabs(v);
    if (!(a > 0) || a > 9e18)
        return 0;
    return (int64_t)(a < 1e11 ? v * 1e3 : a < 1e14 ? v : a < 1e17 ? v / 1e3 : v / 1e6);
}

/* "+01:30", "Z" or "" at the end of a time: minutes; false: something else. */
static bool read_zone(const char *p, int *minutes)
{
    int h, m, used = 0;
    *minutes = 0;
    if (!*p || strcmp(p, "Z") == 0 || strcmp(p, "z") == 0)
        return true;
    if ((*p != '+' && *p != '-') || sscanf(p + 1, "%2d:%2d%n", &h, &m, &used) != 2 || p[1 + used])
        return false;
    *minutes = (*p == '-' ? -1 : 1) * (60 * h + m);
    return true;
}

int64_t payload_time_text(const char *text)
{
    struct tm tm = {0};
    double v = payload_number(text, strlen(text)), fraction = 0;
    int zone;
    if (!isnan(v))
        return time_of_number(v);
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!p)
        p = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    if (p && *p == '.') {
        size_t n = strspn(p + 1, "0123456789");
        char digits[16];
        snprintf(digits, sizeof(digits), "0.%.*s", n < 9 ? (int)n : 9, p + 1);
        fraction = strtod(digits, NULL);
        p += 1 + n;
    }
    if (!p || !read_zone(p, &zone))
        return 0;
    return ((int64_t)timegm(&tm) - 60 * zone) * 1000 + (int64_t)(fraction * 1000 + 0.5);
}

static double value_of(const cJSON *v)
{
    if (cJSON_IsNumber(v))
        return v->valuedouble;
    if (cJSON_IsBool(v))
        return cJSON_IsTrue(v);
    if (cJSON_IsString(v))
        return payload_number(v->valuestring, strlen(v->valuestring));
    return NAN;
}

static int64_t time_of(const cJSON *v)
{
    return cJSON_IsNumber(v)   ? time_of_number(v->valuedouble)
           : cJSON_IsString(v) ? payload_time_text(v->valuestring)
                               : 0;
}

/* ---- JSON ---- */

/* The next part of a path: a name, or an index.  False: the path is wrong. */
static bool next_part(const char **p, char name[MAX_PATH_BYTES], long *index)
{
    size_t n = 0;
    char *end;
    *index = -1;
    if (**p == '[') {
        if (!isdigit((unsigned char)(*p)[1]))
            return false;
        *index = strtol(*p + 1, &end, 10);
        if (*end != ']' || *index > 1000000)
            return false;
        *p = end + 1;
    } else {
        n = strcspn(*p, ".[");
        if (n == 0 || n >= MAX_PATH_BYTES)
            return false;
        memcpy(name, *p, n);
        name[n] = '\0';
        *p += n;
    }
    if (**p == '.')
        return *++*p != '\0';
    return **p == '\0' || **p == '[';
}

static const char *begin_path(const char *path)
{
    return strncmp(path, "$.", 2) == 0 ? path + 2 : path[0] == '$' ? path + 1 : path;
}

bool payload_path_ok(const char *path)
{
    char name[MAX_PATH_BYTES];
    long index;
    const char *p = begin_path(path);
    if (strlen(path) >= MAX_PATH_BYTES)
        return false;
    while (*p)
        if (!next_part(&p, name, &index) || (index < 0 && strcmp(name, "*") == 0 && *p))
            return false;
    return path[0] != '\0';
}

const cJSON *payload_find(const cJSON *root, const char *path, bool *every)
{
    char name[MAX_PATH_BYTES];
    long index;
    const cJSON *v = root;
    const char *p = begin_path(path);
    *every = false;
    while (v && *p) {
        if (!next_part(&p, name, &index))
            return NULL;
        if (index < 0 && strcmp(name, "*") == 0 && !*p) {
            *every = true;
            return v;
        }
        v = index >= 0 ? cJSON_GetArrayItem(cJSON_IsArray(v) ? v : NULL, (int)index)
                       : cJSON_GetObjectItemCaseSensitive(v, name);
    }
    return v;
}

static int read_json(const struct payload_map *m, const char *p, size_t n, payload_fn fn, void *ctx,
                     struct err *e)
{
    struct json_scan scan;
    bool every = false, unused;
    const char *end = NULL;
    if (json_scan(&scan, p, n, PAYLOAD_MAX_VALUES, NULL) < 0)
        return err_set(e, SHOAL_ELIMIT, "it has NUL or more than %u values", PAYLOAD_MAX_VALUES);
    cJSON *root = cJSON_ParseWithLengthOpts(p, n, &end, 0);
    if (!root)
        return err_set(e, SHOAL_EFORMAT, "it is not JSON");
    const cJSON *v = m->value ? payload_find(root, m->value, &every) : root;
    const cJSON *t = m->time ? payload_find(root, m->time, &unused) : NULL;
    struct payload_reading r = {.name = {"", 0}, .time_ms = time_of(t)};
    int rc = v ? 0 : err_set(e, SHOAL_EFORMAT, "it has no %s", m->value);
    char number[24];
    int i = 0;
    const cJSON *one = v ? v->child : NULL;
    for (; every && one; one = one->next, i++) {
        if (one == t || cJSON_IsObject(one) || cJSON_IsArray(one))
            continue;
        int k = snprintf(number, sizeof(number), "%d", i);
        r.name = one->string ? (struct str){one->string, strlen(one->string)}
                             : (struct str){number, (size_t)k};
        r.value = value_of(one);
        fn(ctx, &r);
    }
    if (v && !every) {
        r.value = value_of(v);
        fn(ctx, &r);
    }
    cJSON_Delete(root);
    return rc;
}

/* ---- CSV ---- */

static struct str column_name(const struct payload_map *m, size_t i, char number[24])
{
    if (i < m->n_columns)
        return (struct str){m->columns[i], strlen(m->columns[i])};
    int n = snprintf(number, 24, "%zu", i + 1);
    return (struct str){number, (size_t)n};
}

/* The cell that begins at *at; *at moves after its separator, or to end. */
static struct str next_cell(const char **at, const char *end)
{
    const char *p = *at, *q = p;
    while (q < end && *q != ',' && *q != ';' && *q != '\t')
        q++;
    *at = q < end ? q + 1 : end;
    return (struct str){p, (size_t)(q - p)};
}

static int64_t row_time(const struct payload_map *m, const char *p, const char *end)
{
    char text[MAX_NUMBER_BYTES], number[24];
    for (size_t i = 0; m->time && p < end && i < PAYLOAD_MAX_COLUMNS; i++) {
        struct str cell = next_cell(&p, end);
        if (!str_is(column_name(m, i, number), m->time))
            continue;
        snprintf(text, sizeof(text), "%.*s", (int)(cell.n < 63 ? cell.n : 63), cell.p);
        return payload_time_text(text);
    }
    return 0;
}

static int read_row(const struct payload_map *m, const char *p, const char *end, payload_fn fn,
                    void *ctx, struct err *e)
{
    struct payload_reading r = {.time_ms = row_time(m, p, end)};
    char number[24];
    size_t i = 0;
    bool more = true;
    for (; more; i++) {
        if (i == PAYLOAD_MAX_COLUMNS)
            return err_set(e, SHOAL_ELIMIT, "a row has more than %u columns", PAYLOAD_MAX_COLUMNS);
        struct str cell = next_cell(&p, end);
        more = p < end || (p > cell.p + cell.n && cell.p + cell.n < end);
        r.name = column_name(m, i, number);
        if (str_is(r.name, "-") || (m->time && str_is(r.name, m->time)))
            continue;
        r.value = payload_number(cell.p, cell.n);
        fn(ctx, &r);
    }
    if (m->n_columns > 0 && i != m->n_columns)
        return err_set(e, SHOAL_EFORMAT, "a row has %zu columns instead of %zu", i, m->n_columns);
    return 0;
}

static int read_csv(const struct payload_map *m, const char *p, size_t n, payload_fn fn, void *ctx,
                    struct err *e)
{
    const char *end = p + n;
    int rc = n > 0 ? 0 : err_set(e, SHOAL_EFORMAT, "it is empty");
    while (p < end && rc == 0) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const char *stop = line ? line : end;
        if (stop > p && stop[-1] == '\r')
            stop--;
        if (stop > p)
            rc = read_row(m, p, stop, fn, ctx, e);
        p = line ? line + 1 : end;
    }
    return rc;
}

int payload_read(const struct payload_map *m, const void *bytes, size_t n, payload_fn fn, void *ctx,
                 struct err *e)
{
    struct payload_reading r = {.name = {"", 0}};
    switch (m->kind) {
    case PAYLOAD_JSON:
        return read_json(m, bytes, n, fn, ctx, e);
    case PAYLOAD_CSV:
        return read_csv(m, bytes, n, fn, ctx, e);
    case PAYLOAD_NUMBER:
        r.value = payload_number(bytes, n);
        fn(ctx, &r);
        return 0;
    default:
        return err_set(e, SHOAL_EINVAL, "not a format of this reader");
    }
}
