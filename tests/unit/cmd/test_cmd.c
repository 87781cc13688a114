/* test_cmd.c - options, and commands when memory runs out at any point: an error, no crash and
 * no leak (which the sanitizer build detects). */
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

#include "base/mem.h"
#include "cmd/cli/opts.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/conversation.h"
#include "cmd/machine.h"

cmd_fn cmd_classify, cmd_gateway, cmd_generate, cmd_logits, cmd_node, cmd_serve, cmd_model_quantize,
    cmd_model_show, cmd_perplexity, cmd_summarize, cmd_tokenize;

#define MODEL SHOAL_TEST_DATA "/refs/qwen3.gguf"
#define ENCODER SHOAL_TEST_DATA "/encoders/bert-cls"
#define CHAT SHOAL_TEST_DATA "/../../models/reply-draft.gguf"

/* ---- options -------------------------------------------------------------------------------- */

static const struct opts_def defs[] = {
    {"count", 'n', OPTS_UINT, "N", "7", 1, 100, "a number"},
    {"rate", 0, OPTS_REAL, "X", "0.5", -1, 1, "another"},
    {"name", 0, OPTS_TEXT, "TEXT", NULL, 0, 0, "a text"},
    {"item", 'i', OPTS_LIST, "TEXT", NULL, 0, 0, "some texts"},
    {"mode", 0, OPTS_CHOICE, "fast|slow", "fast", 0, 0, "a word"},
    {"loud", 'l', OPTS_FLAG, NULL, NULL, 0, 0, "a flag"},
};
static const struct opts_page page = {.command = "test",
                                      .arguments = "[A] [B]",
                                      .max_args = 2,
                                      .summary = "For tests.",
                                      .groups = {OPTS_GROUP("Options", defs)}};

static void test_options_in_any_order_and_form(void **state)
{
    (void)state;
    static const char *const argv[] = {"one", "-n5", "--rate=-0.25", "-i",   "a",  "--item",
                                       "b",   "-l",  "--mode",       "slow", "--", "-x"};
    const char *const *list;
    struct opts o;
    assert_int_equal(opts_parse(&o, &page, 12, argv), OPTS_RUN);
    assert_int_equal(opts_u32(&o, "count"), 5);
    assert_true(opts_real(&o, "rate") == -0.25);
    assert_null(opts_text(&o, "name"));
    assert_int_equal(opts_list(&o, "item", &list), 2);
    assert_string_equal(list[1], "b");
    assert_true(opts_flag(&o, "loud"));
    assert_string_equal(opts_text(&o, "mode"), "slow");
    assert_int_equal(o.n_args, 2);
    assert_string_equal(o.args[1], "-x");
    opts_fini(&o);
}

static void test_options_not_given_have_their_defaults(void **state)
{
    (void)state;
    const char *const *list;
    struct opts o;
    assert_int_equal(opts_parse(&o, &page, 0, NULL), OPTS_RUN);
    assert_int_equal(opts_uint(&o, "count"), 7);
    assert_true(opts_real(&o, "rate") == 0.5);
    assert_false(opts_given(&o, "count"));
    assert_int_equal(opts_list(&o, "item", &list), 0);
    assert_string_equal(opts_text(&o, "mode"), "fast");
    opts_fini(&o);
}

static void test_bad_options_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        int argc;
        const char *argv[3];
    } cases[] = {
        {"below the least", 1, {"--count=0"}},
        {"above the most", 1, {"--count=101"}},
        {"negative", 1, {"--count=-1"}},
        {"a fraction", 1, {"--count=1.5"}},
        {"overflow", 1, {"--count=99999999999999999999999"}},
        {"blank", 1, {"--count= 5"}},
        {"not a number", 1, {"--rate=nan"}},
        {"empty", 1, {"--rate="}},
        {"tail", 1, {"--rate=1x"}},
        {"part of a word", 1, {"--mode=fas"}},
        {"words", 1, {"--mode=fast|slow"}},
        {"empty word", 1, {"--mode="}},
        {"a flag with a value", 1, {"--loud=1"}},
        {"prefix of a name", 1, {"--cou=1"}},
        {"no value", 1, {"--name"}},
        {"unknown letter", 1, {"-z"}},
        {"too many", 3, {"a", "b", "c"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct opts o;
        if (opts_parse(&o, &page, cases[i].argc, cases[i].argv) != OPTS_USAGE)
            fail_msg("%s: accepted", cases[i].why);
        opts_fini(&o);
    }
}

static void test_ids(void **state)
{
    (void)state;
    int32_t *ids = NULL;
    size_t n = 0;
    struct err e = {0};
    assert_int_equal(cmd_parse_ids("[1, 2,3]\n44", 11, &ids, &n, &e), 0);
    assert_int_equal(cmd_parse_ids(" 2147483647", 11, &ids, &n, &e), 0);
    assert_int_equal(n, 5);
    assert_int_equal(ids[3], 44);
    assert_int_equal(ids[4], INT32_MAX);
    assert_int_equal(cmd_parse_ids("2147483648", 10, &ids, &n, &e), SHOAL_EINVAL);
    assert_int_equal(cmd_parse_ids("1 -2", 4, &ids, &n, &e), SHOAL_EINVAL);
    assert_int_equal(cmd_parse_ids("1.5", 3, &ids, &n, &e), SHOAL_EINVAL);
    mem_free(ids);
}

/* ---- memory --------------------------------------------------------------------------------- */

typedef int (*command_fn)(int argc, const char *const *argv);

/* Every allocation of the command fails in turn. */
static void torture(command_fn run, int argc, const char *const *argv)
{
    uint64_t calls = mem_calls();
    mem_fail_at(0);
    assert_int_equal(run(argc, argv), CMD_OK);
    uint64_t n = mem_calls() - calls, n_failed = 0;
    uint64_t step = n > 400 ? n / 200 : 1;
    for (uint64_t i = 1; i <= n; i += step) {
        mem_fail_at(i);
        int rc = run(argc, argv);
        mem_fail_at(0);
        /* Some allocations only save time: the command succeeds without them. */
        assert_in_range(rc, CMD_OK, CMD_USAGE);
        n_failed += rc != CMD_OK;
    }
    assert_true(n_failed > 0);
}

static void test_generate_without_memory(void **state)
{
    (void)state;
    static const char *const argv[] = {"-m", MODEL, "-n", "4", "--json", "--no-cache", "was the"};
    torture(cmd_generate, 7, argv);
}

static void test_tokenize_without_memory(void **state)
{
    (void)state;
    static const char *const argv[] = {"-m", MODEL, "--json", "was the"};
    torture(cmd_tokenize, 4, argv);
}

static void test_servers_without_memory(void **state)
{
    static const char *const serve[] = {"--check", "--only", "-m", "q=" MODEL};
    static const char *const gateway[] = {"--check", "--node", "unix:/tmp/no.sock"};
    static const char *const node[] = {"--check", "--listen", "unix:/tmp/no.sock", "-m",
                                       "q=" MODEL};
    (void)state;
    torture(cmd_serve, 4, serve);
    torture(cmd_gateway, 3, gateway);
    torture(cmd_node, 5, node);
}

static void test_logits_without_memory(void **state)
{
    (void)state;
    static const char *const argv[] = {"-m", MODEL, "--no-cache", "--text", "was", "--json"};
    torture(cmd_logits, 6, argv);
}

static void test_show_without_memory(void **state)
{
    (void)state;
    static const char *const argv[] = {MODEL, "--json"};
    torture(cmd_model_show, 2, argv);
}

static void test_perplexity_without_memory(void **state)
{
    (void)state;
    static const char *const argv[] = {
        "-m", MODEL, "--no-cache", "-c", "16", "--json", SHOAL_TEST_DATA "/refs/README.md"};
    torture(cmd_perplexity, 7, argv);
}

static void test_quantize_without_memory(void **state)
{
    (void)state;
    char out[] = "/tmp/shoal-test-XXXXXX";
    int fd = mkstemp(out);
    assert_true(fd >= 0);
    close(fd);
    const char *const argv[] = {MODEL,       out, "--type",      "q8_0",
                                "--threads", "1", "-c",          "16",
                                "--chunks",  "2", "--calibrate", SHOAL_TEST_DATA "/refs/README.md"};
    torture(cmd_model_quantize, 12, argv);
    unlink(out);
}

static void test_classify_without_memory(void **state)
{
    (void)state;
    static const char *const argv[] = {"-m", ENCODER, "--no-cache", "--json", "a red house"};
    torture(cmd_classify, 5, argv);
}

/* A specialist's command that fails after opening its model frees everything. */
static void test_failures_of_specialists(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        int (*run)(int argc, const char *const *argv);
        int argc, want;
        const char *argv[6];
    } cases[] = {
        {"unknown labels",
         cmd_classify,
         6,
         CMD_FAILED,
         {"-m", ENCODER, "--no-cache", "--labels", "no", "a"}},
        {"no such file", cmd_classify, 5, CMD_FAILED, {"-m", ENCODER, "--no-cache", "-f", "/none"}},
        {"another kind", cmd_summarize, 4, CMD_FAILED, {"-m", ENCODER, "--no-cache", "a"}},
        {"no specialist", cmd_classify, 4, CMD_FAILED, {"-m", MODEL, "--no-cache", "a"}},
        {"no model", cmd_classify, 3, CMD_FAILED, {"-m", SHOAL_TEST_DATA "/none.gguf", "a"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = cases[i].run(cases[i].argc, cases[i].argv);
        if (rc != cases[i].want)
            fail_msg("%s: exit code %d, expected %d", cases[i].why, rc, cases[i].want);
    }
}

/* Writes the model with each `from` in its chat template replaced by `to`, padded with spaces. */
static void write_with_template(const char *path, const char *const *from, const char *const *to)
{
    FILE *in = fopen(CHAT, "rb"), *out = fopen(path, "wb");
    assert_true(in && out && fseek(in, 0, SEEK_END) == 0);
    size_t n = (size_t)ftell(in);
    rewind(in);
    char *bytes = mem_alloc(n);
    assert_true(bytes && fread(bytes, 1, n, in) == n);
    for (; *from; from++, to++) {
        char *at = memmem(bytes, n, *from, strlen(*from));
        assert_non_null(at);
        memset(at, ' ', strlen(*from));
        memcpy(at, *to, strlen(*to));
    }
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    mem_free(bytes);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* The prompt has no text then: must not copy from NULL, which UndefinedBehaviorSanitizer
 * reports. */
static void test_a_template_that_renders_nothing(void **state)
{
    (void)state;
    static const char *const from[] = {"for message in messages", "if add_generation_prompt", NULL};
    static const char *const to[] = {"for message in []", "if false", NULL};
    static const struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
    char path[] = "/tmp/shoal-test-XXXXXX";
    struct shoal_engine *engine;
    struct conversation c;
    int32_t *tokens = NULL;
    size_t n = 0;
    struct err e = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_with_template(path, from, to);
    if (shoal_engine_open(&engine, path, &o, &e) < 0)
        fail_msg("%s", e.msg);
    unlink(path);
    conversation_init(&c, engine);
    for (int turn = 0; turn < 2; turn++) { /* the second starts after an empty first one */
        assert_int_equal(conversation_add(&c, "user", "Hi", 2, &e), 0);
        if (conversation_prompt(&c, &tokens, &n, &e) < 0)
            fail_msg("%s", e.msg);
        assert_in_range(n, 0, 1); /* at most the BOS */
        assert_int_equal(conversation_answer(&c, tokens, n, NULL, 0, "", 0, &e), 0);
        shoal_free(tokens);
    }
    conversation_fini(&c);
    shoal_engine_close(engine);
}

/* ---- progress ------------------------------------------------------------------------------- */

static size_t n_characters(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void test_a_bar_is_never_wider_than_the_terminal(void **state)
{
    static const char *const notes[] = {NULL, "1 of 30 files: /srv/a/very/long/path/to/Ümläute.md"};
    char line[1024];
    (void)state;
    for (unsigned columns = 1; columns < 200; columns++)
        for (int part = 0; part <= 4; part++)
            for (int i = 0; i < 2; i++) {
                term_progress_line(line, sizeof(line), columns, "adding", part / 4.0,
                                   ", 120 s left", notes[i]);
                assert_true(n_characters(line) < columns || columns == 1);
            }
    term_progress_line(line, sizeof(line), 100, "adding", 0.5, "", "a note");
    assert_string_equal(line, "adding [###############...............]  50 %, a note");
    term_progress_line(line, sizeof(line), 40, "adding", 1, ", 0 s left", NULL);
    assert_string_equal(line, "adding [#########] 100 %, 0 s left");
    term_progress_line(line, sizeof(line), 20, "adding", 0, "", "ab\xc3\xa4xyz");
    assert_string_equal(line, "adding   0 %, ab\xc3\xa4xy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_in_any_order_and_form),
        cmocka_unit_test(test_options_not_given_have_their_defaults),
        cmocka_unit_test(test_bad_options_are_refused),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_a_bar_is_never_wider_than_the_terminal),
        cmocka_unit_test(test_generate_without_memory),
        cmocka_unit_test(test_tokenize_without_memory),
        cmocka_unit_test(test_servers_without_memory),
        cmocka_unit_test(test_logits_without_memory),
        cmocka_unit_test(test_show_without_memory),
        cmocka_unit_test(test_perplexity_without_memory),
        cmocka_unit_test(test_quantize_without_memory),
        cmocka_unit_test(test_classify_without_memory),
        cmocka_unit_test(test_failures_of_specialists),
        cmocka_unit_test(test_a_template_that_renders_nothing),
    };
    /* This test checks only exit codes, not the commands' output. */
    if (!freopen("/dev/null", "w", stdout))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
