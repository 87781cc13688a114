/* fuzz_request.h - notes a request that was read, as one node would send it to another, or why it
 * was refused.
 *
 * Thread: one. */
#ifndef SHOAL_TESTS_FUZZ_REQUEST_H
#define SHOAL_TESTS_FUZZ_REQUEST_H

#include "base/buf.h"
#include "cluster/messages/request_pb.h"
#include "support/fuzz_note.h"
#include "gateway/call/fields.h"

static inline void fuzz_request(const struct request *r, int rc, const struct fields_error *e)
{
    struct buf b;
    FUZZ_NOTE("%d %s %s %s", rc, e->param, e->msg, e->code ? e->code : "");
    if (rc < 0)
        return;
    FUZZ_NOTE(" %d%d%d%d %zu ", r->no_cache, r->truncates, r->remembered, r->streams,
              r->input_bytes);
    buf_init(&b, (size_t)1 << 26);
    if (request_pb_put(&b, r, 1000) == 0)
        FUZZ_NOTE_BYTES(b.data, b.len);
    buf_fini(&b);
}

#endif
