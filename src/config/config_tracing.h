/* config_tracing.h - `tracing` of the configuration: which traces are kept, and who gets them.
 *
 * Failure:   SHOAL_EFORMAT with the place of the key. */
#ifndef SHOAL_CONFIG_CONFIG_TRACING_H
#define SHOAL_CONFIG_CONFIG_TRACING_H

#include <stdint.h>

#include "base/err.h"
#include "config/config_read.h"
#include "wire/yaml_in.h"

struct config_tracing {
    uint32_t keep;               /* traces in memory */
    char *endpoint;              /* URL of a collector; NULL: none */
    char *service;               /* NULL: "shoal" */
    char *ca;                    /* of the collector; NULL: those of the system */
    double sample;               /* share of new traces for the collector */
    uint32_t slow_ms;            /* traces of this length go there in any case; 0: by no length */
    struct yaml_in_strs headers; /* "name: value", for the collector */
};

/* Checks the endpoint and the headers. */
SHOAL_MUST_CHECK int config_tracing_check(const struct config_tracing *t,
                                          const struct config_settings *set, const char *file,
                                          struct err *e);
/* What is wrong with an address of a collector; NULL: nothing. server, path: split, to be freed; a
 * missing path is that of OTLP. */
const char *config_tracing_split(const char *endpoint, char **server, char **path);

#endif
