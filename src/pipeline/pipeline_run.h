/* pipeline_run.h - runs flows of the configuration: steps in parallel where possible, all under one
 * deadline.
 *
 * A request whose model is the name of a flow is taken (flow_owner.flows); its answer is the text
 * of the flow's output, as one token event, or, if the client streams, with the tokens of the step
 * that writes it. `done` has a report of the steps (pipeline_report.h). Steps that take too long,
 * or fail, are replaced by their fallbacks; the answer is then marked degraded. It is sent shortly
 * before the deadline, whatever the steps do.
 *
 * Thread:    the owner's.
 * Ownership: the site is the caller's; graphs are held while they run.
 * Failure:   typed, to the sink: a step failed and nothing can take its place. */
#ifndef SHOAL_PIPELINE_PIPELINE_RUN_H
#define SHOAL_PIPELINE_PIPELINE_RUN_H

#include "flow/dispatch.h"
#include "flow/flow.h"
#include "pipeline/graph/graph.h"

#define PIPELINE_MAX_ITEMS 64u /* of a map */
#define PIPELINE_MAX_DEPTH 4u  /* nesting of flows that call flows */

struct collections;
struct pipeline_outside;

/* The environment of one owner's flows. */
struct pipeline_site {
    struct dispatch dispatch;    /* first */
    struct graph *const *graphs; /* changed by reloads, together with n */
    uint32_t n;
    struct collections *collections;  /* NULL: there are none */
    struct pipeline_outside *outside; /* NULL: calls fail */
};

void pipeline_site_init(struct pipeline_site *s, struct collections *c, struct pipeline_outside *o);

#endif
