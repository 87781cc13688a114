/* test_session_keys.c - key files, and which key opens what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/session/session_keys.h"

#define A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define B "ffeeddccbbaa99887766554433221100FFEEDDCCBBAA99887766554433221100"

static struct session_keys *parse(const char *text)
{
    struct session_keys *k;
    struct err e = {0};
    if (session_keys_parse(&k, text, strlen(text), "keys", &e) < 0)
        fail_msg("%s", e.msg);
    return k;
}

/* 0: what `seal` encrypts for (tenant, id) opens with `open` for (tenant2, id2). */
static int opens(const char *seal, const char *tenant, const char *id, const char *open,
                 const char *tenant2, const char *id2)
{
    static const char text[] = "turn on the lamp";
    struct session_keys *k = parse(seal), *l = parse(open);
    struct buf sealed, plain;
    struct err e = {0};
    buf_init(&sealed, 1000);
    buf_init(&plain, 1000);
    assert_int_equal(session_keys_seal(k, tenant, id, text, sizeof(text), &sealed, &e), 0);
    assert_int_equal(sealed.len, sizeof(text) + SESSION_KEYS_OVERHEAD);
    assert_null(memmem(buf_str(&sealed), sealed.len, "lamp", 4));
    int rc = session_keys_unseal(l, tenant2, id2, buf_str(&sealed), sealed.len, &plain, &e);
    if (rc == 0)
        assert_memory_equal(buf_str(&plain), text, sizeof(text));
    else
        assert_int_equal(plain.len, 0);
    for (size_t i = 0; i < sealed.len && rc == 0; i += 7) { /* every byte matters */
        sealed.data[i] ^= 4;
        buf_clear(&plain);
        plain.len = 0;
        assert_int_equal(
            session_keys_unseal(l, tenant2, id2, buf_str(&sealed), sealed.len, &plain, &e),
            SHOAL_EFORMAT);
        sealed.data[i] ^= 4;
    }
    session_keys_close(k);
    session_keys_close(l);
    buf_fini(&sealed);
    buf_fini(&plain);
    return rc;
}

static void test_what_opens(void **state)
{
    (void)state;
    assert_int_equal(opens("* " A "\n", "anna", "s", "# x\n\n* " A, "anna", "s"), 0);
    assert_int_equal(opens("* " A, "anna", "s", "* " A, "ben", "s"), SHOAL_EFORMAT);
    assert_int_equal(opens("* " A, "anna", "s", "* " A, "anna", "t"), SHOAL_EFORMAT);
    assert_int_equal(opens("* " A, "anna", "s", "* " B, "anna", "s"), SHOAL_EFORMAT);
    assert_int_equal(opens("anna " A "\n* " B, "anna", "s", "anna " A, "anna", "s"), 0);
    assert_int_equal(opens("anna " A "\nben " A, "anna", "s", "anna " A "\nben " A, "ben", "s"),
                     SHOAL_EFORMAT);
    assert_int_equal(opens("* " A, "", "s", "* " A, "", "s"), 0); /* a server without keys */
}

static void test_bad_files(void **state)
{
    static const char *const bad[] = {
        "", "# nothing\n", "anna\n", "anna 12\n", ("* " A "x\n"), ("* " A "\n* " B "\n"), (" " A)};
    struct session_keys *k;
    struct err e;
    struct buf b;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (session_keys_parse(&k, bad[i], strlen(bad[i]), "keys", &e) != SHOAL_EFORMAT)
            fail_msg("'%s' was read", bad[i]);
    k = parse("anna " A);
    buf_init(&b, 1000);
    assert_int_equal(session_keys_seal(k, "ben", "s", "x", 1, &b, &e), SHOAL_EINVAL);
    assert_int_equal(session_keys_unseal(k, "anna", "s", "short", 5, &b, &e), SHOAL_EFORMAT);
    session_keys_close(k);
    buf_fini(&b);
}

static void test_a_file_is_made_once(void **state)
{
    char dir[] = "/tmp/shoal-keys-XXXXXX", path[64], command[96];
    struct session_keys *k, *l;
    struct buf sealed, plain;
    struct stat st;
    struct err e = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/keys", dir);
    assert_int_equal(session_keys_open(&k, path, &e), 0);
    assert_int_equal(session_keys_open(&l, path, &e), 0);
    buf_init(&sealed, 1000);
    buf_init(&plain, 1000);
    assert_int_equal(session_keys_seal(k, "a", "s", "x", 1, &sealed, &e), 0);
    assert_int_equal(session_keys_unseal(l, "a", "s", buf_str(&sealed), sealed.len, &plain, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    session_keys_close(l);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(session_keys_open(&l, path, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "chmod 600"));
    session_keys_close(k);
    buf_fini(&sealed);
    buf_fini(&plain);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_opens),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_a_file_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
