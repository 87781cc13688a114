/* home_memory.h - the state of a conversation: actions that wait for a yes, and the things that
 * "it" and "them" mean.
 *
 * A conversation has a key (the user and the session's name).  Its last action is remembered for
 * ten minutes, actions that wait for a yes for two.  There is room for HOME_MEMORY_MAX
 * conversations; a new one evicts the oldest of the client that has most.
 *
 * Thread:    any; a lock inside, never held across a callback.
 * Ownership: copies what it remembers; results are copies in the caller's arena.
 * Failure:   remembering fails silently without memory: a yes then finds nothing to confirm. */
#ifndef SHOAL_APPS_HOME_HOME_MEMORY_H
#define SHOAL_APPS_HOME_HOME_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "flow/ask_plan.h"

#define HOME_MEMORY_MAX 256u
#define HOME_MEMORY_TOKEN 33u /* bytes of a token with its NUL */

struct home_memory;

struct home_focus { /* the last things mentioned; NULL: none of that kind */
    const char *device, *room, *machine;
    /* Of a reader (read/read_lines.h): the last plan, what was asked back, and the plan's words. */
    const char *last, *pending, *kept;
};

struct home_waiting { /* actions as they will be once confirmed, each with its line, its words and
                         what it does */
    const struct ask_plan_action *const *actions;
    const char *const *lines, *const *says, *const *todos;
    uint32_t n;
};

SHOAL_MUST_CHECK int home_memory_create(struct home_memory **out, struct err *e);
void home_memory_destroy(struct home_memory *m); /* NULL is fine */

/* key "": a request without a conversation, for which only tokens are remembered; by: the client,
 * "": unknown. */
void home_memory_focus(struct home_memory *m, const char *key, uint64_t now_ns, struct arena *a,
                       struct home_focus *out);
void home_memory_set_focus(struct home_memory *m, const char *key, const char *by, uint64_t now_ns,
                           const struct home_focus *f);
/* Keeps actions until they are confirmed, and writes a token. false: out of memory. */
bool home_memory_wait(struct home_memory *m, const char *key, const char *by, uint64_t now_ns,
                      const struct home_waiting *w, char token[HOME_MEMORY_TOKEN]);
/* Takes the pending actions under a token, or with token NULL those of the conversation; false:
 * none. A token of another conversation or client takes nothing, and stays valid for its own. */
bool home_memory_take(struct home_memory *m, const char *key, const char *by, const char *token,
                      uint64_t now_ns, struct arena *a, struct home_waiting *out);
/* Did the last turn of the conversation ask for a yes? */
bool home_memory_waits(struct home_memory *m, const char *key, uint64_t now_ns);

/* Another turn arrived: a later yes no longer confirms the pending actions, but the token still
 * does. */
void home_memory_move_on(struct home_memory *m, const char *key);

#endif
