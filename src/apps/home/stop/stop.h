/* stop.h - reads "stop" in a text, before any model does: what shall come to rest, at once and
 * without a question (docs/ASK.md, section 3).
 *
 * The words of a language are data (`stop` of the table); what can be stopped are the things of the
 * home, by their names, rooms and kinds. A text stops something only if it is said as a command:
 * questions, reports, conditions, denials and later times stop nothing here.
 *
 * Thread:    any; no state.
 * Ownership: results live in the caller's arena, or in the home file.
 * Failure:   sticky in the arena; nothing is stopped then. */
#ifndef SHOAL_APPS_HOME_STOP_STOP_H
#define SHOAL_APPS_HOME_STOP_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "apps/home/home_memory.h"
#include "apps/home/site/home_file.h"
#include "apps/home/table/home_table.h"

enum stop_what {
    STOP_NOTHING,
    STOP_EVERYTHING, /* all that rests safely */
    STOP_THINGS,
};

struct stop {
    enum stop_what what;
    enum home_stop_way way;
    const struct home_thing **things; /* those that rest safely, each once */
    uint32_t n_things;
    bool several;     /* named one by one */
    const char *name; /* as said, without articles */
    const char *room; /* as said; NULL: none */
    bool urgent;      /* the words tell of danger, or repeat themselves */
};

struct stop_query {
    const struct home_table *t;
    const struct home_file *file;   /* NULL: no home; only everything can be stopped */
    const struct home_focus *focus; /* the meaning of "it"; NULL: none */
    const char *text;
};

/* false: it stops nothing. A text with other commands in it stops something only if it is
 * urgent. */
bool stop_read(struct arena *a, const struct stop_query *q, struct stop *out);

#endif
