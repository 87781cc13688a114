/* arch_bart.c - BART and Marian: layer norms behind the blocks, positions that are added to the
 * tokens.  BART's are learned, and it norms the tokens as well; Marian's are sines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/arch/arch.h"
#include "model/t5_int.h"

static int read_act(struct t5_shape *s, const struct decoder_config *as,
                    const struct model_file *file, struct err *e)
{
    static const struct {
        const char *name;
        enum products_act act;
    } acts[] = {{"gelu", PRODUCTS_ACT_GELU_ERF},
                {"gelu_new", PRODUCTS_ACT_GELU},
                {"relu", PRODUCTS_ACT_RELU},
                {"silu", PRODUCTS_ACT_SILU},
                {"swish", PRODUCTS_ACT_SILU}};
    char key[32];
    struct str v;
    snprintf(key, sizeof(key), "%s.activation", as->arch);
    if (!model_file_get_str(file, key, &v))
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is missing", key);
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        if (strlen(acts[i].name) == v.n && memcmp(acts[i].name, v.p, v.n) == 0) {
            s->act[0] = s->act[1] = acts[i].act;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "%s \"%.*s\" is not supported", key,
                   (int)(v.n < 64 ? v.n : 64), v.p);
}

static int read_common(struct t5_config *c, struct t5_shape *s, const struct decoder_config *as,
                       const struct model_file *file, struct err *e)
{
    uint32_t start;
    int rc;
    if ((rc = arch_u32(as, file, "context_length", 1, 65536, &c->n_ctx_train, e)) < 0 ||
        (rc = arch_u32(as, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = arch_u32(as, file, "block_count", 1, 1024, &c->n_enc, e)) < 0 ||
        (rc = arch_u32_or(as, file, "decoder_block_count", 1, 1024, c->n_enc, &c->n_dec, e)) < 0 ||
        (rc = arch_u32(as, file, "attention.head_count", 1, c->dim, &c->n_heads, e)) < 0 ||
        (rc = arch_u32(as, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0 ||
        (rc = arch_u32(as, file, "decoder_start_token_id", 0, INT32_MAX, &start, e)) < 0 ||
        (rc = arch_f32_or(as, file, "embedding_scale", 0.0f, &s->embd_scale, e)) < 0 ||
        (rc = arch_f32_or(as, file, "attention.layer_norm_epsilon", 1e-5f, &c->norm_eps, e)) < 0)
        return rc;
    if (c->dim % c->n_heads)
        return err_set(e, SHOAL_EFORMAT, "%u values are not %u heads", c->dim, c->n_heads);
    c->head_dim = c->dim / c->n_heads;
    c->start_token = (int32_t)start;
    c->output_scale = 1.0f;
    s->layer_norm = s->norm_bias = s->norm_behind = true;
    s->attn_scale = 1.0f / sqrtf((float)c->head_dim);
    return read_act(s, as, file, e);
}

int arch_bart(struct t5_config *c, struct t5_shape *s, const struct model_file *file, struct err *e)
{
    const struct decoder_config as = {.arch = "bart"}; /* only its name is read */
    s->places = T5_PLACES_LEARNED;
    s->norm_embd = true;
    return read_common(c, s, &as, file, e);
}

int arch_marian(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
                struct err *e)
{
    const struct decoder_config as = {.arch = "marian"};
    s->places = T5_PLACES_SINES;
    return read_common(c, s, &as, file, e);
}
