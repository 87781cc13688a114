/* oci_client.h - models in an OCI registry, by the protocol that Ollama's clients speak: manifests
 * by name and blobs by digest, over HTTP(S).
 *
 * All input is bounded and verified: a blob by the size in its manifest and by its digest. A
 * partial blob stays in a file beside its destination, and the next pull resumes from it. A
 * registry may redirect a download, never from HTTPS to HTTP, and to another host only if that has
 * a public address; credentials in the URL go to the registry alone.
 *
 * Thread:    the caller's; calls block.  progress and stopped are called on it.
 * Ownership: a model that pull filled is freed with oci_client_fini.
 * Failure:   SHOAL_ENOTFOUND (the registry does not have it), SHOAL_EFORMAT (wrong digest, no
 *            manifest), SHOAL_ELIMIT, SHOAL_EUNSUPPORTED, SHOAL_ECANCELLED, SHOAL_EBUSY (another
 *            call fetches the same), SHOAL_EIO: interrupted, call again to resume. */
#ifndef SHOAL_GATEWAY_API_OCI_CLIENT_H
#define SHOAL_GATEWAY_API_OCI_CLIENT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gateway/api/ollama/oci_manifest.h"

struct model_profiles;

struct oci_client_opts {
    const char *url;  /* "https://HOST:PORT" */
    const char *name; /* "reply", "reply:1b", "me/reply:1b" */
    uint64_t max_model;
    uint32_t silent_ms; /* a registry is abandoned after this long without data; 0: 60 s */
    bool (*stopped)(void *ctx);
    /* Progress of a blob: completed of total bytes. */
    void (*progress)(void *ctx, const char *digest, uint64_t total, uint64_t completed);
    void *ctx;
};

struct oci_client_model { /* texts may be NULL */
    char path[PATH_MAX];
    char digest[OCI_MANIFEST_DIGEST_BYTES];
    uint64_t bytes;
    char *system, *parameters, *license;
};

/* Whether a setting means a registry, not a folder. */
bool oci_client_is_url(const char *text);
/* *out is zero before. */
SHOAL_MUST_CHECK int oci_client_pull(struct oci_client_model *out, const struct oci_client_opts *o,
                                     struct model_profiles *store, struct err *e);
/* The file at m->path and the texts; digest and bytes are filled. */
SHOAL_MUST_CHECK int oci_client_push(struct oci_client_model *m, const struct oci_client_opts *o,
                                     struct err *e);
void oci_client_fini(struct oci_client_model *m);
/* Whether an address is public: not of this machine or a private network. addr: struct sockaddr of
 * an IPv4 or IPv6 address. */
bool oci_client_is_public(const void *addr);

#endif
