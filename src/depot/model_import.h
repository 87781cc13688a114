/* model_import.h - takes over the models that other programs have on this machine: Ollama's folder,
 * and the cache of Hugging Face's tools. Files are copied and verified; the originals stay.
 *
 * Thread:    the caller's; blocks. told is called on it.
 * Failure:   SHOAL_ENOTFOUND: no such folder; SHOAL_ECANCELLED. A model that cannot be taken over
 * is
 *            reported and the next one tried. */
#ifndef SHOAL_DEPOT_MODEL_IMPORT_H
#define SHOAL_DEPOT_MODEL_IMPORT_H

#include "depot/source/model_source.h"

struct model_import_opts {
    const char *dir; /* NULL: the usual one of that program */
    const struct model_source_opts *source;
    /* About every model; rc and e: what became of it. */
    void (*told)(void *ctx, const char *name, int rc, const struct err *e);
    void *ctx;
};

/* $OLLAMA_MODELS, or ~/.ollama/models. */
SHOAL_MUST_CHECK int model_import_ollama(const struct model_import_opts *o, struct err *e);
/* $HF_HUB_CACHE, $HF_HOME/hub, or ~/.cache/huggingface/hub. */
SHOAL_MUST_CHECK int model_import_hf(const struct model_import_opts *o, struct err *e);

#endif
