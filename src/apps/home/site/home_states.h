/* home_states.h - the states of things: the last set or reported value of each ability of a thing.
 *
 * With a path the states are kept in that file across a restart: a separate thread writes it, at
 * most once a second, and destroy writes the rest.
 *
 * Thread:    any; a lock inside, never held while a file is written.
 * Ownership: values are copied; results are copies in the caller's arena.
 * Failure:   setting fails silently when memory is out or HOME_STATES_MAX is reached: the state is
 *            then not known.  A file that cannot be written is logged once. */
#ifndef SHOAL_APPS_HOME_HOME_STATES_H
#define SHOAL_APPS_HOME_HOME_STATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "wire/json_out.h"

#define HOME_STATES_MAX 16384u

struct home_states;

struct home_state {
    const char *ability;
    const char *text; /* NULL: a number */
    double number;
    const char *unit; /* of the number; NULL: none */
    int64_t since_s;  /* clock time of the last change */
};

/* path NULL: in memory only. A missing file is fine; an unreadable one is an error that names
 * it. */
SHOAL_MUST_CHECK int home_states_create(struct home_states **out, const char *path, struct err *e);
void home_states_destroy(struct home_states *s); /* NULL is fine */

void home_states_set(struct home_states *s, const char *id, const struct home_state *v);
/* Adds to a number; false: no value yet, and nothing changed. */
bool home_states_add(struct home_states *s, const char *id, const struct home_state *v);
/* false: it was not known. */
bool home_states_forget(struct home_states *s, const char *id, const char *ability);
/* ability NULL: the one set last. False: not known. */
bool home_states_get(struct home_states *s, struct arena *a, const char *id, const char *ability,
                     struct home_state *out);
uint64_t home_states_turns(struct home_states *s); /* grows with every change */
/* Calls fn for every state, under the lock. */
void home_states_each(struct home_states *s,
                      void (*fn)(void *ctx, const char *id, const struct home_state *v), void *ctx);

/* A list of all states: id, ability, value, unit, since. */
void home_states_list(struct home_states *s, struct json_out *j);
/* Writes and reads the file's text. SHOAL_EFORMAT: not such a file. */
void home_states_json(struct home_states *s, struct buf *out);
SHOAL_MUST_CHECK int home_states_read(struct home_states *s, const char *json, size_t n,
                                      struct err *e);

#endif
