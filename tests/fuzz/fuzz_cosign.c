/* fuzz_cosign.c - what is kept of cosign's signatures: what is accepted has a payload about its
 * manifest, and files with names that stay in the model. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "supply/cosign.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oms_bundle b;
    struct err e = {0};
    oms_bundle_init(&b);
    if (cosign_read(&b, data, size, &e) < 0) {
        if (!e.msg[0])
            abort(); /* an error must have a message */
        FUZZ_NOTE("%s", e.msg);
    } else {
        if (b.n_plain == 0 || b.n_files == 0 ||
            !memmem(b.plain[0].payload.p, b.plain[0].payload.n, "sha256:", 7))
            abort();
        for (uint32_t i = 0; i < b.n_files; i++)
            if (!oms_name_ok(b.files[i].name))
                abort();
        FUZZ_NOTE("%u signatures of %u files, the first %s", b.n_plain, b.n_files, b.files[0].name);
    }
    oms_bundle_fini(&b);
    return 0;
}
