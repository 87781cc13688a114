/* go_template.h - translates a chat template of Ollama, which is one of Go, to Jinja.
 *
 * Understood are templates of one turn: .System, .Prompt and .Response, with if, else and end over
 * them.  A conversation is such a turn for each answer, and the beginning of one for the next.
 *
 * Thread:    pure.
 * Failure:   SHOAL_EUNSUPPORTED names the action that is not understood; SHOAL_EINVAL: it is no
 *            template. */
#ifndef SHOAL_GATEWAY_API_GO_TEMPLATE_H
#define SHOAL_GATEWAY_API_GO_TEMPLATE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Whether a text is a template of Go rather than Jinja. */
bool go_template_is(const char *text);
/* Appends the Jinja template. */
SHOAL_MUST_CHECK int go_template_translate(struct buf *out, const char *text, struct err *e);

#endif
