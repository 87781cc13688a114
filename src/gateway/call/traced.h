/* traced.h - begins the trace of a call; call.c ends it.
 *
 * Thread:    the loop's.
 * Ownership: the call holds its trace. */
#ifndef SHOAL_GATEWAY_CALL_TRACED_H
#define SHOAL_GATEWAY_CALL_TRACED_H

struct call;

/* After the client is known and may work; before its request is made. */
void traced_begin(struct call *c);

#endif
