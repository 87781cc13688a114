/* test_load_stats.c - figures of a run, answers of all APIs, the search for the knee, charts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "load/load_chart.h"
#include "load/load_knee.h"
#include "load/load_reply.h"
#include "load/load_stats.h"

#define MS 1000000u

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void add(struct load_log *l, uint64_t due, uint64_t first, uint64_t end, uint32_t n,
                enum load_outcome o, uint8_t part)
{
    const size_t at = load_log_add(l);
    l->records[at] = (struct load_record){.due = due * MS,
                                          .sent = (due + 1) * MS,
                                          .first = first * MS,
                                          .last = end * MS,
                                          .end = end * MS,
                                          .n_pieces = n,
                                          .n_tokens = n,
                                          .outcome = (uint8_t)o,
                                          .part = part};
}

static void test_summary(void **state)
{
    struct load_log l;
    struct load_summary s;
    struct load_slo slo = {.ttft = 20.0, .e2e = 100.0};
    struct err e = {0};
    (void)state;
    load_log_init(&l, 1);
    l.seconds = 2.0;
    add(&l, 0, 10, 50, 5, LOAD_OK, 0);     /* TTFT 10, E2E 50, TPOT 10 */
    add(&l, 100, 130, 150, 3, LOAD_OK, 0); /* TTFT 30: too late */
    add(&l, 200, 210, 400, 2, LOAD_OK, 1); /* E2E 200: too late */
    add(&l, 300, 0, 310, 0, LOAD_REFUSED, 0);
    add(&l, 400, 0, 0, 0, LOAD_UNFINISHED, 0);
    for (uint64_t i = 1; i <= 3; i++)
        load_log_gap(&l, i * MS);
    assert_int_equal(load_summarize(&s, &l, -1, 0, &slo, &e), 0);
    assert_int_equal(s.n, 5);
    assert_int_equal(s.n_outcome[LOAD_OK], 3);
    assert_int_equal(s.n_failed, 1);
    assert_int_equal(s.n_good, 1);
    assert_int_equal(s.n_tokens, 10);
    assert_true(near(s.requests_per_s, 1.5) && near(s.tokens_per_s, 5.0) &&
                near(s.good_per_s, 0.5));
    assert_true(near(s.good_share, 0.25)); /* interrupted ones are not judged */
    assert_true(near(s.ttft.p50, 10.0) && near(s.ttft.max, 30.0) && near(s.ttft.p90, 26.0));
    assert_true(near(s.e2e.mean, 100.0) && near(s.itl.p50, 2.0) && near(s.tpot.max, 190.0));
    assert_int_equal(s.late.n, 5);
    assert_true(near(s.late.max, 1.0));
    assert_int_equal(load_summarize(&s, &l, 1, 0, &slo, &e), 0); /* a part */
    assert_int_equal(s.n, 1);
    assert_int_equal(load_summarize(&s, &l, -1, 100 * MS, &slo, &e), 0); /* warm-up is left out */
    assert_int_equal(s.n, 4);
    assert_true(near(s.requests_per_s, 2.0 / 1.9));
    load_log_fini(&l);
}

static void test_slo(void **state)
{
    struct load_slo s;
    struct err e = {0};
    (void)state;
    assert_int_equal(load_slo_parse(&s, "ttft:200,e2e:1.5", &e), 0);
    assert_true(near(s.ttft, 200.0) && near(s.e2e, 1.5) && near(s.tpot, 0.0));
    static const char *const wrong[] = {"",       "ttft",  "ttft:",  "ttft:x",
                                        "ttft:0", "itl:5", "e2e:5ms"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(load_slo_parse(&s, wrong[i], &e), SHOAL_EINVAL);
    /* an answer without text has no TTFT to be late with */
    struct load_record r = {.due = 1, .end = 2 * MS, .outcome = LOAD_OK};
    assert_true(load_record_good(&r, &(struct load_slo){.ttft = 1.0, .tpot = 1.0}));
    assert_false(load_record_good(&r, &(struct load_slo){.e2e = 1.0}));
}

/* More gaps than are kept: those that are kept are of all times. */
static void test_many_gaps(void **state)
{
    struct load_log l;
    size_t late = 0;
    (void)state;
    load_log_init(&l, 1);
    for (size_t i = 0; i < 2 * LOAD_MAX_GAPS; i++)
        load_log_gap(&l, i < LOAD_MAX_GAPS ? MS : 2 * MS);
    assert_int_equal(l.n_gaps, LOAD_MAX_GAPS);
    for (size_t i = 0; i < l.n_gaps; i++)
        late += l.gaps[i] > 1.5;
    assert_true(late > LOAD_MAX_GAPS * 4 / 10 && late < LOAD_MAX_GAPS * 6 / 10);
    load_log_fini(&l);
}

static void test_knee(void **state)
{
    struct load_knee k;
    (void)state;
    for (double knee = 0.3; knee < 1000.0; knee *= 1.7) {
        int n = 1;
        for (load_knee_init(&k, 4.0, 40); load_knee_next(&k, k.rate <= knee); n++)
            assert_true(n < 40);
        assert_true(k.held <= knee && k.lost > knee && k.lost / k.held <= LOAD_KNEE_CLOSE);
    }
    load_knee_init(&k, 1.0, 40); /* nothing is held */
    while (load_knee_next(&k, false))
        assert_true(k.rate > 0.0);
    assert_true(near(k.held, 0.0));
    load_knee_init(&k, 1.0, 3); /* everything is */
    assert_true(load_knee_next(&k, true) && load_knee_next(&k, true));
    assert_false(load_knee_next(&k, true));
    assert_true(near(k.held, 4.0));
}

static void on_gap(void *ctx, uint64_t ns)
{
    *(uint64_t *)ctx += ns;
}

static void test_replies(void **state)
{
    static const struct {
        const char *bytes, *text, *error;
        uint32_t n_pieces, n_tokens;
        bool done, bad;
    } cases[] = {
        {"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\r\n\r\n: comment\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":null}]}\n\n"
         "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
         "Hello", "", 2, 3, true, false},
        {"data:{\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n", "a", "", 1, 0,
         true, false},
        {"{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"response\":\"b\"}\n"
         "{\"message\":{\"content\":\"\"},\"done\":true,\"eval_count\":2}\n",
         "ab", "", 2, 2, true, false},
        {"event: text\ndata: {\"type\":\"text\",\"text\":\"a\"}\n\n"
         "event: done\ndata: {\"type\":\"done\",\"reply\":\"a\",\"text\":\"a\"}\n\n",
         "a", "", 1, 0, true, false},
        {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}\n\n", "", "", 1, 0,
         false, false},
        {"data: {\"error\":{\"message\":\"too many\"}}\n\n", "", "too many", 0, 0, false, false},
        {"{\"error\":\"gone\"}", "", "gone", 0, 0, true, false},
        {"{\n  \"choices\": [{\"message\": {\"content\": \"whole\"}}],\n"
         "  \"usage\": {\"completion_tokens\": 1}\n}\n",
         "whole", "", 1, 1, true, false},
        {"data: {broken\n\n", "", "", 0, 0, false, true},
        {"<html>", "", "", 0, 0, true, true},
        {"data: {\"choices\":[{\"delta\":{\"content\":\"cut\"}}]}\n\n", "cut", "", 1, 0, false,
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t step = 1; step < 40; step += 7) { /* however the bytes are cut */
            struct load_reply r;
            struct buf text;
            uint64_t gaps = 0, now = 100;
            const size_t n = strlen(cases[i].bytes);
            buf_init(&text, 1000);
            load_reply_init(&r);
            r.text = &text;
            r.gap = on_gap;
            r.ctx = &gaps;
            for (size_t at = 0; at < n; at += step)
                load_reply_data(&r, cases[i].bytes + at, n - at < step ? n - at : step, ++now);
            load_reply_end(&r, ++now);
            assert_string_equal(buf_str(&text), cases[i].text);
            assert_string_equal(r.error, cases[i].error);
            assert_int_equal(r.n_pieces, cases[i].n_pieces);
            assert_int_equal(r.n_tokens, cases[i].n_tokens);
            assert_int_equal(r.done, cases[i].done);
            assert_int_equal(r.bad, cases[i].bad);
            assert_int_equal(gaps, r.last_ns - r.first_ns);
            load_reply_fini(&r);
            buf_fini(&text);
        }
}

static void test_chart(void **state)
{
    const double x[] = {0, 1, 2}, y[] = {1, (double)NAN, 4};
    const struct load_series s = {"p95", x, y, 3};
    const struct load_chart c = {"E2E", "s", "ms", &s, 1};
    struct buf b;
    (void)state;
    assert_true(near(load_chart_step(100, 6), 20) && near(load_chart_step(7, 6), 2));
    assert_true(near(load_chart_step(0.05, 6), 0.01) && near(load_chart_step(0, 6), 1));
    buf_init(&b, 10000);
    load_chart_svg(&b, &c);
    assert_non_null(strstr(buf_str(&b), "<svg "));
    assert_non_null(
        strstr(buf_str(&b), "M60.0 157.0L624.0 34.0\"")); /* without the missing point */
    assert_null(strstr(buf_str(&b), "nan"));
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),   cmocka_unit_test(test_slo),
        cmocka_unit_test(test_many_gaps), cmocka_unit_test(test_knee),
        cmocka_unit_test(test_replies),   cmocka_unit_test(test_chart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
