/* layer_part.c - see layer_part.h. */
#include "engine/native/layer_part.h"

#include <limits.h>
#include <math.h>

#include "base/mem.h"
#include "engine/cache_dir.h"
#include "engine/memory_plan.h"
#include "engine/shared_crew.h"
#include "format/model_open.h"
#include "model/decoder.h"

_Static_assert(LAYER_PART_PAGE == KERN_PAGE, "pages are those of the kernels");

struct layer_part {
    struct model_file *file;
    struct crew *crew;
    struct decoder *d;
    uint32_t first, n_ctx, max_batch, n_pages, n_vocab, dim;
    uint8_t *kv;
    size_t kv_bytes;
    struct decoder_run *runs; /* [max_batch] */
};

/* The model must be what the engine says it is. */
static int check_shape(const struct layer_part *p, const struct layer_part_opts *o, struct err *e)
{
    const struct decoder_config *c = decoder_config(p->d);
    if (c->n_layers != o->n_layers || c->dim != o->dim)
        return err_set(e, SHOAL_EFORMAT, "the model has %u layers of %u, the engine's %u of %u",
                       c->n_layers, c->dim, o->n_layers, o->dim);
    return 0;
}

static int load(struct layer_part *p, const struct layer_part_opts *o, struct err *e)
{
    char dir[PATH_MAX];
    const struct decoder_opts d = {.crew = p->crew,
                                   .n_ctx = o->n_ctx,
                                   .max_batch = o->max_batch,
                                   .max_logits = 1,
                                   .kv_kind = o->kv_q8 ? KERN_KV_Q8 : KERN_KV_F16,
                                   .layer_first = o->first,
                                   .layer_end = o->end,
                                   .rows = o->rows,
                                   .cache_dir = cache_dir_wanted(o->cache_dir, dir, PATH_MAX)};
    struct decoder_sizes sizes;
    uint32_t n_pages;
    int rc = decoder_measure(&sizes, p->file, &d, e);
    if (rc < 0)
        return rc;
    p->kv_bytes = p->n_pages * sizes.kv_page;
    const struct memory_plan_need need = {sizes.weights, sizes.scratch, sizes.kv_page};
    const struct shoal_engine_opts limit = {.memory_bytes = o->memory_bytes,
                                            .kv_bytes = p->kv_bytes};
    rc = memory_plan_pages(&n_pages, &need, 0, &limit, e);
    if (rc == 0)
        rc = decoder_create(&p->d, p->file, o->path, &d, e);
    if (rc == 0)
        rc = check_shape(p, o, e);
    if (rc < 0)
        return rc;
    p->n_vocab = decoder_config(p->d)->n_vocab;
    p->dim = decoder_config(p->d)->dim;
    p->kv = mem_pages(p->kv_bytes);
    p->runs = mem_zalloc_n(p->max_batch, sizeof(*p->runs));
    if (!p->kv || !p->runs)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of key-value cache", p->kv_bytes);
    decoder_set_kv(p->d, p->kv);
    decoder_set_gather(p->d, o->gather, o->gather_ctx);
    return 0;
}

int layer_part_open(struct layer_part **out, const struct layer_part_opts *o, struct err *e)
{
    struct layer_part *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a part of a model");
    p->first = o->first;
    p->n_ctx = o->n_ctx;
    p->max_batch = o->max_batch;
    p->n_pages = o->n_pages;
    int rc = shared_crew_get(&p->crew, e);
    if (rc == 0)
        rc = model_open(&p->file, o->path, e);
    if (rc == 0)
        rc = load(p, o, e);
    if (rc < 0) {
        layer_part_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void layer_part_close(struct layer_part *p)
{
    if (!p)
        return;
    decoder_destroy(p->d);
    if (p->crew)
        shared_crew_put();
    model_file_close(p->file);
    mem_pages_free(p->kv, p->kv_bytes);
    mem_free(p->runs);
    mem_free(p);
}

struct layer_part_sizes layer_part_sizes(const struct layer_part *p)
{
    const struct decoder_sizes s = decoder_sizes(p->d);
    return (struct layer_part_sizes){s.weights, s.scratch, p->kv_bytes};
}

bool layer_part_finite(const float *x, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++)
        finite = finite && isfinite(x[i]);
    return finite;
}

/* ---- a step ---- */

static int bad(struct err *e, const char *what)
{
    return err_set(e, SHOAL_EFORMAT, "a step %s", what);
}

static int check_run(const struct layer_part *p, const struct layer_part_run *r, struct err *e)
{
    if (r->n == 0 || (uint64_t)r->pos0 + r->n > p->n_ctx)
        return bad(e, "beyond the context");
    if (r->n_pages < ((uint64_t)r->pos0 + r->n + KERN_PAGE - 1) / KERN_PAGE)
        return bad(e, "with too few pages");
    for (uint32_t i = 0; i < r->n_pages; i++)
        if (r->pages[i] >= p->n_pages)
            return bad(e, "with a page that does not exist");
    return 0;
}

static int check_input(const struct layer_part *p, const struct layer_part_step *s, struct err *e)
{
    if ((p->first == 0) != (s->tokens != NULL) || (p->first > 0) != (s->x != NULL))
        return bad(e, "of another part of the model");
    if (s->x)
        return layer_part_finite(s->x, (size_t)s->n_tokens * p->dim)
                   ? 0
                   : bad(e, "with values that are not numbers");
    for (uint32_t i = 0; i < s->n_tokens; i++)
        if (s->tokens[i] < 0 || (uint32_t)s->tokens[i] >= p->n_vocab)
            return bad(e, "with a token that does not exist");
    return 0;
}

int layer_part_run(struct layer_part *p, const struct layer_part_step *s, const float **x,
                   struct err *e)
{
    uint32_t row = 0;
    if (s->n_tokens == 0 || s->n_tokens > p->max_batch || s->n_runs > s->n_tokens)
        return bad(e, "that is too long");
    int rc = check_input(p, s, e);
    for (uint32_t i = 0; rc == 0 && i < s->n_runs; i++) {
        const struct layer_part_run *r = &s->runs[i];
        rc = check_run(p, r, e);
        if (rc == 0 && r->n > s->n_tokens - row)
            rc = bad(e, "whose runs have more tokens than it");
        p->runs[i] = (struct decoder_run){.tokens = s->tokens ? s->tokens + row : NULL,
                                          .x = s->x ? s->x + (size_t)row * p->dim : NULL,
                                          .n = r->n,
                                          .pos0 = r->pos0,
                                          .pages = r->pages};
        row += r->n;
    }
    if (rc == 0 && row != s->n_tokens)
        rc = bad(e, "whose runs have fewer tokens than it");
    if (rc < 0)
        return rc;
    decoder_forward(p->d, p->runs, s->n_runs);
    if (decoder_lost(p->d))
        return err_set(e, SHOAL_EIO, "the other parts are lost");
    *x = decoder_hidden(p->d, 0);
    return 0;
}
