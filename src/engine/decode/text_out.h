/* text_out.h - turns tokens into text that may be sent: whole characters only, and nothing that may
 * still become a stop string.
 *
 * Thread:    one at a time.
 * Ownership: init copies the stop strings and reserves the buffer; pushing allocates nothing as
 *            long as pieces do not exceed the tokenizer's maximum. */
#ifndef SHOAL_ENGINE_DECODE_TEXT_OUT_H
#define SHOAL_ENGINE_DECODE_TEXT_OUT_H

#include <stdbool.h>

#include "base/buf.h"
#include "text/tokenizer/tokenizer.h"

#define TEXT_OUT_MAX_STOPS 256u
#define TEXT_OUT_MAX_STOP_BYTES 256u

struct text_out_stop {
    char *text;
    size_t bytes;
};

struct text_out {
    struct tok_stream stream;
    struct buf pending;
    struct text_out_stop *stops;
    uint32_t n_stops;
    uint32_t stopped_by; /* which stop string was reached */
};

SHOAL_MUST_CHECK int text_out_init(struct text_out *o, const struct tokenizer *t, int32_t prev,
                                   unsigned flags, const char *const *stops, uint32_t n_stops,
                                   struct err *e);
void text_out_fini(struct text_out *o);
/* Adds a token. The first *show bytes of o->pending may be sent. true: a stop string was reached,
 * and the answer ends at *show. */
bool text_out_push(struct text_out *o, int32_t token, size_t *show);
/* At the end of the text: all held-back bytes may be sent. */
size_t text_out_flush(struct text_out *o);
/* Removes the bytes that were sent. */
void text_out_shown(struct text_out *o, size_t n);

#endif
