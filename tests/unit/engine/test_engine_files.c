/* test_engine_files.c - model files that change while they are loaded, damaged caches of tiled
 * weights, paths that are not regular files, weights that are not finite. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/model_open.h"
#include "shoal/shoal.h"

#define N_TOKENS 24

static char dir[64]; /* of the test */
static char cache[96], model[96];

static void copy_file(const char *from, const char *to)
{
    char command[1024];
    snprintf(command, sizeof(command), "cp -R '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-files-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(cache, sizeof(cache), "%s/cache", dir);
    snprintf(model, sizeof(model), "%s/model.gguf", dir);
    copy_file(SHOAL_TEST_DATA "/refs/llama-gqa.gguf", model);
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

static struct shoal_engine *open_model(const char *path, bool cached)
{
    struct shoal_engine *en = NULL;
    struct shoal_error e = {0};
    const struct shoal_engine_opts o = {
        .size = sizeof(o), .cache_dir = cached ? cache : "", .n_threads = 1};
    if (shoal_engine_open(&en, path, &o, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    return en;
}

static bool from_cache(const struct shoal_engine *en)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    assert_int_equal(shoal_engine_info(en, &info), 0);
    return info.from_cache;
}

struct answer {
    int32_t tokens[N_TOKENS];
    uint32_t n;
    int code;
    void (*first)(void); /* called with the first token */
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct answer *a = ctx;
    if (ev->kind == SHOAL_EVENT_DONE) {
        a->code = ev->code;
    } else if (ev->token >= 0) {
        if (a->n == 0 && a->first)
            a->first();
        a->tokens[a->n++] = ev->token;
    }
}

/* The code of submit, or that of the task. */
static int generate(struct shoal_engine *en, struct answer *a, struct shoal_error *e)
{
    static const int32_t prompt[] = {1, 7, 33, 120, 260, 9, 14, 77, 300, 45, 8, 19};
    const struct shoal_task_opts o = {.size = sizeof(o),
                                      .tokens = prompt,
                                      .n_tokens = 12,
                                      .max_tokens = N_TOKENS,
                                      .ignore_end = true,
                                      .event = on_event,
                                      .event_ctx = a};
    struct shoal_task *t;
    a->n = 0;
    int rc = shoal_task_submit(en, &o, &t, e);
    if (rc < 0)
        return rc;
    rc = shoal_task_wait(t);
    shoal_task_free(t);
    return rc;
}

static void shrink_model(void)
{
    assert_int_equal(truncate(model, 4096), 0);
}

static void write_at(const char *path, off_t at, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

static void scribble_model(void)
{
    char noise[512];
    struct stat st;
    memset(noise, 17, sizeof(noise));
    assert_int_equal(stat(model, &st), 0);
    for (off_t at = st.st_size / 2; at + 512 < st.st_size; at += 512)
        write_at(model, at, noise, sizeof(noise));
}

static void expect_answer(struct shoal_engine *en, const struct answer *want)
{
    struct answer a = {0};
    struct shoal_error e = {0};
    int rc = generate(en, &a, &e);
    if (rc < 0)
        fail_msg("%d: %s", rc, e.msg);
    assert_int_equal(a.n, want->n);
    assert_memory_equal(a.tokens, want->tokens, sizeof(a.tokens));
}

/* Truncated and overwritten, between two tasks and in the middle of one; with the tiled weights in
 * a cache file and in memory. */
static void test_changed_model(void **state)
{
    (void)state;
    static void (*const harm[])(void) = {shrink_model, scribble_model};
    static char other[96];
    struct answer want = {0};
    snprintf(other, sizeof(other), "%s/other.gguf", dir);
    copy_file(model, other);
    struct shoal_engine *beside = open_model(other, true);
    assert_int_equal(generate(beside, &want, NULL), 0);
    for (int i = 0; i < 8; i++) {
        const bool cached = i & 1, inside = i & 2;
        struct shoal_error e = {0};
        struct answer a = {0};
        struct shoal_engine *en = open_model(model, cached);
        expect_answer(en, &want);
        if (inside)
            a.first = harm[i / 4];
        else
            harm[i / 4]();
        assert_int_equal(generate(en, &a, &e), SHOAL_ECHANGED);
        if (inside) { /* the task failed with it, and the next one is refused */
            assert_int_equal(a.code, SHOAL_ECHANGED);
            a.first = NULL;
            assert_int_equal(generate(en, &a, &e), SHOAL_ECHANGED);
        }
        assert_non_null(strstr(e.msg, model));
        assert_non_null(strstr(e.msg, "changed while it was in use: reload the model"));
        expect_answer(beside, &want); /* others do not notice */
        copy_file(other, model);
        assert_int_equal(generate(en, &a, &e), SHOAL_ECHANGED); /* it stays broken... */
        shoal_engine_close(en);
        en = open_model(model, cached); /* ...until it is loaded again */
        expect_answer(en, &want);
        shoal_engine_close(en);
    }
    shoal_engine_close(beside);
}

static int embed(struct shoal_engine *en, float *first, struct shoal_error *e)
{
    const struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_EMBED, .text = "the tide", .text_bytes = 8};
    struct shoal_task *t;
    int rc = shoal_infer_submit(en, &o, &t, e);
    if (rc < 0)
        return rc;
    rc = shoal_task_wait(t);
    *first = rc == 0 ? shoal_task_result(t)->vector[0] : 0;
    shoal_task_free(t);
    return rc;
}

static void test_truncated_folder(void **state)
{
    (void)state;
    char folder[96], weights[128];
    float before, after;
    struct shoal_error e = {0};
    snprintf(folder, sizeof(folder), "%s/bert", dir);
    snprintf(weights, sizeof(weights), "%s/model.safetensors", folder);
    copy_file(SHOAL_TEST_DATA "/encoders/bert", folder);
    struct shoal_engine *en = open_model(folder, true);
    assert_int_equal(embed(en, &before, &e), 0);
    assert_int_equal(truncate(weights, 100), 0);
    assert_int_equal(embed(en, &after, &e), SHOAL_ECHANGED);
    shoal_engine_close(en);
    copy_file(SHOAL_TEST_DATA "/encoders/bert/model.safetensors", weights);
    en = open_model(folder, true);
    assert_int_equal(embed(en, &after, &e), 0);
    assert_true(before == after);
    shoal_engine_close(en);
}

/* ---- the cache ------------------------------------------------------------------------------ */

/* The only file with this suffix. */
static void find_cache(char *path, size_t cap, const char *suffix)
{
    DIR *d = opendir(cache);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        size_t at = strlen(f->d_name), k = strlen(suffix);
        if (at > k && strcmp(f->d_name + at - k, suffix) == 0) {
            snprintf(path, cap, "%s/%s", cache, f->d_name);
            n++;
        }
    }
    closedir(d);
    assert_int_equal(n, 1);
}

static void zero_page(const char *path)
{
    static const char zeros[4096];
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    write_at(path, st.st_size / 2 / 4096 * 4096, zeros, sizeof(zeros));
}

static void flip_last_bit(const char *path)
{
    struct stat st;
    char c;
    assert_int_equal(stat(path, &st), 0);
    int fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, &c, 1, st.st_size - 1), 1);
    close(fd);
    c ^= 1;
    write_at(path, st.st_size - 1, &c, 1);
}

static void zero_factors(const char *path)
{
    static const char zeros[16];
    write_at(path, 8 + 8 + 8 + 8 + 8 + 4096, zeros, sizeof(zeros));
}

/* A factor that is possible but wrong. */
static void change_factor(const char *path)
{
    const float factor = 3.5f;
    write_at(path, 8 + 8 + 8 + 8 + 8 + 4096, &factor, sizeof(factor));
}

static void change_source(const char *path)
{
    write_at(path, 8 + 8 + 8 + 8 + 8, "!", 1);
}

static void cut_off(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
}

static void older_version(const char *path)
{
    write_at(path, 0, "SHOALPK2", 8);
}

static void empty_it(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void test_damaged_cache(void **state)
{
    (void)state;
    static void (*const damage[])(const char *) = {zero_page,     flip_last_bit, zero_factors,
                                                   change_factor, change_source, cut_off,
                                                   older_version, empty_it};
    struct answer want = {0};
    char tiles[256];
    struct shoal_engine *en = open_model(model, true);
    assert_false(from_cache(en));
    assert_int_equal(generate(en, &want, NULL), 0);
    shoal_engine_close(en);
    for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        en = open_model(model, true);
        assert_true(from_cache(en)); /* a complete one is used */
        expect_answer(en, &want);
        shoal_engine_close(en);
        find_cache(tiles, sizeof(tiles), ".tiles");
        damage[i](tiles);
        en = open_model(model, true);
        if (from_cache(en))
            fail_msg("damage %zu was not found", i);
        expect_answer(en, &want);
        shoal_engine_close(en);
    }
}

/* A record of verified files does not hide later damage. */
static void test_damage_after_verification(void **state)
{
    (void)state;
    struct answer want = {0};
    char tiles[256], note[300];
    struct shoal_engine *en = open_model(model, true);
    assert_int_equal(generate(en, &want, NULL), 0);
    shoal_engine_close(en);
    for (int tries = 0; tries < 100; tries++) { /* the note waits until the file is older */
        shoal_engine_close(open_model(model, true));
        find_cache(tiles, sizeof(tiles), ".tiles");
        snprintf(note, sizeof(note), "%s.ok", tiles);
        if (access(note, F_OK) == 0)
            break;
        usleep(100000);
    }
    assert_int_equal(access(note, F_OK), 0);
    en = open_model(model, true);
    assert_true(from_cache(en));
    shoal_engine_close(en);
    zero_page(tiles);
    en = open_model(model, true);
    assert_false(from_cache(en));
    expect_answer(en, &want);
    shoal_engine_close(en);
}

static void test_cache_changed_while_in_use(void **state)
{
    (void)state;
    static void (*const damage[])(const char *) = {zero_page, cut_off, empty_it};
    struct answer want = {0}, a = {0};
    struct shoal_error e = {0};
    char tiles[256];
    struct shoal_engine *en = open_model(model, true);
    assert_int_equal(generate(en, &want, NULL), 0);
    shoal_engine_close(en);
    for (size_t i = 0; i < 3; i++) {
        en = open_model(model, true);
        find_cache(tiles, sizeof(tiles), ".tiles");
        damage[i](tiles);
        assert_int_equal(generate(en, &a, &e), SHOAL_ECHANGED);
        shoal_engine_close(en);
        en = open_model(model, true);
        expect_answer(en, &want);
        shoal_engine_close(en);
    }
}

/* ---- other files ---------------------------------------------------------------------------- */

static void test_no_regular_file(void **state)
{
    (void)state;
    char path[128], folder[96];
    struct shoal_engine *en;
    struct shoal_error e = {0};
    snprintf(path, sizeof(path), "%s/fifo.gguf", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)alarm(60); /* a FIFO without a writer would block forever */
    assert_true(shoal_engine_open(&en, path, NULL, &e) < 0);
    assert_non_null(strstr(e.msg, "not a regular file"));
    assert_true(shoal_engine_open(&en, "/dev/zero", NULL, &e) < 0);
    assert_non_null(strstr(e.msg, "not a regular file"));
    snprintf(folder, sizeof(folder), "%s/bert", dir);
    static const char *const files[] = {"config.json", "model.safetensors",
                                        "tokenizer_config.json"};
    for (size_t i = 0; i < 3; i++) {
        copy_file(SHOAL_TEST_DATA "/encoders/bert", folder);
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        if (shoal_engine_open(&en, folder, NULL, &e) == 0 || !strstr(e.msg, "regular file"))
            fail_msg("%s: %s", files[i], e.msg);
        char command[128];
        snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
    }
    (void)alarm(0);
}

/* Sets the first block of a tensor to a non-finite value, whatever its type. */
static void spoil(const char *tensor, uint64_t row)
{
    struct model_file *g;
    struct err e = {0};
    uint8_t ones[512];
    memset(ones, 0xff, sizeof(ones));
    assert_int_equal(model_open(&g, model, &e), 0);
    const struct model_file_tensor *t = model_file_find_tensor(g, tensor);
    assert_non_null(t);
    const struct quant_info *q = quant_info(t->type);
    off_t at =
        (off_t)(t->data - t->map->bytes) + (off_t)(row * (t->dims[0] / q->block) * q->block_bytes);
    model_file_close(g);
    struct stat st;
    char file[128];
    bool folder = stat(model, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(file, sizeof(file), "%s%s", model, folder ? "/model.safetensors" : "");
    write_at(file, at, ones, q->block_bytes);
}

static void test_weights_that_are_not_finite(void **state)
{
    (void)state;
    static const char *const tensors[] = {"blk.0.attn_norm.weight", "blk.1.ffn_up.weight",
                                          "output_norm.weight", "blk.0.attn_q.weight"};
    struct shoal_engine *en;
    struct shoal_error e = {0};
    const struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = cache, .n_threads = 1};
    for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++)
        for (int again = 0; again < 2; again++) { /* the second load fails too */
            spoil(tensors[i], 0);
            assert_int_equal(shoal_engine_open(&en, model, &o, &e), SHOAL_EFORMAT);
            if (!strstr(e.msg, tensors[i]) || !strstr(e.msg, "not finite"))
                fail_msg("%s: %s", tensors[i], e.msg);
            if (again)
                copy_file(SHOAL_TEST_DATA "/refs/llama-gqa.gguf", model);
        }
}

/* A row of the embedding is read when its token occurs: the task fails, others continue. */
static void test_embedding_that_is_not_finite(void **state)
{
    (void)state;
    struct answer a = {0};
    struct shoal_error e = {0};
    copy_file(SHOAL_TEST_DATA "/refs/llama-linear.gguf", model);
    struct model_file *g;
    assert_int_equal(model_open(&g, model, &e), 0);
    bool tied = model_file_find_tensor(g, "output.weight") == NULL;
    model_file_close(g);
    spoil("token_embd.weight", 77);
    if (tied) { /* then the same row is a row of the output */
        struct shoal_engine *en = NULL;
        const struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
        assert_int_equal(shoal_engine_open(&en, model, &o, &e), SHOAL_EFORMAT);
        assert_non_null(strstr(e.msg, "token_embd.weight"));
        return;
    }
    struct shoal_engine *en = open_model(model, false);
    assert_int_equal(generate(en, &a, &e), SHOAL_ENOTFINITE);
    assert_int_equal(a.n, 0);
    shoal_engine_close(en);
}

/* Encoders and T5: a bad weight is refused by name when the model is opened; a row of the
 * embedding that only some texts need fails their tasks, also where the answer would be an empty
 * list. */
static void test_specialists_that_are_not_finite(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *tensor;
        uint64_t row; /* of a token that occurs in every text */
        enum shoal_kind kind;
        bool at_load;
    } cases[] = {
        {"encoders/bert-cls", "blk.0.ffn_up.weight", 0, SHOAL_KIND_CLASSIFY, true},
        {"encoders/bert-cls", "token_embd.weight", 2, SHOAL_KIND_CLASSIFY, false},
        {"encoders/bert-tag", "blk.0.attn_q.weight", 0, SHOAL_KIND_TAG, true},
        {"encoders/bert-tag", "token_embd.weight", 2, SHOAL_KIND_TAG, false},
        {"encoders/bert", "token_embd_norm.weight", 0, SHOAL_KIND_EMBED, true},
        {"encoders/bert", "token_embd.weight", 2, SHOAL_KIND_EMBED, false},
        {"encoders/distilbert-cls", "token_embd.weight", 2, SHOAL_KIND_CLASSIFY, false},
        {"t5/t5-relu", "token_embd.weight", 1, SHOAL_KIND_SUMMARIZE, true}, /* also the output */
        {"t5/t5-relu", "enc.blk.0.ffn_up.weight", 0, SHOAL_KIND_SUMMARIZE, true},
        {"t5/t5-gated", "token_embd.weight", 1, SHOAL_KIND_SUMMARIZE, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char from[256], command[128];
        struct shoal_engine *en = NULL;
        struct shoal_error e = {0};
        struct shoal_task *t = NULL;
        const struct shoal_engine_opts o = {.size = sizeof(o), .cache_dir = "", .n_threads = 1};
        snprintf(command, sizeof(command), "rm -rf %s", model);
        assert_int_equal(system(command), 0);
        snprintf(from, sizeof(from), "%s/%s", SHOAL_TEST_DATA, cases[i].folder);
        copy_file(from, model);
        spoil(cases[i].tensor, cases[i].row);
        int rc = shoal_engine_open(&en, model, &o, &e);
        if (cases[i].at_load) {
            if (rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].tensor) ||
                !strstr(e.msg, "not finite"))
                fail_msg("%s, %s: %d %s", cases[i].folder, cases[i].tensor, rc, e.msg);
            continue;
        }
        if (rc < 0)
            fail_msg("%s: %s", cases[i].folder, e.msg);
        const struct shoal_infer_opts task = {
            .size = sizeof(task), .kind = cases[i].kind, .text = "a b c", .text_bytes = 5};
        if (shoal_infer_submit(en, &task, &t, &e) < 0)
            fail_msg("%s: %s", cases[i].folder, e.msg);
        rc = shoal_task_wait(t);
        if (rc != SHOAL_ENOTFINITE)
            fail_msg("%s, %s: %d", cases[i].folder, cases[i].tensor, rc);
        shoal_task_free(t);
        shoal_engine_close(en);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changed_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncated_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_cache, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_after_verification, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cache_changed_while_in_use, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_regular_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_weights_that_are_not_finite, setup, teardown),
        cmocka_unit_test_setup_teardown(test_embedding_that_is_not_finite, setup, teardown),
        cmocka_unit_test_setup_teardown(test_specialists_that_are_not_finite, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
