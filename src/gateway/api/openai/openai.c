/* openai.c - /v1/chat/completions and /v1/completions: from the call to the flow. */
#include "gateway/api/openai/openai.h"

#include "flow/generate/generate.h"
#include "flow/flow_run.h"
#include "flow/stages.h"
#include "gateway/api/model_profiles.h"
#include "gateway/api/recall.h"
#include "gateway/call/door.h"

static void run(struct call *c, struct request *r, const struct openai_shape *shape)
{
    struct openai_answer *a = arena_zalloc(&r->arena, sizeof(*a));
    if (!a || openai_answer_open(a, c, shape) < 0) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    stages_run(&c->gl->flow, r, c->sink);
}

struct request *openai_chat_request(struct call *c, struct openai_shape *shape)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = call_request(c);
    if (!r)
        return NULL;
    if (openai_read_chat(r, shape, c->json, c->lenient, &e) < 0) {
        call_fail_fields(c, &e);
        flow_give_request(&c->gl->flow, r);
        return NULL;
    }
    flow_resolve_name(&c->gl->flow, r);
    model_profiles_apply(c->gl->gw->profiles, r);
    return r;
}

void openai_chat(struct call *c)
{
    struct openai_shape shape;
    struct request *r = openai_chat_request(c, &shape);
    if (r)
        run(c, r, &shape);
}

void openai_completions(struct call *c)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct openai_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    bool ok = openai_read_completion(r, &shape, c->json, c->lenient, &e) == 0;
    if (!ok)
        call_fail_fields(c, &e);
    if (!ok || !door_enter_more(c, shape.n_prompts)) {
        flow_give_request(&c->gl->flow, r);
        return;
    }
    run(c, r, &shape);
}

bool openai_recall(struct call *c)
{
    const struct recalled *known = recall_find(c);
    struct openai_answer a;
    if (!known)
        return false;
    if (openai_answer_open(&a, c, &known->shape) < 0)
        return false;
    a.recalled = true;
    if (generate_replay(&c->gl->flow, &known->memo, c->sink))
        return true;
    a.answer.sink.ops->closed(&a.answer.sink);
    return false;
}

/* The models that ship with Shoal know intents, names and personal data, not what is harmful: "not
 * flagged" would be an answer that nobody has checked. */
void openai_moderations(struct call *c)
{
    call_fail(c, 404, NULL, NULL, "unsupported_endpoint",
              "moderation is not supported: no included model judges whether a text is harmful; "
              "serve a classifier of your own and ask /v1/classify");
}
