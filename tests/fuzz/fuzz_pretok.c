/* fuzz_pretok.c - any bytes through any pre-tokenizer: nothing is lost, and for ASCII, whose
 * classes no version of Unicode changes, scanners and expressions agree. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "text/tokenizer/split/tok_pretok.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct words {
    const char *next; /* the expected start of the next word */
    struct buf lengths;
};

static int take_word(void *ctx, const char *p, size_t n)
{
    struct words *w = ctx;
    if (p != w->next || n == 0)
        abort();
    w->next = p + n;
    buf_put(&w->lengths, &n, sizeof(n));
    return 0;
}

static void run(struct words *w, const char *name, enum tok_pretok_mode mode, const char *p,
                size_t n)
{
    struct tok_pretok *pt;
    struct tok_pretok_scratch s = {0};
    struct err e;
    w->next = p;
    buf_init(&w->lengths, (size_t)1 << 26);
    if (tok_pretok_create(&pt, name, mode, &e) < 0 ||
        tok_pretok_split(pt, &s, p, n, take_word, w) < 0)
        abort();
    if (w->next != p + n)
        abort();
    tok_pretok_scratch_fini(&s);
    tok_pretok_destroy(pt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct words a, b;
    size_t n_names = 0;
    bool ascii = true;
    if (size < 2 || size > 4000)
        return 0;
    while (tok_pretok_name(n_names))
        n_names++;
    const char *name = tok_pretok_name(data[0] % n_names), *text = (const char *)data + 1;
    for (size_t i = 1; i < size; i++)
        ascii &= data[i] < 0x80;
    run(&a, name, TOK_PRETOK_FAST, text, size - 1);
    run(&b, name, TOK_PRETOK_REGEX_ONLY, text, size - 1);
    if (ascii && (a.lengths.len != b.lengths.len ||
                  memcmp(a.lengths.data, b.lengths.data, a.lengths.len) != 0))
        abort();
    FUZZ_NOTE("%s", name);
    for (size_t i = 0; i < a.lengths.len / sizeof(size_t); i++)
        FUZZ_NOTE(" %zu", ((const size_t *)(const void *)a.lengths.data)[i]);
    buf_fini(&a.lengths);
    buf_fini(&b.lengths);
    return 0;
}
