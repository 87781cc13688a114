/* test_config_checks.c - what a configuration may say, by tests/data/config: a block is a file, or
 * several with a line of --- between them; behind it, line by line, the error of each, or
 * "accepted".  SHOAL_GOLDEN=1 writes the answers of now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "support/script.h"

static void try_one(struct buf *out, const char *text, size_t n)
{
    struct config *c;
    struct err e = {0};
    assert_int_equal(config_create(&c, &e), 0);
    const int rc = config_parse(c, text, n, "f", &e);
    assert_true(rc == 0 || rc == SHOAL_EFORMAT || rc == SHOAL_EINVAL);
    buf_printf(out, "%s\n", rc < 0 ? e.msg : "accepted");
    config_unref(c);
}

/* The files of a block, one answer each. */
static void try_all(struct buf *out, const char *text, size_t n)
{
    static const char line[] = "---\n";
    const char *end = text + n;
    for (const char *p = text, *next; p < end; p = next + strlen(line)) {
        next = memmem(p, (size_t)(end - p), line, strlen(line));
        next = next ? next : end;
        try_one(out, p, (size_t)(next - p));
    }
}

static size_t run(const char *name, const char *text, struct buf *golden)
{
    struct script_block b, out;
    size_t n_wrong = 0;
    while (script_next(&text, &b)) {
        struct buf got;
        assert_true(script_next(&text, &out) && strcmp(out.head, "out") == 0);
        buf_init(&got, 1 << 20);
        try_all(&got, b.body, b.n);
        if (golden)
            buf_printf(golden, "== %s\n%.*s== out\n%s", b.head, (int)b.n, b.body, buf_str(&got));
        else if (got.len != out.n || memcmp(buf_str(&got), out.body, out.n) != 0) {
            print_error("%s, %s: got\n%swant\n%.*s", name, b.head, buf_str(&got), (int)out.n,
                        out.body);
            n_wrong++;
        }
        buf_fini(&got);
    }
    assert_string_equal(text, "");
    return n_wrong;
}

static void test_files(void **state)
{
    char dir[64];
    (void)state;
    script_run_all(SHOAL_TEST_DATA "/config/*.txt", dir, run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
