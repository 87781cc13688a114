/* dial.h - opens a connection without blocking the loop: looks the host up and tries its addresses
 * one after the other.
 *
 * Thread:    the loop's.
 * Ownership: the caller's struct is linked; free what contains it with loop_later.  A connected
 *            descriptor belongs to the callback's receiver.
 * Failure:   in the callback.  There is no time limit: cancel it. */
#ifndef SHOAL_NET_DIAL_H
#define SHOAL_NET_DIAL_H

#include "net/loop.h"
#include "net/resolve.h"

/* fd: connected, non-blocking; -1: why says what failed. */
typedef void (*dial_fn)(void *ctx, int fd, const char *why);

struct dial {
    struct loop *loop;
    dial_fn fn;
    void *ctx;
    struct resolve *lookup; /* NULL: none is in progress */
    struct resolve_answer addrs;
    unsigned at; /* the address being tried */
    struct loop_io io;
};

/* "HOST:PORT" or "unix:PATH".  fn is called once, perhaps before this returns. */
void dial_start(struct dial *d, struct loop *l, const char *address, dial_fn fn, void *ctx);
/* fn is no longer called. Fine after it was called, and for a zeroed struct. */
void dial_cancel(struct dial *d);

#endif
