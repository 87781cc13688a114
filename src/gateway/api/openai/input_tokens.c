/* input_tokens.c - see input_tokens.h. */
#include "gateway/api/openai/input_tokens.h"

#include "flow/flow_run.h"
#include "flow/stages.h"
#include "gateway/api/openai/openai.h"
#include "gateway/api/openai/responses.h"
#include "gateway/call.h"
#include "wire/json_out.h"

struct answer {
    struct sink sink;
    struct call *call; /* held */
};

static struct call *call_of(struct sink *s)
{
    return ((struct answer *)(void *)s)->call; /* sink is its first member */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    call_set_model(call_of(s), e);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    (void)s;
    (void)t;
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct call *c = call_of(s);
    if (!c->req || !d->last)
        return;
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "object", "response.input_tokens");
    json_out_member_uint(&j, "input_tokens", d->usage.prompt_tokens);
    json_out_object_end(&j);
    call_json(c, 200);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    if (call_of(s)->req)
        call_fail_with(call_of(s), f);
}

static void on_closed(struct sink *s)
{
    call_unset_sink(call_of(s));
}

static void run(struct call *c, struct request *r)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct request_generate *g = &r->generate;
    struct answer *a = arena_zalloc(&r->arena, sizeof(*a));
    if (!a) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    *a = (struct answer){.sink = {.ops = &ops}, .call = c};
    g->n = 1;
    g->prompt_only = true;
    g->sampling.logprobs = g->echo = g->prompt_logprobs = g->progress = r->streams = false;
    call_set_sink(c, &a->sink);
    stages_run(&c->gl->flow, r, c->sink);
}

void input_tokens_chat(struct call *c)
{
    struct openai_shape shape;
    struct request *r = openai_chat_request(c, &shape);
    if (r)
        run(c, r);
}

void input_tokens_responses(struct call *c)
{
    struct responses_shape shape;
    struct request *r = responses_request(c, &shape);
    if (r)
        run(c, r);
}
