/* recurrent_load.c - reads a layer program and its weights; see recurrent.h and docs/SCORERS.md.
 *
 * Shapes are propagated from the window through all layers, so that every size is known and checked
 * when the scorer is opened. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "score/score_config.h"
#include "score/recurrent_int.h"
#include "score/recurrent_weights.h"

enum {
    MAX_LAYERS = 256,
    MAX_WINDOW = 1 << 20,
    MAX_WIDTH = 1 << 16,
    MAX_VALUES = 1 << 26, /* limit of a window and of one layer's inputs, gates and result */
};
#define MAX_ARENA_BYTES ((size_t)1 << 32)

static const char *const kind_names[RECURRENT_N_KINDS] = {
    [RECURRENT_LINEAR] = "linear",
    [RECURRENT_CONV1D] = "conv1d",
    [RECURRENT_LSTM] = "lstm",
    [RECURRENT_GRU] = "gru",
    [RECURRENT_RELU] = "relu",
    [RECURRENT_TANH] = "tanh",
    [RECURRENT_SIGMOID] = "sigmoid",
    [RECURRENT_SOFTMAX] = "softmax",
    [RECURRENT_LAYER_NORM] = "layer_norm",
    [RECURRENT_PAD] = "pad",
    [RECURRENT_MAGNITUDE] = "magnitude",
    [RECURRENT_LAST] = "last",
    [RECURRENT_MEAN] = "mean",
    [RECURRENT_MAX] = "max",
    [RECURRENT_FLATTEN] = "flatten",
};

struct loader {
    struct recurrent *r;
    struct recurrent_weights w;
    uint32_t time, channels; /* shape of the next layer's input */
    uint32_t max_layers;
    bool int8;                           /* requested; a layer may opt out */
    size_t columns, gates, step, quants; /* largest so far: floats, and bytes of quants */
    size_t acts;
};

/* ---- JSON --------------------------------------------------------------------------------- */

static int get_bool(const cJSON *object, const char *key, bool missing, bool *out, struct err *e)
{
    const cJSON *j = json_in_item(object, key);
    if (j && !cJSON_IsBool(j))
        return err_set(e, SHOAL_EFORMAT, "%s is neither true nor false", key);
    *out = j ? cJSON_IsTrue(j) : missing;
    return 0;
}

/* Reads a list of n finite numbers, or one number for all; NULL if missing. */
static int get_numbers(struct loader *l, const cJSON *object, const char *key, uint32_t n,
                       float **out, struct err *e)
{
    const cJSON *j = json_in_item(object, key), *v = NULL;
    *out = NULL;
    if (!j)
        return 0;
    if (!cJSON_IsNumber(j) && (!cJSON_IsArray(j) || cJSON_GetArraySize(j) != (int)n))
        return err_set(e, SHOAL_EFORMAT, "%s is not a list of %u numbers", key, n);
    *out = arena_zalloc_n(&l->r->arena, n, sizeof(**out));
    if (!*out)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %s of %u numbers", key, n);
    for (uint32_t i = 0; i < n; i++) {
        v = cJSON_IsNumber(j) ? j : v ? v->next : j->child;
        if (!cJSON_IsNumber(v) || !isfinite((float)v->valuedouble))
            return err_set(e, SHOAL_EFORMAT, "%s: value %u is not a number", key, i);
        (*out)[i] = (float)v->valuedouble;
    }
    return 0;
}

/* Reads a list of n names; NULL if missing. */
static int get_names(struct loader *l, const cJSON *object, uint32_t n, const char *const **out,
                     struct err *e)
{
    const cJSON *j = json_in_item(object, "names"), *v = NULL;
    *out = NULL;
    if (!j)
        return 0;
    if (!cJSON_IsArray(j) || cJSON_GetArraySize(j) != (int)n)
        return err_set(e, SHOAL_EFORMAT, "names is not a list of %u strings", n);
    const char **list = arena_zalloc_n(&l->r->arena, n, sizeof(*list));
    for (uint32_t i = 0; list && i < n; i++) {
        v = v ? v->next : j->child;
        if (!cJSON_IsString(v))
            return err_set(e, SHOAL_EFORMAT, "names: value %u is not a string", i);
        list[i] = arena_printf(&l->r->arena, "%s", v->valuestring);
    }
    *out = list;
    return l->r->arena.rc < 0 ? err_set(e, l->r->arena.rc, "out of memory for %u names", n) : 0;
}

/* ---- layers ------------------------------------------------------------------------------- */

/* Sets the shape of the layer's result, [time][channels]. */
static int set_shape(struct loader *l, struct recurrent_layer *layer, uint64_t time,
                     uint64_t channels, struct err *e)
{
    if (time > MAX_WINDOW || channels > MAX_VALUES || time * channels > MAX_VALUES)
        return err_set(e, SHOAL_ELIMIT, "a result of %llu x %llu values is too large",
                       (unsigned long long)time, (unsigned long long)channels);
    layer->out_time = l->time = (uint32_t)time;
    layer->out_channels = l->channels = (uint32_t)channels;
    if (time * channels > l->acts)
        l->acts = (size_t)(time * channels);
    return 0;
}

/* Reserves scratch for a product with n_tokens inputs; columns: they are gathered first. */
static int note_product(struct loader *l, const struct recurrent_mat *w, uint64_t n_tokens,
                        bool columns, struct err *e)
{
    uint64_t n = n_tokens * w->m.n_cols;
    if (n > MAX_VALUES)
        return err_set(e, SHOAL_ELIMIT, "%llu inputs of %u values are too many",
                       (unsigned long long)n_tokens, w->m.n_cols);
    bool ints = !kern_fmt_is_float(w->m.fmt);
    if ((columns || ints) && n > l->columns)
        l->columns = (size_t)n;
    if (ints && n > l->quants)
        l->quants = (size_t)n;
    return 0;
}

static int read_linear(struct loader *l, struct recurrent_layer *layer, const char *name,
                       struct err *e)
{
    uint32_t n_rows;
    int rc = recurrent_weights_matrix(&l->w, &layer->w, name, "weight", "bias", 0, l->channels, 1,
                                      &n_rows, e);
    if (rc == 0)
        rc = note_product(l, &layer->w, l->time, false, e);
    return rc < 0 ? rc : set_shape(l, layer, l->time, n_rows, e);
}

static int read_conv1d(struct loader *l, struct recurrent_layer *layer, const cJSON *j,
                       const char *name, struct err *e)
{
    uint32_t n_rows, groups = 1;
    int rc = json_in_u32(j, "groups", 1, MAX_WIDTH, 1, &groups, e);
    if (rc == 0 && groups != 1)
        rc = err_set(e, SHOAL_EUNSUPPORTED, "a convolution in %u groups is not supported", groups);
    if (rc == 0)
        rc = recurrent_weights_kernel(&l->w, name, &layer->kernel, e);
    if (rc == 0)
        rc = json_in_u32(j, "stride", 1, MAX_WINDOW, 1, &layer->stride, e);
    if (rc == 0)
        rc = json_in_u32(j, "dilation", 1, MAX_WINDOW, 1, &layer->dilation, e);
    if (rc == 0)
        rc = json_in_u32(j, "padding", 0, MAX_WINDOW, 0, &layer->pad_left, e);
    if (rc == 0)
        rc = recurrent_weights_matrix(&l->w, &layer->w, name, "weight", "bias", 0, l->channels,
                                      layer->kernel, &n_rows, e);
    if (rc < 0)
        return rc;
    uint64_t reach = (uint64_t)(layer->kernel - 1) * layer->dilation + 1;
    uint64_t time = (uint64_t)l->time + 2 * (uint64_t)layer->pad_left;
    if (reach > time)
        return err_set(e, SHOAL_EFORMAT, "a kernel over %llu samples gets only %llu",
                       (unsigned long long)reach, (unsigned long long)time);
    time = (time - reach) / layer->stride + 1;
    rc = note_product(l, &layer->w, time, true, e);
    return rc < 0 ? rc : set_shape(l, layer, time, n_rows, e);
}

/* Reads one layer and direction: NAME.weight_ih_l0 and so on, without _l0 for a cell. */
static int read_dir(struct loader *l, struct recurrent_layer *layer, const char *name,
                    uint32_t index, uint32_t d, struct err *e)
{
    char end[32] = "", part[4][48];
    static const char *const parts[4] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    struct recurrent_dir *dir = &layer->dirs[d];
    uint32_t n_rows = layer->n_gates * layer->hidden;

    snprintf(part[0], sizeof(part[0]), "%s_l%u", parts[0], index);
    if (index > 0 || d > 0 || recurrent_weights_has(&l->w, name, part[0]))
        snprintf(end, sizeof(end), "_l%u%s", index, d ? "_reverse" : "");
    for (int i = 0; i < 4; i++)
        snprintf(part[i], sizeof(part[i]), "%s%s", parts[i], end);
    int rc = recurrent_weights_matrix(&l->w, &dir->in, name, part[0], part[2], n_rows, l->channels,
                                      1, &n_rows, e);
    if (rc == 0)
        rc = recurrent_weights_matrix(&l->w, &dir->state, name, part[1], part[3], n_rows,
                                      layer->hidden, 1, &n_rows, e);
    if (rc == 0)
        rc = note_product(l, &dir->in, l->time, false, e);
    return rc < 0 ? rc : note_product(l, &dir->state, 1, false, e);
}

static int read_recurrent(struct loader *l, struct recurrent_layer *layer, const char *name,
                          uint32_t index, struct err *e)
{
    struct recurrent *r = l->r;
    layer->n_gates = layer->kind == RECURRENT_LSTM ? 4 : 3;
    layer->state_at = r->state_floats;
    r->state_floats += (size_t)2 * layer->n_dirs * layer->hidden;
    size_t width = (size_t)layer->n_gates * layer->hidden, all = width * l->time;
    if (all > MAX_VALUES)
        return err_set(e, SHOAL_ELIMIT, "gates of %zu values are too large", all);
    l->gates = all > l->gates ? all : l->gates;
    l->step = width > l->step ? width : l->step;
    int rc = 0;
    for (uint32_t d = 0; rc == 0 && d < layer->n_dirs; d++)
        rc = read_dir(l, layer, name, index, d, e);
    return rc < 0 ? rc : set_shape(l, layer, l->time, layer->hidden * layer->n_dirs, e);
}

static int read_pad(struct loader *l, struct recurrent_layer *layer, const cJSON *j, struct err *e)
{
    static const char *const modes[] = {"zeros", "reflect", "edge"};
    const cJSON *mode = json_in_item(j, "mode");
    int rc = json_in_u32(j, "left", 0, MAX_WINDOW, 0, &layer->pad_left, e);
    if (rc == 0)
        rc = json_in_u32(j, "right", 0, MAX_WINDOW, 0, &layer->pad_right, e);
    if (rc < 0)
        return rc;
    if (mode) {
        int m = 0;
        while (m < 3 && !(cJSON_IsString(mode) && strcmp(mode->valuestring, modes[m]) == 0))
            m++;
        if (m == 3)
            return err_set(e, SHOAL_EUNSUPPORTED, "mode of pad must be zeros, reflect or edge");
        layer->pad_mode = (enum recurrent_pad)m;
    }
    if (layer->pad_mode == RECURRENT_PAD_REFLECT &&
        (layer->pad_left >= l->time || layer->pad_right >= l->time))
        return err_set(e, SHOAL_EFORMAT, "%u samples are too few to reflect %u and %u", l->time,
                       layer->pad_left, layer->pad_right);
    return set_shape(l, layer, (uint64_t)l->time + layer->pad_left + layer->pad_right, l->channels,
                     e);
}

static int read_norm(struct loader *l, struct recurrent_layer *layer, const cJSON *j,
                     const char *name, struct err *e)
{
    const cJSON *eps = json_in_item(j, "eps");
    double v = cJSON_IsNumber(eps) ? eps->valuedouble : 1e-5;
    if ((eps && !cJSON_IsNumber(eps)) || !(v > 0 && v < 1))
        return err_set(e, SHOAL_EFORMAT, "eps is not a number between 0 and 1");
    layer->eps = (float)v;
    int rc = recurrent_weights_vector(&l->w, &layer->gamma, name, "weight", l->channels, true, e);
    if (rc == 0)
        rc = recurrent_weights_vector(&l->w, &layer->beta, name, "bias", l->channels, false, e);
    return rc;
}

/* Reads any layer except the recurrent kinds. */
static int read_plain(struct loader *l, struct recurrent_layer *layer, const cJSON *j,
                      const char *name, struct err *e)
{
    switch (layer->kind) {
    case RECURRENT_LINEAR:
        return read_linear(l, layer, name, e);
    case RECURRENT_CONV1D:
        return read_conv1d(l, layer, j, name, e);
    case RECURRENT_LAYER_NORM:
        return read_norm(l, layer, j, name, e);
    case RECURRENT_PAD:
        return read_pad(l, layer, j, e);
    case RECURRENT_MAGNITUDE:
        if (l->channels % 2 != 0)
            return err_set(e, SHOAL_EFORMAT,
                           "%u channels cannot be split into real and imaginary parts",
                           l->channels);
        return set_shape(l, layer, l->time, l->channels / 2, e);
    case RECURRENT_LAST:
    case RECURRENT_MEAN:
    case RECURRENT_MAX:
        return set_shape(l, layer, 1, l->channels, e);
    case RECURRENT_FLATTEN:
        return set_shape(l, layer, 1, (uint64_t)l->time * l->channels, e);
    default:
        return 0; /* computed in place: the same shape */
    }
}

static struct recurrent_layer *add_layer(struct loader *l, enum recurrent_kind kind, struct err *e)
{
    struct recurrent *r = l->r;
    if (r->info.n_layers == l->max_layers) {
        err_set(e, SHOAL_ELIMIT, "more than %u layers", l->max_layers);
        return NULL;
    }
    struct recurrent_layer *layer = &r->layers[r->info.n_layers++];
    *layer = (struct recurrent_layer){.kind = kind,
                                      .in_time = l->time,
                                      .in_channels = l->channels,
                                      .out_time = l->time,
                                      .out_channels = l->channels};
    return layer;
}

static int read_layer(struct loader *l, const cJSON *j, struct err *e)
{
    const char *type = cJSON_GetStringValue(json_in_item(j, "type")), *name = "";
    int kind = 0;
    while (type && kind < RECURRENT_N_KINDS && strcmp(type, kind_names[kind]) != 0)
        kind++;
    if (!type)
        return err_set(e, SHOAL_EFORMAT, "type is missing");
    if (kind == RECURRENT_N_KINDS)
        return err_set(e, SHOAL_EUNSUPPORTED, "type \"%.40s\"", type);
    l->w.int8 = l->int8;
    if (kind <= RECURRENT_GRU || kind == RECURRENT_LAYER_NORM) {
        bool allowed;
        int rc = get_bool(j, "int8", true, &allowed, e);
        if (rc < 0)
            return rc;
        l->w.int8 = l->int8 && allowed;
        name = cJSON_GetStringValue(json_in_item(j, "name"));
        if (!name)
            return err_set(e, SHOAL_EFORMAT, "%s has no name", type);
    }
    if (kind != RECURRENT_LSTM && kind != RECURRENT_GRU) {
        struct recurrent_layer *layer = add_layer(l, (enum recurrent_kind)kind, e);
        return layer ? read_plain(l, layer, j, name, e) : SHOAL_ELIMIT;
    }
    uint32_t hidden = 0, n = 0;
    bool both = false;
    int rc = json_in_u32(j, "hidden", 1, MAX_WIDTH, 0, &hidden, e);
    if (rc == 0)
        rc = json_in_u32(j, "layers", 1, MAX_LAYERS, 1, &n, e);
    if (rc == 0)
        rc = get_bool(j, "bidirectional", false, &both, e);
    if (rc == 0 && both && l->r->info.stateful)
        rc = err_set(e, SHOAL_EFORMAT, "a stateful scorer cannot be bidirectional");
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        struct recurrent_layer *layer = add_layer(l, (enum recurrent_kind)kind, e);
        if (!layer)
            return SHOAL_ELIMIT;
        layer->hidden = hidden;
        layer->n_dirs = both ? 2 : 1;
        rc = read_recurrent(l, layer, name, i, e);
    }
    return rc;
}

static int read_layers(struct loader *l, const cJSON *config, struct err *e)
{
    const cJSON *list = json_in_item(config, "layers"), *j;
    int rc = 0, i = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1)
        return err_set(e, SHOAL_EFORMAT, "layers is not a list of layers");
    l->max_layers = MAX_LAYERS;
    l->r->layers = arena_zalloc_n(&l->r->arena, MAX_LAYERS, sizeof(*l->r->layers));
    if (!l->r->layers)
        return err_set(e, SHOAL_ENOMEM, "layers");
    cJSON_ArrayForEach(j, list)
    {
        rc = read_layer(l, j, e);
        if (rc < 0) {
            err_wrap(e, "layer %d", i);
            break;
        }
        i++;
    }
    return rc;
}

/* ---- the rest of the config --------------------------------------------------------------- */

static int read_input(struct loader *l, const cJSON *config, struct err *e)
{
    struct recurrent *r = l->r;
    const cJSON *input = json_in_item(config, "input");
    float *mean, *std;
    if (!cJSON_IsObject(input))
        return err_set(e, SHOAL_EFORMAT, "input is missing");
    int rc = json_in_u32(input, "channels", 1, MAX_WIDTH, 1, &r->info.channels, e);
    if (rc == 0)
        rc = json_in_u32(input, "window", 1, MAX_WINDOW, 1, &r->info.window, e);
    if (rc == 0)
        rc = json_in_u32(input, "hop", 1, r->info.window, r->info.window, &r->info.hop, e);
    if (rc == 0)
        rc = get_bool(input, "stateful", false, &r->info.stateful, e);
    if (rc == 0)
        rc = get_numbers(l, input, "mean", r->info.channels, &mean, e);
    if (rc == 0)
        rc = get_numbers(l, input, "std", r->info.channels, &std, e);
    if (rc == 0)
        rc = get_names(l, input, r->info.channels, &r->info.input_names, e);
    if (rc < 0)
        return rc;
    if (!mean != !std)
        return err_set(e, SHOAL_EFORMAT, "mean and std must be given together");
    for (uint32_t i = 0; std && i < r->info.channels; i++) {
        if (!(std[i] > 0) || !isfinite(1.0f / std[i]))
            return err_set(e, SHOAL_EFORMAT, "std: value %u is not positive", i);
        std[i] = 1.0f / std[i];
    }
    r->mean = mean;
    r->inverse_std = std;
    l->time = r->info.window;
    l->channels = r->info.channels;
    l->acts = (size_t)l->time * l->channels;
    if (l->acts > MAX_VALUES)
        return err_set(e, SHOAL_ELIMIT, "a window of %zu values is too large", l->acts);
    r->context_floats = (size_t)(r->info.window - r->info.hop) * r->info.channels;
    r->state_floats = r->context_floats;
    return 0;
}

static int read_output(struct loader *l, const cJSON *config, struct err *e)
{
    struct recurrent_info *info = &l->r->info;
    const cJSON *output = json_in_item(config, "output"),
                *threshold = json_in_item(output, "threshold");
    uint64_t n = (uint64_t)l->time * l->channels;
    if (output && !cJSON_IsObject(output))
        return err_set(e, SHOAL_EFORMAT, "output is not an object");
    if (n > MAX_WIDTH)
        return err_set(e, SHOAL_ELIMIT, "%llu outputs are too many", (unsigned long long)n);
    info->n_outputs = (uint32_t)n;
    if (threshold && (!cJSON_IsNumber(threshold) || !isfinite(threshold->valuedouble)))
        return err_set(e, SHOAL_EFORMAT, "threshold is not a number");
    info->has_threshold = threshold != NULL;
    info->threshold = threshold ? threshold->valuedouble : 0;
    int rc = get_names(l, output, info->n_outputs, &info->output_names, e);
    if (rc < 0 || info->output_names)
        return rc;
    const char **names = arena_zalloc_n(&l->r->arena, info->n_outputs, sizeof(*names));
    for (uint32_t i = 0; names && i < info->n_outputs; i++)
        names[i] = info->n_outputs == 1 ? "score" : arena_printf(&l->r->arena, "score%u", i);
    info->output_names = names;
    return l->r->arena.rc < 0 ? err_set(e, l->r->arena.rc, "out of memory for the names of outputs")
                              : 0;
}

/* Divides the scratch; each part starts on a cache line. */
static void plan_scratch(struct loader *l)
{
    struct recurrent *r = l->r;
    size_t at = 0;
    const struct {
        size_t *to, n;
    } parts[] = {
        {&r->columns_at, l->columns},
        {&r->gates_at, l->gates},
        {&r->step_at, l->step},
        {&r->state_at, r->state_floats},
        {&r->window_at, (size_t)r->info.window * r->info.channels},
        {&r->quants_at, l->quants / sizeof(float)},
        {&r->scales_at, l->quants / 32},
        {&r->sums_at, l->quants / 16},
    };
    r->act_floats = (l->acts + 31) / 16 * 16; /* vector loads may read past the end */
    at = 2 * r->act_floats;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        *parts[i].to = at;
        at += (parts[i].n + 31) / 16 * 16;
    }
    r->scratch_bytes = at * sizeof(float);
}

static int load(struct recurrent *r, const cJSON *config, const struct safetensors *st,
                const struct recurrent_opts *o, struct err *e)
{
    struct loader l = {.r = r};
    const char *quantize = cJSON_GetStringValue(json_in_item(config, "quantize"));
    if (json_in_item(config, "quantize") && (!quantize || strcmp(quantize, "int8") != 0))
        return err_set(e, SHOAL_EUNSUPPORTED, "quantize must be \"int8\"");
    r->k = kern_select(o ? o->kernels : NULL, e);
    if (!r->k)
        return e && e->code < 0 ? e->code : SHOAL_EINVAL;
    l.int8 = quantize || (o && o->int8);
    int rc = recurrent_weights_init(&l.w, st, &r->arena, r->k, e);
    if (rc == 0)
        rc = read_input(&l, config, e);
    if (rc == 0)
        rc = read_layers(&l, config, e);
    if (rc == 0)
        rc = read_output(&l, config, e);
    if (rc == 0)
        rc = recurrent_weights_check(&l.w, e);
    r->info.int8 = l.w.any_int8;
    recurrent_weights_fini(&l.w);
    if (rc == 0)
        plan_scratch(&l);
    return rc;
}

static int create(struct recurrent **out, const cJSON *config, const struct safetensors *st,
                  const struct recurrent_opts *o, struct err *e)
{
    struct recurrent *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "scorer");
    arena_init(&r->arena, MAX_ARENA_BYTES);
    int rc = load(r, config, st, o, e);
    if (rc == 0) {
        *out = r;
        r = NULL;
    }
    recurrent_close(r);
    return rc;
}

int recurrent_parse(struct recurrent **out, const void *config, size_t n_config,
                    const void *weights, size_t n_weights, const struct recurrent_opts *o,
                    struct err *e)
{
    struct safetensors *st = NULL;
    cJSON *json;
    *out = NULL;
    int rc = score_config_parse(&json, config, n_config, RECURRENT_MODEL_TYPE, e);
    if (rc == 0)
        rc = safetensors_parse(&st, weights, n_weights, e);
    if (rc == 0)
        rc = create(out, json, st, o, e);
    cJSON_Delete(json);
    safetensors_close(st);
    return rc;
}

int recurrent_open(struct recurrent **out, const char *path, const struct recurrent_opts *o,
                   struct err *e)
{
    struct safetensors *st = NULL;
    cJSON *json;
    char dir[4096], file[4096 + 256];
    *out = NULL;
    int rc = score_config_open(&json, path, RECURRENT_MODEL_TYPE, dir, sizeof(dir), e);
    if (rc < 0)
        return rc;
    const char *name = cJSON_GetStringValue(json_in_item(json, "weights"));
    if (name && (strchr(name, '/') || strlen(name) > 255)) /* only next to the config */
        rc = err_set(e, SHOAL_EFORMAT, "%s: weights is not a file name", path);
    snprintf(file, sizeof(file), "%s%s", dir, name ? name : "model.safetensors");
    if (rc == 0)
        rc = safetensors_open(&st, file, e);
    if (rc == 0) {
        rc = create(out, json, st, o, e);
        if (rc < 0)
            err_wrap(e, "%s", path);
    }
    cJSON_Delete(json);
    safetensors_close(st);
    return rc;
}
