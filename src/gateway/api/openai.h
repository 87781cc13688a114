/* openai.h - what the handlers of OpenAI's interface share. */
#ifndef SHOAL_GATEWAY_API_OPENAI_H
#define SHOAL_GATEWAY_API_OPENAI_H

#include "gateway/generate.h"

/* Bodies of /v1/chat/completions and /v1/completions; what is not given keeps its default. */
struct openai_body {
    const char *model;
    const cJSON *messages, *prompt, *stop, *logit_bias, *logprobs, *stream_options,
        *response_format, *template_vars;
    bool stream, echo, ignore_eos;
    int64_t max_tokens, max_completion_tokens, n, best_of, seed, top_logprobs, top_k, priority;
    double temperature, top_p, min_p, presence_penalty, frequency_penalty, repeat_penalty,
        latency_budget_ms;
};

extern const struct field openai_chat_fields[], openai_completion_fields[];
extern const size_t openai_n_chat_fields, openai_n_completion_fields;

void openai_chat(struct call *c);
void openai_completions(struct call *c);

extern const struct gen_sink openai_chat_sink, openai_chat_stream_sink, openai_text_sink,
    openai_text_stream_sink;

/* Messages (an array of {"role","content"}) checked and written as the value of "messages" of a
 * template's context.  param: how errors name it. */
SHOAL_MUST_CHECK int openai_put_messages(struct buf *b, const cJSON *messages, bool lenient,
                                         struct fields_error *e);
SHOAL_MUST_CHECK int openai_read_stop(struct gen_params *p, const cJSON *stop,
                                      struct fields_error *e);

#endif
