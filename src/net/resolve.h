/* resolve.h - host names to addresses without blocking a loop.
 *
 * Numeric addresses and unix sockets are resolved at once; a name is looked up on its own thread.
 *
 * Thread:    the loop's.
 * Ownership: the answer is borrowed for the call.
 * Failure:   an address that cannot be parsed fails at once, an unknown name in the callback. */
#ifndef SHOAL_NET_RESOLVE_H
#define SHOAL_NET_RESOLVE_H

#include <sys/socket.h>

#include "base/err.h"

struct loop;
struct resolve;

#define RESOLVE_MAX 8u /* addresses of a name that are tried */

struct resolve_answer {
    unsigned n;
    struct {
        struct sockaddr_storage addr;
        socklen_t n_addr;
    } at[RESOLVE_MAX];
};

/* code: 0, or SHOAL_EIO with a message.  Not called after resolve_cancel. */
typedef void (*resolve_fn)(void *ctx, int code, const struct resolve_answer *answer,
                           const char *message);

/* "HOST:PORT" or "unix:PATH".  If the answer needs no lookup, it is in *answer and *out is NULL;
 * otherwise fn will be called, unless it is cancelled before. */
SHOAL_MUST_CHECK int resolve_start(struct resolve **out, struct resolve_answer *answer,
                                   struct loop *l, const char *address, resolve_fn fn, void *ctx,
                                   struct err *e);
void resolve_cancel(struct resolve *r); /* NULL is fine */

#endif
