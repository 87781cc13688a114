/* agent_plan.c - see agent_plan.h. */
#include "cluster/agent/agent_plan.h"

#include <string.h>

#include "cluster/control/desired.h"
#include "cluster/rollout/rollout.h"

enum agent_action agent_plan_item(const struct agent_item *item, uint32_t duty)
{
    bool goes = duty == 0 || duty == DESIRED_LEAVE;
    if (item->phase == AGENT_LEAVING)
        return goes ? AGENT_GOES : AGENT_RETURN;
    return goes ? AGENT_LEAVE : AGENT_STAY;
}

struct registry_service agent_plan_service(const struct desired *d,
                                           const struct desired_assignment *a)
{
    struct registry_service s;
    memset(&s, 0, sizeof(s)); /* the registry compares all of it */
    s.duty = a->duty == DESIRED_SERVE   ? REGISTRY_SERVE
             : a->duty == DESIRED_STAGE ? REGISTRY_STAGE
                                        : REGISTRY_LEAVE;
    s.epoch = a->epoch;
    s.until = a->until;
    s.share = rollout_share(d, a->model, a->sha256);
    return s;
}

uint64_t agent_plan_epoch_end(const struct desired *d)
{
    return rollout_epoch_end(d);
}

const char *agent_plan_source(const struct desired *d, const struct desired_assignment *a)
{
    const struct desired_model *m = desired_find_model(d, a->model);
    const struct desired_rollout *r = rollout_of(d, a->model);
    if (m && r && memcmp(m->sha256, a->sha256, SHA256_BYTES) != 0)
        return r->source; /* source of the version that is not the model's own */
    return m ? m->source : "";
}

bool agent_plan_may_follow(const struct desired *d, uint64_t fence_seen)
{
    return d->fence >= fence_seen;
}

bool agent_plan_set_aside(const struct desired *d, const char *node)
{
    if (!desired_is_drained(d, node))
        return false;
    for (uint32_t i = 0; i < d->n_assignments; i++)
        if (d->assignments[i].duty != DESIRED_LEAVE && strcmp(d->assignments[i].node, node) == 0)
            return false;
    return true;
}
