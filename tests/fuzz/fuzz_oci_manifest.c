/* fuzz_oci_manifest.c - manifests of models from registries; a parsed manifest can be written and
 * read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "depot/source/oci_manifest.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t most = (uint64_t)1 << 30;
    static struct oci_manifest m, again;
    struct err e = {0};
    struct buf b;
    if (oci_manifest_read(&m, (const char *)data, size, most, &e) < 0) {
        if (!e.msg[0])
            abort(); /* an error must have a message */
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    for (uint32_t i = 0; i < m.n_files; i++)
        if (strlen(m.files[i].blob.digest) != 71 || m.files[i].name[0] == '/' ||
            strstr(m.files[i].name, ".."))
            abort();
    if (m.n_files == 0) /* an index */
        return 0;
    for (int i = 0; i < OCI_N_PARTS; i++)
        if (m.parts[i].digest[0] && (strlen(m.parts[i].digest) != 71 || m.parts[i].bytes > most ||
                                     strspn(m.parts[i].digest + 7, "0123456789abcdef") != 64))
            abort();
    buf_init(&b, OCI_MANIFEST_MAX_BYTES);
    oci_manifest_write(&m, &b);
    FUZZ_NOTE_BYTES(b.data, b.len);
    m.parts[OCI_PART_CONFIG] = (struct oci_blob){.bytes = 0}; /* is written, not read */
    if (b.rc == 0 && (oci_manifest_read(&again, buf_str(&b), b.len, most, &e) < 0 ||
                      m.n_files != again.n_files || m.folder != again.folder ||
                      memcmp(m.parts, again.parts, sizeof(m.parts)) != 0))
        abort();
    buf_fini(&b);
    return 0;
}
