/* run.h - runs a request of any kind.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_RUN_H
#define SHOAL_FLOW_RUN_H

#include "flow/flow.h"

/* Takes the request and answers it where it is answered best (flow/dispatch.h).  Events may come
 * before this returns; sink->job tells whether it has ended already. */
void flow_run(struct flow_owner *o, struct request *r, struct sink *s);
/* Gives a request that becomes several its epoch, unless it has one: all of them carry it, so that
 * none sees a model of another version than the others. */
void flow_stamp(struct flow_owner *o, struct request *r);
/* How many bytes of a model's name count: NAME:latest, as Ollama's clients write it, is NAME unless
 * a model of this server has the whole name. */
size_t flow_name_bytes(const struct flow *f, const char *name);
/* The request's model by that rule. */
void flow_resolve_name(const struct flow_owner *o, struct request *r);
/* As flow_run, with the models of this server: in this process, or in a process of their own. */
void flow_run_here(struct flow_owner *o, struct request *r, struct sink *s);

#endif
