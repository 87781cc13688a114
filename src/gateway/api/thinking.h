/* thinking.h - what a model thinks before its answer: the text between <think> and </think> at the
 * beginning.
 *
 * Thread:    plain data.
 * Ownership: pieces are borrowed for the call. */
#ifndef SHOAL_GATEWAY_API_THINKING_H
#define SHOAL_GATEWAY_API_THINKING_H

#include <stdbool.h>
#include <stddef.h>

/* A text as a whole. */
struct thinking_parts {
    const char *thought; /* NULL: there is none */
    size_t thought_bytes;
    size_t answer_at; /* where the answer begins; the length of the text: it has not begun */
    bool open;        /* the thought has not ended */
};
struct thinking_parts thinking_split(const char *text, size_t n);

/* A text that comes in pieces. Zero: its beginning. */
struct thinking {
    enum thinking_state {
        THINKING_UNSURE,
        THINKING_BEGUN, /* spaces may follow */
        THINKING_ON,
        THINKING_OVER, /* spaces may follow */
        THINKING_OFF
    } state;
    char held[16]; /* may be part of a tag */
    size_t n_held;
};
typedef void (*thinking_fn)(void *ctx, bool thought, const char *text, size_t n);
/* Calls fn with what the piece adds to the thought or to the answer. */
void thinking_push(struct thinking *t, const char *text, size_t n, thinking_fn fn, void *ctx);
/* A thinking_fn that appends to two buffers: ctx[0] gets the answer, ctx[1] the thought. */
struct buf;
void thinking_gather(void *ctx, bool thought, const char *text, size_t n);
/* The text has ended: what was held back follows. */
void thinking_end(struct thinking *t, thinking_fn fn, void *ctx);

#endif
