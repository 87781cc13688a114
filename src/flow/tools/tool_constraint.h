/* tool_constraint.h - turns a tool choice into a constraint of the answer, in the model's own
 * format.
 *
 * A call that is required, or of a given tool, is forced: the answer is calls and nothing else.  If
 * the model may choose and a tool is strict, a call that it begins must match the schemas; that
 * holds for formats whose calls begin with a text of their own (Hermes, generic).
 *
 * Thread:    any; no other thread may use the request during the call.
 * Ownership: the request's.
 * Failure:   SHOAL_EINVAL: the request has another constraint, too; or of constraint_parts.h. */
#ifndef SHOAL_FLOW_TOOL_CONSTRAINT_H
#define SHOAL_FLOW_TOOL_CONSTRAINT_H

#include "flow/request.h"

struct shoal_engine;

/* Whether tool_constraint_set would set one. */
bool tool_constraint_needed(const struct request_generate *g);
SHOAL_MUST_CHECK int tool_constraint_set(struct request *r, const struct shoal_engine *en,
                                         struct err *e);

#endif
