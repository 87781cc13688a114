/* home_file.h - the things of one home: rooms, devices, machines, sensors, people and scenes, as a
 * file names them (docs/HOME.md).  home_file_read.h reads it.
 *
 * Thread:    immutable; any number of threads may read it.
 * Ownership: reference-counted: the reader gives the first reference, unref gives one back (NULL is
 *            fine).  Everything reached through it lives as long as it does. */
#ifndef SHOAL_APPS_HOME_HOME_FILE_H
#define SHOAL_APPS_HOME_HOME_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strmap.h"
#include "apps/home/table/home_table.h"
#include "wire/json_out.h"

#define HOME_FILE_MAX_BYTES ((size_t)1 << 20)
#define HOME_FILE_MAX_THINGS 2000u
#define HOME_FILE_ARENA_BYTES ((size_t)16 << 20)
#define HOME_FILE_MAX_SETS 64u       /* of one scene */
#define HOME_FILE_MAX_NAME_BYTES 80u /* of one name */

enum home_thing_type {
    HOME_THING_ROOM,
    HOME_THING_DEVICE,
    HOME_THING_MACHINE,
    HOME_THING_SENSOR,
    HOME_THING_PERSON,
    HOME_THING_SCENE,
    HOME_THING_COUNT,
};

struct home_thing_limit {
    const char *ability;
    double min, max;
    const char *unit; /* NULL: any */
};

struct home_thing;
struct home_thing_set { /* one ability of one thing, as a scene or the start sets it */
    const struct home_thing *thing;
    const char *ability, *text; /* text NULL: a number */
    double number;
};

struct home_thing_names { /* in another language */
    const char *language;
    struct home_list written, names; /* as the file writes them; the same in lower case */
};

struct home_thing {
    enum home_thing_type type;
    const char *id, *kind;        /* kind "": none */
    const struct home_kind *is;   /* the same, or the special case that its name says; NULL: none */
    const struct home_kind *also; /* another one that its name says, for its risk; NULL: none */
    const char *name;             /* as the file writes it */
    struct home_list names;       /* name and aliases, lower case */
    const struct home_thing_names *tongues;
    uint32_t n_tongues;
    const struct home_thing *room; /* NULL: none */
    const char *unit;              /* of a sensor; NULL: none */
    const char *floor;             /* of a room, lower case; NULL: none */
    struct home_list abilities;
    const struct home_thing_limit *limits;
    uint32_t n_limits;
    bool has_risk;
    enum home_risk risk; /* of actions on it, if has_risk */
    const struct home_thing_set *sets;
    uint32_t n_sets;
};

struct home_file {
    _Atomic uint32_t refs;
    const char *name;
    const char *language;   /* of its names */
    struct home_file *next; /* the same home in another language; NULL: no more */
    bool has_place;
    double place[2]; /* latitude and longitude in degrees, for sunrise and sunset */
    bool open;       /* unlisted things are accepted too: the demo home */
    struct home_thing *things;
    uint32_t n_things;
    const struct home_thing_set *starts; /* states that are known before anything is reported */
    uint32_t n_starts;
    struct strmap ids;      /* of the things, to their indices */
    struct home_list words; /* of all names, each once, to correct typos */
    struct strmap word_set; /* the same, as a lookup table */
    struct arena arena;
};

struct home_file *home_file_ref(struct home_file *f); /* NULL is fine */
void home_file_unref(struct home_file *f);

/* The home with the names of a language, those of the file for things that have none in it. It
 * lives as long as f. A language that there is no table of: f. */
struct home_file *home_file_in(struct home_file *f, const char *language);
/* Makes the home in the language of a table; `home_file_in` finds it. The table outlives it. */
SHOAL_MUST_CHECK int home_file_add(struct home_file *f, const struct home_table *t);

/* "room", "device", ... */
const char *home_file_type_name(enum home_thing_type type);
/* "rooms", "devices", ... */
const char *home_file_list_name(enum home_thing_type type);
/* NULL: no thing has this id. */
const struct home_thing *home_file_thing(const struct home_file *f, const char *id);
bool home_file_able(const struct home_thing *x, const char *ability);
/* Is it one slip away from a word of a name? */
bool home_file_near_word(const struct home_file *f, const char *word);
/* Is it of one of the kinds, or a special case of one? */
bool home_file_is(const struct home_thing *x, const struct home_list *kinds);
/* Is it a word of a name in the home?  f NULL: no home is known. */
bool home_file_has_word(const struct home_file *f, const char *word);
/* The home as members of the open object, in the form of the file. */
void home_file_json(struct json_out *j, const struct home_file *f);

/* For those who make a file: collects the words of all names, each once. SHOAL_ENOMEM. */
SHOAL_MUST_CHECK int home_file_collect_words(struct home_file *f);

#endif
