/* meter.h - counts the tokens of a client's request: a sink in front of the codec's.
 *
 * It counts tokens of prompts and answers like `usage`, also when the answer is cached, fails or
 * loses its client. The work of a node or worker for a disconnected client is unknown: then the
 * received tokens are counted, and a fourth of the body's bytes as the prompt.
 *
 * Thread:    the loop's.
 * Ownership: belongs to a call; the request of the sink keeps it alive until `closed`. */
#ifndef SHOAL_GATEWAY_CALL_METER_H
#define SHOAL_GATEWAY_CALL_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/sink_front.h"

struct admission;
struct admission_client;

struct meter {
    struct sink_front front; /* first; before the codec's */
    struct admission *admission;
    struct admission_client *client;
    uint32_t n_each; /* answers to each prompt: they share its tokens */
    uint32_t prompt_guess;
    bool failed;
    bool reads_only;   /* tokens that pass are those of a prompt */
    uint64_t n_tokens; /* tokens received */
    uint64_t prompt_tokens, generated_tokens;
};

/* Events to m->front are counted and passed on to s. */
void meter_init(struct meter *m, struct sink *s, struct admission *a, struct admission_client *c,
                uint32_t prompt_guess);

#endif
