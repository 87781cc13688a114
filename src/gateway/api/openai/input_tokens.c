/* input_tokens.c - see input_tokens.h. */
#include "gateway/api/openai/input_tokens.h"

#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/openai/openai.h"
#include "gateway/api/openai/responses.h"
#include "wire/json_out.h"

static void put_whole(struct answer_sink *a, const struct sink_done *d)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    json_out_member_str(&j, "object", "response.input_tokens");
    json_out_member_uint(&j, "input_tokens", d->usage.prompt_tokens);
    json_out_object_end(&j);
}

static void run(struct call *c, struct request *r)
{
    static const struct answer_dialect dialect = {.frame = &answer_events, .whole = put_whole};
    struct request_generate *g = &r->generate;
    g->n = 1;
    g->prompt_only = true;
    g->sampling.logprobs = g->echo = g->prompt_logprobs = g->progress = r->streams = false;
    r->no_cache = true;
    if (answer_create(c, r, sizeof(struct answer_sink), &dialect, false))
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
