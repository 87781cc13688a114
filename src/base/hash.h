/* hash.h - 64-bit non-cryptographic hash for tables and cache keys. */
#ifndef SHOAL_BASE_HASH_H
#define SHOAL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_mix(uint64_t x) /* splitmix64's finalizer */
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* n < 8 bytes as a little-endian number.  Uses overlapping loads: compilers turn memcpy of an
 * unknown length into a loop, which dominates the cost for short texts. */
static inline uint64_t hash_tail(const uint8_t *p, size_t n)
{
    if (n >= 4) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        return low | (uint64_t)high << (8 * (n - 4));
    }
    if (n == 0)
        return 0;
    return p[0] | (uint64_t)p[n / 2] << (8 * (n / 2)) | (uint64_t)p[n - 1] << (8 * (n - 1));
}

/* Eight bytes per step; seed chains several ranges into one hash. */
static inline uint64_t hash_bytes(const void *data, size_t n, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t h = hash_mix(seed ^ (0x9e3779b97f4a7c15u * (n + 1)));
    uint64_t w;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&w, p, 8);
        h = hash_mix(h ^ w) + 0x9e3779b97f4a7c15u;
    }
    return hash_mix(h ^ hash_tail(p, n));
}

/* For large ranges: four chains side by side, limited by memory rather than by one chain's latency.
 * The values differ from hash_bytes. */
static inline uint64_t hash_large(const void *data, size_t n, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t h[4] = {seed, seed + 1, seed + 2, seed + 3}, w[4];
    for (; n >= sizeof(w); p += sizeof(w), n -= sizeof(w)) {
        memcpy(w, p, sizeof(w));
        for (int i = 0; i < 4; i++)
            h[i] = hash_mix(h[i] ^ w[i]) + 0x9e3779b97f4a7c15u;
    }
    return hash_bytes(p, n, hash_bytes(h, sizeof(h), seed));
}

/* 16 hex digits and NUL. */
static inline void hash_hex(char out[17], uint64_t h)
{
    for (int i = 15; i >= 0; i--, h >>= 4)
        out[i] = "0123456789abcdef"[h & 15];
    out[16] = '\0';
}

#endif
