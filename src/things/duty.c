/* duty.c - see duty.h. */
#include "things/duty.h"

#include <math.h>
#include <string.h>

#define CLOSE 8.0        /* deviations within which a value belongs to its plateau */
#define PART 0.02        /* ... or this part of the range of all values */
#define MOST_PART 0.2    /* ... and never beyond this one */
#define YOUNG 8u         /* values until the deviation of a plateau is known */
#define YOUNG_PART 0.1   /* until then: this part of the step to it */
#define FORM 0.04        /* ... and this one for the first three */
#define SAME 0.05        /* part of the range within which plateaus are visits of one level */
#define BAND 0.1         /* part of the gap within which a value is at a level */
#define APART 10.0       /* deviations between two levels */
#define RATIO 0.2        /* ... and part of the larger one */
#define MEMORY 16u       /* values that centre and deviation of a plateau are made of */
#define LEAST_VISIT 4u   /* values of a visit */
#define VISITS 3u        /* until a level is known */
#define VISITS_OF_TWO 8u /* ... if two values in a row may be a digit that flickers */
#define HELD 0.85        /* part of the values that known levels hold */
#define RARE 0.005       /* ... and that each of them holds */
#define FORGET 8192.0    /* values after which the oldest count half */
#define LATE 4u          /* times the longest visit */
#define LATE_VISITS 6u   /* ... which is known after so many */
#define MAX_WAY 64u
#define MAD_TO_DEVIATION 1.25
#define MAX_VISITS 8.0 /* that the height of a level is made of */

/* ---- levels ---- */

static double smallest_gap(const struct duty *d)
{
    double gap = INFINITY;
    for (uint32_t i = 0; i < d->n_levels; i++)
        for (uint32_t k = i + 1; k < d->n_levels; k++)
            if (d->levels[i].known && d->levels[k].known)
                gap = fmin(gap, fabs(d->levels[i].mean - d->levels[k].mean));
    return gap;
}

/* The known level that a value is at; NULL: none. */
static const struct duty_level *level_at(const struct duty *d, double x)
{
    const double gap = d->n_known > 0 ? smallest_gap(d) : 0;
    for (uint32_t i = 0; i < d->n_levels; i++) {
        const struct duty_level *l = &d->levels[i];
        const double band = fmin(fmax(CLOSE * l->spread, BAND * gap), 0.5 * gap);
        if (l->known && fabs(x - l->mean) <= band)
            return l;
    }
    return NULL;
}

/* NULL: none is known. */
static const struct duty_level *nearest(const struct duty *d, double x)
{
    const struct duty_level *best = NULL;
    for (uint32_t i = 0; i < d->n_levels; i++) {
        const struct duty_level *l = &d->levels[i];
        if (l->known && (!best || fabs(x - l->mean) < fabs(x - best->mean)))
            best = l;
    }
    return best;
}

static const struct duty_level *first_known(const struct duty *d)
{
    for (uint32_t i = 0; i < d->n_levels; i++)
        if (d->levels[i].known)
            return &d->levels[i];
    return NULL;
}

/* The step of a channel that has two values only; 0: it has others. */
static double only_step(const struct duty *d)
{
    const double gap = fabs(d->levels[0].mean - d->levels[1].mean);
    const bool two = d->n_levels == 2 && fabs(gap - d->quantum) <= 1e-9 * gap;
    return two ? gap : 0;
}

/* Are levels i and k so far apart that no chance leads from one to the other, and neither the last
 * digit of a slow channel? */
static bool apart(const struct duty *d, uint32_t i, uint32_t k)
{
    const struct duty_level *a = &d->levels[i], *b = &d->levels[k];
    const double gap = fabs(a->mean - b->mean);
    return only_step(d) > 0 || (gap >= APART * fmax(fmax(a->spread, b->spread), d->quantum) &&
                                gap >= RATIO * fmax(fabs(a->mean), fabs(b->mean)));
}

/* Which levels are known; true: others than before. */
static bool judge(struct duty *d)
{
    bool good[DUTY_LEVELS] = {false}, changed = false;
    uint32_t n = 0;
    double held = 0;
    const uint32_t visits = only_step(d) > 0 ? VISITS_OF_TWO : VISITS;
    for (uint32_t i = 0; i < d->n_levels; i++) {
        good[i] = d->levels[i].visits >= visits && d->levels[i].n >= RARE * d->total;
        n += good[i];
        held += good[i] ? d->levels[i].n : 0;
    }
    bool known = n >= 2 && held >= HELD * d->total;
    for (uint32_t i = 0; i < d->n_levels; i++)
        for (uint32_t k = i + 1; k < d->n_levels; k++)
            known = known && (!good[i] || !good[k] || apart(d, i, k));
    for (uint32_t i = 0; i < d->n_levels; i++) {
        changed = changed || d->levels[i].known != (known && good[i]);
        d->levels[i].known = known && good[i];
    }
    d->n_known = known ? n : 0;
    return changed;
}

/* ---- plateaus ---- */

static double tolerance(const struct duty *d)
{
    const double range = d->high - d->low;
    double close = fmax(CLOSE * d->spread, PART * range);
    close = fmax(close, d->n < YOUNG ? YOUNG_PART * fabs(d->centre - d->before) : 0);
    return fmin(close, MOST_PART * range); /* a way between levels is no wide plateau */
}

static struct duty_level *same_level(struct duty *d)
{
    for (uint32_t i = 0; i < d->n_levels; i++) {
        struct duty_level *l = &d->levels[i];
        const double close = fmax(CLOSE * fmax(d->spread, l->spread), SAME * (d->high - d->low));
        if (fabs(d->centre - l->mean) <= close)
            return l;
    }
    return NULL;
}

/* The slot of a new level: a free one, or that of the least visited. */
static struct duty_level *new_level(struct duty *d)
{
    struct duty_level *least = &d->levels[0];
    if (d->n_levels < DUTY_LEVELS)
        return &d->levels[d->n_levels++];
    for (uint32_t i = 1; i < DUTY_LEVELS; i++)
        if (d->levels[i].n < least->n)
            least = &d->levels[i];
    memset(least, 0, sizeof(*least));
    return least;
}

/* The plateau has ended: a visit of a level. */
static void end_visit(struct duty *d)
{
    if (d->n < LEAST_VISIT)
        return;
    struct duty_level *l = same_level(d);
    if (!l)
        l = new_level(d);
    l->visits++;
    const double part = 1 / fmin(l->visits, MAX_VISITS);
    l->mean += part * (d->centre - l->mean);
    l->spread += part * (d->spread - l->spread);
    l->longest = d->n > l->longest ? d->n : l->longest;
    l->n += d->n;
}

/* Values on the way between two plateaus, the last three of which are at the new one. */
static void note_way(struct duty *d)
{
    const uint32_t way = d->n_far - 3;
    if (way > 0 && way <= MAX_WAY) {
        d->longest_way = way > d->longest_way ? way : d->longest_way;
        d->way_low = fmin(d->way_low, d->far_low);
        d->way_high = fmax(d->way_high, d->far_high);
    }
}

static void forget(struct duty *d)
{
    if (d->total < FORGET)
        return;
    d->total /= 2;
    for (uint32_t i = 0; i < d->n_levels; i++)
        d->levels[i].n /= 2;
}

static bool begin_plateau(struct duty *d, double mean, double spread)
{
    end_visit(d);
    note_way(d);
    d->total += d->n + (d->n_far - 3);
    forget(d);
    d->before = d->centre;
    d->centre = mean;
    d->spread = spread;
    d->n = 3;
    d->n_far = 0;
    return judge(d);
}

static void extend_plateau(struct duty *d, double x)
{
    d->n += 1 + d->n_far;
    d->n_far = 0;
    const double part = 1.0 / (d->n < MEMORY ? d->n : MEMORY);
    d->spread += part * (MAD_TO_DEVIATION * fabs(x - d->centre) - d->spread);
    d->centre += part * (x - d->centre);
}

/* A value that is off the plateau; three close together are a new one. */
static bool leave(struct duty *d, double x)
{
    d->far_low = d->n_far > 0 ? fmin(d->far_low, x) : x;
    d->far_high = d->n_far > 0 ? fmax(d->far_high, x) : x;
    d->far[d->n_far++ % 3] = x;
    if (d->n_far < 3)
        return false;
    const double mean = (d->far[0] + d->far[1] + d->far[2]) / 3;
    const double close = fmax(tolerance(d), FORM * fabs(mean - d->centre));
    double sum = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const double off = fabs(d->far[i] - mean);
        if (off > close)
            return false;
        sum += off;
    }
    return begin_plateau(d, mean, MAD_TO_DEVIATION * sum / 3);
}

bool duty_step(struct duty *d, double x)
{
    const double change = fabs(x - d->last);
    d->last = x;
    if (d->n == 0) {
        d->centre = d->before = d->low = d->high = d->way_low = d->way_high = x;
        d->n = 1;
        return false;
    }
    if (change > 0 && (d->quantum <= 0 || change < d->quantum))
        d->quantum = change;
    d->low = fmin(d->low + (d->centre - d->low) / FORGET, x);
    d->high = fmax(d->high + (d->centre - d->high) / FORGET, x);
    if (fabs(x - d->centre) > tolerance(d))
        return leave(d, x);
    extend_plateau(d, x);
    return false;
}

/* ---- what it means ---- */

enum duty_place duty_where(const struct duty *d)
{
    if (d->n_known == 0)
        return DUTY_UNKNOWN;
    if (level_at(d, d->last))
        return DUTY_AT;
    const double more = 0.25 * (d->way_high - d->way_low);
    const bool usual = d->last >= d->way_low - more && d->last <= d->way_high + more;
    return usual && level_at(d, d->centre) && d->n_far <= 2 * d->longest_way + 1 ? DUTY_BETWEEN
                                                                                 : DUTY_UNKNOWN;
}

double duty_fold(const struct duty *d, double x, bool *at)
{
    const struct duty_level *l = level_at(d, x), *base = first_known(d);
    *at = l != NULL;
    if (!l || l == base)
        return x;
    const double scale = l->spread > 0 && base->spread > 0 ? base->spread / l->spread : 1;
    return base->mean + scale * (x - l->mean);
}

double duty_unfold(const struct duty *d, double folded)
{
    const struct duty_level *l = nearest(d, level_at(d, d->last) ? d->last : d->centre),
                            *base = first_known(d);
    if (!l || l == base)
        return folded;
    const double scale = l->spread > 0 && base->spread > 0 ? l->spread / base->spread : 1;
    return l->mean + scale * (folded - base->mean);
}

double duty_least(const struct duty *d)
{
    return d->n_known > 0 ? only_step(d) : 0;
}

uint32_t duty_overdue(const struct duty *d)
{
    const struct duty_level *l = d->n_known > 0 ? level_at(d, d->centre) : NULL;
    return l && l->visits >= LATE_VISITS && d->n / LATE > l->longest ? d->n : 0;
}
