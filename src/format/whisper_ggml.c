/* whisper_ggml.c - see whisper_ggml.h.  One pass over the file with a bounded reader. */
#include "format/whisper_ggml.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rd.h"
#include "format/hf/hf_map.h"
#include "format/model_file.h"
#include "format/whisper_vocab.h"

#define MAGIC 0x67676d6cu
#define MAX_VOCAB 65536u
#define MAX_NAME 128u

enum size { /* in the order of the file */
            N_VOCAB,
            AUDIO_CTX,
            AUDIO_DIM,
            AUDIO_HEADS,
            AUDIO_LAYERS,
            TEXT_CTX,
            TEXT_DIM,
            TEXT_HEADS,
            TEXT_LAYERS,
            N_MELS,
            FILE_TYPE,
            N_SIZES
};

static const char *const size_names[N_SIZES] = {
    "n_vocab",      "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx",
    "n_text_state", "n_text_head", "n_text_layer",  "n_mels",       "ftype"};

bool whisper_ggml_is(const void *bytes, size_t n)
{
    uint32_t magic = 0;
    if (n >= sizeof(magic))
        memcpy(&magic, bytes, sizeof(magic));
    return magic == MAGIC;
}

static int truncated(const struct rd *r, const char *what, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT,
                   "the file ends inside %s at offset %zu: download it again, it may be incomplete",
                   what, rd_pos(r));
}

static int read_sizes(uint32_t *sizes, struct rd *r, struct err *e)
{
    for (uint32_t i = 0; i < N_SIZES; i++)
        sizes[i] = rd_u32(r);
    if (r->bad)
        return truncated(r, "the header", e);
    for (uint32_t i = 0; i < FILE_TYPE; i++)
        if (sizes[i] == 0 || sizes[i] > MAX_VOCAB)
            return err_set(e, SHOAL_EFORMAT, "%s of %u is not that of a Whisper model",
                           size_names[i], sizes[i]);
    if (sizes[AUDIO_DIM] != sizes[TEXT_DIM] || sizes[AUDIO_HEADS] != sizes[TEXT_HEADS])
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "an encoder of %u values in %u heads and a decoder of %u in %u: they must "
                       "be alike",
                       sizes[AUDIO_DIM], sizes[AUDIO_HEADS], sizes[TEXT_DIM], sizes[TEXT_HEADS]);
    return 0;
}

static void put_sizes(struct model_file *m, const uint32_t *sizes, uint32_t start)
{
    model_file_put_str(m, "general.architecture", "whisper", 7);
    model_file_put_u32(m, "whisper.context_length", sizes[TEXT_CTX]);
    model_file_put_u32(m, "whisper.embedding_length", sizes[TEXT_DIM]);
    model_file_put_u32(m, "whisper.block_count", sizes[AUDIO_LAYERS]);
    model_file_put_u32(m, "whisper.decoder_block_count", sizes[TEXT_LAYERS]);
    model_file_put_u32(m, "whisper.attention.head_count", sizes[TEXT_HEADS]);
    model_file_put_u32(m, "whisper.feed_forward_length", 4 * sizes[TEXT_DIM]);
    model_file_put_u32(m, "whisper.mel_count", sizes[N_MELS]);
    model_file_put_u32(m, "whisper.decoder_start_token_id", start);
}

/* The filters are always the same: src/model/mel.h has them. */
static int skip_filters(struct rd *r, struct err *e)
{
    const uint64_t n_mels = rd_u32(r), n_bins = rd_u32(r);
    (void)rd_take(r, n_mels > MAX_VOCAB || n_bins > MAX_VOCAB ? UINT64_MAX
                                                              : n_mels * n_bins * sizeof(float));
    return r->bad ? truncated(r, "the filters", e) : 0;
}

static int read_vocab(struct model_file *m, const uint32_t *sizes, struct rd *r, struct err *e)
{
    const uint32_t n = rd_u32(r);
    uint32_t start = 0;
    if (r->bad || n > MAX_VOCAB)
        return r->bad ? truncated(r, "the vocabulary", e)
                      : err_set(e, SHOAL_EFORMAT, "a vocabulary cannot have %u tokens", n);
    struct str *tokens = mem_zalloc_n((size_t)n + 1, sizeof(*tokens));
    if (!tokens)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", n);
    for (uint32_t i = 0; i < n; i++) {
        tokens[i].n = rd_u32(r);
        tokens[i].p = (const char *)rd_take(r, tokens[i].n);
    }
    int rc = r->bad ? truncated(r, "the vocabulary", e)
                    : whisper_vocab_put(m, tokens, n, sizes[N_VOCAB], &start, e);
    mem_free(tokens);
    if (rc == 0)
        put_sizes(m, sizes, start);
    return rc;
}

/* ---- tensors ---- */

/* The shape and the bytes; name: as the file has it. */
static int read_shape(struct model_file_tensor *t, struct rd *r, char name[MAX_NAME + 1],
                      struct err *e)
{
    const uint32_t n_dims = rd_u32(r), n_name = rd_u32(r), type = rd_u32(r);
    if (!r->bad && (n_dims == 0 || n_dims > 3 || n_name == 0 || n_name > MAX_NAME))
        return err_set(e, SHOAL_EFORMAT, "a tensor of %u dimensions with a name of %u bytes",
                       n_dims, n_name);
    for (uint32_t d = 0; d < MODEL_FILE_MAX_DIMS; d++)
        t->dims[d] = d < n_dims ? rd_u32(r) : 1;
    const uint8_t *p = rd_take(r, n_name);
    if (!p)
        return truncated(r, "the description of a tensor", e);
    memcpy(name, p, n_name);
    name[n_name] = '\0';
    const struct quant_info *q = quant_info(type);
    if (!q || !q->supported)
        return err_set(e, SHOAL_EUNSUPPORTED, "tensor %s has type %u, which is not supported", name,
                       type);
    size_t n_bytes = 0, n_rows = 1;
    bool ok = t->dims[0] > 0 && t->dims[0] % q->block == 0;
    for (uint32_t d = 1; d < n_dims; d++)
        ok = ok && t->dims[d] > 0 && mem_mul(&n_rows, n_rows, t->dims[d]);
    if (!ok || !mem_mul(&n_bytes, (size_t)(t->dims[0] / q->block) * q->block_bytes, n_rows))
        return err_set(e, SHOAL_EFORMAT, "tensor %s has impossible dimensions for %s", name,
                       q->name);
    t->type = (enum quant_type)type;
    t->n_dims = n_dims;
    if (n_dims == 2 && t->dims[0] == 1) { /* a bias is a column */
        t->dims[0] = t->dims[1];
        t->dims[1] = t->n_dims = 1;
    }
    t->n_bytes = n_bytes;
    t->data = rd_take(r, n_bytes);
    return r->bad ? truncated(r, "a tensor", e) : 0;
}

static int read_tensor(struct model_file *m, struct rd *r, struct file_map *map, struct err *e)
{
    const struct hf_folder names = {.arch = &hf_whisper_openai};
    const struct hf_rule *rule = NULL;
    struct model_file_tensor t = {.map = map};
    char name[MAX_NAME + 1], to[HF_NAME_BYTES];
    int rc = read_shape(&t, r, name, e);
    if (rc == 0)
        rc = hf_tensor_name(&names, name, &rule, to, e);
    if (rc == 0 && model_file_find_tensor(m, to))
        rc = err_set(e, SHOAL_EFORMAT, "tensor %s is there twice", name);
    if (rc == 0 && rule->op == HF_CONV && (rc = hf_tensor_conv(m, &t, e)) < 0)
        err_wrap(e, "tensor %s", name);
    if (rc < 0)
        return rc;
    char *copy = model_file_alloc(m, strlen(to) + 1);
    struct model_file_tensor *out = copy ? model_file_add_tensor(m) : NULL;
    if (!out)
        return err_set(e, SHOAL_ENOMEM, "out of memory for tensor %s", name);
    memcpy(copy, to, strlen(to) + 1);
    t.name = (struct str){copy, strlen(copy)};
    *out = t;
    return 0;
}

static int parse(struct model_file *m, const void *bytes, size_t n, struct file_map *map,
                 struct err *e)
{
    struct rd r = rd_make(bytes, n);
    uint32_t sizes[N_SIZES];
    (void)rd_u32(&r);
    if (!whisper_ggml_is(bytes, n))
        return err_set(e, SHOAL_EFORMAT, "not a model file of whisper.cpp (its magic is missing)");
    int rc = read_sizes(sizes, &r, e);
    if (rc == 0)
        rc = skip_filters(&r, e);
    if (rc == 0)
        rc = read_vocab(m, sizes, &r, e);
    while (rc == 0 && rd_left(&r) > 0)
        rc = read_tensor(m, &r, map, e);
    return rc < 0 ? rc : model_file_check(m, e);
}

static int load(struct model_file **out, const void *bytes, size_t n, struct file_map *map,
                struct err *e)
{
    struct model_file *m = NULL;
    int rc = model_file_create(&m, e);
    *out = NULL;
    if (rc == 0)
        rc = parse(m, bytes, n, map, e);
    if (rc < 0) {
        model_file_close(m);
        return rc;
    }
    m->n_bytes = n;
    if (map) { /* the mapping now belongs to the model */
        m->maps = map;
        m->n_maps = 1;
    }
    *out = m;
    return 0;
}

int whisper_ggml_parse(struct model_file **out, const void *bytes, size_t n, struct err *e)
{
    return load(out, bytes, n, NULL, e);
}

int whisper_ggml_open(struct model_file **out, const char *path, struct err *e)
{
    struct file_map *map = mem_zalloc(sizeof(*map));
    *out = NULL;
    if (!map)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the model file");
    int rc = file_map_open(map, path, e);
    if (rc == 0 && (rc = load(out, map->bytes, map->n_bytes, map, e)) < 0)
        err_wrap(e, "%s", path);
    if (rc < 0) {
        file_map_close(map);
        mem_free(map);
    }
    return rc;
}
