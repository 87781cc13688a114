/* specialists.c - see specialists.h.
 *
 * "input" is a text or a list of texts everywhere; answers have "data", one object for each. */
#include "gateway/api/specialists.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/mem.h"
#include "gateway/infer.h"
#include "wire/result_json.h"
#include "wire/json_out.h"

#define MAX_VALUES (1u << 20)
#define MAX_SERIES_VALUES (1u << 20)

struct body {
    const char *model, *labels, *query, *encoding_format;
    const cJSON *input, *documents, *text, *series;
    int64_t top, top_n, dimensions, max_sentences, max_tokens, beams, priority;
    bool raw, return_documents, truncate;
    double latency_budget_ms;
};

#define AT(member) offsetof(struct body, member)
#define TEXTS                                                                                      \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}"
#define INPUT                                                                                      \
    {                                                                                              \
        "input", FIELD_VALUE, AT(input), 0, 0, "a text, or a list of them", TEXTS                  \
    }
#define COMMON                                                                                     \
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},                  \
        {"priority", FIELD_INT, AT(priority), -100, 100, "higher first", NULL},                    \
        {"latency_budget_ms",                                                                      \
         FIELD_NUM,                                                                                \
         AT(latency_budget_ms),                                                                    \
         1,                                                                                        \
         86400000,                                                                                 \
         "refuse or stop what takes longer",                                                       \
         NULL},                                                                                    \
    {                                                                                              \
        "user", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL                              \
    }
#define LABELS                                                                                     \
    {                                                                                              \
        "labels", FIELD_STR, AT(labels), 0, 0, "a label set of the model", NULL                    \
    }

const struct field embed_fields[] = {
    INPUT,
    COMMON,
    {"encoding_format", FIELD_STR, AT(encoding_format), 0, 0, "float or base64", NULL},
    {"dimensions", FIELD_INT, AT(dimensions), 1, 65536, "only the first so many", NULL}};
const struct field classify_fields[] = {
    INPUT,
    COMMON,
    LABELS,
    {"top", FIELD_INT, AT(top), 1, 10000, "at most so many labels; default all", NULL}};
const struct field entities_fields[] = {INPUT, COMMON, LABELS};
const struct field rerank_fields[] = {
    {"query", FIELD_STR, AT(query), 0, 0, "what is looked for", NULL},
    {"documents", FIELD_VALUE, AT(documents), 0, 0, "a list of texts, or of {\"text\": ...}",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    {"top_n", FIELD_INT, AT(top_n), 1, INFER_MAX_INPUTS, "at most so many; default all", NULL},
    {"return_documents", FIELD_BOOL, AT(return_documents), 0, 0, "with their texts", NULL},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "logits instead of probabilities", NULL},
    COMMON};
const struct field summarize_fields[] = {
    INPUT,
    COMMON,
    {"max_sentences", FIELD_INT, AT(max_sentences), 1, 1000, "for extracts", NULL},
    {"max_tokens", FIELD_INT, AT(max_tokens), 1, 65536, "for written summaries", NULL},
    {"beams", FIELD_INT, AT(beams), 1, 16, "1: greedy", NULL}};
const struct field score_fields[] = {
    {"input", FIELD_VALUE, AT(input), 0, 0, "a row of numbers (null: missing), or a list of rows",
     "{\"type\":\"array\"}"},
    {"series", FIELD_VALUE, AT(series), 0, 0,
     "instead of input: rows that follow each other in time, for models that remember",
     "{\"type\":\"array\",\"items\":{\"type\":\"array\"}}"},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "before the model's last transform", NULL},
    COMMON};
static const struct field ollama_fields[] = {
    INPUT,
    COMMON,
    {"truncate", FIELD_BOOL, AT(truncate), 0, 0, "accepted: long texts are always cut", NULL},
    {"dimensions", FIELD_INT, AT(dimensions), 1, 65536, "only the first so many", NULL},
    {"options", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"keep_alive", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL}};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
const size_t n_embed_fields = COUNT(embed_fields), n_classify_fields = COUNT(classify_fields),
             n_entities_fields = COUNT(entities_fields), n_rerank_fields = COUNT(rerank_fields),
             n_summarize_fields = COUNT(summarize_fields), n_score_fields = COUNT(score_fields);

/* ---- inputs ---- */

static int count_inputs(const cJSON *v, const char *name, uint32_t *n, struct fields_error *e)
{
    int k = cJSON_IsArray(v) ? cJSON_GetArraySize(v) : 1;
    if (!v)
        return fields_fail(e, name, "missing_required_parameter", "'%s' is missing", name);
    if (k == 0 || k > (int)INFER_MAX_INPUTS)
        return fields_fail(e, name, "invalid_value", "'%s' must hold 1 to %u items", name,
                           INFER_MAX_INPUTS);
    *n = (uint32_t)k;
    return 0;
}

static int take_text(struct infer_input *in, const cJSON *v, const char *name,
                     struct fields_error *e)
{
    const cJSON *text = cJSON_IsObject(v) ? cJSON_GetObjectItemCaseSensitive(v, "text") : v;
    if (!cJSON_IsString(text))
        return fields_fail(e, name, "invalid_type", "'%s' must be a text or a list of texts", name);
    if (text->valuestring[0] == '\0')
        return fields_fail(e, name, "invalid_value", "'%s' has an empty text", name);
    in->text = text->valuestring;
    in->text_bytes = strlen(text->valuestring);
    return 0;
}

static int take_texts(struct infer *f, const cJSON *v, const char *name, struct fields_error *e)
{
    const cJSON *one = cJSON_IsArray(v) ? v->child : v;
    f->single = !cJSON_IsArray(v);
    for (uint32_t i = 0; i < f->n; i++, one = one->next) {
        int rc = take_text(&f->inputs[i], one, name, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_row(struct infer_input *in, const cJSON *row, struct fields_error *e)
{
    const cJSON *v;
    int n = cJSON_GetArraySize(row);
    if (!cJSON_IsArray(row) || n == 0 || (uint32_t)n > MAX_VALUES)
        return fields_fail(e, "input", "invalid_type",
                           "'input' must be a row of numbers, or a "
                           "list of rows");
    in->values = mem_zalloc_n((size_t)n, sizeof(double));
    if (!in->values)
        return fields_fail(e, "input", NULL, "out of memory");
    cJSON_ArrayForEach(v, row)
    {
        if (!cJSON_IsNumber(v) && !cJSON_IsNull(v))
            return fields_fail(e, "input", "invalid_type",
                               "'input' has something that is neither a number nor null");
        in->values[in->n_values++] = cJSON_IsNull(v) ? (double)NAN : v->valuedouble;
    }
    return 0;
}

/* All rows of a series as one input; *n_columns: values in each. */
static int take_series(struct infer_input *in, const cJSON *series, uint32_t *n_columns,
                       struct fields_error *e)
{
    const cJSON *row, *v;
    int n_rows = cJSON_GetArraySize(series), n = n_rows > 0 ? cJSON_GetArraySize(series->child) : 0;
    if (!cJSON_IsArray(series) || n <= 0 || (uint64_t)n_rows * (uint64_t)n > MAX_SERIES_VALUES)
        return fields_fail(e, "series", "invalid_type",
                           "'series' must be a list of rows, at most %u numbers in all",
                           MAX_SERIES_VALUES);
    in->values = mem_zalloc_n((size_t)n_rows * (size_t)n, sizeof(double));
    if (!in->values)
        return fields_fail(e, "series", NULL, "out of memory");
    cJSON_ArrayForEach(row, series)
    {
        if (!cJSON_IsArray(row) || cJSON_GetArraySize(row) != n)
            return fields_fail(e, "series", "invalid_value", "'series' has rows of unlike length");
        cJSON_ArrayForEach(v, row)
        {
            if (!cJSON_IsNumber(v) && !cJSON_IsNull(v))
                return fields_fail(e, "series", "invalid_type",
                                   "'series' has something that is neither a number nor null");
            in->values[in->n_values++] = cJSON_IsNull(v) ? (double)NAN : v->valuedouble;
        }
    }
    *n_columns = (uint32_t)n;
    return 0;
}

static void use_body(struct infer *f, const struct body *b, enum shoal_kind kind)
{
    struct call *c = f->call;
    f->opts = (struct shoal_infer_opts){.size = sizeof(struct shoal_infer_opts),
                                        .kind = kind,
                                        .labels = b->labels,
                                        .dimensions = (uint32_t)b->dimensions,
                                        .max_sentences = (uint32_t)b->max_sentences,
                                        .max_tokens = (uint32_t)b->max_tokens,
                                        .beams = (uint32_t)b->beams,
                                        .raw = b->raw,
                                        .priority = (int32_t)b->priority};
    f->top = (uint32_t)b->top;
    call_set_budget(c, b->latency_budget_ms);
}

/* Reads the body and its texts; NULL: the call is answered. */
static struct infer *read_texts(struct call *c, struct body *b, const struct field *table, size_t n,
                                enum shoal_kind kind, void (*put)(struct infer *f))
{
    struct fields_error e = {{0}, {0}, NULL};
    uint32_t n_inputs = 0;
    int rc = fields_read(table, n, c->json, b, c->lenient, &e);
    const char *name = kind == SHOAL_KIND_RERANK ? "documents" : "input";
    const cJSON *list = kind == SHOAL_KIND_RERANK ? b->documents : b->input;
    if (rc == 0)
        rc = count_inputs(list, name, &n_inputs, &e);
    struct infer *f = rc == 0 ? infer_create(c, n_inputs, put) : NULL;
    if (f) {
        use_body(f, b, kind);
        rc = take_texts(f, list, name, &e);
    }
    if (rc < 0) {
        call_fail_fields(c, &e);
        if (f)
            infer_free(f);
        return NULL;
    }
    return f;
}

/* ---- answers ---- */

static void put_head(struct infer *f, struct json_out *j)
{
    json_out_object(j);
    json_out_key(j, "object");
    json_out_str(j, "list");
    json_out_key(j, "model");
    json_out_str(j, f->model->name);
}

static void put_usage(struct infer *f, struct json_out *j)
{
    json_out_key(j, "usage");
    json_out_object(j);
    json_out_key(j, "prompt_tokens");
    json_out_uint(j, infer_tokens(f));
    json_out_key(j, "total_tokens");
    json_out_uint(j, infer_tokens(f));
    json_out_object_end(j);
    json_out_object_end(j);
    buf_putc(j->b, '\n');
}

static void put_list(struct infer *f)
{
    struct json_out j = json_out_make(&f->call->out);
    put_head(f, &j);
    json_out_key(&j, "data");
    json_out_array(&j);
    for (uint32_t i = 0; i < f->n; i++) {
        const struct shoal_result *r = f->inputs[i].result;
        json_out_object(&j);
        json_out_key(&j, "index");
        json_out_uint(&j, i);
        result_json_answer(&j, r, f->inputs[i].text, f->top);
        if (r->truncated) {
            json_out_key(&j, "truncated");
            json_out_bool(&j, true);
        }
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(f, &j);
}

static void put_base64(struct json_out *j, const float *v, uint32_t n)
{
    size_t bytes = n * sizeof(*v), room = (bytes + 2) / 3 * 4 + 1;
    unsigned char *text = mem_alloc(room);
    if (!text) {
        j->b->rc = SHOAL_ENOMEM;
        return;
    }
    int k = EVP_EncodeBlock(text, (const unsigned char *)v, (int)bytes);
    json_out_strn(j, (const char *)text, (size_t)k);
    mem_free(text);
}

static void put_embeddings(struct infer *f)
{
    struct json_out j = json_out_make(&f->call->out);
    put_head(f, &j);
    json_out_key(&j, "data");
    json_out_array(&j);
    for (uint32_t i = 0; i < f->n; i++) {
        const struct shoal_result *r = f->inputs[i].result;
        json_out_object(&j);
        json_out_key(&j, "object");
        json_out_str(&j, "embedding");
        json_out_key(&j, "index");
        json_out_uint(&j, i);
        if (f->base64) {
            json_out_key(&j, "embedding");
            put_base64(&j, r->vector, r->n_dims);
        } else {
            result_json_answer(&j, r, f->inputs[i].text, 0);
        }
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(f, &j);
}

static void put_ollama_embed(struct infer *f)
{
    struct json_out j = json_out_make(&f->call->out);
    json_out_object(&j);
    json_out_key(&j, "model");
    json_out_str(&j, f->model->name);
    json_out_key(&j, "embeddings");
    json_out_array(&j);
    for (uint32_t i = 0; i < f->n; i++) {
        const struct shoal_result *r = f->inputs[i].result;
        json_out_array(&j);
        for (uint32_t k = 0; k < r->n_dims; k++)
            json_out_float(&j, r->vector[k]);
        json_out_array_end(&j);
    }
    json_out_array_end(&j);
    json_out_key(&j, "total_duration");
    json_out_uint(&j, clock_ns() - f->call->start_ns);
    json_out_key(&j, "load_duration");
    json_out_uint(&j, 0);
    json_out_key(&j, "prompt_eval_count");
    json_out_uint(&j, infer_tokens(f));
    json_out_object_end(&j);
}

static int by_score(const void *a, const void *b)
{
    const struct infer_input *x = *(struct infer_input *const *)a,
                             *y = *(struct infer_input *const *)b;
    double dx = x->result->values[0], dy = y->result->values[0];
    return dx > dy ? -1 : dx < dy ? 1 : x < y ? -1 : 1;
}

static void put_ranking(struct infer *f)
{
    struct infer_input *order[INFER_MAX_INPUTS] = {0};
    struct json_out j = json_out_make(&f->call->out);
    for (uint32_t i = 0; i < f->n; i++)
        order[i] = &f->inputs[i];
    qsort(order, f->n, sizeof(order[0]), by_score);
    put_head(f, &j);
    json_out_key(&j, "results");
    json_out_array(&j);
    for (uint32_t i = 0; i < f->n && (f->top == 0 || i < f->top); i++) {
        json_out_object(&j);
        json_out_key(&j, "index");
        json_out_uint(&j, (uint64_t)(order[i] - f->inputs));
        json_out_key(&j, "relevance_score");
        json_out_num(&j, order[i]->result->values[0]);
        if (f->with_documents) {
            json_out_key(&j, "document");
            json_out_object(&j);
            json_out_key(&j, "text");
            json_out_strn(&j, order[i]->text, order[i]->text_bytes);
            json_out_object_end(&j);
        }
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(f, &j);
}

/* ---- handlers ---- */

static void run_texts(struct call *c, const struct field *table, size_t n, enum shoal_kind kind)
{
    struct body b = {.model = NULL};
    struct infer *f = read_texts(c, &b, table, n, kind, put_list);
    if (f)
        infer_run(f, b.model);
}

void specialist_classify(struct call *c)
{
    run_texts(c, classify_fields, n_classify_fields, SHOAL_KIND_CLASSIFY);
}

void specialist_entities(struct call *c)
{
    run_texts(c, entities_fields, n_entities_fields, SHOAL_KIND_TAG);
}

void specialist_summarize(struct call *c)
{
    run_texts(c, summarize_fields, n_summarize_fields, SHOAL_KIND_SUMMARIZE);
}

void specialist_embeddings(struct call *c)
{
    struct body b = {.encoding_format = "float"};
    struct infer *f =
        read_texts(c, &b, embed_fields, n_embed_fields, SHOAL_KIND_EMBED, put_embeddings);
    if (!f)
        return;
    f->base64 = strcmp(b.encoding_format, "base64") == 0;
    if (!f->base64 && strcmp(b.encoding_format, "float") != 0) {
        call_fail(c, 400, NULL, "encoding_format", "invalid_value",
                  "'encoding_format' must be float or base64");
        infer_free(f);
        return;
    }
    infer_run(f, b.model);
}

void specialist_ollama_embed(struct call *c)
{
    struct body b = {.model = NULL};
    struct infer *f =
        read_texts(c, &b, ollama_fields, COUNT(ollama_fields), SHOAL_KIND_EMBED, put_ollama_embed);
    if (f)
        infer_run(f, b.model);
}

void specialist_rerank(struct call *c)
{
    struct body b = {.model = NULL};
    struct infer *f =
        read_texts(c, &b, rerank_fields, n_rerank_fields, SHOAL_KIND_RERANK, put_ranking);
    if (!f)
        return;
    if (!b.query || !b.query[0]) {
        call_fail(c, 400, NULL, "query", "missing_required_parameter", "'query' is missing");
        infer_free(f);
        return;
    }
    f->opts.text = b.query;
    f->opts.text_bytes = strlen(b.query);
    f->top = (uint32_t)b.top_n;
    f->with_documents = b.return_documents;
    infer_run(f, b.model);
}

void specialist_score(struct call *c)
{
    struct body b = {.model = NULL};
    struct fields_error e = {{0}, {0}, NULL};
    int rc = fields_read(score_fields, n_score_fields, c->json, &b, c->lenient, &e);
    bool rows = b.input && cJSON_IsArray(b.input->child);
    uint32_t n = 1;
    if (rc == 0 && b.series && b.input)
        rc = fields_fail(&e, "series", "invalid_value", "'input' and 'series' exclude each other");
    if (rc == 0 && !b.series && (rows || !b.input))
        rc = count_inputs(b.input, "input", &n, &e);
    struct infer *f = rc == 0 ? infer_create(c, n, put_list) : NULL;
    if (f) {
        const cJSON *row = rows ? b.input->child : b.input;
        use_body(f, &b, SHOAL_KIND_SCORE);
        if (b.series)
            rc = take_series(&f->inputs[0], b.series, &f->opts.n_columns, &e);
        for (uint32_t i = 0; !b.series && i < n && rc == 0; i++, row = row->next)
            rc = take_row(&f->inputs[i], row, &e);
    }
    if (rc < 0) {
        call_fail_fields(c, &e);
        if (f)
            infer_free(f);
    } else if (f) {
        infer_run(f, b.model);
    }
}
