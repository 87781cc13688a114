/* test_tok_memory.c - the memory of a large vocabulary, as counted by the heap: nothing for the
 * reader of the file, a stated number of bytes per token for the tokenizer. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/tokenizer/tokenizer.h"
#include "support/gguf_build.h"

#define BYTES_PER_TOKEN 64 /* with its merge and its text of four bytes */
#define BYTES_BESIDE 65536 /* whatever the vocabulary */

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static bool heap_is_counted(void) /* not available under a sanitizer, which has its own heap */
{
    size_t before = heap_bytes();
    void *volatile p = malloc(1 << 20);
    bool counted = p && heap_bytes() >= before + (1 << 20);
    free(p);
    return counted;
}

struct words { /* single bytes, all words of two and three letters, many of four */
    struct buf tokens, merges;
    uint32_t n_tokens, n_merges;
};

static void add_word(struct words *w, const char *text, size_t n)
{
    gb_text(&w->tokens, text, n);
    w->n_tokens++;
    if (n == 1)
        return;
    char merge[8];
    memcpy(merge, text, n - 1);
    merge[n - 1] = ' ';
    merge[n] = text[n - 1];
    gb_text(&w->merges, merge, n + 1);
    w->n_merges++;
}

static void make_words(struct words *w)
{
    *w = (struct words){.n_tokens = 0};
    buf_init(&w->tokens, 1 << 24);
    buf_init(&w->merges, 1 << 24);
    for (char c = '!'; c <= '~'; c++)
        add_word(w, &c, 1);
    for (size_t n = 2; n <= 4; n++) {
        uint32_t all = n == 2 ? 26 * 26 : n == 3 ? 26 * 26 * 26 : 26 * 26 * 26 * 6;
        for (uint32_t i = 0; i < all; i++) {
            char text[4];
            uint32_t rest = i;
            for (size_t k = n; k-- > 0; rest /= 26)
                text[k] = (char)('a' + rest % 26);
            add_word(w, text, n);
        }
    }
}

static void write_model(struct buf *file, const struct words *w)
{
    gb_begin(file);
    gb_kv_str(file, "tokenizer.ggml.model", "gpt2");
    gb_kv_str(file, "tokenizer.ggml.pre", "gpt-2");
    gb_kv_array(file, "tokenizer.ggml.tokens", MODEL_FILE_STRING, w->n_tokens);
    buf_put(file, w->tokens.data, w->tokens.len);
    gb_kv_array(file, "tokenizer.ggml.merges", MODEL_FILE_STRING, w->n_merges);
    buf_put(file, w->merges.data, w->merges.len);
}

static void test_a_large_vocabulary_is_small_in_memory(void **state)
{
    struct words w;
    struct buf file;
    struct model_file *g = NULL;
    struct tokenizer *t = NULL;
    struct tok_ids ids;
    struct err e = {0};
    (void)state;
    make_words(&w);
    write_model(&file, &w);
    assert_int_equal(file.rc, 0);
    assert_true(w.n_tokens > 100000);

    bool counted = heap_is_counted();
    size_t before = heap_bytes();
    assert_int_equal(gguf_parse(&g, file.data, file.len, &e), 0);
    size_t parsed = heap_bytes() - before;
    assert_int_equal(tokenizer_create(&t, g, &e), 0);
    model_file_close(g);
    size_t made = heap_bytes() - before;
    buf_fini(&w.tokens);
    buf_fini(&w.merges);
    buf_fini(&file);
    if (counted && (parsed > BYTES_BESIDE || made < w.n_tokens))
        fail_msg("the reader holds %zu bytes, the tokenizer %zu", parsed, made);
    if (counted && made > (size_t)w.n_tokens * BYTES_PER_TOKEN + BYTES_BESIDE)
        fail_msg("%u tokens take %zu bytes, more than %d each", w.n_tokens, made, BYTES_PER_TOKEN);

    static const char text[] = "abc!abcd";
    static const char *const want[] = {"abc", "!", "ab", "cd"}; /* pairs of letters rank first */
    tok_ids_init(&ids, 100);
    assert_int_equal(tokenizer_encode(t, &ids, text, sizeof(text) - 1, 0, &e), 0);
    assert_int_equal(ids.n, 4);
    for (size_t i = 0; i < ids.n; i++) {
        struct str piece = tokenizer_piece(t, ids.ids[i], 0);
        assert_true(piece.n == strlen(want[i]) && memcmp(piece.p, want[i], piece.n) == 0);
    }
    tok_ids_fini(&ids);
    tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_vocabulary_is_small_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
