/* source_hub.h - a repository of a Hugging Face hub, as a source of models (model_source.h).
 *
 * The revision is resolved once, so that all files are of one commit. Large files have their
 * SHA-256 in the listing; the small ones are read first and verified by Git's hash. */
#ifndef SHOAL_DEPOT_SOURCE_SOURCE_HUB_H
#define SHOAL_DEPOT_SOURCE_SOURCE_HUB_H

#include "depot/source/model_source.h"

/* what: "ORG/REPO[:TAG][@REVISION]". */
SHOAL_MUST_CHECK int source_hub_open(struct model_source **out, const char *what,
                                     const struct model_source_opts *o, struct err *e);

#endif
