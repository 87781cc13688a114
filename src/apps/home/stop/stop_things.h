/* stop_things.h - the things of the home that words of a text name, whatever the words around them.
 *
 * A thing is named by its name or an alias, with or without its room; by some words of its name; by
 * its kind; or by something that is heard or spelt almost like its name. All things that the words
 * may mean are meant: who says stop must not be asked which.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_STOP_STOP_THINGS_H
#define SHOAL_APPS_HOME_STOP_STOP_THINGS_H

#include "apps/home/site/home_file.h"
#include "apps/home/stop/stop_words.h"

enum stop_object_kind {
    STOP_OBJECT_NONE,
    STOP_OBJECT_THINGS, /* at least one rests safely */
    STOP_OBJECT_OTHER,  /* only things that do not */
    STOP_OBJECT_ALL,
    STOP_OBJECT_IT,
};

struct stop_object {
    enum stop_object_kind kind;
    uint32_t to;                      /* the word behind it */
    const struct home_thing **things; /* those that rest safely */
    uint32_t n_things;
    uint32_t name_from, name_to; /* the words of the name */
    const char *room;            /* as said; NULL: none */
    bool several;                /* named one by one */
    bool more;                   /* other things are named with them, which do not rest safely */
};

struct stop_search { /* of one text; what was found at a word is kept */
    struct arena *a;
    const struct home_table *t;
    const struct home_file *f; /* NULL: no home */
    const struct stop_words *x;
    const struct home_thing **scratch; /* room for all things */
    struct { /* of each word: the name that begins there, as it is and misheard */
        struct stop_object object[2];
        bool known[2];
    } * found;
};

/* false: out of memory. */
bool stop_things_begin(struct stop_search *s, struct arena *a, const struct home_table *t,
                       const struct home_file *f, const struct stop_words *x);

/* What the words from the i-th on mean. near: a name may be misspelt. */
struct stop_object stop_things_at(const struct stop_search *s, uint32_t i, bool near);
/* The same for a name by itself, without words in front of it. */
struct stop_object stop_things_named(const struct stop_search *s, uint32_t i, bool near);
/* The words from..to-1 with numerals: "pump three" is "pump 3". */
const char *stop_things_said(const struct stop_search *s, uint32_t from, uint32_t to);
/* All things of a room (NULL: of the home) that rest safely. */
uint32_t stop_things_all(const struct stop_search *s, const struct home_thing *room,
                         const struct home_thing ***out);

#endif
