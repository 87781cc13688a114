/* jinja_symbols.h - which scope of a template each variable belongs to.
 *
 * Jinja decides this before a template runs: a name that is set anywhere in a scope is a variable
 * of that scope from its beginning. This fills the frames of all nodes that open a scope, and the
 * uses_* of macros.
 *
 * Thread:    no state.
 * Ownership: frames live in the arena.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT. */
#ifndef SHOAL_TEXT_JINJA_PARSE_JINJA_SYMBOLS_H
#define SHOAL_TEXT_JINJA_PARSE_JINJA_SYMBOLS_H

#include <stddef.h>

#include "base/err.h"
#include "text/jinja/parse/jinja_node.h"

struct arena;

/* names: the names of the template by their ids. */
SHOAL_MUST_CHECK int jinja_symbols_resolve(struct jinja_frame *root, struct jinja_node *body,
                                           const struct jinja_str *names, size_t n_names,
                                           struct arena *a, struct err *e);

#endif
