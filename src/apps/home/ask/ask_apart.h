/* ask_apart.h - isolated models of an ask: every inference and every reply becomes a request, which
 * flow_owner.apart sends to the model's process. If the process dies, the request only pauses.
 *
 * Thread:    the owner's; calls of ask_away may come from any thread.
 * Ownership: create gives, put takes back (NULL is fine), after ask_free.  The request and the
 *            names outlive it.
 * Failure:   every failed request fails its part of the ask; ask_apart_failure has the first
 *            reason. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_APART_H
#define SHOAL_APPS_HOME_ASK_ASK_APART_H

#include "flow/flow.h"
#include "apps/home/ask/ask.h"

struct ask_apart;

/* The models by enum ask_model.  NULL: out of memory. */
struct ask_apart *ask_apart_create(struct flow_owner *o, const struct request *r,
                                   const char *const models[ASK_MODELS]);
void ask_apart_put(struct ask_apart *p);
struct ask_away *ask_apart_away(struct ask_apart *p);

/* The first failure of a request; NULL: none. */
const struct failure *ask_apart_failure(const struct ask_apart *p);

#endif
