/* test_mdns.c - messages of multicast DNS, our own and those of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "net/mdns.h"

#define TYPE "_shoal-join._tcp"
static const struct mdns_service service = {.instance = "shoal-1f2e",
                                            .type = TYPE,
                                            .port = 7601,
                                            .address = {10, 0, 0, 7},
                                            .txt = "ca=1f2e"};

static void check(const struct mdns_service *s)
{
    assert_string_equal(s->instance, service.instance);
    assert_string_equal(s->type, TYPE);
    assert_int_equal(s->port, 7601);
    assert_memory_equal(s->address, service.address, 4);
    assert_string_equal(s->txt, "ca=1f2e");
}

static void test_question_and_answer(void **state)
{
    struct mdns_service got;
    struct buf b;
    struct err e = {0};
    uint16_t id = 9;
    (void)state;
    buf_init(&b, MDNS_MAX_BYTES);
    assert_int_equal(mdns_put_question(&b, TYPE), 0);
    /* as tcpdump shows it: one question, PTR, IN */
    assert_memory_equal(b.data, "\0\0\0\0\0\1\0\0\0\0\0\0\x0b_shoal-join\4_tcp\5local\0\0\14\0\1",
                        b.len);
    assert_int_equal(mdns_read_question(b.data, b.len, TYPE, &id, &e), 0);
    assert_int_equal(id, 0);
    assert_int_equal(mdns_read_question(b.data, b.len, "_http._tcp", &id, &e), SHOAL_ENOTFOUND);
    assert_int_equal(mdns_read_answer(&got, b.data, b.len, TYPE, &e), SHOAL_ENOTFOUND);
    for (uint16_t to = 0; to < 2; to++) {
        buf_clear(&b);
        assert_int_equal(mdns_put_answer(&b, &service, to), 0);
        assert_int_equal(mdns_read_answer(&got, b.data, b.len, TYPE, &e), 0);
        check(&got);
        assert_int_equal(mdns_read_question(b.data, b.len, TYPE, &id, &e), SHOAL_ENOTFOUND);
        assert_int_equal(mdns_read_answer(&got, b.data, b.len, "_http._tcp", &e), SHOAL_ENOTFOUND);
        for (size_t n = 0; n < b.len; n++) /* every beginning of it is refused */
            assert_true(mdns_read_answer(&got, b.data, n, TYPE, &e) < 0);
    }
    struct mdns_service bad = service;
    snprintf(bad.instance, sizeof(bad.instance), "a.b");
    assert_int_equal(mdns_put_answer(&b, &bad, 0), SHOAL_EINVAL);
    buf_fini(&b);
}

/* As another responder writes it: compressed, in another order, in capitals. */
static void test_a_compressed_answer(void **state)
{
    static const char bytes[] =
        "\0\0\x84\0\0\0\0\1\0\0\0\3"
        "\1H\5local\0\0\1\x80\1\0\0\0\x78\0\4\x0a\0\0\7" /* 12: A of H */
        "\x0a"
        "shoal-1f2e\x0b_SHOAL-join\4_tcp\xc0\x0e\0\x21\x80\1\0\0\0\x78\0\x08" /* 34: SRV */
        "\0\0\0\0\x1d\xb1\xc0\x0c"
        "\xc0\x23\0\x10\x80\1\0\0\0\x78\0\x08\7ca=1f2e" /* TXT */
        "\xc0\x2e\0\x0c\0\1\0\0\0\x78\0\2\xc0\x23";     /* PTR */
    struct mdns_service got;
    struct err e = {0};
    (void)state;
    assert_int_equal(mdns_read_answer(&got, bytes, sizeof(bytes) - 1, TYPE, &e), 0);
    check(&got);
}

static void test_pointers_have_an_end(void **state)
{
    static const char *const names[] = {"\xc0\x0c", "\xc0\x0d", "\xc0\xff", "\1a\xc0\x0c",
                                        "\x40",     "\x3f",     "\1.",      "\1\0"};
    char bytes[64];
    uint16_t id;
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        memset(bytes, 0, sizeof(bytes));
        bytes[5] = 1;
        memcpy(bytes + 12, names[i], strlen(names[i]) + 1);
        assert_true(mdns_read_question(bytes, 12 + strlen(names[i]), TYPE, &id, &e) ==
                    SHOAL_EFORMAT);
    }
    assert_int_equal(mdns_read_question("\0", 1, TYPE, &id, &e), SHOAL_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_question_and_answer),
                                       cmocka_unit_test(test_a_compressed_answer),
                                       cmocka_unit_test(test_pointers_have_an_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
