/* engine_limits.c - the machine's limits, from `shoal doctor`; what a model file needs; and making
 * the model files. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.h"
#include "format/gguf.h"

#define DOCTOR_SECONDS 120
#define MAKE_SECONDS 1800
#define MAX_DOCTOR_BYTES ((size_t)1 << 20)

/* ---- limits ---- */

static double number(const cJSON *v, const char *key)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(v, key);
    return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

static void keep_band(struct engine_limits *l, uint32_t threads, double bytes, double gb_s)
{
    size_t i = 0;
    while (i < l->n_band && (l->band[i].threads != threads || l->band[i].bytes != bytes))
        i++;
    if (i == ENGINE_MAX_BAND)
        return;
    if (i == l->n_band)
        l->n_band++;
    l->band[i].threads = threads, l->band[i].bytes = bytes;
    l->band[i].gb_s = gb_s > l->band[i].gb_s ? gb_s : l->band[i].gb_s;
}

static void keep_peak(struct engine_limits *l, uint32_t threads, double gops)
{
    size_t i = 0;
    while (i < l->n_peak && l->peak[i].threads != threads)
        i++;
    if (i == ENGINE_MAX_BAND)
        return;
    if (i == l->n_peak)
        l->n_peak++;
    l->peak[i].threads = threads;
    l->peak[i].gops = gops > l->peak[i].gops ? gops : l->peak[i].gops;
}

int engine_limits_measure(struct engine_limits *l, struct duel *d, const char *shoal, bool names,
                          struct err *e)
{
    const char *const argv[] = {shoal, "doctor", "--json", names ? "--no-measure" : NULL, NULL};
    struct buf out;
    buf_init(&out, MAX_DOCTOR_BYTES);
    int rc = duel_output(d, argv, true, DOCTOR_SECONDS, &out, e);
    cJSON *v = rc == 0 ? cJSON_Parse(buf_str(&out)) : NULL;
    const cJSON *r, *cpu = cJSON_GetObjectItemCaseSensitive(v, "cpu");
    if (rc == 0 && !v)
        rc = err_set(e, SHOAL_EFORMAT, "%s doctor --json: not JSON", shoal);
    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(v, "bandwidth"))
        keep_band(l, (uint32_t)number(r, "threads"), number(r, "bytes"), number(r, "gb_s"));
    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(v, "peak"))
        keep_peak(l, (uint32_t)number(r, "threads"), number(r, "int8_gops"));
    if (cJSON_IsString(cpu))
        snprintf(l->cpu, sizeof(l->cpu), "%s", cpu->valuestring);
    cJSON_Delete(v);
    buf_fini(&out);
    return rc;
}

double engine_limits_decode(const struct engine_limits *l, double bytes, uint32_t threads)
{
    double size = NAN, gb_s = NAN;
    for (size_t i = 0; i < l->n_band; i++) {
        /* the smallest measured size that holds the bytes; the largest if none does */
        const double b = l->band[i].bytes;
        const bool better = isnan(size) || (b >= bytes ? size < bytes || b < size : b > size);
        if (l->band[i].threads == threads && better)
            size = b, gb_s = l->band[i].gb_s;
    }
    return gb_s * 1e9 / bytes;
}

double engine_limits_prompt(const struct engine_limits *l, double weights, uint32_t threads)
{
    for (size_t i = 0; i < l->n_peak; i++)
        if (l->peak[i].threads == threads)
            return l->peak[i].gops * 1e9 / (2 * weights);
    return NAN;
}

void engine_limits_about(const struct engine_limits *l, cJSON *about)
{
    cJSON *band = cJSON_CreateArray(), *peak = cJSON_CreateObject();
    for (size_t i = 0; i < l->n_band; i++) {
        cJSON *r = cJSON_CreateObject();
        cJSON_AddNumberToObject(r, "threads", l->band[i].threads);
        cJSON_AddNumberToObject(r, "bytes", l->band[i].bytes);
        cJSON_AddNumberToObject(r, "gb_s", l->band[i].gb_s);
        cJSON_AddItemToArray(band, r);
    }
    for (size_t i = 0; i < l->n_peak; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%u", l->peak[i].threads);
        cJSON_AddNumberToObject(peak, key, l->peak[i].gops);
    }
    cJSON_AddItemToObject(about, "bandwidth", band);
    cJSON_AddItemToObject(about, "int8_gops", peak);
}

/* ---- needs of a file ---- */

static bool is(const struct model_file_tensor *t, const char *name)
{
    return t->name.n == strlen(name) && memcmp(t->name.p, name, t->name.n) == 0;
}

static double meta(const struct model_file *g, const struct str *arch, const char *key)
{
    char name[128];
    uint64_t v = 0;
    snprintf(name, sizeof(name), "%.*s.%s", (int)arch->n, arch->p, key);
    return model_file_get_u64(g, name, &v) ? (double)v : 0;
}

int engine_shape_read(struct engine_shape *s, const char *path, struct err *e)
{
    struct model_file *g = NULL;
    struct str arch = {0};
    int rc = gguf_open(&g, path, e);
    if (rc < 0)
        return rc;
    *s = (struct engine_shape){0};
    const bool tied = !model_file_find_tensor(g, "output.weight");
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct model_file_tensor *t = &g->tensors[i];
        s->weights_bytes += (double)t->n_bytes;
        if (!is(t, "position_embd.weight") && !is(t, "token_types.weight") &&
            (tied || !is(t, "token_embd.weight")))
            s->touched_bytes += (double)t->n_bytes;
        if (t->n_dims > 1 && t->name.n > 4 && memcmp(t->name.p, "blk.", 4) == 0)
            s->layer_weights +=
                (double)t->dims[0] * (double)t->dims[1] * (double)t->dims[2] * (double)t->dims[3];
    }
    if (model_file_get_str(g, "general.architecture", &arch) && arch.n < 64) {
        const double heads = meta(g, &arch, "attention.head_count");
        const double kv = meta(g, &arch, "attention.head_count_kv");
        double width = meta(g, &arch, "attention.key_length");
        if (width == 0 && heads > 0)
            width = meta(g, &arch, "embedding_length") / heads;
        s->kv_token_bytes = meta(g, &arch, "block_count") * (kv > 0 ? kv : heads) * width * 2 * 2;
    }
    model_file_close(g);
    return 0;
}

/* ---- model files ---- */

void engine_make_folders(const char *path)
{
    char folder[1024];
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(p - path), path);
        mkdir(folder, 0777); /* opening the file reports any failure */
    }
}

static int make_f16(struct engine_run *b, const char *shape, const char *part, struct err *e)
{
    char maker[1024];
    const char *slash = strrchr(b->o->ours, '/');
    snprintf(maker, sizeof(maker), "%.*smake_shapes", slash ? (int)(slash + 1 - b->o->ours) : 0,
             b->o->ours); /* it is next to ours */
    const char *const argv[] = {maker, shape, part, NULL};
    return duel_output(&b->d, argv, false, MAKE_SECONDS, NULL, e);
}

/* Uses the peer's own quantizer, so that the peer gets the mix of types it was tuned for. */
static int quantize_peer(struct engine_run *b, const char *f16, const char *part, const char *type,
                         struct err *e)
{
    struct duel_prog *p = &b->d.prog[1];
    const bool pinned = b->d.pinned;
    cJSON *q = cJSON_CreateObject();
    cJSON_AddNumberToObject(q, "id", 1);
    cJSON_AddStringToObject(q, "op", "quantize");
    cJSON_AddStringToObject(q, "in", f16);
    cJSON_AddStringToObject(q, "out", part);
    cJSON_AddStringToObject(q, "type", type);
    cJSON_AddNumberToObject(q, "threads", (double)sysconf(_SC_NPROCESSORS_ONLN));
    b->holds[1] = false;
    b->d.pinned = false; /* not a measurement */
    int rc = duel_start(&b->d, p, e);
    b->d.pinned = pinned;
    if (rc == 0)
        rc = duel_ask(&b->d, p, q, MAKE_SECONDS, NULL, e);
    else
        cJSON_Delete(q);
    duel_quit(&b->d, p);
    return rc;
}

static int quantize_ours(struct engine_run *b, const char *f16, const char *part, const char *type,
                         struct err *e)
{
    const char *const argv[] = {b->o->ours,
                                "model",
                                "quantize",
                                f16,
                                part,
                                "--type",
                                strcmp(type, "q4_k_m") == 0 ? "q4_k" : type,
                                NULL};
    return duel_output(&b->d, argv, false, MAKE_SECONDS, NULL, e);
}

/* Makes one file under a temporary name, so that an interrupted run leaves no partial file. */
static int make(struct engine_run *b, const char *shape, const char *type, const char *f16,
                const char *out, struct err *e)
{
    char part[1040];
    int rc = SHOAL_EUNSUPPORTED;
    snprintf(part, sizeof(part), "%s.part", out);
    engine_say("making %s", out);
    engine_make_folders(out);
    if (strcmp(type, "f16") == 0) {
        rc = make_f16(b, shape, part, e);
    } else {
        if (b->has_peer)
            rc = quantize_peer(b, f16, part, type, e);
        if (rc < 0 && rc != SHOAL_ECANCELLED) {
            if (b->has_peer)
                fprintf(stderr, "%s; quantizing with ours instead\n", e->msg);
            rc = quantize_ours(b, f16, part, type, e);
        }
    }
    if (rc == 0 && rename(part, out) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", out, strerror(errno));
    if (rc < 0)
        unlink(part);
    return rc;
}

int engine_file(struct engine_run *b, const char *shape, const char *type, char *path, size_t n,
                struct err *e)
{
    char f16[1024];
    int rc = 0;
    snprintf(path, n, "%s/%s-%s.gguf", b->o->models, shape, type);
    snprintf(f16, sizeof(f16), "%s/%s-f16.gguf", b->o->models, shape);
    if (access(path, R_OK) == 0)
        return 0;
    if (access(f16, R_OK) < 0)
        rc = make(b, shape, "f16", f16, f16, e);
    if (rc == 0 && strcmp(type, "f16") != 0)
        rc = make(b, shape, type, f16, path, e);
    return rc;
}
