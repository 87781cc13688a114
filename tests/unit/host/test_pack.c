/* test_pack.c - manifests: valid ones, rejected ones, and checks of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "host/pack.h"

/* SHA-256 of "abc" */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define ONE(name, file, bytes, sha)                                                                \
    "{\"name\":\"" name "\",\"task\":\"classify\",\"format\":\"hf-bert\",\"file\":\"" file         \
    "\",\"bytes\":" bytes ",\"sha256\":\"" sha "\"}"

static void refused(const char *json, const char *why)
{
    struct pack *p;
    struct err e = {0};
    assert_true(pack_parse(&p, "d", json, strlen(json), &e) < 0);
    assert_null(p);
    if (!strstr(e.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", e.msg, why);
}

static void test_reads_names_and_places(void **state)
{
    (void)state;
    struct pack *p;
    struct err e = {0};
    const char *json = "{\"models\":[" ONE("intent", "enc/w.bin", "3",
                                           ABC) "," ONE("tags", "enc/w.bin", "3", ABC) "]}";
    assert_int_equal(pack_parse(&p, "dir", json, strlen(json), &e), 0);
    const struct pack_model *m = pack_find(p, "tags");
    assert_non_null(m);
    assert_string_equal(m->open, "dir/enc"); /* a folder format */
    assert_string_equal(m->files[0].path, "dir/enc/w.bin");
    assert_null(pack_find(p, "tag"));
    char names[32];
    pack_names(p, names, sizeof(names));
    assert_string_equal(names, "intent, tags");
    pack_close(p);
}

static void test_bad_manifests_are_refused(void **state)
{
    (void)state;
    refused("{", "invalid JSON");
    refused("[]", "models");
    refused("{\"version\":2,\"models\":[]}", "another version");
    refused("{\"models\":[{}]}", "needs a name");
    refused("{\"models\":[" ONE("a", "../x", "3", ABC) "]}", "outside the folder");
    refused("{\"models\":[" ONE("a", "b/../../x", "3", ABC) "]}", "outside the folder");
    refused("{\"models\":[" ONE("a", "/etc/passwd", "3", ABC) "]}", "outside the folder");
    refused("{\"models\":[" ONE("a", "x", "-3", ABC) "]}", "not a valid size");
    refused("{\"models\":[" ONE("a", "x", "3", "abc") "]}", "64 hex digits");
    refused("{\"models\":[" ONE("a", "x", "3", ABC) "," ONE("a", "x", "3", ABC) "]}", "two models");
    refused("{\"models\":[],\"tables\":{}}", "\"tables\" must be a list");
    refused("{\"models\":[],\"tables\":[{}]}", "a table needs a name");
    refused("{\"models\":[],\"tables\":[" ONE("a", "../x", "3", ABC) "]}", "outside the folder");
    refused("{\"models\":[],\"tables\":[" ONE("a", "x", "3", ABC) "," ONE("a", "x", "3", ABC) "]}",
            "two tables");
}

static void test_tables_are_read_and_checked(void **state)
{
    (void)state;
    char path[] = "/tmp/test_pack.XXXXXX";
    char json[256];
    struct pack *p;
    struct err e = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "abc", 3) == 3);
    snprintf(json, sizeof(json),
             "{\"models\":[],\"tables\":[{\"name\":\"home\",\"file\":\"%s\",\"bytes\":3,"
             "\"sha256\":\"" ABC "\"}]}",
             path + strlen("/tmp/"));
    assert_int_equal(pack_parse(&p, "/tmp", json, strlen(json), &e), 0);
    assert_null(pack_find_table(p, "house"));
    const struct pack_table *t = pack_find_table(p, "home");
    assert_non_null(t);
    assert_string_equal(t->file.path, path);
    assert_int_equal(pack_verify_table(t, &e), 0);
    assert_int_equal(pwrite(fd, "x", 1, 0), 1);
    assert_int_equal(pack_verify_table(t, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "SHA-256 differs"));
    close(fd);
    unlink(path);
    pack_close(p);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void test_files_are_checked(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_pack.XXXXXX", path[64], manifest[64];
    struct pack *p;
    struct err e = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/w.bin", dir);
    snprintf(manifest, sizeof(manifest), "%s/models.json", dir);
    write_file(manifest, "{\"models\":[" ONE("a", "w.bin", "3", ABC) "]}");
    assert_int_equal(pack_open(&p, dir, &e), 0);
    assert_int_equal(pack_verify(&p->models[0], &e), SHOAL_EIO); /* missing */
    write_file(path, "abc");
    assert_int_equal(pack_verify(&p->models[0], &e), 0);
    write_file(path, "abd");
    assert_int_equal(pack_verify(&p->models[0], &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "SHA-256"));
    write_file(path, "abcd");
    assert_int_equal(pack_verify(&p->models[0], &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "size differs"));
    pack_close(p);
    unlink(path);
    unlink(manifest);
    assert_int_equal(pack_open(&p, dir, &e), SHOAL_ENOTFOUND);
    rmdir(dir);
}

static void test_failed_allocations_leave_nothing(void **state)
{
    (void)state;
    const char *json = "{\"models\":[" ONE("a", "enc/w.bin", "3", ABC) "]}";
    struct pack *p;
    struct err e;
    uint64_t n = mem_calls();
    assert_int_equal(pack_parse(&p, "dir", json, strlen(json), &e), 0);
    n = mem_calls() - n;
    pack_close(p);
    for (uint64_t i = 1; i <= n; i++) {
        mem_fail_at(i);
        assert_int_equal(pack_parse(&p, "dir", json, strlen(json), &e), SHOAL_ENOMEM);
        mem_fail_at(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_names_and_places),
        cmocka_unit_test(test_bad_manifests_are_refused),
        cmocka_unit_test(test_tables_are_read_and_checked),
        cmocka_unit_test(test_files_are_checked),
        cmocka_unit_test(test_failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
