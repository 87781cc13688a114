/* shard_q8.c - see shard_q8.h. */
#include "cluster/shard/shard_q8.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"

/* The scale of n values; NaN if one of them is not finite. */
static float scale_of(const float *x, uint32_t n)
{
    float most = 0.0f, sum = 0.0f; /* sum stays 0 unless a value is not finite */
    for (uint32_t i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        most = size > most ? size : most;
        sum += x[i] * 0.0f;
    }
    return sum == 0.0f ? most / 127.0f : NAN;
}

void shard_q8_put(struct buf *out, const float *x, uint32_t n_cols)
{
    for (uint32_t at = 0; at < n_cols; at += SHARD_Q8_BLOCK) {
        const uint32_t n = n_cols - at < SHARD_Q8_BLOCK ? n_cols - at : SHARD_Q8_BLOCK;
        const float scale = scale_of(x + at, n);
        int8_t q[SHARD_Q8_BLOCK] = {0};
        for (uint32_t i = 0; scale > 0.0f && i < n; i++) {
            const float v = nearbyintf(x[at + i] / scale); /* a tiny scale may round up */
            q[i] = (int8_t)(v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v);
        }
        buf_put(out, &scale, sizeof(scale));
        buf_put(out, q, sizeof(q));
    }
}

void shard_q8_get(float *x, const uint8_t *bytes, uint32_t n_cols)
{
    for (uint32_t at = 0; at < n_cols; at += SHARD_Q8_BLOCK, bytes += SHARD_Q8_BYTES) {
        const uint32_t n = n_cols - at < SHARD_Q8_BLOCK ? n_cols - at : SHARD_Q8_BLOCK;
        float scale;
        memcpy(&scale, bytes, sizeof(scale));
        for (uint32_t i = 0; i < n; i++)
            x[at + i] = scale * (float)(int8_t)bytes[sizeof(scale) + i];
    }
}
