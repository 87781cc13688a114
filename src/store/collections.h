/* collections.h - the collections of one folder, by name; each is open once and shared.
 *
 * Thread:    any.  Files are opened and read: not for an event loop.
 * Ownership: open/close; a collection is held from collections_hold to collections_release. A
 *            collection deleted while held works until it is released.
 * Failure:   SHOAL_ENOTFOUND, SHOAL_EINVAL (invalid or existing name), SHOAL_ELIMIT. */
#ifndef SHOAL_STORE_COLLECTIONS_H
#define SHOAL_STORE_COLLECTIONS_H

#include "store/collection.h"

struct collections;

#define COLLECTIONS_MAX 256u

/* $SHOAL_COLLECTIONS, else collections in $STATE_DIRECTORY (systemd), in $XDG_STATE_HOME/shoal or
 * in ~/.local/state/shoal.  False: none of these is set. */
bool collections_default_dir(char *out, size_t cap);
/* The folder is created with the first collection. exact_passages: see collection_open. */
SHOAL_MUST_CHECK int collections_open(struct collections **out, const char *dir,
                                      uint32_t exact_passages, struct err *e);
void collections_close(struct collections *cs); /* none may be held */
SHOAL_MUST_CHECK int collections_make(struct collections *cs, const char *name,
                                      const struct collection_settings *s, struct err *e);
SHOAL_MUST_CHECK int collections_hold(struct collections *cs, const char *name,
                                      struct collection **out, struct err *e);
void collections_release(struct collections *cs, struct collection *c); /* NULL is fine */
SHOAL_MUST_CHECK int collections_delete(struct collections *cs, const char *name, struct err *e);
/* Names in order, in the arena. */
SHOAL_MUST_CHECK int collections_list(struct collections *cs, struct arena *a, const char ***names,
                                      uint32_t *n, struct err *e);

#endif
