/* pb.c - see pb.h. */
#include "wire/pb.h"

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
