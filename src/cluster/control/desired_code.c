/* desired_code.c - see desired_code.h. */
#include "cluster/control/desired_code.h"

#include <string.h>

#include "base/mem.h"
#include "cluster/control/desired.h"
#include "shoal/control/v1/control.pb-c.h"
#include "wire/pb.h"

#define MAX_SCRATCH_BYTES (64u << 20)

typedef Shoal__Control__V1__Desired PbDesired;
typedef Shoal__Control__V1__Model PbModel;
typedef Shoal__Control__V1__Assignment PbAssignment;
typedef Shoal__Control__V1__Rollout PbRollout;
typedef Shoal__Control__V1__RolloutStep PbStep;
typedef Shoal__Control__V1__Policy PbPolicy;

/* ---- encoding ------------------------------------------------------------------------------- */

static char **names(const struct desired_names *l)
{
    return (char **)(uintptr_t)l->items;
}

static void put_model(PbModel *to, const struct desired_model *m)
{
    shoal__control__v1__model__init(to);
    to->name = pb_text(m->name);
    to->sha256 = pb_bytes(m->sha256, SHA256_BYTES);
    to->source = pb_text(m->source);
    to->kinds = m->kinds;
    to->memory_bytes = m->memory_bytes;
    to->weight_bytes = m->weight_bytes;
    to->replicas_min = m->replicas_min;
    to->replicas_max = m->replicas_max;
    to->replicas_want = m->replicas_want;
    to->standby = m->standby;
    to->n_pins = m->pins.n;
    to->pins = names(&m->pins);
    to->n_zones = m->zones.n;
    to->zones = names(&m->zones);
    to->n_labels = m->labels.n;
    to->labels = names(&m->labels);
    to->n_not_labels = m->not_labels.n;
    to->not_labels = names(&m->not_labels);
    to->apart = pb_text(m->apart);
    to->max_per_zone = m->max_per_zone;
    to->spread = m->spread;
    to->priority = m->priority;
    to->want_tokens_per_s = m->want_tokens_per_s;
    to->budget_ms = m->budget_ms;
    to->idle_ms = m->idle_ms;
    to->per_node = m->per_node;
}

static void put_assignment(PbAssignment *to, const struct desired_assignment *a)
{
    shoal__control__v1__assignment__init(to);
    to->node = pb_text(a->node);
    to->model = pb_text(a->model);
    to->sha256 = pb_bytes(a->sha256, SHA256_BYTES);
    to->state = a->duty;
    to->epoch = a->epoch;
    to->until = a->until;
    to->since_ms = a->since_ms;
    to->copies = a->copies;
}

static void put_rollout(PbRollout *to, const struct desired_rollout *r, struct arena *a)
{
    shoal__control__v1__rollout__init(to);
    PbStep *steps = pb_list(a, r->n_steps, sizeof(*steps), (void ***)&to->history);
    if (!steps)
        return;
    to->n_history = r->n_steps;
    for (uint32_t i = 0; i < r->n_steps; i++) {
        shoal__control__v1__rollout_step__init(&steps[i]);
        steps[i].at_ms = r->steps[i].at_ms;
        steps[i].state = r->steps[i].state;
        steps[i].share = r->steps[i].share;
        steps[i].text = pb_text(r->steps[i].text);
    }
    to->id = pb_text(r->id);
    to->model = pb_text(r->model);
    to->kind = r->kind;
    to->from = pb_bytes(r->from, SHA256_BYTES);
    to->to = pb_bytes(r->to, SHA256_BYTES);
    to->source = pb_text(r->source);
    to->memory_bytes = r->memory_bytes;
    to->share = r->share;
    to->state = r->state;
    to->epoch = r->epoch;
    to->old_epoch = r->old_epoch;
    to->failed = r->failed;
    to->judge = arena_zalloc(a, sizeof(*to->judge));
    if (!to->judge)
        return;
    shoal__control__v1__judge__init(to->judge);
    to->judge->requests = r->judge.requests;
    to->judge->errors = r->judge.errors;
    to->judge->p95 = r->judge.p95;
    to->judge->score = r->judge.score;
    to->judge->labelled = r->judge.labelled;
    to->judge->score_from = r->judge.score_from;
    to->judge->score_to = r->judge.score_to;
    to->judge->base_requests = r->judge.base_requests;
    to->judge->base_errors = r->judge.base_errors;
}

/* d as a message whose parts are in the arena or borrowed from d. */
static void put_state(PbDesired *to, PbPolicy *policy, const struct desired *d, struct arena *a)
{
    PbModel *models = pb_list(a, d->n_models, sizeof(*models), (void ***)&to->models);
    PbAssignment *assignments =
        pb_list(a, d->n_assignments, sizeof(*assignments), (void ***)&to->assignments);
    PbRollout *rollouts = pb_list(a, d->n_rollouts, sizeof(*rollouts), (void ***)&to->rollouts);
    if (!models || !assignments || !rollouts)
        return;
    to->n_models = d->n_models;
    to->n_assignments = d->n_assignments;
    to->n_rollouts = d->n_rollouts;
    for (uint32_t i = 0; i < d->n_models; i++)
        put_model(&models[i], &d->models[i]);
    for (uint32_t i = 0; i < d->n_assignments; i++)
        put_assignment(&assignments[i], &d->assignments[i]);
    for (uint32_t i = 0; i < d->n_rollouts; i++)
        put_rollout(&rollouts[i], &d->rollouts[i], a);
    to->format = DESIRED_CODE_FORMAT;
    to->id = pb_bytes(d->id, DESIRED_ID_BYTES);
    to->version = d->version;
    to->fence = d->fence;
    to->epoch = d->epoch;
    to->n_drained = d->drained.n;
    to->drained = names(&d->drained);
    to->policy = policy;
    policy->heartbeat_ms = d->policy.heartbeat_ms;
    policy->silent_beats = d->policy.silent_beats;
    policy->zone_weight = d->policy.placement.zone_weight;
    policy->cost_weight = d->policy.placement.cost_weight;
    policy->battery_weight = d->policy.placement.battery_weight;
    policy->pack_weight = d->policy.placement.pack_weight;
    policy->min_gain = d->policy.placement.min_gain;
    policy->battery_min = d->policy.placement.battery_min;
    policy->battery_margin = d->policy.placement.battery_margin;
    policy->cooldown_ms = d->policy.placement.cooldown_ms;
    policy->max_moves = d->policy.placement.max_moves;
}

int desired_code_put(struct buf *out, const struct desired *d, struct err *e)
{
    PbDesired m = SHOAL__CONTROL__V1__DESIRED__INIT;
    PbPolicy policy = SHOAL__CONTROL__V1__POLICY__INIT;
    struct arena scratch;
    size_t n = 0;
    int rc = desired_check(d, e);
    if (rc < 0)
        return rc;
    arena_init(&scratch, MAX_SCRATCH_BYTES);
    put_state(&m, &policy, d, &scratch);
    if ((rc = scratch.rc) == 0)
        n = protobuf_c_message_get_packed_size(&m.base);
    if (rc < 0)
        err_set(e, rc, "cannot encode the desired state");
    else if (n > DESIRED_CODE_MAX_BYTES)
        rc = err_set(e, SHOAL_ELIMIT,
                     "the desired state takes %zu bytes, at most %u: remove models or nodes", n,
                     DESIRED_CODE_MAX_BYTES);
    else if ((rc = pb_put(out, &m.base)) < 0)
        err_set(e, rc, "cannot encode the desired state");
    arena_fini(&scratch);
    return rc;
}

/* ---- decoding ------------------------------------------------------------------------------- */

bool desired_code_unknown(const void *message)
{
    const ProtobufCMessage *m = message;
    if (m->n_unknown_fields)
        return true;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const char *at = (const char *)m + f->offset;
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(const size_t *)(const void *)((const char *)m + f->quantifier_offset);
            ProtobufCMessage *const *items = *(ProtobufCMessage *const *const *)(const void *)at;
            for (size_t k = 0; k < n; k++)
                if (desired_code_unknown(items[k]))
                    return true;
        } else {
            const ProtobufCMessage *part = *(ProtobufCMessage *const *)(const void *)at;
            if (part && desired_code_unknown(part))
                return true;
        }
    }
    return false;
}

static bool get_sum(uint8_t out[SHA256_BYTES], const ProtobufCBinaryData *b)
{
    if (b->len != SHA256_BYTES)
        return false;
    memcpy(out, b->data, SHA256_BYTES);
    return true;
}

/* Names are not copied here: desired_put_model copies them. */
static struct desired_names borrowed(char **items, size_t n)
{
    return (struct desired_names){(const char **)(uintptr_t)items, (uint32_t)n};
}

static int get_model(struct desired *d, const PbModel *m, struct err *e)
{
    struct desired_model to = {.name = m->name,
                               .source = m->source,
                               .kinds = m->kinds,
                               .memory_bytes = m->memory_bytes,
                               .weight_bytes = m->weight_bytes,
                               .replicas_min = m->replicas_min,
                               .replicas_max = m->replicas_max,
                               .replicas_want = m->replicas_want,
                               .standby = m->standby,
                               .pins = borrowed(m->pins, m->n_pins),
                               .zones = borrowed(m->zones, m->n_zones),
                               .labels = borrowed(m->labels, m->n_labels),
                               .not_labels = borrowed(m->not_labels, m->n_not_labels),
                               .apart = m->apart,
                               .max_per_zone = m->max_per_zone,
                               .spread = m->spread,
                               .priority = m->priority,
                               .want_tokens_per_s = m->want_tokens_per_s,
                               .budget_ms = m->budget_ms,
                               .idle_ms = m->idle_ms,
                               .per_node = m->per_node};
    if (!get_sum(to.sha256, &m->sha256))
        return err_set(e, SHOAL_EFORMAT, "model %.127s has no SHA-256", m->name);
    if (desired_find_model(d, m->name)) /* would be replaced */
        return err_set(e, SHOAL_EFORMAT, "two models are named %.127s", m->name);
    int rc = desired_put_model(d, &to);
    return rc < 0 ? err_set(e, rc, "desired state") : 0;
}

static int get_rollout(struct desired *d, const PbRollout *r, struct err *e)
{
    struct desired_step steps[DESIRED_MAX_STEPS];
    struct desired_rollout to = {.id = r->id,
                                 .model = r->model,
                                 .kind = (enum desired_rollout_kind)r->kind,
                                 .source = r->source,
                                 .memory_bytes = r->memory_bytes,
                                 .share = r->share,
                                 .state = (enum desired_rollout_state)r->state,
                                 .epoch = r->epoch,
                                 .old_epoch = r->old_epoch,
                                 .failed = r->failed,
                                 .steps = steps,
                                 .n_steps = (uint32_t)r->n_history};
    const Shoal__Control__V1__Judge *g = r->judge;
    if (!g)
        return err_set(e, SHOAL_EFORMAT, "rollout %.127s has no judge", r->id);
    to.judge = (struct desired_judge){.requests = g->requests,
                                      .errors = g->errors,
                                      .p95 = g->p95,
                                      .score = g->score,
                                      .labelled = g->labelled,
                                      .score_from = g->score_from,
                                      .score_to = g->score_to,
                                      .base_requests = g->base_requests,
                                      .base_errors = g->base_errors};
    if (!get_sum(to.from, &r->from) || !get_sum(to.to, &r->to))
        return err_set(e, SHOAL_EFORMAT, "rollout %.127s has no SHA-256", r->id);
    if (r->n_history > DESIRED_MAX_STEPS)
        return err_set(e, SHOAL_EFORMAT, "rollout %.127s has too many steps", r->id);
    for (size_t i = 0; i < r->n_history; i++)
        steps[i] = (struct desired_step){r->history[i]->at_ms,
                                         (enum desired_rollout_state)r->history[i]->state,
                                         r->history[i]->share, r->history[i]->text};
    if (desired_find_rollout(d, r->id))
        return err_set(e, SHOAL_EFORMAT, "two rollouts have the id %.127s", r->id);
    int rc = desired_put_rollout(d, &to);
    return rc < 0 ? err_set(e, rc, "desired state") : 0;
}

static int get_assignments(struct desired *d, const PbDesired *m, struct err *e)
{
    struct desired_assignment *a = mem_zalloc_n(m->n_assignments + 1, sizeof(*a));
    int rc = a ? 0 : err_set(e, SHOAL_ENOMEM, "desired state");
    for (size_t i = 0; rc == 0 && i < m->n_assignments; i++) {
        const PbAssignment *from = m->assignments[i];
        a[i] = (struct desired_assignment){.node = from->node,
                                           .model = from->model,
                                           .duty = (enum desired_duty)from->state,
                                           .epoch = from->epoch,
                                           .until = from->until,
                                           .since_ms = from->since_ms,
                                           .copies = from->copies};
        if (!get_sum(a[i].sha256, &from->sha256))
            rc = err_set(e, SHOAL_EFORMAT, "node %.127s: an assignment has no SHA-256", from->node);
    }
    if (rc == 0 && (rc = desired_set_assignments(d, a, (uint32_t)m->n_assignments)) < 0)
        err_set(e, rc, "desired state");
    mem_free(a);
    return rc;
}

static int get_state(struct desired *d, const PbDesired *m, struct err *e)
{
    const PbPolicy *p = m->policy;
    int rc = 0;
    memcpy(d->id, m->id.data, DESIRED_ID_BYTES);
    d->version = m->version;
    d->fence = m->fence;
    d->epoch = m->epoch;
    d->policy = (struct desired_policy){p->heartbeat_ms,
                                        p->silent_beats,
                                        {.zone_weight = p->zone_weight,
                                         .cost_weight = p->cost_weight,
                                         .battery_weight = p->battery_weight,
                                         .pack_weight = p->pack_weight,
                                         .min_gain = p->min_gain,
                                         .battery_min = p->battery_min,
                                         .battery_margin = p->battery_margin,
                                         .cooldown_ms = p->cooldown_ms,
                                         .max_moves = p->max_moves}};
    for (size_t i = 0; rc == 0 && i < m->n_models; i++)
        rc = get_model(d, m->models[i], e);
    for (size_t i = 0; rc == 0 && i < m->n_rollouts; i++)
        rc = get_rollout(d, m->rollouts[i], e);
    if (rc == 0)
        rc = get_assignments(d, m, e);
    struct desired_names drained = borrowed(m->drained, m->n_drained);
    if (rc == 0 && (rc = desired_set_all_drained(d, &drained)) < 0)
        err_set(e, rc, "desired state");
    return rc;
}

/* Encodes the decoded state again: an embedded NUL, a duplicate field or a different order would be
 * lost or read differently by others. */
static int same_again(const struct desired *d, const void *bytes, size_t n, struct err *e)
{
    struct buf again;
    buf_init(&again, n + 1);
    int rc = desired_code_put(&again, d, e);
    if (rc == 0 && (again.len != n || (n && memcmp(again.data, bytes, n) != 0)))
        rc = err_set(e, SHOAL_EFORMAT, "the desired state is not encoded as Shoal encodes it");
    buf_fini(&again);
    return rc == SHOAL_EINVAL || rc == SHOAL_ELIMIT ? SHOAL_EFORMAT : rc;
}

int desired_code_get(struct desired **out, const void *bytes, size_t n, struct err *e)
{
    struct desired *d = NULL;
    PbDesired *m = NULL;
    int rc = 0;

    *out = NULL;
    if (n > DESIRED_CODE_MAX_BYTES)
        return err_set(e, SHOAL_EFORMAT, "a desired state of %zu bytes, at most %u", n,
                       DESIRED_CODE_MAX_BYTES);
    m = shoal__control__v1__desired__unpack(pb_heap(), n, bytes);
    if (!m)
        return err_set(e, SHOAL_EFORMAT, "these bytes are not a desired state");
    if (m->format > DESIRED_CODE_FORMAT || desired_code_unknown(m))
        rc = err_set(e, SHOAL_EFORMAT,
                     "the desired state was written by a newer program (format %u, this one knows "
                     "%u): update this member",
                     m->format, DESIRED_CODE_FORMAT);
    else if (m->format != DESIRED_CODE_FORMAT || m->id.len != DESIRED_ID_BYTES || !m->policy)
        rc = err_set(e, SHOAL_EFORMAT, "these bytes are not a desired state");
    else if (m->n_models > DESIRED_MAX_MODELS || m->n_assignments > DESIRED_MAX_ASSIGNMENTS ||
             m->n_rollouts > DESIRED_MAX_ROLLOUTS || m->n_drained > DESIRED_MAX_DRAINED)
        rc = err_set(e, SHOAL_EFORMAT, "the desired state has too many items");
    if (rc == 0)
        rc = desired_create(&d, e);
    if (rc == 0)
        rc = get_state(d, m, e);
    if (rc == 0)
        rc = same_again(d, bytes, n, e);
    shoal__control__v1__desired__free_unpacked(m, pb_heap());
    if (rc < 0) {
        desired_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}
