/* test_history.c - messages of a conversation: joined, trimmed, written and read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "knowledge/history.h"
#include "support/dice.h"

/* "u1 a1 s2": role and content; in the arena. */
static struct history make(struct arena *a, const char *text)
{
    struct history h = {arena_zalloc_n(a, 32, sizeof(struct chat_message)), 0, NULL};
    char *copy = arena_copy(a, text, strlen(text) + 1), *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        h.messages[h.n++] = (struct chat_message){.role = *w == 'u'   ? "user"
                                                          : *w == 'a' ? "assistant"
                                                                      : "system",
                                                  .content = w + 1,
                                                  .content_bytes = strlen(w + 1)};
    return h;
}

static const char *text_of(struct arena *a, const struct history *h)
{
    const char *out = "";
    for (uint32_t i = 0; i < h->n; i++)
        out = arena_printf(a, "%s%s%c%s", out, i ? " " : "", h->messages[i].role[0],
                           h->messages[i].content);
    return out;
}

static void test_join(void **state)
{
    static const char *const cases[][3] = {
        {"", "u1", "u1"},
        {"u1 a1", "u2", "u1 a1 u2"},
        {"sx u1 a1", "u2", "sx u1 a1 u2"},
        {"sx u1 a1", "sy u2", "sy u1 a1 u2"},
        {"u1 a1", "sy u2", "sy u1 a1 u2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arena a;
        struct history all;
        struct err e = {0};
        arena_init(&a, 1 << 20);
        struct history old = make(&a, cases[i][0]), add = make(&a, cases[i][1]);
        assert_int_equal(history_join(&all, &old, add.messages, add.n, &a, &e), 0);
        assert_string_equal(text_of(&a, &all), cases[i][2]);
        arena_fini(&a);
    }
}

static void test_trim(void **state)
{
    static const struct {
        const char *all;
        uint32_t tokens, keep;
        const char *left;
    } cases[] = {
        {"u1 a1 u2 a2 u3", 1000, 1, "u1 a1 u2 a2 u3"},
        {"u1 a1 u2 a2 u3", 20, 1, "u2 a2 u3"}, /* 5 tokens each; does not start with an answer */
        {"sx u1 a1 u2 a2 u3", 20, 1, "sx u2 a2 u3"},
        {"sx u1 a1 u2 a2 u3", 1, 1, "sx u3"},
        {"u1 a1 u2", 1, 3, "u1 a1 u2"},
        {"", 1, 1, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arena a;
        arena_init(&a, 1 << 20);
        struct history h = make(&a, cases[i].all);
        history_trim(&h, cases[i].tokens, cases[i].keep);
        if (strcmp(text_of(&a, &h), cases[i].left) != 0)
            fail_msg("'%s' to %u: '%s', want '%s'", cases[i].all, cases[i].tokens, text_of(&a, &h),
                     cases[i].left);
        arena_fini(&a);
    }
}

/* What a note replaces, and where the model finds it. */
static void test_notes(void **state)
{
    static const struct {
        const char *all, *note, *told; /* told: of the first two messages */
        const char *used;
    } cases[] = {
        {"u1 a1 u2", NULL, "User: 1\nAssistant: 1\n", "u1 a1 u2"},
        {"u1 a1 u2", "N", "N\nUser: 1\nAssistant: 1\n",
         "sWhat was said earlier in this conversation: N u1 a1 u2"},
        {"sx u1 a1 u2", "N", "N\nUser: 1\nAssistant: 1\n",
         "sx\n\nWhat was said earlier in this conversation: N u1 a1 u2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arena a;
        struct buf b;
        struct history back, joined;
        struct err e = {0};
        arena_init(&a, 1 << 20);
        buf_init(&b, 1 << 20);
        struct history h = make(&a, cases[i].all);
        h.note = cases[i].note;
        history_tell(&h, 2, &b);
        assert_string_equal(buf_str(&b), cases[i].told);
        buf_clear(&b);
        history_write(&h, &b);
        assert_int_equal(history_read(&back, buf_str(&b), b.len, &a, &e), 0);
        assert_int_equal(history_join(&joined, &back, NULL, 0, &a, &e), 0);
        assert_int_equal(history_use_note(&joined, &a, &e), 0);
        assert_string_equal(text_of(&a, &joined), cases[i].used);
        assert_int_equal(history_excess(&h, 1, 1), 2);
        history_drop(&h, 2);
        assert_int_equal(h.n, back.n - 2);
        assert_string_equal(h.messages[h.n - 1].content, "2");
        buf_fini(&b);
        arena_fini(&a);
    }
}

/* A model may write NUL. */
static void test_nul_stays(void **state)
{
    struct arena a;
    struct buf b;
    struct err e = {0};
    struct history back;
    struct chat_message said = {.role = "assistant", .content = "a\0\\u0000", .content_bytes = 8};
    struct history h = {&said, 1, NULL};
    (void)state;
    arena_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    history_write(&h, &b);
    assert_int_equal(history_read(&back, buf_str(&b), b.len, &a, &e), 0);
    assert_int_equal(back.messages[0].content_bytes, 8);
    assert_memory_equal(back.messages[0].content, said.content, 9);
    buf_fini(&b);
    arena_fini(&a);
}

static void test_written_and_read(void **state)
{
    struct arena a;
    struct buf b;
    struct history h, back;
    struct err e = {0};
    (void)state;
    arena_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    h = make(&a, "u\"quoted\" a\xc3\xa4");
    history_write(&h, &b);
    assert_int_equal(history_read(&back, buf_str(&b), b.len, &a, &e), 0);
    assert_string_equal(text_of(&a, &back), text_of(&a, &h));
    assert_int_equal(history_read(&back, "{}", 2, &a, &e), SHOAL_EFORMAT);
    assert_int_equal(history_read(&back, "{\"messages\":[{}]}", 17, &a, &e), SHOAL_EFORMAT);
    buf_fini(&b);
    arena_fini(&a);
}

/* A message of so many tokens: the guess for a word of one letter is one. */
static uint32_t cost_of(const struct chat_message *m)
{
    return 4 + (uint32_t)(m->content_bytes + 1) / 2;
}

static struct history random_history(struct arena *a)
{
    static const char *const roles[] = {"user", "assistant", "assistant", "tool"};
    static const char words[] = "a a a a a a a a a a a a a a a a";
    const uint32_t n = dice_below(24);
    struct history h = {arena_zalloc_n(a, n + 1, sizeof(struct chat_message)), n, NULL};
    for (uint32_t i = 0; i < n; i++)
        h.messages[i] = (struct chat_message){.role = roles[dice_below(4)],
                                              .content = words,
                                              .content_bytes = 1 + 2 * dice_below(16)};
    if (n > 0 && dice_below(2))
        h.messages[0].role = dice_below(2) ? "system" : "developer";
    return h;
}

static uint64_t cost_after(const struct history *h, uint32_t from, uint32_t drop)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->n; i++)
        sum += i < from || i >= from + drop ? cost_of(&h->messages[i]) : 0;
    return sum;
}

/* Of all beginnings that may go the shortest goes that leaves few enough tokens and a question
 * first; if none is enough, as many as may. */
static void test_trimmed_as_little_as_needed(void **state)
{
    uint32_t n_some = 0, n_all = 0;
    (void)state;
    dice_seed(11);
    for (int round = 0; round < 5000; round++) {
        struct arena a;
        arena_init(&a, 1 << 20);
        struct history h = random_history(&a);
        const uint32_t keep = dice_below(5), max = dice_below(200);
        const uint32_t from =
            h.n > 0 && (h.messages[0].role[0] == 's' || h.messages[0].role[0] == 'd');
        const uint32_t most = h.n > from + keep ? h.n - from - keep : 0;
        uint32_t want = 0;
        while (want < most && (cost_after(&h, from, want) > max ||
                               (want > 0 && strcmp(h.messages[from + want].role, "user") != 0)))
            want++;
        const struct chat_message lead = h.n > 0 ? h.messages[0] : (struct chat_message){0},
                                  last = h.n > 0 ? h.messages[h.n - 1] : lead;
        const uint32_t n = h.n;
        assert_int_equal(history_excess(&h, max, keep), want);
        history_trim(&h, max, keep);
        assert_int_equal(h.n, n - want);
        if (from)
            assert_memory_equal(&h.messages[0], &lead, sizeof(lead)); /* instructions stay */
        if (h.n > from)
            assert_memory_equal(&h.messages[h.n - 1], &last, sizeof(last));
        n_some += want > 0 && want < most;
        n_all += want > 0 && want == most;
        arena_fini(&a);
    }
    assert_true(n_some > 200 && n_all > 200);
}

static void test_what_is_not_a_conversation(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } rows[] = {
        {"{\"messages\":[]}", 0},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"note\":\"n\"}", 0},
        {"", SHOAL_EFORMAT},
        {"[]", SHOAL_EFORMAT},
        {"{}", SHOAL_EFORMAT},
        {"{\"messages\":{}}", SHOAL_EFORMAT},
        {"{\"messages\":[{\"role\":\"user\"}]}", SHOAL_EFORMAT},
        {"{\"messages\":[{\"content\":\"x\"}]}", SHOAL_EFORMAT},
        {"{\"messages\":[{\"role\":1,\"content\":\"x\"}]}", SHOAL_EFORMAT},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},5]}", SHOAL_EFORMAT},
    };
    struct buf b;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena a;
        struct history h;
        struct err e = {0};
        arena_init(&a, 1 << 20);
        assert_int_equal(history_read(&h, rows[i].text, strlen(rows[i].text), &a, &e), rows[i].rc);
        arena_fini(&a);
    }
    for (uint32_t n = HISTORY_MAX_MESSAGES; n <= HISTORY_MAX_MESSAGES + 1; n++) {
        struct arena a;
        struct history h;
        struct err e = {0};
        arena_init(&a, 1 << 24);
        buf_init(&b, 1 << 24);
        buf_puts(&b, "{\"messages\":[");
        for (uint32_t i = 0; i < n; i++)
            buf_printf(&b, "%s{\"role\":\"user\",\"content\":\"x\"}", i ? "," : "");
        buf_puts(&b, "]}");
        assert_int_equal(history_read(&h, b.data, b.len, &a, &e),
                         n == HISTORY_MAX_MESSAGES ? 0 : SHOAL_EFORMAT);
        buf_fini(&b);
        arena_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_trimmed_as_little_as_needed),
        cmocka_unit_test(test_what_is_not_a_conversation),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_nul_stays),
        cmocka_unit_test(test_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
