/* oci_registry.h - a repository of an OCI registry: its URLs and the access to it. Registries that
 * want a token are asked for one, as Docker's clients do.
 *
 * Thread:    belongs to one thread; calls block.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   as web.h; SHOAL_EINVAL also for a name that is none, SHOAL_ENOTFOUND. */
#ifndef SHOAL_DEPOT_SOURCE_OCI_REGISTRY_H
#define SHOAL_DEPOT_SOURCE_OCI_REGISTRY_H

#include "depot/source/model_source.h"
#include "depot/source/web.h"

struct oci_registry;

/* base: "https://HOST:PORT"; name: "reply", "reply:1b", "me/reply:1b", "me/reply@sha256:HEX". push:
 * with the right to write. */
SHOAL_MUST_CHECK int oci_registry_open(struct oci_registry **out, const char *base,
                                       const char *name, bool push,
                                       const struct model_source_opts *o, struct err *e);
void oci_registry_close(struct oci_registry *r);
struct web *oci_registry_web(struct oci_registry *r);
const char *oci_registry_tag(const struct oci_registry *r);
/* "BASE/v2/NAME/KIND/ID" */
void oci_registry_url(const struct oci_registry *r, char out[WEB_MAX_URL], const char *kind,
                      const char *id);
/* As web_ask, and gets a token if the registry wants one. */
SHOAL_MUST_CHECK int oci_registry_ask(struct oci_registry *r, const char *url,
                                      const struct web_request *a, struct web_reply *reply,
                                      struct err *e);
/* The rest of a blob (web_parallel.h), with a token in the same way. */
SHOAL_MUST_CHECK int oci_registry_fetch(struct oci_registry *r, const char *url, uint64_t offset,
                                        uint64_t total, const struct byte_sink *to,
                                        struct web_reply *reply, struct err *e);
/* The error for a status that is not a success. */
int oci_registry_refused(const struct oci_registry *r, long status, const char *what,
                         struct err *e);
/* A small blob or a manifest. digest: the one that it must have; NULL: any. */
SHOAL_MUST_CHECK int oci_registry_text(struct oci_registry *r, const char *kind, const char *id,
                                       const char *accept, const char *what, const char *digest,
                                       struct buf *out, struct err *e);

#endif
