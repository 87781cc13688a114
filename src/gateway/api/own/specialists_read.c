/* specialists_read.c - bodies of requests to specialists.
 *
 * "input" is a text or a list of texts everywhere; of classifications and embeddings, an image is
 * {"image": "..."}. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "gateway/api/image_input.h"
#include "gateway/api/own/specialists.h"

#define MAX_SERIES_VALUES (1u << 20)

struct body {
    const char *model, *labels, *query, *encoding_format, *prompt_name, *stream;
    const char *truncation_direction;
    const cJSON *input, *prompt, *documents, *texts, *series, *truncate, *parameters;
    int64_t top, top_n, dimensions, max_sentences, max_tokens, beams, priority;
    bool raw, return_documents, normalize;
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
        {"priority", FIELD_INT, AT(priority), -100, 0, "below that of the key", NULL},             \
        {"latency_budget_ms",                                                                      \
         FIELD_NUM,                                                                                \
         AT(latency_budget_ms),                                                                    \
         1,                                                                                        \
         86400000,                                                                                 \
         "refuse or stop a request that takes longer",                                             \
         NULL},                                                                                    \
    {                                                                                              \
        "user", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL                              \
    }
#define TRUNCATE                                                                                   \
    {                                                                                              \
        "truncate", FIELD_VALUE, AT(truncate), 0, 0,                                               \
            "false: refuse a text that is too long for the model; default: it is truncated, and "  \
            "marked as truncated",                                                                 \
            "{\"type\":\"boolean\"}"                                                               \
    }
#define DIMENSIONS                                                                                 \
    {                                                                                              \
        "dimensions", FIELD_INT, AT(dimensions), 1, 65536,                                         \
            "keep only the first N dimensions, scaled to length 1", NULL                           \
    }
#define LABELS                                                                                     \
    {                                                                                              \
        "labels", FIELD_STR, AT(labels), 0, 0, "a label set of the model", NULL                    \
    }

#define IMAGES "{\"type\":\"object\",\"properties\":{\"image\":{\"type\":\"string\"}}}"
#define SEEN                                                                                       \
    {                                                                                              \
        "input", FIELD_VALUE, AT(input), 0, 0,                                                     \
            "a text or {\"image\": a data URL or base64}, or a list of them",                      \
            "{\"oneOf\":[{\"type\":\"string\"}," IMAGES                                            \
            ",{\"type\":\"array\",\"items\":{\"oneOf\":[{\"type\":\"string\"}," IMAGES "]}}]}"     \
    }

const struct field specialists_embed_fields[] = {
    SEEN,
    COMMON,
    TRUNCATE,
    {"encoding_format", FIELD_STR, AT(encoding_format), 0, 0, "float or base64", NULL},
    {"prompt_name", FIELD_STR, AT(prompt_name), 0, 0,
     "a prompt of the model; empty: none; default: the model's own", NULL},
    DIMENSIONS};
const struct field specialists_classify_fields[] = {
    SEEN,
    COMMON,
    TRUNCATE,
    LABELS,
    {"top", FIELD_INT, AT(top), 1, 10000, "number of labels to return; default: all", NULL}};
const struct field specialists_entities_fields[] = {INPUT, COMMON, TRUNCATE, LABELS};
const struct field specialists_rerank_fields[] = {
    {"query", FIELD_STR, AT(query), 0, 0, "the search query", NULL},
    {"documents", FIELD_VALUE, AT(documents), 0, 0, "a list of texts, or of {\"text\": ...}",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    {"top_n", FIELD_INT, AT(top_n), 1, REQUEST_MAX_INPUTS,
     "number of documents to return; default: all", NULL},
    {"return_documents", FIELD_BOOL, AT(return_documents), 0, 0,
     "include the texts of the documents", NULL},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "logits instead of probabilities", NULL},
    /* Cohere's and Jina's */
    {"max_chunks_per_doc", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"max_tokens_per_doc", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"rank_fields", FIELD_UNBUILT, 0, 0, 0, NULL, "text"},
    {"priority_class", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    /* Text Embeddings Inference's: with `texts` the answer has its form */
    {"texts", FIELD_VALUE, AT(texts), 0, 0, "instead of documents: the answer is a list of scores",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    {"raw_scores", FIELD_BOOL, AT(raw), 0, 0, "same as raw", NULL},
    {"return_text", FIELD_BOOL, AT(return_documents), 0, 0, "same as return_documents", NULL},
    {"truncation_direction", FIELD_STR, AT(truncation_direction), 0, 0, "only right", NULL},
    TRUNCATE,
    COMMON};
const struct field specialists_summarize_fields[] = {
    INPUT,
    COMMON,
    TRUNCATE,
    {"max_sentences", FIELD_INT, AT(max_sentences), 1, 1000,
     "extractive models: maximum number of sentences", NULL},
    {"max_tokens", FIELD_INT, AT(max_tokens), 1, 65536,
     "generative models: maximum number of tokens", NULL},
    {"beams", FIELD_INT, AT(beams), 1, 16, "number of beams; 1: greedy", NULL}};
const struct field specialists_score_fields[] = {
    {"input", FIELD_VALUE, AT(input), 0, 0, "a row of numbers (null: missing), or a list of rows",
     "{\"type\":\"array\"}"},
    {"series", FIELD_VALUE, AT(series), 0, 0,
     "instead of input: rows in order of time, for models that keep a state",
     "{\"type\":\"array\",\"items\":{\"type\":\"array\"}}"},
    {"stream", FIELD_STR, AT(stream), 0, 0,
     "a name of your choice: the rows continue those sent before under this name", NULL},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "scores before the final transformation", NULL},
    COMMON};
const struct field specialists_ollama_embed_fields[] = {
    INPUT,
    {"prompt", FIELD_VALUE, AT(prompt), 0, 0, "same as input", "{}"},
    COMMON,
    TRUNCATE,
    DIMENSIONS,
    {"options", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"keep_alive", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL}};
const struct field specialists_ollama_embeddings_fields[] = {
    {"prompt", FIELD_VALUE, AT(input), 0, 0, "a text", "{\"type\":\"string\"}"},
    COMMON,
    {"options", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"keep_alive", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL}};
#define INPUTS                                                                                     \
    {                                                                                              \
        "inputs", FIELD_VALUE, AT(input), 0, 0, "a text, or a list of them", TEXTS                 \
    }
#define TEI                                                                                        \
    INPUTS, COMMON, TRUNCATE,                                                                      \
        {"truncation_direction", FIELD_STR, AT(truncation_direction), 0, 0, "only right", NULL},   \
    {                                                                                              \
        "parameters", FIELD_VALUE, AT(parameters), 0, 0, "top_k: number of labels to return",      \
            "{\"type\":\"object\"}"                                                                \
    }
const struct field specialists_tei_embed_fields[] = {
    TEI,
    {"normalize", FIELD_BOOL, AT(normalize), 0, 0, "only true", NULL},
    {"prompt_name", FIELD_STR, AT(prompt_name), 0, 0, "a prompt of the model", NULL},
    DIMENSIONS};
const struct field specialists_tei_predict_fields[] = {
    TEI, LABELS, {"raw_scores", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
const struct field specialists_tei_similarity_fields[] = {
    {"inputs", FIELD_VALUE, AT(input), 0, 0,
     "{source_sentence: a text, sentences: a list of texts}", "{\"type\":\"object\"}"},
    COMMON,
    TRUNCATE,
    {"truncation_direction", FIELD_STR, AT(truncation_direction), 0, 0, "only right", NULL},
    {"parameters", FIELD_VALUE, AT(parameters), 0, 0, "prompt_name, truncate", NULL},
    {"prompt_name", FIELD_STR, AT(prompt_name), 0, 0, "a prompt of the model", NULL}};
const struct field specialists_llamacpp_embedding_fields[] = {
    {"content", FIELD_VALUE, AT(input), 0, 0, "a text, or a list of them", TEXTS},
    INPUT,
    COMMON,
    {"embd_normalize", FIELD_UNBUILT, 0, 0, 0, NULL, "2"}};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
const size_t specialists_n_embed_fields = COUNT(specialists_embed_fields),
             specialists_n_classify_fields = COUNT(specialists_classify_fields),
             specialists_n_entities_fields = COUNT(specialists_entities_fields),
             specialists_n_rerank_fields = COUNT(specialists_rerank_fields),
             specialists_n_summarize_fields = COUNT(specialists_summarize_fields),
             specialists_n_score_fields = COUNT(specialists_score_fields),
             specialists_n_ollama_embed_fields = COUNT(specialists_ollama_embed_fields),
             specialists_n_ollama_embeddings_fields = COUNT(specialists_ollama_embeddings_fields),
             specialists_n_tei_embed_fields = COUNT(specialists_tei_embed_fields),
             specialists_n_tei_predict_fields = COUNT(specialists_tei_predict_fields),
             specialists_n_tei_similarity_fields = COUNT(specialists_tei_similarity_fields),
             specialists_n_llamacpp_embedding_fields = COUNT(specialists_llamacpp_embedding_fields);

/* ---- inputs ---- */

static int count_inputs(const cJSON *v, const char *name, uint32_t *n, struct fields_error *e)
{
    int k = cJSON_IsArray(v) ? cJSON_GetArraySize(v) : 1;
    if (!v)
        return fields_fail(e, name, "missing_required_parameter", "'%s' is missing", name);
    if (k == 0 || k > (int)REQUEST_MAX_INPUTS)
        return fields_fail(e, name, "invalid_value", "'%s' must hold 1 to %u items", name,
                           REQUEST_MAX_INPUTS);
    *n = (uint32_t)k;
    return 0;
}

static int take_text(struct request *r, struct request_input *in, const cJSON *v, const char *name,
                     struct fields_error *e)
{
    if (image_input_is(v))
        return image_input_take(r, in, v, name, e);
    const cJSON *text = cJSON_IsObject(v) ? cJSON_GetObjectItemCaseSensitive(v, "text") : v;
    if (!cJSON_IsString(text))
        return fields_fail(e, name, "invalid_type", "'%s' must be a text or a list of texts", name);
    /* an empty text has an embedding, as long as the model puts tokens around it */
    if (text->valuestring[0] == '\0' && r->infer.kind != SHOAL_KIND_EMBED)
        return fields_fail(e, name, "invalid_value", "'%s' has an empty text", name);
    in->text_bytes = strlen(text->valuestring);
    in->text = request_copy(r, text->valuestring, in->text_bytes);
    r->input_bytes += in->text_bytes;
    return 0;
}

/* Room for n inputs; NULL: see request_rc. */
static struct request_input *make_inputs(struct request *r, uint32_t n)
{
    struct request_input *list = arena_zalloc_n(&r->arena, n, sizeof(*list));
    r->infer.inputs = list;
    r->infer.n_inputs = list ? n : 0;
    return list;
}

static int take_texts(struct request *r, const cJSON *v, const char *name, struct fields_error *e)
{
    const cJSON *one = cJSON_IsArray(v) ? v->child : v;
    uint32_t n = 0;
    int rc = count_inputs(v, name, &n, e);
    struct request_input *list = rc == 0 ? make_inputs(r, n) : NULL;
    for (uint32_t i = 0; list && i < n && rc == 0; i++, one = one->next)
        rc = take_text(r, &list[i], one, name, e);
    return rc;
}

static int take_ids(struct request *r, struct request_input *in, const cJSON *v, const char *name,
                    struct fields_error *e)
{
    size_t n = (size_t)cJSON_GetArraySize(v);
    int32_t *ids = arena_zalloc_n(&r->arena, n, sizeof(*ids));
    const cJSON *one;
    if (!cJSON_IsArray(v) || n == 0)
        return fields_fail(e, name, "invalid_type", "'%s' must hold lists of token ids only", name);
    if (!ids)
        return 0; /* request_rc tells */
    cJSON_ArrayForEach(one, v)
    {
        if (!cJSON_IsNumber(one) || !(one->valuedouble >= 0 && one->valuedouble <= INT32_MAX) ||
            one->valuedouble != floor(one->valuedouble))
            return fields_fail(e, name, "invalid_value",
                               "'%s' contains a value that is not a token id", name);
        ids[in->n_ids++] = (int32_t)one->valuedouble;
    }
    in->ids = ids;
    r->input_bytes += n * sizeof(*ids);
    return 0;
}

/* A text, a list of token ids, or a list of one of these. */
static int take_texts_or_ids(struct request *r, const cJSON *v, const char *name,
                             struct fields_error *e)
{
    const cJSON *first = cJSON_IsArray(v) ? v->child : NULL;
    uint32_t n = 1;
    if (!cJSON_IsNumber(first) && !cJSON_IsArray(first))
        return take_texts(r, v, name, e);
    bool several = cJSON_IsArray(first);
    int rc = several ? count_inputs(v, name, &n, e) : 0;
    struct request_input *list = rc == 0 ? make_inputs(r, n) : NULL;
    const cJSON *one = several ? first : v;
    for (uint32_t i = 0; list && i < n && rc == 0; i++, one = one->next)
        rc = take_ids(r, &list[i], one, name, e);
    return rc;
}

/* {"source_sentence": ..., "sentences": [...]}: the first input is the one to compare with. */
static int take_similarity(struct request *r, const cJSON *v, struct fields_error *e)
{
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(v, "source_sentence"),
                *list = cJSON_GetObjectItemCaseSensitive(v, "sentences"), *one;
    uint32_t n = 0;
    if (!cJSON_IsString(source) || !cJSON_IsArray(list))
        return fields_fail(e, "inputs", "invalid_type",
                           "'inputs' must be {\"source_sentence\": a text, \"sentences\": texts}");
    int rc = count_inputs(list, "inputs", &n, e);
    if (rc == 0 && n + 1 > REQUEST_MAX_INPUTS)
        rc = fields_fail(e, "inputs", "invalid_value", "'inputs' holds more than %u sentences",
                         REQUEST_MAX_INPUTS - 1);
    struct request_input *in = rc == 0 ? make_inputs(r, n + 1) : NULL;
    if (in)
        rc = take_text(r, in++, source, "inputs", e);
    for (one = list->child; in && one && rc == 0; one = one->next)
        rc = take_text(r, in++, one, "inputs", e);
    return rc;
}

static int take_number(double *out, const cJSON *v, const char *name, struct fields_error *e)
{
    if (!cJSON_IsNumber(v) && !cJSON_IsNull(v))
        return fields_fail(e, name, "invalid_type",
                           "'%s' contains a value that is neither a number nor null", name);
    if (cJSON_IsNumber(v) && !isfinite(v->valuedouble)) /* 1e999: the reader makes it infinite */
        return fields_fail(e, name, "invalid_value",
                           "'%s' contains a number that is too large for a double (1.8e308); "
                           "send null for a missing value",
                           name);
    *out = cJSON_IsNull(v) ? (double)NAN : v->valuedouble;
    return 0;
}

static int take_row(struct request *r, struct request_input *in, const cJSON *row,
                    struct fields_error *e)
{
    const cJSON *v;
    int n = cJSON_GetArraySize(row);
    if (!cJSON_IsArray(row) || n == 0 || (uint32_t)n > SPECIALIST_MAX_VALUES)
        return fields_fail(e, "input", "invalid_type",
                           "'input' must be a row of numbers, or a "
                           "list of rows");
    double *values = arena_zalloc_n(&r->arena, (size_t)n, sizeof(double));
    if (!values)
        return 0; /* request_rc tells */
    in->values = values;
    cJSON_ArrayForEach(v, row)
    {
        int rc = take_number(&values[in->n_values++], v, "input", e);
        if (rc < 0)
            return rc;
    }
    r->input_bytes += (size_t)n * sizeof(double);
    return 0;
}

static int take_rows(struct request *r, const cJSON *input, struct fields_error *e)
{
    bool rows = input && cJSON_IsArray(input->child);
    const cJSON *row = rows ? input->child : input;
    uint32_t n = 1;
    int rc = rows || !input ? count_inputs(input, "input", &n, e) : 0;
    struct request_input *list = rc == 0 ? make_inputs(r, n) : NULL;
    for (uint32_t i = 0; list && i < n && rc == 0; i++, row = row->next)
        rc = take_row(r, &list[i], row, e);
    return rc;
}

/* All rows of a series as one input. */
static int take_series(struct request *r, const cJSON *series, const char *name,
                       struct fields_error *e)
{
    const cJSON *row, *v;
    if (!series)
        return fields_fail(e, name, "missing_required_parameter", "'%s' is missing", name);
    int n_rows = cJSON_GetArraySize(series), n = n_rows > 0 ? cJSON_GetArraySize(series->child) : 0;
    if (!cJSON_IsArray(series) || n <= 0 || (uint64_t)n_rows * (uint64_t)n > MAX_SERIES_VALUES)
        return fields_fail(e, name, "invalid_type",
                           "'%s' must be a list of rows, at most %u numbers in all", name,
                           MAX_SERIES_VALUES);
    struct request_input *in = make_inputs(r, 1);
    double *values = arena_zalloc_n(&r->arena, (size_t)n_rows * (size_t)n, sizeof(double));
    if (!in || !values)
        return 0; /* request_rc tells */
    in->values = values;
    cJSON_ArrayForEach(row, series)
    {
        if (!cJSON_IsArray(row) || cJSON_GetArraySize(row) != n)
            return fields_fail(e, name, "invalid_value", "the rows of '%s' differ in length", name);
        cJSON_ArrayForEach(v, row)
        {
            int rc = take_number(&values[in->n_values++], v, name, e);
            if (rc < 0)
                return rc;
        }
    }
    r->input_bytes += in->n_values * sizeof(double);
    r->infer.n_columns = (uint32_t)n;
    return 0;
}

/* A row or a list of rows.  Those of a stream are one input, so that they keep their order. */
static int take_score(struct request *r, const struct body *b, struct fields_error *e)
{
    if (b->series)
        return take_series(r, b->series, "series", e);
    if (!b->stream || !b->input)
        return take_rows(r, b->input, e);
    if (cJSON_IsArray(b->input->child))
        return take_series(r, b->input, "input", e);
    int rc = take_rows(r, b->input, e);
    r->infer.n_columns = rc == 0 && r->infer.n_inputs ? r->infer.inputs[0].n_values : 0;
    return rc;
}

/* ---- bodies ---- */

static const char *copy(struct request *r, const char *text)
{
    return text ? request_copy(r, text, strlen(text)) : NULL;
}

static void use_body(struct request *r, const struct body *b)
{
    struct request_infer *q = &r->infer;
    r->model = copy(r, b->model);
    r->priority = (int32_t)b->priority;
    request_set_budget(r, b->latency_budget_ms);
    q->labels = copy(r, b->labels);
    q->query = copy(r, b->query);
    q->prompt = copy(r, b->prompt_name);
    q->dimensions = (uint32_t)b->dimensions;
    q->max_sentences = (uint32_t)b->max_sentences;
    q->max_tokens = (uint32_t)b->max_tokens;
    q->beams = (uint32_t)b->beams;
    q->raw = b->raw;
    q->stream = copy(r, b->stream);
}

static int check_format(const struct body *b, bool *base64, struct fields_error *e)
{
    *base64 = b->encoding_format && strcmp(b->encoding_format, "base64") == 0;
    if (!b->encoding_format || *base64 || strcmp(b->encoding_format, "float") == 0)
        return 0;
    return fields_fail(e, "encoding_format", "invalid_value",
                       "'encoding_format' must be float or base64");
}

static int check_query(const struct body *b, struct fields_error *e)
{
    if (b->query && b->query[0])
        return 0;
    return fields_fail(e, "query", "missing_required_parameter", "'query' is missing");
}

/* true, false, or how Cohere's clients say it: NONE, START, END.  False: it is none of these. */
static bool read_truncate(const cJSON *v, bool *whole)
{
    const char *text = cJSON_GetStringValue(v);
    *whole = cJSON_IsFalse(v) || (text && strcasecmp(text, "none") == 0);
    return !v || cJSON_IsBool(v) || *whole || (text && strcasecmp(text, "end") == 0);
}

/* Options of Text Embeddings Inference for which only one value is supported. */
static int check_tei(struct request *r, struct specialist_shape *shape, const struct body *b,
                     struct fields_error *e)
{
    const cJSON *top = cJSON_GetObjectItemCaseSensitive(b->parameters, "top_k");
    if (!read_truncate(b->truncate, &r->infer.whole))
        return fields_fail(e, "truncate", "invalid_value", "'truncate' must be true or false");
    if (b->truncation_direction && strcasecmp(b->truncation_direction, "right") != 0)
        return fields_fail(
            e, "truncation_direction", "unsupported_parameter",
            "'truncation_direction' must be right: texts are truncated at their end");
    if (!b->normalize)
        return fields_fail(e, "normalize", "unsupported_parameter",
                           "'normalize' must be true: embeddings have length 1");
    if (b->parameters && !cJSON_IsObject(b->parameters))
        return fields_fail(e, "parameters", "invalid_type", "'parameters' must be an object");
    if (cJSON_IsNumber(top) && top->valuedouble >= 1 && top->valuedouble <= 10000)
        shape->top = (uint32_t)top->valuedouble;
    return 0;
}

static int take_inputs(struct request *r, enum specialist_body body, const struct body *b,
                       struct fields_error *e)
{
    switch (body) {
    case SPECIALIST_SCORE:
        return take_score(r, b, e);
    case SPECIALIST_RERANK:
        return take_texts(r, b->texts ? b->texts : b->documents, b->texts ? "texts" : "documents",
                          e);
    case SPECIALIST_EMBED:
    case SPECIALIST_LLAMACPP_EMBEDDING:
        return take_texts_or_ids(r, b->input, "input", e);
    case SPECIALIST_TEI_EMBED:
        return take_texts_or_ids(r, b->input, "inputs", e);
    case SPECIALIST_TEI_SIMILARITY:
        return take_similarity(r, b->input, e);
    case SPECIALIST_TEI_PREDICT:
        return take_texts(r, b->input, "inputs", e);
    case SPECIALIST_OLLAMA_EMBED:
        return take_texts(r, b->input ? b->input : b->prompt, "input", e);
    case SPECIALIST_OLLAMA_EMBEDDINGS:
        return take_texts(r, b->input, "prompt", e);
    default:
        return take_texts(r, b->input, "input", e);
    }
}

int specialists_read(struct request *r, struct specialist_shape *shape, enum specialist_body body,
                     const cJSON *json, bool lenient, struct fields_error *e)
{
    static const struct {
        enum shoal_kind kind;
        const struct field *fields;
        size_t n;
    } bodies[] = {
        [SPECIALIST_EMBED] = {SHOAL_KIND_EMBED, specialists_embed_fields,
                              COUNT(specialists_embed_fields)},
        [SPECIALIST_OLLAMA_EMBED] = {SHOAL_KIND_EMBED, specialists_ollama_embed_fields,
                                     COUNT(specialists_ollama_embed_fields)},
        [SPECIALIST_OLLAMA_EMBEDDINGS] = {SHOAL_KIND_EMBED, specialists_ollama_embeddings_fields,
                                          COUNT(specialists_ollama_embeddings_fields)},
        [SPECIALIST_LLAMACPP_EMBEDDING] = {SHOAL_KIND_EMBED, specialists_llamacpp_embedding_fields,
                                           COUNT(specialists_llamacpp_embedding_fields)},
        [SPECIALIST_TEI_EMBED] = {SHOAL_KIND_EMBED, specialists_tei_embed_fields,
                                  COUNT(specialists_tei_embed_fields)},
        [SPECIALIST_TEI_SIMILARITY] = {SHOAL_KIND_EMBED, specialists_tei_similarity_fields,
                                       COUNT(specialists_tei_similarity_fields)},
        [SPECIALIST_TEI_PREDICT] = {SHOAL_KIND_CLASSIFY, specialists_tei_predict_fields,
                                    COUNT(specialists_tei_predict_fields)},
        [SPECIALIST_CLASSIFY] = {SHOAL_KIND_CLASSIFY, specialists_classify_fields,
                                 COUNT(specialists_classify_fields)},
        [SPECIALIST_ENTITIES] = {SHOAL_KIND_TAG, specialists_entities_fields,
                                 COUNT(specialists_entities_fields)},
        [SPECIALIST_RERANK] = {SHOAL_KIND_RERANK, specialists_rerank_fields,
                               COUNT(specialists_rerank_fields)},
        [SPECIALIST_SUMMARIZE] = {SHOAL_KIND_SUMMARIZE, specialists_summarize_fields,
                                  COUNT(specialists_summarize_fields)},
        [SPECIALIST_SCORE] = {SHOAL_KIND_SCORE, specialists_score_fields,
                              COUNT(specialists_score_fields)}};
    struct body b = {.normalize = true};
    int rc = fields_read(bodies[body].fields, bodies[body].n, json, &b, lenient, e);
    if (rc < 0)
        return rc;
    r->kind = REQUEST_INFER;
    r->infer.kind = bodies[body].kind;
    *shape = (struct specialist_shape){.body = body};
    if (body == SPECIALIST_SCORE && b.series && b.input)
        return fields_fail(e, "series", "invalid_value",
                           "use either 'input' or 'series', not both");
    use_body(r, &b);
    rc = take_inputs(r, body, &b, e);
    if (rc == 0)
        rc = check_tei(r, shape, &b, e);
    if (rc == 0 && body == SPECIALIST_RERANK)
        rc = check_query(&b, e);
    if (rc == 0 && body == SPECIALIST_EMBED)
        rc = check_format(&b, &shape->base64, e);
    if (b.top_n > 0 || b.top > 0)
        shape->top = (uint32_t)(body == SPECIALIST_RERANK ? b.top_n : b.top);
    shape->with_documents = b.return_documents;
    shape->tei = b.texts != NULL;
    shape->single =
        !cJSON_IsArray(b.input) && !b.parameters; /* Hugging Face's client expects lists */
    if (rc == 0 && request_rc(r) < 0)
        rc = fields_fail(e, "input", NULL, "out of memory");
    return rc;
}
