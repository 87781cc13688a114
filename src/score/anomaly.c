/* anomaly.c - see anomaly.h. */
#include "score/anomaly.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "score/anomaly_features.h"
#include "score/score_config.h"
#include "score/recurrent.h"
#include "score/trees.h"

enum {
    MAX_TOP = 16,
    MAX_POINTS = 1 << 24, /* of a setting that counts points */
    MAX_INPUTS = ANOMALY_N_FEATURES,
    MAX_NAME = 255,
};

struct setting { /* for one channel, or for several */
    double level, layers_share, minus;
};

struct anomaly {
    struct trees *trees;
    struct recurrent *layers;
    struct anomaly_info info;
    uint32_t n_tree_inputs, n_layer_inputs;
    uint8_t tree_inputs[MAX_INPUTS], layer_inputs[MAX_INPUTS]; /* features */
    bool absolute[ANOMALY_N_FEATURES];                         /* the trees take their size */
    uint32_t n_first, smooth, top;
    struct setting one, several;
    size_t channel_bytes; /* state of one channel: its features, then the layers' state */
    size_t layers_at;     /* offset of the layers' state in a channel */
    size_t row_at, x_at, layers_scratch_at, scratch_bytes;
};

struct anomaly_state { /* start of a state; the channels follow */
    uint32_t n_channels;
    uint64_t n, last_on;   /* points so far; the last one above the level, counted from 1 */
    double smooth, weight; /* weighted sums of the odds and their weights */
    double slow, slow_weight;
    double slow_mean; /* after the last point */
    struct anomaly_point point;
};

struct channel_state {
    struct anomaly_channel features;
    double odds; /* after its last value */
};

static size_t lines_of(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

/* ---- opening ------------------------------------------------------------------------------ */

static int find_feature(const char *name)
{
    for (int i = 0; name && i < ANOMALY_N_FEATURES; i++)
        if (strcmp(name, anomaly_feature_names[i]) == 0)
            return i;
    return -1;
}

/* Reads a list of feature names. */
static int read_features(const cJSON *config, const char *key, uint8_t out[MAX_INPUTS], uint32_t *n,
                         struct err *e)
{
    const cJSON *list = json_in_item(config, key), *v;
    *n = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > MAX_INPUTS)
        return err_set(e, SHOAL_EFORMAT, "%s is not a list of at most %d features", key,
                       MAX_INPUTS);
    cJSON_ArrayForEach(v, list)
    {
        const char *name = cJSON_GetStringValue(v);
        int f = find_feature(name);
        if (f < 0)
            return err_set(e, SHOAL_EUNSUPPORTED, "%s: value %u (%.40s) is not a feature", key, *n,
                           name ? name : "not a string");
        out[(*n)++] = (uint8_t)f;
    }
    return 0;
}

/* The features are defined for these scales; others would give different features. */
static int check_scales(const cJSON *config, struct err *e)
{
    const cJSON *list = json_in_item(config, "scales"), *v;
    uint32_t n = 0, longest = anomaly_scales[ANOMALY_N_SCALES - 1], same;
    bool ok = cJSON_IsArray(list) && cJSON_GetArraySize(list) == ANOMALY_N_SCALES;
    cJSON_ArrayForEach(v, list)
    {
        ok = ok && cJSON_IsNumber(v) && v->valuedouble == anomaly_scales[n];
        n++;
    }
    if (!ok)
        return err_set(e, SHOAL_EUNSUPPORTED, "scales must be 4, 16, 64, 256, 2048");
    return json_in_u32(config, "long", longest, longest, -1, &same, e);
}

static int read_number(const cJSON *object, const char *key, double min, double max, double *out,
                       struct err *e)
{
    const cJSON *v = json_in_item(object, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= min && v->valuedouble <= max))
        return err_set(e, SHOAL_EFORMAT, "%s is not a number from %g to %g", key, min, max);
    *out = v->valuedouble;
    return 0;
}

static int read_setting(const cJSON *config, const char *key, struct setting *s, struct err *e)
{
    const cJSON *v = json_in_item(config, key);
    int rc =
        cJSON_IsObject(v) ? 0 : err_set(e, SHOAL_EFORMAT, "settings are missing or not an object");
    if (rc == 0)
        rc = read_number(v, "level", -1000, 1000, &s->level, e);
    if (rc == 0)
        rc = read_number(v, "lstm_share", 0, 1, &s->layers_share, e);
    if (rc == 0)
        rc = read_number(v, "minus", 0, 1, &s->minus, e);
    return rc < 0 ? err_wrap(e, "%s", key) : 0;
}

static int read_config(struct anomaly *a, const cJSON *config, struct err *e)
{
    uint8_t absolute[MAX_INPUTS];
    uint32_t n_absolute = 0;
    int rc = read_features(config, "features", a->tree_inputs, &a->n_tree_inputs, e);
    if (rc == 0)
        rc = read_features(config, "absolute", absolute, &n_absolute, e);
    for (uint32_t i = 0; rc == 0 && i < n_absolute; i++)
        a->absolute[absolute[i]] = true;
    if (rc == 0)
        rc = check_scales(config, e);
    if (rc == 0)
        rc = json_in_u32(config, "first", 1, MAX_POINTS, 0, &a->n_first, e);
    if (rc == 0)
        rc = json_in_u32(config, "warm_up", 0, MAX_POINTS, -1, &a->info.warm_up, e);
    if (rc == 0)
        rc = json_in_u32(config, "pause", 0, MAX_POINTS, -1, &a->info.pause, e);
    if (rc == 0)
        rc = json_in_u32(config, "smooth", 1, MAX_POINTS, 0, &a->smooth, e);
    if (rc == 0)
        rc = json_in_u32(config, "top", 1, MAX_TOP, 0, &a->top, e);
    if (rc == 0)
        rc = read_setting(config, "one_channel", &a->one, e);
    if (rc == 0)
        rc = read_setting(config, "several", &a->several, e);
    return rc;
}

/* Both parts must read the features and return one probability per point. */
static int check_parts(struct anomaly *a, struct err *e)
{
    struct trees_info t = trees_info(a->trees);
    struct recurrent_info r = recurrent_info(a->layers);
    if (t.n_features != a->n_tree_inputs || t.n_outputs != 1)
        return err_set(e, SHOAL_EFORMAT,
                       "the trees have %u features and %u outputs, expected %u and 1", t.n_features,
                       t.n_outputs, a->n_tree_inputs);
    if (strncmp(t.objective, "binary", 6) != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "the trees' objective is %.40s, not binary",
                       t.objective);
    if (r.window != 1 || r.hop != 1 || !r.stateful || r.n_outputs != 1)
        return err_set(e, SHOAL_EFORMAT,
                       "the layers must be stateful, with one output and a window of one");
    if (r.channels > MAX_INPUTS || !r.input_names)
        return err_set(e, SHOAL_EFORMAT, "the layers have %u inputs%s", r.channels,
                       r.input_names ? "" : " without names");
    for (uint32_t i = 0; i < r.channels; i++) {
        int f = find_feature(r.input_names[i]);
        if (f < 0)
            return err_set(e, SHOAL_EUNSUPPORTED, "input %.40s of the layers is not a feature",
                           r.input_names[i]);
        a->layer_inputs[i] = (uint8_t)f;
    }
    a->n_layer_inputs = r.channels;
    a->info.n_trees = t.n_trees;
    a->info.int8 = r.int8;
    a->info.level_one = a->one.level;
    a->info.level_several = a->several.level;
    a->layers_at = lines_of(sizeof(struct channel_state));
    a->channel_bytes = a->layers_at + lines_of(recurrent_state_floats(a->layers) * sizeof(float));
    a->row_at = lines_of(trees_scratch(a->trees) * sizeof(double));
    a->x_at = a->row_at + lines_of(MAX_INPUTS * sizeof(double));
    a->layers_scratch_at = a->x_at + lines_of(MAX_INPUTS * sizeof(float));
    a->scratch_bytes = a->layers_scratch_at + lines_of(recurrent_scratch_bytes(a->layers));
    return 0;
}

/* Passes on the opened model, or closes it and passes on the failure. */
static int finish(struct anomaly **out, struct anomaly *a, int rc)
{
    if (rc < 0) {
        anomaly_close(a);
        a = NULL;
    }
    *out = a;
    return rc;
}

int anomaly_parse(struct anomaly **out, const struct anomaly_bytes *b, struct err *e)
{
    cJSON *json = NULL;
    struct anomaly *a = mem_zalloc(sizeof(*a));
    if (!a)
        return finish(out, NULL, err_set(e, SHOAL_ENOMEM, "out of memory for the anomaly model"));
    int rc = score_config_parse(&json, b->config, b->n_config, ANOMALY_MODEL_TYPE, e);
    if (rc == 0)
        rc = read_config(a, json, e);
    if (rc == 0)
        rc = trees_parse(&a->trees, b->trees, b->n_trees, e);
    if (rc == 0)
        rc = recurrent_parse(&a->layers, b->layers, b->n_layers, b->weights, b->n_weights, NULL, e);
    if (rc == 0)
        rc = check_parts(a, e);
    cJSON_Delete(json);
    return finish(out, a, rc);
}

/* The path of the file named under key, which must be in the config's folder. */
static int part_path(const cJSON *config, const char *key, const char *dir, char *out, size_t cap,
                     struct err *e)
{
    const char *name = cJSON_GetStringValue(json_in_item(config, key));
    if (!name || !*name || *name == '.' || strchr(name, '/') || strlen(name) > MAX_NAME)
        return err_set(e, SHOAL_EFORMAT, "%s is not the name of a file next to the config", key);
    snprintf(out, cap, "%s%s", dir, name);
    return 0;
}

int anomaly_open(struct anomaly **out, const char *path, struct err *e)
{
    char dir[4096], trees[4096 + MAX_NAME + 1], layers[4096 + MAX_NAME + 1];
    cJSON *json = NULL;
    struct anomaly *a = mem_zalloc(sizeof(*a));
    if (!a)
        return finish(out, NULL, err_set(e, SHOAL_ENOMEM, "out of memory for the anomaly model"));
    int rc = score_config_open(&json, path, ANOMALY_MODEL_TYPE, dir, sizeof(dir), e);
    if (rc < 0)
        return finish(out, a, rc);
    rc = read_config(a, json, e);
    if (rc == 0)
        rc = part_path(json, "trees", dir, trees, sizeof(trees), e);
    if (rc == 0)
        rc = part_path(json, "lstm", dir, layers, sizeof(layers), e);
    cJSON_Delete(json);
    if (rc < 0)
        err_wrap(e, "%s", path);
    if (rc == 0)
        rc = trees_open(&a->trees, trees, e);
    if (rc == 0)
        rc = recurrent_open(&a->layers, layers, NULL, e);
    if (rc == 0 && (rc = check_parts(a, e)) < 0)
        err_wrap(e, "%s", path);
    return finish(out, a, rc);
}

bool anomaly_detect(const void *bytes, size_t n)
{
    cJSON *json;
    struct err e;
    int rc = score_config_parse(&json, bytes, n, ANOMALY_MODEL_TYPE, &e);
    cJSON_Delete(json);
    return rc == 0;
}

void anomaly_close(struct anomaly *a)
{
    if (!a)
        return;
    trees_close(a->trees);
    recurrent_close(a->layers);
    mem_free(a);
}

struct anomaly_info anomaly_info(const struct anomaly *a)
{
    return a->info;
}

/* ---- running ------------------------------------------------------------------------------ */

static struct channel_state *channel_at(const struct anomaly *a, void *state, uint32_t i)
{
    return (struct channel_state *)(void *)((char *)state + lines_of(sizeof(struct anomaly_state)) +
                                            i * a->channel_bytes);
}

static float *layers_memory(const struct anomaly *a, struct channel_state *c)
{
    return (float *)(void *)((char *)c + a->layers_at);
}

size_t anomaly_state_bytes(const struct anomaly *a, uint32_t n_channels)
{
    return lines_of(sizeof(struct anomaly_state)) + n_channels * a->channel_bytes;
}

size_t anomaly_scratch_bytes(const struct anomaly *a)
{
    return a->scratch_bytes;
}

void anomaly_reset(const struct anomaly *a, void *state, uint32_t n_channels)
{
    const struct setting *set = n_channels == 1 ? &a->one : &a->several;
    memset(state, 0, anomaly_state_bytes(a, n_channels));
    *(struct anomaly_state *)state = (struct anomaly_state){
        .n_channels = n_channels, .point.score = 1 / (1 + exp(set->level)), /* that of value 0 */
    };
    for (uint32_t i = 0; i < n_channels; i++)
        recurrent_reset(a->layers, layers_memory(a, channel_at(a, state, i)));
}

bool anomaly_state_fits(const void *state, uint32_t n_channels)
{
    const struct anomaly_state *s = state;
    uint8_t alarm; /* not bool: bytes from a file may have any value */
    memcpy(&alarm, &s->point.alarm, sizeof(alarm));
    return s->n_channels == n_channels && alarm <= 1;
}

/* Log odds of a probability; clamped, whatever a model returned. */
static double odds(double p)
{
    p = p > 1 ? 1 : p > 0 ? p : 0;
    return log((p + 1e-4) / (1 - p + 1e-4));
}

static void step_channel(const struct anomaly *a, struct channel_state *c, double value,
                         const struct setting *set, char *scratch)
{
    double *row = (double *)(void *)(scratch + a->row_at), trees;
    float *x = (float *)(void *)(scratch + a->x_at), f[ANOMALY_N_FEATURES], layers;
    const int direction = anomaly_channel_push(&c->features, value, a->n_first, f);
    for (uint32_t i = 0; i < a->n_tree_inputs; i++) {
        const uint8_t k = a->tree_inputs[i];
        row[i] = (double)(a->absolute[k] ? fabsf(f[k]) : f[k]);
    }
    for (uint32_t i = 0; i < a->n_layer_inputs; i++) {
        const uint8_t k = a->layer_inputs[i];
        x[i] = k == ANOMALY_STEP ? f[k] * (float)direction : f[k];
    }
    trees_predict(a->trees, row, 1, false, &trees, (double *)(void *)scratch);
    recurrent_step(a->layers, layers_memory(a, c), x, &layers, scratch + a->layers_scratch_at);
    c->odds = (1 - set->layers_share) * odds(trees) + set->layers_share * odds((double)layers);
}

/* Mean of the highest odds among the channels that have had a value. */
static double highest_odds(const struct anomaly *a, void *state, uint32_t n_channels)
{
    double best[MAX_TOP] = {0}, sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_channels; i++) {
        const struct channel_state *c = channel_at(a, state, i);
        if (c->features.n == 0 || (n == a->top && c->odds <= best[n - 1]))
            continue;
        uint32_t at = n < a->top ? n++ : n - 1;
        for (; at > 0 && best[at - 1] < c->odds; at--)
            best[at] = best[at - 1];
        best[at] = c->odds;
    }
    for (uint32_t i = 0; i < n; i++)
        sum += best[i];
    return n ? sum / n : 0;
}

static void step_stream(const struct anomaly *a, struct anomaly_state *s, double u,
                        const struct setting *set)
{
    const double k = 1.0 - 1.0 / a->smooth, slow = 1.0 - 1.0 / anomaly_scales[ANOMALY_N_SCALES - 1];
    s->smooth = k * s->smooth + u;
    s->weight = k * s->weight + 1;
    s->slow = slow * s->slow + u;
    s->slow_weight = slow * s->slow_weight + 1;
    const double now = s->slow / s->slow_weight, before = s->n == 0 ? now : s->slow_mean;
    s->slow_mean = now;
    s->n++;
    s->point.value = s->smooth / s->weight - set->minus * before;
    s->point.score = 1 / (1 + exp(set->level - s->point.value));
    if (s->point.value >= set->level && s->n > a->info.warm_up)
        s->last_on = s->n;
    s->point.alarm = s->last_on > 0 && s->n - s->last_on <= a->info.pause;
}

void anomaly_step(const struct anomaly *a, void *state, const double *row,
                  struct anomaly_point *out, void *scratch)
{
    struct anomaly_state *s = state;
    const struct setting *set = s->n_channels == 1 ? &a->one : &a->several;
    bool any = false;
    for (uint32_t i = 0; i < s->n_channels; i++)
        if (isfinite(row[i])) {
            step_channel(a, channel_at(a, state, i), row[i], set, scratch);
            any = true;
        }
    if (any)
        step_stream(a, s, highest_odds(a, state, s->n_channels), set);
    *out = s->point;
}
