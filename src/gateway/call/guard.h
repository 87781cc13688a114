/* guard.h - checks of Host and Origin headers, and the right to administer.
 *
 * Thread:    the loop's.
 * Failure:   guard_host, guard_origin and guard_admin answer the request that they refuse and
 *            return false. */
#ifndef SHOAL_GATEWAY_CALL_GUARD_H
#define SHOAL_GATEWAY_CALL_GUARD_H

#include "gateway/call/call.h"

/* Against DNS rebinding: a listener on a loopback address serves only names of this server; other
 * TCP listeners do so if `hosts` is configured. */
bool guard_host(struct call *c);
/* For requests that browsers do not restrict themselves, such as WebSocket handshakes. */
bool guard_origin(struct call *c);
/* Without keys in the configuration: changes need a unix socket or, with `admin: loopback`, a
 * program of this machine; the list of models may be read by programs and pages of this machine. */
bool guard_admin(struct call *c);
/* Whether this client may change models: an admin key, or one of those of a keyless server. */
bool guard_may_change(const struct call *c);

#endif
