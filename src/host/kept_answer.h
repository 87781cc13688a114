/* kept_answer.h - the encoding of a cached answer, for the prompt cache of this process, another
 * process or another machine.
 *
 * An entry serves every interface, whole or streamed: it holds the end of each choice and then
 * every token as the engine gave it.  All numbers are little-endian, nothing is aligned:
 *
 *   "SKA1"                        magic and version
 *   u32 n_choices                 1 to KEPT_ANSWER_MAX_CHOICES
 *   u32 token_bytes               length of the last part
 *   n_choices times               u32 finish (enum shoal_finish: stop or length),
 *                                 u32 prompt_tokens, u32 generated_tokens,
 *                                 u64 queue_ns, u64 first_token_ns, u64 total_ns
 *   until token_bytes are used    u32 choice, i32 token (-1: text only), f32 logprob,
 *                                 u32 text_bytes, u32 n_top, n_top times (i32 token, f32 logprob),
 *                                 text
 *
 * Thread:    belongs to its caller.
 * Ownership: a struct kept_answer borrows the bytes that it was opened on; a token's text points
 *            into them, its alternatives into the struct kept_answer until the next token.
 * Failure:   SHOAL_EFORMAT for anything but a complete, well-formed entry.
 */
#ifndef SHOAL_HOST_KEPT_ANSWER_H
#define SHOAL_HOST_KEPT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shoal/shoal.h"

struct buf;

#define KEPT_ANSWER_MAX_CHOICES 128u
#define KEPT_ANSWER_MAX_TOP 20u

struct kept_choice { /* how one choice ended */
    enum shoal_finish finish;
    uint32_t prompt_tokens, generated_tokens;
    uint64_t queue_ns, first_token_ns, total_ns; /* of the time when it was computed */
};

struct kept_token {
    uint32_t choice;
    int32_t token; /* -1: text only */
    float logprob;
    const struct shoal_logprob *top; /* the most likely tokens, best first */
    uint32_t n_top;
    const char *text; /* any bytes, not NUL-terminated */
    size_t text_bytes;
    bool echo; /* part of the prompt: never stored */
};

struct kept_answer { /* private */
    uint32_t n_choices;
    const uint8_t *choices;
    const uint8_t *at, *end; /* tokens not returned yet */
    struct shoal_logprob top[KEPT_ANSWER_MAX_TOP];
};

/* Writing: tokens are appended as they arrive (errors are sticky in the buffer), then the entry
 * is assembled. A choice that ended with an error (SHOAL_FINISH_ERROR) is never stored:
 * SHOAL_EINVAL. */
void kept_answer_put_token(struct buf *tokens, const struct kept_token *t);
SHOAL_MUST_CHECK int kept_answer_put(struct buf *out, const struct kept_choice *choices,
                                     uint32_t n_choices, const struct buf *tokens);

/* Reading.  The whole entry is checked here; the calls below cannot fail. */
SHOAL_MUST_CHECK int kept_answer_open(struct kept_answer *a, const void *data, size_t n,
                                      struct err *e);
/* i: below n_choices. */
struct kept_choice kept_answer_choice(const struct kept_answer *a, uint32_t i);
/* The next token; false: that was the last one. */
bool kept_answer_next(struct kept_answer *a, struct kept_token *out);

#endif
