/* home_near.h - distance between two words or names, as typed and as heard.
 *
 * Thread:    any; no state. */
#ifndef SHOAL_APPS_HOME_HOME_NEAR_H
#define SHOAL_APPS_HOME_HOME_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#define HOME_NEAR_MAX_BYTES 80u
#define HOME_NEAR_FAR UINT32_MAX

/* Edit distance: letters inserted, left out, replaced, or swapped. HOME_NEAR_FAR: more than `most`,
 * or a text is longer than HOME_NEAR_MAX_BYTES. */
uint32_t home_near_typed(const char *a, const char *b, uint32_t most);
/* Do both sound alike, to an English ear? */
bool home_near_heard(const char *a, const char *b);
/* The distance at which a text may still be a misspelt name; HOME_NEAR_FAR: it is not. Numbers and
 * single letters are never misspelt: "pump 5" is not "pump 3". */
uint32_t home_near(const char *text, const char *name);

#endif
