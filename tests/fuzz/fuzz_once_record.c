/* fuzz_once_record.c - the record of an idempotency key that another gateway wrote, and its answer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/event_pb.h"
#include "cluster/once/once_record.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void read_events(const uint8_t *p, size_t n)
{
    struct arena scratch, keep;
    struct event_pb_list list;
    struct event_pb e;
    arena_init(&scratch, (size_t)1 << 24);
    arena_init(&keep, (size_t)1 << 24);
    int rc = event_pb_open(&list, p, n, &scratch, &keep);
    for (size_t i = 0; rc == 0 && i < list.n; i++)
        rc = event_pb_get(&e, &list, i);
    arena_fini(&scratch);
    arena_fini(&keep);
}

static void read_answer(const uint8_t *p, size_t n)
{
    const uint8_t *message;
    size_t bytes;
    int64_t used;
    for (int i = 0; (used = once_record_next_message(&message, &bytes, p, n)) > 0; i++) {
        struct once_record_about about;
        struct err e = {0};
        expect((size_t)used <= n && message >= p && message + bytes == p + used);
        FUZZ_NOTE(" %zu", bytes);
        if (i > 0)
            read_events(message, bytes);
        else if (once_record_read_about(&about, message, bytes, &e) == 0)
            for (const char *c = about.node; *c; c++)
                expect(*c > 0x20 && *c < 0x7f);
        p += used;
        n -= (size_t)used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct once_record r, again;
    struct err e = {0};
    struct buf out;
    if (once_record_read(&r, data, size, &e) < 0) {
        expect(e.msg[0] != '\0');
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    expect(r.state <= ONCE_RECORD_PARTS && strlen(r.owner) <= ONCE_RECORD_MAX_OWNER);
    expect(r.answer + r.n_answer == data + size);
    buf_init(&out, (size_t)1 << 24);
    once_record_put(&out, &r);
    expect(out.rc == 0 && out.len == size);
    expect(once_record_read(&again, (const uint8_t *)out.data, out.len, &e) == 0);
    expect(again.state == r.state && again.until_ms == r.until_ms &&
           strcmp(again.owner, r.owner) == 0 && again.n_answer == r.n_answer);
    FUZZ_NOTE("%d %llu %s %zu", (int)r.state, (unsigned long long)r.until_ms, r.owner, r.n_answer);
    read_answer(r.answer, r.n_answer);
    struct once_record_parts p;
    if (once_record_read_parts(&p, r.answer, r.n_answer, &e) == 0) {
        expect(once_record_n_parts(p.bytes) >= 1);
        expect(once_record_n_parts(p.bytes) <= ONCE_RECORD_MAX_PARTS);
        buf_clear(&out);
        once_record_put_parts(&out, &p);
        expect(out.len == r.n_answer && memcmp(out.data, r.answer, out.len) == 0);
    }
    buf_fini(&out);
    return 0;
}
