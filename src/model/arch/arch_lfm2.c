/* arch_lfm2.c - LFM2 and LFM2.5: short convolutions, and attention in some layers. */
#include "model/arch/arch.h"
#include "model/mixer/mixer.h"

int arch_lfm2(struct decoder_config *c, const struct model_file *file, struct err *e)
{
    int rc = arch_common(c, file, e);
    if (rc == 0)
        rc = arch_rms_eps(c, file, e);
    if (rc == 0)
        rc = arch_u32(c, file, "shortconv.l_cache", 2, 64, &c->conv_len, e);
    c->rope_neox = true;
    c->gated = true;
    c->act = DECODER_ACT_SILU;
    c->mixer = &mixer_shortconv;
    if (model_file_find_tensor(file, "token_embd_norm.weight"))
        c->final_norm = "token_embd_norm"; /* the last norm, under a misleading name */
    return rc;
}
