/* ask_read.h - understanding by a reader: one model reads the text with the lines of the home that
 * it may mean, and writes a plan; the plan becomes the draft (docs/ASK.md).
 *
 * Thread:    as of ask_request.h. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_READ_H
#define SHOAL_APPS_HOME_ASK_ASK_READ_H

#include "apps/home/ask/ask_request.h"
#include "apps/home/home_answer.h"

/* Begins the stage that reads the text. */
void ask_read_start(struct ask_request *r);
/* The text was read: makes the draft; *out: how it was understood. Returns whether it only asks
 * something. */
bool ask_read_decide(struct ask_request *r, const struct home_here *here,
                     struct ask_plan_clause *out);
/* What the conversation was about, for the next reading. */
void ask_read_remember(struct ask_request *r, struct home_focus *f);

/* A text that was read as the answer to a question is read once more, as if nothing had been asked,
 * if it names a thing: "turn off the light" after "what colour?" is a command. True: that has
 * begun, and the stage ends again. After the second time the better one is kept. */
bool ask_read_again(struct ask_request *r);

#endif
