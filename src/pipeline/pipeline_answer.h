/* pipeline_answer.h - the answer of a flow: complete, or streamed.
 *
 * Thread:    the owner's.
 * Failure:   told to the sink. */
#ifndef SHOAL_PIPELINE_PIPELINE_ANSWER_H
#define SHOAL_PIPELINE_PIPELINE_ANSWER_H

#include "pipeline/pipeline_live.h"

/* Whether nothing needs to be waited for: the output is complete, and steps with side effects have
 * ended. */
bool pipeline_answer_is_ready(const struct pipeline_live *x);
/* Sends the last event: the output, the flow's fallback, or the reason why there is neither. */
void pipeline_answer(struct pipeline_live *x);
/* Sends the known output before the text of this step, then that text. */
void pipeline_answer_so_far(struct pipeline_live *x, const struct pipeline_task *t);

#endif
