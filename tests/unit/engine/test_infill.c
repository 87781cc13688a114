/* test_infill.c - prompts for a text between two others, with a model that has the tokens for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "base/mem.h"
#include "engine/chat/infill_tokens.h"
#include "shoal/shoal.h"
#include "support/gguf_build.h"

#define SOURCE SHOAL_TEST_DATA "/refs/qwen3.gguf"
#define HEAD_BYTES 24u /* magic, version, number of tensors, number of values */
#define ALIGNMENT 32u
#define N_CTX 64u

/* Ids of tokens that play the marks. */
enum { PRE = 1, SUF = 2, MID = 3, REP = 4, SEP = 5, BOS = 297 };

/* A copy of the model with more metadata, in front of what it has: tensors stay aligned if its
 * length is a multiple of the alignment. */
static void write_model(const char *path, bool marks, bool files, bool bos)
{
    struct buf in, more;
    struct err e;
    uint64_t n_values, n;
    buf_init(&in, 1 << 24);
    gb_begin(&more); /* with a head, which counts */
    assert_int_equal(file_read(SOURCE, &in, &e), 0);
    if (marks) {
        gb_kv_u32(&more, "tokenizer.ggml.fim_pre_token_id", PRE);
        gb_kv_u32(&more, "tokenizer.ggml.fim_suf_token_id", SUF);
        gb_kv_u32(&more, "tokenizer.ggml.fim_mid_token_id", MID);
    }
    if (files) {
        gb_kv_u32(&more, "tokenizer.ggml.fim_rep_token_id", REP);
        gb_kv_u32(&more, "tokenizer.ggml.fim_sep_token_id", SEP);
    }
    char pad[ALIGNMENT + 1] = "";
    const size_t head = 8 + strlen("pad") + 4 + 8;
    const size_t left = (ALIGNMENT - (more.len - HEAD_BYTES + head) % ALIGNMENT) % ALIGNMENT;
    memset(pad, 'x', left);
    gb_kv_str(&more, "pad", pad);
    memcpy(&n, more.data + 16, sizeof(n));
    memcpy(&n_values, in.data + 16, sizeof(n_values));
    n_values += n;
    memcpy(in.data + 16, &n_values, sizeof(n_values));
    char *key = memmem(in.data, in.len, "tokenizer.ggml.add_bos_token", 28);
    assert_non_null(key);
    key[28 + 4] = bos; /* behind its type */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(in.data, 1, HEAD_BYTES, f), HEAD_BYTES);
    assert_int_equal(fwrite(more.data + HEAD_BYTES, 1, more.len - HEAD_BYTES, f),
                     more.len - HEAD_BYTES);
    assert_int_equal(fwrite(in.data + HEAD_BYTES, 1, in.len - HEAD_BYTES, f), in.len - HEAD_BYTES);
    fclose(f);
    buf_fini(&in);
    buf_fini(&more);
}

static struct shoal_engine *open_model(bool marks, bool files, bool bos)
{
    const struct shoal_engine_opts o = {
        .size = sizeof(o), .n_threads = 1, .n_ctx = N_CTX, .cache_dir = ""};
    char path[] = "/tmp/shoal-infill-XXXXXX.gguf";
    struct shoal_engine *en = NULL;
    struct shoal_error e = {0};
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    write_model(path, marks, files, bos);
    if (shoal_engine_open(&en, path, &o, &e) < 0)
        fail_msg("%s", e.msg);
    unlink(path);
    return en;
}

/* What is expected: marks and texts in order. */
struct part {
    int32_t mark; /* -1: the text */
    const char *text;
};

static size_t expect(const struct shoal_engine *en, const struct part *parts, size_t n,
                     int32_t *out)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t *ids = NULL;
        size_t n_ids = 0;
        if (parts[i].mark >= 0) {
            out[k++] = parts[i].mark;
            continue;
        }
        assert_int_equal(
            shoal_tokenize(en, parts[i].text, strlen(parts[i].text), 0, &ids, &n_ids, NULL), 0);
        memcpy(out + k, ids, n_ids * sizeof(*ids));
        k += n_ids;
        shoal_free(ids);
    }
    return k;
}

static void check(const struct shoal_engine *en, const struct infill *what,
                  const struct part *parts, size_t n)
{
    int32_t want[1024], *got = NULL;
    size_t n_got = 0;
    struct err e;
    const size_t n_want = expect(en, parts, n, want);
    assert_int_equal(infill_tokens_of(en, what, &got, &n_got, &e), 0);
    assert_int_equal(n_got, n_want);
    assert_memory_equal(got, want, n_want * sizeof(*want));
    mem_free(got);
}

static void test_two_texts(void **state)
{
    const struct infill what = {
        .prefix = "was the", .n_prefix = 7, .suffix = " gull", .n_suffix = 5, .max_tokens = 4};
    const struct infill alone = {.prefix = "", .suffix = "", .max_tokens = 4};
    (void)state;
    for (int bos = 0; bos < 2; bos++) {
        struct shoal_engine *en = open_model(true, false, bos);
        const struct part parts[] = {{BOS, NULL}, {PRE, NULL},   {-1, "was the"},
                                     {SUF, NULL}, {-1, " gull"}, {MID, NULL}};
        const struct part none[] = {{BOS, NULL}, {PRE, NULL}, {SUF, NULL}, {MID, NULL}};
        check(en, &what, parts + !bos, 5 + (size_t)bos);
        check(en, &alone, none + !bos, 3 + (size_t)bos);
        shoal_engine_close(en);
    }
}

static void test_files_in_front(void **state)
{
    const struct infill_file files[] = {{"a.c", "int a;", 6}, {NULL, "int b;", 6}};
    const struct infill what = {.prefix = "was",
                                .n_prefix = 3,
                                .suffix = "the",
                                .n_suffix = 3,
                                .files = files,
                                .n_files = 2,
                                .max_tokens = 1};
    const struct part named[] = {
        {REP, NULL}, {-1, "project\n"}, {SEP, NULL}, {-1, "a.c"},    {-1, "\n"},  {-1, "int a;"},
        {SEP, NULL}, {-1, "file"},      {-1, "\n"},  {-1, "int b;"}, {SEP, NULL}, {-1, "file\n"},
        {PRE, NULL}, {-1, "was"},       {SUF, NULL}, {-1, "the"},    {MID, NULL}};
    int32_t all[1024], *got = NULL;
    size_t n_got = 0;
    struct err e;
    (void)state;
    struct shoal_engine *en = open_model(true, true, false);
    /* what does not fit is left out at the front: the answer's tokens, and one more, stay free */
    const size_t n = expect(en, named, sizeof(named) / sizeof(named[0]), all);
    const size_t room = N_CTX - 1 - 1;
    assert_int_equal(infill_tokens_of(en, &what, &got, &n_got, &e), 0);
    assert_int_equal(n_got, n < room ? n : room);
    assert_memory_equal(got, all + n - n_got, n_got * sizeof(*got));
    mem_free(got);
    struct infill eighth = what; /* is left for the answer */
    eighth.max_tokens = 0;
    assert_int_equal(infill_tokens_of(en, &eighth, &got, &n_got, &e), 0);
    assert_int_equal(n_got, n < N_CTX - 1 - N_CTX / 8 ? n : N_CTX - 1 - N_CTX / 8);
    assert_memory_equal(got, all + n - n_got, n_got * sizeof(*got));
    mem_free(got);
    struct infill most = what; /* no room for any of the files */
    most.max_tokens = N_CTX;
    const struct part texts[] = {{PRE, NULL}, {-1, "was"}, {SUF, NULL}, {-1, "the"}, {MID, NULL}};
    check(en, &most, texts, 5);
    shoal_engine_close(en);

    en = open_model(true, false, false); /* without a mark for files */
    const struct part snippets[] = {{-1, "\n\n--- snippet ---\n\n"},
                                    {-1, "int a;"},
                                    {-1, "\n\n--- snippet ---\n\n"},
                                    {-1, "int b;"},
                                    {PRE, NULL},
                                    {-1, "was"},
                                    {SUF, NULL},
                                    {-1, "the"},
                                    {MID, NULL}};
    const size_t k = expect(en, snippets, 9, all);
    assert_int_equal(infill_tokens_of(en, &what, &got, &n_got, &e), 0);
    assert_int_equal(n_got, k < room ? k : room);
    assert_memory_equal(got, all + k - n_got, n_got * sizeof(*got));
    mem_free(got);
    shoal_engine_close(en);
}

static void test_models_that_cannot(void **state)
{
    const struct infill what = {.prefix = "a", .n_prefix = 1, .suffix = "b", .n_suffix = 1};
    int32_t *got = (int32_t *)&what;
    size_t n = 1;
    struct err e = {0};
    (void)state;
    struct shoal_engine *en = open_model(false, true, false);
    assert_int_equal(infill_tokens_of(en, &what, &got, &n, &e), SHOAL_EUNSUPPORTED);
    assert_null(got);
    assert_int_equal(n, 0);
    assert_non_null(strstr(e.msg, "leave out the suffix"));
    shoal_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_texts),
                                       cmocka_unit_test(test_files_in_front),
                                       cmocka_unit_test(test_models_that_cannot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
