/* load_trace.h - recorded traffic: one JSON object per line, {"at_ms": 120, "kind": "chat",
 * "model": "reply", "prompt": "hello", "max_tokens": 32}.  Traces that hold lengths in place of
 * texts are read too ("timestamp" in ms, "input_length", "output_length"); other keys are ignored.
 *
 * Thread:    immutable after reading.
 * Ownership: read/fini over the caller's storage.
 * Failure:   SHOAL_EFORMAT with the line, SHOAL_ELIMIT, SHOAL_ENOMEM; then nothing needs fini. */
#ifndef SHOAL_LOAD_LOAD_TRACE_H
#define SHOAL_LOAD_LOAD_TRACE_H

#include "load/load_mix.h"

struct load_trace_row {
    uint64_t at_ns;
    uint32_t part;       /* of the mix */
    uint32_t max_tokens; /* 0: the run's default */
    uint32_t n_words;    /* of a made-up prompt, if there is no text */
    char *prompt;        /* NULL: made up */
};

struct load_trace {
    struct load_trace_row *rows; /* by time; the first is at 0 */
    size_t n;
};

#define LOAD_TRACE_MAX_ROWS 1000000u

/* Kinds and models of the lines are added to the mix. */
SHOAL_MUST_CHECK int load_trace_read(struct load_trace *t, struct load_mix *m, const char *bytes,
                                     size_t n, struct err *e);
void load_trace_fini(struct load_trace *t);

#endif
