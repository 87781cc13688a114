/* mdns.h - messages of multicast DNS (RFC 6762) and DNS-SD (RFC 6763), as far as a service of Shoal
 * needs them: a question for one type of service, and the answer with its PTR, SRV, TXT and A.
 *
 * What comes from the network is a hint and no more: whoever is on the link can send it. Names are
 * compared without regard to case; compression is read, but not written.
 *
 * Thread:    no state.
 * Ownership: the caller's storage; nothing refers to the bytes that were parsed.
 * Failure:   SHOAL_EFORMAT: damaged; SHOAL_ENOTFOUND: not about this type; SHOAL_ELIMIT. */
#ifndef SHOAL_NET_MDNS_H
#define SHOAL_NET_MDNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define MDNS_MAX_BYTES 1500u
#define MDNS_MAX_NAME 256u /* with its end; a label has at most 63 bytes */
#define MDNS_MAX_TXT 256u

/* An instance of a service: "home._shoal-join._tcp.local" on port 7601 of 10.0.0.1. */
struct mdns_service {
    char instance[64]; /* one label: no dots */
    char type[64];     /* "_shoal-join._tcp" */
    uint16_t port;
    uint8_t address[4];     /* IPv4 */
    char txt[MDNS_MAX_TXT]; /* one string, as "ca=1f2e"; "": none */
};

/* A question for all instances of the type. */
SHOAL_MUST_CHECK int mdns_put_question(struct buf *out, const char *type);
/* id: of the question, for one that did not come from port 5353; 0: for all on the link. */
SHOAL_MUST_CHECK int mdns_put_answer(struct buf *out, const struct mdns_service *s, uint16_t id);
/* Whether the message asks for the type; *id: of the question. */
SHOAL_MUST_CHECK int mdns_read_question(const void *bytes, size_t n, const char *type, uint16_t *id,
                                        struct err *e);
SHOAL_MUST_CHECK int mdns_read_answer(struct mdns_service *out, const void *bytes, size_t n,
                                      const char *type, struct err *e);

#endif
