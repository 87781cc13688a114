/* experts.h - a feed-forward of many experts, of which each token uses a few.
 *
 * The tokens of a pass are grouped by expert, so an expert's weights are read once for all of its
 * tokens, and those of others not at all.  A token's result does not depend on the others: its
 * experts are ordered by how much it wants them, and added in that order.
 *
 * Thread:    experts_choose by one crew member, then experts_run by many, one group each.
 * Ownership: borrows everything; the memory is the decoder's scratch.  Private to src/model. */
#ifndef SHOAL_MODEL_EXPERTS_H
#define SHOAL_MODEL_EXPERTS_H

#include "model/plan.h"

struct expert {
    struct linear gate, up, down;
};

struct expert_group { /* consecutive rows of one expert */
    uint32_t expert, first, n;
};

struct experts {        /* of a decoder */
    uint32_t n, n_used; /* 0: none */
    bool renormalize;   /* the weights of those used add up to 1 */
    bool int_in, int_hidden;
    float *routes; /* [max_batch][n]: how much each token wants each expert */
    /* For row r = token * n_used + i: */
    uint32_t *choice; /* its expert */
    float *weight;
    uint32_t *place; /* its row among the gathered ones */
    uint32_t *token; /* of a gathered row */
    uint32_t *count; /* [n]: rows of each expert, then where they begin */
    struct expert_group *groups;
    uint32_t n_groups;
    /* gathered rows, [max_batch * n_used] */
    float *x, *hidden, *up, *out;
    struct kern_act act_x, act_hidden;
};

/* Claims the tensors of a layer: list [n_experts]. */
SHOAL_MUST_CHECK int experts_plan(struct plan *p, struct linear *router, struct expert *list,
                                  uint32_t n, int layer, uint32_t width, uint32_t dim);
/* Whether the inputs of some expert's products are rounded to integers. */
void experts_inputs(struct experts *x, const struct weights *w, const struct expert *list);
void experts_carve(struct carve *at, struct experts *x, uint32_t max_batch, uint32_t dim,
                   uint32_t width);
/* From the routes of n_tokens: the choices, their weights, and the groups. */
void experts_choose(struct experts *x, const struct kern_ops *k, uint32_t n_tokens);
/* Most groups that so many tokens can have. */
static inline uint32_t experts_most_groups(const struct experts *x, uint32_t n_tokens)
{
    return n_tokens * x->n_used < x->n ? n_tokens * x->n_used : x->n;
}
/* Computes a group from the tokens' inputs, gate times up with SiLU. */
void experts_run(struct experts *x, const struct kern_ops *k, const struct weights *w,
                 const struct expert *list, const struct kern_act *in, uint32_t group);
/* y [dim] = the sum of a token's experts. */
void experts_sum(const struct experts *x, const struct kern_ops *k, uint32_t token, float *y,
                 uint32_t dim);

#endif
