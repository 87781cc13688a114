/* answer_cache.h - looks up a request in the prompt cache, and stores its answer.
 *
 * host/prompt_key.h says what a question's key covers, host/kept_answer.h how an answer is encoded.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_GENERATE_ANSWER_CACHE_H
#define SHOAL_FLOW_GENERATE_ANSWER_CACHE_H

#include "flow/request.h"
#include "host/prompt_cache.h"

struct buf;
struct registry_model;
struct token_queue_end;

#define ANSWER_CACHE_MAX_BYTES ((size_t)256 << 10) /* longer answers are not kept */

/* Whether cached prefixes and answers of all clients may be used, and are kept for all. */
bool answer_cache_shared(const struct request *r, const struct registry_model *m);
/* False: the answer is not deterministic, or cannot be stored. r: for its memory. */
bool answer_cache_question(uint8_t out[SHA256_BYTES], struct request *r,
                           const struct registry_model *m);
struct prompt_key answer_cache_key(const uint8_t question[SHA256_BYTES],
                                   const struct registry_model *m);
/* ends: how each choice ended; tokens: of kept_answer_put_token. */
void answer_cache_keep(struct prompt_cache *cache, const struct prompt_key *key,
                       const struct token_queue_end *ends, uint32_t n, const struct buf *tokens);

#endif
