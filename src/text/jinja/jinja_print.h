/* jinja_print.h - values as text: what {{ v }} and the operators ~ and + write.
 *
 * Thread, ownership, failure: as in jinja_value.h. */
#ifndef SHOAL_TEXT_JINJA_JINJA_PRINT_H
#define SHOAL_TEXT_JINJA_JINJA_PRINT_H

#include "text/jinja/jinja_value.h"

/* What {{ v }} writes. */
SHOAL_MUST_CHECK int jinja_print(struct jinja_run *r, const struct jinja_value *v);
/* What ~ and + put into a string: as {{ v }}, but 1.0 is "1" and a list its items with commas. */
SHOAL_MUST_CHECK int jinja_write_raw(struct jinja_run *r, const struct jinja_value *v);
SHOAL_MUST_CHECK int jinja_raw_text(struct jinja_run *r, const struct jinja_value *v,
                                    struct jinja_str *out);

#endif
