/* ask_understand.h - the stages of a request that run models: which words are commands, and what
 * each clause means. Results are in the request when it advances.
 *
 * Thread:    as of ask_request.h; results come on the engines' threads. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_UNDERSTAND_H
#define SHOAL_APPS_HOME_ASK_ASK_UNDERSTAND_H

#include "apps/home/ask/ask_request.h"

/* Finds the words that are commands. */
void ask_understand_acts(struct ask_request *r);
/* Runs the encoder on the marked clauses, or with NULL on all of them. */
void ask_understand_clauses(struct ask_request *r, const bool *only);
/* Replaces "it" in the clauses by its meaning, and runs the encoder on them again; false: nothing
 * to replace. */
bool ask_understand_refer(struct ask_request *r);

/* The words of a clause, and where they name a room, a thing and a number. */
void ask_understand_places(struct ask_request *r, const struct home_clause *c,
                           struct home_focus *out);

#endif
