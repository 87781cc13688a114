/* read_plan.h - the plan that a reader writes for a text: typed acts on lines of its input and on
 * words of the text (training/reader/PLAN.md has the language).
 *
 * A plan names nothing by its own words: a thing, an area or a floor is the number of a line, and a
 * value, a time or a message is a span of words. What the numbers mean is said by read_lines.h.
 *
 * Thread:    any.
 * Ownership: a plan is plain data; its texts are the program's own.
 * Failure:   a plan that breaks the grammar is not read: false. */
#ifndef SHOAL_APPS_HOME_READ_READ_PLAN_H
#define SHOAL_APPS_HOME_READ_READ_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define READ_PLAN_MAX_ACTS 8u
#define READ_PLAN_MAX_THINGS 16u
#define READ_PLAN_MAX_AREAS 8u
#define READ_PLAN_MAX_FLOORS 4u
#define READ_PLAN_MAX_OWN 6u /* abilities of a thing that have no word in the language */
#define READ_PLAN_MAX_ITEMS 16u
#define READ_PLAN_MAX_WORDS 64u

struct read_plan_span { /* words from..to-1; to 0: none */
    uint32_t from, to;
};

enum read_plan_amount { /* how a value is given */
                        READ_PLAN_NO_AMOUNT,
                        READ_PLAN_TO,   /* value: the new one */
                        READ_PLAN_BY,   /* value: the difference */
                        READ_PLAN_BIT,  /* a little */
                        READ_PLAN_LOT,  /* much */
                        READ_PLAN_SAME, /* as before */
};

struct read_plan_lines { /* numbers of lines, from 0, in the order of the plan */
    uint8_t at[READ_PLAN_MAX_THINGS];
    uint32_t n;
};

struct read_plan_act {
    const char *verb; /* "on", "set", "timer", ... */
    const char
        *word; /* of a timer, none, other, chat or answer: "cancel_one", "talk"; NULL: none */
    /* what it is about */
    struct read_plan_lines things, areas, floors;
    struct read_plan_lines except, except_areas; /* what is left as it is */
    const char *class;                           /* "light"; NULL: none */
    struct read_plan_span unknown;               /* something that has no line */
    struct read_plan_span elsewhere;             /* a place that has no line */
    bool all;                                    /* every one of them */
    bool one;                                    /* one of the things, it is not said which */
    bool it;                                     /* what was spoken of last */
    bool here, everywhere;
    /* what is done to it, or asked about it */
    const char *quantity; /* "temperature"; NULL: not said */
    uint32_t own;         /* 1 + the number of an ability of its own; 0: none */
    const char *state;    /* "is_open"; NULL: none */
    const char *which;    /* "any", "all", "which", "count"; NULL: none */
    enum read_plan_amount amount;
    struct read_plan_span value;
    /* when */
    struct read_plan_span at, in, lasts, until, every;
    struct read_plan_span also_at; /* "tomorrow" of "tomorrow, to call Anna, at 7" */
    /* texts */
    struct read_plan_span what, list, name, duration;
    struct read_plan_span items[READ_PLAN_MAX_ITEMS];
    uint32_t n_items;
};

struct read_plan {
    struct read_plan_act acts[READ_PLAN_MAX_ACTS];
    uint32_t n;
};

/* Reads "set t2 pressure to_value w3 w4 sep off light"; false: it is no plan. */
bool read_plan_of(struct read_plan *out, const char *text);
/* Does the act want to change something outside of the conversation? */
bool read_plan_acts(const struct read_plan_act *x);

#endif
