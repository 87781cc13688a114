/* fuzz_wyoming.c - a stream of Wyoming events: every event is within the bytes, and a part of the
 * bytes never gives another event than all of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_note.h"
#include "wire/wyoming.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    size_t at = 0;
    for (int i = 0; i < 16; i++) {
        struct wyoming_event ev, cut;
        struct err e = {0};
        size_t want = 0, other;
        const int64_t took = wyoming_next(&ev, p + at, size - at, &want, &e);
        FUZZ_NOTE("%d", (int)took);
        if (took < 0 && (!e.msg[0] || ev.data))
            abort(); /* an error has a message, and no event */
        if (took == 0 && want <= size - at)
            abort(); /* it asks for what is there */
        if (took <= 0)
            break;
        if (ev.payload + ev.payload_bytes != p + at + took || ev.payload < p + at || !ev.type[0])
            abort();
        if (wyoming_next(&cut, p + at, (size_t)took - 1, &other, &e) > 0)
            abort(); /* an event needs its last byte */
        FUZZ_NOTE(" %s", ev.type);
        (void)wyoming_text(&ev, "text");
        FUZZ_NOTE(" %u", wyoming_number(&ev, "rate", 7));
        wyoming_free(&ev);
        at += (size_t)took;
    }
    return 0;
}
