/* panel_run.c - see panel_run.h. */
#include "flow/panel/panel_run.h"

#include "flow/panel/panel.h"
#include "flow/panel/panel_choose.h"
#include "flow/panel/panel_classify.h"
#include "flow/panel/panel_generate.h"

typedef void (*panel_fn)(struct flow_owner *o, const struct router_route *route, struct request *r,
                         struct sink *s);

static const struct {
    panel_fn classify, generate; /* NULL: not for such requests */
} kinds[ENSEMBLE_N_KINDS] = {
    [ENSEMBLE_CASCADE] = {panel_classify_cascade, panel_generate_cascade},
    [ENSEMBLE_VOTE] = {panel_classify_vote, NULL},
    [ENSEMBLE_CONSENSUS] = {NULL, panel_choose_consensus},
    [ENSEMBLE_RERANK] = {NULL, panel_choose_rerank},
    [ENSEMBLE_REFINE] = {NULL, panel_generate_refine},
};

static void refuse(struct flow_owner *o, struct request *r, struct sink *s, const char *param,
                   const char *why)
{
    struct failure f;
    failure_set(&f, FAILURE_INVALID, SHOAL_EINVAL, param, "invalid_value",
                "the route '%.100s' is an ensemble: %s", r->model, why);
    s->job = NULL;
    s->ops->fail(s, &f);
    s->ops->closed(s);
    flow_give_request(o, r);
}

/* Options that one answer out of several cannot have; NULL: none. */
static const char *unsuited(const struct request *r, enum ensemble_kind kind, const char **param)
{
    const struct request_generate *g = &r->generate;
    *param = "n";
    if (r->kind != REQUEST_GENERATE)
        return NULL;
    if (g->n_prompts != 1 || g->n != 1)
        return "ask for one answer to one prompt";
    *param = "echo";
    if (g->echo || g->prompt_logprobs || g->prompt_only)
        return "it cannot echo the prompt";
    *param = "prompt";
    if (kind == ENSEMBLE_RERANK && g->chat.n_messages == 0 && !g->prompts[0].text)
        return "another model reads the prompt: send text, not tokens";
    return NULL;
}

/* Dry run: the first model would be used. */
static void end_dry(struct flow_owner *o, const struct router_route *route, struct request *r,
                    struct sink *s)
{
    const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true};
    struct panel *p = panel_create(o, route, r, s, NULL, route->ensemble.n_models);
    if (!p) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    for (uint32_t i = 0; i < p->plan.n_models; i++)
        panel_step(p, p->plan.models[i], -1, "not asked yet");
    p->choice.candidates = arena_zalloc(&r->arena, sizeof(*p->choice.candidates)); /* none */
    panel_enter(p);
    p->over = true;
    s->ops->done(s, &done);
    panel_leave(p);
}

void panel_run(struct flow_owner *o, const struct router_route *route, struct request *r,
               struct sink *s)
{
    const enum ensemble_kind kind = route->ensemble.kind;
    const bool classifies = r->kind == REQUEST_INFER && r->infer.kind == SHOAL_KIND_CLASSIFY;
    const panel_fn run = classifies                    ? kinds[kind].classify
                         : r->kind == REQUEST_GENERATE ? kinds[kind].generate
                                                       : NULL;
    const char *param, *why = unsuited(r, kind, &param);
    if (r->dry)
        end_dry(o, route, r, s);
    else if (!run)
        refuse(o, r, s, "model",
               !kinds[kind].classify   ? "it is for generations"
               : !kinds[kind].generate ? "it is for classifications"
                                       : "it is for classifications and generations");
    else if (why)
        refuse(o, r, s, param, why);
    else
        run(o, route, r, s);
}
