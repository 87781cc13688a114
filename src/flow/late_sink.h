/* late_sink.h - ends a request at its deadline, whatever it waits for.
 *
 * The parts that work on a request know its deadline and report with the cost of what they did.
 * This is for those that do not answer: a stopped process, a node behind a dead link. They get a
 * moment longer.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_FLOW_LATE_SINK_H
#define SHOAL_FLOW_LATE_SINK_H

#include <stdbool.h>

struct flow_owner;
struct request;
struct sink;

/* STAGE_DEADLINE: takes requests with a deadline. */
bool late_sink_take(struct flow_owner *o, struct request *r, struct sink *s);

#endif
