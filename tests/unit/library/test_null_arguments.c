/* test_null_arguments.c - every function of include/shoal with each of its pointers NULL in turn:
 * SHOAL_EINVAL with a text that names the argument, or what shoal_base.h documents; never a crash.
 * Also counts without an array and numbers that make no sense. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file/file_read.h"
#include "shoal/shoal.h"

#define DATA SHOAL_TEST_DATA
#define MODEL DATA "/refs/llama-gqa.gguf"
#define SOURCES DATA "/../.."
#define MAX_NAMES 128u
#define MAX_HEADER_BYTES ((size_t)1 << 20)

static struct shoal_engine *en, *bert;
static struct shoal_ask *ask;
static const int32_t prompt[] = {1, 7, 33};
static const char *called[MAX_NAMES]; /* functions that the tables below name */
static size_t n_called;

static void note(const char *name)
{
    for (size_t i = 0; i < n_called; i++)
        if (strcmp(called[i], name) == 0)
            return;
    assert_true(n_called < MAX_NAMES);
    called[n_called++] = name;
}

static void expect_code(const char *name, const char *args, int want, int got, const struct err *e)
{
    note(name);
    if (got != want)
        fail_msg("%s%s returned %s, expected %s", name, args, shoal_error_name(got),
                 shoal_error_name(want));
    if (want == 0 || !e)
        return;
    if (e->code != want || !e->msg[0])
        fail_msg("%s%s left no error: %d '%s'", name, args, e->code, e->msg);
}

static void expect_same(const char *name, const char *args, bool same)
{
    note(name);
    if (!same)
        fail_msg("%s%s returned something else", name, args);
}

/* Argument of the calls below: room for an error, or NULL. */
static struct err room, *error;

/* The call, and the code that it must return. */
#define CODE(want, function, args)                                                                 \
    do {                                                                                           \
        room = (struct err){0};                                                                    \
        expect_code(#function, #args, (want), function args, error);                               \
    } while (0)
/* The same for functions that take no error. */
#define BARE(want, function, args) expect_code(#function, #args, (want), function args, NULL)
/* A function that returns a pointer or a number. */
#define SAME(want, function, args) expect_same(#function, #args, function args == (want))
#define TEXT(want, function, args) expect_same(#function, #args, strcmp(function args, (want)) == 0)
/* A function that returns nothing: the call itself is the test. */
#define VOID(function, args)                                                                       \
    do {                                                                                           \
        note(#function);                                                                           \
        function args;                                                                             \
    } while (0)

static struct shoal_engine *open_model(const char *path)
{
    struct shoal_engine *out = NULL;
    struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
    struct err e = {0};
    if (shoal_engine_open(&out, path, &o, &e) < 0)
        print_error("%s\n", e.msg);
    return out;
}

static int setup(void **state)
{
    struct shoal_ask_opts o = {.size = sizeof(o), .models = SOURCES "/models", .no_reply = true};
    struct err e = {0};
    (void)state;
    en = open_model(MODEL);
    bert = open_model(DATA "/encoders/bert");
    if (shoal_ask_open(&ask, &o, &e) < 0)
        print_error("%s\n", e.msg);
    return en && bert && ask ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    shoal_ask_close(ask);
    shoal_engine_close(bert);
    shoal_engine_close(en);
    return 0;
}

/* ---- one table for each header ---- */

static void base_rows(void)
{
    expect_same("shoal_version", "()", shoal_version() != NULL);
    expect_same("shoal_version_number", "()", shoal_version_number() > 0);
    expect_same("shoal_error_name", "(0)", shoal_error_name(0) != NULL);
    expect_same("shoal_error_text", "(0)", shoal_error_text(0) != NULL);
    VOID(shoal_free, (NULL));
    SAME(NULL, shoal_kind_name, ((enum shoal_kind)0));
}

static void engine_rows(void)
{
    struct shoal_engine *out = NULL;
    int32_t *tokens = NULL;
    char *text = NULL;
    size_t n;
    static const char chat[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}";
    const size_t n_chat = sizeof(chat) - 1;
    CODE(SHOAL_EINVAL, shoal_engine_open, (NULL, MODEL, NULL, error));
    CODE(SHOAL_EINVAL, shoal_engine_open, (&out, NULL, NULL, error));
    CODE(0, shoal_engine_open, (&out, MODEL, NULL, error));
    VOID(shoal_engine_close, (out));
    VOID(shoal_engine_close, (NULL));
    struct shoal_adapter *adapter;
    CODE(SHOAL_EINVAL, shoal_adapter_open, (NULL, en, MODEL, 1, error));
    CODE(SHOAL_EINVAL, shoal_adapter_open, (&adapter, NULL, MODEL, 1, error));
    CODE(SHOAL_EINVAL, shoal_adapter_open, (&adapter, en, NULL, 1, error));
    SAME(0, shoal_adapter_bytes, (NULL));
    VOID(shoal_adapter_close, (NULL));
    struct shoal_engine_info info = {.size = sizeof(info)};
    BARE(SHOAL_EINVAL, shoal_engine_info, (NULL, &info));
    BARE(SHOAL_EINVAL, shoal_engine_info, (en, NULL));
    SAME(NULL, shoal_engine_metadata, (NULL, "general.name", &n));
    SAME(NULL, shoal_engine_metadata, (en, NULL, &n));
    expect_same("shoal_engine_metadata", "(en, key, NULL)",
                shoal_engine_metadata(en, "general.architecture", NULL) != NULL);

    CODE(SHOAL_EINVAL, shoal_tokenize, (NULL, "a", 1, 0, &tokens, &n, error));
    CODE(SHOAL_EINVAL, shoal_tokenize, (en, NULL, 1, 0, &tokens, &n, error));
    CODE(SHOAL_EINVAL, shoal_tokenize, (en, "a", 1, 0, NULL, &n, error));
    CODE(0, shoal_tokenize, (en, NULL, 0, 0, &tokens, &n, error));
    shoal_free(tokens);
    CODE(0, shoal_tokenize, (en, "a", 1, 0, &tokens, NULL, error));
    assert_non_null(tokens);
    shoal_free(tokens);
    CODE(SHOAL_EINVAL, shoal_detokenize, (NULL, prompt, 3, 0, &text, &n, error));
    CODE(SHOAL_EINVAL, shoal_detokenize, (en, NULL, 3, 0, &text, &n, error));
    CODE(SHOAL_EINVAL, shoal_detokenize, (en, prompt, 3, 0, NULL, &n, error));
    CODE(0, shoal_detokenize, (en, NULL, 0, 0, &text, &n, error));
    shoal_free(text);
    CODE(0, shoal_detokenize, (en, prompt, 3, 0, &text, NULL, error));
    shoal_free(text);
    CODE(SHOAL_EINVAL, shoal_chat_prompt, (NULL, chat, n_chat, &text, &n, error));
    CODE(SHOAL_EINVAL, shoal_chat_prompt, (en, NULL, n_chat, &text, &n, error));
    CODE(SHOAL_EINVAL, shoal_chat_prompt, (en, NULL, 0, &text, &n, error));
    CODE(SHOAL_EINVAL, shoal_chat_prompt, (en, chat, n_chat, NULL, &n, error));
    CODE(0, shoal_chat_prompt, (en, chat, n_chat, &text, NULL, error));
    shoal_free(text);
    CODE(SHOAL_EINVAL, shoal_chat_tokens, (NULL, chat, n_chat, &tokens, &n, error));
    CODE(SHOAL_EINVAL, shoal_chat_tokens, (en, NULL, n_chat, &tokens, &n, error));
    CODE(SHOAL_EINVAL, shoal_chat_tokens, (en, chat, n_chat, NULL, &n, error));
    CODE(0, shoal_chat_tokens, (en, chat, n_chat, &tokens, NULL, error));
    shoal_free(tokens);
    TEXT("", shoal_token_text, (NULL, 1, 0, &n));
    expect_same("shoal_token_text", "(en, 5, 0, NULL)", shoal_token_text(en, 5, 0, NULL) != NULL);
}

static void task_rows(void)
{
    struct shoal_task *t = NULL;
    struct shoal_session *s = NULL;
    const int32_t *tokens;
    const struct shoal_task_opts o = {
        .size = sizeof(o), .tokens = prompt, .n_tokens = 3, .max_tokens = 1};
    CODE(SHOAL_EINVAL, shoal_task_submit, (NULL, &o, &t, error));
    CODE(SHOAL_EINVAL, shoal_task_submit, (en, NULL, &t, error));
    CODE(SHOAL_EINVAL, shoal_task_submit, (en, &o, NULL, error));
    CODE(0, shoal_task_submit, (en, &o, &t, error));
    BARE(0, shoal_task_wait, (t));
    SAME(NULL, shoal_task_result, (t));
    VOID(shoal_task_free, (t));
    VOID(shoal_engine_wake, (NULL));
    VOID(shoal_task_cancel, (NULL));
    BARE(SHOAL_EINVAL, shoal_task_wait, (NULL));
    VOID(shoal_task_free, (NULL));
    SAME(NULL, shoal_task_result, (NULL));

    CODE(SHOAL_EINVAL, shoal_session_create, (NULL, en, error));
    CODE(SHOAL_EINVAL, shoal_session_create, (&s, NULL, error));
    CODE(0, shoal_session_create, (&s, en, error));
    CODE(SHOAL_EINVAL, shoal_session_append, (NULL, prompt, 3, error));
    CODE(SHOAL_EINVAL, shoal_session_append, (s, NULL, 3, error));
    CODE(0, shoal_session_append, (s, NULL, 0, error));
    CODE(0, shoal_session_append, (s, prompt, 3, error));
    CODE(SHOAL_EINVAL, shoal_session_generate, (NULL, &o, &t, error));
    CODE(SHOAL_EINVAL, shoal_session_generate, (s, NULL, &t, error));
    CODE(SHOAL_EINVAL, shoal_session_generate, (s, &o, NULL, error));
    SAME(0, shoal_session_tokens, (NULL, &tokens));
    assert_null(tokens);
    SAME(3, shoal_session_tokens, (s, NULL));
    VOID(shoal_session_destroy, (s));
    VOID(shoal_session_destroy, (NULL));
}

static void infer_rows(void)
{
    struct shoal_task *t = NULL;
    const struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_EMBED, .text = "a", .text_bytes = 1};
    CODE(SHOAL_EINVAL, shoal_infer_submit, (NULL, &o, &t, error));
    CODE(SHOAL_EINVAL, shoal_infer_submit, (bert, NULL, &t, error));
    CODE(SHOAL_EINVAL, shoal_infer_submit, (bert, &o, NULL, error));
    CODE(0, shoal_infer_submit, (bert, &o, &t, error));
    BARE(0, shoal_task_wait, (t));
    shoal_task_free(t);
    SAME(NULL, shoal_label_set, (NULL, SHOAL_KIND_CLASSIFY, 0));
    SAME(NULL, shoal_label, (NULL, SHOAL_KIND_CLASSIFY, NULL, 0));
    SAME(NULL, shoal_label, (bert, SHOAL_KIND_CLASSIFY, NULL, 1000000));
    SAME(NULL, shoal_input_name, (NULL, 0));
}

static void ask_rows(void)
{
    struct shoal_ask_request *r = NULL;
    char *json = NULL;
    size_t n;
    const struct shoal_ask_request_opts o = {
        .size = sizeof(o), .text = "lights on", .text_bytes = 9, .no_reply = true};
    CODE(SHOAL_EINVAL, shoal_ask_open, (NULL, NULL, error));
    VOID(shoal_ask_close, (NULL));
    CODE(SHOAL_EINVAL, shoal_ask_submit, (NULL, &o, &r, error));
    CODE(SHOAL_EINVAL, shoal_ask_submit, (ask, NULL, &r, error));
    CODE(SHOAL_EINVAL, shoal_ask_submit, (ask, &o, NULL, error));
    CODE(0, shoal_ask_submit, (ask, &o, &r, error));
    BARE(0, shoal_ask_wait, (r));
    CODE(SHOAL_EINVAL, shoal_ask_json, (NULL, 0, &json, &n, error));
    CODE(SHOAL_EINVAL, shoal_ask_json, (r, 0, NULL, &n, error));
    CODE(0, shoal_ask_json, (r, 0, &json, NULL, error));
    shoal_free(json);
    TEXT("", shoal_ask_reply, (NULL, &n));
    TEXT("", shoal_ask_reply, (r, NULL));
    VOID(shoal_ask_free, (r));
    VOID(shoal_ask_free, (NULL));
    VOID(shoal_ask_cancel, (NULL));
    BARE(SHOAL_EINVAL, shoal_ask_wait, (NULL));
}

static void flow_rows(void)
{
    struct shoal_flow *f = NULL;
    struct shoal_flow_request *r = NULL;
    char *json = NULL;
    size_t n;
    static const char file[] = DATA "/flows/template.yaml";
    const struct shoal_flow_request_opts o = {.size = sizeof(o), .text = "a", .text_bytes = 1};
    CODE(SHOAL_EINVAL, shoal_flow_open, (NULL, file, NULL, error));
    CODE(SHOAL_EINVAL, shoal_flow_open, (&f, NULL, NULL, error));
    CODE(0, shoal_flow_open, (&f, file, NULL, error));
    CODE(SHOAL_EINVAL, shoal_flow_submit, (NULL, &o, &r, error));
    CODE(SHOAL_EINVAL, shoal_flow_submit, (f, NULL, &r, error));
    CODE(SHOAL_EINVAL, shoal_flow_submit, (f, &o, NULL, error));
    CODE(0, shoal_flow_submit, (f, &o, &r, error));
    BARE(0, shoal_flow_wait, (r));
    CODE(SHOAL_EINVAL, shoal_flow_json, (NULL, 0, &json, &n, error));
    CODE(SHOAL_EINVAL, shoal_flow_json, (r, 0, NULL, &n, error));
    CODE(0, shoal_flow_json, (r, 0, &json, NULL, error));
    shoal_free(json);
    SAME(NULL, shoal_flow_result, (NULL));
    VOID(shoal_flow_free, (r));
    struct shoal_flow_request_opts bad = {.size = sizeof(bad), .text_bytes = 3};
    CODE(SHOAL_EINVAL, shoal_flow_submit, (f, &bad, &r, error));
    bad = (struct shoal_flow_request_opts){.size = sizeof(bad), .input_bytes = 3};
    CODE(SHOAL_EINVAL, shoal_flow_submit, (f, &bad, &r, error));
    VOID(shoal_flow_free, (NULL));
    VOID(shoal_flow_cancel, (NULL));
    BARE(SHOAL_EINVAL, shoal_flow_wait, (NULL));
    VOID(shoal_flow_close, (f));
    VOID(shoal_flow_close, (NULL));
}

/* Names in the headers that are followed by a parenthesis are functions, except in the comment at
 * the beginning, which has an example. */
static void check_header(const char *path)
{
    struct err e = {0};
    struct buf text;
    buf_init(&text, MAX_HEADER_BYTES);
    if (file_read(path, &text, &e) < 0)
        fail_msg("%s", e.msg);
    const char *p = strstr(buf_str(&text), "\n#ifndef ");
    assert_non_null(p);
    for (; (p = strstr(p, "shoal_")) != NULL; p++) {
        char name[64];
        size_t len = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
        if (p[len] != '(')
            continue;
        assert_true(len < sizeof(name));
        snprintf(name, sizeof(name), "%.*s", (int)len, p);
        size_t i = 0;
        while (i < n_called && strcmp(called[i], name) != 0)
            i++;
        if (i == n_called)
            fail_msg("%s: no row of this test calls %s", path, name);
    }
    buf_fini(&text);
}

static void test_every_pointer_may_be_null(void **state)
{
    (void)state;
    base_rows();
    for (int i = 0; i < 2; i++) {
        error = i == 0 ? &room : NULL;
        engine_rows();
        task_rows();
        infer_rows();
        ask_rows();
        flow_rows();
    }
    DIR *dir = opendir(SOURCES "/include/shoal");
    assert_non_null(dir);
    size_t n_headers = 0;
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        char path[512];
        if (strncmp(d->d_name, "shoal", 5) != 0)
            continue;
        snprintf(path, sizeof(path), SOURCES "/include/shoal/%s", d->d_name);
        check_header(path);
        n_headers++;
    }
    closedir(dir);
    assert_true(n_headers >= 10);
    assert_true(n_called >= 46);
}

/* ---- options ---- */

static void test_counts_need_their_arrays(void **state)
{
    (void)state;
    static const char *const hole[] = {"a", NULL};
    static const struct {
        const char *names; /* what the message must name */
        struct shoal_task_opts o;
    } cases[] = {
        {"stop", {.n_stop = 2}},
        {"stop[]", {.n_stop = 2, .stop = hole}},
        {"sampling.bias", {.sampling = {.n_bias = 3}}},
        {"constraint_text", {.constraint = SHOAL_CONSTRAINT_REGEX, .constraint_bytes = 3}},
        {"weight is -1", {.weight = -1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shoal_task_opts o = cases[i].o;
        struct shoal_task *t;
        struct err e = {0};
        o.size = sizeof(o);
        o.tokens = prompt;
        o.n_tokens = 3;
        o.max_tokens = 1;
        if (shoal_task_submit(en, &o, &t, &e) != SHOAL_EINVAL || !strstr(e.msg, cases[i].names))
            fail_msg("%s: %d %s", cases[i].names, e.code, e.msg);
        assert_null(t);
    }
    struct shoal_task *t;
    struct err e = {0};
    struct shoal_task_opts empty = {.size = sizeof(empty), .n_tokens = 3};
    assert_int_equal(shoal_task_submit(en, &empty, &t, &e), SHOAL_EINVAL);
}

static void test_inferences_need_what_they_count(void **state)
{
    (void)state;
    static const struct {
        const char *names;
        struct shoal_infer_opts o;
    } cases[] = {
        {"text", {.text_bytes = 4}},
        {"document", {.text = "a", .text_bytes = 1, .document_bytes = 4}},
        {"weight is -1", {.text = "a", .text_bytes = 1, .weight = -1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shoal_infer_opts o = cases[i].o;
        struct shoal_task *t;
        struct err e = {0};
        o.size = sizeof(o);
        o.kind = SHOAL_KIND_EMBED;
        if (shoal_infer_submit(bert, &o, &t, &e) != SHOAL_EINVAL || !strstr(e.msg, cases[i].names))
            fail_msg("%s: %d %s", cases[i].names, e.code, e.msg);
        assert_null(t);
    }
    struct shoal_ask_request *r;
    struct err e = {0};
    struct shoal_ask_request_opts ao = {.size = sizeof(ao), .text_bytes = 3, .confirm = "none"};
    assert_int_equal(shoal_ask_submit(ask, &ao, &r, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "'text' is NULL"));
}

static void test_averages_need_their_paths(void **state)
{
    (void)state;
    static const char *const hole[] = {NULL};
    struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_average = 1};
    struct shoal_engine *out;
    struct err e = {0};
    assert_int_equal(shoal_engine_open(&out, MODEL, &o, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "average_paths"));
    o.average_paths = hole;
    assert_int_equal(shoal_engine_open(&out, MODEL, &o, &e), SHOAL_EINVAL);
    assert_null(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pointer_may_be_null),
        cmocka_unit_test(test_counts_need_their_arrays),
        cmocka_unit_test(test_inferences_need_what_they_count),
        cmocka_unit_test(test_averages_need_their_paths),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
