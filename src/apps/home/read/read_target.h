/* read_target.h - the things that an act of a plan means, and how a reply calls them.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the home file and the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_TARGET_H
#define SHOAL_APPS_HOME_READ_READ_TARGET_H

#include "apps/home/read/read_lines.h"

enum read_target_result {
    READ_TARGET_NOTHING, /* the act names nothing */
    READ_TARGET_THINGS,
    READ_TARGET_ONE_OF,  /* one of the things; it was not said which */
    READ_TARGET_UNKNOWN, /* `what` is not in the home */
    READ_TARGET_NAMED,   /* the same, in a home that takes things by their names */
};

struct read_target {
    enum read_target_result result;
    const struct home_thing **things;
    uint32_t n;
    const struct home_class *class; /* NULL: the things were named one by one */
    const char *device, *room;      /* how a reply calls them; NULL: by nothing */
    const char *except;             /* what a class leaves as it is: "kitchen"; NULL: nothing */
    const char *said;               /* the device with that: "lights except in the kitchen" */
    const char *what;               /* that is not there */
};

struct read_target read_target_of(struct arena *a, const struct home_table *t,
                                  const struct home_file *file, const struct read_lines *lines,
                                  const struct read_lines_state *state,
                                  const struct read_plan_act *act);
/* Words of the text without punctuation at the end; NULL: an empty span. */
const char *read_target_words(struct arena *a, const struct read_lines *lines,
                              struct read_plan_span span);

#endif
