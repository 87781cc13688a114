/* read_lines.h - what a reader gets to read: the lines of things, areas and floors that a text may
 * mean, the state of the conversation, and the text (training/reader/PLAN.md).
 *
 * The choice of lines decides nothing; it only has to contain what is meant.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the home file and the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_LINES_H
#define SHOAL_APPS_HOME_READ_READ_LINES_H

#include "apps/home/read/read_plan.h"
#include "apps/home/site/home_file.h"
#include "apps/home/table/home_words.h"

struct read_lines_state {          /* the conversation so far; NULL: none */
    const struct home_thing *here; /* the speaker's room */
    /* Words of the plan language with a space between them; a thing, an area or a floor is '@' and
     * its id. */
    const char *last, *pending;
};

struct read_lines_thing {
    const struct home_thing *thing;
    const struct home_class *class;     /* NULL: a word of its own, as of people */
    bool said;                          /* by a name, its class, or in the turn before */
    bool exact;                         /* by a whole name, or in the turn before */
    const char *own[READ_PLAN_MAX_OWN]; /* abilities that the language has no word for */
    uint32_t n_own;
};

struct read_lines {
    struct read_lines_thing things[READ_PLAN_MAX_THINGS];
    const struct home_thing *areas[READ_PLAN_MAX_AREAS];
    bool area_said[READ_PLAN_MAX_AREAS]; /* or about so; the speaker's, or of the turn before */
    const char *floors[READ_PLAN_MAX_FLOORS];
    uint32_t n_things, n_areas, n_floors;
    struct home_words words; /* of the text, at most READ_PLAN_MAX_WORDS */
    const char *input;       /* for the reader's engine */
};

/* file NULL: no home. SHOAL_ENOMEM or SHOAL_ELIMIT: there is no input. */
SHOAL_MUST_CHECK int read_lines_choose(struct read_lines *out, struct arena *a,
                                       const struct home_table *t, const struct home_file *file,
                                       const struct read_lines_state *state, const char *text);
/* The class that a thing is written as; NULL: none of the table's. */
const struct home_class *read_lines_class(struct arena *a, const struct home_table *t,
                                          const struct home_thing *x);
/* Is one of the words in a name of the thing? */
bool read_lines_called(struct arena *a, const struct home_table *t, const struct home_thing *x,
                       const struct home_list *words);
/* The quantity that a sensor measures; NULL: not known. */
const struct home_plan_quantity *read_lines_measures(struct arena *a, const struct home_table *t,
                                                     const struct home_thing *x);

#endif
