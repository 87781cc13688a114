/* test_response_store.c - responses by id: owners, expiry, sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "gateway/api/openai/response_file.h"
#include "gateway/api/openai/response_store.h"
#include "support/dice.h"

#define S 1000000000ull

static struct response_entry entry(const char *id, const char *owner, const char *json)
{
    static const struct chat_call calls[] = {{"call_1", "add", "{\"a\":1}", 7},
                                             {"call_2", "stop", "{}", 2}};
    static const struct chat_message messages[] = {
        {.role = "tool",
         .name = "add",
         .call_id = "call_0",
         .content = "hello",
         .content_bytes = 5},
        {.role = "assistant", .content = "hi", .content_bytes = 2, .calls = calls, .n_calls = 2}};
    struct response_entry e = {.json = json,
                               .json_bytes = strlen(json),
                               .messages = messages,
                               .n_messages = 2,
                               .n_input = 1};
    snprintf(e.id, sizeof(e.id), "%s", id);
    snprintf(e.owner, sizeof(e.owner), "%s", owner);
    return e;
}

static struct response_store *make_for(size_t bytes, uint32_t ttl_ms)
{
    struct response_store *s;
    struct err e = {0};
    assert_int_equal(response_store_create(&s, bytes, ttl_ms, &e), 0);
    return s;
}

static struct response_store *make(size_t bytes)
{
    return make_for(bytes, 10000);
}

static bool has(struct response_store *s, const char *id, uint64_t now_ns)
{
    const struct response_entry *got = response_store_get(s, id, "app", now_ns);
    if (got)
        response_store_unref(s, got);
    return got != NULL;
}

static void test_an_entry_belongs_to_its_client(void **state)
{
    struct response_store *s = make(1 << 20);
    struct response_entry e = entry("resp_1", "app", "{}");
    (void)state;
    assert_true(response_store_put(s, &e, 0));
    assert_null(response_store_get(s, "resp_1", "other", 1));
    assert_null(response_store_get(s, "resp_2", "app", 1));
    const struct response_entry *got = response_store_get(s, "resp_1", "app", 1);
    assert_non_null(got);
    assert_string_equal(got->json, "{}");
    assert_int_equal(got->n_messages, 2);
    assert_string_equal(got->messages[1].content, "hi");
    assert_string_equal(got->messages[0].call_id, "call_0");
    assert_string_equal(got->messages[0].name, "add");
    assert_null(got->messages[1].name);
    assert_int_equal(got->messages[1].n_calls, 2);
    assert_string_equal(got->messages[1].calls[0].arguments, "{\"a\":1}");
    assert_int_equal(got->messages[1].calls[0].arguments_bytes, 7);
    assert_string_equal(got->messages[1].calls[1].name, "stop");
    assert_string_equal(got->messages[1].calls[1].id, "call_2");
    assert_ptr_not_equal(got->messages[1].calls[1].id, e.messages[1].calls[1].id); /* a copy */
    assert_false(response_store_delete(s, "resp_1", "other", 1));
    assert_true(response_store_delete(s, "resp_1", "app", 1));
    assert_false(response_store_delete(s, "resp_1", "app", 1));
    assert_string_equal(got->messages[0].content, "hello"); /* a reference outlives the entry */
    response_store_unref(s, got);
    response_store_destroy(s);
}

static void test_entries_are_forgotten_after_a_time(void **state)
{
    struct response_store *s = make(1 << 20);
    struct response_entry e = entry("resp_1", "", "{}");
    uint32_t n;
    size_t bytes;
    (void)state;
    assert_true(response_store_put(s, &e, 0));
    const struct response_entry *got = response_store_get(s, "resp_1", "", 9 * S);
    assert_non_null(got);
    response_store_unref(s, got);
    assert_null(response_store_get(s, "resp_1", "", 10 * S));
    response_store_count(s, &n, &bytes);
    assert_int_equal(n, 0);
    assert_int_equal(bytes, 0);
    response_store_destroy(s);
}

static void test_the_oldest_make_room(void **state)
{
    static char text[3000];
    struct response_store *s = make(10000);
    char id[16];
    uint32_t n;
    size_t bytes;
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof(id), "resp_%d", i);
        struct response_entry e = entry(id, "", text);
        assert_true(response_store_put(s, &e, (uint64_t)i));
        response_store_count(s, &n, &bytes);
        assert_in_range(bytes, 1, 10000);
    }
    assert_in_range(n, 2, 3);
    assert_null(response_store_get(s, "resp_16", "", 20));
    const struct response_entry *got = response_store_get(s, "resp_19", "", 20);
    assert_non_null(got);
    response_store_unref(s, got);
    static char large[10000];
    memset(large, 'x', sizeof(large) - 1);
    struct response_entry e = entry("resp_large", "", large);
    assert_false(response_store_put(s, &e, 21)); /* more than the total */
    assert_null(response_store_get(s, "resp_large", "", 21));
    response_store_destroy(s);
}

/* One client does not push out what others keep. */
static void test_who_holds_most_makes_room(void **state)
{
    static char text[3000], large[9000];
    struct response_store *s = make(10000);
    struct response_entry mine = entry("resp_mine", "anna", text), e;
    char id[16];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    memset(large, 'x', sizeof(large) - 1);
    mine.json_bytes = strlen(text);
    assert_true(response_store_put(s, &mine, 0));
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof(id), "resp_%d", i);
        e = entry(id, "ben", text);
        assert_true(response_store_put(s, &e, 1));
    }
    const struct response_entry *got = response_store_get(s, "resp_mine", "anna", 2);
    assert_non_null(got);
    response_store_unref(s, got);
    assert_null(response_store_get(s, "resp_2", "ben", 2));
    got = response_store_get(s, "resp_4", "ben", 2);
    assert_non_null(got);
    response_store_unref(s, got);
    e = entry("resp_large", "ben", large); /* fits, but only in the place of others */
    assert_false(response_store_put(s, &e, 3));
    got = response_store_get(s, "resp_mine", "anna", 4);
    assert_non_null(got);
    response_store_unref(s, got);
    response_store_destroy(s);
}

static void test_without_memory_nothing_is_kept(void **state)
{
    struct response_store *s = make(1 << 20);
    struct response_entry e = entry("resp_1", "", "{}");
    (void)state;
    mem_fail_at(1);
    bool kept = response_store_put(s, &e, 0);
    mem_fail_at(0);
    assert_false(kept);
    assert_true(response_store_put(s, &e, 0));
    response_store_destroy(s);
}

static void test_a_file_keeps_them(void **state)
{
    char path[] = "/tmp/shoal-responses-XXXXXX";
    struct response_store *s = make(1 << 20);
    struct response_entry one = entry("resp_1", "app", "{\"a\":\"\xc3\xa9\\n\"}"),
                          two = entry("resp_2", "app", "{}"), three = entry("resp_3", "app", "{}");
    struct err e = {0};
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "no JSON\n{}\n", 11), 11); /* damaged lines are left out */
    close(fd);
    const uint64_t now = clock_ns();
    assert_int_equal(response_store_use_file(s, path, now, &e), 0);
    two.running = true;
    assert_true(response_store_put(s, &one, now));
    assert_true(response_store_put(s, &two, now));
    assert_true(response_store_put(s, &three, now));
    assert_true(response_store_delete(s, "resp_3", "app", now));
    response_store_destroy(s); /* writes what is not written yet */
    s = make(1 << 20);
    assert_int_equal(response_store_use_file(s, path, now, &e), 0);
    const struct response_entry *got = response_store_get(s, "resp_1", "app", now);
    assert_non_null(got);
    assert_string_equal(got->json, one.json);
    assert_int_equal(got->n_messages, 2);
    assert_int_equal(got->n_input, 1);
    assert_string_equal(got->messages[0].role, "tool");
    assert_string_equal(got->messages[0].call_id, "call_0");
    assert_string_equal(got->messages[1].calls[0].arguments, "{\"a\":1}");
    response_store_unref(s, got);
    assert_null(response_store_get(s, "resp_2", "app", now)); /* its work ended with the server */
    assert_null(response_store_get(s, "resp_3", "app", now));
    assert_null(response_store_get(s, "resp_1", "app", now + 3600 * S)); /* it expires as before */
    response_store_destroy(s);
    unlink(path);
}

/* A model may write a NUL; the text is whole after a restart. */
static void test_a_text_with_nul_stays_whole(void **state)
{
    static const char *const texts[] = {"\0NN", "a\0\0b", "end\0", "\0"};
    static const size_t bytes[] = {3, 4, 4, 1};
    (void)state;
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        struct chat_message said = {
            .role = "assistant", .content = texts[i], .content_bytes = bytes[i]};
        struct response_entry one = entry("resp_1", "app", "{\"text\":\"\\u0000NN\"}"), got;
        struct buf line;
        struct arena a;
        int64_t until;
        one.messages = &said;
        one.n_messages = 1;
        one.n_input = 0;
        buf_init(&line, 1 << 16);
        arena_init(&a, 1 << 16);
        response_file_put(&line, &one, 1000);
        assert_true(response_file_read(&got, &until, line.data, line.len - 1, &a));
        assert_int_equal(got.messages[0].content_bytes, bytes[i]);
        assert_memory_equal(got.messages[0].content, texts[i], bytes[i] + 1);
        assert_string_equal(got.json, one.json);
        arena_fini(&a);
        buf_fini(&line);
    }
}

/* A line with one part changed; whether it is still an entry. */
static bool reads(const char *from, const char *to)
{
    const struct response_entry one = entry("resp_1", "app", "{}");
    struct response_entry got;
    struct arena a;
    struct buf line, changed;
    int64_t until;
    arena_init(&a, 1 << 16);
    buf_init(&line, 1 << 16);
    buf_init(&changed, 1 << 16);
    response_file_put(&line, &one, 1000);
    const char *at = strstr(buf_str(&line), from);
    assert_non_null(at);
    buf_put(&changed, line.data, (size_t)(at - line.data));
    buf_printf(&changed, "%s%s", to, at + strlen(from));
    const bool good = response_file_read(&got, &until, changed.data, changed.len - 1, &a);
    buf_fini(&line);
    buf_fini(&changed);
    arena_fini(&a);
    return good;
}

static void test_damaged_lines(void **state)
{
    static char long_id[RESPONSE_STORE_ID_BYTES + 8];
    static const char *const bad[][2] = {
        {"\"id\":\"resp_1\"", "\"id\":1"},
        {"\"owner\":\"app\"", "\"owner\":null"},
        {"\"until\":1000", "\"until\":0"},
        {"\"until\":1000", "\"until\":1e12"},
        {"\"until\":1000", "\"until\":\"x\""},
        {"\"input\":1", "\"input\":-1"},
        {"\"input\":1", "\"input\":2"}, /* no message would be the answer */
        {"\"input\":1", "\"input\":3"},
        {"\"input\":1", "\"input\":true"},
        {"\"json\":\"{}\"", "\"json\":5"},
        {"\"json\":\"{}\"", "\"json\":[\"a\"]"},
        {"\"json\":\"{}\"", "\"json\":[\"a\",5]"},
        {"\"role\":\"tool\"", "\"role\":\"root\""},
        {"\"role\":\"tool\"", "\"role\":5"},
        {"\"content\":\"hello\"", "\"content\":5"},
        {"\"id\":\"call_1\"", "\"id\":5"},
        {"\"name\":\"stop\"", "\"name\":5"},
        {"\"arguments\":\"{}\"", "\"arguments\":{}"},
        {"{\"id\":\"resp_1\"", "[{\"id\":\"resp_1\""},
    };
    static const char *const good[][2] = {
        {"\"until\":1000", "\"until\":999999999999"},
        {"\"input\":1", "\"input\":0"},
        {"\"json\":\"{}\"", "\"json\":[\"a\",\"b\"]"},
        {"\"role\":\"tool\"", "\"role\":\"developer\""},
        {"\"owner\":\"app\"", "\"owner\":\"\""},
    };
    char to[RESPONSE_STORE_ID_BYTES + 16];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (reads(bad[i][0], bad[i][1]))
            fail_msg("%s is accepted", bad[i][1]);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!reads(good[i][0], good[i][1]))
            fail_msg("%s is refused", good[i][1]);
    memset(long_id, 'x', RESPONSE_STORE_ID_BYTES);
    for (size_t n = RESPONSE_STORE_ID_BYTES - 1; n <= RESPONSE_STORE_ID_BYTES; n++) {
        snprintf(to, sizeof(to), "\"%.*s\"", (int)n, long_id);
        assert_int_equal(reads("\"resp_1\"", to), n < RESPONSE_STORE_ID_BYTES);
        assert_int_equal(reads("\"app\"", to), n < RESPONSE_STORE_ID_BYTES);
    }
}

static void test_a_second_one_replaces_the_first(void **state)
{
    struct response_store *s = make(1 << 20);
    struct response_entry first = entry("resp_1", "app", "{}"),
                          second = entry("resp_1", "app", "{\"b\":1}");
    uint32_t n;
    size_t bytes;
    (void)state;
    assert_true(response_store_put(s, &first, 0));
    assert_true(response_store_put(s, &second, 0));
    response_store_count(s, &n, &bytes);
    assert_int_equal(n, 1);
    const struct response_entry *got = response_store_get(s, "resp_1", "app", 1);
    assert_string_equal(got->json, "{\"b\":1}");
    response_store_unref(s, got);
    response_store_destroy(s);
}

/* The time to keep them was made shorter: new ones go before the older ones of the file. */
static void test_an_older_one_may_stay_longer(void **state)
{
    char path[] = "/tmp/shoal-responses-XXXXXX";
    const struct response_entry one = entry("resp_1", "app", "{}"),
                                two = entry("resp_2", "app", "{}");
    struct response_store *s = make_for(1 << 20, 3600000);
    struct err e = {0};
    int fd = mkstemp(path);
    (void)state;
    close(fd);
    uint64_t now = clock_ns();
    assert_int_equal(response_store_use_file(s, path, now, &e), 0);
    assert_true(response_store_put(s, &one, now));
    response_store_destroy(s);
    s = make_for(1 << 20, 1);
    assert_int_equal(response_store_use_file(s, path, now, &e), 0);
    assert_true(response_store_put(s, &two, now));
    assert_true(has(s, "resp_2", now));
    assert_false(has(s, "resp_2", now + 1000000));
    assert_false(response_store_delete(s, "resp_2", "app", now + 1000000));
    assert_true(has(s, "resp_1", now + 1000000));
    while (clock_ns() <= now + 1000000)
        ; /* a millisecond */
    response_store_destroy(s);
    s = make(1 << 20);
    assert_int_equal(response_store_use_file(s, path, now, &e), 0);
    assert_true(has(s, "resp_1", now));
    assert_false(has(s, "resp_2", now));
    response_store_destroy(s);
    unlink(path);
}

/* A full disk costs nothing once there is room again, even if nothing changes any more. */
static void test_a_failed_write_is_repeated(void **state)
{
    char dir[] = "/tmp/shoal-responses-XXXXXX", path[64], temp[72], line[512] = "";
    const struct response_entry one = entry("resp_1", "app", "{}");
    struct response_store *s = make_for(1 << 20, 3600000);
    int log[2], old = dup(STDERR_FILENO);
    struct err e = {0};
    size_t n = 0;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/kept", dir);
    snprintf(temp, sizeof(temp), "%s.new", path);
    assert_int_equal(mkdir(temp, 0700), 0); /* the file cannot be written */
    assert_int_equal(pipe(log), 0);
    fflush(stderr);
    assert_int_equal(dup2(log[1], STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(response_store_use_file(s, path, clock_ns(), &e), 0);
    assert_true(response_store_put(s, &one, clock_ns()));
    while (!strstr(line, "cannot write") && n < sizeof(line) - 1) { /* until it has failed */
        ssize_t k = read(log[0], line + n, sizeof(line) - 1 - n);
        assert_true(k > 0);
        n += (size_t)k;
    }
    dup2(old, STDERR_FILENO);
    close(old);
    assert_int_equal(rmdir(temp), 0);
    for (int i = 0; i < 6000 && access(path, F_OK) < 0; i++)
        usleep(10000);
    assert_int_equal(access(path, F_OK), 0);
    response_store_destroy(s);
    close(log[0]);
    close(log[1]);
    unlink(path);
    rmdir(dir);
}

/* ---- random steps against a list ---- */

#define N_IDS 7u
#define N_OWNERS 3u

struct place {
    bool there;
    uint64_t until;
    uint32_t text;
};

static void name(char id[16], char owner[16], uint32_t at)
{
    snprintf(id, 16, "resp_%u", at % N_IDS);
    snprintf(owner, 16, at / N_IDS ? "o%u" : "", at / N_IDS);
}

/* Only what is still there has a place and takes memory. */
static void check_count(struct response_store *s, struct place *all, uint64_t now)
{
    uint32_t n, want = 0;
    size_t bytes;
    for (uint32_t i = 0; i < N_IDS * N_OWNERS; i++)
        want += all[i].there = all[i].there && all[i].until > now;
    assert_null(response_store_get(s, "nobody", "", now));
    response_store_count(s, &n, &bytes);
    assert_int_equal(n, want);
    assert_int_equal(bytes == 0, want == 0);
}

static void step(struct response_store *s, struct place *all, uint64_t now)
{
    const uint32_t at = dice_below(N_IDS * N_OWNERS), what = dice_below(4);
    struct place *p = &all[at];
    char id[16], owner[16], text[32];
    name(id, owner, at);
    if (what < 2) {
        *p = (struct place){true, now + 10 * S, dice_below(1000000)};
        snprintf(text, sizeof(text), "{\"n\":%u}", p->text);
        const struct response_entry e = entry(id, owner, text);
        assert_true(response_store_put(s, &e, now));
    } else if (what == 2) {
        assert_int_equal(response_store_delete(s, id, owner, now), p->there);
        p->there = false;
    } else {
        const struct response_entry *got = response_store_get(s, id, owner, now);
        assert_int_equal(got != NULL, p->there);
        snprintf(text, sizeof(text), "{\"n\":%u}", p->text);
        if (got) {
            assert_string_equal(got->json, text);
            assert_string_equal(got->owner, owner);
            response_store_unref(s, got);
        }
    }
}

static void test_random_steps(void **state)
{
    struct response_store *s = make(1 << 24);
    struct place all[N_IDS * N_OWNERS] = {{.there = false}};
    uint64_t now = S;
    (void)state;
    dice_seed(8);
    for (int i = 0; i < 20000; i++) {
        now += dice_below(4) ? dice_below(S) : 0;
        check_count(s, all, now);
        step(s, all, now);
    }
    response_store_destroy(s);
}

/* ---- runs ---- */

static uint32_t n_posted;

static void on_post(struct executor *x, struct executor_task *t)
{
    (void)x;
    (void)t;
    n_posted++;
}

static void test_a_run_is_cancelled_once_by_its_owner(void **state)
{
    static const struct executor_ops ops = {.post = on_post};
    struct executor x = {&ops};
    struct response_run one = {.id = "resp_1", .owner = "app", .executor = &x},
                        two = {.id = "resp_1", .owner = "other", .executor = &x},
                        three = {.id = "resp_3", .owner = "app", .executor = &x};
    struct response_store *s = make(1 << 20);
    (void)state;
    assert_false(response_store_cancel(s, "resp_1", "app"));
    response_store_add_run(s, &one);
    response_store_add_run(s, &two);
    response_store_add_run(s, &three);
    assert_false(response_store_cancel(s, "resp_1", "nobody"));
    assert_false(response_store_cancel(s, "resp_2", "app"));
    assert_int_equal(n_posted, 0);
    assert_true(response_store_cancel(s, "resp_1", "app"));
    assert_true(response_store_cancel(s, "resp_1", "app")); /* it runs once */
    assert_int_equal(n_posted, 1);
    assert_true(one.posted && !two.posted && !three.posted);
    assert_false(response_store_remove_run(s, &two)); /* from the middle */
    assert_false(response_store_cancel(s, "resp_1", "other"));
    assert_true(response_store_cancel(s, "resp_3", "app"));
    assert_true(response_store_remove_run(s, &one));
    assert_true(response_store_remove_run(s, &three));
    assert_false(response_store_cancel(s, "resp_1", "app"));
    response_store_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry_belongs_to_its_client),
        cmocka_unit_test(test_entries_are_forgotten_after_a_time),
        cmocka_unit_test(test_the_oldest_make_room),
        cmocka_unit_test(test_who_holds_most_makes_room),
        cmocka_unit_test(test_without_memory_nothing_is_kept),
        cmocka_unit_test(test_a_file_keeps_them),
        cmocka_unit_test(test_a_text_with_nul_stays_whole),
        cmocka_unit_test(test_damaged_lines),
        cmocka_unit_test(test_a_second_one_replaces_the_first),
        cmocka_unit_test(test_an_older_one_may_stay_longer),
        cmocka_unit_test(test_a_failed_write_is_repeated),
        cmocka_unit_test(test_random_steps),
        cmocka_unit_test(test_a_run_is_cancelled_once_by_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
