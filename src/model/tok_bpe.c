/* tok_bpe.c - BPE with a table of merges, over bytes ("gpt2") or characters ("gemma4"), from GGUF
 * metadata or from tokenizer.json.
 *
 * A merge names two strings.  They become symbols: the token with that text, or a number beyond the
 * vocabulary for a string that is none, which only tables from odd converters have. */
#include "model/tok_internal.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "model/gguf.h"

#define BATCH 16         /* merges in flight: enough to hide the latency of memory */
#define BATCH_BYTES 8192 /* of their texts; a longer merge is a batch of its own */

struct merge {     /* one "left right", read and hashed but not looked up yet */
    const char *p; /* both parts, decoded, one after the other */
    size_t n_left, n;
    uint64_t h_left, h_right, h;
    uint32_t left, right, merged, rank;
    bool good;
};

struct builder {
    struct tokenizer *t;
    const struct bpe_merges *src;
    struct strmap extra; /* strings that merges make and that are no tokens */
    char *bytes;         /* storage of their keys, made when the first one comes */
    size_t n_bytes, cap_bytes;
    uint32_t n_sym;
    struct tok_alphabet alphabet;
    struct merge batch[BATCH];
    char *text; /* of the batch */
    size_t cap_text;
};

/* The part of a merge as the text that words have: bytes decoded, or U+2581 as a space. */
static bool decode_part(const struct builder *b, char *out, size_t *n_out, const char *p, size_t n)
{
    if (!b->t->chars)
        return tok_decode_bytes(out, n_out, p, n, &b->alphabet);
    if (!b->t->hf) {
        *n_out = tok_unescape(out, p, n);
        return true;
    }
    memcpy(out, p, n);
    *n_out = n;
    return true;
}

static bool find_sym(const struct builder *b, const char *p, size_t n, uint64_t h, uint32_t *sym)
{
    if (n <= b->t->v.max_len && tok_find_hashed(&b->t->v, p, n, h, sym))
        return true;
    if (n == 1 && !b->t->chars) {
        *sym = b->t->byte_sym[(uint8_t)*p];
        return true;
    }
    return strmap_get(&b->extra, p, n, sym);
}

/* A new symbol for a string that is no token. */
static int add_extra(struct builder *b, const char *p, size_t n, uint32_t *sym)
{
    if (!b->bytes) {
        b->bytes = mem_alloc(b->cap_bytes);
        if (!b->bytes || strmap_init(&b->extra, 64) < 0)
            return SHOAL_ENOMEM;
    }
    if (n > b->cap_bytes - b->n_bytes || b->n_sym == TOK_NO_SYM - 1)
        return SHOAL_ELIMIT;
    char *key = b->bytes + b->n_bytes;
    memcpy(key, p, n);
    b->n_bytes += n;
    *sym = b->n_sym++;
    int rc = strmap_put(&b->extra, key, n, *sym);
    return rc < 0 ? rc : 0;
}

static size_t pair_slot(const struct tokenizer *t, uint32_t left, uint32_t right)
{
    return hash_mix((uint64_t)left << 32 | right) & (t->n_pairs - 1);
}

static void add_pair(struct tokenizer *t, const struct merge *m)
{
    for (size_t i = pair_slot(t, m->left, m->right);; i = (i + 1) & (t->n_pairs - 1)) {
        struct bpe_pair *q = &t->pairs[i];
        if (q->rank1 == 0) {
            *q = (struct bpe_pair){m->left, m->right, m->merged, m->rank + 1};
            return;
        }
        if (q->left == m->left && q->right == m->right)
            return; /* the first of equals counts */
    }
}

static void prefetch_slot(const struct tok_vocab *v, uint64_t h)
{
    __builtin_prefetch(&v->slots[h & (v->n_slots - 1)]);
}

static void prefetch_piece(const struct tok_vocab *v, uint64_t h)
{
    uint64_t slot = v->slots[h & (v->n_slots - 1)];
    if (slot != 0)
        __builtin_prefetch(v->bytes + v->at[(uint32_t)slot - 1]);
}

/* Reads a merge into out.  One that can never apply is no good. */
static void read_merge(const struct builder *b, struct merge *m, struct gguf_str left,
                       struct gguf_str right, char *out)
{
    size_t n_right = 0;
    m->p = out;
    m->good = left.n > 0 && right.n > 0 && decode_part(b, out, &m->n_left, left.p, left.n) &&
              decode_part(b, out + m->n_left, &n_right, right.p, right.n) && n_right > 0;
    if (!m->good)
        return;
    m->n = m->n_left + n_right;
    m->h_left = tok_hash(m->p, m->n_left);
    m->h_right = tok_hash(m->p + m->n_left, n_right);
    m->h = tok_hash(m->p, m->n);
    prefetch_slot(&b->t->v, m->h_left);
    prefetch_slot(&b->t->v, m->h_right);
    prefetch_slot(&b->t->v, m->h);
}

/* Finds the three symbols of a merge. */
static int resolve(struct builder *b, struct merge *m)
{
    const char *right = m->p + m->n_left;
    m->good = find_sym(b, m->p, m->n_left, m->h_left, &m->left) &&
              find_sym(b, right, m->n - m->n_left, m->h_right, &m->right);
    if (!m->good || find_sym(b, m->p, m->n, m->h, &m->merged))
        return 0;
    if (tokenizer_find(b->t, m->p, m->n) >= 0) {
        m->good = false; /* it would make a control token out of plain text */
        return 0;
    }
    memset(b->t->glue, 1, sizeof(b->t->glue)); /* it may hold spaces: never cut before one */
    return add_extra(b, m->p, m->n, &m->merged);
}

/* Takes up to BATCH merges from `from` on; returns how many, or a negative code.  The tables are
 * larger than the caches: each step asks for the memory that the next one reads. */
static int add_batch(struct builder *b, uint64_t from)
{
    struct tokenizer *t = b->t;
    size_t used = 0;
    int k = 0;
    for (; k < BATCH && from + (uint64_t)k < b->src->n; k++) {
        struct gguf_str left, right;
        b->src->get(b->src->ctx, from + (uint64_t)k, &left, &right);
        if (left.n + right.n > b->cap_text - used)
            break;
        b->batch[k].rank = (uint32_t)(from + (uint64_t)k);
        read_merge(b, &b->batch[k], left, right, b->text + used);
        used += left.n + right.n;
    }
    for (int i = 0; i < k; i++)
        if (b->batch[i].good) {
            prefetch_piece(&t->v, b->batch[i].h_left);
            prefetch_piece(&t->v, b->batch[i].h_right);
            prefetch_piece(&t->v, b->batch[i].h);
        }
    for (int i = 0; i < k; i++) {
        struct merge *m = &b->batch[i];
        int rc = m->good ? resolve(b, m) : 0;
        if (rc < 0)
            return rc;
        if (m->good)
            __builtin_prefetch(&t->pairs[pair_slot(t, m->left, m->right)], 1);
    }
    for (int i = 0; i < k; i++)
        if (b->batch[i].good)
            add_pair(t, &b->batch[i]);
    return k;
}

static int load_merges(struct builder *b, struct err *e)
{
    struct tokenizer *t = b->t;
    uint64_t n = b->src->n;
    size_t slots = 16;
    b->cap_text = BATCH_BYTES;
    for (uint64_t i = 0; i < n; i++) {
        struct gguf_str left, right;
        b->src->get(b->src->ctx, i, &left, &right);
        b->cap_bytes += left.n + right.n;
        if (left.n + right.n > b->cap_text)
            b->cap_text = left.n + right.n;
    }
    while (slots < n * 2)
        slots *= 2;
    t->pairs = mem_pages(slots * sizeof(*t->pairs));
    t->n_pairs = t->pairs ? slots : 0;
    b->text = mem_alloc(b->cap_text);
    if (!t->pairs || !b->text)
        return err_set(e, SHOAL_ENOMEM, "%llu merges", (unsigned long long)n);
    for (uint64_t i = 0; i < n;) {
        int rc = add_batch(b, i);
        if (rc < 0)
            return err_set(e, rc, "%llu merges", (unsigned long long)n);
        i += (uint64_t)rc;
    }
    return 0;
}

int bpe_load_merges(struct tokenizer *t, const struct bpe_merges *src, struct err *e)
{
    struct builder b = {.t = t, .src = src, .n_sym = t->v.n};
    if (src->n >= UINT32_MAX / 4)
        return err_set(e, SHOAL_ELIMIT, "%llu merges are too many", (unsigned long long)src->n);
    if (t->chars) {
        tok_merge_index_chars(t);
    } else {
        tok_alphabet_init(&b.alphabet);
        for (int i = 0; i < 256; i++) {
            char c = (char)i;
            if (!tok_find(&t->v, &c, 1, &t->byte_sym[i]))
                t->byte_sym[i] = b.n_sym++;
        }
    }
    int rc = load_merges(&b, e);
    mem_free(b.text);
    mem_free(b.bytes);
    strmap_fini(&b.extra);
    return rc;
}

void bpe_split_merge(struct gguf_str s, struct gguf_str *left, struct gguf_str *right)
{
    const char *space = s.n > 1 ? memchr(s.p + 1, ' ', s.n - 1) : NULL;
    size_t at = space ? (size_t)(space - s.p) : s.n;
    *left = (struct gguf_str){s.p, at};
    *right = (struct gguf_str){s.p + at, 0};
    if (space)
        *right = (struct gguf_str){space + 1, s.n - at - 1};
}

static void get_merge(const void *ctx, uint64_t i, struct gguf_str *left, struct gguf_str *right)
{
    const struct gguf_kv *kv = ctx;
    bpe_split_merge(kv->strings[i], left, right);
}

int bpe_load(struct tokenizer *t, const struct gguf *g, struct err *e)
{
    const struct gguf_kv *kv = gguf_find(g, "tokenizer.ggml.merges");
    if (!kv || kv->type != GGUF_TYPE_ARRAY || kv->elem_type != GGUF_TYPE_STRING)
        return err_set(e, SHOAL_EFORMAT,
                       "tokenizer.ggml.merges is missing or is no array of strings");
    struct bpe_merges src = {kv->n_elems, get_merge, kv};
    return bpe_load_merges(t, &src, e);
}

void bpe_fini(struct tokenizer *t)
{
    if (t->pairs)
        mem_pages_free(t->pairs, t->n_pairs * sizeof(*t->pairs));
    pretok_destroy(t->pretok);
}

static int encode_word(void *ctx, const char *p, size_t n)
{
    struct tok_scratch *s = ctx;
    uint32_t id;
    if (!s->t->chars)
        return tok_merge_word(s, p, n);
    /* pieces are runs of newlines or have none at all */
    if (s->t->newline_runs && *p == '\n' && tok_find(&s->t->v, p, n, &id))
        return tok_emit(s, (int32_t)id, p, n);
    return tok_merge_spaced(s, p, n);
}

int bpe_encode(struct tok_scratch *s, const char *p, size_t n)
{
    if (s->t->chars && memmem(p, n, "\xe2\x96\x81", 3)) {
        int rc = tok_unescape_view(s, p, n, false);
        if (rc < 0)
            return rc;
        p = s->text.p;
        n = s->text.n;
    }
    return pretok_split(s->t->pretok, &s->pre, p, n, encode_word, s);
}
