/* grpc_codec.c - see grpc_codec.h. */
#include "gateway/grpc_codec.h"

#include <string.h>

#include <shoal/v1/shoal.pb-c.h>

#include "base/mem.h"
#include "wire/json_out.h"

/* protobuf-c allocates through us, so that tests can make it fail. */
static void *pb_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return mem_alloc(n);
}

static void pb_free(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

static const ProtobufCAllocator heap = {pb_alloc, pb_free, NULL};
#define HEAP ((ProtobufCAllocator *)(uintptr_t)&heap) /* the library only reads it */

static int put_message(struct buf *out, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = mem_alloc(n + 1);
    if (!p)
        return SHOAL_ENOMEM;
    protobuf_c_message_pack(m, p);
    buf_put(out, p, n);
    mem_free(p);
    return out->rc;
}

/* ---- reading answers ---- */

static char *text_of(const cJSON *o, const char *name)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return (char *)(uintptr_t)(s ? s : "");
}

static double number_of(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static const cJSON *list_of(const cJSON *o, const char *name, size_t *n)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    *n = cJSON_IsArray(v) ? (size_t)cJSON_GetArraySize(v) : 0;
    return *n ? v->child : NULL;
}

/* n structs of size bytes, and pointers to them, in one block (mem_free the pointers). */
static void **make_list(size_t n, size_t size)
{
    void **list = mem_zalloc(n * (sizeof(void *) + size) + 1);
    for (size_t i = 0; list && i < n; i++)
        list[i] = (char *)(list + n) + i * size;
    return list;
}

/* ---- generate ---- */

static void put_str(struct json_out *j, const char *key, const char *value)
{
    if (!value[0])
        return;
    json_out_key(j, key);
    json_out_str(j, value);
}

static void put_uint(struct json_out *j, const char *key, uint64_t value)
{
    if (!value)
        return;
    json_out_key(j, key);
    json_out_uint(j, value);
}

static void put_generate(struct json_out *j, const Shoal__V1__GenerateRequest *r, bool stream)
{
    json_out_object(j);
    put_str(j, "model", r->model);
    if (r->n_messages > 0) {
        json_out_key(j, "messages");
        json_out_array(j);
        for (size_t i = 0; i < r->n_messages; i++) {
            json_out_object(j);
            json_out_key(j, "role");
            json_out_str(j, r->messages[i]->role);
            json_out_key(j, "content");
            json_out_str(j, r->messages[i]->content);
            json_out_object_end(j);
        }
        json_out_array_end(j);
    } else {
        json_out_key(j, "prompt");
        json_out_str(j, r->prompt);
        if (r->max_tokens == 0) /* the interface's default would be 16 */
            put_uint(j, "max_tokens", 1 << 24);
    }
    put_uint(j, "max_tokens", r->max_tokens);
    put_uint(j, "top_k", r->top_k);
    if (r->set_temperature_case) {
        json_out_key(j, "temperature");
        json_out_num(j, r->temperature);
    }
    if (r->set_top_p_case) {
        json_out_key(j, "top_p");
        json_out_num(j, r->top_p);
    }
    if (r->set_seed_case) {
        json_out_key(j, "seed");
        json_out_int(j, r->seed);
    }
    if (r->n_stop > 0) {
        json_out_key(j, "stop");
        json_out_array(j);
        for (size_t i = 0; i < r->n_stop; i++)
            json_out_str(j, r->stop[i]);
        json_out_array_end(j);
    }
    if (r->priority) {
        json_out_key(j, "priority");
        json_out_int(j, r->priority);
    }
    if (stream) {
        json_out_key(j, "stream");
        json_out_bool(j, true);
        json_out_key(j, "stream_options");
        json_out_object(j);
        json_out_key(j, "include_usage");
        json_out_bool(j, true);
        json_out_object_end(j);
    }
    json_out_object_end(j);
}

static int generate_json(struct buf *out, const char **path, const uint8_t *p, size_t n,
                         bool stream)
{
    Shoal__V1__GenerateRequest *r = shoal__v1__generate_request__unpack(HEAP, n, p);
    if (!r)
        return SHOAL_EFORMAT;
    struct json_out j = json_out_make(out);
    *path = r->n_messages > 0 ? "/v1/chat/completions" : "/v1/completions";
    put_generate(&j, r, stream);
    shoal__v1__generate_request__free_unpacked(r, HEAP);
    return out->rc;
}

static int generate_whole(struct buf *out, const char **path, const uint8_t *p, size_t n)
{
    return generate_json(out, path, p, n, false);
}

static int generate_stream(struct buf *out, const char **path, const uint8_t *p, size_t n)
{
    return generate_json(out, path, p, n, true);
}

static bool read_usage(const cJSON *answer, Shoal__V1__Usage *u)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(answer, "usage");
    if (!cJSON_IsObject(v))
        return false;
    u->prompt_tokens = (uint32_t)number_of(v, "prompt_tokens");
    u->completion_tokens = (uint32_t)number_of(v, "completion_tokens");
    u->cached_tokens = (uint32_t)number_of(
        cJSON_GetObjectItemCaseSensitive(v, "prompt_tokens_details"), "cached_tokens");
    return true;
}

static int generate_response(struct buf *out, const cJSON *answer)
{
    Shoal__V1__GenerateResponse m = SHOAL__V1__GENERATE_RESPONSE__INIT;
    Shoal__V1__Usage usage = SHOAL__V1__USAGE__INIT;
    size_t n;
    const cJSON *choice = list_of(answer, "choices", &n);
    const cJSON *message = cJSON_GetObjectItemCaseSensitive(choice, "message");
    m.model = text_of(answer, "model");
    m.text = message ? text_of(message, "content") : text_of(choice, "text");
    m.finish_reason = text_of(choice, "finish_reason");
    if (read_usage(answer, &usage))
        m.usage = &usage;
    return put_message(out, &m.base);
}

static int generate_event(struct buf *out, const cJSON *answer)
{
    Shoal__V1__GenerateEvent m = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__Usage usage = SHOAL__V1__USAGE__INIT;
    size_t n;
    const cJSON *choice = list_of(answer, "choices", &n);
    const cJSON *delta = cJSON_GetObjectItemCaseSensitive(choice, "delta");
    m.text = delta ? text_of(delta, "content") : text_of(choice, "text");
    m.finish_reason = text_of(choice, "finish_reason");
    if (read_usage(answer, &usage))
        m.usage = &usage;
    if (!m.text[0] && !m.finish_reason[0] && !m.usage)
        return 1;
    return put_message(out, &m.base);
}

/* ---- specialists ---- */

static void put_texts(struct json_out *j, size_t n, char **texts)
{
    json_out_key(j, "input");
    json_out_array(j);
    for (size_t i = 0; i < n; i++)
        json_out_str(j, texts[i]);
    json_out_array_end(j);
}

static int classify_json(struct buf *out, const char **path, const uint8_t *p, size_t n)
{
    Shoal__V1__ClassifyRequest *r = shoal__v1__classify_request__unpack(HEAP, n, p);
    if (!r)
        return SHOAL_EFORMAT;
    struct json_out j = json_out_make(out);
    *path = "/v1/classify";
    json_out_object(&j);
    put_str(&j, "model", r->model);
    put_texts(&j, r->n_input, r->input);
    put_str(&j, "labels", r->labels);
    put_uint(&j, "top", r->top);
    json_out_object_end(&j);
    shoal__v1__classify_request__free_unpacked(r, HEAP);
    return out->rc;
}

static int fill_class(Shoal__V1__Classification *c, const cJSON *v)
{
    const cJSON *one = list_of(v, "labels", &c->n_labels);
    c->label = text_of(v, "label");
    c->confidence = (float)number_of(v, "confidence");
    c->labels = (Shoal__V1__Label **)make_list(c->n_labels, sizeof(Shoal__V1__Label));
    if (!c->labels)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < c->n_labels; i++, one = one->next) {
        shoal__v1__label__init(c->labels[i]);
        c->labels[i]->label = text_of(one, "label");
        c->labels[i]->score = (float)number_of(one, "score");
    }
    return 0;
}

static int classify_message(struct buf *out, const cJSON *answer)
{
    Shoal__V1__ClassifyResponse m = SHOAL__V1__CLASSIFY_RESPONSE__INIT;
    const cJSON *one = list_of(answer, "data", &m.n_data);
    int rc = 0;
    m.model = text_of(answer, "model");
    m.data = (Shoal__V1__Classification **)make_list(m.n_data, sizeof(Shoal__V1__Classification));
    if (!m.data)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < m.n_data; i++, one = one->next) {
        shoal__v1__classification__init(m.data[i]);
        if (rc == 0)
            rc = fill_class(m.data[i], one);
    }
    if (rc == 0)
        rc = put_message(out, &m.base);
    for (size_t i = 0; i < m.n_data; i++)
        mem_free(m.data[i]->labels);
    mem_free(m.data);
    return rc;
}

static int tag_json(struct buf *out, const char **path, const uint8_t *p, size_t n)
{
    Shoal__V1__TagRequest *r = shoal__v1__tag_request__unpack(HEAP, n, p);
    if (!r)
        return SHOAL_EFORMAT;
    struct json_out j = json_out_make(out);
    *path = "/v1/entities";
    json_out_object(&j);
    put_str(&j, "model", r->model);
    put_texts(&j, r->n_input, r->input);
    put_str(&j, "labels", r->labels);
    json_out_object_end(&j);
    shoal__v1__tag_request__free_unpacked(r, HEAP);
    return out->rc;
}

static int fill_tags(Shoal__V1__Tags *t, const cJSON *v)
{
    const cJSON *one = list_of(v, "spans", &t->n_spans);
    t->spans = (Shoal__V1__Span **)make_list(t->n_spans, sizeof(Shoal__V1__Span));
    if (!t->spans)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < t->n_spans; i++, one = one->next) {
        shoal__v1__span__init(t->spans[i]);
        t->spans[i]->label = text_of(one, "label");
        t->spans[i]->text = text_of(one, "text");
        t->spans[i]->start = (uint32_t)number_of(one, "start");
        t->spans[i]->end = (uint32_t)number_of(one, "end");
        t->spans[i]->score = (float)number_of(one, "score");
    }
    return 0;
}

static int tag_message(struct buf *out, const cJSON *answer)
{
    Shoal__V1__TagResponse m = SHOAL__V1__TAG_RESPONSE__INIT;
    const cJSON *one = list_of(answer, "data", &m.n_data);
    int rc = 0;
    m.model = text_of(answer, "model");
    m.data = (Shoal__V1__Tags **)make_list(m.n_data, sizeof(Shoal__V1__Tags));
    if (!m.data)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < m.n_data; i++, one = one->next) {
        shoal__v1__tags__init(m.data[i]);
        if (rc == 0)
            rc = fill_tags(m.data[i], one);
    }
    if (rc == 0)
        rc = put_message(out, &m.base);
    for (size_t i = 0; i < m.n_data; i++)
        mem_free(m.data[i]->spans);
    mem_free(m.data);
    return rc;
}

static int embed_json(struct buf *out, const char **path, const uint8_t *p, size_t n)
{
    Shoal__V1__EmbedRequest *r = shoal__v1__embed_request__unpack(HEAP, n, p);
    if (!r)
        return SHOAL_EFORMAT;
    struct json_out j = json_out_make(out);
    *path = "/v1/embeddings";
    json_out_object(&j);
    put_str(&j, "model", r->model);
    put_texts(&j, r->n_input, r->input);
    put_uint(&j, "dimensions", r->dimensions);
    json_out_object_end(&j);
    shoal__v1__embed_request__free_unpacked(r, HEAP);
    return out->rc;
}

static int embed_message(struct buf *out, const cJSON *answer)
{
    Shoal__V1__EmbedResponse m = SHOAL__V1__EMBED_RESPONSE__INIT;
    const cJSON *one = list_of(answer, "data", &m.n_data);
    int rc = 0;
    m.model = text_of(answer, "model");
    m.data = (Shoal__V1__Vector **)make_list(m.n_data, sizeof(Shoal__V1__Vector));
    if (!m.data)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < m.n_data; i++, one = one->next) {
        Shoal__V1__Vector *v = m.data[i];
        shoal__v1__vector__init(v);
        const cJSON *x = list_of(one, "embedding", &v->n_values);
        v->values = mem_zalloc_n(v->n_values + 1, sizeof(*v->values));
        for (size_t k = 0; v->values && k < v->n_values; k++, x = x->next)
            v->values[k] = (float)x->valuedouble;
        if (!v->values) {
            v->n_values = 0;
            rc = SHOAL_ENOMEM;
        }
    }
    if (rc == 0)
        rc = put_message(out, &m.base);
    for (size_t i = 0; i < m.n_data; i++)
        mem_free(m.data[i]->values);
    mem_free(m.data);
    return rc;
}

static int score_json(struct buf *out, const char **path, const uint8_t *p, size_t n)
{
    Shoal__V1__ScoreRequest *r = shoal__v1__score_request__unpack(HEAP, n, p);
    if (!r)
        return SHOAL_EFORMAT;
    struct json_out j = json_out_make(out);
    *path = "/v1/score";
    json_out_object(&j);
    put_str(&j, "model", r->model);
    json_out_key(&j, "input");
    json_out_array(&j);
    for (size_t i = 0; i < r->n_input; i++) {
        json_out_array(&j);
        for (size_t k = 0; k < r->input[i]->n_values; k++)
            json_out_num(&j, r->input[i]->values[k]); /* NaN becomes null: missing */
        json_out_array_end(&j);
    }
    json_out_array_end(&j);
    if (r->raw) {
        json_out_key(&j, "raw");
        json_out_bool(&j, true);
    }
    json_out_object_end(&j);
    shoal__v1__score_request__free_unpacked(r, HEAP);
    return out->rc;
}

static int score_message(struct buf *out, const cJSON *answer)
{
    Shoal__V1__ScoreResponse m = SHOAL__V1__SCORE_RESPONSE__INIT;
    const cJSON *one = list_of(answer, "data", &m.n_data);
    int rc = 0;
    m.model = text_of(answer, "model");
    m.data = (Shoal__V1__Row **)make_list(m.n_data, sizeof(Shoal__V1__Row));
    if (!m.data)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < m.n_data; i++, one = one->next) {
        Shoal__V1__Row *v = m.data[i];
        shoal__v1__row__init(v);
        const cJSON *x = list_of(one, "scores", &v->n_values);
        if (!x) { /* one value has a name of its own */
            x = cJSON_GetObjectItemCaseSensitive(one, "score");
            v->n_values = x ? 1 : 0;
        }
        v->values = mem_zalloc_n(v->n_values + 1, sizeof(*v->values));
        for (size_t k = 0; v->values && k < v->n_values; k++, x = x->next)
            v->values[k] = x->valuedouble;
        if (!v->values) {
            v->n_values = 0;
            rc = SHOAL_ENOMEM;
        }
    }
    if (rc == 0)
        rc = put_message(out, &m.base);
    for (size_t i = 0; i < m.n_data; i++)
        mem_free(m.data[i]->values);
    mem_free(m.data);
    return rc;
}

const struct grpc_method *grpc_method(const char *name)
{
    static const struct grpc_method methods[] = {
        {"Generate", false, generate_whole, generate_response},
        {"GenerateStream", true, generate_stream, generate_event},
        {"Classify", false, classify_json, classify_message},
        {"Tag", false, tag_json, tag_message},
        {"Embed", false, embed_json, embed_message},
        {"Score", false, score_json, score_message}};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
