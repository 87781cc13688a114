/* pipeline_reserve.h - how much of a flow's time the steps after a running one will need.
 *
 * One slow step, such as a call to another system, must not use up the time of the model that
 * answers after it. Every step therefore ends early enough for the longest chain of steps that
 * waits for it, and for the step that would take its place. What a model needs comes from its cost
 * model, as for routing; one that was not measured counts as a small one. Calls and steps without a
 * model need nothing: nobody can know how long another system takes, and `timeout` says it.
 *
 * Thread: the owner's. */
#ifndef SHOAL_PIPELINE_PIPELINE_RESERVE_H
#define SHOAL_PIPELINE_PIPELINE_RESERVE_H

#include "pipeline/pipeline_live.h"

/* ns that the steps after this one will need. */
uint64_t pipeline_reserve_ns(const struct pipeline_live *x, uint32_t step);

#endif
