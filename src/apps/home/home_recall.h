/* home_recall.h - finds the scheduled entries that a text refers to: "what timers are set?",
 * "cancel the heating timer".
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_RECALL_H
#define SHOAL_APPS_HOME_HOME_RECALL_H

#include "apps/home/later/home_later.h"
#include "apps/home/table/home_words.h"

struct home_recall {
    enum { HOME_RECALL_NOTHING, HOME_RECALL_LIST, HOME_RECALL_CANCEL } want;
    enum home_later_kind kind;
    bool sure;        /* the words alone say so */
    bool all;         /* the clause means all of them */
    const char *what; /* as it was said: "pasta timer" */
    const char **ids, **names;
    uint32_t n; /* the matching entries */
};

struct home_recall_query {
    const struct home_words *plain;
    bool asks;                        /* it is a question */
    const struct home_action *action; /* the model's action; NULL: none */
};

/* want is HOME_RECALL_NOTHING if the text is about something else. */
struct home_recall home_recall_find(struct arena *a, const struct home_table *t,
                                    struct home_later *l, const struct home_recall_query *q);

#endif
