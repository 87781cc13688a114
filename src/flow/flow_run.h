/* flow_run.h - the last stages of a request of any kind (stages.h): where it runs, and running it.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_FLOW_RUN_H
#define SHOAL_FLOW_FLOW_RUN_H

#include "flow/flow.h"

/* STAGE_PLACE: an idempotency key, or a replica on another node (flow_owner.once, .dispatch). */
bool flow_place(struct flow_owner *o, struct request *r, struct sink *s);
/* Runs a request that others have made on behalf of a client's, without the stages before
 * STAGE_PLACE. Events may arrive before this returns; sink->job shows whether it has already
 * ended. */
void flow_run(struct flow_owner *o, struct request *r, struct sink *s);
/* Sets the epoch of a request that fans out into several, unless it has one: all of them carry it,
 * so that all see the same model versions. */
void flow_stamp(struct flow_owner *o, struct request *r);
/* Significant bytes of a model's name: NAME:latest, as Ollama's clients write it, means NAME unless
 * a model has the whole name. */
size_t flow_name_bytes(const struct flow *f, const char *name);
/* Applies that rule to the request's model. */
void flow_resolve_name(const struct flow_owner *o, struct request *r);
/* As flow_run, with the models of this server: in this process, or in separate processes. */
void flow_run_here(struct flow_owner *o, struct request *r, struct sink *s);

#endif
