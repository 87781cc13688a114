/* fetch_url.h - a model from a web server, over HTTPS or HTTP.
 *
 * A URL that ends with "/" is a folder as the store keeps it: manifest.json and files/ (so a web
 * server that serves DIR/models/HEX/ is one).  Any other URL is a single file.  Certificates are
 * verified; redirects are followed a few times, and never from HTTPS to HTTP.
 *
 * libcurl does the work (net/libcurl.h).
 *
 * Thread, Failure: as in fetch_transfer.h; SHOAL_EUNSUPPORTED: libcurl is not installed. */
#ifndef SHOAL_CLUSTER_STORE_FETCH_URL_H
#define SHOAL_CLUSTER_STORE_FETCH_URL_H

#include "cluster/store/fetch_transfer.h"

/* ca: PEM file of the CAs to trust; NULL: those of the system. */
SHOAL_MUST_CHECK int fetch_url_open(struct fetch_transfer **out, const char *url, const char *ca,
                                    const struct fetch_transfer_opts *o, struct err *e);
/* Whether it is a URL that this can fetch: http:// or https://, printable, not too long. */
bool fetch_url_ok(const char *url);

#endif
