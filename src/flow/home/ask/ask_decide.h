/* ask_decide.h - the stages of a request in which it is decided what happens, and in which it
 * happens: the plan is made here.
 *
 * Thread:    as of ask_request.h. */
#ifndef SHOAL_FLOW_HOME_ASK_ASK_DECIDE_H
#define SHOAL_FLOW_HOME_ASK_ASK_DECIDE_H

#include "flow/home/ask/ask_request.h"

/* What the clauses ask for, into the draft. */
void ask_decide_text(struct ask_request *r);
/* Does the request need no model: a confirmation, an answer to "shall I", "stop everything", more
 * words than anybody can follow?  Then the draft is made. */
bool ask_decide_answered(struct ask_request *r, const char *token);
/* The draft of a text that nobody can follow: only that is said. */
void ask_decide_too_long(struct ask_request *r);
/* Hands the draft's actions to the sink; the request advances when all are done. */
void ask_decide_carry(struct ask_request *r);
/* Writes down how it went. */
void ask_decide_carried(struct ask_request *r);
/* The plan and the contexts of the reply from the draft. */
void ask_decide_finish(struct ask_request *r);

#endif
