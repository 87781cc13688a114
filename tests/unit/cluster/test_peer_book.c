/* test_peer_book.c - the addresses of nodes on disk: what is written is read, nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/peer_book.h"

static char seen[512];

static void see(void *ctx, const char *address, const char *name)
{
    size_t n = strlen(seen);
    (void)ctx;
    snprintf(seen + n, sizeof(seen) - n, "%s=%s,", name, address);
}

static void test_text(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *seen;
    } cases[] = {
        {"shoal peers 1\n", 0, ""},
        {"shoal peers 1\n10.0.0.1:7433 node1\n", 0, "node1=10.0.0.1:7433,"},
        {"shoal peers 1\nunix:/run/a b\n[::1]:9 c-d\n", 0, "b=unix:/run/a,c-d=[::1]:9,"},
        {"", SHOAL_EFORMAT, ""},
        {"shoal peers 2\n", SHOAL_EFORMAT, ""},
        {"shoal peers 1\na:1 one\na:2 two", SHOAL_EFORMAT, ""}, /* cut off: none of it */
        {"shoal peers 1\na:1 one\na:2\n", SHOAL_EFORMAT, ""},
        {"shoal peers 1\n a\n", SHOAL_EFORMAT, ""},
        {"shoal peers 1\na:1 \n", SHOAL_EFORMAT, ""},
        {"shoal peers 1\na:1 one two\n", SHOAL_EFORMAT, ""},
        {"shoal peers 1\na\t:1 one\n", SHOAL_EFORMAT, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        seen[0] = '\0';
        int rc = peer_book_parse(cases[i].text, strlen(cases[i].text), see, NULL, &e);
        if (rc != cases[i].rc || strcmp(seen, cases[i].seen) != 0)
            fail_msg("case %zu: %d %s", i, rc, seen);
    }
}

static void test_file(void **state)
{
    char dir[] = "/tmp/test_peer_book.XXXXXX", path[128];
    struct peer_book *b;
    struct buf text;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/peers", dir);
    for (int i = 0; i < 3; i++) { /* the last one saved counts */
        assert_int_equal(peer_book_open(&b, path, NULL), 0);
        seen[0] = '\0';
        peer_book_read(b, see, NULL);
        assert_string_equal(seen, i == 0 ? "" : "b=y:2,");
        buf_init(&text, PEER_BOOK_MAX_BYTES);
        peer_book_begin(&text);
        peer_book_save(b, &text);
        peer_book_put(&text, "y:2", "b");
        peer_book_save(b, &text);
        buf_fini(&text);
        peer_book_close(b);
    }
    unlink(path);
    rmdir(dir);
    assert_int_equal(peer_book_open(&b, path, NULL), 0); /* nowhere to write: only logged */
    buf_init(&text, PEER_BOOK_MAX_BYTES);
    peer_book_begin(&text);
    peer_book_save(b, &text);
    buf_fini(&text);
    peer_book_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
