/* home_truth.h - does a reply say the same as the context? The reply model is small and may change
 * a number or a name; a wrong reply is not spoken.
 *
 * Thread:    any.
 * Ownership: keeps nothing.
 * Failure:   none: without memory the answer is no. */
#ifndef SHOAL_APPS_HOME_HOME_TRUTH_H
#define SHOAL_APPS_HOME_HOME_TRUTH_H

#include <stdbool.h>

#include "base/arena.h"

/* True if every value of the context's facts is in the reply, word for word, and every number of
 * the reply is in the context. Small talk ("chat: ...") has no facts. */
bool home_truth_holds(struct arena *a, const char *context, const char *reply);

#endif
