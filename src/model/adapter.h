/* adapter.h - a LoRA adapter beside its base: what it adds to the products of a decoder, for those
 * tokens of a pass that ask for it.
 *
 * The base is computed once for all tokens; then each group of tokens with the same adapter gets
 * scale * B A x added.  The sums have the order of the kernels' products (kern.h), so a token's
 * result does not depend on the others of its batch, the kernel set or the threads.
 *
 * Thread:    immutable once made (adapter_make.h); any thread may apply it.
 * Ownership: whoever made it destroys it, when no pass can read it any more. */
#ifndef SHOAL_MODEL_ADAPTER_H
#define SHOAL_MODEL_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

struct adapter;

#define ADAPTER_MAX_RANK 256u
#define ADAPTER_TOKENS 16u /* at most, of one call of adapter_apply */

/* Where a layer's products can be adapted: those with the same input are one place. */
enum adapter_place {
    ADAPTER_IN, /* queries, keys and values, or what a recurrent block begins with */
    ADAPTER_OUT,
    ADAPTER_FFN, /* gate and up */
    ADAPTER_DOWN,
    ADAPTER_PLACES
};

void adapter_destroy(struct adapter *a); /* NULL is fine */
size_t adapter_bytes(const struct adapter *a);
/* Bit p: it changes place p of some layer. */
unsigned adapter_places(const struct adapter *a);

struct adapter_rows { /* of n tokens, ADAPTER_TOKENS at most */
    const float *x;   /* [n][x_ld]: the input */
    size_t x_ld;
    float *out[2]; /* [n][ld]: results of the base; [1] is only of ADAPTER_FFN: up */
    size_t ld;
    uint32_t n;
};
void adapter_apply(const struct adapter *a, uint32_t layer, enum adapter_place place, float scale,
                   const struct adapter_rows *rows);

#endif
