/* grpc_codec.c - see grpc_codec.h. */
#include "gateway/grpc/grpc_codec.h"

#include <string.h>

#include <shoal/v1/shoal.pb-c.h>

#include "wire/pb.h"

#define ANY_TOKENS (1 << 24)

/* ---- generate: a flat message beside OpenAI's nested one ---- */

static const char *begin_generate(struct json_out *j, const Shoal__V1__GenerateRequest *r,
                                  bool stream)
{
    bool chat = r->n_messages > 0;
    if (!chat && !r->prompt[0]) {
        json_out_key(j, "prompt");
        json_out_str(j, "");
    }
    if (!chat && r->max_tokens == 0) { /* the interface's default would be 16 */
        json_out_key(j, "max_tokens");
        json_out_int(j, ANY_TOKENS);
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
    return chat ? "/v1/chat/completions" : "/v1/completions";
}

static char *text_of(const cJSON *o, const char *name)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return (char *)(uintptr_t)(s ? s : "");
}

/* The members of both messages of generate, as far as a message has them. */
struct generated {
    char *model, *text, *finish_reason;
    Shoal__V1__Usage *usage; /* owned; NULL: none */
};

static int read_generated(struct generated *g, const cJSON *answer)
{
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(answer, "choices");
    const cJSON *choice = cJSON_IsArray(choices) ? choices->child : NULL;
    const cJSON *message = cJSON_GetObjectItemCaseSensitive(choice, "message");
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(answer, "usage");
    const cJSON *details = cJSON_GetObjectItemCaseSensitive(usage, "prompt_tokens_details");
    const cJSON *cached = cJSON_GetObjectItemCaseSensitive(details, "cached_tokens");
    ProtobufCMessage *m = NULL;
    if (!message)
        message = cJSON_GetObjectItemCaseSensitive(choice, "delta");
    g->model = text_of(answer, "model");
    g->text = message ? text_of(message, "content") : text_of(choice, "text");
    g->finish_reason = text_of(choice, "finish_reason");
    if (!cJSON_IsObject(usage))
        return 0;
    int rc = pb_from_json(&m, &shoal__v1__usage__descriptor, usage);
    g->usage = (Shoal__V1__Usage *)(void *)m;
    if (rc == 0 && cJSON_IsNumber(cached) && cached->valueint >= 0)
        g->usage->cached_tokens = (uint32_t)cached->valueint;
    return rc;
}

static int generated_message(const struct grpc_method *m, struct buf *out, const cJSON *answer)
{
    struct generated g = {NULL, NULL, NULL, NULL};
    int rc = read_generated(&g, answer);
    if (rc == 0 && m->stream) {
        Shoal__V1__GenerateEvent e = SHOAL__V1__GENERATE_EVENT__INIT;
        e.text = g.text;
        e.finish_reason = g.finish_reason;
        e.usage = g.usage;
        rc = e.text[0] || e.finish_reason[0] || e.usage ? pb_put(out, &e.base) : 1;
    } else if (rc == 0) {
        Shoal__V1__GenerateResponse r = SHOAL__V1__GENERATE_RESPONSE__INIT;
        r.model = g.model;
        r.text = g.text;
        r.finish_reason = g.finish_reason;
        r.usage = g.usage;
        rc = pb_put(out, &r.base);
    }
    if (g.usage)
        shoal__v1__usage__free_unpacked(g.usage, pb_heap());
    return rc;
}

/* ---- every method ---- */

int grpc_to_json(const struct grpc_method *m, struct buf *out, const char **path, const uint8_t *p,
                 size_t n)
{
    ProtobufCMessage *r = protobuf_c_message_unpack(m->request, pb_heap(), n, p);
    if (!r)
        return SHOAL_EFORMAT;
    struct json_out j = json_out_make(out);
    *path = m->path;
    json_out_object(&j);
    if (m->generate)
        *path = begin_generate(&j, (const Shoal__V1__GenerateRequest *)(void *)r, m->stream);
    pb_members(&j, r);
    json_out_object_end(&j);
    protobuf_c_message_free_unpacked(r, pb_heap());
    return out->rc;
}

int grpc_to_message(const struct grpc_method *m, struct buf *out, const cJSON *answer)
{
    ProtobufCMessage *r = NULL;
    if (m->generate)
        return generated_message(m, out, answer);
    int rc = pb_from_json(&r, m->response, answer);
    if (rc < 0)
        return rc;
    rc = pb_put(out, r);
    protobuf_c_message_free_unpacked(r, pb_heap());
    return rc;
}

#define TYPES(request, response)                                                                   \
    &shoal__v1__##request##_request__descriptor, &shoal__v1__##response##__descriptor

const struct grpc_method *grpc_method(const char *name)
{
    static const struct grpc_method methods[] = {
        {"Generate", NULL, TYPES(generate, generate_response), true, false},
        {"GenerateStream", NULL, TYPES(generate, generate_event), true, true},
        {"Classify", "/v1/classify", TYPES(classify, classify_response), false, false},
        {"Tag", "/v1/entities", TYPES(tag, tag_response), false, false},
        {"Embed", "/v1/embeddings", TYPES(embed, embed_response), false, false},
        {"Score", "/v1/score", TYPES(score, score_response), false, false}};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
