/* fuzz_pack.c - manifests of model packs. */
#include <stddef.h>
#include <stdint.h>

#include "host/pack.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pack *p;
    struct err e;
    char names[64];
    const int rc = pack_parse(&p, "dir", (const char *)data, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc == 0) {
        pack_names(p, names, sizeof(names));
        FUZZ_NOTE("%s", names);
        (void)pack_find(p, "a");
        pack_close(p);
    }
    return 0;
}
