/* mdns_link.h - finds a service on the local network, and lets one be found: sockets for mdns.h.
 *
 * A member that is found answers questions on UDP port 5353, beside other programs that do (Avahi):
 * the port is shared. One that looks asks from a port of its own, once, after a quarter of a second
 * and after a second, on every interface; answers come back to that port.
 *
 * Thread:    the caller's; open and answer do not block, find does.
 * Ownership: the descriptor is the caller's to close.
 * Failure:   SHOAL_EIO with the reason. */
#ifndef SHOAL_NET_MDNS_LINK_H
#define SHOAL_NET_MDNS_LINK_H

#include "net/mdns.h"

/* For poll: readable means that mdns_link_answer has something to do. */
SHOAL_MUST_CHECK int mdns_link_open(int *fd, struct err *e);
/* Answers the questions that have arrived; the address in the answer is that of the interface. */
void mdns_link_answer(int fd, const struct mdns_service *s);
/* Asks until wanted() accepts an answer (1: found, in *out; 0: go on), for at most ms.
 * SHOAL_ENOTFOUND: nobody answered. */
SHOAL_MUST_CHECK int mdns_link_find(struct mdns_service *out, const char *type, uint32_t ms,
                                    bool (*wanted)(void *ctx, const struct mdns_service *s),
                                    void *ctx, struct err *e);

#endif
