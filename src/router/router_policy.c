/* router_policy.c - see router_policy.h. */
#include "router/router_policy.h"

#include <stddef.h>
#include <string.h>

static const char *const names[ROUTER_N_STEPS] = {
    [ROUTER_FIT] = "fit",
    [ROUTER_QUALITY] = "quality",
    [ROUTER_COST] = "cost",
    [ROUTER_ENERGY] = "energy",
    [ROUTER_SPARE] = "battery",
    [ROUTER_LATENCY] = "latency",
    [ROUTER_LEAST_LOADED] = "least_loaded",
    [ROUTER_ROUND_ROBIN] = "round_robin",
    [ROUTER_HASH] = "hash",
};

static const struct {
    const char *name;
    enum router_step steps[3];
} several[] = {
    {"sla", {ROUTER_FIT, ROUTER_QUALITY, ROUTER_LATENCY}},
    {"cheapest", {ROUTER_FIT, ROUTER_COST, ROUTER_LATENCY}},
};

static int append(struct router_policy *p, enum router_step s, struct err *e)
{
    if (p->n == ROUTER_MAX_STEPS)
        return err_set(e, SHOAL_EINVAL, "a policy has at most %u steps", ROUTER_MAX_STEPS);
    p->steps[p->n++] = s;
    return 0;
}

int router_policy_add(struct router_policy *p, const char *word, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof(several) / sizeof(several[0]); i++)
        if (strcmp(word, several[i].name) == 0) {
            for (size_t k = 0; k < 3 && rc == 0; k++)
                rc = append(p, several[i].steps[k], e);
            return rc;
        }
    for (int i = 0; i < ROUTER_N_STEPS; i++)
        if (strcmp(word, names[i]) == 0)
            return append(p, (enum router_step)i, e);
    return err_set(e, SHOAL_EINVAL,
                   "'%.40s' is not a policy (known: sla, cheapest, fit, quality, cost, energy, "
                   "battery, latency, least_loaded, round_robin, hash)",
                   word);
}

const char *router_step_name(enum router_step s)
{
    return names[s];
}
