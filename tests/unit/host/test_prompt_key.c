/* test_prompt_key.c - every field that an answer depends on changes the key, and nothing else
 * does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/prompt_key.h"

static const char *const stops[] = {"ab", "c"}, *const other_stops[] = {"a", "bc"};
static const int32_t ids[] = {1, 2, 3, 4};
static const size_t ends[] = {2, 4}, other_ends[] = {1, 4};
static const struct shoal_bias biases[] = {{5, 1.0f}}, other_biases[] = {{6, 1.0f}};

static struct prompt_question base(void)
{
    return (struct prompt_question){
        .kind = PROMPT_KIND_CHAT,
        .text = "{\"messages\":[]}",
        .text_bytes = 15,
        .n_prompts = 1,
        .n_choices = 1,
        .max_tokens = 16,
        .sampling = {.temperature = 1.0f, .seed = 5, .bias = biases, .n_bias = 1},
        .stop = stops,
        .n_stop = 2,
        .n_ctx = 512};
}

#define CHANGE(name, statement)                                                                    \
    static void name(struct prompt_question *q)                                                    \
    {                                                                                              \
        statement;                                                                                 \
    }
CHANGE(kind, q->kind = PROMPT_KIND_TEXT)
CHANGE(text, q->text = "{\"messages\":[ }")
CHANGE(shorter, q->text_bytes--)
CHANGE(more, (q->more = "ab", q->more_bytes = 2))
CHANGE(less, (q->more = "ab", q->more_bytes = 1))
CHANGE(tokens, (q->tokens = ids, q->n_tokens = 4))
CHANGE(fewer_tokens, (q->tokens = ids, q->n_tokens = 3))
CHANGE(prompts, (q->n_prompts = 2, q->ends = ends))
CHANGE(prompt_ends, (q->n_prompts = 2, q->ends = other_ends))
CHANGE(prompts_without_ends, q->n_prompts = 2)
CHANGE(more_choices, q->n_choices = 2)
CHANGE(max_tokens, q->max_tokens = 17)
CHANGE(temperature, q->sampling.temperature = 0.5f)
CHANGE(greedy, q->sampling.temperature = 0.0f)
CHANGE(top_k, q->sampling.top_k = 5)
CHANGE(top_p, q->sampling.top_p = 0.5f)
CHANGE(min_p, q->sampling.min_p = 0.5f)
CHANGE(repeat, q->sampling.repeat_penalty = 0.5f)
CHANGE(last_n, q->sampling.repeat_last_n = 5)
CHANGE(presence, q->sampling.presence_penalty = 0.5f)
CHANGE(frequency, q->sampling.frequency_penalty = 0.5f)
CHANGE(seed, q->sampling.seed = 6)
CHANGE(high_seed, q->sampling.seed = UINT64_C(5) + (UINT64_C(1) << 60))
CHANGE(bias, q->sampling.bias = other_biases)
CHANGE(no_bias, q->sampling.n_bias = 0)
CHANGE(n_logprobs, q->sampling.n_logprobs = 1)
CHANGE(logprobs, q->sampling.logprobs = true)
CHANGE(stop_cut_elsewhere, q->stop = other_stops)
CHANGE(fewer_stops, q->n_stop = 1)
CHANGE(ignore_end, q->ignore_end = true)
CHANGE(special, q->special = true)
CHANGE(parse_special, q->parse_special = true)
CHANGE(scope, q->scope = 7)
CHANGE(context, q->n_ctx = 1024)
CHANGE(int8, q->int8 = true)
CHANGE(kv_q8, q->kv_q8 = true)
CHANGE(constraint, q->constraint = SHOAL_CONSTRAINT_JSON)
CHANGE(constraint_text,
       (q->constraint = SHOAL_CONSTRAINT_REGEX, q->constraint_text = "a+", q->constraint_bytes = 2))
CHANGE(constraint_text_cut,
       (q->constraint = SHOAL_CONSTRAINT_REGEX, q->constraint_text = "a+", q->constraint_bytes = 1))

static void test_every_field_counts(void **state)
{
    static void (*const changes[])(struct prompt_question *) = {kind,
                                                                text,
                                                                shorter,
                                                                more,
                                                                less,
                                                                tokens,
                                                                fewer_tokens,
                                                                prompts,
                                                                prompt_ends,
                                                                prompts_without_ends,
                                                                more_choices,
                                                                max_tokens,
                                                                temperature,
                                                                greedy,
                                                                top_k,
                                                                top_p,
                                                                min_p,
                                                                repeat,
                                                                last_n,
                                                                presence,
                                                                frequency,
                                                                seed,
                                                                high_seed,
                                                                bias,
                                                                no_bias,
                                                                n_logprobs,
                                                                logprobs,
                                                                stop_cut_elsewhere,
                                                                fewer_stops,
                                                                ignore_end,
                                                                special,
                                                                parse_special,
                                                                scope,
                                                                context,
                                                                int8,
                                                                kv_q8,
                                                                constraint,
                                                                constraint_text,
                                                                constraint_text_cut};
    enum { N = sizeof(changes) / sizeof(changes[0]) };
    uint8_t keys[N + 1][SHA256_BYTES];
    struct prompt_question q = base();
    (void)state;
    assert_true(prompt_key_question(keys[N], &q));
    for (size_t i = 0; i < N; i++) {
        q = base();
        changes[i](&q);
        assert_true(prompt_key_question(keys[i], &q));
    }
    for (size_t i = 0; i <= N; i++)
        for (size_t k = i + 1; k <= N; k++)
            if (memcmp(keys[i], keys[k], SHA256_BYTES) == 0)
                fail_msg("changes %zu and %zu have the same key", i, k);
}

/* Memory addresses, and settings that cannot change the answer, do not count. */
static void test_nothing_else_counts(void **state)
{
    uint8_t first[SHA256_BYTES], again[SHA256_BYTES];
    struct prompt_question a = base(), b;
    char text[] = "{\"messages\":[]}", stop[] = "ab";
    const char *const copied[] = {stop, "c"};
    const struct shoal_bias bias_copy[] = {biases[0]};
    (void)state;
    memset(&b, 0xff, sizeof(b)); /* padding */
    b.kind = a.kind;
    b.text = text;
    b.text_bytes = a.text_bytes;
    b.tokens = ids;
    b.n_tokens = 0;
    b.ends = NULL;
    b.more = NULL;
    b.more_bytes = 0;
    b.n_prompts = 1;
    b.n_choices = 1;
    b.max_tokens = 16;
    b.sampling = a.sampling;
    b.sampling.bias = bias_copy;
    b.stop = copied;
    b.n_stop = 2;
    b.ignore_end = b.special = b.parse_special = b.int8 = b.kv_q8 = false;
    b.n_ctx = 512;
    b.scope = 0;
    b.constraint = SHOAL_CONSTRAINT_NONE;
    assert_true(prompt_key_question(first, &a) && prompt_key_question(again, &b));
    assert_memory_equal(first, again, SHA256_BYTES);
    a.sampling.temperature = 0.0f; /* without randomness the seed is not used */
    b.sampling.temperature = -0.0f;
    b.sampling.seed = 99;
    assert_true(prompt_key_question(first, &a) && prompt_key_question(again, &b));
    assert_memory_equal(first, again, SHA256_BYTES);
    assert_true(prompt_key_repeats(&a.sampling, false));
    a.sampling.temperature = 0.1f;
    assert_false(prompt_key_repeats(&a.sampling, false));
    assert_true(prompt_key_repeats(&a.sampling, true));
}

/* Nodes of one cluster must agree: a key may only change together with its tag. */
static void test_a_key_is_the_same_everywhere(void **state)
{
    const struct prompt_question q = base();
    uint8_t key[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    (void)state;
    assert_true(prompt_key_question(key, &q));
    sha256_hex(hex, key);
    assert_string_equal(hex, "557632b804e965c966148b3cf5a755cff08e67f4d1c08abe1f082d172eee65fc");
}

static void test_hex(void **state)
{
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    uint8_t sum[SHA256_BYTES], back[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct sha256 s;
    (void)state;
    sha256_begin(&s);
    sha256_add(&s, "a", 1);
    sha256_add(&s, "bc", 2);
    assert_true(sha256_end(&s, sum));
    sha256_hex(hex, sum);
    assert_string_equal(hex, abc);
    assert_true(sha256_read_hex(back, abc));
    assert_memory_equal(back, sum, SHA256_BYTES);
    assert_true(sha256_read_hex(back,
                                "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F2001"
                                "5AD"));
    assert_memory_equal(back, sum, SHA256_BYTES);
    assert_false(sha256_read_hex(back, "ba78"));
    assert_false(sha256_read_hex(back, ""));
    hex[63] = 'g';
    assert_false(sha256_read_hex(back, hex));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_counts),
        cmocka_unit_test(test_nothing_else_counts),
        cmocka_unit_test(test_a_key_is_the_same_everywhere),
        cmocka_unit_test(test_hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
