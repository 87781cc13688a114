/* home_names.h - the names that may be said in a home, as phrases for a recognizer of speech.
 *
 * Thread:    pure function.
 * Failure:   sticks in the buffer's rc. */
#ifndef SHOAL_APPS_HOME_HOME_NAMES_H
#define SHOAL_APPS_HOME_HOME_NAMES_H

#include "base/buf.h"
#include "apps/home/site/home_file.h"

#define HOME_NAMES_MOST 1500u /* phrases */

/* Names and aliases of rooms, devices, machines, sensors, people and scenes, and floors, one on
 * each line and each once; rooms and people first, should there be too many.  f NULL: none. */
void home_names_put(struct buf *b, const struct home_file *f);

#endif
