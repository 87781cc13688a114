/* eval_texts.c - shoal eval embed, rerank and summarize: retrieval and summaries.
 *
 * Retrieval has two kinds of data sets: rows with a "label", where each row is a query for the
 * others with its label; and rows with a "query" and the "relevant" ids of its documents (--docs).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "eval/eval.h"
#include "eval/quality.h"

static const char *const text_keys[] = {"text", "sentence", NULL};
static const char *const query_keys[] = {"query", "text", NULL};
static const char *const long_keys[] = {"text", "dialogue", "document", "context", NULL};
static const char *const summary_keys[] = {"summary", NULL};

#define CUTS 3u
static const uint32_t cuts[CUTS] = {1, 5, 10};

/* ---- ranking -------------------------------------------------------------------------------- */

struct ranking {         /* sums over queries */
    double recall[CUTS]; /* share of the relevant documents among the first k */
    double hit[CUTS];    /* is any of them relevant? */
    double mrr;
    uint64_t n;
};

struct ranked {
    float score;
    bool relevant;
};

static int best_first(const void *x, const void *y)
{
    float a = ((const struct ranked *)x)->score, b = ((const struct ranked *)y)->score;
    return (a < b) - (a > b);
}

/* Adds one query with its documents, which it sorts. */
static void rank(struct ranking *k, struct ranked *docs, size_t n)
{
    size_t relevant = 0, found = 0, first = 0;
    for (size_t i = 0; i < n; i++)
        relevant += docs[i].relevant;
    if (relevant == 0)
        return; /* nothing to find: not counted */
    qsort(docs, n, sizeof(*docs), best_first);
    for (size_t i = 0, c = 0; c < CUTS; i++) {
        if (i < n && docs[i].relevant) {
            found++;
            first = first ? first : i + 1;
        }
        if (i + 1 == cuts[c]) {
            k->recall[c] += (double)found / (double)relevant;
            k->hit[c] += found > 0;
            c++;
        }
    }
    for (size_t i = cuts[CUTS - 1]; !first && i < n; i++)
        first = docs[i].relevant ? i + 1 : 0;
    k->mrr += first ? 1.0 / (double)first : 0.0;
    k->n++;
}

static int put_ranking(const struct ranking *k, bool labels, struct json_out *j, struct buf *text,
                       struct err *e)
{
    static const char *const recall_keys[] = {"recall@1", "recall@5", "recall@10"};
    static const char *const hit_keys[] = {"hit@1", "hit@5", "hit@10"};
    if (k->n == 0)
        return err_set(e, SHOAL_EFORMAT, "no row has a relevant document");
    double n = (double)k->n;
    for (uint32_t c = 0; c < CUTS;
         c++) /* by label: is another row of the label among the first k? */
        eval_figure(j, text, recall_keys[c], (labels ? k->hit[c] : k->recall[c]) / n, "%.4f");
    for (uint32_t c = 0; !labels && c < CUTS; c++)
        eval_figure(j, text, hit_keys[c], k->hit[c] / n, "%.4f");
    eval_figure(j, text, "mrr", k->mrr / n, "%.4f");
    json_out_member_uint(j, "queries", k->n);
    return 0;
}

/* Is document d among the relevant ids of the query? */
static bool is_relevant(const struct eval_row *query, const struct eval_row *doc)
{
    const cJSON *ids = cJSON_GetObjectItemCaseSensitive(query->json, "relevant"), *id;
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(doc->json, "id");
    cJSON_ArrayForEach(id, ids)
    {
        if (own && cJSON_Compare(id, own, true))
            return true;
    }
    return false;
}

/* ---- embed ---------------------------------------------------------------------------------- */

struct embedded_rows {
    const struct eval_rows *rows;
    const char *const *keys;
    uint32_t dimensions;
    float *v; /* [n][dim] */
    uint32_t dim;
};

static int make_vector(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    const struct embedded_rows *x = ctx;
    int rc = eval_rows_text(&x->rows->rows[i], x->keys, &o->text, e);
    o->kind = SHOAL_KIND_EMBED;
    o->dimensions = x->dimensions;
    if (rc == 0)
        o->text_bytes = strlen(o->text);
    return rc;
}

static int take_vector(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct embedded_rows *x = ctx;
    if (!x->v) {
        x->dim = r->n_dims;
        x->v = mem_zalloc_n(x->rows->n, x->dim * sizeof(*x->v));
    }
    if (!x->v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu vectors", x->rows->n);
    memcpy(x->v + i * x->dim, r->vector, x->dim * sizeof(*x->v));
    return 0;
}

static float dot(const float *a, const float *b, uint32_t n)
{
    float part[16] = {0}, sum = 0.0f;
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (uint32_t k = 0; k < 16; k++)
            part[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        part[i % 16] += a[i] * b[i];
    for (uint32_t k = 0; k < 16; k++)
        sum += part[k];
    return sum;
}

static int rank_by_label(struct ranking *k, const struct eval_rows *rows,
                         const struct embedded_rows *v, struct ranked *docs, struct err *e)
{
    static const char *const keys[] = {"label", "intent", NULL};
    const char **labels = mem_zalloc_n(rows->n, sizeof(*labels));
    int rc = labels ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the labels");
    for (size_t i = 0; rc == 0 && i < rows->n; i++)
        rc = eval_rows_text(&rows->rows[i], keys, &labels[i], e);
    for (size_t i = 0; rc == 0 && i < rows->n; i++) {
        size_t n = 0;
        for (size_t d = 0; d < rows->n; d++)
            if (d != i)
                docs[n++] = (struct ranked){dot(v->v + i * v->dim, v->v + d * v->dim, v->dim),
                                            strcmp(labels[i], labels[d]) == 0};
        rank(k, docs, n);
    }
    mem_free(labels);
    return rc;
}

int eval_embed(struct eval *ev, struct json_out *j, struct buf *text, struct err *e)
{
    const struct eval_rows *rows = ev->rows, *docs = ev->docs && ev->docs->n ? ev->docs : NULL;
    uint32_t dimensions = ev->dimensions;
    struct embedded_rows q = {
        .rows = rows, .keys = docs ? query_keys : text_keys, .dimensions = dimensions};
    struct embedded_rows d = {.rows = docs, .keys = text_keys, .dimensions = dimensions};
    struct ranking k = {0};
    size_t most = docs && docs->n > rows->n ? docs->n : rows->n;
    struct ranked *list = mem_zalloc_n(most, sizeof(*list));
    int rc = list ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a ranking");
    if (rc == 0)
        rc = eval_run(ev, make_vector, take_vector, &q, rows->n, e);
    double *latency = ev->latency_ms;
    ev->latency_ms = NULL; /* of the queries only */
    if (rc == 0 && docs)
        rc = eval_run(ev, make_vector, take_vector, &d, docs->n, e);
    ev->latency_ms = latency;
    if (rc == 0 && !docs)
        rc = rank_by_label(&k, rows, &q, list, e);
    for (size_t i = 0; rc == 0 && docs && i < rows->n; i++) {
        for (size_t n = 0; n < docs->n; n++)
            list[n] = (struct ranked){dot(q.v + i * q.dim, d.v + n * d.dim, q.dim),
                                      is_relevant(&rows->rows[i], &docs->rows[n])};
        rank(&k, list, docs->n);
    }
    if (rc == 0)
        rc = put_ranking(&k, !docs, j, text, e);
    mem_free(list);
    mem_free(q.v);
    mem_free(d.v);
    return rc;
}

/* ---- rerank --------------------------------------------------------------------------------- */

struct pairs {
    struct eval *ev;
    struct ranking k;
    struct ranked *list;
};

static int make_pair(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    const struct pairs *p = ctx;
    size_t n = p->ev->docs->n;
    int rc = eval_rows_text(&p->ev->rows->rows[i / n], query_keys, &o->text, e);
    if (rc == 0)
        rc = eval_rows_text(&p->ev->docs->rows[i % n], text_keys, &o->document, e);
    if (rc < 0)
        return rc;
    o->kind = SHOAL_KIND_RERANK;
    o->text_bytes = strlen(o->text);
    o->document_bytes = strlen(o->document);
    return 0;
}

static int take_pair(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct pairs *p = ctx;
    size_t n = p->ev->docs->n;
    (void)e;
    p->list[i % n] = (struct ranked){
        (float)r->values[0], is_relevant(&p->ev->rows->rows[i / n], &p->ev->docs->rows[i % n])};
    if (i % n == n - 1)
        rank(&p->k, p->list, n);
    return 0;
}

int eval_rerank(struct eval *ev, struct json_out *j, struct buf *text, struct err *e)
{
    struct pairs p = {.ev = ev};
    if (!ev->docs || ev->docs->n == 0)
        return err_set(e, SHOAL_EINVAL, "give the documents: --docs FILE.jsonl");
    p.list = mem_zalloc_n(ev->docs->n, sizeof(*p.list));
    int rc = p.list ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a ranking");
    double *latency = ev->latency_ms;
    ev->latency_ms = NULL; /* there are more pairs than rows */
    if (rc == 0)
        rc = eval_run(ev, make_pair, take_pair, &p, ev->rows->n * ev->docs->n, e);
    ev->latency_ms = latency;
    if (rc == 0)
        rc = put_ranking(&p.k, false, j, text, e);
    mem_free(p.list);
    return rc;
}

/* ---- summarize ------------------------------------------------------------------------------ */

struct summaries {
    struct eval *ev;
    struct quality_rouge sum;
    size_t n;
};

static int make_summary(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    const struct summaries *s = ctx;
    int rc = eval_rows_text(&s->ev->rows->rows[i], long_keys, &o->text, e);
    o->kind = SHOAL_KIND_SUMMARIZE;
    o->max_sentences = s->ev->sentences;
    o->beams = s->ev->beams;
    if (rc == 0)
        o->text_bytes = strlen(o->text);
    return rc;
}

static int take_summary(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct summaries *s = ctx;
    struct quality_rouge m = {0};
    const char *want;
    char *said = mem_strndup(r->text, r->text_bytes);
    int rc = said ? eval_rows_text(&s->ev->rows->rows[i], summary_keys, &want, e)
                  : err_set(e, SHOAL_ENOMEM, "out of memory for a summary");
    if (rc == 0)
        rc = quality_rouge(&m, said, want, e);
    s->sum.r1 += m.r1;
    s->sum.r2 += m.r2;
    s->sum.rl += m.rl;
    s->n++;
    mem_free(said);
    return rc;
}

int eval_summarize(struct eval *ev, struct json_out *j, struct buf *text, struct err *e)
{
    struct summaries s = {.ev = ev};
    int rc = eval_run(ev, make_summary, take_summary, &s, ev->rows->n, e);
    if (rc < 0)
        return rc;
    eval_figure(j, text, "rouge1", s.sum.r1 / (double)s.n, "%.4f");
    eval_figure(j, text, "rouge2", s.sum.r2 / (double)s.n, "%.4f");
    eval_figure(j, text, "rougeL", s.sum.rl / (double)s.n, "%.4f");
    return 0;
}
