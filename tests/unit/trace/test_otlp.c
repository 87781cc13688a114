/* test_otlp.c - traces as OTLP: the bytes are read back by a small reader of protobuf that knows
 * the published field numbers only.  tests/conformance/otlp reads them with OpenTelemetry's own
 * code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/otlp.h"

struct box {
    struct trace_keeper keeper;
    struct trace *last;
};

static void keep(struct trace_keeper *k, struct trace *t)
{
    ((struct box *)(void *)k)->last = trace_ref(t);
}

struct bytes {
    const uint8_t *p, *end;
};

static uint64_t varint(struct bytes *b)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(b->p < b->end && shift < 64);
        v |= (uint64_t)(*b->p & 0x7f) << shift;
        if (!(*b->p++ & 0x80))
            return v;
    }
}

/* The n-th field with a number: its bytes, or its value. */
static bool field(struct bytes b, unsigned number, int nth, struct bytes *out, uint64_t *value)
{
    while (b.p < b.end) {
        const uint64_t tag = varint(&b);
        struct bytes content = {b.p, b.p};
        uint64_t v = 0;
        if ((tag & 7) == 2) {
            const uint64_t n = varint(&b);
            assert_true(n <= (uint64_t)(b.end - b.p));
            content = (struct bytes){b.p, b.p + n};
            b.p += n;
        } else if ((tag & 7) == 0) {
            v = varint(&b);
        } else {
            const unsigned n = (tag & 7) == 1 ? 8 : 4;
            assert_true((tag & 7) == 1 || (tag & 7) == 5);
            for (unsigned i = 0; i < n; i++)
                v |= (uint64_t)*b.p++ << (8 * i);
        }
        if (tag >> 3 == number && nth-- == 0) {
            *out = content;
            *value = v;
            return true;
        }
    }
    return false;
}

static struct bytes message(struct bytes b, unsigned number, int nth)
{
    struct bytes out = {NULL, NULL};
    uint64_t v;
    if (!field(b, number, nth, &out, &v))
        fail_msg("no field %u", number);
    return out;
}

static uint64_t number(struct bytes b, unsigned n)
{
    struct bytes out;
    uint64_t v = 0;
    if (!field(b, n, 0, &out, &v))
        fail_msg("no field %u", n);
    return v;
}

static void text_is(struct bytes b, const char *text)
{
    assert_int_equal(b.end - b.p, strlen(text));
    assert_memory_equal(b.p, text, strlen(text));
}

static void test_a_trace(void **state)
{
    static const struct otlp_pair pairs[] = {{"service.name", "shoal"}, {"host", "box-1"}};
    const struct otlp_resource who = {pairs, 2, "1.2.3"};
    struct box box = {.keeper = {keep, 1}};
    struct trace_context from;
    struct bytes none;
    struct buf out;
    uint64_t v;
    (void)state;
    assert_true(
        trace_context_read(&from, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    struct trace *t = trace_open(&box.keeper, &from, "POST /v1/chat", TRACE_SERVER, 5000);
    const uint32_t node = trace_add(t, TRACE_ROOT, "node", 6000, 7000);
    trace_set_kind(t, node, TRACE_CLIENT);
    trace_number(t, node, "tokens", -2);
    trace_text(t, node, "name", "box-2");
    trace_fail(t, node, NULL);
    trace_end(t, TRACE_ROOT, 9000);
    trace_unref(t);
    buf_init(&out, 1 << 16);
    otlp_put(&out, &who, &box.last, 1);
    assert_int_equal(out.rc, 0);
    const struct bytes all = {(const uint8_t *)out.data, (const uint8_t *)out.data + out.len};
    const struct bytes resource_spans = message(all, 1, 0);
    const struct bytes host = message(message(resource_spans, 1, 0), 1, 1);
    text_is(message(host, 1, 0), "host");
    text_is(message(message(host, 2, 0), 1, 0), "box-1");
    const struct bytes scope_spans = message(resource_spans, 2, 0);
    text_is(message(message(scope_spans, 1, 0), 1, 0), "shoal");
    text_is(message(message(scope_spans, 1, 0), 2, 0), "1.2.3");
    const struct bytes root = message(scope_spans, 2, 0), below = message(scope_spans, 2, 1);
    assert_false(field(scope_spans, 2, 2, &none, &v));
    const struct trace_view look = trace_look(box.last);
    assert_memory_equal(message(root, 1, 0).p, look.from.id, 16);
    assert_memory_equal(message(root, 4, 0).p, "\xb7\xad\x6b\x71\x69\x20\x33\x31", 8);
    text_is(message(root, 5, 0), "POST /v1/chat");
    assert_int_equal(number(root, 6), 2);
    assert_int_equal(number(root, 7), 5000 + look.unix_ns);
    assert_int_equal(number(root, 8), 9000 + look.unix_ns);
    assert_false(field(root, 15, 0, &none, &v)); /* no error */
    assert_int_equal(number(root, 16), 1);
    assert_memory_equal(message(below, 4, 0).p, message(root, 2, 0).p, 8); /* the parent's id */
    assert_int_equal(number(below, 6), 3);
    assert_int_equal(number(message(below, 15, 0), 3), 2);
    text_is(message(message(below, 9, 0), 1, 0), "tokens");
    assert_int_equal((int64_t)number(message(message(below, 9, 0), 2, 0), 3), -2);
    text_is(message(message(message(below, 9, 1), 2, 0), 1, 0), "box-2");
    buf_fini(&out);
    /* no room: nothing is written behind the end */
    buf_init(&out, 40);
    otlp_put(&out, &who, &box.last, 1);
    assert_true(out.rc < 0);
    buf_fini(&out);
    trace_unref(box.last);
}

static void test_what_a_collector_refuses(void **state)
{
    (void)state;
    assert_int_equal(otlp_rejected("", 0), 0);
    assert_int_equal(otlp_rejected("\x0a\x02\x08\x05", 4), 5);
    assert_int_equal(otlp_rejected("\x0a\x0a\x12\x03why\x08\x96\x01\x12\x01z", 12), 150);
    assert_int_equal(otlp_rejected("\x0a\x7f\x08\x05", 4), 0); /* longer than it is */
    assert_int_equal(otlp_rejected("\x0a\x02\x08", 3), 0);     /* cut */
    assert_int_equal(otlp_rejected("\x0a\x02\x09\x05", 4), 0); /* another type */
    assert_int_equal(otlp_rejected("<html>not found</html>", 22), 0);
    assert_int_equal(otlp_rejected("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trace),
        cmocka_unit_test(test_what_a_collector_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
