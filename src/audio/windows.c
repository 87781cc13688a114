/* windows.c - see windows.h. */
#include "audio/windows.h"

#define STEP (AUDIO_RATE / 100)       /* 10 ms */
#define PAUSE (AUDIO_RATE / 5 / STEP) /* steps */

static uint64_t energy(const int16_t *x)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < STEP; i++)
        sum += (uint64_t)((int32_t)x[i] * x[i]);
    return sum;
}

uint32_t windows_cut(const int16_t *x, uint32_t n, bool last)
{
    uint64_t recent[PAUSE] = {0}, sum = 0, least = UINT64_MAX;
    uint32_t at = 0;
    if (n <= WINDOWS_MOST)
        return last ? n : 0;
    for (uint32_t i = 0; i < WINDOWS_MOST / 2 / STEP; i++) {
        const uint64_t e = energy(x + WINDOWS_MOST / 2 + i * STEP);
        sum += e - recent[i % PAUSE];
        recent[i % PAUSE] = e;
        if (i + 1 >= PAUSE && sum <= least) {
            least = sum;
            at = i + 1 - PAUSE / 2;
        }
    }
    return WINDOWS_MOST / 2 + at * STEP;
}
