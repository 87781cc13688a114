/* otlp.c - see otlp.h. */
#include "trace/otlp.h"

#include <string.h>

/* Types of fields on the wire. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* Numbers of fields, by message. */
enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS = 2 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum {
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_PARENT = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16
};
enum { STATUS_CODE = 3, STATUS_ERROR = 2 };
enum { PAIR_KEY = 1, PAIR_VALUE = 2 };
enum { VALUE_TEXT = 1, VALUE_INT = 3 };

static void put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_putc(b, (char)(v | 0x80));
    buf_putc(b, (char)v);
}

static void put_tag(struct buf *b, unsigned field, unsigned type)
{
    put_varint(b, (uint64_t)field << 3 | type);
}

static void put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
    put_tag(b, field, WIRE_BYTES);
    put_varint(b, n);
    buf_put(b, p, n);
}

static void put_text(struct buf *b, unsigned field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static void put_number(struct buf *b, unsigned field, uint64_t v)
{
    put_tag(b, field, WIRE_VARINT);
    put_varint(b, v);
}

static void put_fixed64(struct buf *b, unsigned field, uint64_t v)
{
    char p[8];
    for (int i = 0; i < 8; i++)
        p[i] = (char)(v >> (8 * i));
    put_tag(b, field, WIRE_FIXED64);
    buf_put(b, p, sizeof(p));
}

/* The size of a message comes before it and is known after it: five bytes are set aside, which a
 * varint may fill with leading zeros. */
#define SIZE_BYTES 5u

static size_t open_message(struct buf *b, unsigned field)
{
    static const char space[SIZE_BYTES];
    put_tag(b, field, WIRE_BYTES);
    buf_put(b, space, sizeof(space));
    return b->len;
}

static void close_message(struct buf *b, size_t start)
{
    if (b->rc < 0)
        return;
    size_t n = b->len - start;
    char *p = b->data + start - SIZE_BYTES;
    for (unsigned i = 0; i < SIZE_BYTES; i++, n >>= 7)
        p[i] = (char)((n & 0x7f) | (i + 1 < SIZE_BYTES ? 0x80 : 0));
}

/* text: NULL: the number. */
static void put_pair(struct buf *b, unsigned field, const char *key, const char *text,
                     int64_t number)
{
    const size_t pair = open_message(b, field);
    put_text(b, PAIR_KEY, key);
    const size_t value = open_message(b, PAIR_VALUE);
    if (text)
        put_text(b, VALUE_TEXT, text);
    else
        put_number(b, VALUE_INT, (uint64_t)number);
    close_message(b, value);
    close_message(b, pair);
}

static void put_id(struct buf *b, unsigned field, uint64_t id)
{
    uint8_t p[8];
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(id >> (56 - 8 * i));
    put_bytes(b, field, p, sizeof(p));
}

static void put_span(struct buf *b, const struct trace_view *v, const struct trace_span *s)
{
    const size_t span = open_message(b, SCOPE_SPANS_SPANS);
    const uint64_t parent = s->parent == TRACE_NO_SPAN ? v->from.span : v->spans[s->parent].id;
    put_bytes(b, SPAN_TRACE_ID, v->from.id, sizeof(v->from.id));
    put_id(b, SPAN_ID, s->id);
    if (parent)
        put_id(b, SPAN_PARENT, parent);
    put_text(b, SPAN_NAME, s->name);
    put_number(b, SPAN_KIND, s->kind);
    put_fixed64(b, SPAN_START, s->start_ns + v->unix_ns);
    put_fixed64(b, SPAN_END, s->end_ns + v->unix_ns);
    for (const struct trace_note *n = s->notes; n; n = n->next)
        put_pair(b, SPAN_ATTRIBUTES, n->key, n->text, n->number);
    if (s->failed) {
        const size_t status = open_message(b, SPAN_STATUS);
        put_number(b, STATUS_CODE, STATUS_ERROR);
        close_message(b, status);
    }
    put_tag(b, SPAN_FLAGS, WIRE_FIXED32);
    buf_put(b, v->from.sampled ? "\1\0\0" : "\0\0\0", 4);
    close_message(b, span);
}

void otlp_put(struct buf *b, const struct otlp_resource *who, struct trace *const *traces,
              uint32_t n)
{
    const size_t all = open_message(b, REQUEST_RESOURCE_SPANS);
    const size_t resource = open_message(b, RESOURCE_SPANS_RESOURCE);
    for (uint32_t i = 0; i < who->n; i++)
        put_pair(b, RESOURCE_ATTRIBUTES, who->pairs[i].key, who->pairs[i].text, 0);
    close_message(b, resource);
    const size_t spans = open_message(b, RESOURCE_SPANS_SCOPE_SPANS);
    const size_t scope = open_message(b, SCOPE_SPANS_SCOPE);
    put_text(b, SCOPE_NAME, "shoal");
    put_text(b, SCOPE_VERSION, who->version);
    close_message(b, scope);
    for (uint32_t i = 0; i < n; i++) {
        const struct trace_view v = trace_look(traces[i]);
        for (uint32_t k = 0; k < v.n_spans; k++)
            put_span(b, &v, &v.spans[k]);
    }
    close_message(b, spans);
    close_message(b, all);
}

/* ---- the response ---- */

struct reader {
    const uint8_t *p, *end;
};

static bool read_varint(struct reader *r, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; r->p < r->end && shift < 64; shift += 7) {
        const uint8_t byte = *r->p++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Finds a field; *value: a varint, or the bytes of a message. False: there is none. */
static bool find(struct reader r, unsigned field, unsigned type, uint64_t *value,
                 struct reader *bytes)
{
    uint64_t tag, n;
    while (read_varint(&r, &tag) && read_varint(&r, &n)) { /* the two types that can occur */
        if ((tag & 7) == WIRE_BYTES) {
            if (n > (uint64_t)(r.end - r.p))
                return false;
            *bytes = (struct reader){r.p, r.p + n};
            r.p += n;
        } else if ((tag & 7) != WIRE_VARINT) {
            return false;
        }
        if (tag == ((uint64_t)field << 3 | type)) {
            *value = n;
            return true;
        }
    }
    return false;
}

uint64_t otlp_rejected(const void *response, size_t n)
{
    enum { RESPONSE_PARTIAL = 1, PARTIAL_REJECTED = 1 };
    struct reader r = {response, (const uint8_t *)response + n}, partial;
    uint64_t value;
    if (n == 0 || !find(r, RESPONSE_PARTIAL, WIRE_BYTES, &value, &partial) ||
        !find(partial, PARTIAL_REJECTED, WIRE_VARINT, &value, &r))
        return 0;
    return value;
}
