/* experts.c - see experts.h. */
#include "model/experts.h"

#include <string.h>

int experts_plan(struct plan *p, struct linear *router, struct expert *list, uint32_t n, int layer,
                 uint32_t width, uint32_t dim)
{
    int rc = plan_linear(p, router, layer, "ffn_gate_inp", n, dim, true);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        rc = plan_linear_of(p, &list[i].gate, layer, "ffn_gate_exps", i, n, width, dim);
        if (rc == 0)
            rc = plan_linear_of(p, &list[i].up, layer, "ffn_up_exps", i, n, width, dim);
        if (rc == 0)
            rc = plan_linear_of(p, &list[i].down, layer, "ffn_down_exps", i, n, dim, width);
    }
    return rc;
}

void experts_inputs(struct experts *x, const struct weights *w, const struct expert *list)
{
    for (uint32_t i = 0; i < x->n; i++) {
        x->int_in = x->int_in || linear_is_int(w, &list[i].gate) || linear_is_int(w, &list[i].up);
        x->int_hidden = x->int_hidden || linear_is_int(w, &list[i].down);
    }
}

void experts_carve(struct carve *at, struct experts *x, uint32_t max_batch, uint32_t dim,
                   uint32_t width)
{
    const uint32_t most = max_batch * x->n_used;
    const size_t rows = most, f = sizeof(float), u = sizeof(uint32_t);
    if (x->n == 0)
        return;
    x->x = plan_carve_take(at, rows * dim * f);
    x->hidden = plan_carve_take(at, rows * width * f);
    x->up = plan_carve_take(at, rows * width * f);
    x->out = plan_carve_take(at, rows * dim * f);
    plan_carve_act(at, &x->act_x, x->x, most, dim);
    plan_carve_act(at, &x->act_hidden, x->hidden, most, width);
    x->routes = plan_carve_take(at, (size_t)max_batch * x->n * f);
    x->choice = plan_carve_take(at, rows * u);
    x->weight = plan_carve_take(at, rows * f);
    x->place = plan_carve_take(at, rows * u);
    x->token = plan_carve_take(at, rows * u);
    x->count = plan_carve_take(at, ((size_t)x->n + 1) * u);
    x->groups = plan_carve_take(at, x->n * sizeof(*x->groups));
}

/* The experts that a token wants most, the first among equals; routes are used up. */
static void choose(struct experts *x, const struct kern_ops *k, uint32_t token)
{
    float *want = x->routes + (size_t)token * x->n, chosen = 0.0f;
    const size_t first = (size_t)token * x->n_used;
    const float all = k->softmax_exp(want, want, x->n, k->max(want, x->n));
    for (uint32_t i = 0; i < x->n_used; i++) {
        const uint32_t best = k->argmax(want, x->n);
        x->choice[first + i] = best;
        x->weight[first + i] = want[best];
        chosen += want[best];
        want[best] = -1.0f;
        x->count[best]++;
    }
    for (uint32_t i = 0; i < x->n_used; i++)
        x->weight[first + i] /= x->renormalize ? chosen : all;
}

void experts_choose(struct experts *x, const struct kern_ops *k, uint32_t n_tokens)
{
    uint32_t at = 0;
    memset(x->count, 0, x->n * sizeof(*x->count));
    for (uint32_t t = 0; t < n_tokens; t++)
        choose(x, k, t);
    x->n_groups = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t n = x->count[i];
        if (n > 0)
            x->groups[x->n_groups++] = (struct expert_group){i, at, n};
        x->count[i] = at;
        at += n;
    }
    for (uint32_t r = 0; r < n_tokens * x->n_used; r++) {
        x->place[r] = x->count[x->choice[r]]++;
        x->token[x->place[r]] = r / x->n_used;
    }
}

/* Copies the inputs of a group's tokens, as floats and as integers, to one place. */
static void gather(struct experts *x, const struct kern_act *in, const struct expert_group *g)
{
    const size_t n = in->n_cols;
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const struct kern_act from = kern_act_from(in, x->token[i]);
        memcpy(x->x + i * n, from.x, n * sizeof(float));
        if (x->int_in) {
            memcpy(x->act_x.q + i * n, from.q, n);
            memcpy(x->act_x.scale + i * (n / 32), from.scale, n / 32 * sizeof(float));
            memcpy(x->act_x.sums + i * (n / 16), from.sums, n / 16 * sizeof(int32_t));
        }
    }
}

static void product(const struct kern_ops *k, const struct weights *w, const struct linear *l,
                    const struct kern_act *a, uint32_t n, float *out, size_t ld)
{
    const uint32_t rows = w->mats[l->mat].n_rows, tile = k->layout.tile_rows;
    plan_linear_product(k, w, l, a, n, 0, (rows + tile - 1) / tile, out, ld);
}

void experts_run(struct experts *x, const struct kern_ops *k, const struct weights *w,
                 const struct expert *list, const struct kern_act *in, uint32_t group)
{
    const struct expert_group *g = &x->groups[group];
    const struct expert *e = &list[g->expert];
    const size_t width = x->act_hidden.n_cols, dim = in->n_cols;
    const struct kern_act hidden = kern_act_from(&x->act_hidden, g->first);
    struct kern_act from;
    if (g->n == 1) {
        from = kern_act_from(in, x->token[g->first]);
    } else {
        gather(x, in, g);
        from = kern_act_from(&x->act_x, g->first);
    }
    float *h = x->hidden + g->first * width, *up = x->up + g->first * width;
    product(k, w, &e->gate, &from, g->n, h, width);
    product(k, w, &e->up, &from, g->n, up, width);
    for (uint32_t i = 0; i < g->n; i++, h += width, up += width) {
        k->silu_mul(h, h, up, (uint32_t)width);
        if (x->int_hidden)
            k->quantize(&hidden, i, 0, (uint32_t)width / 32);
    }
    product(k, w, &e->down, &hidden, g->n, x->out + g->first * dim, dim);
}

void experts_sum(const struct experts *x, const struct kern_ops *k, uint32_t token, float *y,
                 uint32_t dim)
{
    memset(y, 0, dim * sizeof(float));
    for (uint32_t i = 0; i < x->n_used; i++) {
        const size_t r = (size_t)token * x->n_used + i;
        float *row = x->out + (size_t)x->place[r] * dim;
        k->scale(row, x->weight[r], dim);
        k->add(y, row, dim);
    }
}
