/* fuzz_coding.c - compressed bodies: the first byte chooses the coding, the rest is the message. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/coding.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const enum coding codings[] = {CODING_GZIP, CODING_BROTLI, CODING_ZSTD};
    const size_t max = (size_t)1 << 20;
    struct buf out;
    if (n == 0)
        return 0;
    buf_init(&out, SIZE_MAX / 2);
    const int rc = coding_decode(&out, codings[data[0] % 3], data + 1, n - 1, max);
    if (out.len > max || rc > 0)
        abort();
    FUZZ_NOTE("%d ", rc);
    FUZZ_NOTE_BYTES(out.data, rc == 0 ? out.len : 0);
    buf_fini(&out);
    return 0;
}
