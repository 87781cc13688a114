/* plan.h - turns a file's tensors into the parts of a model: vectors as floats, matrices to tile.
 * It also tracks which tensors were claimed: an unclaimed tensor means that the architecture is
 * not fully supported and would compute wrong results.
 *
 * Thread:    used by one thread while a model is loaded; its results are immutable afterwards.
 * Ownership: borrows the model file and the weights; small tensors own their floats until
 *            plan_small_tensors_fini.
 * Failure:   0 or SHOAL_E* with the tensor's name.  Private to src/model. */
#ifndef SHOAL_MODEL_PLAN_H
#define SHOAL_MODEL_PLAN_H

#include "model/weights.h"

#define NO_MAT UINT32_MAX

struct small_tensors { /* as floats */
    float **list;
    uint32_t n;
};
void plan_small_tensors_fini(struct small_tensors *v);

struct linear {        /* y = W x + bias */
    uint32_t mat;      /* index in weights; NO_MAT: absent */
    const float *bias; /* or NULL */
    uint32_t out_at;   /* first column of its result in the output */
};

/* Computes tiles [t0, t1) of one product with its bias; column 0 of out is the first row of t0. */
void plan_linear_product(const struct kern_ops *k, const struct weights *w, const struct linear *l,
                         const struct kern_act *a, uint32_t n_tokens, uint32_t t0, uint32_t t1,
                         float *out, size_t ld);
static inline bool linear_is_int(const struct weights *w, const struct linear *l)
{
    return l->mat != NO_MAT && !kern_fmt_is_float(w->mats[l->mat].fmt);
}

/* Form of a product's input besides floats.  Blocks and wide groups never mix: with int8 all
 * matrices that share an input are wide, or none. */
enum linear_input { LINEAR_INPUT_FLOATS, LINEAR_INPUT_BLOCKS, LINEAR_INPUT_WIDE };
/* The form that a matrix needs, combined with that of others; absent ones need none. */
enum linear_input plan_linear_wants(const struct weights *w, const struct linear *l,
                                    enum linear_input others);
/* Columns that are rounded together; for floats, a good granularity for splitting. */
static inline uint32_t linear_input_unit(enum linear_input in)
{
    return in == LINEAR_INPUT_WIDE ? KERN_WIDE : 32;
}
/* Converts units u0 to u1 of token t's input to that form. */
void plan_linear_round(const struct kern_ops *k, const struct kern_act *a, enum linear_input in,
                       uint32_t t, uint32_t u0, uint32_t u1);
/* Converts the whole input. */
void plan_linear_round_all(const struct kern_ops *k, const struct kern_act *a, enum linear_input in,
                           uint32_t t);

struct plan {
    const struct model_file *file;
    struct weights *weights;
    struct small_tensors *vectors;
    bool *claimed; /* per tensor of the file */
    struct err *e;
};

SHOAL_MUST_CHECK int plan_init(struct plan *p, const struct model_file *file, struct weights *w,
                               struct small_tensors *v, struct err *e);
void plan_fini(struct plan *p);
/* NULL if the file has no such tensor.  claim_prefix: claims all whose names start like that. */
const struct model_file_tensor *plan_claim(struct plan *p, const char *name);
void plan_claim_prefix(struct plan *p, const char *prefix);
/* "part.kind" (layer < 0) or "blk.layer.part.kind": a vector of n floats; NULL if the file has none
 * and it is not required. */
SHOAL_MUST_CHECK int plan_vector(struct plan *p, const float **out, int layer, const char *part,
                                 const char *kind, uint32_t n, bool required);
/* n floats of any shape, required; kind NULL: the name has none. */
SHOAL_MUST_CHECK int plan_values(struct plan *p, const float **out, int layer, const char *part,
                                 const char *kind, uint32_t n);
/* A whole table [*n_rows][n_cols] as floats; NULL if the file has none and it is not required. */
SHOAL_MUST_CHECK int plan_table(struct plan *p, const float **out, const char *name,
                                uint32_t *n_rows, uint32_t n_cols, bool required);
/* The weights of a convolution with n_taps values for each channel, as [n_taps][n_channels];
 * required. */
SHOAL_MUST_CHECK int plan_taps(struct plan *p, const float **out, int layer, const char *part,
                               uint32_t n_channels, uint32_t n_taps);
/* "....weight" and, if present, "....bias".  n_rows 0: as many as the file has. */
SHOAL_MUST_CHECK int plan_linear(struct plan *p, struct linear *l, int layer, const char *part,
                                 uint32_t n_rows, uint32_t n_cols, bool required);
/* Rows of a matrix that holds several one after the other (n_all rows), without a bias: n_rows from
 * row0 on. */
SHOAL_MUST_CHECK int plan_linear_rows(struct plan *p, struct linear *l, int layer, const char *part,
                                      uint32_t row0, uint32_t n_rows, uint32_t n_all,
                                      uint32_t n_cols);
/* A part of a matrix: n_rows from row0 on of the n_all that begin at row `first` of a tensor with
 * n_tensor rows, with its bias.  n_rows 0: only claimed, and absent. */
struct plan_part {
    uint32_t n_tensor, first, n_all, row0, n_rows;
};
SHOAL_MUST_CHECK int plan_linear_part(struct plan *p, struct linear *l, int layer, const char *part,
                                      const struct plan_part *rows, uint32_t n_cols);
/* Whether the file has "blk.layer.part.weight". */
bool plan_has(const struct plan *p, int layer, const char *part);
/* Matrix `which` of a tensor that holds n_all of them, without a bias. */
SHOAL_MUST_CHECK int plan_linear_of(struct plan *p, struct linear *l, int layer, const char *part,
                                    uint32_t which, uint32_t n_all, uint32_t n_rows,
                                    uint32_t n_cols);
/* Fails if a tensor was not claimed; arch is for the message. */
SHOAL_MUST_CHECK int plan_check_all_claimed(const struct plan *p, const char *arch);

/* ---- scratch: one allocation, divided in two rounds; the first only computes the size -------- */

struct carve {
    uint8_t *base; /* NULL: only count */
    size_t bytes;
};
void *plan_carve_take(struct carve *c, size_t n);
/* The input of a product with its integer form, max_tokens rows of n_cols over x. */
void plan_carve_act(struct carve *c, struct kern_act *a, float *x, uint32_t max_tokens,
                    uint32_t n_cols);

#endif
