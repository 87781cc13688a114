/* constraint.c - see constraint.h. */
#include "engine/decode/constraint.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "text/grammar/grammar.h"
#include "text/grammar/grammar_net.h"
#include "text/grammar/vocab_trie.h"

struct constraint {
    struct constraints *all;
    size_t bytes; /* as counted in all->bytes */
    _Atomic uint32_t refs;
    enum shoal_constraint kind;
    char *text;
    size_t n;
    struct grammar_net *net;
    struct grammar_mask *mask;
    uint64_t epoch; /* grows when places become void; 0: of no run */
};

void constraints_init(struct constraints *c)
{
    *c = (struct constraints){.n_kept = 0};
    pthread_mutex_init(&c->lock, NULL);
}

void constraints_fini(struct constraints *c)
{
    for (uint32_t i = 0; i < c->n_kept; i++)
        constraint_unref(c->kept[i]);
    vocab_trie_destroy(c->vocab);
    pthread_mutex_destroy(&c->lock);
}

/* The sum may lag by a step: relaxed. */
static void count_bytes(struct constraint *c, size_t now)
{
    if (now == c->bytes)
        return;
    atomic_fetch_add_explicit(&c->all->bytes, now - c->bytes, memory_order_relaxed);
    c->bytes = now;
}

static size_t bytes_of(const struct constraint *c)
{
    return sizeof(*c) + c->n + grammar_net_bytes(c->net) + grammar_mask_bytes(c->mask);
}

void constraint_unref(struct constraint *c)
{
    /* acq_rel: the thread that frees sees all writes of the others */
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    count_bytes(c, 0);
    grammar_mask_destroy(c->mask);
    grammar_net_destroy(c->net);
    mem_free(c->text);
    mem_free(c);
}

static int compile(struct constraint **out, struct constraints *all, enum shoal_constraint kind,
                   const char *text, size_t n, struct err *e)
{
    struct constraint *c = mem_zalloc(sizeof(*c));
    *out = NULL;
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a constraint");
    atomic_init(&c->refs, 1);
    c->all = all;
    c->kind = kind;
    c->n = n;
    c->epoch = 1;
    c->text = mem_strndup(n > 0 ? text : "", n);
    int rc = c->text ? grammar_compile(&c->net, kind, text, n, e)
                     : err_set(e, SHOAL_ENOMEM, "out of memory for a constraint");
    if (rc == 0)
        rc = grammar_mask_create(&c->mask, c->net, all->vocab, e);
    if (rc < 0) {
        constraint_unref(c);
        return rc;
    }
    count_bytes(c, bytes_of(c));
    *out = c;
    return 0;
}

static bool too_many_bytes(const struct constraints *all)
{
    return atomic_load_explicit(&all->bytes, memory_order_relaxed) > CONSTRAINTS_MAX_BYTES;
}

/* Under the lock: makes c the newest; evicts the oldest. */
static void keep(struct constraints *all, struct constraint *c, uint32_t at)
{
    if (at == all->n_kept && at == CONSTRAINTS_KEPT)
        constraint_unref(all->kept[--at]);
    else if (at == all->n_kept)
        all->n_kept++;
    memmove(&all->kept[1], &all->kept[0], at * sizeof(*all->kept));
    all->kept[0] = c;
    while (all->n_kept > 1 && too_many_bytes(all))
        constraint_unref(all->kept[--all->n_kept]);
}

/* Under the lock: a reference to the cached one, or NULL. */
static struct constraint *take(struct constraints *all, enum shoal_constraint kind,
                               const char *text, size_t n)
{
    for (uint32_t i = 0; i < all->n_kept; i++) {
        struct constraint *c = all->kept[i];
        if (c->kind != kind || c->n != n || (n > 0 && memcmp(c->text, text, n) != 0))
            continue;
        keep(all, c, i);
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
        return c;
    }
    return NULL;
}

int constraints_get(struct constraint **out, struct constraints *all, const struct tokenizer *t,
                    uint32_t n_vocab, enum shoal_constraint kind, const char *text, size_t n,
                    struct err *e)
{
    int rc = 0;
    struct constraint *c;
    *out = NULL;
    if (kind == SHOAL_CONSTRAINT_JSON)
        n = 0;
    pthread_mutex_lock(&all->lock);
    const bool had_vocab = all->vocab != NULL;
    if (!had_vocab)
        rc = vocab_trie_create(&all->vocab, t, n_vocab, e);
    if (!had_vocab && all->vocab)
        atomic_fetch_add_explicit(&all->bytes, vocab_trie_bytes(all->vocab), memory_order_relaxed);
    c = rc == 0 ? take(all, kind, text, n) : NULL;
    pthread_mutex_unlock(&all->lock);
    if (rc == 0 && !c) { /* without the lock: it may take a while */
        rc = compile(&c, all, kind, text, n, e);
        pthread_mutex_lock(&all->lock);
        struct constraint *other = rc == 0 ? take(all, kind, text, n) : NULL;
        if (other) { /* another thread was faster */
            constraint_unref(c);
            c = other;
        } else if (rc == 0) {
            keep(all, c, all->n_kept);
            atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
        }
        pthread_mutex_unlock(&all->lock);
    }
    *out = rc == 0 ? c : NULL;
    if (rc == SHOAL_ELIMIT) { /* the size of the grammar, not of the context */
        struct err was = *e;
        rc = err_set(e, SHOAL_EINVAL, "%s", was.msg);
    }
    return rc;
}

/* ---- running ---- */

static uint32_t hidden(const struct constraint_run *r, int32_t token, bool lead)
{
    const struct str text = tokenizer_piece(r->t, token, 0);
    return lead && text.n > 0 && text.p[0] == ' ';
}

/* Restarts over the answer so far: for an answer started elsewhere, or after eviction of places. */
static int replay(struct constraint_run *r, const int32_t *tokens, uint32_t n)
{
    struct tok_stream stream;
    struct buf sink;
    buf_init(&sink, 1 << 20);
    tokenizer_stream_init(&stream, r->t, r->prev, 0);
    int rc = grammar_mask_start(r->c->mask, &r->place);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = grammar_mask_take(r->c->mask, &r->place, tokens[i],
                               hidden(r, tokens[i], stream.strip_space));
        tokenizer_stream_push(&stream, &sink, tokens[i]);
        buf_clear(&sink);
    }
    buf_fini(&sink);
    r->epoch = r->c->epoch;
    if (rc == 0 && r->place == GRAMMAR_MASK_DEAD)
        rc = SHOAL_EINVAL; /* the prefix violates the constraint */
    return rc;
}

/* The sets of one step do not fit: that says nothing about the vocabulary. */
static int no_room(int rc)
{
    return rc == SHOAL_ELIMIT ? SHOAL_ENOMEM : rc;
}

int constraint_run_allowed(struct constraint_run *r, const int32_t *tokens, uint32_t n, bool lead,
                           struct constraint_set *out)
{
    struct constraint *c = r->c;
    struct grammar_mask_set set;
    int rc = 0;
    *out = (struct constraint_set){NULL, 0, -1};
    const size_t most = too_many_bytes(c->all) ? CONSTRAINTS_MAX_BYTES / 16 : CONSTRAINTS_MAX_BYTES;
    if (grammar_mask_trim(c->mask, most))
        c->epoch++;
    if (r->epoch != c->epoch)
        rc = replay(r, tokens, n);
    if (rc == 0 && !grammar_mask_over(c->mask, r->place)) {
        rc = grammar_mask_allowed(c->mask, r->place, lead, &set);
        if (rc == 0 && set.n == 0)
            rc = SHOAL_ENOTOKEN;
        if (rc == 0)
            *out = (struct constraint_set){set.bits, set.n, -1};
        if (rc == 0 && !lead)
            rc = grammar_mask_only(c->mask, r->place, &out->only);
    }
    count_bytes(c, bytes_of(c));
    return no_room(rc);
}

int constraint_run_take(struct constraint_run *r, int32_t token, bool lead, bool *over)
{
    int rc = grammar_mask_take(r->c->mask, &r->place, token, hidden(r, token, lead));
    *over = rc == 0 && grammar_mask_over(r->c->mask, r->place);
    return no_room(rc);
}
