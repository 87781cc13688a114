/* dice.h - random steps that can be taken again: SHOAL_SEED=N in the environment chooses others. */
#ifndef SHOAL_TESTS_DICE_H
#define SHOAL_TESTS_DICE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t dice_state;

/* Prints the seed, which a failure needs. */
static inline void dice_seed(uint64_t usual)
{
    const char *given = getenv("SHOAL_SEED");
    dice_state = given ? strtoull(given, NULL, 10) : usual;
    printf("SHOAL_SEED=%llu\n", (unsigned long long)dice_state);
}

/* 0 to n - 1. */
static inline uint32_t dice_below(uint32_t n)
{
    dice_state = dice_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((dice_state >> 33) % n);
}

#endif
