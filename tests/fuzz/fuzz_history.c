/* fuzz_history.c - stored conversations: read, joined, trimmed and written again. */
#include <stdint.h>
#include <stdlib.h>

#include "knowledge/history.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct buf b;
    struct history h, all, back;
    struct err e = {0};
    arena_init(&a, (size_t)64 << 20);
    buf_init(&b, (size_t)64 << 20);
    if (history_read(&h, (const char *)data, size, &a, &e) == 0 &&
        history_join(&all, &h, h.messages, h.n ? 1 : 0, &a, &e) == 0) {
        uint32_t n = all.n;
        history_trim(&all, 50, 1);
        history_write(&all, &b);
        FUZZ_NOTE_BYTES(b.data, b.len);
        if (all.n > n || (b.rc == 0 && history_read(&back, buf_str(&b), b.len, &a, &e) < 0))
            abort();
    }
    FUZZ_NOTE("%s", e.msg);
    buf_fini(&b);
    arena_fini(&a);
    return 0;
}
