/* jinja_equal.h - comparing values, as JavaScript does.
 *
 * Thread, ownership, failure: as in jinja_value.h. */
#ifndef SHOAL_TEXT_JINJA_JINJA_EQUAL_H
#define SHOAL_TEXT_JINJA_JINJA_EQUAL_H

#include "text/jinja/jinja_value.h"

/* Without conversion: `in` and `is eq`. */
bool jinja_same(const struct jinja_value *a, const struct jinja_value *b);
/* a == b, which converts between strings, numbers and booleans. */
SHOAL_MUST_CHECK int jinja_equal(struct jinja_run *r, const struct jinja_value *a,
                                 const struct jinja_value *b, bool *out);

#endif
