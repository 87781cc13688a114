/* tgi.c - see tgi.h: events to answers, and the handlers. */
#include "gateway/api/hf/tgi.h"

#include <string.h>

#include "flow/stages.h"
#include "gateway/api/logprob_json.h"
#include "gateway/call.h"
#include "wire/json_out.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)

/* Turns the events of a generation into an answer to the call. */
struct answer {
    struct sink sink;
    struct call *call; /* held */
    struct tgi_shape shape;
    bool has_seed;
    uint64_t seed;
    struct buf text;   /* the whole answer */
    struct buf tokens; /* elements of details.tokens */
    struct buf tops;   /* elements of details.top_tokens */
    uint32_t n_tokens;
    /* A stream's last event has a token and the whole text: each token waits for the next event. */
    bool waits;
    struct buf piece; /* the waiting token's text */
    struct buf top;   /* and its alternatives, as JSON */
    int32_t token;
    float logprob;
};

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

static void put_token(struct json_out *j, int32_t id, const char *text, size_t n, float logprob)
{
    json_out_object(j);
    json_out_key(j, "id");
    json_out_int(j, id);
    json_out_key(j, "text");
    json_out_strn(j, text, n);
    json_out_key(j, "logprob");
    logprob_json_number(j, logprob);
    json_out_key(j, "special");
    json_out_bool(j, false);
    json_out_object_end(j);
}

static void put_tops(struct json_out *j, const struct sink_token *t)
{
    json_out_array(j);
    for (uint32_t i = 1; i < t->n_logprobs; i++)
        put_token(j, t->logprobs[i].token, t->logprobs[i].text, t->logprobs[i].text_bytes,
                  t->logprobs[i].logprob);
    json_out_array_end(j);
}

static void put_details(const struct answer *a, struct json_out *j, const struct sink_done *d)
{
    json_out_key(j, "details");
    json_out_object(j);
    json_out_member_str(j, "finish_reason",
                        d->finish == SHOAL_FINISH_LENGTH ? "length"
                        : d->stopped_by_text             ? "stop_sequence"
                                                         : "eos_token");
    json_out_member_uint(j, "generated_tokens", d->generated_tokens);
    json_out_member_uint(j, "input_length", d->prompt_tokens);
    json_out_key(j, "seed");
    a->has_seed ? json_out_uint(j, a->seed) : json_out_null(j);
    if (!a->shape.stream) {
        json_out_key(j, "prefill");
        json_out_array(j);
        json_out_array_end(j);
        json_out_key(j, "tokens");
        json_out_list(j, &a->tokens);
        json_out_key(j, "top_tokens");
        json_out_list(j, &a->tops);
    }
    json_out_object_end(j);
}

/* Sends the waiting token.  d: it is the last one. */
static void send_token(struct answer *a, const struct sink_done *d)
{
    struct call *c = a->call;
    (void)call_begin_events(c);
    call_event_begin(c, NULL);
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_uint(&j, "index", a->n_tokens);
    json_out_key(&j, "token");
    put_token(&j, a->waits ? a->token : 0, buf_str(&a->piece), a->piece.len, a->logprob);
    if (a->top.len > 0) {
        json_out_key(&j, "top_tokens");
        buf_put(&c->out, buf_str(&a->top), a->top.len);
    }
    json_out_key(&j, "generated_text");
    if (d)
        json_out_strn(&j, buf_str(&a->text), a->text.len);
    else
        json_out_null(&j);
    if (d) {
        put_details(a, &j, d);
    } else {
        json_out_key(&j, "details");
        json_out_null(&j);
    }
    json_out_object_end(&j);
    call_event_end(c);
    if (a->text.rc < 0 || a->piece.rc < 0 || a->top.rc < 0)
        c->out.rc = SHOAL_ENOMEM;
}

/* ---- events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    call_set_model(answer_of(s)->call, e);
}

static void hold(struct answer *a, const struct sink_token *t)
{
    if (t->token >= 0) {
        if (a->waits)
            send_token(a, NULL);
        a->waits = true;
        a->n_tokens++;
        a->token = t->token;
        a->logprob = t->logprobs ? t->logprobs[0].logprob : 0;
        buf_clear(&a->piece);
        buf_clear(&a->top);
        if (t->n_logprobs > 1) {
            struct json_out j = json_out_make(&a->top);
            put_tops(&j, t);
        }
    }
    buf_put(&a->piece, t->text, t->text_bytes);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer *a = answer_of(s);
    if (!a->call->req)
        return;
    buf_put(&a->text, t->text, t->text_bytes);
    if (a->shape.stream) {
        if (!t->echo)
            hold(a, t);
        return;
    }
    if (!a->shape.details || t->echo || t->token < 0 || !t->logprobs)
        return;
    struct json_out j = json_out_make(&a->tokens);
    j.comma = a->n_tokens > 0;
    put_token(&j, t->token, t->logprobs[0].text, t->logprobs[0].text_bytes, t->logprobs[0].logprob);
    j = json_out_make(&a->tops);
    j.comma = a->n_tokens++ > 0;
    put_tops(&j, t);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    if (!c->req)
        return;
    if (a->shape.stream) {
        send_token(a, d);
        call_end_flushed(c);
        return;
    }
    buf_clear(&c->out);
    struct json_out j = json_out_make(&c->out);
    if (a->shape.list)
        json_out_array(&j);
    json_out_object(&j);
    json_out_key(&j, "generated_text");
    json_out_strn(&j, buf_str(&a->text), a->text.len);
    if (a->shape.details)
        put_details(a, &j, d);
    json_out_object_end(&j);
    if (a->shape.list)
        json_out_array_end(&j);
    if (a->text.rc < 0 || a->tokens.rc < 0 || a->tops.rc < 0)
        c->out.rc = SHOAL_ENOMEM;
    call_json(c, 200);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    call_fail_stream(answer_of(s)->call, NULL, f);
}

static void on_flush(struct sink *s)
{
    if (answer_of(s)->shape.stream)
        call_flush(answer_of(s)->call);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void on_closed(struct sink *s)
{
    struct answer *a = answer_of(s);
    buf_fini(&a->text);
    buf_fini(&a->tokens);
    buf_fini(&a->tops);
    buf_fini(&a->piece);
    buf_fini(&a->top);
    call_unset_sink(a->call);
}

/* ---- handlers ---- */

static void run(struct call *c, bool stream, bool list)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct fields_error e = {{0}, {0}, NULL};
    struct tgi_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    if (tgi_read(r, &shape, c->json, stream, c->lenient, &e) < 0) {
        call_fail_fields(c, &e);
        flow_give_request(&c->gl->flow, r);
        return;
    }
    shape.list = list;
    struct answer *a = arena_zalloc(&r->arena, sizeof(*a));
    if (!a) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    *a = (struct answer){.sink = {.ops = &ops},
                         .call = c,
                         .shape = shape,
                         .has_seed = r->generate.has_seed,
                         .seed = r->generate.sampling.seed};
    buf_init(&a->text, MAX_TEXT_BYTES);
    buf_init(&a->tokens, MAX_TEXT_BYTES);
    buf_init(&a->tops, MAX_TEXT_BYTES);
    buf_init(&a->piece, MAX_TEXT_BYTES);
    buf_init(&a->top, MAX_TEXT_BYTES);
    if (shape.full)
        buf_put(&a->text, r->generate.prompts->text, r->generate.prompts->text_bytes);
    call_set_sink(c, &a->sink);
    stages_run(&c->gl->flow, r, c->sink);
}

void tgi_generate(struct call *c)
{
    run(c, false, false);
}

void tgi_generate_stream(struct call *c)
{
    run(c, true, false);
}

void tgi_root(struct call *c)
{
    run(c, false, true);
}

struct shown {
    struct json_out j;
    bool found;
};

static void put_info(void *ctx, const struct registry_model *m)
{
    struct shown *x = ctx;
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct json_out *j = &x->j;
    if (x->found || !m->slot->engine || !(m->slot->kinds & SHOAL_KIND_GENERATE))
        return;
    shoal_engine_info(m->slot->engine, &info);
    x->found = true;
    json_out_object(j);
    json_out_member_str(j, "model_id", m->name);
    json_out_key(j, "model_sha");
    const char *version = registry_identity(m)->version;
    version[0] ? json_out_str(j, version) : json_out_null(j);
    json_out_member_str(j, "model_pipeline_tag", "text-generation");
    json_out_member_uint(j, "max_concurrent_requests", info.max_tasks);
    json_out_member_uint(j, "max_best_of", 1);
    json_out_member_uint(j, "max_stop_sequences", REQUEST_MAX_STOPS);
    json_out_member_uint(j, "max_input_tokens", info.n_ctx - 1);
    json_out_member_uint(j, "max_total_tokens", info.n_ctx);
    json_out_member_uint(j, "max_client_batch_size", 1);
    json_out_member_str(j, "router", "shoal");
    json_out_member_str(j, "version", shoal_version());
    json_out_object_end(j);
}

bool tgi_put_info(struct call *c)
{
    struct shown x = {.j = json_out_make(&c->out)};
    registry_each(c->gl->gw->registry, put_info, &x);
    return x.found;
}
