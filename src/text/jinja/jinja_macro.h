/* jinja_macro.h - which surplus arguments a macro or call block takes.
 *
 * Thread:    no state; called while the template is parsed.
 * Failure:   none. */
#ifndef SHOAL_TEXT_JINJA_JINJA_MACRO_H
#define SHOAL_TEXT_JINJA_JINJA_MACRO_H

struct jinja_node;

/* Sets uses_kwargs and uses_varargs of a MACRO or CALLBLOCK node from its body. */
void jinja_macro_mark(struct jinja_node *macro, const struct jinja_node *parameters);

#endif
