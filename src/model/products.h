/* products.h - the matrix products of a pass as phases of a crew: which part a chunk has, computed
 * in place or into its member's stage.
 *
 * Thread:    crew members; pure but for the memory that out and the stage point to.
 * Ownership: borrows everything.  Private to src/model. */
#ifndef SHOAL_MODEL_PRODUCTS_H
#define SHOAL_MODEL_PRODUCTS_H

#include "base/crew.h"
#include "model/plan.h"

/* Up to so many tokens the per-token work is done in finishes, above it in phases of its own; and
 * products are staged and committed, so that a member which the OS takes away does not stop the
 * others. */
#define PRODUCTS_FEW 2u

/* What a model computes its products with. */
struct products_with {
    const struct kern_ops *k;
    const struct weights *weights;
    float *const *stage; /* per member: [2][PRODUCTS_FEW][stage_rows] */
    size_t stage_rows;
};

/* Some products over the same input, one after the other. */
struct products {
    const struct linear *l;
    uint32_t n_linears;
    const struct kern_act *a;
    float *out;
    size_t ld;
};

/* How a phase of products is divided: n_chunks for so many bytes of weights in so many units that
 * can be taken, and n_groups of tokens.  Chunk c has some rows of group c / (n_chunks / n_groups):
 * with as many groups as members, each keeps to its own tokens and their caches. */
void products_divide(struct crew_phase *p, uint32_t n_members, uint32_t n_tokens, size_t bytes,
                     uint32_t units);
/* Rows of a member's stage when the widest products have most_rows. */
uint32_t products_stage_rows(uint32_t n_members, uint32_t most_rows);
/* 0 for a linear that is absent. */
size_t products_bytes(const struct products_with *w, const struct linear *l);
uint32_t products_tiles(const struct products_with *w, const struct linear *l);

/* Computes chunk c of phase p, of p->n_items tokens: into its place or, when the phase commits,
 * into the member's stage, from where commit takes it. */
void products_run(const struct products_with *w, const struct products *b,
                  const struct crew_phase *p, uint32_t c, uint32_t member);
void products_commit(const struct products_with *w, const struct products *b,
                     const struct crew_phase *p, uint32_t c, uint32_t member);

/* Brings a part of the weights that chunk c begins with near (crew_phase.ahead). */
bool products_ahead(const struct products_with *w, const struct products *b,
                    const struct crew_phase *p, uint32_t c, uint32_t step);

/* ---- feed-forward: act(gate) * up, or act(up) ------------------------------------------------ */

enum products_act {
    PRODUCTS_ACT_SILU, /* gated only */
    PRODUCTS_ACT_GELU, /* tanh form */
    PRODUCTS_ACT_GELU_ERF,
    PRODUCTS_ACT_RELU /* these two: not gated */
};

struct products_ffn {
    const struct linear *gate, *up; /* gate->mat NO_MAT: not gated */
    enum products_act act;
    const struct kern_act *in, *hidden; /* hidden->n_cols: the width */
    float *h, *h_up;                    /* [tokens][width]; h is what hidden reads */
    enum linear_input form;             /* that hidden is wanted in */
};

/* In units that a phase's chunks can take. */
static inline uint32_t products_ffn_units(const struct products_ffn *f)
{
    const uint32_t unit = linear_input_unit(f->form);
    return (f->hidden->n_cols + unit - 1) / unit;
}
void products_ffn_run(const struct products_with *w, const struct products_ffn *f,
                      const struct crew_phase *p, uint32_t c, uint32_t member);
void products_ffn_commit(const struct products_with *w, const struct products_ffn *f,
                         const struct crew_phase *p, uint32_t c, uint32_t member);
bool products_ffn_ahead(const struct products_with *w, const struct products_ffn *f,
                        const struct crew_phase *p, uint32_t c, uint32_t step);

#endif
