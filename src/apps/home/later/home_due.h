/* home_due.h - turns spoken times ("in 20 minutes", "tomorrow at 7") into moments.
 *
 * An hour of the twelve-hour clock without "am" or "pm" means the next such time; for an alarm, the
 * morning.  On another day, an hour from one to five is in the afternoon.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table.
 * Failure:   `why` says in words why there is no such moment. */
#ifndef SHOAL_APPS_HOME_HOME_DUE_H
#define SHOAL_APPS_HOME_HOME_DUE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "flow/ask_plan.h"
#include "apps/home/table/home_table.h"
#include "apps/home/table/home_words.h"

#define HOME_DUE_MAX_S ((int64_t)366 * 86400)
#define HOME_DUE_MIN_PERIOD_S 60

struct home_due_said {
    double in_s;         /* counted from now; negative: not given */
    const char *time;    /* "07:30", or words; NULL: not given */
    const char *date;    /* in words; NULL: not given */
    bool either;         /* am or pm not given */
    bool morning;        /* an ambiguous hour is in the morning */
    const char *every;   /* how it repeats, in words; NULL: it does not */
    uint32_t days;       /* of `every`; 0: it has a period, or cannot repeat this way */
    int64_t period_s;    /* of `every`; 0: none */
    const double *place; /* latitude and longitude of the home; NULL: not known */
};

struct home_due {
    int64_t at_s;      /* Unix time; 0: none */
    const char *why;   /* NULL: no problem, or the time is missing */
    bool missing_time; /* a day without a time */
    bool counted;      /* counted from now: it does not change with the clock */
    struct ask_plan_again again;
};

struct home_due home_due_of(struct arena *a, const struct home_table *t,
                            const struct home_due_said *said, time_t now);
enum home_due_date { HOME_DUE_READ, HOME_DUE_UNREAD, HOME_DUE_PAST };

/* What words make of a date: one that can be, words that are none, one that is over. */
enum home_due_date home_due_date(struct arena *a, const struct home_table *t, const char *text,
                                 const struct tm *now);
struct home_due_every { /* words for repetition */
    const char *words;  /* "every monday and thursday"; NULL: none */
    uint32_t from, n;   /* their position */
    uint32_t days;      /* bits: 0 Monday to 6 Sunday */
    int64_t period_s;   /* "every two hours"; with neither it is not possible */
};

/* Finds the longest such phrase of a clause. */
struct home_due_every home_due_every(struct arena *a, const struct home_table *t,
                                     const struct home_words *w);
/* How many words from `at` on are a time of day, "half past six pm" or "sunset"; 0: none. */
uint32_t home_due_clock_at(struct arena *a, const struct home_table *t, const struct home_words *w,
                           uint32_t at);
/* The next moment after that one; 0: none. */
int64_t home_due_next(const struct ask_plan_again *g, int64_t after_s);
/* "today, 19:00", "tomorrow, 07:00", "Friday, 07:00", "5 March 2027, 07:00" */
const char *home_due_words(struct arena *a, const struct home_table *t, int64_t at_s, time_t now);
/* "4 minutes", "1 hour 5 minutes", "12 seconds" */
const char *home_due_left(struct arena *a, const struct home_table *t, int64_t left_s);

#endif
