/* draft.c - see draft.h. */
#include "engine/decode/draft.h"

#include <string.h>

#define SHORTEST 3u     /* tokens that must repeat */
#define LONG 6u         /* a repetition of this many is a long one */
#define FARTHEST 8192u  /* tokens back */
#define FIRST_HIT 0.6f  /* before anything is known */
#define LEARN 0.2f      /* weight of a new observation of hits */
#define COST_LEARN 0.15 /* and of costs */
#define ROW_GUESS 0.2   /* of the time of a step, for another row, before it is known */
#define WORTH 1.08      /* the least gain for which a guess is made */
#define RETRY 48u       /* steps after which a guess is tried again */

/* Tokens before `at` that equal those at the end. */
static uint32_t repeated(const int32_t *tokens, uint32_t n, uint32_t at)
{
    uint32_t len = 0;
    while (len < at && len < LONG && tokens[at - 1 - len] == tokens[n - 1 - len])
        len++;
    return len;
}

/* The place after the longest repetition of the end, the last among equals; 0: none. */
static uint32_t find(const int32_t *tokens, uint32_t n, uint32_t *longest)
{
    const uint32_t first = n > FARTHEST ? n - FARTHEST : 0;
    const int32_t last = tokens[n - 1];
    uint32_t best = 0;
    *longest = SHORTEST - 1;
    for (uint32_t at = n - 1; at > first && *longest < LONG; at--) {
        if (tokens[at - 1] != last)
            continue;
        const uint32_t len = repeated(tokens, n, at);
        if (len > *longest) {
            *longest = len;
            best = at;
        }
    }
    return best;
}

/* The time of a step with this many rows: known, or from those that are. */
static double step_ns(const struct draft_costs *c, uint32_t rows)
{
    uint32_t below = rows < DRAFT_KNOWN ? rows : DRAFT_KNOWN;
    if (rows <= DRAFT_KNOWN && c->step_ns[rows] > 0)
        return c->step_ns[rows];
    while (below > 0 && !(c->step_ns[below] > 0))
        below--;
    return below == 0 ? 1 + ROW_GUESS * rows
                      : c->step_ns[below] * (1 + ROW_GUESS / below * (rows - below));
}

/* How many times as fast the task is with a guess of k tokens. */
static double gain(const struct draft_costs *c, double hit, uint32_t rows, uint32_t k)
{
    double expected = 1, all_right = 1;
    for (uint32_t i = 0; i < k; i++)
        expected += all_right *= hit;
    return expected * step_ns(c, rows) / step_ns(c, rows + k);
}

static uint32_t best_length(const struct draft_costs *c, double hit, uint32_t rows, uint32_t most)
{
    uint32_t best = 0;
    double best_gain = WORTH;
    for (uint32_t k = 1; k <= most; k++) {
        const double g = gain(c, hit, rows, k);
        if (g > best_gain) {
            best_gain = g;
            best = k;
        }
    }
    return best;
}

uint32_t draft_propose(struct draft *d, const struct draft_costs *c, const int32_t *tokens,
                       uint32_t n, uint32_t room, uint32_t rows)
{
    uint32_t len, at, most = room < DRAFT_MAX ? room : DRAFT_MAX;
    d->n = 0;
    if (!c->always && rows + most > DRAFT_KNOWN) /* nothing is known of longer ones */
        most = rows < DRAFT_KNOWN ? DRAFT_KNOWN - rows : 0;
    if (most == 0 || n <= SHORTEST || (at = find(tokens, n, &len)) == 0)
        return 0;
    d->kind = len >= LONG;
    most = n - at < most ? n - at : most;
    const float hit = d->hit[d->kind] > 0 ? d->hit[d->kind] : FIRST_HIT;
    uint32_t k = c->always ? most : best_length(c, (double)hit, rows, most);
    if (k == 0 && ++d->skipped >= RETRY) /* things may have changed */
        k = 1;
    if (k == 0)
        return 0;
    d->skipped = 0;
    memcpy(d->tokens, tokens + at, k * sizeof(*tokens));
    d->n = (uint8_t)k;
    return k;
}

void draft_saw(struct draft *d, uint32_t n_right)
{
    float *hit = &d->hit[d->kind];
    if (!(*hit > 0))
        *hit = FIRST_HIT;
    /* tokens behind the first wrong one say nothing */
    for (uint32_t i = 0; i < d->n && i <= n_right; i++)
        *hit += LEARN * ((i < n_right ? 1.0f : 0.0f) - *hit);
    *hit = *hit < 0.01f ? 0.01f : *hit;
    d->n = 0;
}

void draft_saw_step(struct draft_costs *c, uint32_t rows, uint64_t ns)
{
    if (rows == 0 || rows > DRAFT_KNOWN || ns == 0)
        return;
    double *known = &c->step_ns[rows];
    const double took = (double)ns;
    /* a step that stood still says nothing; one that is faster than known counts at once */
    if (!(*known > 0) || took < *known)
        *known = *known > 0 ? *known + 2 * COST_LEARN * (took - *known) : took;
    else
        *known += COST_LEARN * ((took < 4 * *known ? took : *known) - *known);
}
