/* source_url.h - a file behind a URL, as a source of models (model_source.h).
 *
 * With a known SHA-256 the bytes go straight into the store. Without one they are kept beside it
 * until they are complete, because the store finds models by their hash; a partial file is resumed
 * if the server still has the same version of it. */
#ifndef SHOAL_DEPOT_SOURCE_SOURCE_URL_H
#define SHOAL_DEPOT_SOURCE_SOURCE_URL_H

#include "depot/source/model_source.h"

struct source_url_opts {
    const char *url;
    const char *base;      /* the server that sent us there (web.h); NULL: the URL's own */
    const char *name;      /* of the file; NULL: from the URL */
    const uint8_t *sha256; /* NULL: unknown */
    uint64_t bytes;        /* 0: unknown */
};

SHOAL_MUST_CHECK int source_url_open(struct model_source **out, const struct source_url_opts *u,
                                     const struct model_source_opts *o, struct err *e);

#endif
