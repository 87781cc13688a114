/* read_work.h - what is known while a plan becomes actions, and how these get into the draft.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_WORK_H
#define SHOAL_APPS_HOME_READ_READ_WORK_H

#include <string.h>
#include <time.h>

#include "apps/home/home_act.h"
#include "apps/home/read/read_lines.h"
#include "apps/home/read/read_target.h"

struct read_work {
    struct arena *a;
    const struct home_table *t;
    const struct home_here *here;
    const struct tm *now;
    struct read_lines *lines;
    const struct read_lines_state *state;
    const char *kept; /* words that the last plan had: "role text" lines; NULL: none */
    const char *text;
    float p;        /* probability of the plan */
    bool simulated; /* nothing is connected */
    struct home_draft *draft;
    /* the state of the conversation afterwards; NULL: as before */
    const char *last_out, *pending_out, *kept_out;
};

struct read_doing { /* one action that is being made */
    const struct read_plan_act *p;
    const struct read_target *target; /* NULL: it is about no thing */
    struct home_fill s;
    double sign; /* direction of a change: -1, +1; 0: the value is set */
};

/* a may be NULL. */
static inline bool read_is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

/* Words of the text without punctuation at the end; NULL: an empty span. */
const char *read_work_said(const struct read_work *r, struct read_plan_span span);
/* When, day and time together; NULL: not said. */
const char *read_work_at(const struct read_work *r, const struct read_plan_act *p);
/* The plain words of a text; text NULL: none. */
const struct home_words *read_work_words(const struct read_work *r, const char *text);

/* Adds a line without an action; text is the value of {text}. */
void read_work_say(struct read_work *r, enum home_say which, const char *text);
struct home_act read_work_begin(const struct read_work *r, const struct home_action *action);
void read_work_add(struct read_work *r, struct home_act *x, struct home_draft_line line);
/* Asks about words that the action has no use for. */
void read_work_ask_about(struct read_work *r, const struct home_action *action, const char *text);
/* Fills the first of the named slots that the action has; false: it has none of them. */
bool read_work_fill(const struct read_work *r, const struct home_action *action,
                    struct home_fill *s, const char *names, const char *text);

#endif
