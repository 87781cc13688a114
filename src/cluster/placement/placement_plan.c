/* placement_plan.c - see placement.h.  place_index reads the input, place_fit and place_improve
 * change the placement, place_order makes steps of the changes. */
#include "cluster/placement/placement.h"

#include "base/mem.h"
#include "cluster/placement/place_improve.h"
#include "cluster/placement/place_index.h"
#include "cluster/placement/place_order.h"
#include "cluster/placement/place_words.h"

#define MAX_PASSES 16u /* fitting and improving, until neither changes anything */
#define MAX_PLAN_BYTES ((size_t)1 << 31)

struct box { /* a plan and its memory */
    struct placement_plan plan;
    struct arena arena;
};

static int check_policy(const struct placement_policy *p, struct err *e)
{
    const double values[] = {p->zone_weight, p->cost_weight, p->battery_weight, p->pack_weight,
                             p->min_gain,    p->battery_min, p->battery_margin};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (!(values[i] >= 0 && values[i] <= 1e6))
            return err_set(e, SHOAL_EINVAL,
                           "a weight or limit of the placement policy is not from 0 to 1000000");
    return 0;
}

static void list_places(struct box *b, struct place_core *c)
{
    struct placement_plan *p = &b->plan;
    p->places = arena_zalloc_n(&b->arena, c->n_replicas + 1, sizeof(*p->places));
    p->gaps = arena_zalloc_n(&b->arena, c->n_models + 1, sizeof(*p->gaps));
    if (!p->places || !p->gaps)
        return;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        for (uint32_t r = c->nodes[i].first; r != PLACEMENT_NONE; r = c->replicas[r].next_on_node) {
            uint32_t model = c->replicas[r].model;
            if (model != PLACEMENT_NONE && !c->replicas[r].stale)
                p->places[p->n_places++] =
                    (struct placement_place){c->nodes[i].input, c->models[model].input};
        }
    for (uint32_t i = 0; i < c->n_models; i++) {
        uint32_t n_missing;
        const char *reason = place_words_gap(&b->arena, c, i, &n_missing);
        if (reason)
            p->gaps[p->n_gaps++] = (struct placement_gap){c->models[i].input, n_missing, reason};
    }
    p->cost = place_core_total(c);
}

static int plan_core(struct box *b, struct place_core *c, struct err *e)
{
    struct place_fit f;
    uint32_t n_moves = 0;
    int rc = place_fit_init(&f, c, e);
    if (rc < 0)
        return rc;
    for (uint32_t pass = 0; pass < MAX_PASSES; pass++) {
        size_t before = c->n_ops;
        place_fit_run(&f);
        place_improve_run(&f, &n_moves);
        if (c->n_ops == before || c->failed)
            break;
    }
    if (c->failed)
        return err_set(e, SHOAL_ENOMEM, "placement");
    rc = place_order_steps(&b->plan, &b->arena, c, e);
    if (rc == 0)
        list_places(b, c);
    if (rc == 0 && b->arena.rc < 0)
        rc = err_set(e, b->arena.rc, "placement");
    return rc;
}

int placement_plan(struct placement_plan **out, const struct placement_input *in, struct err *e)
{
    struct place_core c = {0};
    struct box *b = mem_zalloc(sizeof(*b));
    *out = NULL;
    if (!b)
        return err_set(e, SHOAL_ENOMEM, "placement");
    arena_init(&b->arena, MAX_PLAN_BYTES);
    int rc = check_policy(&in->policy, e);
    if (rc == 0)
        rc = place_index_build(&c, in, e);
    if (rc == 0)
        rc = plan_core(b, &c, e);
    place_core_fini(&c);
    if (rc < 0)
        placement_destroy(&b->plan);
    else
        *out = &b->plan;
    return rc;
}

void placement_destroy(struct placement_plan *plan)
{
    if (!plan)
        return;
    struct box *b = (struct box *)plan; /* the plan is its first member */
    arena_fini(&b->arena);
    mem_free(b);
}
