/* specialists.c - see specialists.h: events to answers, and the handlers.
 *
 * Answers have "data", one object for each input. */
#include "gateway/api/own/specialists.h"

#include <stdlib.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/mem.h"
#include "flow/stages.h"
#include "gateway/api/decision.h"
#include "gateway/call.h"
#include "wire/json_out.h"
#include "wire/result_json.h"

/* Turns results into an answer to the call. */
struct answer {
    struct sink sink;
    struct call *call; /* held */
    struct specialist_shape shape;
    const char *model;
    const struct request_input *inputs; /* [n] */
    const struct shoal_result **results;
    uint32_t n;
};

static uint64_t count_tokens(const struct answer *a)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        n += a->results[i]->n_tokens;
    return n;
}

/* ---- answers ---- */

static void put_head(struct answer *a, struct json_out *j)
{
    json_out_object(j);
    json_out_key(j, "object");
    json_out_str(j, "list");
    json_out_key(j, "model");
    json_out_str(j, a->model);
}

static void put_usage(struct answer *a, struct json_out *j)
{
    json_out_key(j, "usage");
    json_out_object(j);
    json_out_key(j, "prompt_tokens");
    json_out_uint(j, count_tokens(a));
    json_out_key(j, "total_tokens");
    json_out_uint(j, count_tokens(a));
    json_out_object_end(j);
    if (a->call->routed && a->call->routed->ensemble) { /* several models: report what each did */
        json_out_key(j, "shoal");
        decision_json(j, a->call->routed);
    }
    json_out_object_end(j);
    buf_putc(j->b, '\n');
}

/* Only where it was: the answer is about a part of the input. */
static void put_truncated(struct json_out *j, const struct shoal_result *r)
{
    if (!r->truncated)
        return;
    json_out_key(j, "truncated");
    json_out_bool(j, true);
}

static void put_list(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    put_head(a, &j);
    json_out_key(&j, "data");
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct shoal_result *r = a->results[i];
        json_out_object(&j);
        json_out_key(&j, "index");
        json_out_uint(&j, i);
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

static void put_embeddings(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    put_head(a, &j);
    json_out_key(&j, "data");
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct shoal_result *r = a->results[i];
        json_out_object(&j);
        json_out_key(&j, "object");
        json_out_str(&j, "embedding");
        json_out_key(&j, "index");
        json_out_uint(&j, i);
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

static void put_ollama_embed(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    json_out_key(&j, "model");
    json_out_str(&j, a->model);
    json_out_key(&j, "embeddings");
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct shoal_result *r = a->results[i];
        json_out_array(&j);
        for (uint32_t k = 0; k < r->n_dims; k++)
            json_out_float(&j, r->vector[k]);
        json_out_array_end(&j);
    }
    json_out_array_end(&j);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->results[i]->truncated) { /* one flag for all: there is no object for each */
            put_truncated(&j, a->results[i]);
            break;
        }
    json_out_key(&j, "total_duration");
    json_out_uint(&j, clock_ns() - a->call->start_ns);
    json_out_key(&j, "load_duration");
    json_out_uint(&j, 0);
    json_out_key(&j, "prompt_eval_count");
    json_out_uint(&j, count_tokens(a));
    json_out_object_end(&j);
}

static void put_vector(struct json_out *j, const struct shoal_result *r)
{
    json_out_array(j);
    for (uint32_t k = 0; k < r->n_dims; k++)
        json_out_float(j, r->vector[k]);
    json_out_array_end(j);
}

static void put_ollama_embeddings(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    json_out_key(&j, "embedding");
    put_vector(&j, a->results[0]);
    json_out_object_end(&j);
}

static void put_tei_embed(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n; i++)
        put_vector(&j, a->results[i]);
    json_out_array_end(&j);
}

static void put_llamacpp_embedding(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n; i++) {
        json_out_object(&j);
        json_out_member_uint(&j, "index", i);
        json_out_key(&j, "embedding");
        json_out_array(&j); /* one vector: of the whole text, not of each token */
        put_vector(&j, a->results[i]);
        json_out_array_end(&j);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
}

/* All labels of a text, the likeliest first. */
static void put_tei_labels(struct answer *a, struct json_out *j, const struct shoal_result *r)
{
    json_out_array(j);
    for (uint32_t k = 0; k < r->n_labels && (a->shape.top == 0 || k < a->shape.top); k++) {
        json_out_object(j);
        json_out_key(j, "score");
        json_out_float(j, r->labels[k].score);
        json_out_member_str(j, "label", r->labels[k].name);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_tei_predict(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    if (a->shape.single) {
        put_tei_labels(a, &j, a->results[0]);
        return;
    }
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n; i++)
        put_tei_labels(a, &j, a->results[i]);
    json_out_array_end(&j);
}

/* Vectors have length 1: their cosine is their product. */
static void put_tei_similarity(struct answer *a)
{
    struct json_out j = json_out_make(&a->call->out);
    const struct shoal_result *source = a->results[0];
    json_out_array(&j);
    for (uint32_t i = 1; i < a->n; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < source->n_dims && k < a->results[i]->n_dims; k++)
            sum += (double)source->vector[k] * (double)a->results[i]->vector[k];
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
static void put_tei_ranking(struct answer *a, const struct ranked *order)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n && (a->shape.top == 0 || i < a->shape.top); i++) {
        const struct request_input *in = &a->inputs[order[i].index];
        json_out_object(&j);
        json_out_member_uint(&j, "index", order[i].index);
        json_out_member_num(&j, "score", order[i].score);
        if (a->shape.with_documents) {
            json_out_key(&j, "text");
            json_out_strn(&j, in->text, in->text_bytes);
        }
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
}

static void put_ranking(struct answer *a)
{
    struct ranked order[REQUEST_MAX_INPUTS];
    struct json_out j = json_out_make(&a->call->out);
    for (uint32_t i = 0; i < a->n; i++)
        order[i] = (struct ranked){i, a->results[i]->values[0]};
    if (a->n > 1)
        qsort(order, a->n, sizeof(order[0]), by_score);
    if (a->shape.tei) {
        put_tei_ranking(a, order);
        return;
    }
    put_head(a, &j);
    json_out_member_str(&j, "id", a->call->id); /* Cohere's clients look for it */
    json_out_key(&j, "results");
    json_out_array(&j);
    for (uint32_t i = 0; i < a->n && (a->shape.top == 0 || i < a->shape.top); i++) {
        const struct request_input *in = &a->inputs[order[i].index];
        json_out_object(&j);
        json_out_key(&j, "index");
        json_out_uint(&j, order[i].index);
        json_out_key(&j, "relevance_score");
        json_out_num(&j, order[i].score);
        if (a->shape.with_documents) {
            json_out_key(&j, "document");
            json_out_object(&j);
            json_out_key(&j, "text");
            json_out_strn(&j, in->text, in->text_bytes);
            json_out_object_end(&j);
        }
        put_truncated(&j, a->results[order[i].index]);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(a, &j);
}

static void put_answer(struct answer *a)
{
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

/* ---- events ---- */

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    answer_of(s)->model = e->model;
    call_set_model(answer_of(s)->call, e);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct answer *a = answer_of(s);
    a->results[e->index] = e->result;
    if (!e->last || !a->call->req)
        return;
    buf_clear(&a->call->out);
    put_answer(a);
    call_json(a->call, 200);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    if (answer_of(s)->call->req)
        call_fail_with(answer_of(s)->call, f);
}

static void on_closed(struct sink *s)
{
    call_unset_sink(answer_of(s)->call);
}

/* ---- handlers ---- */

static void run(struct call *c, enum specialist_body body)
{
    static const struct sink_ops ops = {
        .start = on_start, .result = on_result, .fail = on_fail, .closed = on_closed};
    struct fields_error e = {{0}, {0}, NULL};
    struct specialist_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    int rc = specialists_read(r, &shape, body, c->json, c->lenient, &e);
    struct answer *a = rc == 0 ? arena_zalloc(&r->arena, sizeof(*a)) : NULL;
    if (a)
        a->results = arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(struct shoal_result *));
    if (!a || !a->results) {
        if (rc < 0)
            call_fail_fields(c, &e);
        else
            call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    a->sink.ops = &ops;
    a->call = c;
    a->shape = shape;
    a->inputs = r->infer.inputs;
    a->n = r->infer.n_inputs;
    call_set_sink(c, &a->sink);
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
