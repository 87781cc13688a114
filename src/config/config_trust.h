/* config_trust.h - who may sign models: `trust`.
 *
 * Thread:    while a configuration is read; constant afterwards.
 * Ownership: strings of an entry move into the configuration.
 * Failure:   as config_key.h; config_trust_open: as supply/trust_policy.h. */
#ifndef SHOAL_CONFIG_CONFIG_TRUST_H
#define SHOAL_CONFIG_CONFIG_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/yaml_in.h"

#define CONFIG_MAX_SIGNERS 32u

struct trust_policy;

struct config_signer {
    char *name, *key, *certificate, *subject, *until;
    int64_t until_s; /* of until; 0: none */
    struct yaml_in_strs models;
};

struct config_trust {
    struct config_signer v[CONFIG_MAX_SIGNERS];
    uint32_t n;
    uint32_t require; /* 1: signed */
    bool included;
    char *signatures;
    struct yaml_in_strs revoked;
};

int config_trust_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_trust *c);
void config_trust_fini(struct config_trust *c); /* single keys are freed by the table */
/* *out NULL: there is no policy. */
SHOAL_MUST_CHECK int config_trust_open(struct trust_policy **out, const struct config_trust *c,
                                       struct err *e);

#endif
