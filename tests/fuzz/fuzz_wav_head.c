/* fuzz_wav_head.c - the beginning of a WAV file in a pipe, and its samples. */
#include <stdint.h>
#include <stdlib.h>

#include "audio/wav_head.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pcm_form form = {0};
    struct pcm *pcm = NULL;
    struct err e = {0};
    struct buf out;
    size_t skip = 0;
    const int rc = wav_head(data, size, &form, &skip, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc < 0 && !e.msg[0])
        abort(); /* an error must have a message */
    if (rc == 1 && skip > size)
        abort();
    if (rc != 1 || pcm_create(&pcm, &form, &e) < 0)
        return 0;
    buf_init(&out, (size_t)1 << 20);
    const int fed = pcm_feed(pcm, data + skip, size - skip, &out, &e);
    FUZZ_NOTE(" %u %u %u: %d, %zu bytes", form.rate, form.channels, form.width, fed, out.len);
    buf_fini(&out);
    pcm_destroy(pcm);
    return 0;
}
