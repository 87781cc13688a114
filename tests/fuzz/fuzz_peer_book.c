/* fuzz_peer_book.c - the addresses of nodes on disk. Rows are written back as an equal file, and a
 * damaged file gives none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/peer_book.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *ctx, const char *address, const char *name)
{
    peer_book_put(ctx, address, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf b;
    struct err e;
    buf_init(&b, PEER_BOOK_MAX_BYTES);
    peer_book_begin(&b);
    const size_t empty = b.len;
    int rc = peer_book_parse((const char *)data, size, take, &b, &e);
    if (rc < 0 ? b.len != empty : b.len != size || memcmp(b.data, data, size) != 0)
        abort();
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    buf_fini(&b);
    return 0;
}
