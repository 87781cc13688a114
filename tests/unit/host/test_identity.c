/* test_identity.c - a model's identity is its bytes: the same everywhere, different after any
 * change. */
#include <fcntl.h>
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

#include "host/hash_memo.h"
#include "host/identity.h"
#include "host/pack.h"

static char dir[] = "/tmp/test_identity.XXXXXX";
static const _Atomic bool go_on;

static const char *at(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *out = paths[next++ % 8];
    snprintf(out, sizeof(paths[0]), "%s/%s", dir, name);
    return out;
}

static void write_file(const char *name, const char *text, time_t changed)
{
    const char *path = at(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    const struct timespec times[2] = {{changed, 0}, {changed, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static struct identity read_path(const char *path, const char *cache_dir)
{
    struct identity_list *l;
    struct identity id;
    struct err e = {0};
    if (identity_list(&l, path, &e) < 0 || identity_read(&id, l, cache_dir, &go_on, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    identity_list_free(l);
    assert_int_equal(id.kind, IDENTITY_CONTENT);
    assert_int_equal(strncmp(id.version, "fp_", 3), 0);
    assert_int_equal(strlen(id.version), 15);
    return id;
}

static struct identity local_of(const char *path)
{
    struct identity_list *l;
    assert_int_equal(identity_list(&l, path, NULL), 0);
    struct identity id = identity_local(l);
    identity_list_free(l);
    assert_int_equal(id.kind, IDENTITY_LOCAL);
    assert_string_equal(id.version, "");
    return id;
}

static bool equal(struct identity a, struct identity b)
{
    return memcmp(a.sum, b.sum, sizeof(a.sum)) == 0;
}

static void test_a_file_is_its_content(void **state)
{
    uint8_t abc[SHA256_BYTES];
    (void)state;
    assert_true(sha256_read_hex(abc, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f2"
                                     "0015ad"));
    write_file("a.gguf", "abc", 1000);
    write_file("b.gguf", "abc", 2000);
    write_file("c.gguf", "abd", 1000);
    struct identity a = read_path(at("a.gguf"), NULL);
    assert_memory_equal(a.sum, abc, sizeof(abc));
    assert_string_equal(a.version, "fp_ba7816bf8f01");
    assert_true(equal(a, read_path(at("b.gguf"), NULL)));
    assert_false(equal(a, read_path(at("c.gguf"), NULL)));
    assert_false(equal(local_of(at("a.gguf")), local_of(at("b.gguf"))));
    assert_true(equal(local_of(at("a.gguf")), local_of(at("a.gguf"))));
    struct identity before = local_of(at("a.gguf"));
    write_file("a.gguf", "abc", 1001); /* only the time differs */
    assert_false(equal(before, local_of(at("a.gguf"))));
    assert_true(equal(a, read_path(at("a.gguf"), NULL)));
}

static void make_folder(const char *name, const char *weights, time_t changed)
{
    char path[64];
    static const char *const files[][2] = {{"config.json", "{}"},
                                           {"sub/labels.txt", "x"},
                                           {"README.md", "not part of it"},
                                           {".hidden", "nor this"}};
    mkdir(at(name), 0700);
    snprintf(path, sizeof(path), "%s/sub", name);
    mkdir(at(path), 0700);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", name, files[i][0]);
        write_file(path, files[i][1], changed);
    }
    snprintf(path, sizeof(path), "%s/model.safetensors", name);
    write_file(path, weights, changed);
}

static void test_a_folder_is_names_and_contents(void **state)
{
    (void)state;
    make_folder("one", "weights", 1000);
    make_folder("two", "weights", 2000);
    make_folder("three", "Weights", 1000);
    struct identity one = read_path(at("one"), NULL);
    assert_true(equal(one, read_path(at("one/"), NULL)));
    assert_true(equal(one, read_path(at("two"), NULL)));
    assert_false(equal(one, read_path(at("three"), NULL)));
    write_file("two/README.md", "other words", 3000);
    write_file("two/.hidden", "other", 3000);
    assert_true(equal(one, read_path(at("two"), NULL)));
    assert_int_equal(rename(at("two/sub/labels.txt"), at("two/sub/label.txt")), 0);
    assert_false(equal(one, read_path(at("two"), NULL)));
    assert_int_equal(rename(at("two/sub/label.txt"), at("two/sub/labels.txt")), 0);
    assert_true(equal(one, read_path(at("two"), NULL)));
    write_file("two/extra.json", "", 3000);
    assert_false(equal(one, read_path(at("two"), NULL)));
}

/* An .onnx file includes the files that the engine reads with it, wherever they are. */
static void test_an_onnx_file_has_documents(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const root = i ? "p" : "o";
        char path[64];
        mkdir(at(root), 0700);
        snprintf(path, sizeof(path), "%s/onnx", root);
        mkdir(at(path), 0700);
        snprintf(path, sizeof(path), "%s/onnx/m.onnx", root);
        write_file(path, "graph", 1000 + i);
        snprintf(path, sizeof(path), "%s/onnx/m.onnx_data", root);
        write_file(path, "data", 1000 + i);
        snprintf(path, sizeof(path), "%s/config.json", root);
        write_file(path, "{}", 1000 + i);
    }
    write_file("p/onnx/other.onnx", "another model", 1000);
    struct identity o = read_path(at("o/onnx/m.onnx"), NULL);
    assert_true(equal(o, read_path(at("p/onnx/m.onnx"), NULL)));
    write_file("p/config.json", "{ }", 1000);
    assert_false(equal(o, read_path(at("p/onnx/m.onnx"), NULL)));
    write_file("p/config.json", "{}", 1000);
    write_file("p/onnx/m.onnx_data", "DATA", 1000);
    assert_false(equal(o, read_path(at("p/onnx/m.onnx"), NULL)));
    write_file("alone.onnx", "graph", 1000); /* next to many unrelated files */
    struct identity alone = read_path(at("alone.onnx"), NULL);
    write_file("c.gguf", "abe", 1000);
    assert_true(equal(alone, read_path(at("alone.onnx"), NULL)));
}

static void test_known_hashes_are_not_read_again(void **state)
{
    struct identity_list *l;
    struct stat st;
    uint8_t sum[SHA256_BYTES];
    (void)state;
    write_file("m.gguf", "abc", 1000);
    struct identity m = read_path(at("m.gguf"), NULL);
    struct pack_file file = {.path = strdup(at("m.gguf")), .bytes = 3};
    const struct pack_model verified = {.files = &file, .n_files = 1};
    memcpy(file.sha256, m.sum, sizeof(m.sum));
    assert_int_equal(identity_list(&l, at("m.gguf"), NULL), 0);
    assert_int_equal(identity_known(l, NULL, NULL).kind, IDENTITY_NONE);
    assert_true(equal(identity_known(l, NULL, &verified), m));
    identity_list_free(l);
    free(file.path);

    assert_int_equal(stat(at("m.gguf"), &st), 0);
    hash_memo_put(dir, &st, m.sum); /* its ctime is too recent: it could change unnoticed */
    assert_false(hash_memo_get(dir, &st, sum));
    st.st_ctim.tv_sec = st.st_mtim.tv_sec = 1000;
    hash_memo_put(dir, &st, m.sum);
    assert_true(hash_memo_get(dir, &st, sum));
    assert_memory_equal(sum, m.sum, sizeof(sum));
    assert_false(hash_memo_get(NULL, &st, sum));
    static const char *const why[] = {"size", "mtime", "ctime", "inode", "device"};
    for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
        struct stat other = st;
        other.st_size += i == 0;
        other.st_mtim.tv_nsec += i == 1;
        other.st_ctim.tv_nsec += i == 2;
        other.st_ino += i == 3;
        other.st_dev += i == 4;
        if (hash_memo_get(dir, &other, sum))
            fail_msg("a file with another %s was taken for it", why[i]);
    }
}

static void test_a_damaged_memo_is_none(void **state)
{
    struct stat st = {.st_size = 5, .st_ino = 77};
    uint8_t sum[SHA256_BYTES] = {1, 2, 3};
    char command[512];
    (void)state;
    st.st_ctim.tv_sec = st.st_mtim.tv_sec = 1000;
    mkdir(at("memo"), 0700);
    hash_memo_put(at("memo"), &st, sum);
    assert_true(hash_memo_get(at("memo"), &st, sum));
    static const char *const damages[] = {
        "truncate -s -1 %s/sha256-*", "truncate -s +1 %s/sha256-*", "truncate -s 0 %s/sha256-*"};
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        hash_memo_put(at("memo"), &st, sum);
        assert_true(hash_memo_get(at("memo"), &st, sum));
        snprintf(command, sizeof(command), damages[i], at("memo"));
        assert_int_equal(system(command), 0);
        assert_false(hash_memo_get(at("memo"), &st, sum));
    }
}

static void test_what_cannot_be_read_is_said(void **state)
{
    static const _Atomic bool stop = true;
    struct identity_list *l;
    struct identity id;
    struct err e = {0};
    (void)state;
    assert_int_equal(identity_list(&l, at("nothing"), &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "nothing"));
    mkdir(at("empty"), 0700);
    assert_int_equal(identity_list(&l, at("empty"), &e), SHOAL_EIO);
    write_file("s.gguf", "abc", 1000);
    assert_int_equal(identity_list(&l, at("s.gguf"), &e), 0);
    assert_int_equal(identity_read(&id, l, NULL, &stop, &e), SHOAL_ECANCELLED);
    assert_int_equal(id.kind, IDENTITY_NONE);
    write_file("s.gguf", "abcd", 1000); /* after it was listed */
    assert_int_equal(identity_read(&id, l, NULL, &go_on, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "changed"));
    identity_list_free(l);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static struct identity read_average(const char *a, const char *b, double weight, bool local)
{
    struct identity_list *parts[2], *l;
    const double weights[2] = {1, weight};
    struct identity id;
    assert_int_equal(identity_list(&parts[0], at(a), NULL), 0);
    assert_int_equal(identity_list(&parts[1], at(b), NULL), 0);
    assert_int_equal(identity_list_join(&l, parts, weights, 2, NULL), 0);
    assert_true(identity_list_time_s(l) > 0);
    if (local) {
        id = identity_local(l);
        assert_int_equal(id.kind, IDENTITY_LOCAL);
    } else {
        assert_int_equal(identity_known(l, NULL, NULL).kind, IDENTITY_NONE);
        assert_int_equal(identity_read(&id, l, NULL, &go_on, NULL), 0);
        assert_int_equal(id.kind, IDENTITY_CONTENT);
        const struct identity known = identity_known(l, NULL, NULL);
        assert_memory_equal(known.sum, id.sum, sizeof(id.sum));
    }
    identity_list_free(l);
    return id;
}

/* The identity of an average covers its members' bytes, in order, and the weights. */
static void test_averages(void **state)
{
    (void)state;
    write_file("one.gguf", "one", 1000);
    write_file("two.gguf", "two", 1000);
    write_file("two-again.gguf", "two", 2000);
    const struct identity is = read_average("one.gguf", "two.gguf", 2, false);
    const struct identity again = read_average("one.gguf", "two-again.gguf", 2, false);
    const struct identity heavier = read_average("one.gguf", "two.gguf", 3, false);
    const struct identity swapped = read_average("two.gguf", "one.gguf", 2, false);
    assert_memory_equal(is.sum, again.sum, sizeof(is.sum));
    assert_memory_not_equal(is.sum, heavier.sum, sizeof(is.sum));
    assert_memory_not_equal(is.sum, swapped.sum, sizeof(is.sum));
    const struct identity here = read_average("one.gguf", "two.gguf", 2, true);
    const struct identity other = read_average("one.gguf", "two-again.gguf", 2, true);
    assert_memory_not_equal(here.sum, other.sum, sizeof(here.sum));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_is_its_content),
        cmocka_unit_test(test_a_folder_is_names_and_contents),
        cmocka_unit_test(test_an_onnx_file_has_documents),
        cmocka_unit_test(test_known_hashes_are_not_read_again),
        cmocka_unit_test(test_a_damaged_memo_is_none),
        cmocka_unit_test(test_what_cannot_be_read_is_said),
        cmocka_unit_test(test_averages),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
