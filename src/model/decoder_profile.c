/* decoder_profile.c - see decoder_profile.h. */
#include "model/decoder_profile.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/decoder_int.h"

int decoder_profile_create(struct decoder_profile **out, uint32_t n_members, uint32_t n_phases,
                           uint32_t n_events, struct err *e)
{
    struct decoder_profile *f = mem_zalloc(sizeof(*f));
    *out = NULL;
    bool ok = f && (f->phases = mem_zalloc_n(n_phases, sizeof(*f->phases)));
    for (uint32_t i = 0; ok && i < n_members; i++)
        ok = (f->members[i].events = mem_zalloc_n(n_events, sizeof(*f->members[i].events))) != NULL;
    if (!ok) {
        decoder_profile_destroy(f);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a profile");
    }
    f->cap_phases = n_phases;
    f->cap_events = n_events;
    f->n_members = n_members;
    *out = f;
    return 0;
}

void decoder_profile_destroy(struct decoder_profile *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < CREW_MAX_MEMBERS; i++)
        mem_free(f->members[i].events);
    mem_free(f->phases);
    mem_free(f);
}

/* ---- while a pass runs ---- */

static void note(struct decoder_profile *f, uint32_t phase, uint32_t member, uint64_t from_ns,
                 bool finish)
{
    struct profile_member *m = &f->members[member];
    const uint32_t n = atomic_load_explicit(&m->n, memory_order_relaxed);
    if (member >= f->n_members || n == f->cap_events) {
        atomic_fetch_add_explicit(&f->n_left_out, 1, memory_order_relaxed);
        return;
    }
    m->events[n] = (struct profile_event){from_ns, clock_ns(), phase, finish};
    atomic_store_explicit(&m->n, n + 1, memory_order_release);
}

static struct decoder_profile *profile_of(void *ctx)
{
    return ((struct decoder *)ctx)->profile;
}

static void timed_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct decoder_profile *f = profile_of(ctx);
    const struct crew_phase *was = &f->phases[p->arg].was;
    const uint64_t from = clock_ns();
    was->chunk(ctx, was, chunk, member);
    note(f, p->arg, member, from, false);
}

static void timed_commit(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct decoder_profile *f = profile_of(ctx);
    const struct crew_phase *was = &f->phases[p->arg].was;
    const uint64_t from = clock_ns();
    was->commit(ctx, was, chunk, member);
    note(f, p->arg, member, from, false);
}

static void timed_finish(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder_profile *f = profile_of(ctx);
    struct profile_phase *x = &f->phases[p->arg];
    x->finish_ns = clock_ns();
    if (x->was.finish) {
        x->was.finish(ctx, &x->was, member);
        note(f, p->arg, member, x->finish_ns, true);
    }
    x->done_ns = clock_ns();
    if (p->arg + 1 < f->n_phases && f->phases[p->arg + 1].pass == x->pass)
        f->phases[p->arg + 1].open_ns = x->done_ns;
}

static bool passed_ahead(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t step)
{
    const struct crew_phase *was = &profile_of(ctx)->phases[p->arg].was;
    return was->ahead(ctx, was, chunk, step);
}

/* ---- planning ---- */

static void add_linear(const struct decoder *d, struct profile_part *x, const struct linear *l,
                       uint32_t n_items)
{
    const struct products_with w = {d->k, &d->weights, d->stage, d->stage_rows};
    if (l->mat == NO_MAT)
        return;
    x->bytes += products_bytes(&w, l);
    x->products +=
        (uint64_t)d->weights.mats[l->mat].n_rows * d->weights.mats[l->mat].n_cols * n_items;
}

/* The cache that the tokens of a pass look at, once for each run. */
static uint64_t cache_bytes(const struct decoder *d, const struct layer *l)
{
    uint64_t pages = 0;
    for (uint32_t i = 0; i < d->n_runs; i++) {
        uint32_t seen = d->runs[i].pos0 + d->runs[i].n;
        seen = l->window && l->window < seen ? l->window : seen;
        pages += (seen + KERN_PAGE - 1) / KERN_PAGE;
    }
    return pages * d->c.n_kv_heads * d->kv_head_bytes;
}

/* Those that are used, as if each token chose others. */
static void add_experts(const struct decoder *d, struct profile_part *x, const struct expert *list)
{
    const uint32_t rows = d->experts.n_used * d->n_tokens;
    const uint32_t n = rows < d->experts.n ? rows : d->experts.n;
    for (uint32_t i = 0; i < n; i++) {
        add_linear(d, x, &list[i].gate, rows / n);
        add_linear(d, x, &list[i].up, rows / n);
        add_linear(d, x, &list[i].down, rows / n);
    }
}

static void add_layer_load(const struct decoder *d, struct profile_part *x, const struct layer *l,
                           uint32_t n_items)
{
    const struct {
        const char *name;
        const struct linear *l;
    } of[] = {{"attn_out", &l->attn_out}, {"ffn", &l->up},    {"ffn", &l->gate},     {"up", &l->up},
              {"gate", &l->gate},         {"down", &l->down}, {"router", &l->router}};
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        if (strcmp(x->name, of[i].name) == 0)
            add_linear(d, x, of[i].l, n_items);
    for (uint32_t i = 0; strcmp(x->name, "qkv") == 0 && i < l->n_qkv; i++)
        add_linear(d, x, &l->qkv[i], n_items);
    if (strcmp(x->name, "attend") == 0)
        x->bytes += cache_bytes(d, l);
    if (strcmp(x->name, "experts") == 0)
        add_experts(d, x, l->experts);
}

static struct profile_part part_of(const struct decoder *d, const char *name, int32_t layer,
                                   uint32_t n_items)
{
    struct profile_part x = {.name = name};
    if (name && layer >= 0)
        add_layer_load(d, &x, &d->layers[layer], n_items);
    else if (name && strcmp(name, "output") == 0)
        add_linear(d, &x, &d->output, n_items);
    return x;
}

static void wrap(struct decoder *d, struct crew_phase *p, const struct profile_names *n)
{
    struct decoder_profile *f = d->profile;
    const int32_t layer = n->of_layer ? (int32_t)p->arg : -1;
    f->phases[f->n_phases] =
        (struct profile_phase){.chunks = part_of(d, n->chunks, layer, p->n_items),
                               .finish = part_of(d, n->finish, layer, p->n_items),
                               .layer = layer,
                               .pass = f->n_passes,
                               .was = *p};
    p->chunk = p->chunk ? timed_chunk : NULL;
    p->commit = p->commit ? timed_commit : NULL;
    p->ahead = p->ahead ? passed_ahead : NULL;
    p->finish = timed_finish;
    p->arg = f->n_phases++;
}

void decoder_profile_pass(struct decoder *d, struct crew_phase *phases, uint32_t n,
                          struct profile_names (*names)(const struct crew_phase *p))
{
    struct decoder_profile *f = d->profile;
    const uint32_t first = f->n_phases;
    if (n > f->cap_phases - f->n_phases) {
        atomic_fetch_add_explicit(&f->n_left_out, n, memory_order_relaxed);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct profile_names of = names(&phases[i]);
        wrap(d, &phases[i], &of);
    }
    f->n_passes++;
    if (n > 0)
        f->phases[first].open_ns = clock_ns();
}

uint32_t decoder_profile_phases(const struct decoder *d)
{
    return decoder_most_phases(&d->c);
}

void decoder_profile_set(struct decoder *d, struct decoder_profile *f)
{
    d->profile = f;
}
