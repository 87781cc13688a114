/* fuzz_sounds.c - the sounds of words from any bytes, and a word that is said with them: the first
 * byte is its length. */
#include <stdint.h>
#include <stdlib.h>

#include "support/fuzz_note.h"
#include "text/speech/sounds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t n = size ? data[0] : 0;
    struct sounds *s;
    struct err e = {0};
    struct buf out;
    if (size < 1 + n)
        return 0;
    if (sounds_create(&s, data + 1 + n, size - 1 - n, &e) < 0) {
        if (!e.msg[0])
            abort(); /* an error must have a message */
        FUZZ_NOTE(" refused");
        return 0;
    }
    buf_init(&out, (size_t)1 << 20);
    sounds_say(s, (const char *)data + 1, n, &out);
    FUZZ_NOTE(" %s", buf_str(&out));
    buf_clear(&out);
    sounds_guess(s, (const char *)data + 1, n, &out);
    FUZZ_NOTE(" %s", buf_str(&out));
    buf_fini(&out);
    sounds_destroy(s);
    return 0;
}
