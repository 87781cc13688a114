/* test_thinking.c - what a model thinks before its answer, in a whole text and in pieces of any
 * length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "gateway/api/thinking.h"

struct seen {
    struct buf thought, answer;
    bool thinks;
};

static void on_piece(void *ctx, bool thought, const char *text, size_t n)
{
    struct seen *s = ctx;
    if (thought && s->answer.len > 0)
        fail_msg("a thought behind the answer: '%.*s'", (int)n, text);
    s->thinks |= thought;
    buf_put(thought ? &s->thought : &s->answer, text, n);
}

static void check(const char *text, size_t first, size_t each, const struct thinking_parts *want)
{
    const size_t n = strlen(text);
    struct thinking t = {.n_held = 0};
    struct seen s = {.thinks = false};
    buf_init(&s.thought, 1 << 16);
    buf_init(&s.answer, 1 << 16);
    for (size_t at = 0, k = first < n ? first : n; at < n;
         at += k, k = each < n - at ? each : n - at)
        thinking_push(&t, text + at, k, on_piece, &s);
    thinking_end(&t, on_piece, &s);
    if (s.thinks != (want->thought != NULL) || s.thought.len != want->thought_bytes ||
        memcmp(buf_str(&s.thought), want->thought ? want->thought : "", s.thought.len) != 0 ||
        strcmp(buf_str(&s.answer), text + want->answer_at) != 0)
        fail_msg("'%s' in pieces of %zu and %zu: '%s', '%s'", text, first, each,
                 buf_str(&s.thought), buf_str(&s.answer));
    buf_fini(&s.thought);
    buf_fini(&s.answer);
}

static void test_thoughts(void **state)
{
    static const struct {
        const char *text, *thought, *answer; /* thought NULL: none */
        bool open;
    } rows[] = {
        {"", NULL, "", false},
        {"hello", NULL, "hello", false},
        {"<think>a</think>b", "a", "b", false},
        {" \n<think>\n a b \n</think>\n\n c ", "a b \n", "c ", false},
        {"<think></think>", "", "", false},
        {"<think>\n\n</think>\n\nb", "", "b", false},
        {"<think>a <b> </ </thin </think>b</think>c", "a <b> </ </thin ", "b</think>c", false},
        {"<think>a", "a", "", true},
        {"<think>a</thin", "a</thin", "", true},
        {"<think>", "", "", true},
        {"<thin", NULL, "<thin", false},
        {"<thinking>a", NULL, "<thinking>a", false},
        {"a <think>b</think>", NULL, "a <think>b</think>", false},
        {"  ", NULL, "  ", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = rows[i].text;
        const size_t n = strlen(text);
        const struct thinking_parts p = thinking_split(text, n);
        assert_true((p.thought != NULL) == (rows[i].thought != NULL));
        if (p.thought) {
            assert_int_equal(p.thought_bytes, strlen(rows[i].thought));
            assert_memory_equal(p.thought, rows[i].thought, p.thought_bytes);
        }
        assert_string_equal(text + p.answer_at, rows[i].answer);
        assert_int_equal(p.open, rows[i].open);
        for (size_t first = 1; first <= n; first++)
            for (size_t each = 1; each <= n; each++)
                check(text, first, each, &p);
    }
}

/* More spaces than are held back: an answer that begins with them. */
static void test_many_spaces(void **state)
{
    const struct thinking_parts none = {.thought = NULL};
    (void)state;
    for (size_t each = 1; each <= 22; each++)
        check("          <think>hello", each, each, &none);
    assert_null(thinking_split("          <think>hello", 22).thought);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thoughts),
        cmocka_unit_test(test_many_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
