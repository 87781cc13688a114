/* generate.h - the life of a generation: wait for the model, look in the prompt cache, prepare the
 * prompt, check the deadline, submit one task per choice, deliver the events to the sink.
 *
 * Thread:    the owner's. */
#ifndef SHOAL_FLOW_GENERATE_GENERATE_H
#define SHOAL_FLOW_GENERATE_GENERATE_H

#include "flow/flow.h"
#include "host/sha256.h"

/* Takes the request, of kind REQUEST_GENERATE. Events may arrive before this returns; sink->job
 * shows whether it has already ended. */
void generate_run(struct flow_owner *o, struct request *r, struct sink *s);

/* Identifies an answer in the prompt cache, so that it can be replayed. */
struct generate_memo {
    uint8_t question[SHA256_BYTES];
    bool named; /* the request named its model */
    bool logprobs;
    uint32_t n_prompts, n; /* n: answers to each */
    char model[128];
    uint64_t slot; /* serial of the model's slot: it identifies the load options */
};

/* Replays the cached answer to the sink; all events are delivered before this returns. False: the
 * answer was evicted or the model has changed, and there was no event. */
bool generate_replay(struct flow_owner *o, const struct generate_memo *memo, struct sink *s);

#endif
