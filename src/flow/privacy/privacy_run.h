/* privacy_run.h - personal data in requests: masked, replaced by pseudonyms, or refused, before the
 * request is stored or sent to another node.
 *
 * Every module that stores or runs requests (routing, tool calls, conversations, the semantic
 * cache) checks privacy_wanted first, and if needed passes the request to privacy_run, which
 * returns it without personal data. So every API is covered, and the first caller does the work.
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

/* The policy for the request wherever it runs; NULL: none, or already applied. */
const struct privacy_policy *privacy_wanted(const struct flow_owner *o, struct request *r);
/* The same for a request that is about to leave this server. */
const struct privacy_policy *privacy_wanted_outside(const struct flow_owner *o, struct request *r);

typedef void (*privacy_next)(void *ctx, struct flow_owner *o, struct request *r, struct sink *s);

/* Continues with next, now or later, unless the request is refused. */
void privacy_run(struct flow_owner *o, struct request *r, struct sink *s,
                 const struct privacy_policy *p, privacy_next next, void *ctx);

#endif
