/* roles.h - roles of a member of a shoal. A certificate names its roles, and every call between
 * members is allowed by role.
 *
 * Thread:    no state. */
#ifndef SHOAL_CLUSTER_TRUST_ROLES_H
#define SHOAL_CLUSTER_TRUST_ROLES_H

#include <stddef.h>

#include "base/err.h"

enum role {
    ROLE_GATEWAY = 1,    /* sends requests to nodes */
    ROLE_NODE = 2,       /* runs them, and gives model files to other nodes */
    ROLE_CONTROLLER = 4, /* tells nodes which models to load */
    ROLE_ADMIN = 8,      /* a person: may change the desired state */
    ROLE_BROKER = 16,    /* a NATS server: no rights among members */
};

/* "gateway,node" to bits of enum role.  SHOAL_EINVAL: the message names the word that is wrong. */
SHOAL_MUST_CHECK int roles_parse(unsigned *out, const char *text, struct err *e);
/* Bits to "gateway,node"; "" for none. */
void roles_text(char *out, size_t cap, unsigned roles);

#endif
