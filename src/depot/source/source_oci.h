/* source_oci.h - a model of an OCI registry, as a source of models (model_source.h): Ollama's,
 * Docker's, ModelPack's and ORAS's manifests (oci_manifest.h). */
#ifndef SHOAL_DEPOT_SOURCE_SOURCE_OCI_H
#define SHOAL_DEPOT_SOURCE_SOURCE_OCI_H

#include "depot/source/model_source.h"

/* base and name: as oci_registry_open. */
SHOAL_MUST_CHECK int source_oci_open(struct model_source **out, const char *base, const char *name,
                                     const struct model_source_opts *o, struct err *e);

#endif
