/* decoder.c - loading: tiles the tensors of a model file, converts vectors, reserves scratch. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kernels/tiles.h"
#include "model/decoder_int.h"
#include "model/mixer/mixer.h"

struct loading {
    struct plan p;
    struct decoder *d;
};

static int norm(struct loading *o, const float **w, const float **b, int layer, const char *part)
{
    const struct decoder_config *c = &o->d->c;
    int rc = plan_vector(&o->p, w, layer, part, "weight", c->dim, true);
    if (rc == 0 && c->layer_norm)
        rc = plan_vector(&o->p, b, layer, part, "bias", c->dim, false);
    return rc;
}

/* The rows of own heads, of a matrix with `each` rows for every head of keys that begins at row
 * `first` of the tensor and column `at` of the result. */
static int head_rows(struct loading *o, struct linear *l, int i, const char *part,
                     uint32_t n_tensor, uint32_t first, uint32_t each, uint32_t at)
{
    const struct decoder *d = o->d;
    const struct plan_part rows = {.n_tensor = n_tensor,
                                   .first = first,
                                   .n_all = each * d->c.n_kv_heads,
                                   .row0 = each * d->head0,
                                   .n_rows = each * (d->head1 - d->head0)};
    int rc = plan_linear_part(&o->p, l, i, part, &rows, d->c.dim);
    l->out_at = at + rows.row0;
    return rc;
}

/* Own rows of a matrix of the usual kind. */
static int own_rows(struct loading *o, struct linear *l, int i, const char *part, uint32_t n_tensor,
                    uint32_t first, const uint32_t *cuts, uint32_t n_cols)
{
    const struct decoder_rows *r = &o->d->rows;
    const struct plan_part rows = {.n_tensor = n_tensor,
                                   .first = first,
                                   .n_all = cuts[r->n_parts],
                                   .row0 = cuts[r->index],
                                   .n_rows = cuts[r->index + 1] - cuts[r->index]};
    int rc = plan_linear_part(&o->p, l, i, part, &rows, n_cols);
    l->out_at = rows.row0;
    return rc;
}

/* As attention below, for own rows. */
static int attention_rows(struct loading *o, struct layer *l, int i)
{
    const struct decoder_config *c = &o->d->c;
    const uint32_t q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    const uint32_t all = q + 2 * kv, q_each = q / c->n_kv_heads;
    const bool fused = plan_has(&o->p, i, "attn_qkv");
    int rc =
        head_rows(o, &l->qkv[0], i, fused ? "attn_qkv" : "attn_q", fused ? all : q, 0, q_each, 0);
    if (rc == 0)
        rc = head_rows(o, &l->qkv[1], i, fused ? "attn_qkv" : "attn_k", fused ? all : kv,
                       fused ? q : 0, c->head_dim, q);
    if (rc == 0)
        rc = head_rows(o, &l->qkv[2], i, fused ? "attn_qkv" : "attn_v", fused ? all : kv,
                       fused ? q + kv : 0, c->head_dim, q + kv);
    l->n_qkv = o->d->head0 < o->d->head1 ? 3 : 0;
    if (rc == 0)
        rc = plan_vector(&o->p, &l->q_norm, i, "attn_q_norm", "weight", c->head_dim, false);
    if (rc == 0)
        rc = plan_vector(&o->p, &l->k_norm, i, "attn_k_norm", "weight", c->head_dim, false);
    return rc < 0 ? rc : own_rows(o, &l->attn_out, i, "attn_output", c->dim, 0, o->d->rows.dim, q);
}

static int feed_forward_rows(struct loading *o, struct layer *l, int i)
{
    const struct decoder_config *c = &o->d->c;
    const uint32_t *cuts = o->d->rows.ffn, n = c->ffn_dim, all = c->fused_gate ? 2 * n : n;
    int rc = 0;
    l->gate.mat = l->router.mat = NO_MAT;
    if (c->gated)
        rc = own_rows(o, &l->gate, i, c->fused_gate ? "ffn_up" : "ffn_gate", all, 0, cuts, c->dim);
    if (rc == 0)
        rc = own_rows(o, &l->up, i, "ffn_up", all, all - n, cuts, c->dim);
    return rc < 0 ? rc : own_rows(o, &l->down, i, "ffn_down", c->dim, 0, o->d->rows.dim, n);
}

static int attention(struct loading *o, struct layer *l, int i)
{
    const struct decoder_config *c = &o->d->c;
    if (o->d->rows.n_parts)
        return attention_rows(o, l, i);
    uint32_t q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    const uint32_t q_rows = c->gated_attention ? 2 * q : q;
    int rc = plan_linear(&o->p, &l->qkv[0], i, "attn_qkv", q_rows + 2 * kv, c->dim, false);
    l->n_qkv = 1;
    if (rc == 0 && l->qkv[0].mat == NO_MAT) {
        l->n_qkv = 3;
        rc = plan_linear(&o->p, &l->qkv[0], i, "attn_q", q_rows, c->dim, true);
        if (rc == 0)
            rc = plan_linear(&o->p, &l->qkv[1], i, "attn_k", kv, c->dim, true);
        if (rc == 0)
            rc = plan_linear(&o->p, &l->qkv[2], i, "attn_v", kv, c->dim, true);
        l->qkv[1].out_at = q_rows;
        l->qkv[2].out_at = q_rows + kv;
    }
    if (rc == 0)
        rc = plan_vector(&o->p, &l->q_norm, i, "attn_q_norm", "weight",
                         c->qk_norm_whole ? q : c->head_dim, c->qk_norm_whole);
    if (rc == 0)
        rc = plan_vector(&o->p, &l->k_norm, i, "attn_k_norm", "weight",
                         c->qk_norm_whole ? kv : c->head_dim, c->qk_norm_whole);
    if (rc == 0)
        rc = plan_linear(&o->p, &l->attn_out, i, "attn_output", c->dim, q, true);
    return rc;
}

static int feed_forward(struct loading *o, struct layer *l, int i)
{
    const struct decoder_config *c = &o->d->c;
    int rc = 0;
    if (o->d->rows.n_parts)
        return feed_forward_rows(o, l, i);
    l->gate.mat = l->up.mat = l->down.mat = l->router.mat = NO_MAT;
    if (c->no_ffn)
        return 0;
    if (c->n_experts > 0) {
        l->experts = mem_zalloc_n(c->n_experts, sizeof(*l->experts));
        return l->experts ? experts_plan(&o->p, &l->router, l->experts, c->n_experts, i, c->ffn_dim,
                                         c->dim)
                          : err_set(o->p.e, SHOAL_ENOMEM, "out of memory for the tensor plan");
    }
    if (c->fused_gate) {
        const uint32_t n = c->ffn_dim;
        rc = plan_linear_rows(&o->p, &l->gate, i, "ffn_up", 0, n, 2 * n, c->dim);
        if (rc == 0)
            rc = plan_linear_rows(&o->p, &l->up, i, "ffn_up", n, n, 2 * n, c->dim);
    } else {
        if (c->gated)
            rc = plan_linear(&o->p, &l->gate, i, "ffn_gate", c->ffn_dim, c->dim, true);
        if (rc == 0)
            rc = plan_linear(&o->p, &l->up, i, "ffn_up", c->ffn_dim, c->dim, true);
    }
    if (rc == 0)
        rc = plan_linear(&o->p, &l->down, i, "ffn_down", c->dim, c->ffn_dim, true);
    return rc;
}

/* Which keys a layer sees, and how it marks positions. */
static void reach(struct layer *l, const struct decoder_config *c, uint32_t i)
{
    bool global =
        c->window == 0 || (c->window_pattern && i % c->window_pattern == c->window_global);
    l->window = global ? 0 : c->window;
    l->local_rope = !global && c->rope_base_local > 0.0f;
    l->no_rope = (c->nope_pattern && (i + 1) % c->nope_pattern == 0) ||
                 (c->nope_global && c->window && global);
}

static int layer(struct loading *o, int i)
{
    const struct decoder_config *c = &o->d->c;
    struct layer *l = &o->d->layers[i];
    int rc = c->post_norm ? 0 : norm(o, &l->attn_norm_w, &l->attn_norm_b, i, "attn_norm");
    l->recurrent = decoder_config_recurrent(c, (uint32_t)i);
    if (rc == 0)
        rc = l->recurrent ? c->mixer->plan(&o->p, c, l, i) : attention(o, l, i);
    if (rc == 0 && !c->ffn_norm)
        rc = plan_vector(&o->p, &l->post_attn_norm, i, "post_attention_norm", "weight", c->dim,
                         c->post_norm);
    if (rc == 0 && !c->no_ffn && !c->post_norm && (!c->parallel || c->parallel_norms))
        rc = norm(o, &l->ffn_norm_w, &l->ffn_norm_b, i, c->ffn_norm ? c->ffn_norm : "ffn_norm");
    if (rc == 0)
        rc = feed_forward(o, l, i);
    if (rc == 0)
        rc = plan_vector(&o->p, &l->post_ffn_norm, i, "post_ffw_norm", "weight", c->dim,
                         c->post_norm);
    reach(l, c, (uint32_t)i);
    return rc;
}

/* Numbers the layers by what they keep of a sequence: pages of keys and values, or a state. */
static void number_layers(struct decoder *d)
{
    uint32_t kept[2] = {0, 0};
    for (uint32_t i = d->first; i < d->end; i++)
        if (d->layers[i].recurrent)
            d->layers[i].mix_at = kept[1]++;
        else
            d->layers[i].kv_at = kept[0]++;
}

/* Divisors of the frequencies that the file has, or NULL: Llama 3's, or Phi's for long or short
 * contexts.  Tensors of the context that is not chosen are claimed all the same. */
static int frequency_factors(struct loading *o, const float **out)
{
    const struct decoder_config *c = &o->d->c;
    const uint32_t half = c->rope_dim / 2;
    const float *longer = NULL, *shorter = NULL;
    int rc = plan_vector(&o->p, out, -1, "rope_freqs", "weight", half, false);
    if (rc < 0 || c->rope_kind != DECODER_ROPE_LONG)
        return rc;
    rc = plan_vector(&o->p, &longer, -1, "rope_factors_long", "weight", half, true);
    if (rc == 0)
        rc = plan_vector(&o->p, &shorter, -1, "rope_factors_short", "weight", half, true);
    *out = o->d->n_ctx > c->rope_ctx ? longer : shorter;
    for (uint32_t i = 0; rc == 0 && i < half; i++)
        if (!((*out)[i] > 0.0f))
            rc = err_set(o->p.e, SHOAL_EFORMAT, "a factor of rope_factors is not positive");
    return rc;
}

/* The pair of dimensions that turns this many times within the original context. */
static double turning(const struct decoder_config *c, double turns)
{
    return (double)c->rope_dim * log((double)c->rope_ctx / (turns * 2 * 3.14159265358979323846)) /
           (2 * log((double)c->rope_base));
}

/* YaRN: how much of pair i's frequency is kept, from 1 (short waves) to 0 (divided by the
 * factor). */
static double kept(const struct decoder_config *c, uint32_t i)
{
    double low = floor(turning(c, (double)c->rope_fast)),
           high = ceil(turning(c, (double)c->rope_slow));
    low = low > 0 ? low : 0;
    high = high < c->rope_dim - 1.0 ? high : c->rope_dim - 1.0;
    double ramp = (i - low) / (high - low > 0.001 ? high - low : 0.001);
    return 1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp);
}

static double frequency(const struct decoder *d, bool local, uint32_t i, const float *factors)
{
    const struct decoder_config *c = &d->c;
    double base = (double)(local && c->rope_base_local > 0.0f ? c->rope_base_local : c->rope_base);
    double f = pow(base, -2.0 * i / c->rope_dim);
    if (local)
        return f;
    if (c->rope_kind == DECODER_ROPE_YARN)
        return f * (kept(c, i) + (1 - kept(c, i)) / (double)c->rope_factor);
    return f * (double)c->rope_scale / (double)(factors ? factors[i] : 1.0f);
}

/* DYNAMIC: the base for the longest sequence.  A base that follows each sequence would leave the
 * keys of its beginning with another rotation, so it is fixed when the model is opened. */
static void fit_base(struct decoder *d)
{
    struct decoder_config *c = &d->c;
    if (c->rope_kind != DECODER_ROPE_DYNAMIC || d->n_ctx <= c->n_ctx_train || c->rope_dim <= 2)
        return;
    double f = (double)c->rope_factor;
    double stretch = f * d->n_ctx / c->n_ctx_train - (f - 1);
    c->rope_base = (float)((double)c->rope_base * pow(stretch, c->rope_dim / (c->rope_dim - 2.0)));
}

static int frequencies(struct loading *o)
{
    struct decoder *d = o->d;
    const uint32_t half = d->c.rope_dim / 2;
    const float *factors = NULL;
    int rc = half ? frequency_factors(o, &factors) : 0;
    if (rc == 0)
        fit_base(d);
    for (int which = 0; rc == 0 && half && which < 2; which++) {
        d->inv_freq[which] = mem_zalloc_n(half, sizeof(float));
        if (!d->inv_freq[which])
            return err_set(o->p.e, SHOAL_ENOMEM, "out of memory for the rotation table");
        for (uint32_t i = 0; i < half; i++)
            d->inv_freq[which][i] = (float)frequency(d, which == 1, i, factors);
    }
    return rc;
}

static int embeddings(struct loading *o)
{
    struct decoder *d = o->d;
    d->embd = plan_claim(&o->p, "token_embd.weight");
    if (!d->embd || d->embd->n_dims != 2 || d->embd->dims[0] != d->c.dim ||
        d->embd->dims[1] > INT32_MAX)
        return err_set(o->p.e, SHOAL_EFORMAT, "tensor token_embd.weight is missing or not %u wide",
                       d->c.dim);
    d->c.n_vocab = (uint32_t)d->embd->dims[1];
    if (d->c.learned_positions) {
        d->pos_embd = plan_claim(&o->p, "position_embd.weight");
        if (!d->pos_embd || d->pos_embd->n_dims != 2 || d->pos_embd->dims[0] != d->c.dim ||
            d->pos_embd->dims[1] < d->c.n_ctx_train)
            return err_set(o->p.e, SHOAL_EFORMAT,
                           "tensor position_embd.weight is missing or not %u x %u",
                           d->c.n_ctx_train, d->c.dim);
    }
    if (!decoder_has_head(d)) {
        plan_claim_prefix(&o->p, "output.");
        return 0;
    }
    int rc = plan_linear(&o->p, &d->output, -1, "output", d->c.n_vocab, d->c.dim, false);
    if (rc == 0 && d->output.mat == NO_MAT) /* tied to the embedding */
        rc = weights_add(&d->weights, d->embd, &d->output.mat, o->p.e);
    return rc;
}

/* The tensors of a layer that another part computes: known, and not loaded. */
static void leave_layer(struct loading *o, uint32_t i)
{
    char name[32];
    snprintf(name, sizeof(name), "blk.%u.", i);
    plan_claim_prefix(&o->p, name);
}

static int final_norm(struct loading *o)
{
    struct decoder *d = o->d;
    if (decoder_has_head(d))
        return norm(o, &d->final_norm_w, &d->final_norm_b, -1,
                    d->c.final_norm ? d->c.final_norm : "output_norm");
    plan_claim_prefix(&o->p, "output_norm.");
    return 0;
}

static int plan_tensors(struct decoder *d, struct err *e)
{
    struct loading o = {.d = d};
    int rc = plan_init(&o.p, d->file, &d->weights, &d->vectors, e);
    d->layers = mem_zalloc_n(d->c.n_layers, sizeof(*d->layers));
    if (rc == 0 && !d->layers)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the tensor plan");
    for (uint32_t i = 0; rc == 0 && i < d->c.n_layers; i++) {
        if (i >= d->first && i < d->end)
            rc = layer(&o, (int)i);
        else
            leave_layer(&o, i);
    }
    for (uint32_t i = 0; rc == 0 && i < d->c.n_unused_layers; i++)
        leave_layer(&o, d->c.n_layers + i);
    if (rc == 0) {
        number_layers(d);
        rc = final_norm(&o);
    }
    if (rc == 0)
        rc = embeddings(&o);
    if (rc == 0)
        rc = frequencies(&o);
    if (rc == 0)
        rc = plan_check_all_claimed(&o.p, d->c.arch);
    plan_fini(&o.p);
    return rc;
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* Returns the size of the first part, which prefill reads with long strides: large pages pay off
 * there.  The rest is reserved for the worst case (mostly a row of logits for each token of a pass)
 * and rarely used, so it gets normal pages. */
static size_t lay_out_scratch(struct decoder *d, uint8_t *base)
{
    const struct decoder_config *c = &d->c;
    struct carve at = {.base = base};
    const size_t b = d->max_batch, f = sizeof(float);
    const uint32_t heads = c->n_heads * c->head_dim, members = crew_lane_size(d->lane);
    d->x = plan_carve_take(&at, b * c->dim * f);
    d->xn = plan_carve_take(&at, b * c->dim * f);
    d->qkv = plan_carve_take(&at, b * d->qkv_dim * f);
    d->att = plan_carve_take(&at, b * heads * f);
    d->proj = plan_carve_take(&at, b * c->dim * f);
    d->keep = c->parallel ? plan_carve_take(&at, b * c->dim * f) : NULL;
    d->gate = c->gated_attention ? plan_carve_take(&at, b * heads * f) : NULL;
    d->mix = plan_carve_take(&at, b * d->mix_dim * f);
    d->hidden = plan_carve_take(&at, b * c->ffn_dim * f);
    d->hidden_up = c->gated ? plan_carve_take(&at, b * c->ffn_dim * f) : NULL;
    plan_carve_act(&at, &d->act_x, d->xn, d->max_batch, c->dim);
    plan_carve_act(&at, &d->act_att, d->att, d->max_batch, heads);
    plan_carve_act(&at, &d->act_mix, d->mix, d->max_batch, d->mix_dim);
    plan_carve_act(&at, &d->act_hidden, d->hidden, d->max_batch, c->ffn_dim);
    experts_carve(&at, &d->experts, d->max_batch, c->dim, c->ffn_dim);
    const size_t strided = at.bytes;
    d->rope_cs[0] = plan_carve_take(&at, b * c->rope_dim * 2 * f);
    d->rope_cs[1] = plan_carve_take(&at, b * c->rope_dim * 2 * f);
    d->logits =
        decoder_has_head(d) ? plan_carve_take(&at, (size_t)d->max_logits * c->n_vocab * f) : NULL;
    d->attn_scratch = plan_carve_take(&at, members * sizeof(float *));
    for (uint32_t i = 0; i < members; i++) {
        float *s = plan_carve_take(&at, kern_attn_scratch(d->n_ctx) * f);
        if (base)
            d->attn_scratch[i] = s;
    }
    uint32_t most_rows = c->ffn_dim > d->qkv_dim ? c->ffn_dim : d->qkv_dim;
    most_rows = c->n_vocab > most_rows ? c->n_vocab : most_rows;
    d->stage_rows = products_stage_rows(members, most_rows);
    d->stage = plan_carve_take(&at, members * sizeof(float *));
    for (uint32_t i = 0; i < members; i++) {
        float *s = plan_carve_take(&at, (size_t)2 * PRODUCTS_FEW * d->stage_rows * f);
        if (base)
            d->stage[i] = s;
    }
    d->units = plan_carve_take(&at, c->n_kv_heads * (2 * b) * sizeof(*d->units));
    d->phases = plan_carve_take(&at, decoder_most_phases(c) * sizeof(*d->phases));
    d->run_of = plan_carve_take(&at, b * sizeof(uint32_t));
    d->run_first = plan_carve_take(&at, b * sizeof(uint32_t));
    d->adapted = plan_carve_take(&at, b * sizeof(*d->adapted));
    d->states = plan_carve_take(&at, d->n_states * d->state_floats * f);
    d->logit_token = plan_carve_take(&at, d->max_logits * sizeof(uint32_t));
    d->scratch_bytes = at.bytes;
    return strided;
}

static void which_inputs_are_quantized(struct decoder *d)
{
    for (uint32_t i = d->first; i < d->end; i++) {
        const struct layer *l = &d->layers[i];
        for (uint32_t j = 0; j < l->n_qkv; j++)
            d->int_x = d->int_x || linear_is_int(&d->weights, &l->qkv[j]);
        d->int_x =
            d->int_x || linear_is_int(&d->weights, &l->gate) || linear_is_int(&d->weights, &l->up);
        bool *of = l->recurrent ? &d->int_mix : &d->int_att;
        *of = *of || linear_is_int(&d->weights, &l->attn_out);
        d->int_hidden = d->int_hidden || linear_is_int(&d->weights, &l->down);
        if (l->experts)
            experts_inputs(&d->experts, &d->weights, l->experts);
        d->int_x = d->int_x || d->experts.int_in || linear_is_int(&d->weights, &l->router);
    }
    d->int_x = d->int_x || (decoder_has_head(d) && linear_is_int(&d->weights, &d->output));
}

/* ---- create -------------------------------------------------------------------------------- */

/* What the layers keep of a sequence, and the widths of recurrent blocks. */
static int measure_layers(struct decoder *d, struct err *e)
{
    const struct decoder_config *c = &d->c;
    size_t n_mixed = 0;
    for (uint32_t i = 0; i < c->n_layers; i++)
        n_mixed += decoder_config_recurrent(c, i);
    if (n_mixed > 0 && !c->mixer)
        return err_set(e, SHOAL_EUNSUPPORTED, "%s: layers without attention are not supported",
                       c->arch);
    if (n_mixed > 0 && d->end - d->first < c->n_layers)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s: a model with recurrent layers cannot be divided yet", c->arch);
    d->kv_page_bytes = d->kv_head_bytes * (d->head1 - d->head0) * (d->end - d->first - n_mixed);
    if (d->kv_page_bytes == 0)
        d->kv_page_bytes = 64; /* pages still say which tokens a state belongs to */
    if (n_mixed == 0)
        return 0;
    const uint32_t in = c->mixer->in_dim(c);
    d->qkv_dim = in > d->qkv_dim ? in : d->qkv_dim;
    d->mix_dim = c->mixer->out_dim(c);
    d->layer_state_floats = mixer_state_at(c->mixer, c, MIXER_STAGES);
    d->state_floats = (d->layer_state_floats * n_mixed + 15) / 16 * 16;
    return 0;
}

/* Whether the architecture can be cut by rows; otherwise e says why not. */
static int rows_possible(const struct decoder_config *c, struct err *e)
{
    const char *what = c->mixer             ? "recurrent layers"
                       : c->n_experts > 0   ? "experts"
                       : c->qk_norm_whole   ? "norms over all heads"
                       : c->gated_attention ? "gated attention"
                       : c->no_ffn          ? "no feed-forward"
                                            : NULL;
    return what ? err_set(e, SHOAL_EUNSUPPORTED,
                          "%s: a model with %s cannot be divided by rows yet: divide it by layers",
                          c->arch, what)
                : 0;
}

/* least: of a part. */
static bool is_cut(const uint32_t *cuts, uint32_t n_parts, uint32_t all, uint32_t least)
{
    bool ok = cuts[0] == 0 && cuts[n_parts] == all;
    for (uint32_t i = 0; ok && i < n_parts; i++)
        ok = cuts[i] <= cuts[i + 1] && cuts[i + 1] - cuts[i] >= least;
    return ok;
}

static int check_rows(const struct decoder_rows *r, const struct decoder_config *c, struct err *e)
{
    if (r->n_parts < 2 || r->n_parts > DECODER_ROWS_MAX || r->index >= r->n_parts)
        return err_set(e, SHOAL_EINVAL, "part %u of %u is no part by rows", r->index, r->n_parts);
    if (!is_cut(r->heads, r->n_parts, c->n_kv_heads, 0) ||
        !is_cut(r->ffn, r->n_parts, c->ffn_dim, 1) || !is_cut(r->dim, r->n_parts, c->dim, 1))
        return err_set(e, SHOAL_EINVAL,
                       "these cuts by rows are not those of a model with %u heads of keys, %u rows "
                       "and %u",
                       c->n_kv_heads, c->ffn_dim, c->dim);
    return rows_possible(c, e);
}

static int configure_rows(struct decoder *d, const struct decoder_rows *r, struct err *e)
{
    if (r->n_parts == 0)
        return 0;
    if (d->end - d->first < d->c.n_layers)
        return err_set(e, SHOAL_EINVAL, "a part by rows has rows of all layers");
    int rc = check_rows(r, &d->c, e);
    d->rows = *r;
    d->head0 = r->heads[r->index];
    d->head1 = rc == 0 ? r->heads[r->index + 1] : 0;
    return rc;
}

static int configure(struct decoder *d, const struct model_file *file, const struct decoder_opts *o,
                     struct err *e)
{
    struct str name;
    if (!model_file_get_str(file, "general.architecture", &name))
        return err_set(e, SHOAL_EFORMAT, "metadata key general.architecture is missing");
    const struct arch *a = arch_find(name.p, name.n);
    if (!a) {
        char known[384];
        arch_names(known, sizeof(known));
        return err_set(e, SHOAL_EUNSUPPORTED, "architecture \"%.*s\" (known: %s)",
                       (int)(name.n < 64 ? name.n : 64), name.p, known);
    }
    d->file = file;
    d->c.arch = a->name;
    int rc = a->configure(&d->c, file, e);
    if (rc < 0)
        return rc;
    d->k = o->kernels ? o->kernels : kern_select(NULL, e);
    if (!d->k)
        return e ? e->code : SHOAL_EUNSUPPORTED;
    d->crew = o->crew;
    d->first = o->layer_first;
    d->end = o->layer_end ? o->layer_end : d->c.n_layers;
    if (d->first >= d->end || d->end > d->c.n_layers)
        return err_set(e, SHOAL_EINVAL, "layers %u to %u are no part of a model with %u layers",
                       d->first, d->end, d->c.n_layers);
    uint32_t own = d->c.n_ctx_train;
    d->n_ctx = o->n_ctx ? o->n_ctx : own < 4096 ? own : 4096;
    if (d->c.learned_positions && d->n_ctx > own)
        return err_set(e, SHOAL_ELIMIT, "context of %u tokens exceeds the model's %u positions",
                       d->n_ctx, own);
    if (d->n_ctx > 1u << 20)
        return err_set(e, SHOAL_ELIMIT, "context of %u tokens exceeds the limit of %u", d->n_ctx,
                       1u << 20);
    d->max_batch = o->max_batch ? o->max_batch : 128;
    d->max_logits = o->max_logits ? o->max_logits : 1;
    if (d->max_batch > 4096 || d->max_logits > d->max_batch)
        return err_set(
            e, SHOAL_EINVAL,
            "batch of %u tokens with %u logits rows is not possible: at most 4096 tokens "
            "and one row per token",
            d->max_batch, d->max_logits);
    d->kv_kind = o->kv_kind;
    d->qkv_dim =
        (d->c.n_heads * (d->c.gated_attention ? 2 : 1) + 2 * d->c.n_kv_heads) * d->c.head_dim;
    d->kv_head_bytes = (kern_kv_head_bytes(d->kv_kind, d->c.head_dim) + 63) / 64 * 64;
    d->experts.n = d->c.n_experts;
    d->experts.n_used = d->c.n_experts_used;
    d->experts.renormalize = d->c.expert_norm;
    d->n_states = o->n_states ? o->n_states : 1;
    d->head1 = d->c.n_kv_heads;
    if ((rc = configure_rows(d, &o->rows, e)) < 0 || (rc = measure_layers(d, e)) < 0)
        return rc;
    weights_init(&d->weights, &d->k->layout);
    if (d->first > 0 || !decoder_has_head(d))
        d->weights.part = d->first << 16 | d->end;
    if (d->rows.n_parts)
        d->weights.part = (uint32_t)hash_bytes(&d->rows, sizeof(d->rows), 0) | 1u;
    return 0;
}

int decoder_create(struct decoder **out, const struct model_file *file, const char *path,
                   const struct decoder_opts *o, struct err *e)
{
    static const struct decoder_opts defaults;
    o = o ? o : &defaults;
    *out = NULL;
    struct decoder *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "decoder");
    int rc = configure(d, file, o, e);
    if (rc == 0)
        rc = plan_tensors(d, e);
    if (rc == 0)
        rc = crew_lane_create(&d->lane, d->crew, o->n_threads ? o->n_threads : crew_cores(), e);
    if (rc == 0) {
        d->max_threads = crew_lane_size(d->lane);
        size_t strided = lay_out_scratch(d, NULL);
        d->scratch = mem_pages_partly(d->scratch_bytes, strided);
        rc = d->scratch ? 0
                        : err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of scratch",
                                  d->scratch_bytes);
    }
    if (rc == 0) {
        (void)lay_out_scratch(d, d->scratch);
        which_inputs_are_quantized(d);
        rc =
            weights_load(&d->weights, path, o->cache_dir, d->lane, o->progress, o->progress_ctx, e);
        model_file_trim(file); /* from now on only rows of the embedding are read */
    }
    if (rc < 0) {
        decoder_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}

int decoder_measure(struct decoder_sizes *out, const struct model_file *file,
                    const struct decoder_opts *o, struct err *e)
{
    struct decoder *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "decoder");
    int rc = configure(d, file, o, e);
    if (rc == 0)
        rc = plan_tensors(d, e);
    if (rc == 0)
        rc = crew_lane_create(&d->lane, NULL, 1, e);
    if (rc == 0) {
        (void)lay_out_scratch(d, NULL);
        /* attention scratch is per thread */
        size_t more = (o->n_threads ? o->n_threads : crew_cores()) - 1;
        d->scratch_bytes += more * kern_attn_scratch(d->n_ctx) * sizeof(float);
        *out = decoder_sizes(d);
    }
    decoder_destroy(d);
    return rc;
}

/* The size of a matrix as it is tiled. */
static uint64_t linear_bytes(const struct decoder *d, const struct linear *l)
{
    const struct kern_mat *m = l->mat == NO_MAT ? NULL : &d->weights.mats[l->mat];
    return m ? (uint64_t)tiles_count(&d->weights.layout, m->n_rows) * m->tile_bytes : 0;
}

int decoder_costs(struct decoder_costs *out, const struct model_file *file,
                  const struct decoder_opts *o, struct err *e)
{
    struct decoder *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "decoder");
    int rc = configure(d, file, o, e);
    if (rc == 0)
        rc = plan_tensors(d, e);
    if (rc == 0)
        *out = (struct decoder_costs){.n_layers = d->c.n_layers,
                                      .dim = d->c.dim,
                                      .n_vocab = d->c.n_vocab,
                                      .n_kv_heads = d->c.n_kv_heads,
                                      .ffn_dim = d->c.ffn_dim,
                                      .rows = rows_possible(&d->c, NULL) == 0,
                                      .kv_page_bytes = d->kv_head_bytes * d->c.n_kv_heads};
    for (uint32_t i = d->first; rc == 0 && i < d->end; i++) {
        const struct layer *l = &d->layers[i];
        uint64_t sum = linear_bytes(d, &l->attn_out) + linear_bytes(d, &l->gate) +
                       linear_bytes(d, &l->up) + linear_bytes(d, &l->down);
        for (uint32_t j = 0; j < l->n_qkv; j++)
            sum += linear_bytes(d, &l->qkv[j]);
        out->layer_bytes = sum > out->layer_bytes ? sum : out->layer_bytes;
    }
    if (rc == 0 && decoder_has_head(d))
        out->head_bytes = linear_bytes(d, &d->output);
    decoder_destroy(d);
    return rc;
}

void decoder_destroy(struct decoder *d)
{
    if (!d)
        return;
    crew_lane_destroy(d->lane);
    weights_fini(&d->weights);
    plan_small_tensors_fini(&d->vectors);
    for (uint32_t i = 0; d->layers && i < d->c.n_layers; i++)
        mem_free(d->layers[i].experts);
    mem_free(d->layers);
    mem_free(d->inv_freq[0]);
    mem_free(d->inv_freq[1]);
    mem_pages_free(d->scratch, d->scratch_bytes);
    mem_free(d);
}

const struct decoder_config *decoder_config(const struct decoder *d)
{
    return &d->c;
}

const struct model_file *decoder_file(const struct decoder *d)
{
    return d->file;
}

uint32_t decoder_n_ctx(const struct decoder *d)
{
    return d->n_ctx;
}

uint32_t decoder_max_batch(const struct decoder *d)
{
    return d->max_batch;
}

uint32_t decoder_max_logits(const struct decoder *d)
{
    return d->max_logits;
}

const struct kern_ops *decoder_kernels(const struct decoder *d)
{
    return d->k;
}

uint32_t decoder_n_threads(const struct decoder *d)
{
    return crew_lane_size(d->lane);
}

struct crew_lane *decoder_lane(const struct decoder *d)
{
    return d->lane;
}

struct decoder_sizes decoder_sizes(const struct decoder *d)
{
    return (struct decoder_sizes){d->weights.data_bytes, d->scratch_bytes, d->kv_page_bytes,
                                  d->n_ctx, d->state_floats * sizeof(float)};
}

bool decoder_from_cache(const struct decoder *d)
{
    return d->weights.from_cache;
}

const struct weights *decoder_weights(const struct decoder *d)
{
    return &d->weights;
}

struct decoder_parts decoder_parts(const struct decoder *d)
{
    return (struct decoder_parts){.c = &d->c,
                                  .layers = d->layers,
                                  .final_norm_w = d->final_norm_w,
                                  .final_norm_b = d->final_norm_b,
                                  .output = &d->output,
                                  .weights = &d->weights,
                                  .n_ctx = d->n_ctx,
                                  .kv_kind = d->kv_kind,
                                  .kv_head_bytes = d->kv_head_bytes,
                                  .kv_page_bytes = d->kv_page_bytes};
}

size_t decoder_kv_page_bytes(const struct decoder *d)
{
    return d->kv_page_bytes;
}

void decoder_set_kv(struct decoder *d, uint8_t *kv)
{
    d->kv = kv;
}

void decoder_set_gather(struct decoder *d, decoder_gather_fn fn, void *ctx)
{
    d->gather = fn;
    d->gather_ctx = ctx;
}

void decoder_recut(struct decoder *d, const struct decoder_rows *rows)
{
    assert(rows->heads[rows->index] == d->head0 && rows->heads[rows->index + 1] == d->head1);
    d->rows = *rows;
}

bool decoder_lost(const struct decoder *d)
{
    return d->lost;
}

void decoder_watch(struct decoder *d, decoder_watch_fn fn, void *ctx)
{
    d->watch = fn;
    d->watch_ctx = ctx;
}

int decoder_set_threads(struct decoder *d, uint32_t n_threads, struct err *e)
{
    struct crew_lane *lane;
    if (n_threads == 0 || n_threads > d->max_threads)
        return err_set(e, SHOAL_EINVAL, "cannot use %u threads: choose 1 to %u", n_threads,
                       d->max_threads);
    int rc = crew_lane_create(&lane, d->crew, n_threads, e);
    if (rc < 0)
        return rc;
    crew_lane_destroy(d->lane);
    d->lane = lane;
    return 0;
}
