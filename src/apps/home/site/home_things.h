/* home_things.h - a home as it is now: its file, which may be replaced while the server runs, the
 * states of its things, and the sink that carries actions out.
 *
 * Thread:    create and destroy: the owner.  The others: any; a lock inside.
 * Ownership: a file that is set is referenced; home_things_file gives the caller a reference. The
 *            sink belongs to the caller that set it and outlives the home, or is unset first.
 * Failure:   SHOAL_E* of create. */
#ifndef SHOAL_APPS_HOME_HOME_THINGS_H
#define SHOAL_APPS_HOME_HOME_THINGS_H

#include "base/err.h"
#include "apps/home/site/home_file.h"
#include "apps/home/site/home_sink.h"
#include "apps/home/site/home_states.h"

struct home_later;
struct home_live;
struct home_things;

/* state_path: file that keeps the states; NULL: they are lost at exit. */
SHOAL_MUST_CHECK int home_things_create(struct home_things **out, struct home_file *file,
                                        const char *state_path, struct err *e);
void home_things_destroy(struct home_things *h); /* NULL is fine */

struct home_file *home_things_file(struct home_things *h);
void home_things_set_file(struct home_things *h, struct home_file *file);
struct home_states *home_things_states(struct home_things *h);
/* The users' lists, each item a state: home_lists.h. Kept beside the states, in "FILE.lists". */
struct home_states *home_things_lists(struct home_things *h);
/* NULL: actions are simulated. */
struct home_sink *home_things_sink(struct home_things *h);
void home_things_set_sink(struct home_things *h, struct home_sink *sink);

/* The schedule; owned by the caller that set it, like the sink. NULL: none. */
struct home_later *home_things_later(struct home_things *h);
void home_things_set_later(struct home_things *h, struct home_later *later);

/* Who answers about sensors and alarms; owned by the caller that set it. NULL: nobody. */
struct home_live *home_things_live(struct home_things *h);
void home_things_set_live(struct home_things *h, struct home_live *live);

/* Records a state reported by a thing, for transports that receive it. text NULL: number is the
 * value. False: the home has no thing with this id. */
bool home_things_report(struct home_things *h, const char *id, const char *ability,
                        const char *text, double number, const char *unit);

/* Grows with every change of the file, of a state or of the schedule. */
uint64_t home_things_version(struct home_things *h);

/* The home with its states and schedule, as members of the open object. */
void home_things_json(struct json_out *j, struct home_things *h);

#endif
