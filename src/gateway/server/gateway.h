/* gateway.h - the server: one endpoint over the models of this machine.
 *
 * Thread:    created, started, stopped and destroyed by one thread (main); the work is done on
 *            its own: event loops, one thread that loads models, a small pool.
 * Ownership: create takes a reference to the configuration.
 * Failure:   create and start report errors; afterwards only requests fail. */
#ifndef SHOAL_GATEWAY_SERVER_GATEWAY_H
#define SHOAL_GATEWAY_SERVER_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct gateway;
struct config;

/* Listens at once; models are loaded in the background. */
SHOAL_MUST_CHECK int gateway_start(struct gateway **out, struct config *config, struct err *e);
/* Checks everything that a start needs, without starting: addresses, certificates, files of models.
 * An address in use is not an error: the server with this configuration may be running. */
SHOAL_MUST_CHECK int gateway_check(const struct config *c, struct err *e);
/* "http://127.0.0.1:8080" of the i-th address, or NULL. */
const char *gateway_address(const struct gateway *g, size_t i);
/* "tcp://127.0.0.1:10300"; NULL: Wyoming is not served. */
const char *gateway_wyoming_address(const struct gateway *g);
/* Address i for other members of the shoal; NULL after the last. */
const char *gateway_node_address(const struct gateway *g, size_t i);
/* For leave_ms of the configuration the server only reports that it is not ready. Then it accepts
 * no new connections, waits for running requests, at most drain_ms, and cancels the rest. */
void gateway_drain(struct gateway *g);
/* Applies the keys, limits, certificates and models of a new configuration; running requests
 * continue. */
SHOAL_MUST_CHECK int gateway_reload(struct gateway *g, struct config *config, struct err *e);
/* The folder with the names of stored models; NULL: there is none. Created if need be. */
const char *gateway_names_folder(struct gateway *g);
/* Another process may have changed it: offers what is new, and no longer what is gone. */
void gateway_refresh(struct gateway *g);
void gateway_destroy(struct gateway *g); /* NULL is fine */

#endif
