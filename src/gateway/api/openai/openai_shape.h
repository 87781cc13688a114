/* openai_shape.h - the format of an answer in OpenAI's interface. */
#ifndef SHOAL_GATEWAY_API_OPENAI_SHAPE_H
#define SHOAL_GATEWAY_API_OPENAI_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

struct openai_shape {
    bool chat; /* otherwise a text completion */
    bool stream, include_usage, logprobs;
    bool keeps_thoughts;   /* a thought stays in the text of the answer */
    bool replace;          /* streams: the client discards what a marked event declares void */
    bool tools;            /* the answer may contain tool calls */
    bool functions;        /* the client wants `function_call`, the older form of a call */
    bool progress;         /* streams: report prefill progress */
    bool named;            /* the request names its model */
    uint32_t n_prompts, n; /* n: answers to each prompt */
    uint32_t n_best;       /* number of likeliest answers to return; 0: all */
};

#endif
