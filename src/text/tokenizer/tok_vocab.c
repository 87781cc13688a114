/* tok_vocab.c - see tok_vocab.h. */
#include "text/tokenizer/tok_vocab.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "format/token_type.h"
#include "text/tokenizer/tokenizer_info.h"

int tok_vocab_alloc(struct tok_vocab *v, uint32_t n, struct err *e)
{
    v->n = v->n_tokens = n;
    v->unk = TOKENIZER_NONE;
    v->at = mem_zalloc_n((size_t)n + 1, sizeof(*v->at));
    v->type = mem_zalloc(n);
    v->attr = mem_zalloc(n);
    if (!v->at || !v->type || !v->attr)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", n);
    memset(v->type, TOKEN_TYPE_NORMAL, n);
    for (int b = 0; b < 256; b++)
        v->byte_id[b] = TOKENIZER_NONE;
    return 0;
}

void tok_vocab_fini(struct tok_vocab *v)
{
    mem_free(v->bytes);
    mem_free(v->at);
    mem_free(v->shown_bytes);
    mem_free(v->shown_at);
    mem_free(v->type);
    mem_free(v->attr);
    mem_free(v->plain.slots);
}

void tok_alphabet_init(struct tok_alphabet *a)
{
    int next = 256;
    for (int i = 0; i < 512; i++)
        a->byte_of[i] = -1;
    for (int b = 0; b < 256; b++) {
        bool prints = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        a->byte_of[prints ? b : next++] = (int16_t)b;
    }
}

bool tok_alphabet_decode(char *out, size_t *n_out, const char *text, size_t n,
                         const struct tok_alphabet *a)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    char *o = out;
    while (p < end) {
        uint32_t cp;
        unsigned len = utf8_decode(p, end, &cp);
        if (len == 0 || cp >= 512 || a->byte_of[cp] < 0)
            return false;
        *o++ = (char)a->byte_of[cp];
        p += len;
    }
    *n_out = (size_t)(o - out);
    return true;
}

bool tok_vocab_byte_spelling(const char *p, size_t n, uint8_t *byte)
{
    unsigned v = 0;
    if (n != 6 || memcmp(p, "<0x", 3) != 0 || p[5] != '>')
        return false;
    for (int i = 3; i < 5; i++) {
        int d = ascii_hex(p[i]);
        if (d < 0)
            return false;
        v = v * 16 + (unsigned)d;
    }
    *byte = (uint8_t)v;
    return true;
}

int tok_index_init(struct tok_index *x, uint32_t n)
{
    if (n > UINT32_MAX / 4 - 1)
        return SHOAL_ELIMIT;
    x->n_slots = 4 * n + 1; /* one slot stays free: it ends every search */
    x->n_bits = n > 0 ? 32u - (uint32_t)__builtin_clz(n) : 1;
    x->slots = mem_zalloc_n(x->n_slots, sizeof(*x->slots));
    return x->slots ? 0 : SHOAL_ENOMEM;
}

void tok_index_put(struct tok_index *x, uint64_t h, uint32_t k)
{
    uint32_t i = tok_index_first(x, h);
    while (x->slots[i] != 0)
        i = tok_index_after(x, i);
    x->slots[i] = (uint32_t)h << x->n_bits ^ (k + 1);
}

/* The table from text to token; of two tokens with one piece the first counts. */
int tok_vocab_index(struct tok_vocab *v, struct err *e)
{
    int rc = tok_index_init(&v->plain, v->n);
    if (rc < 0)
        return err_set(e, rc, "vocabulary of %u tokens: %s", v->n, err_text(rc));
    /* The table is larger than the caches: prefetch slots some tokens ahead. */
    enum { AHEAD = 16 };
    uint64_t hashes[AHEAD];
    for (uint32_t next = 0; next < v->n + AHEAD; next++) {
        uint32_t id = next - AHEAD, other;
        if (next >= AHEAD && (v->attr[id] & TOK_ATTR_PLAIN)) {
            uint64_t h = hashes[id % AHEAD];
            if (!tok_vocab_find_hashed(v, v->bytes + v->at[id], v->at[id + 1] - v->at[id], h,
                                       &other))
                tok_index_put(&v->plain, h, id);
        }
        if (next < v->n) {
            uint64_t h = tok_vocab_hash(v->bytes + v->at[next], v->at[next + 1] - v->at[next]);
            hashes[next % AHEAD] = h;
            tok_index_prefetch(&v->plain, h);
        }
    }
    return 0;
}
