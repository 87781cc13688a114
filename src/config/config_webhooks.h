/* config_webhooks.h - receivers of alarms over HTTP: entries of `alarms.webhooks`.
 *
 * Thread:    while a configuration is read; constant afterwards.
 * Ownership: strings of an entry move into the configuration.
 * Failure:   as config_key.h. */
#ifndef SHOAL_CONFIG_CONFIG_WEBHOOKS_H
#define SHOAL_CONFIG_CONFIG_WEBHOOKS_H

#include <stdint.h>

#include "wire/yaml_in.h"

#define CONFIG_MAX_WEBHOOKS 8u

struct config_where;
struct config_webhook {
    char *url;
    char *server, *path; /* of the URL: "http[s]://HOST:PORT", "/..." */
    char *ca;            /* CA file for the server's certificate; NULL: the system's CAs */
    char *secret_file;   /* NULL: no signature */
    uint32_t severity;   /* enum alarm_severity: minimum */
    uint32_t timeout_ms, keep_ms;
    size_t queue_bytes;
};

struct config_webhooks {
    struct config_webhook v[CONFIG_MAX_WEBHOOKS];
    uint32_t n;
    struct yaml_in_strs hosts; /* allowlist */
};

int config_webhooks_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_webhooks *c);
/* After the whole file was read: checks hosts against the allowlist. */
SHOAL_MUST_CHECK int config_webhooks_finish(const struct config_webhooks *c,
                                            const struct config_where *w);
void config_webhooks_fini(struct config_webhooks *c); /* the list of hosts is freed by keys */

#endif
