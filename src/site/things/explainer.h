/* explainer.h - finds the passage of the manuals that best matches an alarm, and adds it to the
 * alarm as a second event. If no passage is about it (relevance.h), there is none.
 *
 * The search is by words: it needs no model and takes milliseconds.
 *
 * Thread:    one of its own, "explain". The listener only adds to a bounded queue; if it is full,
 *            the alarm stays unexplained.
 * Ownership: create/destroy (NULL is fine); plant and collections are borrowed.
 * Failure:   create: there are no sensors or no folder of collections.  A search that fails is
 *            logged. */
#ifndef SHOAL_SITE_THINGS_EXPLAINER_H
#define SHOAL_SITE_THINGS_EXPLAINER_H

#include "base/err.h"

struct alarm_event;
struct buf;
struct collections;
struct explainer;
struct plant;

#define EXPLAINER_MAX_WAITING 64u

/* *out is NULL without a collection.  Before the plant starts. */
SHOAL_MUST_CHECK int explainer_create(struct explainer **out, const char *collection,
                                      struct collections *collections, struct plant *plant,
                                      struct err *e);
SHOAL_MUST_CHECK int explainer_start(struct explainer *x, struct err *e); /* NULL is fine */
void explainer_stop(struct explainer *x);    /* before the plant stops; NULL is fine */
void explainer_destroy(struct explainer *x); /* after the plant has stopped */

#endif
