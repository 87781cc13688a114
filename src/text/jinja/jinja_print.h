/* jinja_print.h - values as text: Python's str() and repr().
 *
 * Thread, ownership: as in jinja_value.h.
 * Failure:   a value whose text Python does not define (functions and iterators: it has an
 *            address), nesting that is too deep, output that does not fit. */
#ifndef SHOAL_TEXT_JINJA_JINJA_PRINT_H
#define SHOAL_TEXT_JINJA_JINJA_PRINT_H

#include "text/jinja/jinja_value.h"

/* Appends str(v), what {{ v }} writes, to r->out. */
SHOAL_MUST_CHECK int jinja_print(struct jinja_run *r, const struct jinja_value *v);
/* Appends repr(v), what {{ [v] }} writes between the brackets. */
SHOAL_MUST_CHECK int jinja_print_repr(struct jinja_run *r, const struct jinja_value *v);
/* str(v) as a string. */
SHOAL_MUST_CHECK int jinja_print_text(struct jinja_run *r, const struct jinja_value *v,
                                      struct jinja_str *out);

#endif
