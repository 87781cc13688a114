/* llama2c_vocab.c - see llama2c_vocab.h. */
#include "format/convert/llama2c_vocab.h"

#include <string.h>

#include "base/mem.h"
#include "base/rd.h"
#include "format/token_type.h"

/* Each token takes eight bytes and its text, so a count that the file cannot hold is refused before
 * anything is allocated. */
static int allocate(struct llama2c_vocab *v, size_t n_bytes, uint32_t n_vocab, struct err *e)
{
    if (n_vocab == 0 || n_vocab > n_bytes / 8)
        return err_set(e, SHOAL_EFORMAT, "tokenizer.bin: %zu bytes do not hold %u tokens", n_bytes,
                       n_vocab);
    v->pieces = mem_zalloc_n(n_vocab, sizeof(*v->pieces));
    v->piece_bytes = mem_zalloc_n(n_vocab, sizeof(*v->piece_bytes));
    v->scores = mem_zalloc_n(n_vocab, sizeof(*v->scores));
    v->types = mem_zalloc_n(n_vocab, sizeof(*v->types));
    /* a space becomes three bytes, a byte token of an old file six */
    v->bytes = mem_alloc(n_bytes * 3 + 256 * sizeof("<0x00>"));
    if (!v->pieces || !v->piece_bytes || !v->scores || !v->types || !v->bytes)
        return err_set(e, SHOAL_ENOMEM, "tokenizer.bin: out of memory for %u tokens", n_vocab);
    return 0;
}

static int32_t type_of(uint32_t id, const uint8_t *p, size_t n)
{
    if (id == 0)
        return TOKEN_TYPE_UNKNOWN;
    if (id < 3)
        return TOKEN_TYPE_CONTROL;
    if (n == 6 && memcmp(p, "<0x", 3) == 0 && p[5] == '>')
        return TOKEN_TYPE_BYTE;
    return TOKEN_TYPE_NORMAL;
}

/* llama2.c stores BOS and EOS as "\n<s>\n" and "\n</s>\n", for its own output. */
static void trim_newlines(const uint8_t **p, size_t *n)
{
    while (*n > 0 && **p == '\n') {
        (*p)++;
        (*n)--;
    }
    while (*n > 0 && (*p)[*n - 1] == '\n')
        (*n)--;
}

/* Old files store the byte tokens 3..258 as the characters U+0000..U+00FF. */
static bool is_raw_byte(uint32_t id, const uint8_t *p, size_t n)
{
    if (id < 3 || id > 258)
        return false;
    uint8_t c = (uint8_t)(id - 3);
    return c < 0x80 ? n == 1 && p[0] == c
                    : n == 2 && p[0] == (0xc0 | c >> 6) && p[1] == (0x80 | (c & 0x3f));
}

/* Renames those tokens to <0x00> .. <0xFF>: otherwise a comma would have two ids. */
static void name_raw_bytes(struct llama2c_vocab *v, char *o)
{
    static const char hex[] = "0123456789ABCDEF";
    for (uint32_t id = 3; id < 259; id++, o += 6) {
        const char name[6] = {'<', '0', 'x', hex[(id - 3) >> 4], hex[(id - 3) & 15], '>'};
        memcpy(o, name, 6);
        v->pieces[id] = o;
        v->piece_bytes[id] = 6;
        v->types[id] = TOKEN_TYPE_BYTE;
    }
}

int llama2c_vocab_parse(struct llama2c_vocab *out, const void *bytes, size_t n, uint32_t n_vocab,
                        struct err *e)
{
    struct rd r = rd_make(bytes, n);
    struct llama2c_vocab v = {.bos = 1, .eos = 2, .unk = 0};
    *out = (struct llama2c_vocab){0};
    (void)rd_i32(&r); /* the longest token; we do not need it */
    int rc = allocate(&v, n, n_vocab, e);
    char *o = v.bytes;
    uint32_t n_raw = 0;
    for (; rc == 0 && v.n < n_vocab; v.n++) {
        uint32_t id = v.n;
        v.scores[id] = rd_f32(&r);
        int32_t len = rd_i32(&r);
        size_t k = len < 0 ? SIZE_MAX : (size_t)len;
        const uint8_t *p = rd_take(&r, k);
        if (r.bad) {
            rc = err_set(e, SHOAL_EFORMAT, "tokenizer.bin: token %u of %u is cut short", id,
                         n_vocab);
            break;
        }
        if (id == 1 || id == 2)
            trim_newlines(&p, &k);
        v.types[id] = type_of(id, p, k);
        n_raw += is_raw_byte(id, p, k);
        v.pieces[id] = o;
        for (size_t i = 0; i < k; i++) {
            if (p[i] == ' ') {
                memcpy(o, "\xe2\x96\x81", 3);
                o += 3;
            } else {
                *o++ = (char)p[i];
            }
        }
        v.piece_bytes[id] = (size_t)(o - v.pieces[id]);
    }
    if (rc == 0 && rd_left(&r) > 0)
        rc =
            err_set(e, SHOAL_EFORMAT, "tokenizer.bin: %zu bytes after %u tokens: wrong vocabulary?",
                    rd_left(&r), n_vocab);
    if (rc == 0 && n_raw == 256)
        name_raw_bytes(&v, o);
    if (rc < 0) {
        llama2c_vocab_fini(&v);
        return rc;
    }
    *out = v;
    return 0;
}

void llama2c_vocab_fini(struct llama2c_vocab *v)
{
    mem_free(v->pieces);
    mem_free(v->piece_bytes);
    mem_free(v->scores);
    mem_free(v->types);
    mem_free(v->bytes);
    *v = (struct llama2c_vocab){0};
}
