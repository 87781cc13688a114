/* test_prefix.c - beginnings of prompts as hashes, and who has read which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "cluster/affinity/prefix_chain.h"
#include "cluster/affinity/prefix_sent.h"
#include "cluster/affinity/prefix_table.h"
#include "flow/request.h"

static struct arena arena;
static struct prefix_table *table;

static struct chat_message message(const char *role, const char *text)
{
    return (struct chat_message){.role = role, .content = text, .content_bytes = strlen(text)};
}

static struct prefix_chain *chain_of(const char *client, const struct chat_message *m, uint32_t n)
{
    struct request r = {.kind = REQUEST_GENERATE, .model = "m"};
    snprintf(r.client.name, sizeof(r.client.name), "%s", client);
    r.generate.chat.messages = m;
    r.generate.chat.n_messages = n;
    struct prefix_chain *c = prefix_chain_make(&arena, &r, false);
    assert_non_null(c);
    return c;
}

static struct prefix_chain *chain_of_text(const char *text, size_t n)
{
    const struct request_prompt p = {.text = text, .text_bytes = n};
    struct request r = {.kind = REQUEST_GENERATE, .model = "m"};
    r.generate.prompts = &p;
    r.generate.n_prompts = 1;
    struct prefix_chain *c = prefix_chain_make(&arena, &r, false);
    assert_non_null(c);
    return c;
}

static bool in_table(void *ctx, uint64_t key)
{
    return prefix_table_has(ctx, key);
}

static double held(const struct prefix_chain *c)
{
    return prefix_chain_held(c, in_table, table);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, (size_t)16 << 20);
    return prefix_table_create(&table, NULL);
}

static int teardown(void **state)
{
    (void)state;
    prefix_table_destroy(table);
    arena_fini(&arena);
    return 0;
}

/* The next turn is found, with the answer that the node has written itself. */
static void test_a_conversation_goes_on(void **state)
{
    const struct chat_message m[] = {message("system", "Be brief."), message("user", "Hello?"),
                                     message("assistant", "Hello! How can I help?"),
                                     message("user", "No."), message("assistant", "Well.")};
    (void)state;
    prefix_table_note(table, chain_of("", m, 2));
    const struct prefix_chain *next = chain_of("", m, 4);
    double share = held(next);
    assert_true(share > 0.8 && share < 1); /* all but the last question */
    assert_true(held(chain_of("", m, 1)) == 1);
    const struct chat_message other[] = {m[0], message("user", "Hello!"), m[2], m[3]};
    share = held(chain_of("", other, 4));
    assert_true(share > 0.1 && share < 0.4); /* the system's message */
    const struct chat_message moved[] = {message("user", "Be brief."), m[1]};
    assert_true(held(chain_of("", moved, 2)) == 0);
}

/* Nobody finds what another client has sent, nor what was sent to another model. */
static void test_clients_do_not_meet(void **state)
{
    const struct chat_message m[] = {message("user", "The code of the safe is 4711.")};
    (void)state;
    prefix_table_note(table, chain_of("anna", m, 1));
    assert_true(held(chain_of("anna", m, 1)) == 1);
    assert_true(held(chain_of("bert", m, 1)) == 0);
    assert_true(held(chain_of("", m, 1)) == 0);
    struct prefix_chain *c = chain_of("anna", m, 1);
    prefix_chain_for(c, "another");
    assert_true(held(c) == 0);
    struct request r = {.kind = REQUEST_GENERATE, .model = "m", .client = {.name = "bert"}};
    r.generate.chat = (struct chat){.messages = m, .n_messages = 1};
    assert_true(held(prefix_chain_make(&arena, &r, true)) == 0);
    prefix_table_note(table, prefix_chain_make(&arena, &r, true));
    snprintf(r.client.name, sizeof(r.client.name), "carl");
    assert_true(held(prefix_chain_make(&arena, &r, true)) == 1); /* they share the cache */
    assert_true(held(prefix_chain_make(&arena, &r, false)) == 0);
}

/* A text without messages: the part that two have in common, to within a sixteenth or a block. */
static void test_long_texts(void **state)
{
    static char text[1 << 20];
    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i * i % 23);
    for (size_t common = 300; common < sizeof(text); common = common * 3 + 7) {
        prefix_table_destroy(table);
        assert_int_equal(prefix_table_create(&table, NULL), 0);
        prefix_table_note(table, chain_of_text(text, common));
        const struct prefix_chain *c = chain_of_text(text, sizeof(text));
        double bytes = held(c) * (double)c->bytes;
        assert_true(c->n < PREFIX_CHAIN_MAX);
        if (bytes > (double)common || bytes < (double)common * 15 / 16 - 256)
            fail_msg("common %zu, found %.0f", common, bytes);
    }
    assert_true(held(chain_of_text("", 0)) == 0);
}

static void test_a_session(void **state)
{
    struct request r = {.kind = REQUEST_GENERATE, .model = "m", .session = "s1"};
    (void)state;
    const struct prefix_chain *a = prefix_chain_make(&arena, &r, false);
    assert_true(a->session != 0);
    snprintf(r.client.name, sizeof(r.client.name), "bert");
    assert_true(prefix_chain_make(&arena, &r, false)->session != a->session);
    r.kind = REQUEST_INFER;
    assert_null(prefix_chain_make(&arena, &r, false));
}

/* A copy that gets only the changes is the same at any time; the oldest entries give way. */
static void test_changes_make_a_copy(void **state)
{
    static uint64_t copy[PREFIX_TABLE_SLOTS];
    const struct prefix_slot *list;
    uint64_t seen = 0;
    uint64_t last[64];
    (void)state;
    assert_int_equal(prefix_table_since(table, &seen, &arena, &list), 0);
    memset(copy, 0, sizeof(copy));
    for (uint32_t i = 0; i < 20000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "prompt %u", i);
        const struct chat_message m[] = {message("user", text)};
        const struct prefix_chain *c = chain_of("", m, 1);
        prefix_table_note(table, c);
        last[i % 64] = prefix_chain_key(c, c->blocks[0].hash);
        if (i % 97 == 0) {
            uint32_t n = prefix_table_since(table, &seen, &arena, &list);
            assert_in_range(n, 1, 97);
            for (uint32_t k = 0; k < n; k++)
                copy[list[k].at] = list[k].hash;
            assert_true(prefix_copy_has(copy, last[i % 64]));
            arena_reset(&arena, (size_t)1 << 20);
        }
    }
    uint32_t n = prefix_table_since(table, &seen, &arena, &list);
    for (uint32_t k = 0; k < n; k++)
        copy[list[k].at] = list[k].hash;
    for (uint32_t i = 0; i < 64; i++)
        assert_true(prefix_copy_has(copy, last[i]) && prefix_table_has(table, last[i]));
    assert_int_equal(prefix_table_since(table, &seen, &arena, &list), 0);
    seen = 0; /* another gateway begins with all of them */
    assert_int_equal(prefix_table_since(table, &seen, &arena, &list), PREFIX_TABLE_SLOTS);
}

static void test_what_was_just_sent(void **state)
{
    static struct prefix_sent sent;
    const struct chat_message m[] = {message("user", "Hello")};
    const uint64_t now = UINT64_C(1000000000000), s = 1000000000u;
    (void)state;
    const struct prefix_chain *c = chain_of("", m, 1);
    const uint64_t key = prefix_chain_key(c, c->blocks[0].hash);
    assert_false(prefix_sent_has(&sent, "a", key, now));
    prefix_sent_note(&sent, "a", c, now);
    assert_true(prefix_sent_has(&sent, "a", key, now + s));
    assert_false(prefix_sent_has(&sent, "b", key, now + s));
    assert_false(prefix_sent_has(&sent, "a", key, now + 4 * s)); /* heartbeats know better */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_conversation_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clients_do_not_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_session, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_make_a_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_just_sent, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
