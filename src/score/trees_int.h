/* trees_int.h - between the reader of trees, their builder and their run; see trees.h.
 *
 * A row is first laid out in slots: one per way in which some split reads some feature.  A missing
 * value becomes minus or plus infinity there, according to where the split sends it, so that a
 * numerical split is one comparison and the walk has no other branches. */
#ifndef SHOAL_SCORE_TREES_INT_H
#define SHOAL_SCORE_TREES_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "score/trees.h"

enum {
    TREES_LANES = 8,           /* trees that are walked side by side */
    TREES_MAX_LEAVES = 131072, /* of one tree: LightGBM's own limit */
    TREES_MAX_FEATURES = 1 << 24,
    TREES_MAX_TREES = 1 << 20,
};
/* What LightGBM takes for zero is up to this; it stands as a float there. */
#define TREES_ZERO ((double)1e-35f)

/* How a split reads its feature. */
enum trees_read {
    TREES_READ_PLAIN,     /* missing is 0 */
    TREES_READ_NAN_LEFT,  /* missing goes left: minus infinity */
    TREES_READ_NAN_RIGHT, /* plus infinity */
    TREES_READ_ZERO_LEFT, /* zero is missing too */
    TREES_READ_ZERO_RIGHT,
    TREES_READ_CATEGORY, /* an integer from 0 up, or one in no set */
    TREES_N_READS
};

/* Siblings are neighbours: the walk goes to next + (value > threshold).  A leaf reads slot 0, which
 * is minus infinity, and its next is itself: so it is walked on the spot until all lanes are done.
 */
struct trees_node {
    union {
        double threshold; /* of a leaf: its value */
        struct {
            uint32_t word;  /* of a categorical split: where its set of those that go left is, */
            uint32_t words; /* and TREES_SET + n_words */
        } set;
    };
    uint32_t slot, next;
};

/* With this above it the number of words looks like a double of usual size: the walk compares first
 * and asks later, and processors are slow with doubles that are almost zero. */
#define TREES_SET 0x3ff00000u
#define TREES_SET_MAX_WORDS 0xfffffu

struct trees_linear { /* of one leaf, in order of the leaves */
    double constant;
    uint32_t at, n; /* of its coefficients */
};

struct trees_coeff {
    double factor;
    uint32_t feature;
};

struct trees_tree {
    uint32_t root;
    uint32_t linear_at; /* of its first leaf */
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
    uint32_t *leaf_of;        /* [n_nodes] the file's number of a leaf */
    uint32_t *words;          /* sets of categories */
    uint32_t *roots;  /* [n_trees], then up to a multiple of TREES_LANES a leaf of value 0 */
    char *group_sets; /* [groups of TREES_LANES] whether one has categorical splits */
    struct trees_tree *trees; /* [n_trees] */
    struct trees_linear *linears;
    struct trees_coeff *coeffs;
    uint32_t *slot_features;           /* [n_slots], [0] unused */
    uint32_t read_ends[TREES_N_READS]; /* slots of each way of reading, one after the other */
    uint32_t n_nodes, n_trees, n_slots, n_features, n_outputs;
    bool any_linear, average;
    enum trees_link link;
    double sigmoid;
    char *objective;
    char *names_text; /* storage of names */
    const char **names;
};

/* One tree as a file tells it; nothing in it is trusted.  Children: a node, or -1 - leaf. */
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
    struct buf pending, seen; /* nodes of the tree that is being built */
    struct buf group_sets;
    bool has_sets;             /* so far in this group */
    double min_leaf, max_leaf; /* of all values */
};

int trees_build_init(struct trees_build *b, uint32_t n_features);
void trees_build_fini(struct trees_build *b);
/* Checks and adds one tree; the error does not name it. */
SHOAL_MUST_CHECK int trees_build_add(struct trees_build *b, const struct trees_raw *raw,
                                     struct err *e);
/* Moves everything into b->t. */
SHOAL_MUST_CHECK int trees_build_finish(struct trees_build *b, struct err *e);

#endif
