/* voice_conv.c - products over windows, and phases over rows; see voice_int.h. */
#include "model/voice/voice_int.h"

void voice_conv_run(const struct voice *v, const struct voice_conv *c, struct voice_member *m,
                    const float *x, size_t ld, uint32_t n, float *out, size_t out_ld)
{
    const struct kern_mat *w = &v->weights.mats[c->l.mat];
    const uint32_t rows = v->k->layout.tile_rows, tiles = (w->n_rows + rows - 1) / rows;
    const uint32_t most = c->form == LINEAR_INPUT_FLOATS ? n : VOICE_ROWS;
    for (uint32_t at = 0; at < n; at += most) {
        const uint32_t now = n - at < most ? n - at : most;
        struct kern_act a = m->windows;
        a.x = x + at * ld;
        a.ld = ld;
        a.n_cols = w->n_cols;
        for (uint32_t t = 0; c->form != LINEAR_INPUT_FLOATS && t < now; t++)
            plan_linear_round_all(v->k, &a, c->form, t);
        plan_linear_product(v->k, &v->weights, &c->l, &a, now, 0, tiles, out + at * out_ld, out_ld);
    }
}

void voice_phase(struct voice *v, uint32_t *n_phases, uint32_t arg, uint32_t n, uint32_t least,
                 void (*chunk)(void *ctx, const struct crew_phase *p, uint32_t chunk,
                               uint32_t member))
{
    const uint32_t members = crew_lane_size(v->lane), most = members == 1 ? 1 : members * 2;
    uint32_t chunks = (n + least - 1) / least;
    chunks = chunks > most ? most : chunks ? chunks : 1;
    v->phases[(*n_phases)++] =
        (struct crew_phase){.chunk = chunk, .arg = arg, .n_items = n, .n_chunks = chunks};
}

void voice_phases_run(struct voice *v, uint32_t n_phases)
{
    crew_run(v->lane, v, v->phases, n_phases, NULL);
}
