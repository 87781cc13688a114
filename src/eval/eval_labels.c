/* eval_labels.c - shoal eval classify and tag: rows with a label, or with a tag for each token. */
#include <string.h>

#include "base/mem.h"
#include "eval/eval.h"
#include "eval/quality.h"

static const char *const text_keys[] = {"text", "sentence", NULL};
static const char *const label_keys[] = {"label", "intent", NULL};

static int make_text(const struct eval *ev, size_t i, enum shoal_kind kind,
                     struct shoal_infer_opts *o, struct err *e)
{
    int rc = eval_rows_text(&ev->rows->rows[i], text_keys, &o->text, e);
    o->kind = kind;
    if (rc == 0)
        o->text_bytes = strlen(o->text);
    return rc;
}

/* ---- classify ------------------------------------------------------------------------------- */

#define OUT_OF_SCOPE "oos"

struct classes {
    struct eval *ev;
    struct quality_counts counts;
    struct quality_ece ece;
    uint64_t n, right, n_in, right_in, n_out, right_out;
};

static int make_class(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    return make_text(((struct classes *)ctx)->ev, i, SHOAL_KIND_CLASSIFY, o, e);
}

static int take_class(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct classes *c = ctx;
    const char *want;
    int rc = eval_rows_text(&c->ev->rows->rows[i], label_keys, &want, e);
    if (rc < 0)
        return rc;
    bool right = strcmp(want, r->label) == 0, out = strcmp(want, OUT_OF_SCOPE) == 0;
    c->n++;
    c->right += right;
    c->n_in += !out;
    c->right_in += right && !out;
    c->n_out += out;
    c->right_out += right && out;
    quality_ece_add(&c->ece, (double)r->confidence, right);
    rc = quality_add(&c->counts, want, right, right, 1, e);
    if (rc == 0 && !right) {
        /* Labels of results live as long as the engine. */
        rc = quality_add(&c->counts, r->label, 0, 1, 0, e);
    }
    return rc;
}

int eval_classify(struct eval *ev, struct json_out *j, struct buf *text, struct err *e)
{
    struct classes c = {.ev = ev};
    int rc = eval_run(ev, make_class, take_class, &c, ev->rows->n, e);
    if (rc == 0) {
        eval_figure(j, text, "accuracy", (double)c.right / (double)c.n, "%.4f");
        if (c.n_out > 0 && c.n_in > 0) {
            eval_figure(j, text, "in_scope_accuracy", (double)c.right_in / (double)c.n_in, "%.4f");
            eval_figure(j, text, "oos_recall", (double)c.right_out / (double)c.n_out, "%.4f");
        }
        eval_figure(j, text, "macro_f1", quality_macro_f1(&c.counts), "%.4f");
        eval_figure(j, text, "calibration_error", quality_ece(&c.ece), "%.4f");
    }
    quality_counts_fini(&c.counts);
    return rc;
}

/* ---- tag ------------------------------------------------------------------------------------ */

struct tags {
    struct eval *ev;
    struct quality_counts counts;
    /* of one row; as large as the longest row needs */
    const char **tags;
    uint32_t *start, *end; /* bytes of each token */
    struct quality_span *gold, *said;
    uint32_t cap;
    char **types; /* names of spans, kept for the counts */
    size_t n_types;
};

static int make_tags(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    return make_text(((struct tags *)ctx)->ev, i, SHOAL_KIND_TAG, o, e);
}

static int bad_row(const struct eval_row *r, const char *why, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "%s:%llu: %s", r->file, (unsigned long long)r->line, why);
}

static int reserve_tokens(struct tags *t, uint32_t n, struct err *e)
{
    if (n <= t->cap)
        return 0;
    mem_free(t->tags);
    mem_free(t->start);
    mem_free(t->end);
    mem_free(t->gold);
    mem_free(t->said);
    t->tags = mem_zalloc_n(n, sizeof(*t->tags));
    t->start = mem_zalloc_n(n, sizeof(*t->start));
    t->end = mem_zalloc_n(n, sizeof(*t->end));
    t->gold = mem_zalloc_n(n, sizeof(*t->gold));
    t->said = mem_zalloc_n(n, sizeof(*t->said));
    t->cap = t->tags && t->start && t->end && t->gold && t->said ? n : 0;
    return t->cap ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a row of %u tokens", n);
}

/* Reads the tokens and tags of a row and finds the tokens in its text. */
static int read_tokens(struct tags *t, const struct eval_row *r, const char *text, uint32_t *n,
                       struct err *e)
{
    const cJSON *tokens = cJSON_GetObjectItemCaseSensitive(r->json, "tokens"), *v;
    const cJSON *tags = cJSON_GetObjectItemCaseSensitive(r->json, "tags");
    int n_tokens = cJSON_IsArray(tokens) ? cJSON_GetArraySize(tokens) : -1;
    if (n_tokens < 0 || !cJSON_IsArray(tags) || cJSON_GetArraySize(tags) != n_tokens)
        return bad_row(r, "\"tokens\" and \"tags\" must be lists of the same length", e);
    int rc = reserve_tokens(t, (uint32_t)n_tokens + 1, e);
    if (rc < 0)
        return rc;
    uint32_t at = 0, i = 0;
    cJSON_ArrayForEach(v, tokens)
    {
        const char *found = cJSON_IsString(v) ? strstr(text + at, v->valuestring) : NULL;
        if (!found)
            return bad_row(r, "the tokens do not follow each other in the text", e);
        t->start[i] = (uint32_t)(found - text);
        t->end[i] = at = t->start[i] + (uint32_t)strlen(v->valuestring);
        i++;
    }
    i = 0;
    cJSON_ArrayForEach(v, tags)
    {
        if (!cJSON_IsString(v))
            return bad_row(r, "a tag is not a string", e);
        t->tags[i++] = v->valuestring;
    }
    *n = (uint32_t)n_tokens;
    return 0;
}

/* A copy of the type's name that lives as long as the counts. */
static const char *keep_type(struct tags *t, const char *type, size_t n, struct err *e)
{
    for (size_t i = 0; i < t->n_types; i++)
        if (strlen(t->types[i]) == n && memcmp(t->types[i], type, n) == 0)
            return t->types[i];
    char **grown = mem_realloc(t->types, (t->n_types + 1) * sizeof(*grown));
    char *name = grown ? mem_strndup(type, n) : NULL;
    if (grown)
        t->types = grown;
    if (!name) {
        (void)err_set(e, SHOAL_ENOMEM, "out of memory for the names of types");
        return NULL;
    }
    t->types[t->n_types++] = name;
    return name;
}

/* Converts the spans of the result from bytes to tokens. */
static uint32_t said_spans(struct tags *t, const struct shoal_result *r, uint32_t n_tokens)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_spans && n < n_tokens; i++) {
        uint32_t from = 0, to;
        while (from < n_tokens && t->end[from] <= r->spans[i].start)
            from++;
        for (to = from; to < n_tokens && t->start[to] < r->spans[i].end; to++)
            ;
        if (to > from)
            t->said[n++] =
                (struct quality_span){r->spans[i].label, strlen(r->spans[i].label), from, to};
    }
    return n;
}

static bool same_span(const struct quality_span *a, const struct quality_span *b)
{
    return a->from == b->from && a->to == b->to && a->type_bytes == b->type_bytes &&
           memcmp(a->type, b->type, a->type_bytes) == 0;
}

static int take_tags(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct tags *t = ctx;
    const struct eval_row *row = &t->ev->rows->rows[i];
    const char *text, *type;
    uint32_t n = 0;
    int rc = eval_rows_text(row, text_keys, &text, e);
    if (rc == 0)
        rc = read_tokens(t, row, text, &n, e);
    if (rc < 0)
        return rc;
    uint32_t n_gold = quality_spans(t->tags, n, t->gold), n_said = said_spans(t, r, n);
    for (uint32_t k = 0; rc == 0 && k < n_gold; k++) {
        bool hit = false;
        for (uint32_t m = 0; m < n_said; m++)
            hit |= same_span(&t->gold[k], &t->said[m]);
        type = keep_type(t, t->gold[k].type, t->gold[k].type_bytes, e);
        rc = type ? quality_add(&t->counts, type, hit, 0, 1, e) : e->code;
    }
    for (uint32_t m = 0; rc == 0 && m < n_said; m++) {
        type = keep_type(t, t->said[m].type, t->said[m].type_bytes, e);
        rc = type ? quality_add(&t->counts, type, 0, 1, 0, e) : e->code;
    }
    return rc;
}

static void put_by_label(struct json_out *j, const struct quality_counts *c)
{
    json_out_member_object(j, "by_label");
    for (uint32_t i = 0; i < c->n; i++) {
        struct quality_f1 f = quality_f1(c->by[i].hit, c->by[i].said, c->by[i].true_);
        json_out_member_object(j, c->by[i].label);
        json_out_member_num(j, "f1", f.f1);
        json_out_member_uint(j, "n", c->by[i].true_);
        json_out_object_end(j);
    }
    json_out_object_end(j);
}

int eval_tag(struct eval *ev, struct json_out *j, struct buf *text, struct err *e)
{
    struct tags t = {.ev = ev};
    int rc = eval_run(ev, make_tags, take_tags, &t, ev->rows->n, e);
    if (rc == 0) {
        struct quality_f1 m = quality_micro(&t.counts);
        eval_figure(j, text, "f1", m.f1, "%.4f");
        eval_figure(j, text, "precision", m.precision, "%.4f");
        eval_figure(j, text, "recall", m.recall, "%.4f");
        put_by_label(j, &t.counts);
    }
    quality_counts_fini(&t.counts);
    for (size_t i = 0; i < t.n_types; i++)
        mem_free(t.types[i]);
    mem_free(t.types);
    mem_free(t.tags);
    mem_free(t.start);
    mem_free(t.end);
    mem_free(t.gold);
    mem_free(t.said);
    return rc;
}
