/* grammar.h - compiles a constraint on texts from one of several notations.
 *
 * Thread:    pure; the result is immutable.
 * Ownership: compile gives the network to the caller (grammar_net_destroy).
 * Failure:   SHOAL_EINVAL: the text is wrong, and the message says where.  SHOAL_EUNSUPPORTED names
 *            what cannot be enforced.  SHOAL_ELIMIT: too large. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_H

#include <stddef.h>

#include "base/err.h"
#include "shoal/shoal.h"

struct grammar_net;

#define GRAMMAR_MAX_TEXT ((size_t)8 << 20)

/* kind and text as shoal_task.h describes them. */
SHOAL_MUST_CHECK int grammar_compile(struct grammar_net **out, enum shoal_constraint kind,
                                     const char *text, size_t n, struct err *e);

#endif
