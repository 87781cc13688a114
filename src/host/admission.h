/* admission.h - admission control of clients: keys, request rates, concurrency, and tokens per day
 * (quota.h).
 *
 * A client is identified by the SHA-256 of its key.  Without keys, all requests are admitted.
 *
 * Thread:    any; one lock covers all counters and is held for a few instructions.
 * Ownership: clients live as long as the table.  A reload replaces the keys and keeps the counters
 *            of the clients that stay.
 * Failure:   SHOAL_ENOMEM, SHOAL_EINVAL (a malformed hash), those of quota_open_account; the
 *            previous keys then stay in force. */
#ifndef SHOAL_HOST_ADMISSION_H
#define SHOAL_HOST_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct admission;
struct quota;
struct quota_account;

struct admission_key {
    char *name;
    char sha256[65]; /* hex digits */
    double rate;     /* requests per second; 0: no limit */
    double burst;
    uint32_t max_in_flight; /* 0: no limit */
    bool admin;
    int32_t priority;
    double weight;         /* weight of its share of a model; 0: 1 */
    double tokens_per_day; /* per name, shared by all its keys; 0: no limit */
};

/* Others keep a client's name whole, in arrays of this size: a cut one would be another's. */
#define ADMISSION_NAME_BYTES ((size_t)64)
bool admission_name_ok(const char *name);

struct admission_opts { /* not kept after the call */
    const struct admission_key *keys;
    uint32_t n_keys;
    uint32_t max_in_flight; /* of all clients together; 0: no limit */
    struct quota *quota;    /* borrowed; NULL: tokens are not counted */
};

struct admission_client {
    /* These never change: a key whose name or rights change becomes another client. */
    char name[ADMISSION_NAME_BYTES];
    bool admin;
    int32_t priority;
    float weight;
    struct quota_account *account; /* its tokens, shared by keys of one name; NULL: not counted */
    /* private */
    struct admission_client *next;
    unsigned char sha256[32];
    bool revoked;
    double rate, burst, tokens;
    uint64_t filled_ns;
    uint32_t max_in_flight, in_flight;
};

enum admission_verdict { ADMISSION_OK, ADMISSION_RATE, ADMISSION_FULL, ADMISSION_QUOTA };

SHOAL_MUST_CHECK int admission_create(struct admission **out, const struct admission_opts *o,
                                      struct err *e);
void admission_destroy(struct admission *a); /* NULL is fine */
SHOAL_MUST_CHECK int admission_reload(struct admission *a, const struct admission_opts *o,
                                      struct err *e);
/* Whether a key is needed at all. */
bool admission_needed(struct admission *a);
/* The client whose key this is, or NULL. */
struct admission_client *admission_find(struct admission *a, const char *key, size_t n);
/* A client of this name, for work on its behalf; or NULL. */
struct admission_client *admission_find_name(struct admission *a, const char *name);
/* Admits one more request (c NULL: an anonymous client); admission_leave gives its place back.
 * *retry_ms: when to try again. */
enum admission_verdict admission_enter(struct admission *a, struct admission_client *c,
                                       uint32_t *retry_ms);
/* n more slots for an admitted request that is as much work as n more requests. *most: the maximum
 * number of slots it could have, its own included. */
enum admission_verdict admission_enter_more(struct admission *a, struct admission_client *c,
                                            uint32_t n, uint32_t *most);
void admission_leave(struct admission *a, struct admission_client *c, uint32_t n_places);
/* Slots taken, over all clients. */
uint32_t admission_in_flight(struct admission *a);
/* The client used this many tokens. */
void admission_spend(struct admission *a, struct admission_client *c, uint64_t prompt,
                     uint64_t generated);
/* 64 hex digits and NUL.  false: no memory. */
SHOAL_MUST_CHECK bool admission_hash(const char *key, size_t n, char out[65]);

#endif
