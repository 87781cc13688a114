/* test_peers.c - bytes and resets per client address. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "net/peers.h"

#define SECOND 1000000000u

static struct sockaddr_storage address(const char *text)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNIX};
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&ss;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&ss;
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
        ss.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
        ss.ss_family = AF_INET6;
    return ss;
}

static struct peers *open_peers(size_t all, size_t each, uint32_t resets)
{
    const struct peers_limits l = {all, each, resets};
    struct peers *t;
    struct err e = {0};
    if (peers_create(&t, &l, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

static struct peer *join(struct peers *t, const char *text)
{
    struct sockaddr_storage ss = address(text);
    struct peer *p = peers_join(t, &ss);
    assert_non_null(p);
    return p;
}

static void test_addresses_that_are_one_client(void **state)
{
    static const struct {
        const char *why, *a, *b;
        bool same;
    } cases[] = {
        {"one address", "10.0.0.1", "10.0.0.1", true},
        {"two addresses", "10.0.0.1", "10.0.0.2", false},
        {"IPv4 in IPv6", "10.0.0.1", "::ffff:10.0.0.1", true},
        {"one /64", "2001:db8::1", "2001:db8::ffff:1", true},
        {"two /64", "2001:db8:0:1::1", "2001:db8:0:2::1", false},
        {"unix sockets", "-", "-", true},
        {"no address is a unix socket", "-", "::", false},
    };
    (void)state;
    struct peers *t = open_peers(0, 0, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *a = join(t, cases[i].a), *b = join(t, cases[i].b);
        if ((a == b) != cases[i].same)
            fail_msg("%s", cases[i].why);
        peers_leave(a);
        peers_leave(b);
    }
    peers_destroy(t);
}

static void test_both_limits_refuse(void **state)
{
    struct peers_stats s;
    (void)state;
    struct peers *t = open_peers(100, 60, 0);
    struct peer *a = join(t, "10.0.0.1"), *b = join(t, "10.0.0.2"), *u = join(t, "-");
    assert_int_equal(peers_take(a, 60), PEERS_OK);
    assert_int_equal(peers_take(a, 1), PEERS_PEER_FULL);
    assert_false(peers_has_room(a, 1));
    assert_int_equal(peers_take(b, 40), PEERS_OK);
    assert_true(peers_has_room(b, 0));
    assert_false(peers_has_room(b, 1));
    assert_int_equal(peers_take(b, 1), PEERS_ALL_FULL);
    peers_stats(t, &s);
    assert_int_equal(s.bytes, 100); /* a rejected item was not consumed */
    assert_int_equal(s.refused_peer, 1);
    assert_int_equal(s.refused_all, 1);
    peers_give(a, 60);
    peers_give(b, 40);
    assert_int_equal(peers_take(u, 100), PEERS_OK); /* a unix socket: only the global limit */
    assert_int_equal(peers_take(u, 1), PEERS_ALL_FULL);
    const struct peers_limits more = {200, 60, 0};
    peers_set_limits(t, &more);
    assert_int_equal(peers_take(u, 1), PEERS_OK);
    assert_int_equal(peers_take(a, SIZE_MAX - 50), PEERS_PEER_FULL); /* no sum overflows */
    peers_give(u, 101);
    peers_stats(t, &s);
    assert_int_equal(s.bytes, 0);
    peers_leave(a);
    peers_leave(b);
    peers_leave(u);
    peers_destroy(t);
}

/* A client that reconnects keeps its count until ten seconds have passed. */
static void test_resets_count_across_connections(void **state)
{
    uint64_t now = 100 * (uint64_t)SECOND;
    struct peers_stats s;
    (void)state;
    struct peers *t = open_peers(0, 0, 5);
    for (int i = 0; i < 10; i++) {
        struct peer *p = join(t, "10.0.0.1"), *other = join(t, "10.0.0.2");
        assert_int_equal(peers_reset(p, now), i < 5);
        peers_leave(p);
        peers_leave(other);
        now += SECOND / 10;
    }
    peers_stats(t, &s);
    assert_int_equal(s.resets, 10);
    assert_int_equal(s.resets_over, 5);
    struct peer *p = join(t, "10.0.0.2");
    assert_true(peers_reset(p, now)); /* no other address is blamed */
    peers_leave(p);
    p = join(t, "10.0.0.1");
    assert_true(peers_reset(p, now + 11 * (uint64_t)SECOND));
    peers_leave(p);
    peers_destroy(t);
}

/* Of many addresses that reset once and disconnect, a bounded number is remembered. */
static void test_old_clients_are_forgotten(void **state)
{
    uint64_t now = 100 * (uint64_t)SECOND;
    struct peers_stats s;
    (void)state;
    struct peers *t = open_peers(0, 0, 5);
    for (uint32_t i = 0; i < 20000; i++) {
        struct sockaddr_storage ss = address("10.0.0.1");
        ((struct sockaddr_in *)(void *)&ss)->sin_addr.s_addr = htonl(0x0a000000u + i);
        struct peer *p = peers_join(t, &ss);
        assert_non_null(p);
        assert_true(peers_reset(p, now));
        peers_leave(p);
    }
    peers_stats(t, &s);
    assert_int_equal(s.resets, 20000);
    assert_in_range(s.remembered, 1, 4096);
    peers_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_that_are_one_client),
        cmocka_unit_test(test_both_limits_refuse),
        cmocka_unit_test(test_resets_count_across_connections),
        cmocka_unit_test(test_old_clients_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
