/* aligned.c - see aligned.h; tools/make_word_refs.py compares the table with OpenAI's. */
#include "model/aligned.h"

#include <stddef.h>
#include <string.h>

#define ENGLISH_VOCAB 51864u
#define THIRD_VOCAB 51866u /* of large-v3 and what was made of it */

struct known {
    uint32_t n_dec, n_heads, n_vocab; /* n_vocab 0: any other */
    struct aligned_head heads[24];
    uint32_t n;
};

static const struct known known[] = {
    /* tiny, base, small, medium, each in English only first */
    {4, 6, ENGLISH_VOCAB, {{1, 0}, {2, 0}, {2, 5}, {3, 0}, {3, 1}, {3, 2}, {3, 3}, {3, 4}}, 8},
    {4, 6, 0, {{2, 2}, {3, 0}, {3, 2}, {3, 3}, {3, 4}, {3, 5}}, 6},
    {6, 8, ENGLISH_VOCAB, {{3, 3}, {4, 7}, {5, 1}, {5, 5}, {5, 7}}, 5},
    {6, 8, 0, {{3, 1}, {4, 2}, {4, 3}, {4, 7}, {5, 1}, {5, 2}, {5, 4}, {5, 6}}, 8},
    {12,
     12,
     ENGLISH_VOCAB,
     {{6, 6},
      {7, 0},
      {7, 3},
      {7, 8},
      {8, 2},
      {8, 5},
      {8, 7},
      {9, 0},
      {9, 4},
      {9, 8},
      {9, 10},
      {10, 0},
      {10, 1},
      {10, 2},
      {10, 3},
      {10, 6},
      {10, 11},
      {11, 2},
      {11, 4}},
     19},
    {12,
     12,
     0,
     {{5, 3}, {5, 9}, {8, 0}, {8, 4}, {8, 7}, {8, 8}, {9, 0}, {9, 7}, {9, 9}, {10, 5}},
     10},
    {24,
     16,
     ENGLISH_VOCAB,
     {{11, 4},
      {14, 1},
      {14, 12},
      {14, 14},
      {15, 4},
      {16, 0},
      {16, 4},
      {16, 9},
      {17, 12},
      {17, 14},
      {18, 7},
      {18, 10},
      {18, 15},
      {20, 0},
      {20, 3},
      {20, 9},
      {20, 14},
      {21, 12}},
     18},
    {24, 16, 0, {{13, 15}, {15, 4}, {15, 15}, {16, 1}, {20, 0}, {23, 4}}, 6},
    /* large-v3, its turbo, large-v2 */
    {32,
     20,
     THIRD_VOCAB,
     {{7, 0}, {10, 17}, {12, 18}, {13, 12}, {16, 1}, {17, 14}, {19, 11}, {21, 4}, {24, 1}, {25, 6}},
     10},
    {4, 20, THIRD_VOCAB, {{2, 4}, {2, 11}, {3, 3}, {3, 6}, {3, 11}, {3, 14}}, 6},
    {32,
     20,
     0,
     {{10, 12}, {13, 17}, {16, 11}, {16, 12}, {16, 13}, {17, 15}, {17, 16}, {18, 4},
      {18, 11}, {18, 19}, {19, 11}, {21, 2},  {21, 3},  {22, 3},  {22, 9},  {22, 12},
      {23, 5},  {23, 7},  {23, 13}, {25, 5},  {26, 1},  {26, 12}, {27, 15}},
     23},
};

static const struct known *find(uint32_t n_dec, uint32_t n_heads, uint32_t n_vocab)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct known *k = &known[i];
        if (k->n_dec == n_dec && k->n_heads == n_heads &&
            (k->n_vocab == 0 || k->n_vocab == n_vocab))
            return k;
    }
    return NULL;
}

uint32_t aligned_heads(struct aligned_head out[ALIGNED_MOST], const char *arch, uint32_t n_dec,
                       uint32_t n_heads, uint32_t n_vocab)
{
    const struct known *k = strcmp(arch, "whisper") == 0 ? find(n_dec, n_heads, n_vocab) : NULL;
    if (k) {
        memcpy(out, k->heads, k->n * sizeof(*out));
        return k->n;
    }
    const uint32_t all = (n_dec - n_dec / 2) * n_heads;
    const uint32_t n = all < ALIGNED_MOST ? all : ALIGNED_MOST;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = n_dec * n_heads - n + i;
        out[i] = (struct aligned_head){(uint16_t)(at / n_heads), (uint16_t)(at % n_heads)};
    }
    return n;
}
