/* fuzz_audio_read.c - files of any bytes as sounds: at most a few seconds of each are read. */
#include <stdint.h>
#include <stdlib.h>

#include "audio/audio_read.h"
#include "audio/windows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int16_t sound[WINDOWS_MOST + 1];
    struct err e = {0};
    struct audio *a;
    if (audio_open_memory(&a, data, size, &e) < 0) {
        if (a || !e.msg[0])
            abort(); /* an error must have a message */
        return 0;
    }
    const struct audio_info *info = audio_info(a);
    if (info->channels == 0 || info->rate == 0 || !(info->seconds >= 0))
        abort();
    const int64_t n = audio_read(a, sound, WINDOWS_MOST + 1, &e);
    if (n > WINDOWS_MOST + 1 || (n < 0 && !e.msg[0]))
        abort();
    if (n > 0 && windows_cut(sound, (uint32_t)n, true) == 0)
        abort();
    audio_close(a);
    return 0;
}
