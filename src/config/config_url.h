/* config_url.h - URLs in the configuration: split, and checked against an allowlist.
 *
 * Thread:    pure functions.
 * Ownership: server and path are the caller's to free. */
#ifndef SHOAL_CONFIG_CONFIG_URL_H
#define SHOAL_CONFIG_CONFIG_URL_H

#include <stdbool.h>

#include "wire/yaml_in.h"

/* Splits "http[s]://HOST:PORT/PATH" into "http[s]://HOST:PORT" and "/PATH". Returns NULL, or an
 * error text. */
const char *config_url_split(const char *url, char **server, char **path);
const char *config_url_host(const char *server); /* HOST:PORT of a server, as split above */
bool config_url_is_secure(const char *server);   /* https */
/* Whether HOST:PORT of a server, as split above, is listed. */
bool config_url_allowed(const struct yaml_in_strs *hosts, const char *server);

#endif
