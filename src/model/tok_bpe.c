/* tok_bpe.c - BPE with a table of merges, over bytes ("gpt2") or characters ("gemma4").
 *
 * A merge names two strings.  They become symbols: the token with that text, or a number beyond the
 * vocabulary for a string that is none, which only tables from odd converters have. */
#include "model/tok_internal.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/gguf.h"

struct builder {
    struct tokenizer *t;
    struct strmap extra; /* strings that merges make and that are no tokens */
    char *bytes;         /* storage of their keys, made when the first one comes */
    size_t n_bytes, cap_bytes;
    uint32_t n_sym;
    struct tok_alphabet alphabet;
    char *word; /* the joined text of one merge */
};

/* The part of a merge as the text that words have: bytes decoded, or U+2581 as a space. */
static bool decode_part(const struct builder *b, char *out, size_t *n_out, const char *p, size_t n)
{
    if (!b->t->chars)
        return tok_decode_bytes(out, n_out, p, n, &b->alphabet);
    *n_out = tok_unescape(out, p, n);
    return true;
}

static bool find_sym(const struct builder *b, const char *p, size_t n, uint32_t *sym)
{
    if (strmap_get(&b->t->v.by_text, p, n, sym))
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

static void add_pair(struct tokenizer *t, uint32_t left, uint32_t right, uint32_t merged,
                     uint32_t rank)
{
    size_t mask = t->n_pairs - 1;
    size_t i = hash_mix((uint64_t)left << 32 | right) & mask;
    for (;; i = (i + 1) & mask) {
        struct bpe_pair *q = &t->pairs[i];
        if (q->left == left && q->right == right)
            return; /* the first of equals counts */
        if (q->left == TOK_NO_SYM) {
            *q = (struct bpe_pair){left, right, merged, rank};
            return;
        }
    }
}

/* "left right"; a space that is the first character belongs to the left. */
static int add_merge(struct builder *b, struct gguf_str m, uint32_t rank)
{
    const char *space = m.n > 1 ? memchr(m.p + 1, ' ', m.n - 1) : NULL;
    size_t n_left, n_right;
    uint32_t left, right, merged;
    if (!space)
        return 0; /* nothing that could ever apply */
    size_t at = (size_t)(space - m.p);
    if (!decode_part(b, b->word, &n_left, m.p, at) ||
        !decode_part(b, b->word + n_left, &n_right, space + 1, m.n - at - 1) || n_right == 0)
        return 0;
    size_t n = n_left + n_right;
    if (!find_sym(b, b->word, n_left, &left) || !find_sym(b, b->word + n_left, n_right, &right))
        return 0;
    if (!find_sym(b, b->word, n, &merged)) {
        if (tokenizer_find(b->t, b->word, n) >= 0)
            return 0; /* it would make a control token out of plain text */
        int rc = add_extra(b, b->word, n, &merged);
        if (rc < 0)
            return rc;
        memset(b->t->glue, 1, sizeof(b->t->glue)); /* it may hold spaces: never cut before one */
    }
    add_pair(b->t, left, right, merged, rank);
    return 0;
}

static int load_merges(struct builder *b, const struct gguf_kv *kv, struct err *e)
{
    struct tokenizer *t = b->t;
    size_t longest = 0, slots = 16;
    for (uint64_t i = 0; i < kv->n_elems; i++) {
        b->cap_bytes += kv->strings[i].n;
        if (kv->strings[i].n > longest)
            longest = kv->strings[i].n;
    }
    while (slots < kv->n_elems * 2)
        slots *= 2;
    t->pairs = mem_zalloc_n(slots, sizeof(*t->pairs));
    b->word = mem_alloc(longest + 1);
    if (!t->pairs || !b->word)
        return err_set(e, SHOAL_ENOMEM, "%llu merges", (unsigned long long)kv->n_elems);
    t->n_pairs = slots;
    for (size_t i = 0; i < slots; i++)
        t->pairs[i].left = TOK_NO_SYM;
    for (uint64_t i = 0; i < kv->n_elems; i++) {
        int rc = add_merge(b, kv->strings[i], (uint32_t)i);
        if (rc < 0)
            return err_set(e, rc, "%llu merges", (unsigned long long)kv->n_elems);
    }
    return 0;
}

int bpe_load(struct tokenizer *t, const struct gguf *g, struct err *e)
{
    const struct gguf_kv *kv = gguf_find(g, "tokenizer.ggml.merges");
    struct builder b = {.t = t, .n_sym = t->v.n};
    int rc;
    if (!kv || kv->type != GGUF_TYPE_ARRAY || kv->elem_type != GGUF_TYPE_STRING)
        return err_set(e, SHOAL_EFORMAT,
                       "tokenizer.ggml.merges is missing or is no array of strings");
    if (kv->n_elems >= UINT32_MAX / 4)
        return err_set(e, SHOAL_ELIMIT, "tokenizer.ggml.merges has too many elements");
    if (t->chars) {
        tok_merge_index_chars(t);
    } else {
        tok_alphabet_init(&b.alphabet);
        for (int i = 0; i < 256; i++) {
            char c = (char)i;
            if (!strmap_get(&t->v.by_text, &c, 1, &t->byte_sym[i]))
                t->byte_sym[i] = b.n_sym++;
        }
    }
    rc = load_merges(&b, kv, e);
    mem_free(b.word);
    mem_free(b.bytes);
    strmap_fini(&b.extra);
    return rc;
}

void bpe_fini(struct tokenizer *t)
{
    mem_free(t->pairs);
    pretok_destroy(t->pretok);
}

static int encode_word(void *ctx, const char *p, size_t n)
{
    struct tok_scratch *s = ctx;
    uint32_t id;
    if (!s->t->chars)
        return tok_merge_word(s, p, n);
    /* pieces are runs of newlines or have none at all */
    if (s->t->newline_runs && *p == '\n' && strmap_get(&s->t->v.by_text, p, n, &id))
        return tok_ids_push(s->out, (int32_t)id);
    return tok_merge_spaced(s, p, n);
}

int bpe_encode(struct tok_scratch *s, const char *p, size_t n)
{
    if (s->t->chars && memmem(p, n, "\xe2\x96\x81", 3)) {
        int rc = tok_scratch_text(s, n);
        if (rc < 0)
            return rc;
        n = tok_unescape(s->text, p, n);
        p = s->text;
    }
    return pretok_split(s->t->pretok, &s->pre, p, n, encode_word, s);
}
