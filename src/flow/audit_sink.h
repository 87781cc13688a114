/* audit_sink.h - the audit log of requests (supply/audit_log.h): a line for each when it ends.
 *
 * It is the first stage, so that it sees what the client sent and gets: the hashes are those of its
 * texts.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_FLOW_AUDIT_SINK_H
#define SHOAL_FLOW_AUDIT_SINK_H

#include <stdbool.h>

struct flow_owner;
struct request;
struct sink;

/* STAGE_AUDIT: takes all requests, if there is a log; refuses them if it cannot be written and the
 * policy is to stop. */
bool audit_sink_take(struct flow_owner *o, struct request *r, struct sink *s);

#endif
