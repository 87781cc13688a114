/* chained_lm.c - see chained_lm.h. */
#include "engine/native/chained_lm.h"

#include "base/mem.h"
#include "base/thread/crew.h"
#include "engine/native/native_lm.h"

struct chained {
    struct decoder *d;
    struct chain chain;
    bool rows;
    uint32_t dim, max_batch, max_runs;
    float *x;                   /* [max_batch][dim]: of the piece that is computed */
    struct decoder_run *pieces; /* [max_runs]: the runs of one piece */
};

/* How many pieces a run has.  All its logits are in the last one, with at least one token. */
static uint32_t n_pieces(const struct decoder_run *r)
{
    const uint32_t most = r->n - (r->n_logits_last > 1 ? r->n_logits_last - 1 : 0);
    return (most + CHAINED_PIECE - 1) / CHAINED_PIECE;
}

static uint32_t most_pieces(const struct lm_pass *pass)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < pass->n_runs; i++) {
        const uint32_t n = n_pieces(&pass->runs[i]);
        most = n > most ? n : most;
    }
    return most;
}

/* Part `at` of `all` of a pass.  Runs end together, with the last piece: logits of a pass must be
 * computed together, since a later piece would overwrite them.  Returns how many runs it has. */
static uint32_t cut_piece(struct chained *c, const struct lm_pass *pass, uint32_t at, uint32_t all,
                          uint32_t *n_tokens)
{
    uint32_t n = 0;
    *n_tokens = 0;
    for (uint32_t i = 0; i < pass->n_runs; i++) {
        const struct decoder_run *r = &pass->runs[i];
        const uint32_t own = n_pieces(r), later = all - 1 - at;
        if (later >= own)
            continue;
        const uint32_t from = (own - 1 - later) * CHAINED_PIECE;
        const uint32_t to = later == 0 ? r->n : from + CHAINED_PIECE;
        struct decoder_run *p = &c->pieces[n++];
        *p = *r;
        p->tokens = r->tokens + from;
        p->pos0 = r->pos0 + from;
        p->n = to - from;
        p->n_logits_last = later == 0 ? r->n_logits_last : 0;
        *n_tokens += p->n;
    }
    return n;
}

static int send_pass(struct chained *c, const struct lm_pass *pass, uint32_t all)
{
    int rc = 0;
    for (uint32_t at = 0; rc == 0 && at < all; at++) {
        uint32_t n_tokens, n = cut_piece(c, pass, at, all, &n_tokens);
        rc = c->chain.ops->send(c->chain.ctx, c->pieces, n);
    }
    return rc;
}

/* Computes the last layers of one piece after the other. */
static int finish_pass(struct chained *c, const struct lm_pass *pass, uint32_t all)
{
    for (uint32_t at = 0; at < all; at++) {
        uint32_t n_tokens, row = 0, n = cut_piece(c, pass, at, all, &n_tokens);
        int rc = c->chain.ops->receive(c->chain.ctx, c->x, n_tokens);
        if (rc < 0)
            return rc;
        for (uint32_t i = 0; i < n; i++) {
            c->pieces[i].x = c->x + (size_t)row * c->dim;
            row += c->pieces[i].n;
        }
        decoder_forward(c->d, c->pieces, n);
    }
    return 0;
}

/* By rows: everybody computes the whole pass, and waits for the others in between. */
static int pass_together(struct chained *c, const struct lm_pass *pass)
{
    int rc = c->chain.ops->send(c->chain.ctx, pass->runs, pass->n_runs);
    if (rc < 0)
        return rc;
    decoder_forward(c->d, pass->runs, pass->n_runs);
    return decoder_lost(c->d) ? SHOAL_EIO : 0;
}

static int pass_in_pieces(struct chained *c, const struct lm_pass *pass)
{
    const uint32_t all = most_pieces(pass);
    int rc = send_pass(c, pass, all);
    return rc < 0 ? rc : finish_pass(c, pass, all);
}

static int reconnect(struct chained *c)
{
    struct decoder_rows rows = {.n_parts = 0};
    int rc = c->chain.ops->reconnect(c->chain.ctx, &rows);
    if (rc == 0 && c->rows)
        decoder_recut(c->d, &rows);
    return rc;
}

static void chained_passes(void *impl, lm_next_fn next, void *ctx)
{
    struct chained *c = impl;
    struct lm_pass pass = {0};
    while (next(ctx, &pass)) {
        int rc = c->rows ? pass_together(c, &pass) : pass_in_pieces(c, &pass);
        if (rc == 0)
            continue;
        rc = reconnect(c);
        for (uint32_t i = 0; i < pass.n_runs; i++)
            pass.codes[i] = rc < 0 ? rc : LM_LOST;
    }
}

static const float *chained_logits(const void *impl, uint32_t i)
{
    const struct chained *c = impl;
    return decoder_logits(c->d, i);
}

static void chained_urgency(void *impl, int32_t priority, uint64_t deadline_ns)
{
    const struct chained *c = impl;
    crew_lane_set_urgency(decoder_lane(c->d), priority, deadline_ns);
}

static void chained_close(void *impl)
{
    struct chained *c = impl;
    chain_close(&c->chain);
    decoder_destroy(c->d);
    mem_free(c->x);
    mem_free(c->pieces);
    mem_free(c);
}

static const struct lm_ops chained_ops = {.passes = chained_passes,
                                          .logits = chained_logits,
                                          .urgency = chained_urgency,
                                          .close = chained_close};

int chained_lm_create(struct lm *out, struct decoder *d, struct chain *chain, bool rows,
                      uint32_t max_runs, struct err *e)
{
    struct chained *c = mem_zalloc(sizeof(*c));
    native_lm_from_decoder(out, d);
    if (c) {
        *c = (struct chained){.d = d,
                              .chain = *chain,
                              .rows = rows,
                              .dim = decoder_config(d)->dim,
                              .max_batch = decoder_max_batch(d),
                              .max_runs = max_runs};
        chain->ops = NULL;
        if (rows)
            decoder_set_gather(d, c->chain.ops->gather, c->chain.ctx);
        c->x = mem_zalloc_n((size_t)c->max_batch * c->dim, sizeof(*c->x));
        c->pieces = mem_zalloc_n(max_runs, sizeof(*c->pieces));
        out->ops = &chained_ops;
        out->impl = c;
        out->info.engine = "chained";
        out->info.scratch_bytes += (size_t)c->max_batch * c->dim * sizeof(*c->x);
    }
    if (c && c->x && c->pieces)
        return 0;
    lm_close(out);
    return err_set(e, SHOAL_ENOMEM, "out of memory for a pass through several processes");
}
