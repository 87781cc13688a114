/* tok_bpe.c - see tok_bpe.h.
 *
 * A merge names two strings.  They become symbols: the token with that text, or a number beyond the
 * vocabulary for a string that is not a token, which only unusual converters produce. */
#include "text/tokenizer/algorithm/tok_bpe.h"

#include <string.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "text/tokenizer/algorithm/tok_merge.h"

#define BATCH 16         /* merges in flight: enough to hide the latency of memory */
#define BATCH_BYTES 8192 /* limit of their texts; a longer merge is a batch by itself */

struct merge {     /* one "left right", read and hashed but not looked up yet */
    const char *p; /* both parts, decoded, one after the other */
    size_t n_left, n;
    uint64_t h_left, h_right, h;
    uint32_t left, right, merged;
    bool good;
};

struct bpe {
    struct tok_merge merge;
    const struct tok_special *special;
    struct tok_pretok *pretok;
    bool escaped, newline_runs;
};

struct run { /* one text */
    const struct bpe *bpe;
    struct tok_call *call;
    struct tok_merge_work work;
    struct tok_pretok_scratch pre;
    struct tok_rewrite text;
};

_Static_assert(sizeof(struct tok_merge_work) <= TOKENIZER_WORK_BYTES, "working memory of a word");

struct builder {
    struct bpe *bpe;
    struct tok_merge *m; /* of bpe */
    const struct tok_bpe_merges *src;
    uint64_t n_read;        /* merges taken from src */
    struct str left, right; /* of the next merge, if there is one */
    bool has_next;
    struct strmap extra; /* strings that merges produce but that are not tokens */
    char *bytes;         /* storage of their keys, allocated on first use */
    size_t n_bytes;
    uint32_t n_sym;
    struct tok_alphabet alphabet;
    struct merge batch[BATCH];
    char *text; /* of the batch */
    size_t cap_text;
};

/* The part of a merge as the text that words have: bytes decoded, or U+2581 as a space. */
static bool decode_part(const struct builder *b, char *out, size_t *n_out, const char *p, size_t n)
{
    if (!b->m->chars)
        return tok_alphabet_decode(out, n_out, p, n, &b->alphabet);
    if (b->bpe->escaped) {
        *n_out = tok_call_unescape(out, p, n);
        return true;
    }
    memcpy(out, p, n);
    *n_out = n;
    return true;
}

static bool find_sym(const struct builder *b, const char *p, size_t n, uint64_t h, uint32_t *sym)
{
    if (n <= b->m->v->max_len && tok_vocab_find_hashed(b->m->v, p, n, h, sym))
        return true;
    if (n == 1 && !b->m->chars) {
        *sym = b->m->byte_sym[(uint8_t)*p];
        return true;
    }
    return strmap_get(&b->extra, p, n, sym);
}

/* A new symbol for a string that is not a token. */
static int add_extra(struct builder *b, const char *p, size_t n, uint32_t *sym)
{
    if (!b->bytes) {
        b->bytes = mem_alloc(b->src->n_bytes);
        if (!b->bytes || strmap_init(&b->extra, 64) < 0)
            return SHOAL_ENOMEM;
    }
    if (n > b->src->n_bytes - b->n_bytes || b->n_sym == TOK_MERGE_NO_SYM - 1)
        return SHOAL_ELIMIT;
    char *key = b->bytes + b->n_bytes;
    memcpy(key, p, n);
    b->n_bytes += n;
    *sym = b->n_sym++;
    int rc = strmap_put(&b->extra, key, n, *sym);
    return rc < 0 ? rc : 0;
}

/* Adds a pair; pairs are in order of rank, so a number in the index is a rank. */
static void add_pair(struct tok_merge *to, const struct merge *m)
{
    const uint64_t h = tok_merge_pair_hash(m->left, m->right);
    struct tok_index *x = &to->pair_index;
    uint32_t slot, k;
    for (uint32_t i = tok_index_first(x, h); (slot = x->slots[i]) != 0; i = tok_index_after(x, i))
        if (tok_index_match(x, slot, h, &k) && to->pairs[k].left == m->left &&
            to->pairs[k].right == m->right)
            return; /* the first of equal pairs wins */
    tok_index_put(x, h, to->n_pairs);
    to->pairs[to->n_pairs++] = (struct tok_merge_pair){m->left, m->right, m->merged};
}

static void prefetch_piece(const struct tok_vocab *v, uint64_t h)
{
    uint32_t slot = v->plain.slots[tok_index_first(&v->plain, h)], k;
    if (slot != 0 && tok_index_match(&v->plain, slot, h, &k))
        __builtin_prefetch(v->bytes + v->at[k]);
}

/* Reads a merge into out; `good` is false when it can never apply. */
static void read_merge(const struct builder *b, struct merge *m, struct str left, struct str right,
                       char *out)
{
    size_t n_right = 0;
    m->p = out;
    m->good = left.n > 0 && right.n > 0 && decode_part(b, out, &m->n_left, left.p, left.n) &&
              decode_part(b, out + m->n_left, &n_right, right.p, right.n) && n_right > 0;
    if (!m->good)
        return;
    m->n = m->n_left + n_right;
    m->h_left = tok_vocab_hash(m->p, m->n_left);
    m->h_right = tok_vocab_hash(m->p + m->n_left, n_right);
    m->h = tok_vocab_hash(m->p, m->n);
    tok_index_prefetch(&b->m->v->plain, m->h_left);
    tok_index_prefetch(&b->m->v->plain, m->h_right);
    tok_index_prefetch(&b->m->v->plain, m->h);
}

/* Finds the three symbols of a merge. */
static int resolve(struct builder *b, struct merge *m)
{
    const char *right = m->p + m->n_left;
    m->good = find_sym(b, m->p, m->n_left, m->h_left, &m->left) &&
              find_sym(b, right, m->n - m->n_left, m->h_right, &m->right);
    if (!m->good || find_sym(b, m->p, m->n, m->h, &m->merged))
        return 0;
    if (tok_special_find(b->bpe->special, m->p, m->n) >= 0) {
        m->good = false; /* plain text must not become a control token */
        return 0;
    }
    memset(b->m->glue, 1, sizeof(b->m->glue)); /* it may hold spaces: never cut before one */
    return add_extra(b, m->p, m->n, &m->merged);
}

/* Reads up to BATCH merges; returns how many, or a negative code. */
static int read_batch(struct builder *b)
{
    const struct tok_bpe_merges *src = b->src;
    size_t used = 0;
    int k = 0;
    for (; k < BATCH; k++) {
        if (!b->has_next && b->n_read < src->n) {
            b->has_next = src->next(src->ctx, &b->left, &b->right);
            if (!b->has_next)
                return SHOAL_EFORMAT; /* fewer than the count says */
            b->n_read++;
        }
        size_t n = b->left.n + b->right.n;
        if (!b->has_next || (n > b->cap_text - used && k > 0))
            break;
        if (n > b->cap_text) {
            mem_free(b->text);
            b->text = mem_alloc(n);
            b->cap_text = b->text ? n : 0;
            if (!b->text)
                return SHOAL_ENOMEM;
        }
        read_merge(b, &b->batch[k], b->left, b->right, b->text + used);
        used += n;
        b->has_next = false;
    }
    return k;
}

/* Takes the next merges; returns how many, or a negative code.  The tables are larger than the
 * caches: each step prefetches the memory that the next one reads. */
static int add_batch(struct builder *b)
{
    const int k = read_batch(b);
    for (int i = 0; i < k; i++)
        if (b->batch[i].good) {
            prefetch_piece(b->m->v, b->batch[i].h_left);
            prefetch_piece(b->m->v, b->batch[i].h_right);
            prefetch_piece(b->m->v, b->batch[i].h);
        }
    for (int i = 0; i < k; i++) {
        struct merge *m = &b->batch[i];
        int rc = m->good ? resolve(b, m) : 0;
        if (rc < 0)
            return rc;
        if (m->good)
            tok_index_prefetch(&b->m->pair_index, tok_merge_pair_hash(m->left, m->right));
    }
    for (int i = 0; i < k; i++)
        if (b->batch[i].good)
            add_pair(b->m, &b->batch[i]);
    return k;
}

static int load_merges(struct builder *b, struct err *e)
{
    uint64_t n = b->src->n;
    b->m->pairs = mem_zalloc_n((size_t)n, sizeof(*b->m->pairs));
    b->text = mem_alloc(BATCH_BYTES);
    b->cap_text = BATCH_BYTES;
    int rc = b->m->pairs && b->text ? tok_index_init(&b->m->pair_index, (uint32_t)n) : SHOAL_ENOMEM;
    if (rc == 0)
        do
            rc = add_batch(b);
        while (rc > 0);
    return rc < 0
               ? err_set(e, rc, "cannot read %llu merges: %s", (unsigned long long)n, err_text(rc))
               : 0;
}

static int build(struct bpe *bpe, const struct tok_bpe_merges *src, struct err *e)
{
    struct tok_merge *m = &bpe->merge;
    struct builder b = {.bpe = bpe, .m = m, .src = src, .n_sym = m->v->n};
    if (src->n >= UINT32_MAX / 4)
        return err_set(e, SHOAL_ELIMIT, "%llu merges are too many", (unsigned long long)src->n);
    if (!m->chars) {
        tok_alphabet_init(&b.alphabet);
        for (int i = 0; i < 256; i++) {
            char c = (char)i;
            if (!tok_vocab_find(m->v, &c, 1, &m->byte_sym[i]))
                m->byte_sym[i] = b.n_sym++;
        }
    }
    int rc = load_merges(&b, e);
    mem_free(b.text);
    mem_free(b.bytes);
    strmap_fini(&b.extra);
    return rc;
}

static void destroy(void *state)
{
    struct bpe *bpe = state;
    tok_merge_fini(&bpe->merge);
    tok_pretok_destroy(bpe->pretok);
    mem_free(bpe);
}

int tok_bpe_create(void **out, const struct tok_bpe_opts *o, const struct tok_bpe_merges *src,
                   struct err *e)
{
    struct bpe *bpe = mem_zalloc(sizeof(*bpe));
    *out = NULL;
    if (!bpe) {
        tok_pretok_destroy(o->pretok);
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    }
    bpe->special = o->special;
    bpe->pretok = o->pretok;
    bpe->escaped = o->escaped;
    bpe->newline_runs = o->newline_runs;
    bpe->merge.ignore_merges = o->ignore_merges;
    bpe->merge.fuse_unk = o->fuse_unk;
    int rc = tok_merge_init(&bpe->merge, o->v, o->chars, e);
    if (rc == 0)
        rc = build(bpe, src, e);
    if (rc < 0) {
        destroy(bpe);
        return rc;
    }
    *out = bpe;
    return 0;
}

void tok_bpe_split_merge(struct str s, struct str *left, struct str *right)
{
    const char *space = s.n > 1 ? memchr(s.p + 1, ' ', s.n - 1) : NULL;
    size_t at = space ? (size_t)(space - s.p) : s.n;
    *left = (struct str){s.p, at};
    *right = (struct str){s.p + at, 0};
    if (space)
        *right = (struct str){space + 1, s.n - at - 1};
}

/* ---- encoding ---- */

static int encode_word(void *ctx, const char *p, size_t n)
{
    struct run *r = ctx;
    const struct tok_merge *m = &r->bpe->merge;
    uint32_t id;
    if (!m->chars)
        return tok_merge_word(m, &r->work, r->call, p, n);
    /* pieces are runs of newlines or contain none at all */
    if (r->bpe->newline_runs && *p == '\n' && tok_vocab_find(m->v, p, n, &id))
        return tok_call_emit(r->call, (int32_t)id, p, n);
    return tok_merge_spaced(m, &r->work, r->call, p, n);
}

static int encode_plain(void *ctx, struct tok_call *c, const char *p, size_t n)
{
    struct run *r = ctx;
    if (r->bpe->merge.chars && memmem(p, n, "\xe2\x96\x81", 3)) {
        int rc = tok_rewrite_unescape(&r->text, c, p, n, false);
        if (rc < 0)
            return rc;
        p = r->text.p;
        n = r->text.n;
    }
    return tok_pretok_split(r->bpe->pretok, &r->pre, p, n, encode_word, r);
}

static int encode(const void *state, struct tok_call *c, const char *p, size_t n, unsigned flags)
{
    struct run r = {.bpe = state, .call = c};
    int rc = tok_special_split(r.bpe->special, r.bpe->merge.v, c, p, n, flags, encode_plain, &r);
    tok_merge_work_fini(&r.work);
    tok_pretok_scratch_fini(&r.pre);
    tok_rewrite_fini(&r.text);
    return rc;
}

static int word(const void *state, struct tok_call *c, void *work, const char *p, size_t n)
{
    const struct bpe *bpe = state;
    return tok_merge_word(&bpe->merge, work, c, p, n);
}

static void word_end(void *work)
{
    tok_merge_work_fini(work);
}

const struct tokenizer_ops tok_bpe_ops = {
    .encode = encode, .word = word, .word_end = word_end, .destroy = destroy};
