/* aligned.h - which heads of a speech recognizer's cross attention follow the sound: where they
 * look while a token is written says when it was said.
 *
 * Thread: pure. */
#ifndef SHOAL_MODEL_ALIGNED_H
#define SHOAL_MODEL_ALIGNED_H

#include <stdint.h>

#define ALIGNED_MOST 32u

struct aligned_head {
    uint16_t layer, head; /* layer: of the decoder */
};

/* The heads, by layer; at least one.  Those that OpenAI has found for its models, known by their
 * shape; of others the last ones of the upper half of the layers. */
uint32_t aligned_heads(struct aligned_head out[ALIGNED_MOST], const char *arch, uint32_t n_dec,
                       uint32_t n_heads, uint32_t n_vocab);

#endif
