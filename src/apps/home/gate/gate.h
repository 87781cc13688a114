/* gate.h - decides whether a deed may be carried out, and hands it to the sink.
 *
 * A number is converted to the thing's own unit first.  A change is judged by the value that it
 * leads to.  Limits of the home file come before the usual ones of the table.  The risk is that of
 * the kind and the ability; the home file can only raise it.  A deed is checked when it is planned
 * and again when it runs, by the home as it is then.
 *
 * Thread:    any; no state of its own.
 * Ownership: borrows everything; texts of a verdict belong to the table, the file and the deed.
 * Failure:   is a verdict. */
#ifndef SHOAL_APPS_HOME_GATE_GATE_H
#define SHOAL_APPS_HOME_GATE_GATE_H

#include "apps/home/site/home_file.h"
#include "apps/home/site/home_sink.h"
#include "apps/home/site/home_states.h"

struct gate { /* the home as it is now */
    const struct home_table *table;
    const struct home_file *file; /* NULL: no home is known, every thing is accepted by its name */
    struct home_states *states;   /* NULL: none is known */
};

enum gate_answer { /* higher is stricter */
                   GATE_PASS,
                   GATE_CONFIRM,      /* only after a yes */
                   GATE_ASK_VALUE,    /* no number where one belongs */
                   GATE_ASK_QUANTITY, /* a number, but it is not clear of what */
                   GATE_REFUSE,
};

enum gate_why {
    GATE_WHY_NOTHING,
    GATE_WHY_RISK,      /* confirm: dangerous */
    GATE_WHY_NO_LIMITS, /* confirm: nothing says which values are safe */
    GATE_WHY_PRESENT,   /* confirm: the result of a change is not known */
    GATE_WHY_UNCLEAR,   /* ask */
    GATE_WHY_ABOVE,     /* refuse: more than `limit` */
    GATE_WHY_BELOW,     /* refuse: less than `limit` */
    GATE_WHY_SPAN,      /* refuse: a change by more than `limit`, the whole range */
    GATE_WHY_UNIT,      /* refuse: no unit of this ability */
    GATE_WHY_STATE,     /* refuse: no state of this ability */
    GATE_WHY_UNABLE,    /* refuse: the thing has no such ability */
    GATE_WHY_GONE,      /* refuse: the home has no such thing any more */
    GATE_WHY_ACTION,    /* refuse: the table has no such action any more */
};

struct gate_verdict {
    enum gate_answer answer;
    enum gate_why why;
    enum home_risk risk;
    const struct home_thing *thing; /* NULL: it is not in the file */
    struct home_deed deed;          /* as it may be carried out, in the thing's own unit */
    double limit;                   /* that is violated, in `unit` */
    const char *unit;               /* NULL: none */
};

/* Can a thing do that at all?  ability: also the one that stands for all settings. */
bool gate_able(const struct home_table *t, const struct home_thing *thing, const char *ability);
/* The unit of a bare number for an ability of a thing; NULL: none. */
const char *gate_unit_of(const struct home_table *t, const struct home_thing *thing,
                         const char *ability);
/* May the deed be carried out? */
struct gate_verdict gate_check(const struct gate *g, const struct home_deed *deed, bool confirmed);
/* The same for a thing that need not be listed. deed->ability NULL: the action sets nothing, only
 * its risk counts. */
struct gate_verdict gate_check_thing(const struct gate *g, const struct home_thing *thing,
                                     const struct home_deed *deed, bool confirmed);
/* Hands a deed that passes to the sink, which calls `done` once; any other deed goes nowhere, and
 * `done` is not called. sink NULL: a simulated home, only the verdict counts. */
struct gate_verdict gate_carry(const struct gate *g, struct home_sink *sink,
                               const struct home_deed *deed, bool confirmed, home_sink_done_fn done,
                               void *ctx);

#endif
