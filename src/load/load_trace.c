/* load_trace.c - see load_trace.h. */
#include "load/load_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/json_in.h"

#define MAX_LINE_BYTES ((size_t)1 << 20)
#define MAX_AT_MS 31536000000.0 /* a year */
#define MAX_TOKENS 1000000

static const cJSON *either(const cJSON *o, const char *key, const char *other)
{
    const cJSON *v = json_in_item(o, key);
    return v ? v : json_in_item(o, other);
}

/* A count under one of two names; 0: neither is there. */
static int read_count(const cJSON *o, const char *key, const char *other, uint32_t *out,
                      struct err *e)
{
    const char *name = json_in_item(o, key) ? key : other;
    return json_in_u32(o, name, 0, MAX_TOKENS, 0, out, e);
}

static int read_row(struct load_trace_row *row, struct load_mix *m, const cJSON *o, struct err *e)
{
    const cJSON *at = either(o, "at_ms", "timestamp"), *kind = json_in_item(o, "kind"),
                *model = json_in_item(o, "model"), *prompt = json_in_item(o, "prompt");
    if (!cJSON_IsNumber(at) || !(at->valuedouble >= 0.0 && at->valuedouble <= MAX_AT_MS))
        return err_set(e, SHOAL_EFORMAT, "at_ms must be the time in ms after the start");
    row->at_ns = (uint64_t)(at->valuedouble * 1e6);
    enum load_kind k = LOAD_CHAT;
    if (kind)
        k = cJSON_IsString(kind) ? load_kind_find(kind->valuestring) : LOAD_KINDS;
    if (k == LOAD_KINDS)
        return err_set(e, SHOAL_EFORMAT, "kind must be chat, completion, classify or ask");
    if ((model && !cJSON_IsString(model)) || (prompt && !cJSON_IsString(prompt)))
        return err_set(e, SHOAL_EFORMAT, "model and prompt must be texts");
    const int part = load_mix_part(m, k, model ? model->valuestring : "");
    if (part < 0)
        return err_set(e, SHOAL_ELIMIT, "more than %u kinds and models, or a name that is too long",
                       LOAD_MAX_PARTS);
    row->part = (uint32_t)part;
    int rc = read_count(o, "max_tokens", "output_length", &row->max_tokens, e);
    if (rc == 0)
        rc = read_count(o, "input_length", "prompt_tokens", &row->n_words, e);
    if (rc == 0 && prompt && !(row->prompt = mem_strdup(prompt->valuestring)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    return rc;
}

static int add_row(struct load_trace *t, struct load_mix *m, const char *line, size_t n,
                   size_t number, struct err *e)
{
    cJSON *o = NULL;
    struct err why = {0};
    if ((t->n & (t->n - 1)) == 0) { /* a power of two: full */
        struct load_trace_row *rows =
            mem_realloc(t->rows, (t->n ? 2 * t->n : 1) * sizeof(*t->rows));
        if (!rows)
            return err_set(e, SHOAL_ENOMEM, "out of memory for %zu requests", t->n);
        t->rows = rows;
    }
    if (t->n == LOAD_TRACE_MAX_ROWS)
        return err_set(e, SHOAL_ELIMIT, "more than %u requests", LOAD_TRACE_MAX_ROWS);
    t->rows[t->n] = (struct load_trace_row){0};
    int rc = json_in_object(&o, "the line", line, n, MAX_LINE_BYTES, &why);
    if (rc == 0)
        rc = read_row(&t->rows[t->n], m, o, &why);
    cJSON_Delete(o);
    if (rc < 0)
        return err_set(e, rc, "line %zu: %s", number, why.msg);
    t->n++;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct load_trace_row *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

int load_trace_read(struct load_trace *t, struct load_mix *m, const char *bytes, size_t n,
                    struct err *e)
{
    int rc = 0;
    size_t number = 0;
    *t = (struct load_trace){0};
    for (const char *at = bytes, *end = bytes + n; rc == 0 && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t len = (size_t)((stop ? stop : end) - at);
        number++;
        if (len > 0 && !(len == 1 && *at == '\r'))
            rc = add_row(t, m, at, len, number, e);
        at += len + 1;
    }
    if (rc == 0 && t->n == 0)
        rc = err_set(e, SHOAL_EFORMAT, "there are no requests: write one JSON object per line");
    if (rc < 0) {
        load_trace_fini(t);
        return rc;
    }
    qsort(t->rows, t->n, sizeof(*t->rows), by_time);
    for (size_t i = t->n; i-- > 0;)
        t->rows[i].at_ns -= t->rows[0].at_ns;
    return 0;
}

void load_trace_fini(struct load_trace *t)
{
    for (size_t i = 0; i < t->n; i++)
        mem_free(t->rows[i].prompt);
    mem_free(t->rows);
    *t = (struct load_trace){0};
}
