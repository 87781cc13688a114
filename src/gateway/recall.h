/* recall.h - bodies that were read before, and the entry of the prompt cache that they asked for.
 *
 * The same bytes sent to the same route are the same request: whether its answer is there can be
 * asked without parsing it, filling a template and hashing the prompt anew.  Whether the model is
 * still the same and the entry still valid is for the caller to see.
 *
 * Thread:    the loop's: each has a table of its own.
 * Ownership: copies what it keeps; what recall_find gives is valid until the next recall_keep.
 * Failure:   keep may do nothing (no memory, too large), or put another body's place to use. */
#ifndef SHOAL_GATEWAY_RECALL_H
#define SHOAL_GATEWAY_RECALL_H

#include "gateway/generate.h"
#include "host/sha256.h"

struct recall;

struct recalled {
    uint8_t question[SHA256_BYTES]; /* in the prompt cache */
    const struct gen_sink *sink;
    const char *id_prefix;
    struct gen_params p; /* without what the key stands for: stops, biases */
    bool named;          /* the request named the model */
    char model[128];
    uint64_t slot; /* serial of the model's slot: it decides how the model is loaded */
};

SHOAL_MUST_CHECK int recall_create(struct recall **out, struct err *e);
void recall_destroy(struct recall *r);
const struct recalled *recall_find(const struct recall *r, const struct call *c);
void recall_keep(struct recall *r, const struct call *c, const struct recalled *what);

#endif
