/* test_api.c - what include/shoal promises besides results: versions, structs of other versions,
 * and errors that the caller does not ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "shoal/shoal.h"

#define MODEL SHOAL_TEST_DATA "/refs/llama-gqa.gguf"

static struct shoal_engine *open_model(void)
{
    struct shoal_engine *en = NULL;
    struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
    struct err e = {0};
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static void test_versions_agree(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof(text), "%d.%d.%d", SHOAL_VERSION_MAJOR, SHOAL_VERSION_MINOR,
             SHOAL_VERSION_PATCH);
    assert_string_equal(text, SHOAL_VERSION);
    assert_string_equal(shoal_version(), SHOAL_VERSION);
    assert_int_equal(shoal_version_number(), SHOAL_VERSION_NUMBER);
    assert_true(SHOAL_VERSION_OF(1, 2, 3) > SHOAL_VERSION_OF(1, 1, 999));
    assert_string_equal(shoal_error_name(SHOAL_EBUSY), "BUSY");
    assert_string_equal(shoal_error_text(SHOAL_EBUSY), "overloaded, retry later");
    assert_string_equal(shoal_error_name(-999), "UNKNOWN");
}

/* A program that was built with a header of another version. */
struct newer_opts {
    struct shoal_engine_opts known;
    uint64_t later[2];
};

static void test_options_of_other_versions(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        size_t size;
        uint64_t later;
        int want;
    } cases[] = {
        {"not set", 0, 0, SHOAL_EINVAL},
        {"no room for the size itself", sizeof(size_t) - 1, 0, SHOAL_EINVAL},
        {"uninitialised", (size_t)0x7f0012345678, 0, SHOAL_EINVAL},
        {"older: members behind it are defaults", offsetof(struct shoal_engine_opts, n_ctx), 0, 0},
        {"ours", sizeof(struct shoal_engine_opts), 0, 0},
        {"newer, nothing new is used", sizeof(struct newer_opts), 0, 0},
        {"newer, something new is used", sizeof(struct newer_opts), 1, SHOAL_EUNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct newer_opts o = {.known = {.n_threads = 1, .n_ctx = 64}};
        struct shoal_engine *en = NULL;
        struct err e = {0};
        o.known.size = cases[i].size;
        o.later[1] = cases[i].later;
        int rc = shoal_engine_open(&en, MODEL, &o.known, &e);
        if (rc != cases[i].want)
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
        assert_true((en != NULL) == (rc == 0));
        if (rc < 0) {
            assert_int_equal(e.code, rc);
            assert_non_null(strstr(e.msg, "shoal_engine_opts"));
            continue;
        }
        struct shoal_engine_info info = {.size = sizeof(info)};
        assert_int_equal(shoal_engine_info(en, &info), 0);
        assert_int_equal(info.n_threads, 1);
        bool has_ctx = cases[i].size > offsetof(struct shoal_engine_opts, n_ctx);
        assert_true((info.n_ctx == 64) == has_ctx);
        shoal_engine_close(en);
    }
}

/* A member added later must not be in today's padding: it would be garbage from callers that do
 * not know it. */
static void test_options_end_without_padding(void **state)
{
    (void)state;
#define END(type, last) (offsetof(struct type, last) + sizeof(((struct type *)NULL)->last))
    assert_int_equal(sizeof(struct shoal_engine_opts), END(shoal_engine_opts, key_file));
    assert_int_equal(sizeof(struct shoal_task_opts), END(shoal_task_opts, adapter_scale));
    assert_int_equal(sizeof(struct shoal_infer_opts), END(shoal_infer_opts, image_bytes));
    assert_int_equal(sizeof(struct shoal_ask_opts), END(shoal_ask_opts, home));
    assert_int_equal(sizeof(struct shoal_ask_request_opts), END(shoal_ask_request_opts, confirm));
#undef END
}

static void test_tasks_check_their_size(void **state)
{
    (void)state;
    static const int32_t prompt[] = {1, 7, 33};
    struct shoal_engine *en = open_model();
    struct shoal_session *s;
    struct shoal_task *t = NULL;
    struct err e = {0};
    struct shoal_task_opts o = {.tokens = prompt, .n_tokens = 3, .max_tokens = 2};
    struct shoal_infer_opts io = {.kind = SHOAL_KIND_EMBED, .text = "a", .text_bytes = 1};
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "shoal_task_opts.size is 0"));
    assert_null(t);
    assert_int_equal(shoal_infer_submit(en, &io, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "shoal_infer_opts.size is 0"));
    assert_int_equal(shoal_session_create(&s, en, NULL), 0);
    assert_int_equal(shoal_session_append(s, prompt, 3, NULL), 0);
    assert_int_equal(shoal_session_generate(s, &o, &t, NULL), SHOAL_EINVAL);
    SHOAL_INIT(&o);
    o.max_tokens = 2;
    assert_int_equal(shoal_session_generate(s, &o, &t, NULL), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    shoal_session_destroy(s);
    shoal_engine_close(en);
}

static void test_info_is_filled_as_far_as_it_reaches(void **state)
{
    (void)state;
    struct shoal_engine *en = open_model();
    struct {
        struct shoal_engine_info info;
        uint64_t after;
    } room;
    memset(&room, 0x5a, sizeof(room));
    room.info.size = offsetof(struct shoal_engine_info, name);
    assert_int_equal(shoal_engine_info(en, &room.info), 0);
    assert_int_equal(room.info.size, offsetof(struct shoal_engine_info, name));
    assert_int_equal(room.info.kinds, SHOAL_KIND_GENERATE);
    assert_string_equal(room.info.arch, "llama");
    for (size_t i = room.info.size; i < sizeof(room); i++)
        assert_int_equal(((unsigned char *)&room)[i], 0x5a);

    room.info.size = sizeof(room); /* a newer caller */
    assert_int_equal(shoal_engine_info(en, &room.info), 0);
    assert_int_equal(room.info.size, sizeof(room.info));
    assert_int_equal(room.after, 0x5a5a5a5a5a5a5a5a);
    assert_int_equal(room.info.n_vocab > 0, 1);

    room.info.size = 0;
    assert_int_equal(shoal_engine_info(en, &room.info), SHOAL_EINVAL);
    shoal_engine_close(en);
}

/* The code must be the same whether or not the caller requests the text. */
static void test_errors_may_be_null(void **state)
{
    (void)state;
    static const char *const paths[] = {SHOAL_TEST_DATA "/none.gguf",
                                        SHOAL_TEST_DATA "/refs/refs.json", SHOAL_TEST_DATA,
                                        "/dev/null"};
    static const struct shoal_engine_opts bad[] = {
        {.size = sizeof(bad[0]), .kernels = "mmx", .cache_dir = ""},
        {.size = sizeof(bad[0]), .memory_bytes = 100000, .cache_dir = ""},
        {.size = sizeof(bad[0]), .max_tasks = 5000, .cache_dir = ""},
    };
    struct shoal_engine *en;
    struct err e;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int rc = shoal_engine_open(&en, paths[i], NULL, &e);
        assert_true(rc < 0);
        assert_int_equal(rc, shoal_engine_open(&en, paths[i], NULL, NULL));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int rc = shoal_engine_open(&en, MODEL, &bad[i], &e);
        assert_true(rc < 0);
        assert_int_equal(rc, shoal_engine_open(&en, MODEL, &bad[i], NULL));
    }
    en = open_model();
    struct shoal_task *t;
    struct shoal_task_opts o = {.size = sizeof(o)};
    struct shoal_infer_opts io = {.size = sizeof(io), .kind = SHOAL_KIND_EMBED};
    int32_t *tokens;
    char *text;
    size_t n;
    assert_int_equal(shoal_task_submit(en, &o, &t, NULL), SHOAL_EINVAL);
    assert_int_equal(shoal_infer_submit(en, &io, &t, NULL), SHOAL_EUNSUPPORTED);
    int rc = shoal_chat_tokens(en, "{", 1, &tokens, &n, &e);
    assert_true(rc < 0);
    assert_int_equal(rc, shoal_chat_tokens(en, "{", 1, &tokens, &n, NULL));
    assert_int_equal(rc, shoal_chat_prompt(en, "{", 1, &text, &n, NULL));
    assert_int_equal(shoal_tokenize(en, "a", 1, 0, &tokens, &n, NULL), 0);
    shoal_free(tokens);
    shoal_free(NULL);
    shoal_engine_close(en);
}

/* Embeds a text; *out has the values of its vector. */
static void embed(struct shoal_engine *en, const char *text, size_t n, float *out, uint32_t n_out)
{
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_EMBED, .text = text, .text_bytes = n};
    struct shoal_task *t;
    struct err e = {0};
    if (shoal_infer_submit(en, &o, &t, &e) < 0 || shoal_task_wait(t) < 0)
        fail_msg("embed: %s", e.msg);
    const struct shoal_result *r = shoal_task_result(t);
    assert_true(r->n_dims >= n_out);
    memcpy(out, r->vector, n_out * sizeof(*out));
    shoal_task_free(t);
}

/* A text with a NUL is read whole or refused: what follows the NUL is never lost. */
static void test_no_text_ends_at_a_nul(void **state)
{
    (void)state;
    struct shoal_engine *en = open_model();
    struct shoal_task *t;
    int32_t *tokens, *fewer;
    size_t n = 0, n_fewer = 0, n_text;
    char *text;
    struct err e = {0};
    assert_int_equal(shoal_tokenize(en, "a\0b", 3, 0, &tokens, &n, &e), 0);
    assert_int_equal(shoal_tokenize(en, "a", 1, 0, &fewer, &n_fewer, &e), 0);
    assert_true(n > n_fewer);
    shoal_free(fewer);
    shoal_free(tokens);

    static const struct {
        const char *json, *where;
        size_t n; /* 0: up to the NUL */
    } chats[] = {
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]}", "messages[0].content",
         0},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\0b\"}]}", "messages[0].content", 46},
        {"{\"messages\":[],\"tools\":[{\"name\":\"\\u0000\"}]}", "tools[0].name", 0},
    };
    for (size_t i = 0; i < sizeof(chats) / sizeof(chats[0]); i++) {
        const size_t bytes = chats[i].n ? chats[i].n : strlen(chats[i].json);
        assert_int_equal(shoal_chat_tokens(en, chats[i].json, bytes, &tokens, &n, &e),
                         SHOAL_EFORMAT);
        assert_null(tokens);
        if (!strstr(e.msg, chats[i].where) || !strstr(e.msg, "contains NUL"))
            fail_msg("%s: %s", chats[i].where, e.msg);
        e = (struct err){0};
        assert_int_equal(shoal_chat_prompt(en, chats[i].json, bytes, &text, &n_text, &e),
                         SHOAL_EFORMAT);
        assert_null(text);
        assert_non_null(strstr(e.msg, chats[i].where));
    }

    static const struct {
        enum shoal_constraint kind;
        const char *text;
        size_t n;
    } constraints[] = {
        {SHOAL_CONSTRAINT_SCHEMA, "{\"const\":\"a\\u0000b\"}", 20},
        {SHOAL_CONSTRAINT_CHOICE, "[\"a\\u0000b\"]", 12},
        {SHOAL_CONSTRAINT_GBNF, "root ::= \"a\"\0junk", 17},
        {SHOAL_CONSTRAINT_REGEX, "a\0(", 3},
    };
    static const int32_t prompt[] = {1, 7, 33};
    for (size_t i = 0; i < sizeof(constraints) / sizeof(constraints[0]); i++) {
        const struct shoal_task_opts o = {.size = sizeof(o),
                                          .tokens = prompt,
                                          .n_tokens = 3,
                                          .max_tokens = 4,
                                          .constraint = constraints[i].kind,
                                          .constraint_text = constraints[i].text,
                                          .constraint_bytes = constraints[i].n};
        if (shoal_task_submit(en, &o, &t, &e) != SHOAL_EINVAL)
            fail_msg("constraint %u: text behind the NUL is not read", constraints[i].kind);
    }
    shoal_engine_close(en);
}

static void test_a_specialist_reads_behind_a_nul(void **state)
{
    (void)state;
    struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
    struct shoal_engine *en;
    struct err e = {0};
    float with[8], whole[8], cut[8];
    if (shoal_engine_open(&en, SHOAL_TEST_DATA "/encoders/bert", &o, &e) < 0)
        fail_msg("%s", e.msg);
    embed(en, "the house\0 is red", 17, with, 8);
    embed(en, "the house is red", 16, whole, 8);
    embed(en, "the house", 9, cut, 8);
    assert_memory_equal(with, whole, sizeof(with)); /* BERT's normalizer removes NUL */
    assert_memory_not_equal(with, cut, sizeof(with));
    shoal_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_agree),
        cmocka_unit_test(test_options_of_other_versions),
        cmocka_unit_test(test_options_end_without_padding),
        cmocka_unit_test(test_tasks_check_their_size),
        cmocka_unit_test(test_info_is_filled_as_far_as_it_reaches),
        cmocka_unit_test(test_errors_may_be_null),
        cmocka_unit_test(test_no_text_ends_at_a_nul),
        cmocka_unit_test(test_a_specialist_reads_behind_a_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
