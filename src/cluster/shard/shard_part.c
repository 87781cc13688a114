/* shard_part.c - see shard_part.h. */
#include "cluster/shard/shard_part.h"

#include <string.h>

#include "base/mem.h"

int shard_part_open(struct shard_part *out, const struct shard_open *o,
                    const struct shard_part_opts *po, struct err *e)
{
    const struct layer_part_opts lo = {.path = po->path,
                                       .cache_dir = po->cache_dir,
                                       .memory_bytes = po->memory_bytes,
                                       .rows = o->rows,
                                       .gather = po->gather,
                                       .gather_ctx = po->gather_ctx,
                                       .first = o->first,
                                       .end = o->end,
                                       .n_layers = o->n_layers,
                                       .dim = o->dim,
                                       .n_ctx = o->n_ctx,
                                       .max_batch = o->max_batch,
                                       .n_pages = o->n_pages,
                                       .kv_q8 = o->kv_q8};
    *out = (struct shard_part){.layers = NULL};
    buf_init(&out->pages, SHARD_MSG_MAX_BODY);
    buf_init(&out->input, SHARD_MSG_MAX_BODY);
    out->runs = mem_zalloc_n(SHARD_MSG_MAX_RUNS, sizeof(*out->runs));
    if (!out->runs)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a part of a model");
    return layer_part_open(&out->layers, &lo, e);
}

void shard_part_close(struct shard_part *p)
{
    layer_part_close(p->layers);
    mem_free(p->runs);
    buf_fini(&p->pages);
    buf_fini(&p->input);
    p->layers = NULL;
    p->runs = NULL;
}

size_t shard_part_bytes(const struct shard_part *p)
{
    const struct layer_part_sizes s = layer_part_sizes(p->layers);
    return s.weights + s.scratch + s.kv;
}

/* Tokens, or floats. */
static void take_data(struct shard_part *p, const struct shard_step *s)
{
    const size_t n = (size_t)s->n_tokens * (s->dim ? s->dim : 1) * 4;
    char *to = buf_room(&p->input, n);
    if (!to)
        return;
    if (!s->dim)
        memcpy(to, s->data, n);
    for (uint32_t t = 0; s->dim && t < s->n_tokens; t++)
        shard_row_get((float *)(void *)to + (size_t)t * s->dim, s->q8,
                      s->data + t * shard_row_bytes(s->q8, s->dim), s->dim);
    buf_used(&p->input, n);
}

/* Copies what a message has at any alignment. */
static int take(struct shard_part *p, const struct shard_step *s, struct err *e)
{
    const uint8_t *at = s->runs;
    size_t used = 0;
    buf_clear(&p->pages);
    buf_clear(&p->input);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct shard_run r = shard_step_next_run(&at);
        p->runs[i] = (struct layer_part_run){.pos0 = r.pos0, .n = r.n, .n_pages = r.n_pages};
        buf_put(&p->pages, r.pages, r.n_pages * sizeof(uint32_t));
    }
    take_data(p, s);
    if (p->pages.rc < 0 || p->input.rc < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a step");
    for (uint32_t i = 0; i < s->n_runs; i++) { /* the buffer does not move any more */
        p->runs[i].pages = (const uint32_t *)(const void *)(p->pages.data + used);
        used += p->runs[i].n_pages * sizeof(uint32_t);
    }
    return 0;
}

int shard_part_run(struct shard_part *p, const struct shard_step *s, const float **x, struct err *e)
{
    int rc = take(p, s, e);
    if (rc < 0)
        return rc;
    const void *in = p->input.data;
    const struct layer_part_step step = {.runs = p->runs,
                                         .n_runs = s->n_runs,
                                         .n_tokens = s->n_tokens,
                                         .tokens = s->dim ? NULL : in,
                                         .x = s->dim ? in : NULL};
    return layer_part_run(p->layers, &step, x, e);
}
