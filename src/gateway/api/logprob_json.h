/* logprob_json.h - log-probabilities of tokens as JSON, in the form that OpenAI's chat, its
 * responses and Ollama share.
 *
 * Thread: no state. */
#ifndef SHOAL_GATEWAY_API_LOGPROB_JSON_H
#define SHOAL_GATEWAY_API_LOGPROB_JSON_H

struct answer_choice;
struct json_out;
struct sink_token;

/* A number; minus infinity, which JSON does not have, is -9999. */
void logprob_json_number(struct json_out *j, float logprob);
/* An object: the token, then its most likely alternatives. t->logprobs must be set. */
void logprob_json(struct json_out *j, const struct sink_token *t);
/* A list of them: those that were gathered for the choice. */
void logprob_json_list(struct json_out *j, struct answer_choice *ch);

#endif
