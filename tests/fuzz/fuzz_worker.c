/* fuzz_worker.c - messages of a compromised worker: frames of the ring with events in them (even
 * first byte), states on the control socket (odd). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/event_pb.h"
#include "cluster/worker/worker_frame.h"
#include "cluster/worker/worker_pb.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void read_events(const struct worker_frame *f)
{
    struct arena scratch, keep;
    struct event_pb_list list;
    struct event_pb e;
    arena_init(&scratch, (size_t)1 << 24);
    arena_init(&keep, (size_t)1 << 24);
    int rc = event_pb_open(&list, f->p, f->n, &scratch, &keep);
    for (size_t i = 0; rc == 0 && i < list.n; i++)
        rc = event_pb_get(&e, &list, i);
    arena_fini(&scratch);
    arena_fini(&keep);
}

static void read_frames(const uint8_t *p, size_t n)
{
    struct worker_frame f;
    while (worker_frame_next(&f, p, n) > 0) {
        expect(f.bytes <= n && f.n <= f.bytes && f.p == p + WORKER_FRAME_HEAD_BYTES);
        expect(f.kind >= WORKER_FRAME_RUN && f.kind <= WORKER_FRAME_CLOSED);
        FUZZ_NOTE(" %d %zu", (int)f.kind, (size_t)f.n);
        if (f.kind == WORKER_FRAME_EVENTS)
            read_events(&f);
        p += f.bytes;
        n -= f.bytes;
    }
}

static void read_state(const uint8_t *p, size_t n)
{
    struct worker_state s;
    struct arena a;
    arena_init(&a, (size_t)1 << 20);
    if (worker_pb_read_state(&s, &a, p, n) == 0) {
        expect(s.state == REGISTRY_LOADING || s.state == REGISTRY_READY ||
               s.state == REGISTRY_FAILED);
        expect(s.progress <= 1000 && s.code < 0 && s.info.bytes <= SIZE_MAX / 4);
        expect(isfinite(s.token_ns) && s.token_ns >= 0 && isfinite(s.prefill_ns));
        for (const char *c = s.error; *c; c++)
            expect((unsigned char)*c >= 0x20 && *c != 0x7f);
        FUZZ_NOTE("%d %u %d %s %g %g", (int)s.state, s.progress, s.code, s.error, s.token_ns,
                  s.prefill_ns);
    }
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2)
        read_state(data + 1, size - 1);
    else if (size > 0)
        read_frames(data + 1, size - 1);
    return 0;
}
