/* products.h - the matrix products of a pass as phases of a crew: splits them into chunks, which
 * are computed in place or into the member's stage.
 *
 * Thread:    crew members; no state except the memory behind out and stage.
 * Ownership: borrows everything.  Private to src/model. */
#ifndef SHOAL_MODEL_PRODUCTS_H
#define SHOAL_MODEL_PRODUCTS_H

#include "base/thread/crew.h"
#include "model/plan.h"

/* Up to this many tokens, per-token work is done in the finish of a phase instead of a phase of its
 * own, and products are staged and committed so that a preempted member does not stall the
 * others. */
#define PRODUCTS_FEW 2u

/* The context that a model computes its products in. */
struct products_with {
    const struct kern_ops *k;
    const struct weights *weights;
    float *const *stage; /* per member: [2][PRODUCTS_FEW][stage_rows] */
    size_t stage_rows;
};

/* Several products over the same input, one after the other. */
struct products {
    const struct linear *l;
    uint32_t n_linears;
    const struct kern_act *a;
    float *out;
    size_t ld;
};

/* Chooses n_chunks for a phase of products from the bytes of its weights, the number of units that
 * they can be split into, and n_groups of tokens.  Chunk c covers some rows of group
 * c / (n_chunks / n_groups): with one group per member, each keeps to its own tokens and caches. */
void products_divide(struct crew_phase *p, uint32_t n_members, uint32_t n_tokens, size_t bytes,
                     uint32_t units);
/* Rows of a member's stage if the widest products have most_rows. */
uint32_t products_stage_rows(uint32_t n_members, uint32_t most_rows);
/* 0 if the linear is absent. */
size_t products_bytes(const struct products_with *w, const struct linear *l);
uint32_t products_tiles(const struct products_with *w, const struct linear *l);

/* Computes chunk c of phase p with p->n_items tokens: in place or, if the phase has a commit, into
 * the member's stage, from which commit copies it. */
void products_run(const struct products_with *w, const struct products *b,
                  const struct crew_phase *p, uint32_t c, uint32_t member);
void products_commit(const struct products_with *w, const struct products *b,
                     const struct crew_phase *p, uint32_t c, uint32_t member);

/* Prefetches the next part of the weights that chunk c reads first (crew_phase.ahead). */
bool products_ahead(const struct products_with *w, const struct products *b,
                    const struct crew_phase *p, uint32_t c, uint32_t step);

/* ---- feed-forward: act(gate) * up, or act(up) ------------------------------------------------ */

enum products_act {
    PRODUCTS_ACT_SILU,
    PRODUCTS_ACT_GELU, /* tanh form */
    PRODUCTS_ACT_GELU_ERF,
    PRODUCTS_ACT_RELU /* the last two: not gated */
};

struct products_ffn {
    const struct linear *gate, *up; /* gate->mat is NO_MAT: not gated */
    enum products_act act;
    const struct kern_act *in, *hidden; /* hidden->n_cols: the width */
    float *h, *h_up;                    /* [tokens][width]; hidden reads h */
    enum linear_input form;             /* the form that hidden needs */
};

/* Number of units that a phase's chunks can be split into. */
static inline uint32_t products_ffn_units(const struct products_ffn *f)
{
    const uint32_t unit = linear_input_unit(f->form);
    return (f->hidden->n_cols + unit - 1) / unit;
}
void products_ffn_run(const struct products_with *w, const struct products_ffn *f,
                      const struct crew_phase *p, uint32_t c, uint32_t member);
void products_ffn_commit(const struct products_with *w, const struct products_ffn *f,
                         const struct crew_phase *p, uint32_t c, uint32_t member);
/* Activation and rounding of token t, whose gate and up were computed into h and h_up (not gated:
 * up into h): what products_ffn_run does with them, for the whole width. */
void products_ffn_finish(const struct products_with *w, const struct products_ffn *f, uint32_t t);
/* The activation alone, of columns r0 to r1. */
void products_ffn_activate(const struct products_with *w, const struct products_ffn *f, uint32_t t,
                           uint32_t r0, uint32_t r1);
bool products_ffn_ahead(const struct products_with *w, const struct products_ffn *f,
                        const struct crew_phase *p, uint32_t c, uint32_t step);

#endif
