/* tgi.c - see tgi.h: events to answers, and the handlers. */
#include "gateway/api/hf/tgi.h"

#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/logprob_json.h"
#include "wire/json_out.h"

/* Turns the events of a generation into an answer to the call. */
struct tgi_answer {
    struct answer_sink answer; /* first */
    struct tgi_shape shape;
    /* A stream's last event has a token and the whole text: each token waits for the next one. */
    struct answer_cursor sent;
};

static struct tgi_answer *tgi_of(struct answer_sink *a)
{
    return (struct tgi_answer *)(void *)a; /* its first member */
}

static void put_token(struct json_out *j, int32_t id, const char *text, size_t n, float logprob)
{
    json_out_object(j);
    json_out_member_int(j, "id", id);
    json_out_member_strn(j, "text", text, n);
    json_out_key(j, "logprob");
    logprob_json_number(j, logprob);
    json_out_member_bool(j, "special", false);
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

/* The tokens of an answer; tops: instead their alternatives. */
static void put_tokens(struct json_out *j, struct answer_choice *ch, bool tops)
{
    struct answer_cursor at = {0};
    struct sink_token t;
    json_out_array(j);
    while (answer_next_token(ch, &at, &t)) {
        if (t.echo || t.token < 0 || !t.logprobs)
            continue;
        if (tops)
            put_tops(j, &t);
        else
            put_token(j, t.token, t.logprobs[0].text, t.logprobs[0].text_bytes,
                      t.logprobs[0].logprob);
    }
    json_out_array_end(j);
}

static void put_details(struct tgi_answer *a, struct json_out *j, const struct sink_done *d)
{
    const struct request_generate *asked = &a->answer.request->generate;
    struct answer_choice *ch = &a->answer.choices[0];
    json_out_member_object(j, "details");
    json_out_member_str(j, "finish_reason",
                        d->finish == SHOAL_FINISH_LENGTH ? "length"
                        : d->stopped_by_text             ? "stop_sequence"
                                                         : "eos_token");
    json_out_member_uint(j, "generated_tokens", d->generated_tokens);
    json_out_member_uint(j, "input_length", d->prompt_tokens);
    json_out_key(j, "seed");
    asked->has_seed ? json_out_uint(j, asked->sampling.seed) : json_out_null(j);
    if (!a->answer.stream) {
        json_out_member_array(j, "prefill");
        json_out_array_end(j);
        json_out_key(j, "tokens");
        put_tokens(j, ch, false);
        json_out_key(j, "top_tokens");
        put_tokens(j, ch, true);
    }
    json_out_object_end(j);
}

/* The whole answer; if wanted, with the prompt before it. */
static void put_text(struct tgi_answer *a, struct json_out *j)
{
    const struct request_prompt *p = a->answer.request->generate.prompts;
    const struct buf *text = &a->answer.choices[0].text;
    struct buf both;
    json_out_key(j, "generated_text");
    if (!a->shape.full) {
        json_out_strn(j, buf_str(text), text->len);
        return;
    }
    buf_init(&both, p->text_bytes + text->len);
    buf_put(&both, p->text, p->text_bytes);
    buf_put(&both, buf_str(text), text->len);
    json_out_strn(j, buf_str(&both), both.len);
    if (both.rc < 0)
        j->b->rc = both.rc;
    buf_fini(&both);
}

/* Sends the waiting token, with the texts that followed it.  d: it is the last one. */
static void send_token(struct answer_sink *sink, const struct sink_done *d)
{
    struct tgi_answer *a = tgi_of(sink);
    struct answer_choice *ch = &sink->choices[0];
    struct call *c = sink->call;
    struct sink_token t = {.token = 0}, more;
    size_t from = a->sent.text;
    answer_begin(sink);
    call_event_begin(c, NULL);
    struct json_out j = json_out_make(&c->out);
    while (answer_next_token(ch, &a->sent, &more))
        if (more.echo)
            from = a->sent.text;
        else if (more.token >= 0)
            t = more;
    json_out_object(&j);
    json_out_member_uint(&j, "index", d ? ch->n_tokens : ch->n_tokens - 1);
    json_out_key(&j, "token");
    put_token(&j, t.token, buf_str(&ch->text) + from, a->sent.text - from,
              t.logprobs ? t.logprobs[0].logprob : 0);
    if (t.n_logprobs > 1) {
        json_out_key(&j, "top_tokens");
        put_tops(&j, &t);
    }
    if (d) {
        put_text(a, &j);
        put_details(a, &j, d);
    } else {
        json_out_member_null(&j, "generated_text");
        json_out_member_null(&j, "details");
    }
    json_out_object_end(&j);
    call_event_end(c);
    if (ch->tokens.rc == 0) { /* only the text is needed again */
        buf_clear(&ch->tokens);
        a->sent.tokens = 0;
    }
}

static void stream_text(struct answer_sink *sink, const struct sink_token *t)
{
    if (!t->echo && t->token >= 0 && sink->choices[0].n_tokens > 1)
        send_token(sink, NULL);
}

static void put_whole(struct answer_sink *sink, const struct sink_done *d)
{
    struct tgi_answer *a = tgi_of(sink);
    struct json_out j = json_out_make(&sink->call->out);
    if (a->shape.list)
        json_out_array(&j);
    json_out_object(&j);
    put_text(a, &j);
    if (a->shape.details)
        put_details(a, &j, d);
    json_out_object_end(&j);
    if (a->shape.list)
        json_out_array_end(&j);
}

/* ---- handlers ---- */

static void run(struct call *c, bool stream, bool list)
{
    static const struct answer_dialect dialect = {.frame = &answer_events,
                                                  .every_token = true,
                                                  .text = stream_text,
                                                  .end = send_token,
                                                  .whole = put_whole};
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
    struct tgi_answer *a = answer_create(c, r, sizeof(*a), &dialect, shape.stream);
    if (!a)
        return;
    a->shape = shape;
    if (shape.stream || shape.details)
        a->answer.keeps |= ANSWER_KEEPS_TEXT | ANSWER_KEEPS_TOKENS;
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
