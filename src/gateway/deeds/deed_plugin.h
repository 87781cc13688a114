/* deed_plugin.h - calls plug-ins: shared objects with the table of shoal/shoal_plugin.h.
 *
 * A plug-in is opened with its first call and stays open.  Each call has a thread of its own.  One
 * that does not return in time is given up: the caller gets an error, the thread keeps its place
 * until it returns.  A plug-in with DEED_PLUGIN_MAX_LOST such threads is not called any more.
 *
 * Thread:    any that may block.
 * Ownership: create/destroy (NULL is fine).  destroy does not wait for threads that were given up;
 *            their plug-ins stay open.
 * Failure:   SHOAL_ENOTFOUND: there is no such file, or it is no plug-in; SHOAL_EINVAL: others may
 *            write to it; SHOAL_EUNSUPPORTED: another version; SHOAL_EDEADLINE; SHOAL_EBUSY: too
 *            many calls are lost; SHOAL_EIO: what the plug-in says; SHOAL_ELIMIT: its answer is too
 *            long. */
#ifndef SHOAL_GATEWAY_DEEDS_DEED_PLUGIN_H
#define SHOAL_GATEWAY_DEEDS_DEED_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DEED_PLUGIN_MAX_LOST 4u

struct buf;
struct deed_plugins;

SHOAL_MUST_CHECK int deed_plugins_create(struct deed_plugins **out, struct err *e);
void deed_plugins_destroy(struct deed_plugins *d);
/* path: absolute.  key: at most 79 bytes.  What the plug-in answers is appended to out. */
SHOAL_MUST_CHECK int deed_plugins_run(struct deed_plugins *d, const char *path, const char *payload,
                                      size_t payload_bytes, const char *key, uint32_t timeout_ms,
                                      struct buf *out, struct err *e);

#endif
