/* read_kept.h - what a conversation keeps of a plan, and what an answer to a question back makes of
 * it.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_KEPT_H
#define SHOAL_APPS_HOME_READ_READ_KEPT_H

#include "apps/home/read/read_work.h"

/* What the conversation is about now; o: the action that was made, NULL: none. */
void read_kept_remember(struct read_work *r, const struct read_doing *d,
                        const struct ask_plan_action *o);
/* The last plan again with what the text adds: the answer to a question back. */
bool read_kept_answered(struct read_work *r, const struct read_plan_act *p, struct read_plan *out);
/* Puts the words that the last plan had behind those of the text. */
void read_kept_words_back(struct read_work *r, struct read_plan_act *x);

#endif
