/* quantize_rules.c - which encoding each tensor gets.
 *
 * Vectors, norms, positions and routers keep full precision: they are small, and errors in them
 * affect everything.  The output matrix (in most small models the embedding as well) decides the
 * token directly, so it keeps more bits than the rest; so do the heads of encoders. */
#include "format/convert/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "format/model_file.h"

static const struct {
    const char *name;
    enum quant_type body, head; /* head: the output and the embedding */
    uint32_t file_type;
} kinds[QUANTIZE_N_KINDS] = {
    [QUANTIZE_F32] = {"f32", QUANT_F32, QUANT_F32, 0},
    [QUANTIZE_F16] = {"f16", QUANT_F16, QUANT_F16, 1},
    [QUANTIZE_BF16] = {"bf16", QUANT_BF16, QUANT_BF16, 32},
    [QUANTIZE_Q8_0] = {"q8_0", QUANT_Q8_0, QUANT_Q8_0, 7},
    [QUANTIZE_Q6_K] = {"q6_k", QUANT_Q6_K, QUANT_Q6_K, 18},
    [QUANTIZE_Q5_K] = {"q5_k", QUANT_Q5_K, QUANT_Q6_K, 17},
    [QUANTIZE_Q4_K] = {"q4_k", QUANT_Q4_K, QUANT_Q6_K, 15},
    [QUANTIZE_Q4_0] = {"q4_0", QUANT_Q4_0, QUANT_Q6_K, 2},
    [QUANTIZE_IQ4_NL] = {"iq4_nl", QUANT_IQ4_NL, QUANT_Q6_K, 25},
    [QUANTIZE_MIXED] = {"mixed", QUANT_Q8_0, QUANT_Q8_0, 7},
};

const char *quantize_kind_name(enum quantize_kind kind)
{
    return kind < QUANTIZE_N_KINDS ? kinds[kind].name : "unknown";
}

bool quantize_kind_from_name(const char *name, enum quantize_kind *kind)
{
    for (int i = 0; i < QUANTIZE_N_KINDS; i++)
        if (!strcasecmp(name, kinds[i].name)) {
            *kind = (enum quantize_kind)i;
            return true;
        }
    return false;
}

static enum quant_type mixed_ffn(const struct quantize_opts *o)
{
    return o->ffn_type != QUANT_F32 ? o->ffn_type : QUANT_Q4_0;
}

uint32_t quantize_file_type(const struct quantize_opts *o)
{
    if (o->kind == QUANTIZE_MIXED) /* most of it is the feed-forward */
        for (int i = 0; i < QUANTIZE_MIXED; i++)
            if (kinds[i].body == mixed_ffn(o))
                return kinds[i].file_type;
    return kinds[o->kind].file_type;
}

static bool is_matrix(const struct quantize_shape *t)
{
    static const char *const kept[] = {"_norm.weight", "position_embd.weight", "token_types.weight",
                                       "ffn_gate_inp.weight", "attn_rel_b.weight"};
    uint64_t rows = 1;
    for (uint32_t d = 1; d < t->n_dims; d++)
        rows *= t->dims[d] > 1 ? 2 : 1;
    if (rows < 2 || !str_ends_with(t->name, ".weight"))
        return false;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (str_ends_with(t->name, kept[i]))
            return false;
    return true;
}

/* The encoding for rows that are not a whole number of blocks of the type.  Super-blocks of 256
 * have finer scales; blocks of 32 use one more bit instead, as in llama.cpp, unless four bits were
 * asked for explicitly. */
static enum quant_type fit(enum quant_type type, uint64_t n_cols, bool four_bits)
{
    if (n_cols % quant_info(type)->block == 0)
        return type;
    if (n_cols % 32 != 0)
        return QUANT_F16;
    switch (type) {
    case QUANT_Q4_K:
        return four_bits ? QUANT_Q4_1 : QUANT_Q5_0;
    case QUANT_Q5_K:
        return QUANT_Q5_1;
    default: /* Q6_K */
        return QUANT_Q8_0;
    }
}

/* Layers that get more bits: the first and the last eighth and every third between, where errors
 * cost most (the rule of llama.cpp's Q4_K_M). */
static bool layer_needs_more(long layer, long n)
{
    return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
}

static enum quant_type body_type(const struct quantize_shape *t, const struct quantize_opts *o)
{
    enum quant_type type = kinds[o->kind].body;
    if (o->kind == QUANTIZE_MIXED) {
        if (strstr(t->name, "attn_"))
            return o->attn_type != QUANT_F32 ? o->attn_type : QUANT_Q8_0;
        return strstr(t->name, "ffn_") ? mixed_ffn(o) : type;
    }
    bool more = o->kind == QUANTIZE_Q4_K || o->kind == QUANTIZE_Q5_K;
    if (more && !o->pure && !strncmp(t->name, "blk.", 4) &&
        (strstr(t->name, "attn_v.") || strstr(t->name, "attn_qkv.") ||
         strstr(t->name, "ffn_down.")) &&
        layer_needs_more(strtol(t->name + 4, NULL, 10), (long)t->n_layers))
        type = strstr(t->name, "attn_qkv.") ? QUANT_Q5_K : QUANT_Q6_K;
    return type;
}

enum quant_type quantize_choose(const struct quantize_shape *t, enum quant_type from,
                                const struct quantize_opts *o)
{
    if (!is_matrix(t)) /* F32 is where other readers of GGUF expect such tensors */
        return from == QUANT_F16 || from == QUANT_BF16 ? QUANT_F32 : from;
    bool head = !strcmp(t->name, "output.weight") || !strcmp(t->name, "token_embd.weight") ||
                !strncmp(t->name, "cls.", 4) || !strncmp(t->name, "tag.", 4);
    enum quant_type type = head && !o->pure ? kinds[o->kind].head : body_type(t, o);
    return fit(type, t->dims[0], o->kind == QUANTIZE_MIXED || o->pure);
}

void quantize_plan(enum quant_type *types, const struct model_file *m,
                   const struct quantize_opts *o)
{
    char key[128], name[512];
    struct str arch = {"", 0};
    uint64_t n_layers = 0;

    (void)model_file_get_str(m, "general.architecture", &arch);
    snprintf(key, sizeof(key), "%.*s.block_count", (int)(arch.n < 64 ? arch.n : 64), arch.p);
    (void)model_file_get_u64(m, key, &n_layers);
    for (size_t i = 0; i < m->n_tensors; i++) {
        const struct model_file_tensor *t = &m->tensors[i];
        snprintf(name, sizeof(name), "%.*s", (int)t->name.n, t->name.p);
        struct quantize_shape shape = {.name = name,
                                       .n_dims = t->n_dims,
                                       .dims = t->dims,
                                       .n_layers = n_layers < 65536 ? (uint32_t)n_layers : 0};
        types[i] = quantize_choose(&shape, t->type, o);
    }
}
