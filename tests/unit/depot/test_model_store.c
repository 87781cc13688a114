/* test_model_store.c - the folder of models by SHA-256: intakes are verified, resume after an
 * interruption, and models are evicted in order of last use. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "depot/store/model_intake.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_put.h"
#include "depot/store/model_store.h"
#include "host/hash_memo.h"

static char dir[] = "/tmp/test_model_store.XXXXXX";
static const _Atomic bool go_on = false;
static unsigned n_stores;

static const char *at(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned turn;
    char *out = paths[turn++ & 3];
    snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return out;
}

static void write_file(const char *name, const void *p, size_t n)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", at(name));
    for (char *c = path + strlen(dir) + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            mkdir(path, 0755);
            *c = '/';
        }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

/* A separate store for every test. */
static struct model_store *new_store(uint64_t max_bytes)
{
    char name[32];
    struct model_store *s;
    struct err e = {0};
    snprintf(name, sizeof(name), "store-%u", n_stores++);
    const struct model_store_opts o = {
        .dir = at(name), .max_bytes = max_bytes, .memo_dir = at("memo")};
    if (model_store_open(&s, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static void hash_of(uint8_t out[SHA256_BYTES], const void *p, size_t n)
{
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, p, n);
    assert_true(sha256_end(&s, out));
}

static void put(struct model_store *s, const char *path, uint8_t sum[SHA256_BYTES])
{
    struct err e = {0};
    if (model_put(s, path, NULL, sum, &go_on, &e) < 0)
        fail_msg("%s", e.msg);
}

static void assert_content(const char *path, const void *p, size_t n)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(file_read(path, &b, NULL), 0);
    assert_int_equal(b.len, n);
    assert_memory_equal(buf_str(&b), p, n);
    buf_fini(&b);
}

/* ---- manifests ---- */

static void test_names(void **state)
{
    static const struct {
        const char *name;
        bool ok;
    } cases[] = {
        {"reply.gguf", true},
        {"onnx/model.onnx", true},
        {"../config.json", true},
        {"a b.json", true},
        {"", false},
        {"/etc/passwd", false},
        {"../../etc/passwd", false},
        {"a/../b", false},
        {"a//b", false},
        {"a/", false},
        {".hidden", false},
        {"a/.hidden", false},
        {"..", false},
        {"a\nb", false},
        {"a\\b", false},
        {"1/2/3/4/5/6/7", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (model_manifest_name_ok(cases[i].name) != cases[i].ok)
            fail_msg("'%s'", cases[i].name);
}

static void test_foreign_manifests(void **state)
{
#define SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" /* of "hello" */
    static const struct {
        const char *why, *json;
        int rc;
    } cases[] = {
        {"one file",
         "{\"shoal_manifest\":1,\"files\":[{\"name\":\"m.gguf\",\"bytes\":5,\"sha256\":\"" SUM
         "\"}]}",
         0},
        {"another version", "{\"shoal_manifest\":2,\"files\":[]}", SHOAL_EFORMAT},
        {"no files", "{\"shoal_manifest\":1,\"files\":[]}", SHOAL_EFORMAT},
        {"another model",
         "{\"shoal_manifest\":1,\"folder\":true,\"files\":[{\"name\":\"m\",\"bytes\":5,\"sha256\":"
         "\"" SUM "\"}]}",
         SHOAL_EFORMAT},
        {"a path outside",
         "{\"shoal_manifest\":1,\"files\":[{\"name\":\"../m\",\"bytes\":5,\"sha256\":\"" SUM
         "\"}]}",
         SHOAL_EFORMAT},
        {"a size below zero",
         "{\"shoal_manifest\":1,\"files\":[{\"name\":\"m\",\"bytes\":-5,\"sha256\":\"" SUM "\"}]}",
         SHOAL_EFORMAT},
        {"a short hash",
         "{\"shoal_manifest\":1,\"files\":[{\"name\":\"m\",\"bytes\":5,\"sha256\":\"2cf2\"}]}",
         SHOAL_EFORMAT},
        {"an .onnx file is never alone",
         "{\"shoal_manifest\":1,\"files\":[{\"name\":\"m.onnx\",\"bytes\":5,\"sha256\":\"" SUM
         "\"}]}",
         SHOAL_EFORMAT},
    };
    uint8_t model[SHA256_BYTES];
    (void)state;
    assert_true(sha256_read_hex(model, SUM));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_manifest m;
        struct err e = {0};
        model_manifest_init(&m);
        int rc = model_manifest_read(&m, cases[i].json, strlen(cases[i].json), model, &e);
        if (rc != cases[i].rc)
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
        model_manifest_fini(&m);
    }
}

static void test_files_that_are_folders_too(void **state)
{
    struct model_manifest m;
    uint8_t sum[SHA256_BYTES] = {0};
    (void)state;
    model_manifest_init(&m);
    assert_int_equal(model_manifest_add(&m, "a", 1, sum, NULL), 0);
    assert_int_equal(model_manifest_add(&m, "a-b", 1, sum, NULL), 0);
    assert_int_equal(model_manifest_add(&m, "a/c", 1, sum, NULL), 0);
    struct identity id = identity_of_folder(m.files, m.n_files);
    assert_int_equal(model_manifest_finish(&m, true, "", id.sum, NULL), SHOAL_EFORMAT);
    model_manifest_fini(&m);
}

/* ---- in and out ---- */

static void test_put_and_find(void **state)
{
    struct model_store *s = new_store(0);
    struct model_store_entry *list;
    uint8_t sum[SHA256_BYTES], want[SHA256_BYTES], memo[SHA256_BYTES];
    char path[PATH_MAX];
    struct stat st;
    size_t n;
    (void)state;
    write_text("m.gguf", "hello");
    hash_of(want, "hello", 5);
    assert_int_equal(model_store_find(s, want, path, NULL), SHOAL_ENOTFOUND);
    put(s, at("m.gguf"), sum);
    assert_memory_equal(sum, want, SHA256_BYTES);
    assert_int_equal(model_store_find(s, sum, path, NULL), 0);
    assert_string_equal(strrchr(path, '/'), "/m.gguf");
    assert_content(path, "hello", 5);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0444);
    assert_true(hash_memo_get(at("memo"), &st, memo)); /* not hashed again on load */
    assert_memory_equal(memo, want, SHA256_BYTES);
    assert_int_equal(model_store_verify(s, sum, &go_on, NULL), 0);
    put(s, at("m.gguf"), sum); /* no effect */
    assert_int_equal(model_store_list(s, &list, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(list[0].bytes, 5);
    assert_string_equal(list[0].open, "m.gguf");
    assert_false(list[0].pinned || list[0].incoming || list[0].damaged);
    mem_free(list);
    assert_int_equal(model_store_remove(s, sum, NULL), 0);
    assert_int_equal(model_store_find(s, sum, path, NULL), SHOAL_ENOTFOUND);
    assert_int_equal(model_store_remove(s, sum, NULL), SHOAL_ENOTFOUND);
    model_store_close(s);
}

static void test_put_another_model_than_wanted(void **state)
{
    struct model_store *s = new_store(0);
    uint8_t sum[SHA256_BYTES], want[SHA256_BYTES] = {1};
    struct err e = {0};
    (void)state;
    write_text("m.gguf", "hello");
    assert_int_equal(model_put(s, at("m.gguf"), want, sum, &go_on, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "2cf24dba"));
    model_store_close(s);
}

/* A model opened in the store has the identity of the original. */
static void check_same_identity(struct model_store *s, const char *original)
{
    uint8_t sum[SHA256_BYTES];
    char path[PATH_MAX];
    struct identity_list *l;
    struct identity id;
    put(s, original, sum);
    assert_int_equal(model_store_find(s, sum, path, NULL), 0);
    assert_int_equal(identity_list(&l, path, NULL), 0);
    assert_int_equal(identity_read(&id, l, NULL, &go_on, NULL), 0);
    identity_list_free(l);
    assert_memory_equal(id.sum, sum, SHA256_BYTES);
    assert_int_equal(model_store_verify(s, sum, &go_on, NULL), 0);
}

static void test_folders(void **state)
{
    struct model_store *s = new_store(0);
    (void)state;
    write_text("hf/config.json", "{}");
    write_text("hf/model.safetensors", "weights");
    write_text("hf/sub/tokenizer.json", "tokens");
    write_text("hf/README.md", "not part of the model");
    check_same_identity(s, at("hf"));
    write_text("ox/onnx/model.onnx", "graph");
    write_text("ox/onnx/model.onnx_data", "weights");
    write_text("ox/config.json", "{}");
    write_text("ox/tokenizer.json", "{}");
    check_same_identity(s, at("ox/onnx/model.onnx")); /* settings one folder above */
    write_text("flat/m.onnx", "graph");
    write_text("flat/vocab.txt", "a");
    check_same_identity(s, at("flat/m.onnx"));
    model_store_close(s);
}

static void test_damage_is_found(void **state)
{
    struct model_store *s = new_store(0);
    struct err e = {0};
    uint8_t sum[SHA256_BYTES];
    char path[PATH_MAX];
    (void)state;
    write_text("m.gguf", "hello world");
    put(s, at("m.gguf"), sum);
    assert_int_equal(model_store_find(s, sum, path, NULL), 0);
    assert_int_equal(chmod(path, 0644), 0);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fputc('J', f);
    fclose(f);
    assert_int_equal(model_store_verify(s, sum, &go_on, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "m.gguf"));
    assert_int_equal(truncate(path, 3), 0);
    assert_int_equal(model_store_find(s, sum, path, &e), SHOAL_ENOTFOUND);
    assert_non_null(strstr(e.msg, "the wrong size"));
    model_store_close(s);
}

/* ---- intakes ---- */

/* An intake of one file of these bytes, with its manifest. */
static struct model_intake *begin(struct model_store *s, const void *p, size_t n,
                                  uint8_t sum[SHA256_BYTES])
{
    struct model_manifest m;
    struct model_intake *k;
    struct err e = {0};
    hash_of(sum, p, n);
    if (model_intake_open(&k, s, sum, &go_on, &e) < 0)
        fail_msg("%s", e.msg);
    if (!model_intake_manifest(k)) {
        model_manifest_init(&m);
        assert_int_equal(model_manifest_single(&m, "m.gguf", n, sum, NULL), 0);
        if (model_intake_set_manifest(k, &m, &e) < 0)
            fail_msg("%s", e.msg);
    }
    return k;
}

static void test_resume(void **state)
{
    struct model_store *s = new_store(0);
    uint8_t sum[SHA256_BYTES];
    char path[PATH_MAX];
    uint64_t offset;
    uint32_t file;
    (void)state;
    struct model_intake *k = begin(s, "hello world", 11, sum);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(offset, 0);
    assert_int_equal(model_intake_write(k, "one", "hello", 5, NULL), 0);
    model_intake_close(k);

    k = begin(s, "hello world", 11, sum);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(offset, 5);
    assert_int_equal(model_intake_bytes(k), 5);
    assert_int_equal(model_intake_finish(k, NULL), SHOAL_ECHANGED); /* too early: kept */
    assert_int_equal(model_intake_write(k, "two", " world", 6, NULL), 0);
    assert_true(model_intake_mixed(k));
    assert_int_equal(model_intake_write(k, "two", "!", 1, NULL), SHOAL_ECHANGED);
    assert_int_equal(model_intake_finish(k, NULL), 0);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 0);
    assert_int_equal(model_intake_commit(k, path, NULL), 0);
    model_intake_close(k);
    assert_content(path, "hello world", 11);
    model_store_close(s);
}

/* A process that is killed closes nothing. */
static void test_resume_after_kill(void **state)
{
    static uint8_t bytes[2 << 20];
    struct model_store *s = new_store(0);
    uint8_t sum[SHA256_BYTES];
    uint64_t offset;
    uint32_t file;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct model_intake *k = begin(s, bytes, sizeof(bytes), sum);
        bool ok = model_intake_next(k, &file, &offset, NULL) == 1 &&
                  model_intake_write(k, "one", bytes, 1 << 20, NULL) == 0;
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct model_intake *k = begin(s, bytes, sizeof(bytes), sum);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(offset, 1 << 20);
    model_intake_discard(k);
    model_store_close(s);
}

/* After a machine crash, unsynced data does not count. */
static void test_resume_after_reboot(void **state)
{
    struct model_store *s = new_store(0);
    uint8_t sum[SHA256_BYTES];
    char path[PATH_MAX + 16], hex[2 * SHA256_BYTES + 1];
    uint64_t offset;
    uint32_t file;
    (void)state;
    struct model_intake *k = begin(s, "hello world", 11, sum);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(model_intake_write(k, "one", "hello wo", 8, NULL), 0);
    model_intake_close(k);
    sha256_hex(hex, sum);
    snprintf(path, sizeof(path), "%s/incoming/%s/progress", model_store_dir(s), hex);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("shoal part 1 0 00000000-0000-0000-0000-000000000000 5 0 one\n", f);
    fclose(f);
    k = begin(s, "hello world", 11, sum);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(offset, 5);
    model_intake_close(k);
    f = fopen(path, "w"); /* damaged: discarded */
    assert_non_null(f);
    fputs("shoal part 1 7", f);
    fclose(f);
    k = begin(s, "hello world", 11, sum);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(offset, 0);
    model_intake_discard(k);
    model_store_close(s);
}

static void test_wrong_bytes(void **state)
{
    struct model_store *s = new_store(0);
    struct err e = {0};
    uint8_t sum[SHA256_BYTES];
    char path[PATH_MAX];
    uint64_t offset;
    uint32_t file;
    (void)state;
    struct model_intake *k = begin(s, "hello world", 11, sum);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(model_intake_write(k, "liar", "hello w0rld", 11, NULL), 0);
    assert_int_equal(model_intake_finish(k, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "m.gguf"));
    assert_false(model_intake_mixed(k)); /* a single sender: it is the liar */
    assert_int_equal(model_intake_commit(k, path, NULL), SHOAL_EINVAL);
    assert_int_equal(model_intake_next(k, &file, &offset, NULL), 1);
    assert_int_equal(offset, 0); /* it starts over */
    assert_int_equal(model_intake_write(k, "honest", "hello world", 11, NULL), 0);
    assert_int_equal(model_intake_finish(k, NULL), 0);
    assert_int_equal(model_intake_commit(k, path, NULL), 0);
    model_intake_close(k);
    model_store_close(s);
}

static void test_one_intake_at_a_time(void **state)
{
    struct model_store *s = new_store(0);
    struct model_intake *k, *other;
    struct err e = {0};
    uint8_t sum[SHA256_BYTES];
    (void)state;
    k = begin(s, "hello", 5, sum);
    assert_int_equal(model_intake_open(&other, s, sum, &go_on, &e), SHOAL_EBUSY);
    assert_int_equal(model_store_remove(s, sum, &e), SHOAL_EBUSY);
    model_intake_close(k);
    assert_int_equal(model_store_remove(s, sum, &e), 0);
    model_store_close(s);
}

static void test_a_lie_about_what_to_open(void **state)
{
    struct model_store *s = new_store(0);
    struct model_manifest m;
    struct model_intake *k;
    struct err e = {0};
    uint8_t sum[SHA256_BYTES];
    char path[PATH_MAX];
    uint64_t offset;
    uint32_t file;
    (void)state;
    model_manifest_init(&m);
    hash_of(sum, "x", 1); /* two .onnx files: opening just one gives a different model */
    assert_int_equal(model_manifest_add(&m, "a.onnx", 1, sum, NULL), 0);
    assert_int_equal(model_manifest_add(&m, "b.onnx", 1, sum, NULL), 0);
    struct identity id = identity_of_folder(m.files, m.n_files);
    assert_int_equal(model_manifest_finish(&m, true, "a.onnx", id.sum, NULL), 0);
    assert_int_equal(model_intake_open(&k, s, id.sum, &go_on, NULL), 0);
    assert_int_equal(model_intake_set_manifest(k, &m, NULL), 0);
    while (model_intake_next(k, &file, &offset, NULL) == 1) {
        assert_int_equal(model_intake_write(k, "one", "x", 1, NULL), 0);
        assert_int_equal(model_intake_finish(k, NULL), 0);
    }
    assert_int_equal(model_intake_commit(k, path, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "a.onnx"));
    assert_null(model_intake_manifest(k));
    model_intake_discard(k);
    model_store_close(s);
}

/* ---- room ---- */

static void fill(const char *name, char c, size_t n)
{
    char *p = mem_alloc(n);
    assert_non_null(p);
    memset(p, c, n);
    write_file(name, p, n);
    mem_free(p);
}

/* Last used this many seconds ago. */
static void age(struct model_store *s, const uint8_t sum[SHA256_BYTES], time_t seconds)
{
    char path[PATH_MAX + 16], hex[2 * SHA256_BYTES + 1];
    const struct timespec then = {.tv_sec = time(NULL) - seconds};
    const struct timespec times[2] = {then, then};
    sha256_hex(hex, sum);
    snprintf(path, sizeof(path), "%s/models/%s/used", model_store_dir(s), hex);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_least_recently_used_goes(void **state)
{
    struct model_store *s = new_store(3000);
    struct model_store_pin *pin;
    struct model_store_swept swept;
    struct err e = {0};
    uint8_t a[SHA256_BYTES], b[SHA256_BYTES], c[SHA256_BYTES], d[SHA256_BYTES];
    char path[PATH_MAX];
    (void)state;
    fill("a.gguf", 'a', 1000);
    fill("b.gguf", 'b', 1000);
    fill("c.gguf", 'c', 1000);
    fill("d.gguf", 'd', 1500);
    put(s, at("a.gguf"), a);
    put(s, at("b.gguf"), b);
    put(s, at("c.gguf"), c);
    age(s, a, 300);
    age(s, b, 200);
    age(s, c, 100);
    assert_int_equal(model_store_pin(s, a, &pin, NULL), 0); /* the oldest, but in use */
    age(s, a, 300);
    put(s, at("d.gguf"), d); /* needs 1500: b and c are evicted */
    assert_int_equal(model_store_find(s, a, path, NULL), 0);
    assert_int_equal(model_store_find(s, b, path, NULL), SHOAL_ENOTFOUND);
    assert_int_equal(model_store_find(s, c, path, NULL), SHOAL_ENOTFOUND);
    assert_int_equal(model_store_find(s, d, path, NULL), 0);
    assert_int_equal(model_store_remove(s, a, &e), SHOAL_EBUSY);
    /* more than fits beside the pinned model: refused, and nothing is evicted for it */
    assert_int_equal(model_store_sweep(s, NULL, 2500, &swept, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "store_limit"));
    assert_int_equal(model_store_find(s, d, path, NULL), 0);
    model_store_unpin(pin);
    assert_int_equal(model_store_sweep(s, NULL, 2500, &swept, &e), 0);
    assert_int_equal(swept.n_models, 2);
    model_store_close(s);
}

static void test_full_disk(void **state)
{
    struct model_store *s = new_store(0);
    struct rlimit old, small = {.rlim_cur = 65536};
    static char bytes[100000];
    struct model_intake *k;
    struct err e = {0};
    uint8_t sum[SHA256_BYTES], other[SHA256_BYTES];
    char path[PATH_MAX];
    uint64_t offset;
    uint32_t file;
    (void)state;
    write_text("m.gguf", "hello");
    put(s, at("m.gguf"), other);
    k = begin(s, bytes, sizeof(bytes), sum);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = model_intake_next(k, &file, &offset, &e);
    if (rc == 1)
        rc = model_intake_write(k, "one", bytes, sizeof(bytes), &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(rc, SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "no room"));
    assert_int_equal(model_intake_bytes(k), 0); /* the disk is not left full */
    assert_int_equal(model_store_find(s, other, path, NULL), 0);
    /* there is space again */
    assert_int_equal(model_intake_next(k, &file, &offset, &e), 1);
    assert_int_equal(offset, 0);
    assert_int_equal(model_intake_write(k, "one", bytes, sizeof(bytes), &e), 0);
    assert_int_equal(model_intake_finish(k, &e), 0);
    assert_int_equal(model_intake_commit(k, path, &e), 0);
    model_intake_close(k);
    model_store_close(s);
}

static void test_more_than_the_disk_has(void **state)
{
    struct model_store *s = new_store(0);
    struct model_manifest m;
    struct model_intake *k;
    struct err e = {0};
    uint8_t sum[SHA256_BYTES] = {7};
    (void)state;
    model_manifest_init(&m);
    assert_int_equal(model_manifest_single(&m, "m.gguf", (uint64_t)1 << 49, sum, NULL), 0);
    assert_int_equal(model_intake_open(&k, s, sum, &go_on, NULL), 0);
    assert_int_equal(model_intake_set_manifest(k, &m, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "disk"));
    model_intake_discard(k);
    model_store_close(s);
}

/* ---- out of memory ---- */

static void test_no_memory(void **state)
{
    (void)state;
    write_text("hf/config.json", "{}");
    write_text("hf/model.safetensors", "weights");
    for (uint64_t i = 1;; i++) {
        struct model_store *s = new_store(0);
        uint8_t sum[SHA256_BYTES];
        struct err e = {0};
        mem_fail_at(i);
        int rc = model_put(s, at("hf"), NULL, sum, &go_on, &e);
        mem_fail_at(0);
        model_store_close(s);
        if (rc == 0)
            break;
        if (rc != SHOAL_ENOMEM)
            fail_msg("allocation %d: %d %s", (int)i, rc, e.msg);
    }
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    model_store_delete_tree(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_foreign_manifests),
        cmocka_unit_test(test_files_that_are_folders_too),
        cmocka_unit_test(test_put_and_find),
        cmocka_unit_test(test_put_another_model_than_wanted),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_damage_is_found),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_after_kill),
        cmocka_unit_test(test_resume_after_reboot),
        cmocka_unit_test(test_wrong_bytes),
        cmocka_unit_test(test_one_intake_at_a_time),
        cmocka_unit_test(test_a_lie_about_what_to_open),
        cmocka_unit_test(test_least_recently_used_goes),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_more_than_the_disk_has),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
