/* gateway.h - the server: one endpoint over the models of this machine.
 *
 * Thread:    created, started, stopped and destroyed by one thread (main); the work is done on
 *            its own: event loops, one thread that loads models, a small pool.
 * Ownership: create takes a reference to the configuration.
 * Failure:   create and start say what is wrong; afterwards only requests fail. */
#ifndef SHOAL_GATEWAY_GATEWAY_H
#define SHOAL_GATEWAY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct gateway;
struct gw_config;

/* Listens at once; models load behind it. */
SHOAL_MUST_CHECK int gateway_start(struct gateway **out, struct gw_config *config, struct err *e);
/* What a start needs, without one: addresses, certificates, files of models that can be opened.  An
 * address in use is no error: the server that is checked may be running. */
SHOAL_MUST_CHECK int gateway_check(const struct gw_config *c, struct err *e);
/* "http://127.0.0.1:8080" of the i-th address, or NULL. */
const char *gateway_address(const struct gateway *g, size_t i);
/* Address i for other members of the shoal; NULL after the last. */
const char *gateway_node_address(const struct gateway *g, size_t i);
/* Every model that is loaded at start is, or has failed. */
bool gateway_ready(struct gateway *g);
/* No new connections; waits until what runs is done, at most drain_ms of the configuration, then
 * ends the rest. */
void gateway_drain(struct gateway *g);
/* Keys, limits, certificates and models of another configuration; what runs goes on. */
SHOAL_MUST_CHECK int gateway_reload(struct gateway *g, struct gw_config *config, struct err *e);
void gateway_destroy(struct gateway *g); /* NULL is fine */

#endif
