/* ask_decide.h - the stages of a request that decide on actions and carry them out: they build the
 * plan.
 *
 * Thread:    as of ask_request.h. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_DECIDE_H
#define SHOAL_APPS_HOME_ASK_ASK_DECIDE_H

#include "apps/home/ask/ask_request.h"

/* Builds the draft from what a reader read. */
void ask_decide_read(struct ask_request *r);
/* Does the text as it was said stop something? Then builds the draft, before anything else looks at
 * the text. */
bool ask_decide_stop(struct ask_request *r);
/* Was the text heard so badly that it is nobody's command? Then the draft stays empty: no action,
 * no reply, and the conversation stays as it was. */
bool ask_decide_overheard(struct ask_request *r);
/* Can the request do without a model: a confirmation, an answer to "shall I", or a text too long to
 * be a command? Then builds the draft. */
bool ask_decide_answered(struct ask_request *r, const char *token);
/* Hands the draft's actions to the sink; the request advances when all are done. */
void ask_decide_carry(struct ask_request *r);
/* Records the results. */
void ask_decide_carried(struct ask_request *r);
/* Builds the plan and the reply's contexts from the draft. */
void ask_decide_finish(struct ask_request *r);

#endif
