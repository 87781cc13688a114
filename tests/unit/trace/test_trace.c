/* test_trace.c - spans of one request: who holds the trace, what is in it at the end, and what of
 * it is kept and passed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "trace/trace.h"
#include "trace/trace_json.h"
#include "trace/trace_ring.h"

#define ID "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

/* A keeper that holds the last trace. */
struct box {
    struct trace_keeper keeper;
    struct trace *last;
    uint32_t n;
};

static void keep(struct trace_keeper *k, struct trace *t)
{
    struct box *b = (struct box *)(void *)k;
    trace_unref(b->last);
    b->last = trace_ref(t);
    b->n++;
}

static struct box box(void)
{
    return (struct box){.keeper = {keep, 1}};
}

static void test_context(void **state)
{
    struct trace_context c;
    char text[TRACE_CONTEXT_CHARS + 1], id[33];
    static const char *const bad[] = {
        "",
        "00-" ID "-" PARENT,
        "00-" ID "-" PARENT "-0",
        "00-" ID "-" PARENT "-010",
        "00-" ID "-" PARENT "-01-more",
        "ff-" ID "-" PARENT "-01",
        "01-" ID "-" PARENT "-01x",
        "00-" ID "." PARENT "-01",
        "00." ID "-" PARENT "-01",
        "00-" ID "-" PARENT ".01",
        "00-0AF7651916cd43dd8448eb211c80319c-" PARENT "-01",
        "00-0af7651916cd43dd8448eb211c80319g-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" ID "-0000000000000000-01",
        "00-" ID "-b7ad6b716920333g-01",
        "0x-" ID "-" PARENT "-01",
        "00-" ID "-" PARENT "-0x",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (trace_context_read(&c, bad[i]))
            fail_msg("accepted: %s", bad[i]);
    assert_false(trace_context_read(&c, NULL));
    assert_true(trace_context_read(&c, "00-" ID "-" PARENT "-01"));
    assert_true(c.sampled && c.span == 0xb7ad6b7169203331u);
    trace_context_write(text, &c);
    assert_string_equal(text, "00-" ID "-" PARENT "-01");
    trace_context_id(id, &c);
    assert_string_equal(id, ID);
    /* a later version may have more after the flags, and flags that we do not know */
    assert_true(trace_context_read(&c, "cc-" ID "-" PARENT "-02-more"));
    assert_false(c.sampled);
    trace_context_write(text, &c);
    assert_string_equal(text, "00-" ID "-" PARENT "-00");
    const struct trace_context a = trace_context_new(), b = trace_context_new();
    assert_memory_not_equal(a.id, b.id, sizeof(a.id));
    assert_int_equal(a.span, 0);
    assert_int_not_equal(trace_context_new_span(), trace_context_new_span());
}

static void test_the_last_holder_completes_it(void **state)
{
    struct box b = box();
    struct trace_context from;
    (void)state;
    assert_true(trace_context_read(&from, "00-" ID "-" PARENT "-01"));
    struct trace *t = trace_open(&b.keeper, &from, "POST /x", TRACE_SERVER, 1000);
    trace_name(t, "req_1", "anna");
    const uint32_t stage = trace_begin(t, TRACE_ROOT, "run", 1100);
    const uint32_t step = trace_add(t, stage, "decode", 1200, 1500);
    const uint32_t open = trace_begin(t, stage, "late", 9000);
    trace_number(t, step, "tokens", 7);
    trace_text(t, step, "model", "reply");
    trace_fail(t, step, "lost");
    struct trace *second = trace_ref(t);
    trace_end(t, TRACE_ROOT, 2000);
    trace_end(t, TRACE_ROOT, 3000); /* it has ended */
    trace_unref(t);
    assert_int_equal(b.n, 0);
    trace_unref(second);
    assert_int_equal(b.n, 1);
    const struct trace_view v = trace_look(b.last);
    assert_int_equal(v.n_spans, 4);
    assert_int_equal(v.from.span, 0xb7ad6b7169203331u);
    assert_string_equal(v.request, "req_1");
    assert_string_equal(v.client, "anna");
    assert_string_equal(v.spans[0].name, "POST /x");
    assert_int_equal(v.spans[0].kind, TRACE_SERVER);
    assert_int_equal(v.spans[0].end_ns, 2000);
    assert_int_equal(v.spans[stage].end_ns, 2000); /* was open */
    assert_int_equal(v.spans[open].end_ns, 9000);  /* began behind the root's end */
    assert_int_equal(v.spans[step].parent, stage);
    assert_int_equal(v.spans[step].end_ns, 1500);
    assert_true(v.spans[step].failed && !v.spans[0].failed);
    const struct trace_note *n = v.spans[step].notes;
    assert_true(!n->text && n->number == 7 && strcmp(n->key, "tokens") == 0);
    assert_string_equal(n->next->text, "reply");
    assert_string_equal(n->next->next->text, "lost");
    assert_null(n->next->next->next);
    trace_unref(b.last);
}

static void test_many_spans_are_bounded(void **state)
{
    struct box b = box();
    struct trace *t = trace_open(&b.keeper, NULL, "x", TRACE_SERVER, 1);
    char long_text[1000];
    (void)state;
    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    uint32_t n = 0;
    for (uint32_t i = 0; i < TRACE_MAX_SPANS + 10; i++) {
        const uint32_t s = trace_begin(t, i, "s", 2);
        n += s != TRACE_NO_SPAN;
        trace_number(t, s, "i", i);
        trace_end(t, s, 3);
    }
    trace_text(t, 1, "long", long_text);
    assert_int_equal(n, TRACE_MAX_SPANS - 1);
    trace_unref(t);
    const struct trace_view v = trace_look(b.last);
    assert_int_equal(v.n_spans, TRACE_MAX_SPANS);
    assert_int_equal(v.n_left_out, 11);
    assert_int_equal(strlen(v.spans[1].notes->next->text), TRACE_MAX_TEXT);
    for (uint32_t i = 1; i < v.n_spans; i++)
        assert_int_equal(v.spans[i].notes->number, i - 1); /* also after the list has moved */
    trace_unref(b.last);
    /* nothing is traced: nothing happens */
    assert_null(trace_open(NULL, NULL, "x", TRACE_SERVER, 1));
    trace_number(NULL, trace_begin(NULL, 0, "s", 1), "i", 1);
    trace_end(NULL, 0, 1);
    trace_unref(trace_ref(NULL));
}

static void test_no_memory(void **state)
{
    (void)state;
    for (uint64_t at = 1; at < 12; at++) {
        struct box b = box();
        mem_fail_at(at);
        struct trace *t = trace_open(&b.keeper, NULL, "x", TRACE_SERVER, 1);
        for (uint32_t i = 0; i < 20; i++)
            trace_number(t, trace_begin(t, 0, "s", 2), "i", i);
        trace_unref(t);
        mem_fail_at(0);
        trace_unref(b.last);
    }
}

static void test_contexts_of_spans(void **state)
{
    struct box b = box();
    struct trace *t = trace_open(&b.keeper, NULL, "x", TRACE_SERVER, 1);
    struct trace_at at = {.trace = t, .span = trace_begin(t, 0, "node", 2)};
    char here[TRACE_CONTEXT_CHARS + 1], root[TRACE_CONTEXT_CHARS + 1];
    (void)state;
    trace_at_write(&at, here);
    at.span = TRACE_ROOT;
    trace_at_write(&at, root);
    assert_memory_equal(here, root, 36); /* one trace */
    assert_int_not_equal(strncmp(here + 36, root + 36, 16), 0);
    assert_string_equal(here + 52, "-01");
    at = (struct trace_at){.trace = NULL};
    trace_at_write(&at, here);
    assert_string_equal(here, "");
    assert_true(trace_context_read(&at.context, "00-" ID "-" PARENT "-00"));
    trace_at_write(&at, here);
    assert_string_equal(here, "00-" ID "-" PARENT "-00");
    trace_unref(t);
    trace_unref(b.last);
}

static void test_sampling_follows_the_id_or_the_caller(void **state)
{
    struct trace_context from;
    uint32_t n = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct trace_keeper k = {NULL, 0.25};
        struct box b = box();
        b.keeper.ratio = k.ratio;
        struct trace *t = trace_open(&b.keeper, NULL, "x", TRACE_SERVER, 1);
        n += trace_context_of(t, 0).sampled;
        trace_unref(t);
        trace_unref(b.last);
    }
    assert_in_range(n, 400, 600);
    for (int sampled = 0; sampled < 2; sampled++) { /* as the caller, whatever the ratio is */
        struct box b = box();
        b.keeper.ratio = sampled ? 0 : 1;
        assert_true(trace_context_read(&from, sampled ? "00-" ID "-" PARENT "-01"
                                                      : "00-" ID "-" PARENT "-00"));
        struct trace *t = trace_open(&b.keeper, &from, "x", TRACE_SERVER, 1);
        assert_int_equal(trace_context_of(t, 0).sampled, sampled);
        trace_unref(t);
        trace_unref(b.last);
    }
}

/* One trace of a length, which may fail, into a ring. */
static void one(struct trace_ring *r, const char *request, const char *client, uint64_t took,
                bool failed)
{
    struct trace *t = trace_open(trace_ring_keeper(r), NULL, "x", TRACE_SERVER, 1000);
    trace_name(t, request, client);
    if (failed)
        trace_fail(t, TRACE_ROOT, NULL);
    trace_end(t, TRACE_ROOT, 1000 + took);
    trace_unref(t);
}

static void test_ring(void **state)
{
    struct box b = box();
    struct trace_ring *r;
    struct err e = {0};
    struct trace *list[8];
    char id[33];
    (void)state;
    assert_int_equal(trace_ring_create(&r,
                                       &(struct trace_ring_opts){.max_traces = 3,
                                                                 .max_bytes = 1 << 20,
                                                                 .slow_ns = 500,
                                                                 .after = &b.keeper},
                                       &e),
                     0);
    one(r, "a", "anna", 10, false);
    one(r, "b", "ben", 500, false);
    one(r, "c", "anna", 10, true);
    assert_int_equal(b.n, 2); /* slow, failed; by ratio 0 none */
    one(r, "d", "anna", 499, false);
    assert_int_equal(b.n, 2);
    assert_null(trace_ring_find(r, "a", NULL)); /* the oldest has left */
    assert_null(trace_ring_find(r, "b", "anna"));
    struct trace *t = trace_ring_find(r, "b", "ben");
    assert_non_null(t);
    const struct trace_view v = trace_look(t);
    trace_context_id(id, &v.from);
    struct trace *same = trace_ring_find(r, id, NULL);
    assert_ptr_equal(same, t);
    trace_unref(same);
    trace_unref(t);
    uint32_t n = trace_ring_last(r, "anna", list, 8);
    assert_int_equal(n, 2);
    assert_string_equal(trace_look(list[0]).request, "d");
    assert_string_equal(trace_look(list[1]).request, "c");
    for (uint32_t i = 0; i < n; i++)
        trace_unref(list[i]);
    n = trace_ring_last(r, NULL, list, 2);
    assert_int_equal(n, 2);
    for (uint32_t i = 0; i < n; i++)
        trace_unref(list[i]);
    trace_ring_destroy(r);
    trace_unref(b.last);
}

static void test_ring_is_bounded_by_bytes(void **state)
{
    struct trace_ring *r;
    struct err e = {0};
    struct trace *list[100];
    (void)state;
    assert_int_equal(
        trace_ring_create(&r, &(struct trace_ring_opts){.max_traces = 100, .max_bytes = 16384}, &e),
        0);
    for (int i = 0; i < 100; i++)
        one(r, "a", "", 1, false);
    const uint32_t n = trace_ring_last(r, NULL, list, 100);
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        bytes += trace_bytes(list[i]);
        trace_unref(list[i]);
    }
    assert_true(n > 2 && n < 100 && bytes <= 16384);
    trace_ring_destroy(r);
}

static void test_json(void **state)
{
    struct box b = box();
    struct trace_context from;
    struct buf out;
    (void)state;
    assert_true(trace_context_read(&from, "00-" ID "-" PARENT "-01"));
    struct trace *t = trace_open(&b.keeper, &from, "POST /x", TRACE_SERVER, 1000000);
    trace_name(t, "req_1", "");
    trace_number(t, trace_add(t, TRACE_ROOT, "queue", 1500000, 2000000), "n", 3);
    trace_end(t, TRACE_ROOT, 4000000);
    trace_unref(t);
    buf_init(&out, 1 << 16);
    struct json_out j = json_out_make(&out);
    trace_json(&j, b.last, true);
    assert_non_null(strstr(out.data, "\"trace_id\":\"" ID "\",\"request\":\"req_1\""));
    assert_non_null(strstr(out.data, "\"name\":\"POST /x\",\"began_unix_ms\":"));
    assert_non_null(
        strstr(out.data, "\"took_ms\":3,\"failed\":false,\"sampled\":true,\"spans\":["));
    assert_non_null(strstr(out.data,
                           "\"parent\":0,\"name\":\"queue\",\"start_ms\":0.5,"
                           "\"took_ms\":0.5,\"failed\":false,\"attributes\":{\"n\":3}}]"));
    buf_fini(&out);
    trace_unref(b.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_the_last_holder_completes_it),
        cmocka_unit_test(test_many_spans_are_bounded),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_contexts_of_spans),
        cmocka_unit_test(test_sampling_follows_the_id_or_the_caller),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_ring_is_bounded_by_bytes),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
