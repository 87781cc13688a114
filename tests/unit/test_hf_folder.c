/* test_hf_folder.c - Hugging Face folders as GGUF views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model_file.h"

static uint64_t u64_of(const struct gguf *g, const char *key)
{
    uint64_t v = UINT64_MAX;
    if (!gguf_get_u64(g, key, &v))
        fail_msg("no %s", key);
    return v;
}

static const struct gguf_tensor *tensor(const struct gguf *g, const char *name, uint64_t cols,
                                        uint64_t rows)
{
    const struct gguf_tensor *t = gguf_find_tensor(g, name);
    if (!t || t->dims[0] != cols || t->dims[1] != rows)
        fail_msg("tensor %s is missing or has another shape", name);
    return t;
}

/* Our own encoder: two heads and label sets of its own. */
static void test_opens_our_encoder(void **state)
{
    (void)state;
    struct gguf *g;
    struct gguf_str s;
    struct err e = {0};
    if (model_open(&g, "models/encoder", &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(gguf_get_str(g, "general.architecture", &s));
    assert_true(s.n == 4 && !memcmp(s.p, "bert", 4));
    assert_int_equal(u64_of(g, "bert.context_length"), 256);
    assert_int_equal(u64_of(g, "bert.embedding_length"), 384);
    assert_int_equal(u64_of(g, "bert.block_count"), 3);
    assert_int_equal(u64_of(g, "bert.attention.head_count"), 12);
    assert_int_equal(u64_of(g, "bert.feed_forward_length"), 640);
    assert_int_equal(g->n_tensors, 63);
    tensor(g, "token_embd.weight", 384, 5760);
    tensor(g, "blk.2.ffn_down.weight", 640, 384);
    tensor(g, "cls.weight", 384, 384);
    tensor(g, "cls.output.weight", 384, 392);
    tensor(g, "tag.output.weight", 384, 314);
    const struct gguf_tensor *t = tensor(g, "tag.transitions.home", 63, 64);
    assert_false(t->in_memory);
    assert_ptr_equal(t->map, &g->maps[0]);
    uint8_t bytes[16];
    gguf_read(g, t, 32, bytes, sizeof(bytes));
    assert_memory_equal(bytes, t->data + 32, sizeof(bytes));
    assert_true(gguf_get_str(g, "huggingface.config", &s) && s.n > 40000);
    assert_true(gguf_get_str(g, "tokenizer.huggingface.json", &s) && s.p[0] == '{');
    assert_null(gguf_find(g, "tokenizer.ggml.tokens")); /* tokenizer.json says it all */
    gguf_close(g);
}

static void test_survives_failing_allocations(void **state)
{
    (void)state;
    struct gguf *g;
    struct err e = {0};
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        mem_fail_at(at);
        int rc = model_open(&g, "models/encoder", &e);
        mem_fail_at(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(g);
        failures++;
    }
    gguf_close(g);
    assert_true(failures > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opens_our_encoder),
        cmocka_unit_test(test_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
