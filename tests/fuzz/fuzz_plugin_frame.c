/* fuzz_plugin_frame.c - the header of a plug-in's answer, and the reason that follows it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "site/deeds/plugin_frame.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_clean(const char *text, size_t n)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + n;
    while (at < end) {
        uint32_t cp = 0;
        unsigned len = utf8_decode(at, end, &cp);
        if (len == 0 || cp < 0x20)
            abort();
        at += len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plugin_frame_answer a;
    char why[PLUGIN_FRAME_WHY_BYTES];
    if (size < PLUGIN_FRAME_HEAD_BYTES)
        return 0;
    if (plugin_frame_read(&a, data, 1 << 20) == 0 &&
        (a.why_bytes >= sizeof(why) || a.text_bytes > 1 << 20 || (a.code != 0 && a.text_bytes > 0)))
        abort();
    const size_t rest = size - PLUGIN_FRAME_HEAD_BYTES, n = rest < sizeof(why) ? rest : sizeof(why);
    memcpy(why, data + PLUGIN_FRAME_HEAD_BYTES, n);
    plugin_frame_clean(why, n);
    check_clean(why, n);
    FUZZ_NOTE_BYTES(why, n);
    return 0;
}
