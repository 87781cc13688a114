/* rollout_view.c - see rollout_view.h. */
#include "cluster/rollout/rollout_view.h"

#include <string.h>

#include "base/arena.h"
#include "cluster/control/desired.h"
#include "cluster/messages/node_state.h"

static const struct node_model *held_by(const struct node_state *s, const char *model,
                                        const uint8_t *sum)
{
    const struct node_model *m = NULL;
    while (s && (m = node_state_next(s, m, model, 0)))
        if (m->sum && memcmp(m->sum, sum, SHA256_BYTES) == 0)
            return m;
    return NULL;
}

static const struct node_state *node_of(const struct node_state *nodes, uint32_t n,
                                        const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(nodes[i].name, name) == 0)
            return &nodes[i];
    return NULL;
}

static struct rollout_place *place_of(struct rollout_view *v, const struct desired_rollout *r,
                                      const char *node, const struct node_state *alive)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (strcmp(v->places[i].node, node) == 0)
            return &v->places[i];
    struct rollout_place *p = &v->places[v->n++];
    p->node = node;
    p->alive = alive;
    memcpy(p->from.sha256, r->from, SHA256_BYTES);
    memcpy(p->to.sha256, r->to, SHA256_BYTES);
    p->from.held = held_by(alive, v->model, r->from);
    p->to.held = held_by(alive, v->model, r->to);
    return p;
}

int rollout_view_make(struct rollout_view *v, struct desired *d, const struct desired_rollout *r,
                      const struct node_state *nodes, uint32_t n_nodes, uint64_t now_ms,
                      struct arena *a)
{
    uint32_t cap = n_nodes;
    for (uint32_t i = 0; i < d->n_assignments; i++)
        cap += strcmp(d->assignments[i].model, r->model) == 0;
    *v = (struct rollout_view){.d = d, .model = r->model, .now_ms = now_ms};
    v->places = arena_zalloc_n(a, cap, sizeof(*v->places));
    if (!v->places)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *x = &d->assignments[i];
        bool is_to = memcmp(x->sha256, r->to, SHA256_BYTES) == 0;
        if (strcmp(x->model, r->model) != 0 ||
            (!is_to && memcmp(x->sha256, r->from, SHA256_BYTES) != 0))
            continue;
        struct rollout_place *p = place_of(v, r, x->node, node_of(nodes, n_nodes, x->node));
        struct rollout_side *s = is_to ? &p->to : &p->from;
        s->duty = x->duty;
        s->epoch = x->epoch;
        s->until = x->until;
        s->since_ms = x->since_ms;
    }
    for (uint32_t i = 0; i < n_nodes; i++) /* from a node's own configuration */
        if (held_by(&nodes[i], r->model, r->from))
            (void)place_of(v, r, nodes[i].name, &nodes[i]);
    return 0;
}

void rollout_view_set(struct rollout_view *v, struct rollout_place *p, struct rollout_side *s,
                      uint32_t duty, uint64_t epoch, uint64_t until)
{
    if (s->duty == duty && (duty == 0 || (s->epoch == epoch && s->until == until)))
        return;
    struct desired_assignment *at = desired_find_assignment(v->d, p->node, v->model, s->sha256);
    if (duty) {
        struct desired_assignment x = {.node = p->node,
                                       .model = v->model,
                                       .duty = (enum desired_duty)duty,
                                       .epoch = epoch,
                                       .until = until,
                                       .since_ms = v->now_ms};
        memcpy(x.sha256, s->sha256, SHA256_BYTES);
        int rc = desired_put_assignment(v->d, &x);
        if (rc < 0 && v->rc == 0)
            v->rc = rc;
    } else if (at) {
        desired_remove_assignment(v->d, at);
    }
    s->duty = duty;
    s->epoch = epoch;
    s->until = until;
    s->since_ms = v->now_ms;
    v->changed = true;
}

bool rollout_view_ready(const struct rollout_side *s)
{
    return s->held && s->held->state == REGISTRY_READY && !rollout_view_error(s);
}

bool rollout_view_serves(const struct rollout_side *s)
{
    const struct node_model *m = s->held;
    return rollout_view_ready(s) && s->duty == DESIRED_SERVE &&
           (m->duty == DESIRED_SERVE || m->duty == 0) && m->epoch == s->epoch &&
           m->until == s->until;
}

const char *rollout_view_error(const struct rollout_side *s)
{
    if (!s->held || (s->held->state != REGISTRY_FAILED && (!s->held->error || !s->held->error[0])))
        return NULL;
    return s->held->error && s->held->error[0] ? s->held->error : "it could not be loaded";
}

uint32_t rollout_view_busy(const struct rollout_side *s)
{
    return s->held ? s->held->in_flight : 0;
}

uint32_t rollout_view_serving(const struct rollout_view *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const struct rollout_place *p = &v->places[i];
        bool old = rollout_view_ready(&p->from) && p->from.duty != DESIRED_LEAVE &&
                   p->from.duty != DESIRED_STAGE;
        n += p->alive && !p->alive->draining && (old || rollout_view_serves(&p->to));
    }
    return n;
}
