/* ask_read.h - the reader's part of an ask: it reads the text beside the other models, and its plan
 * is taken where the rules do not understand the text, or understand something else and the reader
 * is sure (docs/ASK.md).
 *
 * Thread:    as of ask_request.h. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_READ_H
#define SHOAL_APPS_HOME_ASK_ASK_READ_H

#include "apps/home/ask/ask_request.h"

/* Submits the reading, as one part of the stage that the caller has begun. */
void ask_read_submit(struct ask_request *r);
/* The draft of the rules is complete: replaces it by the reader's where that is better. */
void ask_read_decide(struct ask_request *r, const struct home_here *here);
/* What the conversation was about, for the next reading. */
void ask_read_remember(struct ask_request *r, struct home_focus *f);

#endif
