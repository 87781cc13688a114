/* worker_frame.c - see worker_frame.h. */
#include "cluster/worker/worker_frame.h"

struct head { /* both processes are the same program */
    uint32_t n, kind;
    uint64_t id;
};
_Static_assert(sizeof(struct head) == WORKER_FRAME_HEAD_BYTES, "no padding");

int worker_frame_next(struct worker_frame *f, const void *p, size_t n)
{
    struct head h;
    if (n < sizeof(h))
        return 0;
    memcpy(&h, p, sizeof(h));
    if (h.n > WORKER_FRAME_MAX_BYTES || h.kind < WORKER_FRAME_RUN || h.kind > WORKER_FRAME_CLOSED)
        return SHOAL_EFORMAT;
    if (n - sizeof(h) < h.n)
        return 0;
    *f = (struct worker_frame){h.kind, h.id, (const uint8_t *)p + sizeof(h), h.n,
                               sizeof(h) + (size_t)h.n};
    return 1;
}

void worker_frame_put(struct buf *out, enum worker_frame_kind kind, uint64_t id, const void *p,
                      size_t n)
{
    const struct head h = {(uint32_t)n, (uint32_t)kind, id};
    buf_put(out, &h, sizeof(h));
    buf_put(out, p, n);
}
