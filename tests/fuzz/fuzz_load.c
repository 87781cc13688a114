/* fuzz_load.c - recorded traffic (the first byte is 't') and answers of servers, whole and in
 * pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "load/load_reply.h"
#include "load/load_trace.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void trace(const char *p, size_t n)
{
    struct load_mix m = {0};
    struct load_trace t;
    struct err e = {0};
    const int rc = load_trace_read(&t, &m, p, n, &e);
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc < 0 && (!e.msg[0] || t.rows))
        abort();
    for (size_t i = 0; i < t.n; i++) {
        if (t.rows[i].part >= m.n || (i > 0 && t.rows[i].at_ns < t.rows[i - 1].at_ns))
            abort();
        FUZZ_NOTE(" %llu %u", (unsigned long long)t.rows[i].at_ns, t.rows[i].max_tokens);
    }
    load_trace_fini(&t);
}

static void reply(struct load_reply *r, const char *p, size_t n, size_t step)
{
    load_reply_init(r);
    for (size_t at = 0; at < n; at += step)
        load_reply_data(r, p + at, n - at < step ? n - at : step, 1);
    load_reply_end(r, 1);
    load_reply_fini(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    struct load_reply all, parts;
    if (size > 0 && p[0] == 't') {
        trace(p + 1, size - 1);
        return 0;
    }
    reply(&all, p, size, size + 1);
    reply(&parts, p, size, 3);
    if (all.n_pieces != parts.n_pieces || all.n_tokens != parts.n_tokens ||
        all.done != parts.done || all.bad != parts.bad || strcmp(all.error, parts.error) != 0)
        abort(); /* how the bytes are cut changes nothing */
    FUZZ_NOTE("%u %u %d %d %s", all.n_pieces, all.n_tokens, all.done, all.bad, all.error);
    return 0;
}
