/* ask_speak.h - the last stage of a request: says its contexts, through the reply model or in plain
 * words.
 *
 * Thread:    as of ask_request.h; the model's text comes on its engine's thread. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_SPEAK_H
#define SHOAL_APPS_HOME_ASK_ASK_SPEAK_H

#include "apps/home/ask/ask_request.h"

#define ASK_REPLY_BYTES ((size_t)1 << 16)

/* Says contexts that need no model. */
void ask_speak_plain(struct ask_request *r);
/* Generates the reply to the current context. */
void ask_speak_start(struct ask_request *r);
/* The reply to a context is complete: replaces what the model got wrong by plain words. */
void ask_speak_check(struct ask_request *r);

#endif
