/* peer_book.h - the addresses of the nodes of a shoal on disk, so that a member that starts while
 * NATS is down finds them.
 *
 * A row is an address and the name that the certificate there must have: whoever listens at an old
 * address now is not trusted for it (node_link.h).
 *
 * Thread:    the owner's; a thread "peers" writes, so that save does not wait for the disk.
 * Ownership: open gives, close takes back (NULL is fine) and writes what was saved last.
 * Failure:   SHOAL_ENOMEM. A file that cannot be read or written is logged: members then find each
 *            other through NATS alone. */
#ifndef SHOAL_CLUSTER_PEER_BOOK_H
#define SHOAL_CLUSTER_PEER_BOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define PEER_BOOK_MAX_ADDRESS 256u
#define PEER_BOOK_MAX_NAME 128u
#define PEER_BOOK_MAX_ROWS 1024u
#define PEER_BOOK_MAX_BYTES ((size_t)1 << 20)

struct peer_book;

typedef void (*peer_book_fn)(void *ctx, const char *address, const char *name);

/* path: copied; its folder must exist. */
SHOAL_MUST_CHECK int peer_book_open(struct peer_book **out, const char *path, struct err *e);
void peer_book_close(struct peer_book *b);
/* The rows of the file. */
void peer_book_read(struct peer_book *b, peer_book_fn fn, void *ctx);
/* Replaces the file by this text: peer_book_begin, then peer_book_put for each row. */
void peer_book_save(struct peer_book *b, const struct buf *text);

void peer_book_begin(struct buf *out);
void peer_book_put(struct buf *out, const char *address, const char *name);
/* The content of such a file.  SHOAL_EFORMAT: it is none; then fn was not called. */
SHOAL_MUST_CHECK int peer_book_parse(const char *text, size_t n, peer_book_fn fn, void *ctx,
                                     struct err *e);

#endif
