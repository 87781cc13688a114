/* fuzz_session_keys.c - key files of sessions, and invalid sealed bytes: none open. */
#include <stdint.h>
#include <stdlib.h>

#include "store/session/session_keys.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session_keys *k;
    struct buf out;
    struct err e = {0};
    int rc = session_keys_parse(&k, (const char *)data, size, "keys", &e);
    if (rc < 0 && (k || !e.msg[0]))
        abort();
    FUZZ_NOTE("%d %s", rc, e.msg);
    buf_init(&out, 1 << 20);
    if (rc == 0 && session_keys_unseal(k, "anna", "s", data, size, &out, &e) == 0)
        abort(); /* a forgery */
    session_keys_close(k);
    buf_fini(&out);
    return 0;
}
