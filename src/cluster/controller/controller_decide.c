/* controller_decide.c - see controller_decide.h. */
#include "cluster/controller/controller_decide.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_plan.h"
#include "cluster/controller/controller_copies.h"
#include "cluster/controller/controller_input.h"
#include "cluster/controller/controller_memory.h"
#include "cluster/controller/controller_scale.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"
#include "cluster/placement/placement.h"
#include "cluster/rollout/rollout.h"

#define MAX_OUTCOME_BYTES ((size_t)4 << 20)
#define MAX_INPUT_BYTES ((size_t)1 << 30)
#define AWAY_MS 60000u /* how long the assignments of an absent node are kept */

/* Shared by the steps of a decision. */
struct deciding {
    struct desired *d;
    const struct controller_snapshot *s;
    struct controller_memory *m;
    struct controller_outcome *out;
};

void controller_outcome_init(struct controller_outcome *o)
{
    *o = (struct controller_outcome){.n_notes = 0};
    arena_init(&o->arena, MAX_OUTCOME_BYTES);
}

void controller_outcome_fini(struct controller_outcome *o)
{
    arena_fini(&o->arena);
}

static void note(struct deciding *k, enum event_log_kind kind, const char *node, const char *model,
                 const char *text)
{
    struct controller_outcome *o = k->out;
    if (!o->notes)
        o->notes = arena_zalloc_n(&o->arena, CONTROLLER_MAX_NOTES, sizeof(*o->notes));
    if (!o->notes || o->n_notes == CONTROLLER_MAX_NOTES)
        return;
    o->notes[o->n_notes++] = (struct controller_note){kind, arena_printf(&o->arena, "%s", node),
                                                      arena_printf(&o->arena, "%s", model),
                                                      arena_printf(&o->arena, "%s", text)};
}

/* ---- what is over ---- */

/* Whether the assignment has ended. */
static bool is_over(struct deciding *k, const struct desired_assignment *a)
{
    const struct node_state *node = controller_snapshot_node(k->s, a->node);
    if (!node)
        return controller_memory_away_ms(k->m, a->node, k->s->clock_ms) > AWAY_MS;
    const struct node_model *held = controller_input_held(node, a->model, a->sha256);
    if (a->duty == DESIRED_LEAVE)
        return !held || held->duty == 0;
    if (held && held->duty && held->error[0]) {
        if (controller_memory_fail(k->m, a->node, a->model, a->sha256, k->s->clock_ms))
            note(k, EVENT_LOG_MODEL_FAILED, a->node, a->model, held->error);
        return true;
    }
    if (held && held->state == REGISTRY_READY)
        controller_memory_heal(k->m, a->node, a->model, a->sha256);
    return false;
}

static void drop_what_is_over(struct deciding *k)
{
    for (uint32_t i = 0; i < k->d->n_assignments;) {
        struct desired_assignment *a = &k->d->assignments[i];
        if (rollout_of(k->d, a->model) ||
            !is_over(k, a)) { /* a rollout manages its own assignments */
            i++;
            continue;
        }
        desired_remove_assignment(k->d, a);
        k->out->changed = true;
    }
    controller_memory_sweep(k->m);
}

/* ---- what nodes have measured ---- */

/* Takes over memory and kinds of models from the nodes that have them loaded. */
static void learn(struct deciding *k)
{
    for (uint32_t i = 0; i < k->d->n_models; i++) {
        struct desired_model *m = &k->d->models[i];
        uint64_t bytes = 0;
        uint32_t kinds = 0;
        for (uint32_t n = 0; n < k->s->n_nodes; n++) {
            const struct node_model *h = controller_input_held(&k->s->nodes[n], m->name, m->sha256);
            if (!h || h->state != REGISTRY_READY)
                continue;
            kinds |= h->kinds;
            if (h->bytes > bytes && h->bytes <= PLACEMENT_MAX_MODEL_BYTES)
                bytes = h->bytes;
        }
        if (kinds && m->kinds == 0) {
            m->kinds = kinds;
            k->out->changed = true;
        }
        /* Within a tenth it is the same: nodes differ a little. */
        if (bytes && (m->memory_bytes == 0 || bytes > m->memory_bytes ||
                      bytes + bytes / 10 < m->memory_bytes)) {
            m->memory_bytes = bytes;
            k->out->changed = true;
        }
    }
}

/* ---- planning ---- */

struct tally { /* replicas of one model */
    uint32_t ready, loading;
};

/* While replacements are being loaded, serving replicas stay, as far as they are needed. The
 * planner only considers the minimum. */
static void hold_back(const struct desired *d, const struct placement_input *in,
                      struct placement_plan *p, struct tally *t)
{
    for (size_t i = 0; i < in->n_current; i++)
        for (size_t m = 0; m < in->n_models; m++)
            if (strcmp(in->current[i].model, in->models[m].name) == 0) {
                t[m].ready += in->current[i].state == PLACEMENT_READY;
                t[m].loading += in->current[i].state == PLACEMENT_LOADING;
                break;
            }
    for (size_t i = 0; i < p->n_steps; i++) {
        struct placement_step *s = &p->steps[i];
        if (s->wave != 0 || s->model == PLACEMENT_NONE)
            continue;
        if (rollout_of(d, s->model_name)) {
            s->wave = 1; /* when the rollout has ended */
            continue;
        }
        if (s->action == PLACEMENT_LOAD) {
            t[s->model].loading++;
            continue;
        }
        const struct desired_model *m = desired_find_model(d, s->model_name);
        uint32_t want = m && m->replicas_want > m->replicas_min ? m->replicas_want
                        : m                                     ? m->replicas_min
                                                                : 0;
        if (in->current[s->replica].state != PLACEMENT_READY)
            continue;
        if (t[s->model].loading > 0 && t[s->model].ready <= want)
            s->wave = 1; /* held back: the next plan decides again */
        else
            t[s->model].ready--;
    }
}

static void note_steps(struct deciding *k, const struct placement_input *in,
                       const struct placement_plan *p)
{
    char text[EVENT_LOG_MAX_TEXT];
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct placement_step *s = &p->steps[i];
        if (s->wave != 0)
            continue;
        snprintf(text, sizeof(text), "%s: %s", s->action == PLACEMENT_LOAD ? "load" : "leave",
                 s->reason);
        note(k, EVENT_LOG_PLACEMENT, s->node_name, s->model_name, text);
    }
    k->out->n_steps = (uint32_t)p->n_steps;
    k->out->n_gaps = (uint32_t)p->n_gaps;
    if (p->n_gaps > 0)
        snprintf(k->out->gap, sizeof(k->out->gap), "%s: %s", in->models[p->gaps[0].model].name,
                 p->gaps[0].reason);
}

static bool is_first_wave(const struct placement_plan *p)
{
    for (size_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].wave == 0)
            return true;
    return false;
}

static void on_copies(void *ctx, const char *node, const char *model, uint32_t was, uint32_t now)
{
    struct deciding *k = ctx;
    char text[EVENT_LOG_MAX_TEXT];
    snprintf(text, sizeof(text), "%u replicas on this node instead of %u", now, was);
    note(k, EVENT_LOG_PLACEMENT, node, model, text);
    k->out->changed = true;
}

static int plan(struct deciding *k, struct err *e)
{
    struct placement_plan *p = NULL;
    struct placement_input in;
    struct arena a;
    arena_init(&a, MAX_INPUT_BYTES);
    int rc = controller_input_make(&in, k->d, k->s, k->m, &a, e);
    if (rc == 0)
        rc = placement_plan(&p, &in, e);
    struct tally *t = rc == 0 ? arena_zalloc_n(&a, in.n_models, sizeof(*t)) : NULL;
    if (rc == 0 && !t)
        rc = err_set(e, SHOAL_ENOMEM, "plan");
    if (rc == 0) {
        hold_back(k->d, &in, p, t);
        controller_copies_hold(k->d, &in, p);
        note_steps(k, &in, p);
        if (is_first_wave(p)) {
            rc = desired_plan_apply(k->d, &in, p, k->s->now_ms, e);
            k->out->changed = true;
        }
        if (rc == 0)
            rc = controller_copies(k->d, k->s, &in, p, &a, on_copies, k, e);
    }
    placement_destroy(p);
    arena_fini(&a);
    return rc;
}

/* ---- rollouts ---- */

static void on_step(void *ctx, const struct desired_rollout *r, const char *text)
{
    char line[EVENT_LOG_MAX_TEXT];
    snprintf(line, sizeof(line), "%s: %s", r->id, text);
    note(ctx, EVENT_LOG_ROLLOUT_STEP, "", r->model, line);
}

int controller_decide(struct desired *d, const struct controller_snapshot *s,
                      struct controller_memory *m, struct controller_outcome *out, struct err *e)
{
    struct deciding k = {d, s, m, out};
    const struct rollout_input in = {s->nodes, s->n_nodes, s->oldest_epoch, s->now_ms, s->term_ms};
    int rc = rollout_step(d, &in, &out->changed, on_step, &k, e);
    if (rc < 0)
        return rc;
    drop_what_is_over(&k);
    learn(&k);
    for (uint32_t i = 0; i < d->n_models; i++) {
        char text[AUTOSCALE_REASON_BYTES + 64];
        if (controller_scale(&d->models[i], s, m, text, sizeof(text))) {
            note(&k, EVENT_LOG_PLACEMENT, "", d->models[i].name, text);
            out->changed = true;
        }
    }
    return plan(&k, e);
}
