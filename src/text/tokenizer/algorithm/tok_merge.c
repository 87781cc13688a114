/* tok_merge.c - the merge loop of SentencePiece BPE and byte-level BPE.
 *
 * A word starts as a row of symbols (characters or bytes).  Again and again the adjacent pair with
 * the smallest rank, the leftmost of equals, becomes one symbol, until no pair is left to merge.
 * The two kinds differ in where a rank comes from: BPE has a table of pairs, SentencePiece looks
 * for the joined text in the vocabulary and ranks by score.
 *
 * Short words (nearly all) live in a small row that is scanned and closed up; long ones in a linked
 * list with a heap, so that a megabyte without a space takes n log n. */
#include "text/tokenizer/algorithm/tok_merge.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define SMALL 48 /* symbols; beyond this the heap is faster than scanning */
#define NO_RANK UINT32_MAX

static uint32_t table_rank(const struct tok_merge *m, uint32_t left, uint32_t right,
                           uint32_t *merged)
{
    const struct tok_index *x = &m->pair_index;
    const uint64_t h = tok_merge_pair_hash(left, right);
    if (m->n_pairs == 0 || left == TOK_MERGE_NO_SYM)
        return NO_RANK;
    for (uint32_t i = tok_index_first(x, h);; i = tok_index_after(x, i)) {
        uint32_t slot = x->slots[i], k;
        if (slot == 0)
            return NO_RANK;
        if (tok_index_match(x, slot, h, &k) && m->pairs[k].left == left &&
            m->pairs[k].right == right) {
            *merged = m->pairs[k].merged;
            return k;
        }
    }
}

/* The rank of joining two neighbours whose bytes are [p, p + n). */
static uint32_t pair_rank(const struct tok_merge *m, uint32_t left, uint32_t right, const char *p,
                          size_t n, uint32_t *merged)
{
    if (!m->prio)
        return table_rank(m, left, right, merged);
    if (!tok_vocab_find(m->v, p, n, merged))
        return NO_RANK;
    return m->prio[*merged];
}

/* Emits a symbol that is not a token: as byte tokens, or as the unknown token. */
static int emit_bytes(const struct tok_merge *m, struct tok_call *c, const char *p, size_t n)
{
    bool all = true;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        all &= m->v->byte_id[(uint8_t)p[i]] >= 0;
    if (!all && m->chars)
        return m->v->unk >= 0 ? tok_call_emit(c, m->v->unk, p, n) : 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        int32_t id = m->v->byte_id[(uint8_t)p[i]];
        if (id < 0)
            id = m->v->unk;
        if (id >= 0)
            rc = tok_call_emit(c, id, p + i, 1);
    }
    return rc;
}

/* Is this symbol unknown?  Several unknown ones may become one token. */
static bool is_unknown(const struct tok_merge *m, uint32_t sym, const char *p, size_t n)
{
    if (sym < m->v->n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (m->v->byte_id[(uint8_t)p[i]] < 0)
            return true;
    return false;
}

static int emit(const struct tok_merge *m, struct tok_call *c, const char *word,
                const uint32_t *start, const uint32_t *sym, uint32_t n)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        const char *p = word + start[i];
        size_t len = start[i + 1] - start[i];
        if (sym[i] < m->v->n) {
            rc = tok_call_emit(c, (int32_t)sym[i], p, len);
            continue;
        }
        if (m->fuse_unk && is_unknown(m, sym[i], p, len)) {
            while (i + 1 < n &&
                   is_unknown(m, sym[i + 1], word + start[i + 1], start[i + 2] - start[i + 1]))
                i++;
            len = start[i + 1] - (size_t)(p - word);
            rc = m->v->unk >= 0 ? tok_call_emit(c, m->v->unk, p, len) : 0;
            continue;
        }
        rc = emit_bytes(m, c, p, len);
    }
    return rc;
}

/* Merges a row of n symbols in place; start[n] is the length of the word. Returns how many are
 * left. */
static uint32_t merge_small(const struct tok_merge *m, const char *word, uint32_t *start,
                            uint32_t *sym, uint32_t n)
{
    uint32_t rank[SMALL], merged[SMALL];
    for (uint32_t i = 0; i + 1 < n; i++)
        rank[i] =
            pair_rank(m, sym[i], sym[i + 1], word + start[i], start[i + 2] - start[i], &merged[i]);
    while (n > 1) {
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == NO_RANK)
            break;
        sym[best] = merged[best];
        for (uint32_t i = best + 1; i + 1 < n; i++) {
            sym[i] = sym[i + 1];
            start[i] = start[i + 1];
            rank[i] = rank[i + 1];
            merged[i] = merged[i + 1];
        }
        start[n - 1] = start[n];
        n--;
        for (uint32_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++)
            rank[i] = pair_rank(m, sym[i], sym[i + 1], word + start[i], start[i + 2] - start[i],
                                &merged[i]);
    }
    return n;
}

/* 4-ary heap of uint64, smallest on top. */
static void heap_down(uint64_t *h, size_t n, size_t i)
{
    uint64_t x = h[i];
    for (;;) {
        size_t c = 4 * i + 1, best = c, last = c + 4 < n ? c + 4 : n;
        if (c >= n)
            break;
        for (size_t k = c + 1; k < last; k++)
            if (h[k] < h[best])
                best = k;
        if (h[best] >= x)
            break;
        h[i] = h[best];
        i = best;
    }
    h[i] = x;
}

static int heap_push(struct tok_merge_work *w, uint64_t x)
{
    if (w->n_heap == w->cap_heap) {
        size_t cap = w->cap_heap ? w->cap_heap * 2 : 1024, bytes;
        uint64_t *bigger =
            mem_mul(&bytes, cap, sizeof(*bigger)) ? mem_realloc(w->heap, bytes) : NULL;
        if (!bigger)
            return SHOAL_ENOMEM;
        w->heap = bigger;
        w->cap_heap = cap;
    }
    size_t i = w->n_heap++;
    for (; i > 0 && x < w->heap[(i - 1) / 4]; i = (i - 1) / 4)
        w->heap[i] = w->heap[(i - 1) / 4];
    w->heap[i] = x;
    return 0;
}

static uint64_t heap_pop(struct tok_merge_work *w)
{
    uint64_t top = w->heap[0];
    w->heap[0] = w->heap[--w->n_heap];
    if (w->n_heap > 0)
        heap_down(w->heap, w->n_heap, 0);
    return top;
}

/* Ranks the pair of symbol i and its successor and puts it into the heap. */
static int rank_pair(const struct tok_merge *m, struct tok_merge_work *w, const char *word,
                     uint32_t i, uint32_t n)
{
    uint32_t j = w->next[i];
    w->rank[i] = NO_RANK;
    if (j >= n)
        return 0;
    uint32_t end = w->start[w->next[j] < n ? w->next[j] : n];
    w->rank[i] =
        pair_rank(m, w->sym[i], w->sym[j], word + w->start[i], end - w->start[i], &w->merged[i]);
    return w->rank[i] == NO_RANK ? 0 : heap_push(w, (uint64_t)w->rank[i] << 32 | i);
}

/* Merges the n symbols in scratch, start[n] set; the result is compacted to their front. */
static int merge_large(const struct tok_merge *m, struct tok_merge_work *w, const char *word,
                       uint32_t n, uint32_t *left)
{
    int rc = 0;
    w->n_heap = 0;
    for (uint32_t i = 0; i < n; i++) {
        w->next[i] = i + 1;
        w->prev[i] = i - 1; /* for i = 0: UINT32_MAX, which is >= n */
    }
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = rank_pair(m, w, word, i, n);
    while (rc == 0 && w->n_heap > 0) {
        uint64_t top = heap_pop(w);
        uint32_t i = (uint32_t)top;
        /* An entry is stale if its symbol is gone or has a new pair by now; if that pair has the
         * same rank, it is due as well. */
        if (w->rank[i] != (uint32_t)(top >> 32))
            continue;
        uint32_t j = w->next[i], k = w->next[j];
        w->sym[i] = w->merged[i];
        w->rank[j] = NO_RANK;
        w->next[i] = k;
        if (k < n)
            w->prev[k] = i;
        rc = rank_pair(m, w, word, i, n);
        if (rc == 0 && w->prev[i] < n)
            rc = rank_pair(m, w, word, w->prev[i], n);
    }
    uint32_t out = 0;
    for (uint32_t i = 0; i < n; i = w->next[i], out++) { /* out <= i: never overtakes */
        w->start[out] = w->start[i];
        w->sym[out] = w->sym[i];
    }
    w->start[out] = w->start[n];
    *left = out;
    return rc;
}

/* Splits the word into its first symbols; start and sym have room for n + 1. */
static uint32_t first_symbols(const struct tok_merge *m, const char *p, size_t n, uint32_t *start,
                              uint32_t *sym)
{
    const uint8_t *q = (const uint8_t *)p, *end = q + n;
    uint32_t k = 0;
    for (; q < end; k++) {
        uint32_t cp;
        unsigned len = 1;
        start[k] = (uint32_t)(q - (const uint8_t *)p);
        sym[k] = m->byte_sym[*q];
        if (m->chars && *q >= 0x80) {
            len = utf8_decode_multi(q, end, &cp);
            if (len == 0)
                len = 1; /* not UTF-8: a symbol of its own that only byte tokens can spell */
            else if (!tok_vocab_find(m->v, (const char *)q, len, &sym[k]))
                sym[k] = TOK_MERGE_NO_SYM;
        }
        q += len;
    }
    start[k] = (uint32_t)n;
    return k;
}

static int reserve(struct tok_merge_work *w, size_t n)
{
    size_t bytes;
    if (n <= w->cap)
        return 0;
    n += n / 2;
    if (!mem_mul(&bytes, n, 6 * sizeof(uint32_t)))
        return SHOAL_ENOMEM;
    uint32_t *block = mem_alloc(bytes); /* the old content is not needed */
    if (!block)
        return SHOAL_ENOMEM;
    mem_free(w->start);
    w->start = block;
    w->sym = block + n;
    w->rank = block + 2 * n;
    w->merged = block + 3 * n;
    w->next = block + 4 * n;
    w->prev = block + 5 * n;
    w->cap = n;
    return 0;
}

static int merge_and_emit(const struct tok_merge *m, struct tok_merge_work *w, struct tok_call *c,
                          const char *p, size_t n)
{
    if (n <= SMALL) {
        uint32_t start[SMALL + 1], sym[SMALL + 1];
        uint32_t k = first_symbols(m, p, n, start, sym);
        return emit(m, c, p, start, sym, merge_small(m, p, start, sym, k));
    }
    int rc = reserve(w, n + 1);
    if (rc < 0)
        return rc;
    uint32_t k = first_symbols(m, p, n, w->start, w->sym);
    if (k <= SMALL)
        k = merge_small(m, p, w->start, w->sym, k);
    else
        rc = merge_large(m, w, p, k, &k);
    return rc < 0 ? rc : emit(m, c, p, w->start, w->sym, k);
}

int tok_merge_word(const struct tok_merge *m, struct tok_merge_work *w, struct tok_call *c,
                   const char *p, size_t n)
{
    uint32_t id;
    if (!tok_vocab_find(m->v, p, n, &id))
        return merge_and_emit(m, w, c, p, n);
    /* Most words of real text are one token.  Whether merging gets there is a property of the
     * vocabulary, so it is tried once and remembered.  Relaxed: each value stands for itself, and
     * threads that race compute the same one. */
    uint8_t whole = atomic_load_explicit(&m->whole[id], memory_order_relaxed);
    if (whole == TOK_MERGE_WHOLE_YES || m->ignore_merges)
        return tok_call_emit(c, (int32_t)id, p, n);
    size_t before = c->out->n;
    int rc = merge_and_emit(m, w, c, p, n);
    if (rc == 0 && whole == TOK_MERGE_WHOLE_UNTRIED) {
        bool yes = c->out->n == before + 1 && c->out->ids[before] == (int32_t)id;
        atomic_store_explicit(&m->whole[id], yes ? TOK_MERGE_WHOLE_YES : TOK_MERGE_WHOLE_NO,
                              memory_order_relaxed);
    }
    return rc;
}

int tok_merge_spaced(const struct tok_merge *m, struct tok_merge_work *w, struct tok_call *c,
                     const char *p, size_t n)
{
    const char *end = p + n;
    int rc = 0;
    while (p < end && rc == 0) {
        const char *q = p + 1;
        while ((q = memchr(q, ' ', (size_t)(end - q))) && (q[-1] == ' ' || m->glue[(uint8_t)q[-1]]))
            q++;
        if (!q)
            q = end;
        rc = tok_merge_word(m, w, c, p, (size_t)(q - p));
        p = q;
    }
    return rc;
}

/* Fills glue and the symbols of ASCII. */
static void index_chars(struct tok_merge *m)
{
    for (unsigned b = 0; b < 256; b++) {
        char c = (char)b;
        if (b >= 0x80 || !tok_vocab_find(m->v, &c, 1, &m->byte_sym[b]))
            m->byte_sym[b] = TOK_MERGE_NO_SYM;
    }
    for (uint32_t id = 0; id < m->v->n; id++) {
        struct str w = tok_vocab_text(m->v, id);
        for (size_t i = 1; i < w.n; i++)
            if (w.p[i] == ' ' && w.p[i - 1] != ' ')
                m->glue[(uint8_t)w.p[i - 1]] = 1;
    }
}

int tok_merge_init(struct tok_merge *m, const struct tok_vocab *v, bool chars, struct err *e)
{
    m->v = v;
    m->chars = chars;
    m->whole = mem_zalloc_n(v->n, sizeof(*m->whole));
    if (!m->whole)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", v->n);
    if (chars)
        index_chars(m);
    return 0;
}

void tok_merge_fini(struct tok_merge *m)
{
    mem_free(m->prio);
    mem_free(m->pairs);
    mem_free(m->pair_index.slots);
    mem_free((void *)m->whole);
}

void tok_merge_work_fini(struct tok_merge_work *w)
{
    mem_free(w->start);
    mem_free(w->heap);
}
