/* deed_plugin.h - calls plug-ins: shared objects with the table of shoal/shoal_plugin.h, each in
 * its own process.
 *
 * A process (plugin_host.h) answers one call at a time. Overlapping calls get several processes; an
 * idle one is reused, so that consecutive calls share its state. A process that crashes, sends
 * invalid data or does not answer in time fails only its own call: it is killed, and the next call
 * starts another. A plug-in that keeps crashing is blocked with exponential backoff. If the file
 * has changed, idle processes of the old one are replaced.
 *
 * Thread:    any that may block.
 * Ownership: create/destroy (NULL is fine).  No call may run when it is destroyed.
 * Failure:   SHOAL_ENOTFOUND: there is no such file, or it is not a plug-in; SHOAL_EINVAL: others
 *            may write to it; SHOAL_EUNSUPPORTED: another version; SHOAL_EDEADLINE: it was killed;
 *            SHOAL_EBUSY: it crashed too often, try later; SHOAL_EIO: the plug-in's own error, or a
 *            crash; SHOAL_ELIMIT: its answer is too long. */
#ifndef SHOAL_SITE_DEEDS_DEED_PLUGIN_H
#define SHOAL_SITE_DEEDS_DEED_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DEED_PLUGIN_MAX_IDLE 2u     /* idle processes of a plug-in */
#define DEED_PLUGIN_FREE_CRASHES 3u /* consecutive crashes before it is blocked */

struct buf;
struct deed_plugins;

struct deed_plugin_counts {
    uint64_t n_starts;  /* of processes */
    uint64_t n_crashes; /* processes that ended during a call, or sent invalid data */
    uint64_t n_killed;  /* processes that did not answer in time */
    uint32_t n_running; /* processes at the moment */
};

/* memory_bytes: limit of each process's address space; 0: none. */
SHOAL_MUST_CHECK int deed_plugins_create(struct deed_plugins **out, size_t memory_bytes,
                                         struct err *e);
void deed_plugins_destroy(struct deed_plugins *d);
/* path: absolute. key: at most 79 bytes. The plug-in's answer is appended to out. */
SHOAL_MUST_CHECK int deed_plugins_run(struct deed_plugins *d, const char *path, const char *payload,
                                      size_t payload_bytes, const char *key, uint32_t timeout_ms,
                                      struct buf *out, struct err *e);
void deed_plugins_count(struct deed_plugins *d, struct deed_plugin_counts *out);

#endif
