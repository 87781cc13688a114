/* read_cover.h - does a plan account for what was said? A number or a room that no part of it
 * explains means that less was heard than was said.
 *
 * Thread:    any.
 * Ownership: borrows its arguments.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_COVER_H
#define SHOAL_APPS_HOME_READ_READ_COVER_H

#include "apps/home/read/read_lines.h"

/* Is word i part of what the act copies from the text; is a word one of the names of the lines? */
bool read_cover_explains(const struct read_plan_act *x, uint32_t i);
bool read_cover_is_name(struct arena *a, const struct read_lines *lines, const char *word);
/* false: a number belongs to no act, or a whole class of things is acted on although the text also
 * names a room that no act is about. */
bool read_cover_all(struct arena *a, const struct read_lines *lines, const struct read_plan *plan);
/* Words that neither the table nor the home has and that no part of the plan copies, as a share of
 * all that it does not copy: 0 none, 1 all of them, or there is nothing but the copied text. */
float read_cover_strange(struct arena *a, const struct home_table *t, const struct home_file *f,
                         const struct read_lines *lines, const struct read_plan *plan);
/* Does any word, also with a slip, stand for what the act is about: a name, a class, what is set,
 * or the unit of a value? If not, the reader only guesses it. True for acts that are about no
 * thing. */
bool read_cover_hints(struct arena *a, const struct home_table *t, const struct read_lines *lines,
                      const struct read_plan_act *x);
/* Is it written as a question, and not as a polite one ("could you ...?"), or about the past
 * ("yesterday")? Then what the plan does is only offered. */
bool read_cover_asks(struct arena *a, const struct home_table *t, const struct read_lines *lines);
/* The words that the plan leaves out, for the reply: such a number, such a room, or a thing that is
 * named beside others and that nobody knows ("and the flamingo"). NULL: none. */
const char *read_cover_left(struct arena *a, const struct home_table *t,
                            const struct read_lines *lines, const struct read_plan *plan);

#endif
