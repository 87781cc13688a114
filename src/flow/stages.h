/* stages.h - what happens to every request, in one table.
 *
 * A stage takes a request or leaves it to the next one. A stage that took it may change it, put a
 * sink in front of the client's (sink_front.h) to see the events come back, and pass it on now or
 * later with request_pass_on; or it answers itself. Codecs name no stage: every API has all of
 * them, and a new stage is one row.
 *
 * Thread:    the owner's.
 * Ownership: as flow_run. */
#ifndef SHOAL_FLOW_STAGES_H
#define SHOAL_FLOW_STAGES_H

#include "flow/flow.h"
#include "flow/stage.h"

/* Takes the request through all stages. Events may arrive before this returns; sink->job shows
 * whether it has already ended. With request.explain, s->stages tells which stages took it. */
void stages_run(struct flow_owner *o, struct request *r, struct sink *s);

const char *stages_name(enum stage i);
/* How long the request was in the stage, until now_ns if it still is; 0: it was not. */
uint64_t stages_time(const struct stage_log *log, enum stage i, uint64_t now_ns);

#endif
