/* trace_words.h - keys of the notes of spans, in one place: OpenTelemetry's conventions for
 * generative models still change. */
#ifndef SHOAL_TRACE_TRACE_WORDS_H
#define SHOAL_TRACE_TRACE_WORDS_H

#define TRACE_METHOD "http.request.method"
#define TRACE_PATH "http.route"
#define TRACE_STATUS "http.response.status_code"
#define TRACE_BYTES "http.response.body.size"
#define TRACE_MODEL "gen_ai.response.model"
#define TRACE_INPUT_TOKENS "gen_ai.usage.input_tokens"
#define TRACE_MICROJOULES "shoal.energy.microjoules"
#define TRACE_ENERGY "shoal.energy"
#define TRACE_OUTPUT_TOKENS "gen_ai.usage.output_tokens"
#define TRACE_CACHED_TOKENS "gen_ai.usage.cache_read.input_tokens"
#define TRACE_NODE "server.address"
#define TRACE_REQUEST "shoal.request.id"
#define TRACE_CLIENT_KEY "shoal.key.name"
#define TRACE_CACHE "shoal.cache"
#define TRACE_ROUTE "shoal.route"
#define TRACE_BATCH "shoal.batch"
#define TRACE_STEP_KIND "shoal.step.kind"
#define TRACE_ATTEMPT "shoal.attempt"
#define TRACE_PROMPT_NODE "shoal.prompt_node"     /* which has computed most of the prompt */
#define TRACE_GIVEN_TOKENS "shoal.resumed_tokens" /* that the client had from another node */

#endif
