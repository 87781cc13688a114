/* fuzz_oms_bundle.c - signatures of models; what was read names no file outside of a model, and can
 * be written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_note.h"
#include "supply/oms_bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oms_bundle b, again;
    struct err e = {0};
    struct buf text;
    oms_bundle_init(&b);
    oms_bundle_init(&again);
    buf_init(&text, OMS_MAX_BYTES);
    if (oms_bundle_read(&b, data, size, &e) < 0) {
        if (!e.msg[0])
            abort(); /* an error must have a message */
        FUZZ_NOTE("%s", e.msg);
    } else {
        for (uint32_t i = 0; i < b.n_files; i++)
            if (strcmp(b.files[i].name, OMS_SINGLE) != 0 && !oms_name_ok(b.files[i].name))
                abort();
        oms_bundle_write(&text, &b);
        FUZZ_NOTE_BYTES(text.data, text.len);
        if (text.rc == 0 && (oms_bundle_read(&again, buf_str(&text), text.len, &e) < 0 ||
                             again.n_files != b.n_files || again.payload.n != b.payload.n))
            abort();
    }
    buf_fini(&text);
    oms_bundle_fini(&again);
    oms_bundle_fini(&b);
    return 0;
}
