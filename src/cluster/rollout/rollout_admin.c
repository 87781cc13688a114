/* rollout_admin.c - see rollout_admin.h. */
#include "cluster/rollout/rollout_admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/rollout/rollout.h"

#define DEFAULT_SHARE 100u
#define DEFAULT_REQUESTS 50u
#define DEFAULT_ERRORS 10u
#define DEFAULT_P95 150u
#define DEFAULT_SCORE 20u

/* "reply-3": the next number for the model. */
static void next_id(char *out, size_t cap, const struct desired *d, const char *model)
{
    size_t n = strlen(model);
    unsigned long last = 0;
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        const char *id = d->rollouts[i].id;
        unsigned long x =
            strncmp(id, model, n) == 0 && id[n] == '-' ? strtoul(id + n + 1, NULL, 10) : 0;
        last = x > last ? x : last;
    }
    snprintf(out, cap, "%.*s-%lu", (int)(DESIRED_MAX_NAME - 20), model, last + 1);
}

/* Removes the oldest finished rollout. */
static bool make_room(struct desired *d)
{
    for (uint32_t i = 0; d->n_rollouts >= DESIRED_MAX_ROLLOUTS && i < d->n_rollouts; i++)
        if (!rollout_active(&d->rollouts[i])) {
            memmove(&d->rollouts[i], &d->rollouts[i + 1],
                    (d->n_rollouts - i - 1) * sizeof(d->rollouts[0]));
            d->n_rollouts--;
        }
    return d->n_rollouts < DESIRED_MAX_ROLLOUTS;
}

static int put(struct desired *d, struct desired_rollout *r, const char *by, uint64_t now_ms,
               const struct desired_rollout **out, struct err *e)
{
    char id[DESIRED_MAX_NAME + 1], text[256];
    if (!make_room(d))
        return err_set(e, SHOAL_EINVAL, "%u rollouts are in progress: wait until one is done",
                       DESIRED_MAX_ROLLOUTS);
    next_id(id, sizeof(id), d, r->model);
    r->id = id;
    r->state = DESIRED_PENDING;
    int rc = desired_put_rollout(d, r);
    struct desired_rollout *at = rc == 0 ? desired_find_rollout(d, id) : NULL;
    snprintf(text, sizeof(text), "started%s%.120s", by && by[0] ? " by " : "", by ? by : "");
    const struct desired_step s = {now_ms, DESIRED_PENDING, r->share, text};
    if (at)
        rc = desired_put_step(d, at, &s);
    *out = at;
    return rc < 0 ? err_set(e, rc, "rollout") : 0;
}

static void fill_judge(struct desired_judge *j, const struct rollout_start *o)
{
    *j = o->judge;
    j->requests = j->requests ? j->requests : DEFAULT_REQUESTS;
    j->errors = j->errors ? j->errors : DEFAULT_ERRORS;
    j->p95 = o->any_p95 ? 0 : j->p95 ? j->p95 : DEFAULT_P95;
    j->score = j->score ? j->score : DEFAULT_SCORE;
}

int rollout_admin_start(struct desired *d, const struct rollout_start *o, uint64_t now_ms,
                        const struct desired_rollout **out, struct err *e)
{
    const struct desired_model *m = desired_find_model(d, o->model);
    const struct desired_rollout *now = rollout_of(d, o->model);
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOTFOUND,
                       "the shoal has no model '%.64s': see 'shoal cluster desired', or deploy it "
                       "first",
                       o->model);
    if (now)
        return err_set(e, SHOAL_EINVAL,
                       "rollout %.64s of this model is %s: wait until it is done, or undo it",
                       now->id, desired_rollout_state_text(now->state));
    if (memcmp(m->sha256, o->to, SHA256_BYTES) == 0)
        return err_set(e, SHOAL_EINVAL, "the model '%.64s' has this version already", o->model);
    if (o->share >= 1000)
        return err_set(e, SHOAL_EINVAL, "the share of a canary must be below 100 %%");
    struct desired_rollout r = {.model = o->model,
                                .kind = o->kind,
                                .source = o->source ? o->source : "",
                                .memory_bytes = o->memory_bytes};
    if (o->kind == DESIRED_CANARY) {
        r.share = o->share ? o->share : DEFAULT_SHARE;
        fill_judge(&r.judge, o);
    }
    memcpy(r.from, m->sha256, SHA256_BYTES);
    memcpy(r.to, o->to, SHA256_BYTES);
    return put(d, &r, o->by, now_ms, out, e);
}

struct desired_rollout *rollout_admin_find(const struct desired *d, const char *name)
{
    struct desired_rollout *r = desired_find_rollout(d, name);
    const struct desired_rollout *now = rollout_of(d, name);
    if (r)
        return r;
    if (now)
        return &d->rollouts[now - d->rollouts];
    for (uint32_t i = d->n_rollouts; i > 0; i--) /* the last one */
        if (strcmp(d->rollouts[i - 1].model, name) == 0)
            return &d->rollouts[i - 1];
    return NULL;
}

static int step(struct desired *d, struct desired_rollout *r, enum desired_rollout_state state,
                uint32_t share, const char *what, const char *by, uint64_t now_ms, struct err *e)
{
    char text[256];
    snprintf(text, sizeof(text), "%s%s%.120s", what, by && by[0] ? " by " : "", by ? by : "");
    const struct desired_step s = {now_ms, state, share, text};
    int rc = desired_put_step(d, r, &s);
    return rc < 0 ? err_set(e, rc, "rollout") : 0;
}

static int refuse(const struct desired_rollout *r, const char *what, struct err *e)
{
    return err_set(e, SHOAL_EINVAL, "rollout %.64s is %s: %s", r->id,
                   desired_rollout_state_text(r->state), what);
}

/* The state that it was in before it was paused. */
static enum desired_rollout_state before_pause(const struct desired_rollout *r)
{
    for (uint32_t i = r->n_steps; i > 0; i--)
        if (r->steps[i - 1].state != DESIRED_PAUSED)
            return r->steps[i - 1].state;
    return DESIRED_STAGING;
}

static int promote(struct desired *d, struct desired_rollout *r, const char *by, uint64_t now_ms,
                   struct err *e)
{
    enum desired_rollout_state was = before_pause(r);
    bool judged = r->kind == DESIRED_CANARY && r->share < 1000 && was == DESIRED_RUNNING;
    if (r->state == DESIRED_PAUSED)
        return step(d, r, was, r->share, "resumed", by, now_ms, e);
    if (r->state != DESIRED_RUNNING || !judged)
        return refuse(r, "only a running canary or a paused rollout can be promoted", e);
    return step(d, r, was, 1000, "promoted", by, now_ms, e);
}

/* The same in reverse, with the data of the old version. */
static int start_back(struct desired *d, const struct desired_rollout *r, const char *by,
                      uint64_t now_ms, const struct desired_rollout **out, struct err *e)
{
    const struct desired_model *m = desired_find_model(d, r->model);
    const struct desired_rollout *now = rollout_of(d, r->model);
    if (now)
        return err_set(e, SHOAL_EINVAL, "rollout %.64s of this model is %s: undo that one first",
                       now->id, desired_rollout_state_text(now->state));
    if (!m || memcmp(m->sha256, r->to, SHA256_BYTES) != 0)
        return refuse(r, "the model's version has changed since then; undo the last rollout first",
                      e);
    struct desired_rollout back = {.model = r->model,
                                   .kind = r->kind == DESIRED_CANARY ? DESIRED_ROLLING : r->kind,
                                   .source = r->source,
                                   .memory_bytes = r->memory_bytes};
    memcpy(back.from, r->to, SHA256_BYTES);
    memcpy(back.to, r->from, SHA256_BYTES);
    return put(d, &back, by, now_ms, out, e);
}

int rollout_admin_act(struct desired *d, const char *name, enum rollout_action action,
                      const char *by, uint64_t now_ms, const struct desired_rollout **out,
                      struct err *e)
{
    struct desired_rollout *r = rollout_admin_find(d, name);
    *out = r;
    if (!r)
        return err_set(e, SHOAL_ENOTFOUND,
                       "there is no rollout '%.64s': see 'shoal rollout status'", name);
    if (action == ROLLOUT_UNDO && r->state == DESIRED_DONE)
        return start_back(d, r, by, now_ms, out, e);
    if (!rollout_active(r))
        return refuse(r, "it is over", e);
    if (r->state == DESIRED_UNDOING)
        return refuse(r, "wait until it is undone", e);
    if (action == ROLLOUT_UNDO)
        return step(d, r, DESIRED_UNDOING, r->share, "undone", by, now_ms, e);
    if (action == ROLLOUT_PROMOTE)
        return promote(d, r, by, now_ms, e);
    if (r->state == DESIRED_PAUSED)
        return refuse(r, "'shoal rollout promote' resumes it", e);
    return step(d, r, DESIRED_PAUSED, r->share, "paused", by, now_ms, e);
}

int rollout_admin_score(struct desired *d, const char *name, uint32_t from, uint32_t to,
                        uint64_t now_ms, struct err *e)
{
    struct desired_rollout *r = rollout_admin_find(d, name);
    char text[160];
    if (!r || !rollout_active(r))
        return err_set(e, SHOAL_ENOTFOUND, "rollout '%.64s' is not in progress", name);
    if (from > 1000 || to > 1000)
        return err_set(e, SHOAL_EINVAL, "scores are thousandths");
    r->judge.score_from = from + 1;
    r->judge.score_to = to + 1;
    snprintf(text, sizeof(text), "scored: %.1f %% right, the old version %.1f %%", to / 10.0,
             from / 10.0);
    return step(d, r, r->state, r->share, text, NULL, now_ms, e);
}
