/* specialists.c - see specialists.h: events to answers, and the handlers.
 *
 * Answers have "data", one object for each input. */
#include "gateway/api/own/specialists.h"

#include <stdlib.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/mem.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/decision.h"
#include "wire/json_out.h"
#include "wire/result_json.h"

/* Turns results into an answer to the call. */
struct specialists_answer {
    struct answer_sink answer; /* first */
    struct specialist_shape shape;
    const struct request_input *inputs; /* [n] */
};

static uint64_t count_tokens(const struct specialists_answer *a)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->answer.n_results; i++)
        n += a->answer.results[i]->n_tokens;
    return n;
}

/* ---- answers ---- */

static void put_head(struct specialists_answer *a, struct json_out *j)
{
    json_out_object(j);
    json_out_member_str(j, "object", "list");
    json_out_member_str(j, "model", a->answer.model);
}

static void put_usage(struct specialists_answer *a, struct json_out *j)
{
    json_out_member_object(j, "usage");
    json_out_member_uint(j, "prompt_tokens", count_tokens(a));
    json_out_member_uint(j, "total_tokens", count_tokens(a));
    json_out_object_end(j);
    if (a->answer.call->routed &&
        a->answer.call->routed->ensemble) { /* several models: report what each did */
        json_out_key(j, "shoal");
        decision_json(j, a->answer.call->routed);
    }
    json_out_object_end(j);
    buf_putc(j->b, '\n');
}

/* Only where it was: the answer is about a part of the input. */
static void put_truncated(struct json_out *j, const struct shoal_result *r)
{
    if (!r->truncated)
        return;
    json_out_member_bool(j, "truncated", true);
}

static void put_list(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    put_head(a, &j);
    json_out_member_array(&j, "data");
    for (uint32_t i = 0; i < a->answer.n_results; i++) {
        const struct shoal_result *r = a->answer.results[i];
        json_out_object(&j);
        json_out_member_uint(&j, "index", i);
        result_json_answer(&j, r, a->inputs[i].text, a->shape.top);
        put_truncated(&j, r);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(a, &j);
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

static void put_embeddings(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    put_head(a, &j);
    json_out_member_array(&j, "data");
    for (uint32_t i = 0; i < a->answer.n_results; i++) {
        const struct shoal_result *r = a->answer.results[i];
        json_out_object(&j);
        json_out_member_str(&j, "object", "embedding");
        json_out_member_uint(&j, "index", i);
        if (a->shape.base64) {
            json_out_key(&j, "embedding");
            put_base64(&j, r->vector, r->n_dims);
        } else {
            result_json_answer(&j, r, a->inputs[i].text, 0);
        }
        put_truncated(&j, r);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(a, &j);
}

static void put_ollama_embed(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    json_out_object(&j);
    json_out_member_str(&j, "model", a->answer.model);
    json_out_member_array(&j, "embeddings");
    for (uint32_t i = 0; i < a->answer.n_results; i++) {
        const struct shoal_result *r = a->answer.results[i];
        json_out_array(&j);
        for (uint32_t k = 0; k < r->n_dims; k++)
            json_out_float(&j, r->vector[k]);
        json_out_array_end(&j);
    }
    json_out_array_end(&j);
    for (uint32_t i = 0; i < a->answer.n_results; i++)
        if (a->answer.results[i]->truncated) { /* one flag for all: there is no object for each */
            put_truncated(&j, a->answer.results[i]);
            break;
        }
    json_out_member_uint(&j, "total_duration", clock_ns() - a->answer.call->start_ns);
    json_out_member_uint(&j, "load_duration", 0);
    json_out_member_uint(&j, "prompt_eval_count", count_tokens(a));
    json_out_object_end(&j);
}

static void put_vector(struct json_out *j, const struct shoal_result *r)
{
    json_out_array(j);
    for (uint32_t k = 0; k < r->n_dims; k++)
        json_out_float(j, r->vector[k]);
    json_out_array_end(j);
}

static void put_ollama_embeddings(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    json_out_object(&j);
    json_out_key(&j, "embedding");
    put_vector(&j, a->answer.results[0]);
    json_out_object_end(&j);
}

static void put_tei_embed(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    json_out_array(&j);
    for (uint32_t i = 0; i < a->answer.n_results; i++)
        put_vector(&j, a->answer.results[i]);
    json_out_array_end(&j);
}

static void put_llamacpp_embedding(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    json_out_array(&j);
    for (uint32_t i = 0; i < a->answer.n_results; i++) {
        json_out_object(&j);
        json_out_member_uint(&j, "index", i);
        json_out_key(&j, "embedding");
        json_out_array(&j); /* one vector: of the whole text, not of each token */
        put_vector(&j, a->answer.results[i]);
        json_out_array_end(&j);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
}

/* All labels of a text, the likeliest first. */
static void put_tei_labels(struct specialists_answer *a, struct json_out *j,
                           const struct shoal_result *r)
{
    json_out_array(j);
    for (uint32_t k = 0; k < r->n_labels && (a->shape.top == 0 || k < a->shape.top); k++) {
        json_out_object(j);
        json_out_member_float(j, "score", r->labels[k].score);
        json_out_member_str(j, "label", r->labels[k].name);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_tei_predict(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    if (a->shape.single) {
        put_tei_labels(a, &j, a->answer.results[0]);
        return;
    }
    json_out_array(&j);
    for (uint32_t i = 0; i < a->answer.n_results; i++)
        put_tei_labels(a, &j, a->answer.results[i]);
    json_out_array_end(&j);
}

/* Vectors have length 1: their cosine is their product. */
static void put_tei_similarity(struct specialists_answer *a)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    const struct shoal_result *source = a->answer.results[0];
    json_out_array(&j);
    for (uint32_t i = 1; i < a->answer.n_results; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < source->n_dims && k < a->answer.results[i]->n_dims; k++)
            sum += (double)source->vector[k] * (double)a->answer.results[i]->vector[k];
        json_out_num(&j, sum);
    }
    json_out_array_end(&j);
}

struct ranked {
    uint32_t index;
    double score;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score ? 1 : x->index < y->index ? -1 : 1;
}

/* As Text Embeddings Inference: a list of indexes and scores. */
static void put_tei_ranking(struct specialists_answer *a, const struct ranked *order)
{
    struct json_out j = json_out_make(&a->answer.call->out);
    json_out_array(&j);
    for (uint32_t i = 0; i < a->answer.n_results && (a->shape.top == 0 || i < a->shape.top); i++) {
        const struct request_input *in = &a->inputs[order[i].index];
        json_out_object(&j);
        json_out_member_uint(&j, "index", order[i].index);
        json_out_member_num(&j, "score", order[i].score);
        if (a->shape.with_documents)
            json_out_member_strn(&j, "text", in->text, in->text_bytes);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
}

static void put_ranking(struct specialists_answer *a)
{
    struct ranked order[REQUEST_MAX_INPUTS];
    struct json_out j = json_out_make(&a->answer.call->out);
    for (uint32_t i = 0; i < a->answer.n_results; i++)
        order[i] = (struct ranked){i, a->answer.results[i]->values[0]};
    if (a->answer.n_results > 1)
        qsort(order, a->answer.n_results, sizeof(order[0]), by_score);
    if (a->shape.tei) {
        put_tei_ranking(a, order);
        return;
    }
    put_head(a, &j);
    json_out_member_str(&j, "id", a->answer.call->id); /* Cohere's clients look for it */
    json_out_member_array(&j, "results");
    for (uint32_t i = 0; i < a->answer.n_results && (a->shape.top == 0 || i < a->shape.top); i++) {
        const struct request_input *in = &a->inputs[order[i].index];
        json_out_object(&j);
        json_out_member_uint(&j, "index", order[i].index);
        json_out_member_num(&j, "relevance_score", order[i].score);
        if (a->shape.with_documents) {
            json_out_member_object(&j, "document");
            json_out_member_strn(&j, "text", in->text, in->text_bytes);
            json_out_object_end(&j);
        }
        put_truncated(&j, a->answer.results[order[i].index]);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(a, &j);
}

static void put_answer(struct answer_sink *sink, const struct sink_done *d)
{
    struct specialists_answer *a = (struct specialists_answer *)(void *)sink; /* its first member */
    (void)d;
    switch (a->shape.body) {
    case SPECIALIST_EMBED:
        put_embeddings(a);
        break;
    case SPECIALIST_OLLAMA_EMBED:
        put_ollama_embed(a);
        break;
    case SPECIALIST_OLLAMA_EMBEDDINGS:
        put_ollama_embeddings(a);
        break;
    case SPECIALIST_LLAMACPP_EMBEDDING:
        put_llamacpp_embedding(a);
        break;
    case SPECIALIST_TEI_EMBED:
        put_tei_embed(a);
        break;
    case SPECIALIST_TEI_PREDICT:
        put_tei_predict(a);
        break;
    case SPECIALIST_TEI_SIMILARITY:
        put_tei_similarity(a);
        break;
    case SPECIALIST_RERANK:
        put_ranking(a);
        break;
    default:
        put_list(a);
        break;
    }
}

/* ---- handlers ---- */

static void run(struct call *c, enum specialist_body body)
{
    static const struct answer_dialect dialect = {.frame = &answer_events, .whole = put_answer};
    struct fields_error e = {{0}, {0}, NULL};
    struct specialist_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    if (specialists_read(r, &shape, body, c->json, c->lenient, &e) < 0) {
        call_fail_fields(c, &e);
        flow_give_request(&c->gl->flow, r);
        return;
    }
    struct specialists_answer *a = answer_create(c, r, sizeof(*a), &dialect, false);
    if (!a)
        return;
    a->shape = shape;
    a->inputs = r->infer.inputs;
    stages_run(&c->gl->flow, r, c->sink);
}

void specialists_classify(struct call *c)
{
    run(c, SPECIALIST_CLASSIFY);
}

void specialists_entities(struct call *c)
{
    run(c, SPECIALIST_ENTITIES);
}

void specialists_summarize(struct call *c)
{
    run(c, SPECIALIST_SUMMARIZE);
}

void specialists_embeddings(struct call *c)
{
    run(c, SPECIALIST_EMBED);
}

void specialists_ollama_embed(struct call *c)
{
    run(c, SPECIALIST_OLLAMA_EMBED);
}

void specialists_rerank(struct call *c)
{
    run(c, SPECIALIST_RERANK);
}

void specialists_score(struct call *c)
{
    run(c, SPECIALIST_SCORE);
}

void specialists_ollama_embeddings(struct call *c)
{
    run(c, SPECIALIST_OLLAMA_EMBEDDINGS);
}

void specialists_llamacpp_embedding(struct call *c)
{
    run(c, SPECIALIST_LLAMACPP_EMBEDDING);
}

void specialists_tei_embed(struct call *c)
{
    run(c, SPECIALIST_TEI_EMBED);
}

void specialists_tei_predict(struct call *c)
{
    run(c, SPECIALIST_TEI_PREDICT);
}

void specialists_tei_similarity(struct call *c)
{
    run(c, SPECIALIST_TEI_SIMILARITY);
}
