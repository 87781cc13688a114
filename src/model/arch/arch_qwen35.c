/* arch_qwen35.c - Qwen 3.5, text: gated delta rule, and gated attention in every fourth layer. */
#include "model/arch/arch.h"

#include "model/mixer/mixer.h"

int arch_qwen35(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    uint32_t every, ahead;
    int rc = arch_common(c, file, e);
    if (rc < 0 || (rc = arch_rms_eps(c, file, e)) < 0 || (rc = arch_ssm(c, file, e)) < 0 ||
        (rc = arch_u32_or(c, file, "full_attention_interval", 1, 64, 4, &every, e)) < 0 ||
        (rc = arch_u32_or(c, file, "nextn_predict_layers", 0, c->n_layers - 1, 0, &ahead, e)) < 0)
        return rc;
    if (c->ssm_state > MIXER_MAX_KEY)
        return err_set(e, SHOAL_EUNSUPPORTED, "keys of %u values (at most %u)", c->ssm_state,
                       MIXER_MAX_KEY);
    c->n_layers -= ahead; /* the last ones guess further tokens, which is not done here */
    c->n_unused_layers = ahead;
    bool listed = false; /* folders say which layers have attention */
    for (uint32_t i = 0; i < c->n_layers; i++)
        listed = listed || decoder_config_recurrent(c, i);
    for (uint32_t i = 0; i < c->n_layers && !listed; i++)
        if ((i + 1) % every != 0)
            c->recurrent[i / 64] |= 1ull << i % 64;
    c->mixer = &mixer_delta;
    c->rope_neox = true;
    c->gated = true;
    c->act = DECODER_ACT_SILU;
    c->gated_attention = true;
    c->ffn_norm = "post_attention_norm"; /* comes before the feed-forward, as in Llama */
    return 0;
}
