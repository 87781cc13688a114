/* documents_app.h - an application in front of another one: what that one leaves open, collections
 * of documents answer, in the words of a sentence that is in them (quoting.h).
 *
 * The search begins as soon as the plan is known to leave the question open (ask_plan.h, `open`),
 * while the application behind still finds words for that. The answer is an action of the plan,
 * find_document, with the document, its page and the score; it changes nothing. Of several
 * collections the best sentence counts.
 *
 * Thread:    the owner's. The struct is only read while requests run.
 * Ownership: init copies the names; the application behind and the collections are borrowed.
 * Failure:   what goes wrong in a search is the reason of the action: the answer is then "I don't
 *            know". */
#ifndef SHOAL_KNOWLEDGE_DOCUMENTS_APP_H
#define SHOAL_KNOWLEDGE_DOCUMENTS_APP_H

#include "base/err.h"
#include "flow/app.h"
#include "store/collections.h"

#define DOCUMENTS_APP_MAX 8u /* collections */

struct documents_app {
    struct app app; /* first */
    struct app *behind;
    struct collections *collections;
    char names[DOCUMENTS_APP_MAX][COLLECTION_MAX_NAME + 1];
    uint32_t n;
};

/* SHOAL_EINVAL: too many, not a name of a collection, or no folder of collections (NULL). */
SHOAL_MUST_CHECK int documents_app_init(struct documents_app *a, struct app *behind,
                                        struct collections *collections, const char *const *names,
                                        uint32_t n, struct err *e);

#endif
