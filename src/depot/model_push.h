/* model_push.h - sends a model to an OCI registry. A model of one file gets the manifest that
 * Ollama's clients understand, a folder that of ModelPack.
 *
 * Thread:    the caller's; blocks.
 * Failure:   as web.h and model_store.h; SHOAL_EINVAL: no access, or no name of a registry. */
#ifndef SHOAL_DEPOT_MODEL_PUSH_H
#define SHOAL_DEPOT_MODEL_PUSH_H

#include "depot/source/model_source.h"

struct model_push_opts {
    const char *base, *name;                              /* as oci_registry_open */
    const char *path;                                     /* the model: a file or a folder */
    const char *system, *parameters, *license, *messages; /* or NULL */
    const char *key; /* private key (PEM) for a signature as cosign makes them; NULL: none */
};

struct model_pushed {
    uint8_t sha256[SHA256_BYTES]; /* of the model */
    uint64_t bytes;
};

SHOAL_MUST_CHECK int model_push(struct model_pushed *out, const struct model_push_opts *p,
                                const struct model_source_opts *o, struct err *e);

#endif
