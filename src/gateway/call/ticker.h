/* ticker.h - streaming calls that send a state at once and then periodically, until the client
 * disconnects.
 *
 * A client that does not read is not sent more: only the newest state matters.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_CALL_TICKER_H
#define SHOAL_GATEWAY_CALL_TICKER_H

#include <stdbool.h>
#include <stdint.h>

struct call;
struct gw_loop;

struct ticker_ops {
    void (*send)(struct call *c); /* sends the current state */
    void (*end)(struct call *c);  /* the server stops: ends the call */
};

/* Takes the call. False: too many of them, or out of memory; the caller answers. */
bool ticker_start(struct call *c, uint32_t interval_ms, const struct ticker_ops *ops);
/* How much of a state that is sent in parts its client has: the sender's own number, 0 at first. */
uint64_t *ticker_seen(struct call *c);
/* The state changed: send it to clients at once. */
void ticker_tell(struct gw_loop *gl);
/* Everything else has ended: these calls end too. */
void ticker_end(struct gw_loop *gl);

#endif
