/* fuzz_model_delta.c - patches of models: what is accepted makes as many bytes as it says, of an
 * old file that is shorter than some of them claim. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "depot/delta/delta_block.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OLD = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t old[OLD];
    struct delta_head h;
    struct delta_record r;
    struct delta_work w = {0};
    struct err e = {0};
    int n = 0, rc = delta_head_read(&h, data, size, &e);
    size_t at = DELTA_HEAD_BYTES;
    uint64_t left = rc == 0 ? h.new_bytes : 0;
    if (rc == 0 && h.old_bytes > OLD)
        h.old_bytes = OLD;
    while (rc == 0 && left > 0 && at + DELTA_RECORD_BYTES <= size) {
        rc = delta_record_read(&r, data + at, &h, left, &e);
        at += DELTA_RECORD_BYTES;
        if (rc < 0 || r.packed > size - at)
            break;
        if (r.old_at + r.old_n > h.old_bytes || r.new_n > left)
            abort();
        if (r.kind != DELTA_COPY) {
            uint8_t *out = malloc(r.new_n);
            uint8_t *packed = malloc(r.packed + 1u);
            if (!out || !packed)
                abort();
            memcpy(packed, data + at, r.packed);
            rc = delta_unpack(&w, &r, old + r.old_at, packed, out, &e);
            free(out);
            free(packed);
        }
        at += r.packed;
        left -= r.new_n;
        n++;
    }
    if (rc < 0 && !e.msg[0])
        abort(); /* an error must have a message */
    FUZZ_NOTE("%d records, %llu bytes missing: %s", n, (unsigned long long)left,
              rc < 0 ? e.msg : "good");
    delta_work_fini(&w);
    return 0;
}
