/* nearest.c - see nearest.h. */
#include "base/nearest.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Number of edits (insert, delete, replace, swap of neighbours) that turn a into b. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 40 };
    size_t d[MAX + 1][MAX + 1], na = strlen(a), nb = strlen(b);
    if (na > MAX || nb > MAX)
        return MAX;
    for (size_t i = 0; i <= na; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= na; i++)
        for (size_t j = 1; j <= nb; j++) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[na][nb];
}

const char *nearest_word(const char *typed, const char *const *words)
{
    const char *best = NULL;
    size_t best_score = SIZE_MAX, n = strlen(typed);
    for (; *words; words++) {
        /* A word that starts with the typed text is the most likely one. */
        size_t score = n >= 3 && strncmp(typed, *words, n) == 0 ? 0 : distance(typed, *words);
        if (score < best_score) {
            best_score = score;
            best = *words;
        }
    }
    return best_score <= 1 + n / 4 ? best : NULL;
}
