/* tok_merge.c - the merge loop of SentencePiece BPE and byte-level BPE.
 *
 * A word starts as a row of symbols (characters or bytes).  Again and again the adjacent pair with
 * the smallest rank, the leftmost of equals, becomes one symbol, until no pair is left to merge.
 * The two kinds differ in where a rank comes from: BPE has a table of pairs, SentencePiece looks
 * for the joined text in the vocabulary and ranks by score.
 *
 * Short words (nearly all) live in a small row that is scanned and closed up; long ones in a linked
 * list with a heap, so that a megabyte without a space takes n log n. */
#include "text/tokenizer/tok_internal.h"

#include <string.h>

#include "base/mem.h"

#define SMALL 48 /* symbols; beyond this the heap is faster than scanning */
#define NO_RANK UINT32_MAX

static uint32_t bpe_pair_rank(const struct tokenizer *t, uint32_t left, uint32_t right,
                              uint32_t *merged)
{
    const struct tok_index *x = &t->pair_index;
    const uint64_t h = bpe_pair_hash(left, right);
    if (t->n_pairs == 0 || left == TOK_NO_SYM)
        return NO_RANK;
    for (uint32_t i = tok_index_first(x, h);; i = tok_index_after(x, i)) {
        uint32_t slot = x->slots[i], k;
        if (slot == 0)
            return NO_RANK;
        if (tok_index_match(x, slot, h, &k) && t->pairs[k].left == left &&
            t->pairs[k].right == right) {
            *merged = t->pairs[k].merged;
            return k;
        }
    }
}

/* The rank of joining two neighbours whose bytes are [p, p + n). */
static uint32_t pair_rank(const struct tokenizer *t, uint32_t left, uint32_t right, const char *p,
                          size_t n, uint32_t *merged)
{
    if (t->info.kind == TOKENIZER_KIND_BPE)
        return bpe_pair_rank(t, left, right, merged);
    if (!tok_find(&t->v, p, n, merged))
        return NO_RANK;
    return t->prio[*merged];
}

/* A symbol that is no token: byte tokens, or what the vocabulary has for the unknown. */
static int emit_bytes(struct tok_scratch *s, const char *p, size_t n)
{
    const struct tokenizer *t = s->t;
    bool all = true;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        all &= t->v.byte_id[(uint8_t)p[i]] >= 0;
    if (!all && t->chars)
        return t->model_unk >= 0 ? tok_emit(s, t->model_unk, p, n) : 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        int32_t id = t->v.byte_id[(uint8_t)p[i]];
        if (id < 0)
            id = t->model_unk;
        if (id >= 0)
            rc = tok_emit(s, id, p + i, 1);
    }
    return rc;
}

/* Are these symbols only to be had as unknown ones?  Then several may become one. */
static bool is_unknown(const struct tokenizer *t, uint32_t sym, const char *p, size_t n)
{
    if (sym < t->v.n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (t->v.byte_id[(uint8_t)p[i]] < 0)
            return true;
    return false;
}

static int emit(struct tok_scratch *s, const char *word, const uint32_t *start, const uint32_t *sym,
                uint32_t n)
{
    const struct tokenizer *t = s->t;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        const char *p = word + start[i];
        size_t len = start[i + 1] - start[i];
        if (sym[i] < t->v.n) {
            rc = tok_emit(s, (int32_t)sym[i], p, len);
            continue;
        }
        if (t->fuse_unk && is_unknown(t, sym[i], p, len)) {
            while (i + 1 < n &&
                   is_unknown(t, sym[i + 1], word + start[i + 1], start[i + 2] - start[i + 1]))
                i++;
            len = start[i + 1] - (size_t)(p - word);
            rc = t->model_unk >= 0 ? tok_emit(s, t->model_unk, p, len) : 0;
            continue;
        }
        rc = emit_bytes(s, p, len);
    }
    return rc;
}

/* Merges a row of n symbols in place; start[n] is the length of the word.  Returns what is left. */
static uint32_t merge_small(const struct tokenizer *t, const char *word, uint32_t *start,
                            uint32_t *sym, uint32_t n)
{
    uint32_t rank[SMALL], merged[SMALL];
    for (uint32_t i = 0; i + 1 < n; i++)
        rank[i] =
            pair_rank(t, sym[i], sym[i + 1], word + start[i], start[i + 2] - start[i], &merged[i]);
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
            rank[i] = pair_rank(t, sym[i], sym[i + 1], word + start[i], start[i + 2] - start[i],
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

static int heap_push(struct tok_scratch *s, uint64_t x)
{
    if (s->n_heap == s->cap_heap) {
        size_t cap = s->cap_heap ? s->cap_heap * 2 : 1024, bytes;
        uint64_t *bigger =
            mem_mul(&bytes, cap, sizeof(*bigger)) ? mem_realloc(s->heap, bytes) : NULL;
        if (!bigger)
            return SHOAL_ENOMEM;
        s->heap = bigger;
        s->cap_heap = cap;
    }
    size_t i = s->n_heap++;
    for (; i > 0 && x < s->heap[(i - 1) / 4]; i = (i - 1) / 4)
        s->heap[i] = s->heap[(i - 1) / 4];
    s->heap[i] = x;
    return 0;
}

static uint64_t heap_pop(struct tok_scratch *s)
{
    uint64_t top = s->heap[0];
    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap > 0)
        heap_down(s->heap, s->n_heap, 0);
    return top;
}

/* Ranks the pair of symbol i and its successor and puts it into the heap. */
static int rank_pair(struct tok_scratch *s, const char *word, uint32_t i, uint32_t n)
{
    uint32_t j = s->next[i];
    s->rank[i] = NO_RANK;
    if (j >= n)
        return 0;
    uint32_t end = s->start[s->next[j] < n ? s->next[j] : n];
    s->rank[i] =
        pair_rank(s->t, s->sym[i], s->sym[j], word + s->start[i], end - s->start[i], &s->merged[i]);
    return s->rank[i] == NO_RANK ? 0 : heap_push(s, (uint64_t)s->rank[i] << 32 | i);
}

/* Merges the n symbols in scratch, start[n] set; the result stands closed up at their front. */
static int merge_large(struct tok_scratch *s, const char *word, uint32_t n, uint32_t *left)
{
    int rc = 0;
    s->n_heap = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->next[i] = i + 1;
        s->prev[i] = i - 1; /* of the first: UINT32_MAX, which is >= n */
    }
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = rank_pair(s, word, i, n);
    while (rc == 0 && s->n_heap > 0) {
        uint64_t top = heap_pop(s);
        uint32_t i = (uint32_t)top;
        /* An entry is stale when its symbol is gone or has another pair by now; if that pair has
         * the same rank, then it is its turn as well. */
        if (s->rank[i] != (uint32_t)(top >> 32))
            continue;
        uint32_t j = s->next[i], k = s->next[j];
        s->sym[i] = s->merged[i];
        s->rank[j] = NO_RANK;
        s->next[i] = k;
        if (k < n)
            s->prev[k] = i;
        rc = rank_pair(s, word, i, n);
        if (rc == 0 && s->prev[i] < n)
            rc = rank_pair(s, word, s->prev[i], n);
    }
    uint32_t out = 0;
    for (uint32_t i = 0; i < n; i = s->next[i], out++) { /* out <= i: never overtakes */
        s->start[out] = s->start[i];
        s->sym[out] = s->sym[i];
    }
    s->start[out] = s->start[n];
    *left = out;
    return rc;
}

/* Splits the word into its first symbols; start and sym have room for n + 1. */
static uint32_t first_symbols(const struct tokenizer *t, const char *p, size_t n, uint32_t *start,
                              uint32_t *sym)
{
    const uint8_t *q = (const uint8_t *)p, *end = q + n;
    uint32_t k = 0;
    for (; q < end; k++) {
        uint32_t cp;
        unsigned len = 1;
        start[k] = (uint32_t)(q - (const uint8_t *)p);
        sym[k] = t->byte_sym[*q];
        if (t->chars && *q >= 0x80) {
            len = utf8_decode_multi(q, end, &cp);
            if (len == 0)
                len = 1; /* not UTF-8: a symbol of its own that only byte tokens can spell */
            else if (!tok_find(&t->v, (const char *)q, len, &sym[k]))
                sym[k] = TOK_NO_SYM;
        }
        q += len;
    }
    start[k] = (uint32_t)n;
    return k;
}

static int reserve(struct tok_scratch *s, size_t n)
{
    size_t bytes;
    if (n <= s->cap)
        return 0;
    n += n / 2;
    if (!mem_mul(&bytes, n, 6 * sizeof(uint32_t)))
        return SHOAL_ENOMEM;
    uint32_t *block = mem_alloc(bytes); /* the old content is not needed */
    if (!block)
        return SHOAL_ENOMEM;
    mem_free(s->start);
    s->start = block;
    s->sym = block + n;
    s->rank = block + 2 * n;
    s->merged = block + 3 * n;
    s->next = block + 4 * n;
    s->prev = block + 5 * n;
    s->cap = n;
    return 0;
}

static int merge_and_emit(struct tok_scratch *s, const char *p, size_t n)
{
    if (n <= SMALL) {
        uint32_t start[SMALL + 1], sym[SMALL + 1];
        uint32_t k = first_symbols(s->t, p, n, start, sym);
        return emit(s, p, start, sym, merge_small(s->t, p, start, sym, k));
    }
    int rc = reserve(s, n + 1);
    if (rc < 0)
        return rc;
    uint32_t k = first_symbols(s->t, p, n, s->start, s->sym);
    if (k <= SMALL)
        k = merge_small(s->t, p, s->start, s->sym, k);
    else
        rc = merge_large(s, p, k, &k);
    return rc < 0 ? rc : emit(s, p, s->start, s->sym, k);
}

int tok_merge_word(struct tok_scratch *s, const char *p, size_t n)
{
    const struct tokenizer *t = s->t;
    uint32_t id;
    if (!tok_find(&t->v, p, n, &id))
        return merge_and_emit(s, p, n);
    /* Most words of real text are one token.  Whether merging gets there is a property of the
     * vocabulary, so it is tried once and remembered.  Relaxed: each value stands for itself, and
     * threads that race compute the same one. */
    uint8_t whole = atomic_load_explicit(&t->whole[id], memory_order_relaxed);
    if (whole == TOK_WHOLE_YES || t->ignore_merges)
        return tok_emit(s, (int32_t)id, p, n);
    size_t before = s->out->n;
    int rc = merge_and_emit(s, p, n);
    if (rc == 0 && whole == TOK_WHOLE_UNTRIED) {
        bool yes = s->out->n == before + 1 && s->out->ids[before] == (int32_t)id;
        atomic_store_explicit(&t->whole[id], yes ? TOK_WHOLE_YES : TOK_WHOLE_NO,
                              memory_order_relaxed);
    }
    return rc;
}

int tok_merge_spaced(struct tok_scratch *s, const char *p, size_t n)
{
    const char *end = p + n;
    int rc = 0;
    while (p < end && rc == 0) {
        const char *q = p + 1;
        while ((q = memchr(q, ' ', (size_t)(end - q))) &&
               (q[-1] == ' ' || s->t->glue[(uint8_t)q[-1]]))
            q++;
        if (!q)
            q = end;
        rc = tok_merge_word(s, p, (size_t)(q - p));
        p = q;
    }
    return rc;
}

void tok_merge_index_chars(struct tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char c = (char)b;
        if (b >= 0x80 || !tok_find(&t->v, &c, 1, &t->byte_sym[b]))
            t->byte_sym[b] = TOK_NO_SYM;
    }
    for (uint32_t id = 0; id < t->v.n; id++) {
        struct tok_piece w = tok_text(t, id);
        for (size_t i = 1; i < w.n; i++)
            if (w.p[i] == ' ' && w.p[i - 1] != ' ')
                t->glue[(uint8_t)w.p[i - 1]] = 1;
    }
}

size_t tok_unescape(char *out, const char *p, size_t n)
{
    const char *end = p + n;
    char *o = out;
    while (p < end) {
        const char *q = memchr(p, 0xe2, (size_t)(end - p));
        size_t k = (size_t)((q ? q : end) - p);
        memmove(o, p, k);
        o += k;
        p += k;
        if (p == end)
            break;
        if (end - p >= 3 && p[1] == (char)0x96 && p[2] == (char)0x81) {
            *o++ = ' ';
            p += 3;
        } else {
            *o++ = *p++;
        }
    }
    return (size_t)(o - out);
}
