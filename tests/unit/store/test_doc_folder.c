/* test_doc_folder.c - which files of a folder are documents, and that a part that cannot be read is
 * an error: what is not listed would be removed from a collection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file/tree_watch.h"
#include "store/doc/doc_folder.h"

static char dir[64], path[256];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/doc_folder.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    return system(command);
}

static const char *at(const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void put_folder(const char *name)
{
    assert_int_equal(mkdir(at(name), 0755), 0);
}

static void test_names(void **state)
{
    static const char *const yes[] = {"a.md",   "a.MD",    "a.txt", "a.PDF",
                                      "a.html", "a.jsonl", "a.rst"};
    static const char *const no[] = {"a", "a.c", "a.png", "txt", "a.md.gz"};
    (void)state;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        assert_true(doc_folder_takes(yes[i]));
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        assert_false(doc_folder_takes(no[i]));
}

static void test_what_is_listed(void **state)
{
    struct doc_folder f;
    struct err e = {0};
    (void)state;
    put("b.md", "four");
    put("program.c", "x");
    put_folder("a");
    put_folder("a/deep");
    put("a/deep/c.txt", "x");
    put_folder(".hidden");
    put(".hidden/d.md", "x");
    put(".e.md", "x");
    char to[256];
    snprintf(to, sizeof(to), "%s/b.md", dir);
    assert_int_equal(symlink(to, at("link.md")), 0);
    assert_int_equal(symlink("/", at("a/root")), 0);
    doc_folder_init(&f);
    assert_int_equal(doc_folder_read(&f, dir, &e), 0);
    assert_int_equal(f.n, 2);
    assert_string_equal(f.v[0].path, at("a/deep/c.txt"));
    assert_string_equal(f.v[1].path, at("b.md"));
    assert_int_equal(f.v[1].n_bytes, 4);
    assert_true(f.v[1].changed_ns > 0);
    assert_ptr_equal(doc_folder_find(&f, at("b.md")), &f.v[1]);
    assert_null(doc_folder_find(&f, at("link.md")));
    assert_int_equal(doc_folder_read(&f, at("nosuch"), &e), SHOAL_ENOTFOUND);
    assert_int_equal(f.n, 2); /* a failure changes nothing */
    doc_folder_fini(&f);
}

/* Changes are noticed in folders that are there, and in new ones. */
static void test_watch(void **state)
{
    struct tree_watch *w;
    struct err e = {0};
    (void)state;
    put_folder("a");
    assert_int_equal(tree_watch_open(&w, dir, &e), 0);
    assert_false(tree_watch_changed(w));
    put("a/x.md", "x");
    assert_true(tree_watch_changed(w));
    assert_false(tree_watch_changed(w));
    put_folder("a/new");
    assert_true(tree_watch_changed(w));
    put("a/new/y.md", "y");
    assert_true(tree_watch_changed(w));
    assert_int_equal(unlink(at("a/new/y.md")), 0);
    assert_true(tree_watch_changed(w));
    char to[256];
    snprintf(to, sizeof(to), "%s/b", dir);
    assert_int_equal(rename(at("a/new"), to), 0);
    assert_true(tree_watch_changed(w));
    tree_watch_close(w);
    assert_int_equal(tree_watch_open(&w, at("nosuch"), &e), SHOAL_EIO);
    assert_null(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {TEST(test_names), TEST(test_what_is_listed),
                                       TEST(test_watch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
