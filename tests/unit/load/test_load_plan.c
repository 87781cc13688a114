/* test_load_plan.c - when and what is sent: arrivals, mixes, traces, prompts, requests. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "load/load_plan.h"
#include "load/load_request.h"
#include "load/load_trace.h"

static void test_constant_and_burst(void **state)
{
    struct load_arrivals c = {.pattern = LOAD_CONSTANT, .rate = 10.0, .burst = 1};
    struct load_arrivals b = {.pattern = LOAD_BURST, .rate = 10.0, .burst = 5};
    (void)state;
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal((load_arrivals_next(&c) + 500) / 1000, i * 100000);
        assert_int_equal((load_arrivals_next(&b) + 500) / 1000, i / 5 * 500000);
    }
}

static void test_poisson(void **state)
{
    struct load_arrivals a = {.rate = 100.0, .seed = 7}, same = a,
                         other = {.rate = 100.0, .seed = 8};
    uint64_t last = 0;
    double squares = 0.0;
    (void)state;
    const int n = 20000;
    for (int i = 0; i < n; i++) {
        const uint64_t at = load_arrivals_next(&a);
        assert_int_equal(at, load_arrivals_next(&same));
        assert_true(at >= last);
        const double gap = (double)(at - last) / 1e9;
        squares += gap * gap;
        last = at;
    }
    assert_int_not_equal(load_arrivals_next(&other), load_arrivals_next(&same));
    /* the gaps are exponential: mean 1/rate, mean square 2/rate^2 */
    assert_true(fabs((double)last / 1e9 / n - 0.01) < 0.0003);
    assert_true(fabs(squares / n - 0.0002) < 0.00002);
}

static void test_mix(void **state)
{
    struct load_mix m;
    struct err e = {0};
    uint32_t n[3] = {0};
    (void)state;
    assert_int_equal(load_mix_parse(&m, "3:chat=smollm2:135m,classify,chat=smollm2:135m,ask", &e),
                     0);
    assert_int_equal(m.n, 3);
    assert_int_equal(m.part[0].weight, 4);
    assert_string_equal(m.part[0].model, "smollm2:135m");
    assert_int_equal(m.part[1].kind, LOAD_CLASSIFY);
    for (uint64_t i = 0; i < 600; i++)
        n[load_mix_pick(&m, i)]++;
    assert_int_equal(n[0], 400);
    assert_int_equal(n[1], 100);
    assert_int_equal(n[2], 100);
    assert_int_equal(load_mix_parse(&m, "chat,shout", &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "'shout'. Available: chat"));
    assert_int_equal(load_mix_parse(&m, "3chat", &e), SHOAL_EINVAL);
    assert_int_equal(load_mix_parse(&m, "0:chat", &e), SHOAL_EINVAL);
    assert_int_equal(load_mix_parse(&m, "", &e), SHOAL_EINVAL);
}

static const char trace[] = "{\"at_ms\": 300, \"prompt\": \"b\", \"kind\": \"ask\"}\r\n"
                            "\n"
                            "{\"timestamp\": 100, \"input_length\": 3, \"output_length\": 9, "
                            "\"hash_ids\": [1]}\n"
                            "{\"at_ms\": 200.5, \"model\": \"m\"}";

static void test_trace(void **state)
{
    struct load_mix m = {0};
    struct load_trace t;
    struct load_item i;
    struct err e = {0};
    (void)state;
    assert_int_equal(load_trace_read(&t, &m, trace, strlen(trace), &e), 0);
    assert_int_equal(t.n, 3);
    struct load_plan p = {.mix = &m, .trace = &t, .speed = 2.0, .max_tokens = 5};
    assert_true(load_plan_next(&p, &i)); /* by time, from the first one on */
    assert_int_equal(i.at_ns, 0);
    assert_int_equal(i.n_words, 3);
    assert_int_equal(i.max_tokens, 9);
    assert_null(i.prompt);
    assert_true(load_plan_next(&p, &i));
    assert_int_equal(i.at_ns, 50250000);
    assert_string_equal(m.part[i.part].model, "m");
    assert_int_equal(i.max_tokens, 5);
    assert_non_null(i.prompt); /* one of ours */
    assert_true(load_plan_next(&p, &i));
    assert_int_equal(i.at_ns, 100000000);
    assert_int_equal(m.part[i.part].kind, LOAD_ASK);
    assert_string_equal(i.prompt, "b");
    assert_false(load_plan_next(&p, &i));
    p.n = 0;
    p.end_ns = 50250000;
    assert_true(load_plan_next(&p, &i));
    assert_false(load_plan_next(&p, &i)); /* due at the end is too late */
    load_trace_fini(&t);

    static const char *const wrong[] = {
        "",
        "[]",
        "{\"prompt\": \"no time\"}",
        "{\"at_ms\": -1}",
        "{\"at_ms\": 0}\n{\"at_ms\": 1, \"kind\": \"shout\"}",
        "{\"at_ms\": 0, \"max_tokens\": \"9\"}",
        "{\"at_ms\": 0, \"prompt\": 9}",
    };
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
        m = (struct load_mix){0};
        e = (struct err){0};
        assert_int_equal(load_trace_read(&t, &m, wrong[k], strlen(wrong[k]), &e), SHOAL_EFORMAT);
        assert_true(e.msg[0]);
        assert_int_equal(strncmp(e.msg, "line 2", 6) == 0, k == 4);
    }
}

static void test_plan(void **state)
{
    struct load_mix m;
    struct load_item i;
    struct err e = {0};
    struct buf b;
    uint64_t seed = 1;
    (void)state;
    assert_int_equal(load_mix_parse(&m, "chat", &e), 0);
    struct load_plan p = {.arrivals = {.pattern = LOAD_CONSTANT, .rate = 10.0, .burst = 1},
                          .mix = &m,
                          .end_ns = 450000000,
                          .n_words = 4};
    int n = 0;
    for (; load_plan_next(&p, &i); n++)
        assert_true(i.at_ns < p.end_ns && !i.prompt && i.n_words == 4);
    assert_int_equal(n, 5);
    p.n = 0;
    p.arrivals.n = 0;
    p.max_requests = 2;
    assert_true(load_plan_next(&p, &i) && load_plan_next(&p, &i) && !load_plan_next(&p, &i));
    buf_init(&b, 1000);
    load_plan_words(&b, 4, &seed);
    int blanks = 0;
    for (const char *c = buf_str(&b); *c; c++)
        blanks += *c == ' ';
    assert_int_equal(blanks, 3);
    buf_fini(&b);
}

static void test_target(void **state)
{
    static const struct {
        const char *url, *address, *host, *base;
        bool secure;
    } cases[] = {
        {"http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:8080", "", false},
        {"http://127.0.0.1:8080/v1/", "127.0.0.1:8080", "127.0.0.1:8080", "", false},
        {"https://a.example/llm/v1", "a.example:443", "a.example", "/llm", true},
        {"http://[::1]", "[::1]:80", "[::1]", "", false},
        {"localhost:9", "localhost:9", "localhost:9", "", false},
        {"unix:/tmp/s", "unix:/tmp/s", "localhost", "", false},
    };
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct load_target t = {0};
        assert_int_equal(load_target_parse(&t, cases[i].url, &e), 0);
        assert_string_equal(t.address, cases[i].address);
        assert_string_equal(t.host, cases[i].host);
        assert_string_equal(t.base, cases[i].base);
        assert_int_equal(t.secure, cases[i].secure);
    }
    static const char *const wrong[] = {"ftp://a", "http://", "http://a b", ""};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct load_target t = {0};
        assert_int_equal(load_target_parse(&t, wrong[i], &e), SHOAL_EINVAL);
    }
}

static void test_request(void **state)
{
    struct load_target t = {.key = "k", .model = "m", .extra = "\"seed\":1", .host = "h"};
    struct load_part chat = {.kind = LOAD_CHAT}, ask = {.kind = LOAD_ASK},
                     text = {.kind = LOAD_COMPLETION, .model = "own"};
    struct buf b, turns;
    (void)state;
    buf_init(&b, 10000);
    buf_init(&turns, 10000);
    load_request_turn(&turns, "user", "a\"b");
    load_request_put(&b, &t, &chat, buf_str(&turns), "c", 7);
    const char *body = strstr(buf_str(&b), "\r\n\r\n") + 4;
    assert_string_equal(body,
                        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\\\"b\"},"
                        "{\"role\":\"user\",\"content\":\"c\"}],\"stream\":true,\"max_tokens\":7,"
                        "\"stream_options\":{\"include_usage\":true},\"seed\":1}");
    assert_non_null(strstr(buf_str(&b), "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n"));
    assert_non_null(strstr(buf_str(&b), "Authorization: Bearer k\r\n"));
    buf_clear(&b);
    load_request_put(&b, &t, &ask, "", "c", 7);
    assert_string_equal(strstr(buf_str(&b), "\r\n\r\n") + 4, "{\"text\":\"c\",\"stream\":true}");
    buf_clear(&b);
    t.api = LOAD_OLLAMA;
    load_request_put(&b, &t, &text, "", "c", 7);
    assert_string_equal(strstr(buf_str(&b), "\r\n\r\n") + 4,
                        "{\"model\":\"own\",\"prompt\":\"c\",\"stream\":true,"
                        "\"options\":{\"num_predict\":7},\"seed\":1}");
    buf_fini(&b);
    buf_fini(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_and_burst),
        cmocka_unit_test(test_poisson),
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
