/* home_recall.h - finds the scheduled entries that words mean: "the pasta timer".
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_RECALL_H
#define SHOAL_APPS_HOME_HOME_RECALL_H

#include "apps/home/later/home_later.h"
#include "apps/home/table/home_words.h"

struct home_recall_query {
    enum home_later_kind kind;
    const struct home_words *words; /* which one; NULL or none: all of the kind */
    bool due;                       /* names say when: "pasta (4 minutes)" */
};

struct home_recall {
    const char *what; /* as it was said: "pasta timer" */
    const char **ids, **names;
    uint32_t n; /* the entries */
};

/* l NULL: nothing is scheduled here. An entry of another kind is found too, if no other one has all
 * of the words: "the heating timer" may switch the heating. */
struct home_recall home_recall_find(struct arena *a, const struct home_table *t,
                                    struct home_later *l, const struct home_recall_query *q);

#endif
