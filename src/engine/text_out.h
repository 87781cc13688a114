/* text_out.h - tokens to text that can be shown: whole characters, and nothing that may still turn
 * out to be the beginning of a stop string.
 *
 * Thread:    one at a time.
 * Ownership: init copies the stop strings and reserves the buffer; pushing allocates nothing as
 * long as pieces are as short as the tokenizer says. */
#ifndef SHOAL_ENGINE_TEXT_OUT_H
#define SHOAL_ENGINE_TEXT_OUT_H

#include <stdbool.h>

#include "base/buf.h"
#include "text/tokenizer/tokenizer.h"

#define TEXT_OUT_MAX_STOPS 16u
#define TEXT_OUT_MAX_STOP_BYTES 256u

struct text_out {
    struct tok_stream stream;
    struct buf pending;
    char *stops[TEXT_OUT_MAX_STOPS];
    size_t stop_bytes[TEXT_OUT_MAX_STOPS];
    uint32_t n_stops;
};

SHOAL_MUST_CHECK int text_out_init(struct text_out *o, const struct tokenizer *t, int32_t prev,
                                   unsigned flags, const char *const *stops, uint32_t n_stops,
                                   struct err *e);
void text_out_fini(struct text_out *o);
/* Adds a token.  *show bytes at the front of o->pending may be shown; true: a stop string came, and
 * nothing after *show belongs to the answer. */
bool text_out_push(struct text_out *o, int32_t token, size_t *show);
/* At the end: everything that was held back. */
size_t text_out_flush(struct text_out *o);
/* Takes the shown bytes away. */
void text_out_shown(struct text_out *o, size_t n);

#endif
