/* fuzz_minisign.c - keys and signatures of minisign. */
#include <stdint.h>
#include <stdlib.h>

#include "support/fuzz_note.h"
#include "supply/minisign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct minisign m;
    struct minisign_key k;
    struct err e = {0};
    char id[17];
    if (minisign_read_key(&k, (const char *)data, size, &e) == 0) {
        minisign_id(id, k.id);
        FUZZ_NOTE("key %s", id);
    } else if (!e.msg[0]) {
        abort(); /* an error must have a message */
    }
    e = (struct err){0};
    if (minisign_read(&m, (const char *)data, size, &e) == 0)
        FUZZ_NOTE("signature, %s", m.comment);
    else if (!e.msg[0])
        abort();
    else
        FUZZ_NOTE("%s", e.msg);
    return 0;
}
