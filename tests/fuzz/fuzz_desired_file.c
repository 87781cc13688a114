/* fuzz_desired_file.c - snapshots of the desired state: as they are, and with a valid checksum,
 * which no fuzzer would find. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/control/desired.h"
#include "cluster/control/desired_file.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct desired *d;
    struct sha256 s;
    struct err e;
    int rc = desired_file_parse(&d, data, size, &e);
    FUZZ_NOTE("%d %s|", rc, rc < 0 ? e.msg : "");
    if (rc == 0)
        desired_destroy(d);
    if (size < SHA256_BYTES)
        return 0;
    uint8_t *copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    sha256_begin(&s);
    sha256_add(&s, copy, size - SHA256_BYTES);
    if (!sha256_end(&s, copy + size - SHA256_BYTES))
        abort();
    rc = desired_file_parse(&d, copy, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc == 0)
        desired_destroy(d);
    free(copy);
    return 0;
}
