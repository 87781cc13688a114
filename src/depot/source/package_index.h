/* package_index.h - where an index of packages has a file: PyPI's simple pages, npm's registry.
 *
 * Thread:    no state.
 * Failure:   SHOAL_ENOTFOUND (the answer does not name the file), SHOAL_EFORMAT, SHOAL_ELIMIT. */
#ifndef SHOAL_DEPOT_SOURCE_PACKAGE_INDEX_H
#define SHOAL_DEPOT_SOURCE_PACKAGE_INDEX_H

#include <stddef.h>

#include "base/err.h"

struct buf;

/* The URL of `file` in a page of the simple index (PEP 503), HTML; page: its own URL, for links
 * that are relative. */
SHOAL_MUST_CHECK int package_index_pypi(struct buf *url, const char *html, size_t n,
                                        const char *page, const char *file, struct err *e);
/* The URL of the tarball in the description of a version of an npm package, JSON. */
SHOAL_MUST_CHECK int package_index_npm(struct buf *url, const char *json, size_t n, struct err *e);

#endif
