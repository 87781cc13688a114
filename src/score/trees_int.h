/* trees_int.h - shared by the parser, builder and interpreter of trees; see trees.h.
 *
 * A row is first converted to slots: one for each way in which some split reads a feature.  A
 * missing value becomes minus or plus infinity there, depending on where the split sends it, so a
 * numerical split is a single comparison and the walk needs no other branches. */
#ifndef SHOAL_SCORE_TREES_INT_H
#define SHOAL_SCORE_TREES_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "score/trees.h"

enum {
    TREES_LANES = 8,           /* trees walked in parallel */
    TREES_MAX_LEAVES = 131072, /* per tree: LightGBM's own limit */
    TREES_MAX_FEATURES = 1 << 24,
    TREES_MAX_TREES = 1 << 20,
};
/* LightGBM treats values up to this as zero; it is a float constant there. */
#define TREES_ZERO ((double)1e-35f)

/* How a split reads its feature. */
enum trees_read {
    TREES_READ_PLAIN,     /* missing is 0 */
    TREES_READ_NAN_LEFT,  /* missing goes left: minus infinity */
    TREES_READ_NAN_RIGHT, /* plus infinity */
    TREES_READ_ZERO_LEFT, /* zero is missing too */
    TREES_READ_ZERO_RIGHT,
    TREES_READ_CATEGORY, /* an integer from 0 up, or one that is in no set */
    TREES_N_READS
};

/* Siblings are neighbours: the walk continues at next + (value > threshold).  A leaf reads slot 0,
 * which is minus infinity, and its next is itself, so it stays in place until all lanes are done.
 */
struct trees_node {
    union {
        double threshold; /* for a leaf: its value */
        struct {
            uint32_t word;  /* categorical split: index of its set of categories that go left */
            uint32_t words; /* TREES_SET + n_words */
        } set;
    };
    uint32_t slot, next;
};

/* Makes the number of words look like a normal double: the walk compares before it knows the kind,
 * and CPUs are slow with denormal doubles. */
#define TREES_SET 0x3ff00000u
#define TREES_SET_MAX_WORDS 0xfffffu

struct trees_linear { /* of one leaf, in leaf order */
    double constant;
    uint32_t at, n; /* position and number of its coefficients */
};

struct trees_coeff {
    double factor;
    uint32_t feature;
};

struct trees_tree {
    uint32_t root;
    uint32_t linear_at; /* position of its first leaf */
    bool linear;
};

enum trees_link {
    TREES_LINK_NONE,
    TREES_LINK_SIGMOID,
    TREES_LINK_SOFTMAX,
    TREES_LINK_EXP,
    TREES_LINK_LOG1P_EXP,
    TREES_LINK_SIGNED_SQUARE,
};

struct trees {
    struct trees_node *nodes; /* 64-byte aligned */
    uint32_t *leaf_of;        /* [n_nodes] number of a leaf in the file */
    uint32_t *words;          /* sets of categories */
    uint32_t *roots;  /* [n_trees], padded to a multiple of TREES_LANES with a leaf of value 0 */
    char *group_sets; /* [groups of TREES_LANES] whether a group has categorical splits */
    struct trees_tree *trees; /* [n_trees] */
    struct trees_linear *linears;
    struct trees_coeff *coeffs;
    uint32_t *slot_features;           /* [n_slots], [0] unused */
    uint32_t read_ends[TREES_N_READS]; /* slots are grouped by the way of reading: group ends */
    uint32_t n_nodes, n_trees, n_slots, n_features, n_outputs;
    bool any_linear, average;
    enum trees_link link;
    double sigmoid;
    char *objective;
    char *names_text; /* owns the names */
    const char **names;
};

/* One tree as given in the file, not yet validated.  Children: a node, or -1 - leaf. */
struct trees_raw {
    int64_t n_leaves, n_sets;
    const int64_t *features, *decisions, *left, *right; /* [n_leaves - 1] */
    const double *thresholds;                           /* [n_leaves - 1] */
    const double *values;                               /* [n_leaves] */
    const int64_t *set_bounds;                          /* [n_sets + 1] */
    const int64_t *set_words;                           /* [n_set_words] */
    size_t n_set_words;
    bool linear;
    const double *constants;       /* [n_leaves] */
    const int64_t *n_coeffs;       /* [n_leaves] */
    const int64_t *coeff_features; /* [n_all_coeffs] */
    const double *coeffs;          /* [n_all_coeffs] */
    size_t n_all_coeffs;
};

struct trees_build {
    struct trees *t; /* n_features and n_outputs are set */
    struct buf nodes, leaf_of, words, trees, linears, coeffs;
    struct buf pending, seen; /* nodes of the current tree */
    struct buf group_sets;
    bool has_sets;             /* so far in this group */
    double min_leaf, max_leaf; /* of all values */
};

int trees_build_init(struct trees_build *b, uint32_t n_features);
void trees_build_fini(struct trees_build *b);
/* Validates and adds one tree; the error text does not name the tree. */
SHOAL_MUST_CHECK int trees_build_add(struct trees_build *b, const struct trees_raw *raw,
                                     struct err *e);
/* Moves everything into b->t. */
SHOAL_MUST_CHECK int trees_build_finish(struct trees_build *b, struct err *e);

#endif
