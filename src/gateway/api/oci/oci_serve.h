/* oci_serve.h - the models of the store for other programs, by the reading half of the protocol of
 * OCI registries: /v2/, manifests by name and blobs by digest. Off unless store.share is set.
 *
 * Thread: the loop's; files are read on the pool. */
#ifndef SHOAL_GATEWAY_API_OCI_SERVE_H
#define SHOAL_GATEWAY_API_OCI_SERVE_H

struct call;

/* Handler. */
void oci_serve(struct call *c);

#endif
