/* trees.c - see trees.h: walks a row through the nodes of trees_int.h. */
#include "score/trees.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "score/trees_int.h"

void trees_close(struct trees *t)
{
    if (!t)
        return;
    mem_free(t->nodes);
    mem_free(t->leaf_of);
    mem_free(t->words);
    mem_free(t->roots);
    mem_free(t->group_sets);
    mem_free(t->trees);
    mem_free(t->linears);
    mem_free(t->coeffs);
    mem_free(t->slot_features);
    mem_free(t->objective);
    mem_free(t->names_text);
    mem_free(t->names);
    mem_free(t);
}

struct trees_info trees_info(const struct trees *t)
{
    return (struct trees_info){
        .n_features = t->n_features,
        .n_outputs = t->n_outputs,
        .n_trees = t->n_trees,
        .objective = t->objective ? t->objective : "",
        .feature_names = t->names,
        .average = t->average,
    };
}

size_t trees_scratch(const struct trees *t)
{
    return t->n_slots;
}

/* ---- a row in slots ----------------------------------------------------------------------- */

/* Not in any set, like an int that is out of range. */
#define NO_CATEGORY 2147483648.0

static void fill_slots(const struct trees *t, const double *row, double *slots)
{
    const uint32_t *from = t->slot_features, *ends = t->read_ends;
    uint32_t i = 1;
    slots[0] = -INFINITY;
    for (; i < ends[TREES_READ_PLAIN]; i++) {
        double x = row[from[i]];
        slots[i] = isnan(x) ? 0 : x;
    }
    for (; i < ends[TREES_READ_NAN_LEFT]; i++) {
        double x = row[from[i]];
        slots[i] = isnan(x) ? -INFINITY : x;
    }
    /* An infinite value must not be taken for a missing one. */
    for (; i < ends[TREES_READ_NAN_RIGHT]; i++) {
        double x = row[from[i]];
        slots[i] = isnan(x) ? INFINITY : x < DBL_MAX ? x : DBL_MAX;
    }
    for (; i < ends[TREES_READ_ZERO_LEFT]; i++) {
        double x = row[from[i]];
        slots[i] = fabs(x) > TREES_ZERO ? x : -INFINITY;
    }
    for (; i < ends[TREES_READ_ZERO_RIGHT]; i++) {
        double x = row[from[i]];
        slots[i] = !(fabs(x) > TREES_ZERO) ? INFINITY : x < DBL_MAX ? x : DBL_MAX;
    }
    for (; i < ends[TREES_READ_CATEGORY]; i++) {
        double x = row[from[i]];
        /* Above the range of int, LightGBM's conversion also gives a negative number. */
        slots[i] = x > -1 && x < NO_CATEGORY ? trunc(x) : NO_CATEGORY;
    }
}

/* ---- the walk ----------------------------------------------------------------------------- */

static inline uint32_t step(const struct trees_node *n, const double *slots)
{
    return n->next + (slots[n->slot] > n->threshold);
}

/* Branchless: the kind of the next split is unpredictable. */
static inline uint32_t step_sets(const uint32_t *words, const struct trees_node *n,
                                 const double *slots, uint32_t first_set)
{
    const double x = slots[n->slot];
    const uint32_t set = 0u - (uint32_t)(n->slot >= first_set); /* all ones, or zero */
    union {
        double d;
        uint64_t bits;
    } category = {x};
    category.bits &= (uint64_t)(int64_t)(int32_t)set; /* a valid index, whatever x is */
    const uint64_t c = (uint64_t)(int64_t)category.d;
    const uint32_t inside = 0u - (uint32_t)(c / 32 < ((n->set.words - TREES_SET) & set));
    const uint32_t word = words[(n->set.word + (uint32_t)(c / 32)) & inside];
    const uint32_t right_of_set = ~(word >> c % 32 & inside);
    const uint32_t right = (right_of_set & set) | ((uint32_t)(x > n->threshold) & ~set);
    return n->next + (right & 1);
}

/* Walks eight trees at once to hide memory latency.  Trees that have reached a leaf stay there
 * while the others continue; the check whether all are done runs only every fourth step. */
static void walk(const struct trees *t, const double *slots, uint32_t group,
                 uint32_t at[TREES_LANES])
{
    const struct trees_node *nodes = t->nodes;
    uint32_t i[TREES_LANES], moved;
    memcpy(i, t->roots + (size_t)group * TREES_LANES, sizeof(i));
    do {
        for (int s = 0; s < 3; s++)
#pragma GCC unroll 8
            for (int k = 0; k < TREES_LANES; k++)
                i[k] = step(&nodes[i[k]], slots);
        moved = 0;
#pragma GCC unroll 8
        for (int k = 0; k < TREES_LANES; k++) {
            uint32_t next = step(&nodes[i[k]], slots);
            moved |= next ^ i[k];
            i[k] = next;
        }
    } while (moved);
    memcpy(at, i, sizeof(i));
}

static void walk_sets(const struct trees *t, const double *slots, uint32_t group,
                      uint32_t at[TREES_LANES])
{
    const uint32_t first_set = t->read_ends[TREES_READ_ZERO_RIGHT], *words = t->words;
    const struct trees_node *nodes = t->nodes;
    uint32_t i[TREES_LANES], moved;
    memcpy(i, t->roots + (size_t)group * TREES_LANES, sizeof(i));
    do {
#pragma GCC unroll 8
        for (int k = 0; k < TREES_LANES; k++)
            i[k] = step_sets(words, &nodes[i[k]], slots, first_set);
        moved = 0;
#pragma GCC unroll 8
        for (int k = 0; k < TREES_LANES; k++) {
            uint32_t next = step_sets(words, &nodes[i[k]], slots, first_set);
            moved |= next ^ i[k];
            i[k] = next;
        }
    } while (moved);
    memcpy(at, i, sizeof(i));
}

static void walk_group(const struct trees *t, const double *slots, uint32_t group,
                       uint32_t at[TREES_LANES])
{
    if (t->group_sets[group])
        walk_sets(t, slots, group, at);
    else
        walk(t, slots, group, at);
}

/* ---- scores ------------------------------------------------------------------------------- */

static double leaf_value(const struct trees *t, const double *row, uint32_t tree, uint32_t node)
{
    double plain = t->nodes[node].threshold;
    if (!t->any_linear || !t->trees[tree].linear)
        return plain;
    const struct trees_linear *l = &t->linears[t->trees[tree].linear_at + t->leaf_of[node]];
    double sum = l->constant;
    for (uint32_t i = 0; i < l->n; i++) {
        double x = row[t->coeffs[l->at + i].feature];
        if (isnan(x))
            return plain;
        sum += t->coeffs[l->at + i].factor * x;
    }
    return sum;
}

static void raw_scores(const struct trees *t, const double *row, const double *slots, double *out)
{
    uint32_t at[TREES_LANES], k_out = 0;
    memset(out, 0, t->n_outputs * sizeof(*out));
    for (uint32_t tree = 0; tree < t->n_trees; tree += TREES_LANES) {
        uint32_t n = t->n_trees - tree < TREES_LANES ? t->n_trees - tree : TREES_LANES;
        walk_group(t, slots, tree / TREES_LANES, at);
        for (uint32_t k = 0; k < n; k++) {
            out[k_out] += leaf_value(t, row, tree + k, at[k]);
            if (++k_out == t->n_outputs)
                k_out = 0;
        }
    }
}

static void softmax(double *x, uint32_t n)
{
    double max = x[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (uint32_t i = 0; i < n; i++) {
        x[i] = exp(x[i] - max);
        sum += x[i];
    }
    for (uint32_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void transform(const struct trees *t, double *out)
{
    if (t->average)
        for (uint32_t k = 0; k < t->n_outputs; k++)
            out[k] /= t->n_trees / t->n_outputs;
    switch (t->link) {
    case TREES_LINK_NONE:
        break;
    case TREES_LINK_SIGMOID:
        for (uint32_t k = 0; k < t->n_outputs; k++)
            out[k] = 1.0 / (1.0 + exp(-t->sigmoid * out[k]));
        break;
    case TREES_LINK_SOFTMAX:
        softmax(out, t->n_outputs);
        break;
    case TREES_LINK_EXP:
        out[0] = exp(out[0]);
        break;
    case TREES_LINK_LOG1P_EXP:
        out[0] = log1p(exp(out[0]));
        break;
    case TREES_LINK_SIGNED_SQUARE:
        out[0] = copysign(out[0] * out[0], out[0]);
        break;
    }
}

void trees_predict(const struct trees *t, const double *rows, size_t n_rows, bool raw, double *out,
                   double *scratch)
{
    for (size_t r = 0; r < n_rows; r++) {
        const double *row = rows + r * t->n_features;
        double *to = out + r * t->n_outputs;
        fill_slots(t, row, scratch);
        raw_scores(t, row, scratch, to);
        if (!raw)
            transform(t, to);
    }
}

void trees_leaves(const struct trees *t, const double *row, uint32_t *out, double *scratch)
{
    uint32_t at[TREES_LANES];
    fill_slots(t, row, scratch);
    for (uint32_t tree = 0; tree < t->n_trees; tree++) {
        if (tree % TREES_LANES == 0)
            walk_group(t, scratch, tree / TREES_LANES, at);
        out[tree] = t->leaf_of[at[tree % TREES_LANES]];
    }
}
