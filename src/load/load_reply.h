/* load_reply.h - reads an answer as it arrives: server-sent events, one JSON object per line, or
 * one JSON text; notes when pieces of the answer came and how many tokens the server counted.
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini over the caller's storage; `text` is the caller's.
 * Failure:   a reply that does not make sense is `bad`; memory that runs out too. */
#ifndef SHOAL_LOAD_LOAD_REPLY_H
#define SHOAL_LOAD_LOAD_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct load_reply {
    struct buf line;            /* the incomplete one */
    struct buf *text;           /* receives the answer's text; NULL: not needed */
    uint32_t n_pieces;          /* events with text, or with a part of a tool call */
    uint32_t n_tokens;          /* as the server counted them; 0: it did not say */
    uint64_t first_ns, last_ns; /* when the first and the last piece came; 0: none did */
    bool whole;                 /* one JSON text: read at the end */
    bool done, bad;
    char error[200]; /* that the server reported within the answer; "": none */
    /* Called for each piece after the first, with the time since the one before. */
    void (*gap)(void *ctx, uint64_t ns);
    void *ctx;
};

void load_reply_init(struct load_reply *r);
void load_reply_fini(struct load_reply *r);
void load_reply_data(struct load_reply *r, const char *p, size_t n, uint64_t now_ns);
/* The answer is complete. */
void load_reply_end(struct load_reply *r, uint64_t now_ns);

#endif
