/* home_link.h - finds the things of a home that a text means: "the lamp" in "kitchen" is
 * "light.kitchen_2".
 *
 * A text matches a whole name, words of a name, or a kind ("the lights"), in this order.  An
 * unknown name may be misspelt: the nearest one is taken if it is unique.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the file.
 * Failure:   sticky in the arena; the result is then HOME_LINK_NONE. */
#ifndef SHOAL_APPS_HOME_HOME_LINK_H
#define SHOAL_APPS_HOME_HOME_LINK_H

#include "base/arena.h"
#include "apps/home/site/home_file.h"

enum home_link_result {
    HOME_LINK_NONE,    /* no thing has this name; `what` holds the words */
    HOME_LINK_THINGS,  /* one, or all that a plural means */
    HOME_LINK_UNCLEAR, /* ambiguous: one of several */
};

struct home_link {
    enum home_link_result result;
    const struct home_thing **things;
    uint32_t n;
    bool by_name;   /* by their whole names, not by words or kind */
    bool corrected; /* misspelt: say the thing's own name */
    const char *what;
};

struct home_link_query {
    uint32_t types;   /* 1u << enum home_thing_type, of the things that may be meant */
    const char *text; /* lower case, without articles; NULL: all things of the room */
    const char *room; /* as said, lower case; NULL: none */
    const char
        *ability; /* an ability that a thing must have if only its kind is named; NULL: any */
};

struct home_link home_link_find(struct arena *a, const struct home_file *f,
                                const struct home_table *t, const struct home_link_query *q);

#endif
