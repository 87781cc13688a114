/* prompt_key.h - the key of a question in the prompt cache.
 *
 * Two nodes compute the same key for the same question: a SHA-256 over every field that the answer
 * depends on, each encoded on its own (little-endian, lengths in front), never over the bytes of a
 * struct. The model is the other half of the key, so that entries can be dropped or renamed by
 * model.
 *
 * Thread:    any.
 * Failure:   false: no key, so nothing is looked up or stored. */
#ifndef SHOAL_HOST_PROMPT_KEY_H
#define SHOAL_HOST_PROMPT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/sha256.h"
#include "shoal/shoal.h"

struct prompt_key {
    uint8_t model[SHA256_BYTES];    /* identity, see registry_identity() */
    uint8_t question[SHA256_BYTES]; /* of prompt_key_question() */
};

enum prompt_kind { /* what the prompt's bytes are; the values are part of the key */
                   PROMPT_KIND_CHAT = 1,   /* a conversation, encoded by answer_cache.c */
                   PROMPT_KIND_TEXT = 2,   /* text to tokenize */
                   PROMPT_KIND_TOKENS = 3, /* token ids */
};

struct prompt_question { /* all zero: nothing asked */
    enum prompt_kind kind;
    const char *text; /* CHAT and TEXT: of all prompts, one after the other */
    size_t text_bytes;
    const int32_t *tokens; /* TOKENS: the same */
    size_t n_tokens;
    const size_t *ends; /* of several prompts: where each ends; or NULL */
    const char *more;   /* the rest of the question, encoded by answer_cache.c */
    size_t more_bytes;
    uint32_t n_prompts, n_choices;
    uint32_t max_tokens;
    struct shoal_sampling sampling; /* with its biases */
    const char *const *stop;
    uint32_t n_stop;
    bool ignore_end, special, parse_special;
    enum shoal_constraint constraint;
    const char *constraint_text;
    size_t constraint_bytes;
    uint64_t scope; /* only questions of the same scope are the same; 0: of all clients */
    /* Load options of the model that affect answers. */
    uint32_t n_ctx;
    bool int8, kv_q8;
};

SHOAL_MUST_CHECK bool prompt_key_question(uint8_t out[SHA256_BYTES],
                                          const struct prompt_question *q);
/* Only a deterministic answer may be cached: no randomness, or a given seed. */
bool prompt_key_repeats(const struct shoal_sampling *s, bool has_seed);

#endif
