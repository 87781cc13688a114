/* pipeline_answer.h - the answer of a flow: as a whole, or sent while it is made.
 *
 * Thread:    the owner's.
 * Failure:   told to the sink. */
#ifndef SHOAL_PIPELINE_PIPELINE_ANSWER_H
#define SHOAL_PIPELINE_PIPELINE_ANSWER_H

#include "pipeline/pipeline_live.h"

/* Whether nothing is to be waited for: the output is there, and what acts has ended. */
bool pipeline_answer_is_ready(const struct pipeline_live *x);
/* The last event, from what there is: the output, the flow's fallback, or why there is neither. */
void pipeline_answer(struct pipeline_live *x);
/* Sends what is known of the output up to the text of this step, and then that. */
void pipeline_answer_so_far(struct pipeline_live *x, const struct pipeline_task *t);

#endif
