/* privacy_run.h - personal data in requests: masked, replaced by pseudonyms, or refused, before the
 * request is stored or sent to another node.
 *
 * It is the first stage (stages.h), so nothing behind it stores or runs a request with personal
 * data; and, for policies that apply outside only, the stage before a request leaves this server.
 *
 * Thread:    the owner's.
 * Ownership: as flow_run.  What is made lives in the arena of the request.
 * Failure:   fails the request: refused (the message names kinds, never values), too many values,
 *            tokens instead of text, the tagger is not available. */
#ifndef SHOAL_FLOW_PRIVACY_RUN_H
#define SHOAL_FLOW_PRIVACY_RUN_H

#include "flow/flow.h"
#include "privacy/privacy_policy.h"
#include "router/router.h"

/* The policy for the request, here or where it leaves this server; NULL: none, or already applied.
 */
const struct privacy_policy *privacy_policy_of(const struct flow_owner *o, struct request *r);
/* STAGE_PRIVACY. */
bool privacy_take(struct flow_owner *o, struct request *r, struct sink *s);
/* STAGE_LEAVE: applies request.leaving. */
bool privacy_take_leaving(struct flow_owner *o, struct request *r, struct sink *s);

#endif
