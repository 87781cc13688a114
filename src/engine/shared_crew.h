/* shared_crew.h - the one crew of compute threads that all engines of a process share.
 *
 * It is created with the first engine and ended with the last one.  It has as many threads as the
 * widest engine needs beside its own thread.
 *
 * Thread:    any.
 * Ownership: every get is paired with a put. */
#ifndef SHOAL_ENGINE_SHARED_CREW_H
#define SHOAL_ENGINE_SHARED_CREW_H

#include "base/thread/crew.h"

SHOAL_MUST_CHECK int shared_crew_get(struct crew **out, struct err *e);
/* All lanes of the caller must be destroyed. */
void shared_crew_put(void);

#endif
