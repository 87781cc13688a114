/* ask_event.h - the events of a request of the home flow, and its limits; ask.h says when and on
 * which thread. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_EVENT_H
#define SHOAL_APPS_HOME_ASK_ASK_EVENT_H

#include <stddef.h>

#define ASK_MAX_TEXT 4096u
#define ASK_MAX_STEPS 48u

enum ask_event_kind {
    ASK_EVENT_PLAN, /* the actions are known */
    ASK_EVENT_TEXT, /* a piece of the reply */
    ASK_EVENT_DONE, /* the last one */
};

struct ask_event {
    enum ask_event_kind kind;
    const char *text; /* TEXT; not NUL-terminated */
    size_t text_bytes;
    int code; /* DONE: 0 or SHOAL_E* */
    const char *message;
};

#endif
