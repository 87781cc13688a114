/* trees_parse.c - LightGBM's model text: a header of KEY=VALUE lines, then a block of such lines
 * per tree, then information from training, which is ignored. */
#include <math.h>
#include <string.h>

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/file/file_map.h"
#include "base/mem.h"
#include "base/str.h"
#include "score/trees_int.h"

struct reader {
    const char *p, *end;
    unsigned long line; /* number of the last line read */
};

/* Reads the next line without its line end; false at the end of the file. */
static bool take_line(struct reader *r, struct str *out)
{
    if (r->p == r->end)
        return false;
    const char *nl = memchr(r->p, '\n', (size_t)(r->end - r->p));
    const char *stop = nl ? nl : r->end;
    *out = (struct str){r->p, (size_t)(stop - r->p)};
    if (out->n > 0 && out->p[out->n - 1] == '\r')
        out->n--;
    r->p = nl ? nl + 1 : r->end;
    r->line++;
    return true;
}

/* Reads the next word between spaces; false if there is none. */
static bool take_word(struct str *list, struct str *word)
{
    while (list->n > 0 && *list->p == ' ') {
        list->p++;
        list->n--;
    }
    const char *space = memchr(list->p, ' ', list->n);
    *word = (struct str){list->p, space ? (size_t)(space - list->p) : list->n};
    list->p += word->n;
    list->n -= word->n;
    return word->n > 0;
}

static void split_at_equals(struct str line, struct str *key, struct str *value)
{
    const char *eq = memchr(line.p, '=', line.n);
    size_t n = eq ? (size_t)(eq - line.p) : line.n;
    *key = (struct str){line.p, n};
    *value = eq ? (struct str){eq + 1, line.n - n - 1} : (struct str){line.p + n, 0};
}

static bool read_int(struct str w, int64_t *out)
{
    size_t i = w.n > 0 && w.p[0] == '-' ? 1 : 0;
    int64_t v = 0;
    if (i == w.n || w.n > 18)
        return false;
    for (; i < w.n; i++) {
        if (!ascii_is_digit(w.p[i]))
            return false;
        v = v * 10 + (w.p[i] - '0');
    }
    *out = w.p[0] == '-' ? -v : v;
    return true;
}

static bool read_number(struct str w, double *out)
{
    if (w.n == 0)
        return false;
    bool minus = w.p[0] == '-';
    if (str_is((struct str){w.p + minus, w.n - minus}, "inf")) {
        *out = minus ? -INFINITY : INFINITY; /* valid for the last threshold of a feature */
        return true;
    }
    if (decimal_span(w.p, w.n) != w.n)
        return false;
    *out = decimal_read(w.p, w.n);
    return true;
}

/* ---- the header --------------------------------------------------------------------------- */

enum header_key {
    HEADER_VERSION,
    HEADER_NUM_CLASS,
    HEADER_TREES_PER_ITERATION,
    HEADER_MAX_FEATURE,
    HEADER_OBJECTIVE,
    HEADER_AVERAGE,
    HEADER_FEATURE_NAMES,
    HEADER_N_KEYS
};

static const char *const header_names[HEADER_N_KEYS] = {
    [HEADER_VERSION] = "version",
    [HEADER_NUM_CLASS] = "num_class",
    [HEADER_TREES_PER_ITERATION] = "num_tree_per_iteration",
    [HEADER_MAX_FEATURE] = "max_feature_idx",
    [HEADER_OBJECTIVE] = "objective",
    [HEADER_AVERAGE] = "average_output",
    [HEADER_FEATURE_NAMES] = "feature_names",
};

/* Stores the value of a line whose key is one of the names. */
static void note(struct str line, const char *const *names, size_t n, struct str *values)
{
    struct str key, value;
    split_at_equals(line, &key, &value);
    for (size_t i = 0; i < n; i++)
        if (str_is(key, names[i]))
            values[i] = value;
}

static int header_int(const struct str *h, enum header_key key, int64_t min, int64_t max,
                      int64_t *out, struct err *e)
{
    if (!h[key].p)
        return err_set(e, SHOAL_EFORMAT, "the header has no %s", header_names[key]);
    if (!read_int(h[key], out) || *out < min || *out > max)
        return err_set(e, SHOAL_EFORMAT, "%s is not a number from %lld to %lld", header_names[key],
                       (long long)min, (long long)max);
    return 0;
}

static int read_names(struct trees *t, struct str list, struct err *e)
{
    size_t n = 0;
    struct str word;
    t->names_text = mem_strndup(list.p ? list.p : "", list.n);
    t->names = mem_zalloc_n(t->n_features, sizeof(*t->names));
    if (!t->names_text || !t->names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the names of %u features",
                       t->n_features);
    struct str rest = {t->names_text, strlen(t->names_text)};
    while (take_word(&rest, &word)) {
        if (n < t->n_features)
            t->names[n] = word.p;
        n++;
    }
    if (n != t->n_features)
        return err_set(e, SHOAL_EFORMAT, "feature_names has %zu names for %u features", n,
                       t->n_features);
    for (size_t i = 0; i < n; i++)
        t->names_text[strcspn(t->names[i], " ") + (size_t)(t->names[i] - t->names_text)] = '\0';
    return 0;
}

/* ---- the objective ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum trees_link link;
} objectives[] = {
    {"regression", TREES_LINK_NONE}, /* with the word sqrt: TREES_LINK_SIGNED_SQUARE */
    {"regression_l2", TREES_LINK_NONE},
    {"mean_squared_error", TREES_LINK_NONE},
    {"mse", TREES_LINK_NONE},
    {"l2", TREES_LINK_NONE},
    {"l2_root", TREES_LINK_NONE},
    {"root_mean_squared_error", TREES_LINK_NONE},
    {"rmse", TREES_LINK_NONE},
    {"regression_l1", TREES_LINK_NONE},
    {"mean_absolute_error", TREES_LINK_NONE},
    {"l1", TREES_LINK_NONE},
    {"mae", TREES_LINK_NONE},
    {"huber", TREES_LINK_NONE},
    {"fair", TREES_LINK_NONE},
    {"quantile", TREES_LINK_NONE},
    {"mape", TREES_LINK_NONE},
    {"mean_absolute_percentage_error", TREES_LINK_NONE},
    {"lambdarank", TREES_LINK_NONE},
    {"rank_xendcg", TREES_LINK_NONE},
    {"xendcg", TREES_LINK_NONE},
    {"custom", TREES_LINK_NONE},
    {"none", TREES_LINK_NONE},
    {"null", TREES_LINK_NONE},
    {"na", TREES_LINK_NONE},
    {"poisson", TREES_LINK_EXP},
    {"gamma", TREES_LINK_EXP},
    {"tweedie", TREES_LINK_EXP},
    {"binary", TREES_LINK_SIGMOID},
    {"multiclass", TREES_LINK_SOFTMAX},
    {"softmax", TREES_LINK_SOFTMAX},
    {"multiclassova", TREES_LINK_SIGMOID},
    {"multiclass_ova", TREES_LINK_SIGMOID},
    {"ova", TREES_LINK_SIGMOID},
    {"ovr", TREES_LINK_SIGMOID},
    {"cross_entropy", TREES_LINK_SIGMOID},
    {"xentropy", TREES_LINK_SIGMOID},
    {"cross_entropy_lambda", TREES_LINK_LOG1P_EXP},
    {"xentlambda", TREES_LINK_LOG1P_EXP},
};

/* "binary sigmoid:1", "multiclass num_class:3", "regression sqrt" */
static int read_objective(struct trees *t, struct str text, struct err *e)
{
    struct str word, rest = text;
    size_t i = 0, n = sizeof(objectives) / sizeof(objectives[0]);
    t->sigmoid = 1;
    t->link = TREES_LINK_NONE;
    if (!text.p || !take_word(&rest, &word))
        return 0;
    t->objective = mem_strndup(text.p, text.n);
    if (!t->objective)
        return err_set(e, SHOAL_ENOMEM, "objective");
    while (i < n && !str_is(word, objectives[i].name))
        i++;
    if (i == n)
        return err_set(e, SHOAL_EUNSUPPORTED, "objective %.*s", (int)(word.n < 64 ? word.n : 64),
                       word.p);
    t->link = objectives[i].link;
    while (take_word(&rest, &word)) {
        if (str_is(word, "sqrt") && t->link == TREES_LINK_NONE)
            t->link = TREES_LINK_SIGNED_SQUARE;
        if (!str_starts(word, "sigmoid:"))
            continue;
        struct str value = {word.p + 8, word.n - 8};
        if (!read_number(value, &t->sigmoid) || !isfinite(t->sigmoid) || t->sigmoid <= 0)
            return err_set(e, SHOAL_EFORMAT,
                           "the sigmoid parameter of the objective is not positive");
    }
    bool one = t->link == TREES_LINK_EXP || t->link == TREES_LINK_LOG1P_EXP ||
               t->link == TREES_LINK_SIGNED_SQUARE;
    if (one && t->n_outputs != 1)
        return err_set(e, SHOAL_EFORMAT, "objective %s cannot have %u outputs", t->objective,
                       t->n_outputs);
    return 0;
}

/* LightGBM up to 2.2.2 stored transformed values in the leaves of a forest, later versions do not,
 * and both may say version 2.  Probabilities are recognizable: a forest of log odds without any
 * leaf below 0 or above 1 does not occur. */
static bool old_forest(const struct trees_build *b, struct str version)
{
    if (!b->t->average || str_is(version, "v3") || str_is(version, "v4"))
        return false;
    switch (b->t->link) {
    case TREES_LINK_SIGMOID:
    case TREES_LINK_SOFTMAX:
        return b->min_leaf >= 0 && b->max_leaf <= 1;
    case TREES_LINK_EXP:
    case TREES_LINK_LOG1P_EXP:
        return b->min_leaf >= 0;
    default:
        return false;
    }
}

static int read_header(struct trees_build *b, const struct str *h, struct err *e)
{
    int64_t n_class, n_outputs, max_feature;
    int rc = header_int(h, HEADER_NUM_CLASS, 1, TREES_MAX_TREES, &n_class, e);
    n_outputs = n_class;
    if (rc == 0 && h[HEADER_TREES_PER_ITERATION].p)
        rc = header_int(h, HEADER_TREES_PER_ITERATION, 1, TREES_MAX_TREES, &n_outputs, e);
    if (rc == 0)
        rc = header_int(h, HEADER_MAX_FEATURE, 0, TREES_MAX_FEATURES - 1, &max_feature, e);
    if (rc < 0)
        return rc;
    if (n_outputs != n_class)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%lld classes with %lld trees per iteration are not supported",
                       (long long)n_class, (long long)n_outputs);
    /* Each name takes at least two bytes, so a false count cannot cost more memory than the file.
     */
    if ((uint64_t)max_feature > h[HEADER_FEATURE_NAMES].n)
        return err_set(e, SHOAL_EFORMAT, "feature_names is too short for %lld features",
                       (long long)max_feature + 1);
    rc = trees_build_init(b, (uint32_t)max_feature + 1);
    if (rc < 0)
        return err_set(e, rc, "trees");
    b->t->n_outputs = (uint32_t)n_outputs;
    b->t->average = h[HEADER_AVERAGE].p != NULL;
    rc = read_names(b->t, h[HEADER_FEATURE_NAMES], e);
    return rc < 0 ? rc : read_objective(b->t, h[HEADER_OBJECTIVE], e);
}

/* ---- a tree ------------------------------------------------------------------------------- */

enum tree_key {
    TREE_NUM_LEAVES, /* one number each */
    TREE_NUM_CAT,
    TREE_IS_LINEAR,
    TREE_FEATURES, /* lists of integers */
    TREE_DECISIONS,
    TREE_LEFT,
    TREE_RIGHT,
    TREE_SET_BOUNDS,
    TREE_SET_WORDS,
    TREE_N_COEFFS,
    TREE_COEFF_FEATURES,
    TREE_THRESHOLDS, /* lists of numbers */
    TREE_VALUES,
    TREE_CONSTANTS,
    TREE_COEFFS,
    TREE_N_KEYS
};

static const char *const tree_names[TREE_N_KEYS] = {
    [TREE_NUM_LEAVES] = "num_leaves",
    [TREE_NUM_CAT] = "num_cat",
    [TREE_IS_LINEAR] = "is_linear",
    [TREE_FEATURES] = "split_feature",
    [TREE_DECISIONS] = "decision_type",
    [TREE_LEFT] = "left_child",
    [TREE_RIGHT] = "right_child",
    [TREE_SET_BOUNDS] = "cat_boundaries",
    [TREE_SET_WORDS] = "cat_threshold",
    [TREE_N_COEFFS] = "num_features",
    [TREE_COEFF_FEATURES] = "leaf_features",
    [TREE_THRESHOLDS] = "threshold",
    [TREE_VALUES] = "leaf_value",
    [TREE_CONSTANTS] = "leaf_const",
    [TREE_COEFFS] = "leaf_coeff",
};

struct lists { /* reused for each tree */
    struct buf of[TREE_N_KEYS];
};

/* Reads a list of int64_t or double; n: the required length, or -1. */
static int read_list(struct lists *l, const struct str *fields, enum tree_key key, int64_t n,
                     struct err *e)
{
    struct buf *b = &l->of[key];
    struct str word, rest = fields[key];
    int64_t got = 0, v;
    double d;

    buf_clear(b);
    if (!rest.p)
        return err_set(e, SHOAL_EFORMAT, "no %s", tree_names[key]);
    for (; take_word(&rest, &word); got++) {
        bool ok = key >= TREE_THRESHOLDS ? read_number(word, &d) : read_int(word, &v);
        if (!ok)
            return err_set(e, SHOAL_EFORMAT, "%s: value %lld is not a number: %.*s",
                           tree_names[key], (long long)got, (int)(word.n < 40 ? word.n : 40),
                           word.p);
        buf_put(b, key >= TREE_THRESHOLDS ? (const void *)&d : (const void *)&v, 8);
    }
    if (b->rc < 0)
        return err_set(e, b->rc, "cannot hold %s of %lld values", tree_names[key], (long long)got);
    if (n >= 0 && got != n)
        return err_set(e, SHOAL_EFORMAT, "%s has %lld values, expected %lld", tree_names[key],
                       (long long)got, (long long)n);
    return 0;
}

static const int64_t *ints_of(const struct lists *l, enum tree_key key)
{
    return (const int64_t *)(const void *)l->of[key].data;
}

static const double *numbers_of(const struct lists *l, enum tree_key key)
{
    return (const double *)(const void *)l->of[key].data;
}

static int read_count(const struct str *fields, enum tree_key key, int64_t max, int64_t *out,
                      struct err *e)
{
    if (fields[key].p && (!read_int(fields[key], out) || *out < 0 || *out > max))
        return err_set(e, SHOAL_EFORMAT, "%s is not a number from 0 to %lld", tree_names[key],
                       (long long)max);
    return 0;
}

static int read_splits(struct lists *l, const struct str *fields, struct trees_raw *raw,
                       struct err *e)
{
    static const enum tree_key keys[] = {TREE_FEATURES, TREE_LEFT, TREE_RIGHT, TREE_THRESHOLDS};
    int rc = 0;
    if (fields[TREE_DECISIONS].p) {
        rc = read_list(l, fields, TREE_DECISIONS, raw->n_leaves - 1, e);
    } else { /* all splits are numerical, and missing values are zero */
        struct buf *b = &l->of[TREE_DECISIONS];
        buf_clear(b);
        for (int64_t i = 0; i < raw->n_leaves - 1; i++)
            buf_put(b, &(int64_t){0}, sizeof(int64_t));
        rc = b->rc;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && rc == 0; i++)
        rc = read_list(l, fields, keys[i], raw->n_leaves - 1, e);
    if (rc == 0 && raw->n_sets > 0) {
        rc = read_list(l, fields, TREE_SET_BOUNDS, raw->n_sets + 1, e);
        if (rc == 0)
            rc = read_list(l, fields, TREE_SET_WORDS, -1, e);
        raw->n_set_words = l->of[TREE_SET_WORDS].len / sizeof(int64_t);
    }
    raw->features = ints_of(l, TREE_FEATURES);
    raw->left = ints_of(l, TREE_LEFT);
    raw->right = ints_of(l, TREE_RIGHT);
    raw->decisions = ints_of(l, TREE_DECISIONS);
    raw->thresholds = numbers_of(l, TREE_THRESHOLDS);
    raw->set_bounds = ints_of(l, TREE_SET_BOUNDS);
    raw->set_words = ints_of(l, TREE_SET_WORDS);
    return rc;
}

static int read_linear(struct lists *l, const struct str *fields, struct trees_raw *raw,
                       struct err *e)
{
    int rc = read_list(l, fields, TREE_CONSTANTS, raw->n_leaves, e);
    if (rc == 0)
        rc = read_list(l, fields, TREE_N_COEFFS, raw->n_leaves, e);
    if (rc == 0)
        rc = read_list(l, fields, TREE_COEFF_FEATURES, -1, e);
    raw->n_all_coeffs = l->of[TREE_COEFF_FEATURES].len / sizeof(int64_t);
    if (rc == 0)
        rc = read_list(l, fields, TREE_COEFFS, (int64_t)raw->n_all_coeffs, e);
    raw->constants = numbers_of(l, TREE_CONSTANTS);
    raw->n_coeffs = ints_of(l, TREE_N_COEFFS);
    raw->coeff_features = ints_of(l, TREE_COEFF_FEATURES);
    raw->coeffs = numbers_of(l, TREE_COEFFS);
    return rc;
}

static int read_tree(struct trees_build *b, struct lists *l, const struct str *fields,
                     struct err *e)
{
    struct trees_raw raw = {0};
    int64_t linear = 0;
    int rc = read_count(fields, TREE_NUM_LEAVES, TREES_MAX_LEAVES, &raw.n_leaves, e);
    if (rc == 0)
        rc = read_count(fields, TREE_NUM_CAT, TREES_MAX_LEAVES, &raw.n_sets, e);
    if (rc == 0)
        rc = read_count(fields, TREE_IS_LINEAR, 1, &linear, e);
    if (rc < 0)
        return rc;
    if (raw.n_leaves < 1)
        return err_set(e, SHOAL_EFORMAT, "num_leaves is missing");
    raw.linear = linear != 0;
    rc = read_list(l, fields, TREE_VALUES, raw.n_leaves, e);
    raw.values = numbers_of(l, TREE_VALUES);
    if (rc == 0 && raw.n_leaves > 1)
        rc = read_splits(l, fields, &raw, e);
    if (rc == 0 && raw.linear)
        rc = read_linear(l, fields, &raw, e);
    return rc < 0 ? rc : trees_build_add(b, &raw, e);
}

static int read_trees(struct trees_build *b, struct lists *l, struct reader *r, struct str line,
                      struct err *e)
{
    int rc = 0;
    bool more = str_starts(line, "Tree=");
    while (more && rc == 0) {
        struct str fields[TREE_N_KEYS] = {0};
        unsigned long at = r->line;
        more = false;
        while (take_line(r, &line) && !str_is(line, "end of trees")) {
            more = str_starts(line, "Tree=");
            if (more)
                break;
            note(line, tree_names, TREE_N_KEYS, fields);
        }
        rc = read_tree(b, l, fields, e);
        if (rc < 0)
            err_wrap(e, "tree %u, line %lu", b->t->n_trees, at);
    }
    return rc;
}

bool trees_detect(const void *bytes, size_t n)
{
    return n >= 13 && (memcmp(bytes, "tree\nversion=", 13) == 0 ||
                       (n >= 14 && memcmp(bytes, "tree\r\nversion=", 14) == 0));
}

int trees_parse(struct trees **out, const void *bytes, size_t n, struct err *e)
{
    struct reader r = {bytes, (const char *)bytes + n, 0};
    struct str h[HEADER_N_KEYS] = {0}, line = {"", 0};
    struct trees_build b = {0};
    struct lists l;

    *out = NULL;
    if (!trees_detect(bytes, n))
        return err_set(e, SHOAL_EFORMAT,
                       "not a LightGBM model: it does not start with tree, version");
    for (int i = 0; i < TREE_N_KEYS; i++)
        buf_init(&l.of[i], SIZE_MAX / 2);
    while (take_line(&r, &line) && !str_starts(line, "Tree=") && !str_is(line, "end of trees"))
        note(line, header_names, HEADER_N_KEYS, h);
    int rc = read_header(&b, h, e);
    if (rc == 0)
        rc = read_trees(&b, &l, &r, line, e);
    if (rc == 0 && (b.t->n_trees == 0 || b.t->n_trees % b.t->n_outputs != 0))
        rc = err_set(e, SHOAL_EFORMAT, "%u trees cannot be divided among %u outputs", b.t->n_trees,
                     b.t->n_outputs);
    if (rc == 0 && old_forest(&b, h[HEADER_VERSION]))
        b.t->link = TREES_LINK_NONE;
    if (rc == 0)
        rc = trees_build_finish(&b, e);
    if (rc == 0) {
        *out = b.t;
        b.t = NULL;
    }
    for (int i = 0; i < TREE_N_KEYS; i++)
        buf_fini(&l.of[i]);
    trees_build_fini(&b);
    return rc;
}

int trees_open(struct trees **out, const char *path, struct err *e)
{
    struct file_map map;
    *out = NULL;
    int rc = file_map_open(&map, path, e);
    if (rc < 0)
        return rc;
    rc = trees_parse(out, map.bytes, map.n_bytes, e);
    if (rc < 0)
        err_wrap(e, "%s", path);
    file_map_close(&map);
    return rc;
}
