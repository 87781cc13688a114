/* encoder_config.c - which encoders there are, and their metadata. */
#include <stdio.h>
#include <string.h>

#include "model/encoder_int.h"

/* What differs from BERT. */
static const struct encoder_arch {
    const char *name;
    enum encoder_places places;
    bool norms_first, gated, images;
} archs[] = {
    {"bert", ENCODER_PLACES_NONE, false, false, false},
    {"distilbert", ENCODER_PLACES_NONE, false, false, false},
    {"roberta", ENCODER_PLACES_NONE, false, false, false},
    {"electra", ENCODER_PLACES_NONE, false, false, false},
    {"albert", ENCODER_PLACES_NONE, false, false, false},
    {"mpnet", ENCODER_PLACES_BUCKETS, false, false, false},
    {"deberta-v2", ENCODER_PLACES_DISENTANGLED, false, false, false},
    {"modern-bert", ENCODER_PLACES_ROTATED, true, true, false},
    {"vit", ENCODER_PLACES_NONE, true, false, true},
};
#define N_ARCHS (sizeof(archs) / sizeof(archs[0]))

static const struct encoder_arch *arch_of(const struct model_file *file, struct str *name)
{
    *name = (struct str){"", 0};
    if (!model_file_get_str(file, "general.architecture", name))
        return NULL;
    for (size_t i = 0; i < N_ARCHS; i++)
        if (strlen(archs[i].name) == name->n && memcmp(archs[i].name, name->p, name->n) == 0)
            return &archs[i];
    return NULL;
}

bool encoder_knows(const struct model_file *file)
{
    struct str name;
    return arch_of(file, &name) != NULL;
}

bool encoder_sees(const struct model_file *file)
{
    struct str name;
    const struct encoder_arch *arch = arch_of(file, &name);
    return arch && arch->images;
}

static int unknown(struct str name, struct err *e)
{
    char known[160] = "";
    size_t n = 0;
    for (size_t i = 0; i < N_ARCHS; i++)
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", archs[i].name);
    return err_set(e, SHOAL_EUNSUPPORTED, "architecture \"%.*s\" (encoders: %s)",
                   (int)(name.n < 64 ? name.n : 64), name.p, known);
}

static int read_u32(const struct encoder_config *c, const struct model_file *file, const char *key,
                    uint32_t min, uint32_t max, uint32_t *out, struct err *e)
{
    char name[96];
    uint64_t v;
    snprintf(name, sizeof(name), "%s.%s", c->arch, key);
    if (!model_file_get_u64(file, name, &v) || v < min || v > max)
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is missing or not in %u to %u", name, min,
                       max);
    *out = (uint32_t)v;
    return 0;
}

static int read_u32_or(const struct encoder_config *c, const struct model_file *file,
                       const char *key, uint32_t min, uint32_t max, uint32_t missing, uint32_t *out,
                       struct err *e)
{
    char name[96];
    snprintf(name, sizeof(name), "%s.%s", c->arch, key);
    *out = missing;
    return model_file_find(file, name) ? read_u32(c, file, key, min, max, out, e) : 0;
}

static int read_f32_or(const struct encoder_config *c, const struct model_file *file,
                       const char *key, double min, double max, double missing, float *out,
                       struct err *e)
{
    char name[96];
    double v = missing;
    snprintf(name, sizeof(name), "%s.%s", c->arch, key);
    if (model_file_find(file, name) &&
        (!model_file_get_f64(file, name, &v) || !(v >= min && v < max)))
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is not in %g to %g", name, min, max);
    *out = (float)v;
    return 0;
}

static int read_act(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    static const struct {
        const char *name;
        enum encoder_act act;
    } acts[] = {
        {"gelu", ENCODER_ACT_GELU_ERF},
        {"gelu_new", ENCODER_ACT_GELU_TANH},
        {"gelu_pytorch_tanh", ENCODER_ACT_GELU_TANH},
        {"relu", ENCODER_ACT_RELU},
    };
    char key[96];
    struct str s;
    snprintf(key, sizeof(key), "%s.activation", c->arch);
    c->act = ENCODER_ACT_GELU_ERF;
    if (!model_file_get_str(file, key, &s))
        return 0;
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        if (strlen(acts[i].name) == s.n && memcmp(acts[i].name, s.p, s.n) == 0) {
            c->act = acts[i].act;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "%s \"%.*s\"", key, (int)(s.n < 64 ? s.n : 64), s.p);
}

static int read_buckets(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    int rc =
        read_u32_or(c, file, "attention.relative_buckets_count", 4, 65536, 32, &c->n_buckets, e);
    if (rc == 0)
        rc = read_u32_or(c, file, "attention.relative_max_distance", 1, 1u << 20, 128,
                         &c->max_distance, e);
    if (rc == 0 && c->max_distance <= c->n_buckets / 4)
        rc = err_set(e, SHOAL_EFORMAT, "%u buckets are too many for distances of up to %u",
                     c->n_buckets, c->max_distance);
    return rc;
}

/* "c2p", "p2c" or both. */
static int read_disentangled(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    struct str kinds;
    int rc =
        read_u32_or(c, file, "attention.relative_buckets_count", 0, 65536, 0, &c->n_buckets, e);
    if (rc == 0)
        rc = read_u32(c, file, "attention.relative_max_distance", 1, 1u << 20, &c->max_distance, e);
    if (rc < 0)
        return rc;
    /* half of the buckets hold one distance each, the others grow up to max_distance */
    if (c->n_buckets && (c->n_buckets < 4 || c->max_distance - 1 <= c->n_buckets / 2))
        return err_set(e, SHOAL_EFORMAT, "%u buckets do not suit distances of up to %u",
                       c->n_buckets, c->max_distance);
    char key[96];
    snprintf(key, sizeof(key), "%s.attention.relative_kinds", c->arch);
    if (!model_file_get_str(file, key, &kinds))
        kinds = (struct str){"c2p|p2c", 7};
    c->c2p = str_has(kinds, "c2p");
    c->p2c = str_has(kinds, "p2c");
    return c->c2p || c->p2c ? 0 : err_set(e, SHOAL_EFORMAT, "%s names neither c2p nor p2c", key);
}

static int read_rotation(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    uint32_t both;
    int rc = read_f32_or(c, file, "rope.freq_base", 1, 1e12, 160000, &c->rope_base, e);
    if (rc == 0)
        rc = read_f32_or(c, file, "rope.freq_base_swa", 1, 1e12, 10000, &c->rope_base_local, e);
    if (rc == 0)
        rc = read_u32_or(c, file, "attention.sliding_window", 2, 1u << 20, 128, &both, e);
    if (rc == 0)
        rc = read_u32_or(c, file, "attention.sliding_window_pattern", 1, 1024, 3, &c->global_every,
                         e);
    if (rc < 0)
        return rc;
    c->window = both / 2;
    return c->head_dim % 2 == 0
               ? 0
               : err_set(e, SHOAL_EFORMAT, "heads of %u cannot be rotated", c->head_dim);
}

static int read_places(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    switch (c->places) {
    case ENCODER_PLACES_BUCKETS:
        return read_buckets(c, file, e);
    case ENCODER_PLACES_DISENTANGLED:
        return read_disentangled(c, file, e);
    case ENCODER_PLACES_ROTATED:
        return read_rotation(c, file, e);
    default:
        return 0;
    }
}

static int read_sizes(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    int rc;
    if ((rc = read_u32(c, file, "context_length", 1, 1u << 20, &c->n_ctx, e)) < 0 ||
        (rc = read_u32(c, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = read_u32_or(c, file, "embedding_length_in", 1, 65536, c->dim, &c->embd_dim, e)) < 0 ||
        (rc = read_u32(c, file, "block_count", 0, 1024, &c->n_layers, e)) < 0 ||
        (rc = read_u32_or(c, file, "different_block_count", c->n_layers > 0, c->n_layers,
                          c->n_layers, &c->n_blocks, e)) < 0 ||
        (rc = read_u32(c, file, "attention.head_count", 1, 1024, &c->n_heads, e)) < 0 ||
        (rc = read_u32(c, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0)
        return rc;
    if (c->dim % c->n_heads != 0)
        return err_set(e, SHOAL_EFORMAT, "%u heads do not divide a width of %u", c->n_heads,
                       c->dim);
    c->head_dim = c->dim / c->n_heads;
    return 0;
}

/* Of a model that reads images: positions are those of its patches and what is before them. */
static int read_picture(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    struct encoder_picture *p = &c->picture;
    int rc = read_u32(c, file, "vision.image_size", 1, 2048, &p->size, e);
    if (rc == 0)
        rc = read_u32(c, file, "vision.patch_size", 1, 128, &p->patch, e);
    if (rc < 0)
        return rc;
    const uint32_t side = p->size / p->patch;
    if (p->size % p->patch != 0 || side > 128 || c->n_ctx != side * side + 1)
        return err_set(e, SHOAL_EFORMAT,
                       "%u positions do not suit an image of %u pixels on a side in patches of %u",
                       c->n_ctx, p->size, p->patch);
    c->embd_dim = 3 * p->patch * p->patch;
    return encoder_picture_read(p, file, e);
}

int encoder_config_read(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    struct str name;
    const struct encoder_arch *arch = arch_of(file, &name);
    if (!arch)
        return unknown(name, e);
    c->arch = arch->name;
    c->places = arch->places;
    c->norms_first = arch->norms_first;
    c->norm_bias = !arch->norms_first || arch->images;
    c->gated = arch->gated;
    int rc = read_sizes(c, file, e);
    if (rc == 0 && arch->images)
        rc = read_picture(c, file, e);
    if (rc == 0)
        rc = read_act(c, file, e);
    if (rc == 0)
        rc = read_f32_or(c, file, "attention.layer_norm_epsilon", 0, 1, 1e-12, &c->norm_eps, e);
    return rc < 0 ? rc : read_places(c, file, e);
}
