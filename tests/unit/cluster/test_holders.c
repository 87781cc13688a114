/* test_holders.c - who has a model, from heartbeats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/messages/node_state.h"
#include "cluster/store/holders.h"

#define S 1000000000ull

static const uint8_t a[SHA256_BYTES] = {1}, b[SHA256_BYTES] = {2}, nobody[SHA256_BYTES] = {3};

static void hear(struct holders *h, const char *address, const uint8_t *sum,
                 enum registry_state state, uint32_t busy, uint64_t now)
{
    const struct node_model models[] = {
        {.name = "m", .sum = sum, .state = state, .in_flight = busy},
        {.name = "other", .sum = b, .state = REGISTRY_READY, .in_flight = 1}};
    const struct node_state s = {
        .name = address, .address = address, .models = models, .n_models = 2};
    holders_hear(h, &s, now);
}

/* The addresses of those who have a model, joined. */
static const char *found(struct holders *h, const uint8_t *sum, uint64_t now, size_t cap)
{
    static char text[256];
    struct holders_node nodes[8];
    const size_t n = holders_find(h, sum, now, nodes, cap);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(nodes[i].name, nodes[i].address, strlen(nodes[i].name));
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%u", i ? " " : "",
                 nodes[i].address, nodes[i].in_flight);
    }
    return text;
}

static struct holders *make(void)
{
    struct holders *h;
    struct err e;
    assert_int_equal(holders_create(&h, &e), 0);
    return h;
}

static void test_the_least_busy_first(void **state)
{
    struct holders *h = make();
    (void)state;
    assert_string_equal(found(h, a, S, 8), "");
    hear(h, "n1", a, REGISTRY_READY, 4, S);
    hear(h, "n3", a, REGISTRY_READY, 2, S);
    hear(h, "n2", a, REGISTRY_READY, 2, S); /* as busy: by its address */
    assert_string_equal(found(h, a, S, 8), "n2:3 n3:3 n1:5");
    assert_string_equal(found(h, b, S, 8), "n2:3 n3:3 n1:5");
    assert_string_equal(found(h, nobody, S, 8), "");
    assert_int_equal(strlen(found(h, a, S, 2)), strlen("n1:5 n3:3"));
    hear(h, "n1", a, REGISTRY_READY, 0, S); /* the last word of a node counts */
    assert_string_equal(found(h, a, S, 8), "n1:1 n2:3 n3:3");
    holders_destroy(h);
    holders_destroy(NULL);
}

static void test_what_is_not_there(void **state)
{
    struct holders *h = make();
    struct node_state s = {.name = "n", .address = "", .n_models = 0};
    char longest[300];
    (void)state;
    hear(h, "n1", NULL, REGISTRY_READY, 0, S); /* its hash is not known yet */
    hear(h, "n2", a, REGISTRY_LOADING, 0, S);  /* not all of it is there */
    hear(h, "n3", a, REGISTRY_READY, 0, S);
    hear(h, "n3", nobody, REGISTRY_READY, 0, S); /* it has another now */
    assert_string_equal(found(h, a, S, 8), "");
    assert_string_equal(found(h, nobody, S, 8), "n3:1");
    holders_hear(h, &s, S); /* a member that cannot be reached */
    s.address = "n4";
    s.draining = true;
    holders_hear(h, &s, S);
    memset(longest, 'x', sizeof(longest));
    longest[256] = '\0';
    hear(h, longest, a, REGISTRY_READY, 0, S);
    assert_string_equal(found(h, a, S, 8), "");
    longest[255] = '\0';
    hear(h, longest, a, REGISTRY_READY, 0, S);
    assert_int_equal(strlen(found(h, a, S, 8)), 255); /* all that fits into the text */
    holders_destroy(h);
}

static void test_ten_seconds(void **state)
{
    struct holders *h = make();
    char name[16];
    (void)state;
    hear(h, "n1", a, REGISTRY_READY, 0, S);
    assert_string_equal(found(h, a, 11 * S, 8), "n1:1");
    assert_string_equal(found(h, a, 11 * S + 1, 8), "");
    /* a place that is free again: more nodes than there are places, one after the other */
    for (uint32_t i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "%u", i);
        hear(h, name, a, REGISTRY_READY, 0, (20 + i * 11ull) * S);
        assert_memory_equal(found(h, a, (20 + i * 11ull) * S, 8), name, strlen(name));
    }
    /* and no place: the first 1,024 of a second stay */
    for (uint32_t i = 0; i < 1100; i++) {
        snprintf(name, sizeof(name), "x%u", i);
        hear(h, name, i == 1023 || i == 1024 ? nobody : a, REGISTRY_READY, 0, 90000 * S);
    }
    assert_string_equal(found(h, nobody, 90000 * S, 8), "x1023:1");
    holders_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_busy_first),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
