/* constraint_parts.h - sets a request's constraint to parts: JSON values of given schemas with
 * fixed texts around them, such as tool calls. src/text/grammar/README.md defines what they match.
 *
 * Thread:    belongs to its caller.
 * Ownership: texts are copied into the request.
 * Failure:   SHOAL_EINVAL: a schema is too large; SHOAL_ENOMEM. The content of a schema is checked
 * when the model is known. */
#ifndef SHOAL_FLOW_CONSTRAINT_PARTS_H
#define SHOAL_FLOW_CONSTRAINT_PARTS_H

#include "flow/request.h"

struct constraint_part {
    const char *begin;       /* in front of the value; NULL: nothing */
    struct value schema;     /* a map */
    const char *end;         /* after it; NULL: nothing */
    const char *begin_token; /* a control token in front of begin, by its spelling; NULL: none */
};

struct constraint_parts {
    const struct constraint_part *list; /* each part of the answer is one of these */
    uint32_t n;
    uint32_t min, max;  /* number of parts; 0, 0: one */
    const char *before; /* in front of all of them; the texts may be NULL */
    const char *between, *after, *before_token;
    const char *trailing; /* optional text at the very end */
    const char *trigger;  /* NULL: the parts are required; otherwise they must follow this text, if
                             it is generated */
};

SHOAL_MUST_CHECK int constraint_parts_set(struct request *r, const struct constraint_parts *p,
                                          struct err *e);

#endif
