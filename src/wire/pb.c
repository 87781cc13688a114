/* pb.c - see pb.h. */
#include "wire/pb.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static void *heap_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return mem_alloc(n);
}

static void heap_free(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

ProtobufCAllocator *pb_heap(void)
{
    static const ProtobufCAllocator heap = {heap_alloc, heap_free, NULL};
    return (ProtobufCAllocator *)(uintptr_t)&heap; /* the library only reads it */
}

int pb_put(struct buf *out, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = mem_alloc(n + 1);
    if (!p)
        return SHOAL_ENOMEM;
    protobuf_c_message_pack(m, p);
    buf_put(out, p, n);
    mem_free(p);
    return out->rc;
}

/* ---- fields ---- */

char *pb_text(const char *s)
{
    return (char *)(uintptr_t)(s ? s : "");
}

ProtobufCBinaryData pb_bytes(const void *p, size_t n)
{
    return (ProtobufCBinaryData){n, (uint8_t *)(uintptr_t)p};
}

void *pb_list(struct arena *a, size_t n, size_t size, void ***pointers)
{
    char *items = arena_zalloc_n(a, n, size);
    *pointers = arena_zalloc_n(a, n, sizeof(void *));
    for (size_t i = 0; items && *pointers && i < n; i++)
        (*pointers)[i] = items + i * size;
    return *pointers ? items : NULL;
}

/* ---- decoding ---- */

static void *arena_alloc(void *arena, size_t n)
{
    return arena_zalloc(arena, n);
}

static void arena_leave(void *arena, void *p)
{
    (void)arena; /* freed as a whole */
    (void)p;
}

void *pb_unpack(const ProtobufCMessageDescriptor *d, struct arena *a, const uint8_t *p, size_t n)
{
    ProtobufCAllocator heap = {arena_alloc, arena_leave, a};
    return protobuf_c_message_unpack(d, &heap, n, p);
}

/* ---- checks ---- */

#define MAX_DEPTH 8u

struct checker {
    size_t fields_left;
    char *path;
    size_t cap;
};

/* False: the bytes end inside it, or it is too long. */
static bool take_varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t b = *(*p)++;
        *out |= (uint64_t)(b & 127) << shift;
        if (!(b & 128))
            return true;
    }
    return false;
}

/* The bytes of a field's value; *n: their length.  False: malformed. */
static bool take_value(const uint8_t **p, const uint8_t *end, uint64_t wire, size_t *n)
{
    uint64_t v;
    if (wire == 0) {
        *n = 0;
        return take_varint(p, end, &v);
    }
    v = wire == 1 ? 8 : wire == 5 ? 4 : 0;
    if ((wire == 2 && !take_varint(p, end, &v)) || (v == 0 && wire != 2))
        return false;
    if (v > (uint64_t)(end - *p))
        return false;
    *n = (size_t)v;
    return true;
}

static int check_fields(struct checker *c, const ProtobufCMessageDescriptor *d, const uint8_t *p,
                        size_t n, size_t at, unsigned depth)
{
    const uint8_t *end = p + n;
    const ProtobufCFieldDescriptor *last = NULL;
    uint32_t index =
        0; /* index into the elements of `last`, which are adjacent as clients write them */
    while (p < end) {
        uint64_t tag;
        size_t bytes;
        if (c->fields_left-- == 0)
            return SHOAL_ELIMIT;
        if (!take_varint(&p, end, &tag) || !take_value(&p, end, tag & 7, &bytes))
            return 0; /* the decoder refuses it */
        const ProtobufCFieldDescriptor *f =
            tag >> 3 <= UINT32_MAX
                ? protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3))
                : NULL;
        bool string = f && (tag & 7) == 2 && f->type == PROTOBUF_C_TYPE_STRING,
             inner = f && (tag & 7) == 2 && f->type == PROTOBUF_C_TYPE_MESSAGE;
        index = f && f == last ? index + 1 : 0;
        last = f;
        if (string || inner) {
            const char *dot = at > 0 ? "." : "";
            int k = f->label == PROTOBUF_C_LABEL_REPEATED
                        ? snprintf(c->path + at, c->cap - at, "%s%s[%u]", dot, f->name, index)
                        : snprintf(c->path + at, c->cap - at, "%s%s", dot, f->name);
            size_t to = at + (size_t)(k > 0 ? k : 0);
            if (string && memchr(p, 0, bytes))
                return SHOAL_EFORMAT;
            int rc = inner && depth < MAX_DEPTH
                         ? check_fields(c, f->descriptor, p, bytes, to < c->cap ? to : c->cap - 1,
                                        depth + 1)
                         : 0;
            if (rc < 0)
                return rc;
            c->path[at] = '\0';
        }
        p += bytes;
    }
    return 0;
}

int pb_check(const ProtobufCMessageDescriptor *d, const uint8_t *p, size_t n, size_t max_fields,
             char *path, size_t cap)
{
    struct checker c = {.fields_left = max_fields, .path = path, .cap = cap};
    path[0] = '\0';
    return check_fields(&c, d, p, n, 0, 0);
}
