/* home_act.h - one action and its line: the object that a program reads, and the facts that the
 * reply model puts into words (docs/ASK.md, sections 4 to 6).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_ACT_H
#define SHOAL_APPS_HOME_HOME_ACT_H

#include <time.h>

#include "apps/home/home_answer.h"
#include "apps/home/home_draft.h"
#include "apps/home/site/home_file.h"
#include "apps/home/home_fill.h"
#include "apps/home/later/home_due.h"

struct home_act { /* one action being made */
    struct arena *a;
    const struct home_table *t;
    const struct home_action *x;
    const struct home_here *here; /* never NULL */
    struct ask_plan_action *o;
    const struct tm *now;
    const char *pairs;                 /* "; key: value" ... */
    const char *shows[HOME_MAX_SLOTS]; /* of the action's slots; NULL: missing */
    const char *result, *reason, *ask, *answer, *when, *text, *state;
    const char *except, *said; /* what is left as it is, and how the device is called with it */
    const char *wrong;         /* an impossible value */
    struct home_due_said due;  /* when it should happen */
    const char *clock;         /* its time, as shown; NULL: none */
    const char *again_time;    /* for a repeated action without a slot for a time, as shown */
    bool doubtful;             /* it may not be what was meant: it waits for a yes */
    bool lists;                /* a question which of them are so, if it is only one, too */
    double sign;               /* direction of a change: -1, +1; 0: the value is set */
    const struct home_thing **things; /* the things it acts on */
    uint32_t n_things;
};

void home_act_put_text(struct home_act *x, const char *key, const char *text);
void home_act_put_result(struct home_act *x, const char *result);
void home_act_put_slots(struct home_act *x, const struct home_fill *s);
/* Which of the things is meant? The line asks; slot: what for. */
struct home_draft_line home_act_which(struct home_act *x, const char *slot,
                                      const struct home_thing *const *things, uint32_t n);
void home_act_put_id(struct home_act *x);

/* What a decided action does: "turn off the kitchen fan", "timer: 10 minutes". */
const char *home_act_words(struct arena *a, const struct home_table *t,
                           const struct ask_plan_action *o);

/* Said by the program itself; without such a line in the table, by the model. */
struct home_draft_line home_act_plain_line(struct home_act *x, enum home_say which);
/* The user's own words, for a clause that is chat or out of scope. */
struct home_draft_line home_act_said(struct arena *a, const struct home_template *t,
                                     const char *text);
/* For home_template_fill: ctx is the value of {text}. */
const char *home_act_text(void *ctx, uint32_t var);

/* Turns one set of slots into an action and its line; text and say NULL: the clause is out of
 * scope. */
struct home_draft_line home_act_make(struct home_act *x, struct home_fill *s,
                                     const struct home_words *plain, struct home_draft *draft);

#endif
