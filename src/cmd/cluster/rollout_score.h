/* rollout_score.h - scores both versions of a model on a file of labelled inputs, through a
 * gateway.
 *
 * A line is a JSON object: {"input": "...", "label": "..."} for a classifier, {"prompt": "...",
 * "answer": "..."} for a generator, whose text must begin with the answer.
 *
 * Thread:    the main thread; blocks.
 * Failure:   CMD_OK, or an exit code after a message. */
#ifndef SHOAL_CMD_CLUSTER_ROLLOUT_SCORE_H
#define SHOAL_CMD_CLUSTER_ROLLOUT_SCORE_H

#include <stdint.h>

struct desired_rollout;
struct opts;

/* Whether the file of --labels can be used. */
int rollout_score_check(const struct opts *o);
/* Right answers of 1000, of the old and of the new version. */
int rollout_score(const struct opts *o, const struct desired_rollout *r, uint32_t *from,
                  uint32_t *to);

#endif
