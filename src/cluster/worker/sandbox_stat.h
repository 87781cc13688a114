/* sandbox_stat.h - stat for a confined process: only of files that it may read.
 *
 * Landlock limits what can be opened, but not what can be asked about: sizes, owners and times of
 * any file on the machine. A system-call filter cannot see paths. So calls that take one are
 * trapped, and the handler opens the path, which Landlock decides about, and asks the descriptor.
 * Code that makes the calls itself ends up in the same trap.
 *
 * Thread: sandbox_stat_handle before the process has other threads; then any.
 * Failure: SHOAL_EUNSUPPORTED: not on this architecture. */
#ifndef SHOAL_CLUSTER_WORKER_SANDBOX_STAT_H
#define SHOAL_CLUSTER_WORKER_SANDBOX_STAT_H

#include "base/err.h"

/* Handles SIGSYS from now on. */
SHOAL_MUST_CHECK int sandbox_stat_handle(void);
/* The calls to trap; ends with -1. */
extern const int sandbox_stat_calls[];

#endif
