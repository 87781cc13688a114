/* test_pages.c - pages of prompts between nodes: when a fetch is worth it, the messages, and what
 * is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/affinity/page_worth.h"
#include "cluster/affinity/split_way.h"
#include "cluster/messages/pages_pb.h"
#include "engine/decode/page_exchange.h"

enum { PAGE = 64 << 10 }; /* 4 KiB a token */
#define SECOND 1000000000u
#define NOW (100ull * SECOND)

static struct page_link link_of(double bytes_per_s)
{
    return (struct page_link){.bytes_per_s = bytes_per_s, .first_ns = 1e6, .seen_ns = NOW};
}

static void test_the_faster_way(void **state)
{
    (void)state;
    const struct page_link fast = link_of(125e6), slow = link_of(1e6);
    /* 100 pages: 6.5 MB, 52 ms by the fast link; 1600 tokens at 100 us: 160 ms */
    assert_int_equal(page_worth(&fast, 100, PAGE, 1e5, NOW), 100);
    assert_int_equal(page_worth(&slow, 100, PAGE, 1e5, NOW), 0);
    assert_int_equal(page_worth(&fast, 100, PAGE, 4e4, NOW), 0);   /* 64 ms: not by enough */
    assert_int_equal(page_worth(&slow, 100, PAGE, 1e7, NOW), 100); /* 16 s here, 6.5 there */
    assert_int_equal(page_worth(&fast, 1, PAGE, 1e5, NOW), 0);     /* 1 ms until it answers */
    assert_int_equal(page_worth(&fast, 0, PAGE, 1e5, NOW), 0);
    assert_int_equal(page_worth(&fast, 100, 0, 1e5, NOW), 0); /* no pages to exchange */
    assert_int_equal(page_worth(&fast, 100, PAGE, 0, NOW), 0);
    assert_int_equal(page_worth(&fast, 1u << 20, PAGE, 1e5, NOW), PAGE_WORTH_MAX_BYTES / PAGE);
}

static void test_a_link_is_measured(void **state)
{
    (void)state;
    struct page_link k = {0};
    const uint32_t few = PAGE_WORTH_TRY_BYTES / PAGE;
    assert_int_equal(page_worth(&k, 100, PAGE, 1e5, NOW), few); /* unknown: a part of it */
    assert_int_equal(page_worth(&k, few - 1, PAGE, 1e5, NOW), few - 1);
    assert_int_equal(page_worth(&k, 100, 2 * PAGE_WORTH_TRY_BYTES, 1e5, NOW), 1);
    page_worth_saw(&k, 1000000, 2000000, 10000000, NOW);
    assert_true(k.bytes_per_s > 0.99e8 && k.bytes_per_s < 1.01e8);
    assert_int_equal(page_worth(&k, 100, PAGE, 1e5, NOW), 100);
    page_worth_saw(&k, 1000, 2000000, 10000000, NOW); /* half of the newest */
    assert_true(k.bytes_per_s < 0.51e8);
    assert_int_equal(page_worth(&k, 100, PAGE, 1e5, NOW + 61ull * SECOND), few); /* forgotten */
    /* it was fast enough: all of it, and that measures it again */
    assert_int_equal(page_worth(&k, 100, PAGE, 1e6, NOW + 61ull * SECOND), 100);
    page_worth_failed(&k, NOW);
    assert_int_equal(page_worth(&k, 100, PAGE, 1e7, NOW + SECOND), 0); /* not at once again */
    assert_int_equal(page_worth(&k, 100, PAGE, 1e7, NOW + 3ull * SECOND), 100);
    struct page_link given = {.bytes_per_s = 125e6, .given = true}; /* by the configuration */
    page_worth_saw(&given, 1000, SECOND, SECOND, NOW);
    assert_int_equal(page_worth(&given, 100, PAGE, 1e5, NOW + 61ull * SECOND), 100);
    page_worth_saw(&k, 0, 1, 1, NOW); /* nothing came: nothing is known */
    assert_true(k.bytes_per_s < 0.51e8);
}

static void test_the_limit_of_a_fetch(void **state)
{
    (void)state;
    const struct page_link fast = link_of(125e6), unknown = {0};
    const uint64_t known = page_worth_limit_ns(&fast, 1000, PAGE, 1e6);
    assert_in_range(known, 2000000000, 2200000000); /* four times 526 ms */
    assert_int_equal(page_worth_limit_ns(&unknown, 100, PAGE, 1e6), 3200000000);
    assert_int_equal(page_worth_limit_ns(&fast, 1, PAGE, 1e3), 500000000);
}

/* ---- one node reads, another writes ---- */

/* 2000 tokens of prompt, 100 of answer.  The chosen node reads them in 2 s and writes in 2 s; the
 * strong one reads in 100 ms, but writes in 4 s; 8 MB between them take 66 ms. */
static struct split_case usual_split(void)
{
    return (struct split_case){.strong = {.prefill_ns = 5e4, .token_ns = 4e7},
                               .chosen = {.prefill_ns = 1e6, .token_ns = 2e7},
                               .link = 125e6,
                               .token_bytes = 4096,
                               .prompt = 2000,
                               .answer = 100};
}

#define WAY(change, way)                                                                           \
    do {                                                                                           \
        struct split_case c = usual_split();                                                       \
        change;                                                                                    \
        assert_int_equal(split_way(SPLIT_AUTO, &c), way);                                          \
    } while (0)

static void test_who_reads_and_who_writes(void **state)
{
    (void)state;
    WAY((void)0, SPLIT_BOTH);
    WAY(c.link = 125e5, SPLIT_AS_CHOSEN); /* the pages take 655 ms: not faster by enough */
    WAY(c.link = 25e6, SPLIT_BOTH);       /* 328 ms */
    WAY(c.link = 0, SPLIT_AS_CHOSEN);     /* never measured: assumed to be slow */
    WAY((c.link = 0, c.token_bytes = 512), SPLIT_BOTH);
    WAY(c.token_bytes = 0, SPLIT_AS_CHOSEN);             /* they cannot be fetched */
    WAY(c.prompt = 500, SPLIT_AS_CHOSEN);                /* 0.5 s and 2 s: nothing to gain */
    WAY(c.prompt = 8000, SPLIT_BOTH);                    /* 10 s, 4.4 s, or 2.7 s */
    WAY(c.strong.token_ns = 2e7, SPLIT_STRONG);          /* as good at both */
    WAY(c.strong.token_ns = 3e7, SPLIT_AS_CHOSEN);       /* 3.1 s: not by enough */
    WAY(c.strong.prefill_ns = 4e5, SPLIT_AS_CHOSEN);     /* 0.8 s: too little is gained */
    WAY(c.strong.queue_ns = 1e9, SPLIT_AS_CHOSEN);       /* others are before it */
    WAY(c.chosen.queue_ns = 1e9, SPLIT_AS_CHOSEN); /* 5 s, 4.1 s, or 3.2 s: not by enough */
    WAY(c.chosen.held = 0.9, SPLIT_AS_CHOSEN);           /* it has read nearly all of it */
    WAY((c.strong.held = 1, c.link = 25e6), SPLIT_BOTH); /* the strong one has */
    WAY(c.answer = 4, SPLIT_STRONG);                     /* there is next to nothing to write */
    WAY((c.prompt = 200, c.chosen.prefill_ns = 1e9), SPLIT_AS_CHOSEN); /* a short prompt */
    WAY((c.prompt = 300, c.chosen.prefill_ns = 1e9), SPLIT_BOTH);
    WAY(c.strong.prefill_ns = 0, SPLIT_AS_CHOSEN); /* nobody knows */
    WAY(c.chosen.prefill_ns = 0, SPLIT_AS_CHOSEN);
    WAY(c.strong.token_ns = 0, SPLIT_AS_CHOSEN);
    WAY(c.chosen.token_ns = 0, SPLIT_AS_CHOSEN);
}

static void test_a_split_that_is_demanded(void **state)
{
    struct split_case c = usual_split();
    (void)state;
    assert_int_equal(split_way(SPLIT_NEVER, &c), SPLIT_AS_CHOSEN);
    c.strong.prefill_ns = c.link = 0;
    assert_int_equal(split_way(SPLIT_ALWAYS, &c), SPLIT_BOTH);
    c.prompt = 31; /* a page of it would be fetched */
    assert_int_equal(split_way(SPLIT_ALWAYS, &c), SPLIT_AS_CHOSEN);
    c.prompt = 32;
    c.answer = 7;
    assert_int_equal(split_way(SPLIT_ALWAYS, &c), SPLIT_AS_CHOSEN);
    c.answer = 8;
    assert_int_equal(split_way(SPLIT_ALWAYS, &c), SPLIT_BOTH);
    c.token_bytes = 0;
    assert_int_equal(split_way(SPLIT_ALWAYS, &c), SPLIT_AS_CHOSEN);
}

/* ---- messages ---- */

static const uint8_t version[SHA256_BYTES] = {7, 8, 9};
static int32_t tokens[3 * PAGE_EXCHANGE_TOKENS];

static struct pages_request request(const char *client, bool shared)
{
    for (int32_t i = 0; i < 3 * (int32_t)PAGE_EXCHANGE_TOKENS; i++)
        tokens[i] = i * 1000 - 5;
    return (struct pages_request){.model = "reply",
                                  .version = version,
                                  .client = client,
                                  .shares_cache = shared,
                                  .page_bytes = 100,
                                  .skip = 1,
                                  .tokens = tokens,
                                  .n_tokens = 3 * PAGE_EXCHANGE_TOKENS};
}

static struct pages_key key_of(struct pages_request r, uint32_t page)
{
    struct pages_key k;
    assert_true(pages_key_begin(&k, &r));
    for (uint32_t i = 0; i <= page; i++)
        assert_true(pages_key_next(&k, r.tokens + (size_t)i * PAGE_EXCHANGE_TOKENS));
    return k;
}

static bool same(struct pages_key a, struct pages_key b)
{
    return memcmp(a.sum, b.sum, sizeof(a.sum)) == 0;
}

static void test_requests(void **state)
{
    (void)state;
    struct pages_request r = request("anna", false), got;
    struct arena a;
    struct buf b;
    struct err e = {0};
    arena_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    assert_int_equal(pages_pb_put_request(&b, &r), 0);
    assert_int_equal(pages_pb_read_request(&got, &a, (const uint8_t *)b.data, b.len, &e), 0);
    assert_string_equal(got.model, "reply");
    assert_string_equal(got.client, "anna");
    assert_memory_equal(got.version, version, sizeof(version));
    assert_true(got.page_bytes == 100 && got.skip == 1 && !got.shares_cache);
    assert_int_equal(got.n_tokens, r.n_tokens);
    assert_memory_equal(got.tokens, tokens, sizeof(tokens));
    assert_true(pages_pb_read_request(&got, &a, (const uint8_t *)b.data, b.len - 1, &e) < 0);
    const struct pages_request bad[] = {
        {.model = "", .version = version, .page_bytes = 1, .tokens = tokens, .n_tokens = 16},
        {.model = "m", .version = version, .page_bytes = 0, .tokens = tokens, .n_tokens = 16},
        {.model = "m", .version = version, .page_bytes = 1, .tokens = tokens, .n_tokens = 15},
        {.model = "m",
         .version = version,
         .page_bytes = PAGES_PB_MAX_PAGE + 1,
         .tokens = tokens,
         .n_tokens = 16}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pages_request x = bad[i];
        x.client = "";
        buf_clear(&b);
        assert_int_equal(pages_pb_put_request(&b, &x), 0);
        if (pages_pb_read_request(&got, &a, (const uint8_t *)b.data, b.len, &e) == 0)
            fail_msg("request %zu", i);
    }
    buf_fini(&b);
    arena_fini(&a);
}

static void test_keys(void **state)
{
    (void)state;
    struct pages_request anna = request("anna", false), bert = request("bert", false);
    struct pages_request all = request("anna", true), others = request("bert", true);
    assert_false(same(key_of(anna, 1), key_of(bert, 1)));
    assert_false(same(key_of(anna, 1), key_of(all, 1)));
    assert_true(same(key_of(all, 1), key_of(others, 1)));
    assert_false(same(key_of(anna, 0), key_of(anna, 1)));
    const struct pages_key before = key_of(anna, 2);
    tokens[0]++; /* it depends on everything before */
    assert_false(same(key_of(anna, 2), before));
    tokens[0]--;
    static const uint8_t another[SHA256_BYTES] = {1};
    anna.version = another;
    assert_false(same(key_of(anna, 2), before));
}

static void test_pages(void **state)
{
    (void)state;
    const struct pages_request r = request("anna", false);
    const struct pages_key key = key_of(r, 2), other = key_of(r, 1);
    uint8_t data[100], out[100] = {0};
    struct buf b;
    struct err e = {0};
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    buf_init(&b, 1 << 16);
    assert_int_equal(pages_pb_put_page(&b, 2, &key, data, sizeof(data)), 0);
    uint8_t *bytes = (uint8_t *)b.data;
    assert_int_equal(pages_pb_read_page(out, 2, &key, 100, bytes, b.len, &e), 0);
    assert_memory_equal(out, data, sizeof(data));
    assert_int_equal(pages_pb_read_page(out, 1, &key, 100, bytes, b.len, &e), SHOAL_EFORMAT);
    assert_int_equal(pages_pb_read_page(out, 2, &other, 100, bytes, b.len, &e), SHOAL_EFORMAT);
    assert_int_equal(pages_pb_read_page(out, 2, &key, 99, bytes, b.len, &e), SHOAL_EFORMAT);
    for (size_t i = 0; i < b.len; i++) { /* no byte may change */
        bytes[i] ^= 1;
        if (pages_pb_read_page(out, 2, &key, 100, bytes, b.len, &e) == 0)
            fail_msg("byte %zu", i);
        bytes[i] ^= 1;
    }
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_faster_way),
        cmocka_unit_test(test_a_link_is_measured),
        cmocka_unit_test(test_the_limit_of_a_fetch),
        cmocka_unit_test(test_who_reads_and_who_writes),
        cmocka_unit_test(test_a_split_that_is_demanded),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
