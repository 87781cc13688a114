/* ask_understand.h - the stages of a request that ask models: which words command something, and
 * what each clause wants.  Results are in the request when it advances.
 *
 * Thread:    as of ask_request.h; results come on the engines' threads. */
#ifndef SHOAL_FLOW_HOME_ASK_ASK_UNDERSTAND_H
#define SHOAL_FLOW_HOME_ASK_ASK_UNDERSTAND_H

#include "flow/home/ask/ask_request.h"

/* Which words command something. */
void ask_understand_acts(struct ask_request *r);
/* Clauses that are marked, or with NULL all of them, go through the encoder. */
void ask_understand_clauses(struct ask_request *r, const bool *only);
/* Puts what "it" means into the clauses that say it, and looks at them once more; false: there is
 * nothing to replace. */
bool ask_understand_refer(struct ask_request *r);

/* The words of a clause, and where they name a room, a thing and a number. */
void ask_understand_places(struct ask_request *r, const struct home_clause *c,
                           struct home_focus *out);

#endif
