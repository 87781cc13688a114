/* scorer.c - see scorer.h. */
#include "score/scorer.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file/file_map.h"
#include "base/mem.h"
#include "score/anomaly.h"
#include "score/recurrent.h"
#include "score/trees.h"

struct scorer {
    struct trees *trees; /* exactly one of the three is set */
    struct recurrent *layers;
    struct anomaly *anomaly;
    struct scorer_info info;
    struct arena arena; /* owns the texts in info */
    bool raw;
    /* offsets in bytes of parts of a layer program's scratch; the program's own scratch is first */
    size_t window_at, scores_at, scratch_bytes;
};

enum { MAX_TEXT_BYTES = 64 << 20 };

static size_t lines_of(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* "score", or one name per class. */
static const char *const *class_names(struct scorer *s, uint32_t n)
{
    const char **names = arena_zalloc_n(&s->arena, n, sizeof(*names));
    for (uint32_t i = 0; names && i < n; i++)
        names[i] = n == 1 ? "score" : arena_printf(&s->arena, "class%u", i);
    return names;
}

static int open_trees(struct scorer *s, const char *path, const struct scorer_opts *o,
                      struct err *e)
{
    int rc = trees_open(&s->trees, path, e);
    if (rc < 0)
        return rc;
    struct trees_info t = trees_info(s->trees);
    s->raw = o && o->raw;
    s->info = (struct scorer_info){
        .kind = SCORER_TREES,
        .description =
            arena_printf(&s->arena, "%u LightGBM trees%s%s%s", t.n_trees, *t.objective ? ", " : "",
                         t.objective, t.average ? ", averaged" : ""),
        .n_inputs = t.n_features,
        .max_inputs = t.n_features,
        .input_names = t.feature_names,
        .window = 1,
        .hop = 1,
        .n_outputs = t.n_outputs,
        .output_names = class_names(s, t.n_outputs),
    };
    s->scratch_bytes = trees_scratch(s->trees) * sizeof(double);
    return 0;
}

static int open_layers(struct scorer *s, const char *path, const struct scorer_opts *o,
                       struct err *e)
{
    struct recurrent_opts ro = {.int8 = o && o->int8};
    int rc = recurrent_open(&s->layers, path, &ro, e);
    if (rc < 0)
        return rc;
    struct recurrent_info r = recurrent_info(s->layers);
    s->info = (struct scorer_info){
        .kind = SCORER_LAYERS,
        .description = arena_printf(&s->arena, "%u layers%s", r.n_layers, r.int8 ? ", int8" : ""),
        .n_inputs = r.channels,
        .max_inputs = r.channels,
        .input_names = r.input_names,
        .window = r.window,
        .hop = r.hop,
        .stateful = r.stateful,
        .n_outputs = r.n_outputs,
        .output_names = r.output_names,
        .has_threshold = r.has_threshold,
        .threshold = r.threshold,
    };
    s->window_at = lines_of(recurrent_scratch_bytes(s->layers));
    s->scores_at = s->window_at + lines_of((size_t)r.window * r.channels * sizeof(float));
    s->scratch_bytes = s->scores_at + lines_of(r.n_outputs * sizeof(float));
    return 0;
}

static int open_anomaly(struct scorer *s, const char *path, struct err *e)
{
    static const char *const outputs[] = {"score", "alarm", "value"};
    int rc = anomaly_open(&s->anomaly, path, e);
    if (rc < 0)
        return rc;
    struct anomaly_info a = anomaly_info(s->anomaly);
    s->info = (struct scorer_info){
        .kind = SCORER_ANOMALY,
        .description = arena_printf(&s->arena, "anomalies: %u LightGBM trees and layers%s",
                                    a.n_trees, a.int8 ? ", int8" : ""),
        .max_inputs = ANOMALY_MAX_CHANNELS,
        .window = 1,
        .hop = 1,
        .stateful = true,
        .n_outputs = sizeof(outputs) / sizeof(outputs[0]),
        .output_names = outputs,
        .has_threshold = true,
        .threshold = 0.5,
    };
    s->scratch_bytes = anomaly_scratch_bytes(s->anomaly);
    return 0;
}

/* Detects the kind of the file by its first bytes, or by those of the folder's config. */
static int find_kind(const char *path, enum scorer_kind *kind, struct err *e)
{
    struct file_map map;
    struct stat st;
    char config[4096];
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(config, sizeof(config), "%s%s", path, folder ? "/config.json" : "");
    int rc = file_map_open(&map, config, e);
    if (rc < 0)
        return rc;
    size_t blank = 0;
    while (blank < map.n_bytes && blank < 64 && strchr(" \t\r\n", map.bytes[blank]))
        blank++;
    *kind = SCORER_LAYERS;
    if (trees_detect(map.bytes, map.n_bytes))
        *kind = SCORER_TREES;
    else if (blank == map.n_bytes || map.bytes[blank] != '{')
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "%s is neither a LightGBM model text nor the config of a scorer", path);
    else if (anomaly_detect(map.bytes, map.n_bytes))
        *kind = SCORER_ANOMALY;
    file_map_close(&map);
    return rc;
}

int scorer_open(struct scorer **out, const char *path, const struct scorer_opts *o, struct err *e)
{
    enum scorer_kind kind;
    *out = NULL;
    int rc = find_kind(path, &kind, e);
    if (rc < 0)
        return rc;
    struct scorer *s = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "scorer");
    arena_init(&s->arena, MAX_TEXT_BYTES);
    rc = kind == SCORER_TREES     ? open_trees(s, path, o, e)
         : kind == SCORER_ANOMALY ? open_anomaly(s, path, e)
                                  : open_layers(s, path, o, e);
    if (rc == 0 && s->arena.rc < 0)
        rc = err_set(e, s->arena.rc, "%s: names", path);
    if (rc == 0) {
        *out = s;
        s = NULL;
    }
    scorer_close(s);
    return rc;
}

void scorer_close(struct scorer *s)
{
    if (!s)
        return;
    trees_close(s->trees);
    recurrent_close(s->layers);
    anomaly_close(s->anomaly);
    arena_fini(&s->arena);
    mem_free(s);
}

struct scorer_info scorer_info(const struct scorer *s)
{
    return s->info;
}

size_t scorer_scratch_bytes(const struct scorer *s)
{
    return s->scratch_bytes;
}

size_t scorer_state_bytes(const struct scorer *s, uint32_t n_columns)
{
    return s->anomaly  ? anomaly_state_bytes(s->anomaly, n_columns)
           : s->layers ? lines_of(recurrent_state_floats(s->layers) * sizeof(float))
                       : 0;
}

/* ---- running ------------------------------------------------------------------------------ */

size_t scorer_n_scores(const struct scorer *s, size_t n_rows)
{
    return s->layers ? recurrent_n_scores(s->layers, n_rows) : n_rows;
}

static const float *to_floats(const struct scorer *s, const double *rows, uint32_t n_rows,
                              void *scratch)
{
    float *x = (float *)(void *)((char *)scratch + s->window_at);
    const size_t n = (size_t)n_rows * s->info.n_inputs;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rows[i];
    return x;
}

static void to_doubles(const struct scorer *s, const float *scores, double *out)
{
    for (uint32_t i = 0; i < s->info.n_outputs; i++)
        out[i] = scores[i];
}

void scorer_reset(const struct scorer *s, void *state, uint32_t n_columns)
{
    if (s->layers)
        recurrent_reset(s->layers, state);
    else if (s->anomaly)
        anomaly_reset(s->anomaly, state, n_columns);
}

bool scorer_state_fits(const struct scorer *s, const void *state, uint32_t n_columns)
{
    return !s->anomaly || anomaly_state_fits(state, n_columns); /* the others are plain numbers */
}

void scorer_step(const struct scorer *s, void *state, const double *rows, double *out,
                 void *scratch)
{
    if (s->trees) {
        trees_predict(s->trees, rows, 1, s->raw, out, scratch);
        return;
    }
    if (s->anomaly) {
        struct anomaly_point p;
        anomaly_step(s->anomaly, state, rows, &p, scratch);
        out[0] = p.score;
        out[1] = p.alarm;
        out[2] = p.value;
        return;
    }
    float *scores = (float *)(void *)((char *)scratch + s->scores_at);
    recurrent_step(s->layers, state, to_floats(s, rows, s->info.hop, scratch), scores, scratch);
    to_doubles(s, scores, out);
}

void scorer_run(const struct scorer *s, const double *rows, size_t n_rows, uint32_t n_columns,
                double *out, void *state, void *scratch)
{
    if (s->trees) {
        trees_predict(s->trees, rows, n_rows, s->raw, out, scratch);
        return;
    }
    const size_t n = scorer_n_scores(s, n_rows), step = (size_t)s->info.hop * n_columns;
    scorer_reset(s, state, n_columns);
    for (size_t i = 0; i < n; i++, rows += step, out += s->info.n_outputs) {
        if (s->info.stateful) {
            scorer_step(s, state, rows, out, scratch);
        } else {
            float *scores = (float *)(void *)((char *)scratch + s->scores_at);
            recurrent_series(s->layers, to_floats(s, rows, s->info.window, scratch), s->info.window,
                             scores, scratch);
            to_doubles(s, scores, out);
        }
    }
}
