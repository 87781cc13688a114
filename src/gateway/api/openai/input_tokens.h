/* input_tokens.h - counts the tokens of a conversation: OpenAI's /v1/responses/input_tokens, and
 * the chat variant of llama.cpp's server.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_INPUT_TOKENS_H
#define SHOAL_GATEWAY_API_INPUT_TOKENS_H

struct call;

/* Handlers: bodies as those of /v1/chat/completions and /v1/responses. */
void input_tokens_chat(struct call *c);
void input_tokens_responses(struct call *c);

#endif
