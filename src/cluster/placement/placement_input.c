/* placement_input.c - the input of a plan: defaults, validation of nodes, speed of a model on a
 * node. See placement.h. */
#include "cluster/placement/placement.h"

struct placement_policy placement_policy_default(void)
{
    return (struct placement_policy){.zone_weight = 2,
                                     .cost_weight = 0.2,
                                     .battery_weight = 1,
                                     .pack_weight = 0.1,
                                     .min_gain = 0.25,
                                     .battery_min = 0.15,
                                     .battery_margin = 0.1,
                                     .cooldown_ms = 5 * 60 * 1000,
                                     .max_moves = 64};
}

double placement_rate(const struct placement_node *node, const struct placement_model *model)
{
    const struct placement_speed *s = &node->speed[model->kind];
    double bytes = (double)(model->bytes ? model->bytes : model->memory_bytes);
    double by_bytes = s->bytes_per_s / bytes, by_probe = s->tokens_per_s;
    if (by_bytes <= 0 || by_probe <= 0)
        return by_bytes > 0 ? by_bytes : by_probe;
    return by_bytes < by_probe ? by_bytes : by_probe;
}

static bool number_ok(double v, double max)
{
    return v >= 0 && v <= max; /* false for NaN */
}

int placement_valid_node(const struct placement_node *n, struct err *e)
{
    if (!n->name || !n->name[0])
        return err_set(e, SHOAL_EINVAL, "a node has no name");
    if (!number_ok(n->load, 1e6) || !number_ok(n->cost, 1e6))
        return err_set(e, SHOAL_EINVAL, "node %s: load and cost must be numbers from 0 up",
                       n->name);
    if (n->on_battery && !number_ok(n->battery, 1))
        return err_set(e, SHOAL_EINVAL, "node %s: battery must be from 0 to 1", n->name);
    for (int k = 0; k < PLACEMENT_N_KINDS; k++)
        if (!number_ok(n->speed[k].bytes_per_s, 1e18) || !number_ok(n->speed[k].tokens_per_s, 1e18))
            return err_set(e, SHOAL_EINVAL, "node %s: a speed must be a number from 0 up", n->name);
    if (n->memory_bytes > PLACEMENT_MAX_NODE_BYTES)
        return err_set(e, SHOAL_EINVAL, "node %s: %llu bytes of memory are too many", n->name,
                       (unsigned long long)n->memory_bytes);
    return 0;
}

uint64_t placement_replica_bytes(const struct placement_replica *r)
{
    return r->memory_bytes < PLACEMENT_MAX_MODEL_BYTES ? r->memory_bytes
                                                       : PLACEMENT_MAX_MODEL_BYTES;
}
