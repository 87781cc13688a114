/* clients.h - who may ask, how often and how much at once.
 *
 * Keys are known by their SHA-256 alone.  With no keys configured everybody may ask.
 *
 * Thread:    any; a client's counters are under one lock, held for a few instructions.
 * Ownership: clients live as long as the table; a reload replaces keys and keeps the counters of
 *            those that stay. */
#ifndef SHOAL_GATEWAY_CLIENTS_H
#define SHOAL_GATEWAY_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct clients;
struct gw_config;

struct client {
    /* never another: a key that is given others of these becomes another client */
    char name[64];
    bool admin;
    int32_t priority;
    /* private */
    struct client *next;
    unsigned char sha256[32];
    bool revoked;
    double rate, burst, tokens;
    uint64_t filled_ns;
    uint32_t max_in_flight, in_flight;
};

enum admit { ADMIT_OK, ADMIT_RATE, ADMIT_IN_FLIGHT };

SHOAL_MUST_CHECK int clients_create(struct clients **out, const struct gw_config *config,
                                    struct err *e);
void clients_destroy(struct clients *cs);
SHOAL_MUST_CHECK int clients_reload(struct clients *cs, const struct gw_config *config,
                                    struct err *e);
bool clients_needed(struct clients *cs);
/* The client whose key this is, or NULL. */
struct client *clients_find(struct clients *cs, const char *key, size_t n);
/* One more request; leave gives its place back.  *retry_ms: when to try again. */
enum admit clients_enter(struct clients *cs, struct client *c, uint32_t *retry_ms);
/* n more places for a request that is inside: it is as much work as so many.  *most: how many it
 * could ever have, with its own. */
enum admit clients_enter_more(struct clients *cs, struct client *c, uint32_t n, uint32_t *most);
void clients_leave(struct clients *cs, struct client *c, uint32_t n_places);
/* 64 hex digits and NUL. */
void clients_hash(const char *key, size_t n, char out[65]);

#endif
