/* fuzz_sealed_file.c - headers of encrypted files: what is accepted describes a file of that size.
 */
#include <stdint.h>
#include <stdlib.h>

#include "format/sealed_file.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sealed_head h;
    struct err e = {0};
    if (sealed_head_read(&h, data, size, size, &e) < 0) {
        if (!e.msg[0])
            abort(); /* an error must have a message */
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    if (h.n_bytes == 0 || h.n_bytes >= size || h.chunk < 64 || h.log_n > 20)
        abort();
    FUZZ_NOTE("kind %d, scrypt 2^%u, %llu bytes in chunks of %zu", (int)h.wrap, h.log_n,
              (unsigned long long)h.n_bytes, h.chunk);
    return 0;
}
