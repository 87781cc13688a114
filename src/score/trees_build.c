/* trees_build.c - converts the trees of a file, one by one, to the node array of trees_int.h.
 *
 * A tree is laid out from its root, level by level.  Each node and leaf must be reached exactly
 * once, so that no walk can loop or leave the array. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "score/trees_int.h"

enum { DECISION_SET = 1, DECISION_DEFAULT_LEFT = 2 };

struct pending { /* a node of the file whose position in the array is known */
    uint32_t raw, node;
};

int trees_build_init(struct trees_build *b, uint32_t n_features)
{
    memset(b, 0, sizeof(*b));
    struct buf *bufs[] = {&b->nodes,  &b->leaf_of, &b->words, &b->trees,     &b->linears,
                          &b->coeffs, &b->pending, &b->seen,  &b->group_sets};
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
        buf_init(bufs[i], (size_t)UINT32_MAX * 8);
    b->min_leaf = DBL_MAX;
    b->max_leaf = -DBL_MAX;
    b->t = mem_zalloc(sizeof(*b->t));
    if (!b->t)
        return SHOAL_ENOMEM;
    b->t->n_features = n_features;
    return 0;
}

void trees_build_fini(struct trees_build *b)
{
    buf_fini(&b->nodes);
    buf_fini(&b->leaf_of);
    buf_fini(&b->words);
    buf_fini(&b->trees);
    buf_fini(&b->linears);
    buf_fini(&b->coeffs);
    buf_fini(&b->pending);
    buf_fini(&b->seen);
    buf_fini(&b->group_sets);
    trees_close(b->t);
    b->t = NULL;
}

static uint32_t n_nodes(const struct trees_build *b)
{
    return (uint32_t)(b->nodes.len / sizeof(struct trees_node));
}

/* Appends an empty leaf of value 0. */
static void add_node(struct trees_build *b)
{
    uint32_t at = n_nodes(b), none = UINT32_MAX;
    struct trees_node n = {.next = at};
    buf_put(&b->nodes, &n, sizeof(n));
    buf_put(&b->leaf_of, &none, sizeof(none));
}

static struct trees_node *node_at(struct trees_build *b, uint32_t i)
{
    return (struct trees_node *)(void *)b->nodes.data + i;
}

/* LightGBM treats tiny values of a row as zero.  Moving a threshold that lies among them has the
 * same effect. */
static double past_zero(double threshold)
{
    if (fabs(threshold) > TREES_ZERO)
        return threshold;
    return threshold >= 0 ? TREES_ZERO : nextafter(-TREES_ZERO, -INFINITY);
}

static int put_set(struct trees_build *b, const struct trees_raw *raw, uint32_t i,
                   struct trees_node *n, struct err *e)
{
    double index = raw->thresholds[i];
    if (!(index >= 0 && index < (double)raw->n_sets) || index != floor(index))
        return err_set(e, SHOAL_EFORMAT, "node %u: there is no set %g among %lld", i, index,
                       (long long)raw->n_sets);
    int64_t from = raw->set_bounds[(size_t)index], to = raw->set_bounds[(size_t)index + 1];
    if (from < 0 || to < from || (uint64_t)to > raw->n_set_words)
        return err_set(e, SHOAL_EFORMAT,
                       "node %u: set of words %lld to %lld is outside the %zu words", i,
                       (long long)from, (long long)to, raw->n_set_words);
    if (to - from > TREES_SET_MAX_WORDS)
        return err_set(e, SHOAL_ELIMIT, "node %u: a set of %lld words is too large", i,
                       (long long)(to - from));
    n->set.word = (uint32_t)(b->words.len / sizeof(uint32_t));
    n->set.words = TREES_SET + (uint32_t)(to - from);
    for (int64_t w = from; w < to; w++) {
        if (raw->set_words[w] < 0 || raw->set_words[w] > UINT32_MAX)
            return err_set(e, SHOAL_EFORMAT, "node %u: set word %lld is out of range", i,
                           (long long)raw->set_words[w]);
        uint32_t word = (uint32_t)raw->set_words[w];
        buf_put(&b->words, &word, sizeof(word));
    }
    b->has_sets = true;
    return b->words.rc;
}

/* Fills a split except for the positions of its children. */
static int put_split(struct trees_build *b, const struct trees_raw *raw, uint32_t i, uint32_t node,
                     struct err *e)
{
    static const enum trees_read reads[3][2] = {
        {TREES_READ_PLAIN, TREES_READ_PLAIN},
        {TREES_READ_ZERO_RIGHT, TREES_READ_ZERO_LEFT},
        {TREES_READ_NAN_RIGHT, TREES_READ_NAN_LEFT},
    };
    int64_t feature = raw->features[i], decision = raw->decisions[i];
    struct trees_node n = {0};
    enum trees_read read = TREES_READ_CATEGORY;

    if (feature < 0 || feature >= b->t->n_features)
        return err_set(e, SHOAL_EFORMAT, "node %u: feature %lld is not one of %u", i,
                       (long long)feature, b->t->n_features);
    if (decision < 0 || decision >> 2 > 2)
        return err_set(e, SHOAL_EFORMAT, "node %u: unknown decision type %lld", i,
                       (long long)decision);
    if (decision & DECISION_SET) {
        int rc = put_set(b, raw, i, &n, e);
        if (rc < 0)
            return rc;
    } else {
        read = reads[decision >> 2][(decision & DECISION_DEFAULT_LEFT) != 0];
        n.threshold = past_zero(raw->thresholds[i]);
        /* Missing values that go right are plus infinity; no other value may be, see fill_slots. */
        if (n.threshold > DBL_MAX &&
            (read == TREES_READ_NAN_RIGHT || read == TREES_READ_ZERO_RIGHT))
            n.threshold = DBL_MAX;
    }
    /* Slots are renumbered when all are known. */
    n.slot = (uint32_t)read * b->t->n_features + (uint32_t)feature + 1;
    n.next = n_nodes(b);
    *node_at(b, node) = n;
    return 0;
}

static int put_leaf(struct trees_build *b, const struct trees_raw *raw, uint32_t leaf,
                    uint32_t node, struct err *e)
{
    double v = raw->values[leaf];
    if (!isfinite(v))
        return err_set(e, SHOAL_EFORMAT, "leaf %u: value is not finite", leaf);
    node_at(b, node)->threshold = v;
    memcpy(b->leaf_of.data + node * sizeof(uint32_t), &leaf, sizeof(leaf));
    b->min_leaf = v < b->min_leaf ? v : b->min_leaf;
    b->max_leaf = v > b->max_leaf ? v : b->max_leaf;
    return 0;
}

/* Places a child of node i: a leaf is completed here, a split is queued. */
static int place(struct trees_build *b, const struct trees_raw *raw, uint32_t i, int64_t child,
                 uint32_t node, struct err *e)
{
    bool is_leaf = child < 0;
    int64_t at = is_leaf ? -1 - child : child, n = is_leaf ? raw->n_leaves : raw->n_leaves - 1;
    if (at >= n)
        return err_set(e, SHOAL_EFORMAT, "node %u: there is no %s %lld among %lld", i,
                       is_leaf ? "leaf" : "node", (long long)at, (long long)n);
    char *seen = b->seen.data + (is_leaf ? raw->n_leaves : 0) + at;
    if (*seen)
        return err_set(e, SHOAL_EFORMAT, "node %u: %s %lld has two parents", i,
                       is_leaf ? "leaf" : "node", (long long)at);
    *seen = 1;
    if (is_leaf)
        return put_leaf(b, raw, (uint32_t)at, node, e);
    struct pending p = {(uint32_t)at, node};
    buf_put(&b->pending, &p, sizeof(p));
    return b->pending.rc;
}

static int put_nodes(struct trees_build *b, const struct trees_raw *raw, uint32_t root,
                     struct err *e)
{
    buf_clear(&b->seen);
    buf_clear(&b->pending);
    for (int64_t i = 0; i < 2 * raw->n_leaves; i++)
        buf_putc(&b->seen, 0);
    if (b->seen.rc < 0)
        return b->seen.rc;
    /* Each child is reached once, so this terminates, and then all were reached: a tree of n splits
     * has n + 1 leaves. */
    int rc = place(b, raw, 0, raw->n_leaves > 1 ? 0 : -1, root, e);
    for (size_t done = 0; rc == 0 && done < b->pending.len; done += sizeof(struct pending)) {
        struct pending p;
        memcpy(&p, b->pending.data + done, sizeof(p));
        rc = put_split(b, raw, p.raw, p.node, e);
        if (rc < 0)
            break;
        uint32_t next = n_nodes(b);
        add_node(b);
        add_node(b);
        if (b->nodes.rc < 0 || b->leaf_of.rc < 0)
            return SHOAL_ENOMEM;
        rc = place(b, raw, p.raw, raw->left[p.raw], next, e);
        if (rc == 0)
            rc = place(b, raw, p.raw, raw->right[p.raw], next + 1, e);
    }
    return rc;
}

static int put_linear(struct trees_build *b, const struct trees_raw *raw, struct err *e)
{
    size_t at = 0;
    for (int64_t leaf = 0; leaf < raw->n_leaves; leaf++) {
        int64_t n = raw->n_coeffs[leaf];
        struct trees_linear l = {.constant = raw->constants[leaf],
                                 .at = (uint32_t)(b->coeffs.len / sizeof(struct trees_coeff))};
        if (n < 0 || (uint64_t)n > raw->n_all_coeffs - at || !isfinite(l.constant))
            return err_set(e, SHOAL_EFORMAT,
                           "leaf %lld: bad constant or number of coefficients (%lld)",
                           (long long)leaf, (long long)n);
        l.n = (uint32_t)n;
        for (size_t end = at + (size_t)n; at < end; at++) {
            int64_t f = raw->coeff_features[at];
            if (f < 0 || f >= b->t->n_features || !isfinite(raw->coeffs[at]))
                return err_set(e, SHOAL_EFORMAT, "leaf %lld: bad coefficient of feature %lld",
                               (long long)leaf, (long long)f);
            struct trees_coeff c = {raw->coeffs[at], (uint32_t)f};
            buf_put(&b->coeffs, &c, sizeof(c));
        }
        buf_put(&b->linears, &l, sizeof(l));
    }
    return b->coeffs.rc < 0 ? b->coeffs.rc : b->linears.rc;
}

int trees_build_add(struct trees_build *b, const struct trees_raw *raw, struct err *e)
{
    if (raw->n_leaves < 1 || raw->n_leaves > TREES_MAX_LEAVES)
        return err_set(e, SHOAL_ELIMIT, "%lld leaves are too many", (long long)raw->n_leaves);
    if (b->t->n_trees >= TREES_MAX_TREES || n_nodes(b) > UINT32_MAX / 2 - 2 * TREES_MAX_LEAVES)
        return err_set(e, SHOAL_ELIMIT, "more than %u trees", b->t->n_trees);
    /* Siblings start at even positions, so that both are in one cache line. */
    do
        add_node(b);
    while (b->nodes.rc == 0 && n_nodes(b) % 2 == 0);
    struct trees_tree tree = {.root = n_nodes(b), .linear = raw->linear};
    add_node(b);
    if (b->nodes.rc < 0 || b->leaf_of.rc < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u nodes", tree.root);
    tree.linear_at = (uint32_t)(b->linears.len / sizeof(struct trees_linear));
    int rc = put_nodes(b, raw, tree.root, e);
    if (rc == 0 && raw->linear) {
        b->t->any_linear = true;
        rc = put_linear(b, raw, e);
    }
    if (rc == 0) {
        buf_put(&b->trees, &tree, sizeof(tree));
        b->t->n_trees++;
        if (b->t->n_trees % TREES_LANES == 0) {
            buf_putc(&b->group_sets, b->has_sets);
            b->has_sets = false;
        }
        rc = b->trees.rc < 0 ? b->trees.rc : b->group_sets.rc;
    }
    if (rc == SHOAL_ENOMEM)
        err_set(e, rc, "cannot hold a tree of %lld leaves", (long long)raw->n_leaves);
    return rc;
}

/* Numbers the slots that are used, grouped by the way of reading. */
static int number_slots(struct trees *t, struct err *e)
{
    size_t n_keys = (size_t)t->n_features * TREES_N_READS + 1;
    uint32_t *numbers = mem_zalloc_n(n_keys, sizeof(*numbers));
    if (!numbers)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the slots of %u features",
                       t->n_features);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        numbers[t->nodes[i].slot] = 1;
    numbers[0] = 0; /* slot of the leaves */
    t->n_slots = 1;
    for (size_t k = 1; k < n_keys; k++) {
        if (numbers[k])
            numbers[k] = t->n_slots++;
        if (k % t->n_features == 0)
            t->read_ends[k / t->n_features - 1] = t->n_slots;
    }
    t->slot_features = mem_zalloc_n(t->n_slots, sizeof(*t->slot_features));
    for (size_t k = 1; t->slot_features && k < n_keys; k++)
        if (numbers[k])
            t->slot_features[numbers[k]] = (uint32_t)((k - 1) % t->n_features);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        t->nodes[i].slot = numbers[t->nodes[i].slot];
    mem_free(numbers);
    return t->slot_features ? 0
                            : err_set(e, SHOAL_ENOMEM, "out of memory for %u slots", t->n_slots);
}

/* Takes the contents of a buffer; never NULL just because it is empty. */
static void *take(struct buf *b)
{
    if (b->len == 0)
        buf_putc(b, 0);
    return buf_take(b, NULL);
}

int trees_build_finish(struct trees_build *b, struct err *e)
{
    struct trees *t = b->t;
    uint32_t n_roots = (t->n_trees + TREES_LANES - 1) / TREES_LANES * TREES_LANES;

    add_node(b); /* the leaf of value 0 that pads the last group */
    buf_putc(&b->group_sets, b->has_sets);
    t->n_nodes = n_nodes(b);
    t->nodes = b->nodes.rc < 0 ? NULL : mem_aligned(b->nodes.len);
    t->roots = mem_zalloc_n((size_t)n_roots + 1, sizeof(*t->roots));
    t->trees = take(&b->trees);
    t->leaf_of = take(&b->leaf_of);
    t->words = take(&b->words);
    t->linears = take(&b->linears);
    t->coeffs = take(&b->coeffs);
    t->group_sets = take(&b->group_sets);
    if (!t->nodes || !t->roots || !t->trees || !t->leaf_of || !t->words || !t->linears ||
        !t->coeffs || !t->group_sets)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u trees of %u nodes", t->n_trees,
                       t->n_nodes);
    memcpy(t->nodes, b->nodes.data, b->nodes.len);
    for (uint32_t i = 0; i < n_roots; i++)
        t->roots[i] = i < t->n_trees ? t->trees[i].root : t->n_nodes - 1;
    return number_slots(t, e);
}
