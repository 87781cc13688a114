/* whisper_rules.h - how Whisper is asked, and what it may write: the language, the task and the
 * times are tokens, which follow rules; marks that nobody says are never written.
 *
 * Thread:    immutable after create.
 * Ownership: create/destroy; the tokenizer is borrowed for create. */
#ifndef SHOAL_ENGINE_NATIVE_WHISPER_RULES_H
#define SHOAL_ENGINE_NATIVE_WHISPER_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct kern_ops;
struct tokenizer;

#define WHISPER_RULES_LANGUAGES 128u
#define WHISPER_RULES_STEP 0.02 /* seconds from one time to the next */

struct whisper_rules {
    uint32_t n_vocab;
    int32_t end;       /* tokens below it are text */
    int32_t task[2];   /* transcribe, translate; -1: only English */
    int32_t no_speech; /* -1: none */
    int32_t first_time;
    uint32_t n_languages; /* 0: only English */
    int32_t language[WHISPER_RULES_LANGUAGES];
    char name[WHISPER_RULES_LANGUAGES][8];
    uint8_t *never; /* [n_vocab]: 1: never written, 2: not as the first text */
};

/* SHOAL_EFORMAT: the vocabulary is not one of Whisper. */
SHOAL_MUST_CHECK int whisper_rules_create(struct whisper_rules **out, const struct tokenizer *t,
                                          uint32_t n_vocab, struct err *e);
void whisper_rules_destroy(struct whisper_rules *r); /* NULL is fine */

/* wanted: "de", "de>en" (translated into English), ">en", or NULL: as it is heard.  *language: its
 * index, UINT32_MAX: to be heard.  SHOAL_EINVAL: there is no such language, or no translation. */
SHOAL_MUST_CHECK int whisper_rules_asked(const struct whisper_rules *r, const char *wanted,
                                         uint32_t *language, bool *translate, struct err *e);
/* The index of the likeliest language by the logits behind the start token. */
uint32_t whisper_rules_heard(const struct whisper_rules *r, const float *logits);
/* Logits in place: what may not follow the n tokens written so far becomes impossible.  seconds:
 * the length of the sound.  tmp: [n_vocab + 16]. */
void whisper_rules_apply(const struct whisper_rules *r, const struct kern_ops *k, float *logits,
                         const int32_t *tokens, uint32_t n, double seconds, float *tmp);
static inline bool whisper_rules_is_time(const struct whisper_rules *r, int32_t token)
{
    return token >= r->first_time;
}

#endif
