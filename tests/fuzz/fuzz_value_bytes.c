/* fuzz_value_bytes.c - trees of values as bytes.  The encoding has one form: a parsed value is
 * written as the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/value_bytes.h"
#include "support/fuzz_note.h"

#define MAX_BYTES ((size_t)1 << 26)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct value v;
    struct arena a;
    struct buf again;
    arena_init(&a, MAX_BYTES);
    buf_init(&again, size + 1);
    const int rc = value_bytes_get(&v, &a, data, size);
    FUZZ_NOTE("%d", rc);
    if (rc == 0) {
        value_bytes_put(&again, &v);
        if (again.rc < 0 || again.len != size || memcmp(again.data, data, size) != 0)
            abort();
    }
    buf_fini(&again);
    arena_fini(&a);
    return 0;
}
