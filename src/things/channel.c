/* channel.c - see channel.h. */
#include "base/order.h"
#include "things/channel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEARN 512u
#define MIN_LEARN 32u
#define SHORT 16.0      /* steps of the short means */
#define MIDDLE 64.0     /* steps of the middle means */
#define LONG 256.0      /* steps of the long mean */
#define SPREAD 16.0     /* steps of the spread */
#define ALL 8192.0      /* steps of the running reference */
#define BEYOND 2.0      /* a spike is this many times larger than recent ones */
#define RISE 4.0        /* ... of which each one counts with this part */
#define BEYOND_LONG 4.0 /* the same for the long mean */
#define RISE_LONG 1024.0
#define RISE_STEADY 8192.0 /* ... while it moves steadily in one direction */
#define STEADY 0.75        /* share of the pairs of blocks that must be in order, less the others */
#define LEAST 0.05         /* deviation of the running reference */
#define CLIP 6.0      /* a single value counts at most this much in the means against the usual */
#define JUMP_CLIP 6.0 /* ... and a jump in the spread */
#define AWAY 3.0      /* deviations of the short mean: a state that began continues */
#define MOST 1e9      /* any distance, so that its square is a number */
#define FOLLOW 8192.0 /* steps in which the usual level follows the channel */
#define DAY_MS 86400000.0
#define MIN_DAYS 2 /* days needed to learn a daily pattern */
#define ENOUGH 4   /* windows of a statistic that it is learned from */
#define NORMAL_MAD 1.4826
#define DOUBT 10.0   /* a step is in doubt at this many times the target */
#define FAR 4u       /* far values in a row that may be the beginning of a state */
#define AGAIN 256u   /* steps that the moving values see again after learning */
#define SETTLE 1024u /* steps after which a state that lasts becomes the usual one, at least */

/* ---- numbers ---- */

/* Sorts v. */
static double quantile(double *v, size_t n, double q)
{
    qsort(v, n, sizeof(*v), order_double);
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

/* Deviation by the median of absolute distances; the plain one if more than half are equal. */
static double robust_spread(const double *v, size_t n, double centre, double *scratch)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        scratch[i] = fabs(v[i] - centre);
        squares += scratch[i] * scratch[i];
    }
    double plain = sqrt(squares / (double)n), mad = NORMAL_MAD * quantile(scratch, n, 0.5);
    return mad > 0.1 * plain ? mad : 0.5 * plain;
}

static double bin_of(int64_t time_ms)
{
    return fmod((double)time_ms, DAY_MS) / DAY_MS * CHANNEL_DAY_BINS;
}

/* Between the middles of two hours. */
static double day_at(const float day[CHANNEL_DAY_BINS], int64_t time_ms)
{
    double at = bin_of(time_ms) - 0.5;
    if (at < 0)
        at += CHANNEL_DAY_BINS;
    uint32_t i = (uint32_t)at % CHANNEL_DAY_BINS, k = (i + 1) % CHANNEL_DAY_BINS;
    double part = at - floor(at);
    return (1 - part) * (double)day[i] + part * (double)day[k];
}

double channel_usual(const struct profile *p, int64_t time_ms)
{
    return p->daily && time_ms >= 0 ? day_at(p->day, time_ms) : p->mean;
}

/* ---- statistics ---- */

/* How far the tail of a statistic is trusted, and after how many steps half of that: a few steps
 * show little of a channel's behaviour. */
static const double trust[CHANNEL_N_STATS] = {1, 1, 1, 1, 1, 0.5};
static const double few[CHANNEL_N_STATS] = {32, 128, 128, 128, 320, 128};

static double clamp(double x, double most)
{
    return fmax(-most, fmin(most, x));
}

static double moving(struct channel_mean *m, double x, double steps)
{
    double k = 1 - 1 / steps;
    m->sum = k * m->sum + x;
    m->weight = k * m->weight + 1;
    return m->sum / m->weight;
}

static void begin_motion(struct channel_motion *m, const struct profile *p, uint32_t n)
{
    *m = (struct channel_motion){.most_out = p->most_out,
                                 .most_jump = p->most_jump,
                                 .most_long = p->most_long,
                                 .most_steady = p->most_long,
                                 .raw16 = {SHORT * p->plain_mean, SHORT},
                                 .raw64 = {MIDDLE * p->plain_mean, MIDDLE},
                                 .short16 = {0, SHORT},
                                 .slow = {0, LONG}};
    m->all_weight = n;
    m->all = n * p->plain_mean;
    m->all_squares = n * (p->plain_spread * p->plain_spread + p->plain_mean * p->plain_mean);
}

/* Distance of a mean from all values so far, in its deviations. */
static double from_all(const struct channel_motion *m, double mean)
{
    if (!(m->all_weight > 0))
        return 0;
    double centre = m->all / m->all_weight;
    double square = m->all_squares / m->all_weight - centre * centre;
    return fabs(mean - centre) / sqrt(fmax(square, LEAST * LEAST));
}

static void extend_all(struct channel_motion *m, double z)
{
    double k = 1 - 1 / ALL;
    m->all = k * m->all + z;
    m->all_squares = k * m->all_squares + z * z;
    m->all_weight = k * m->all_weight + 1;
}

/* One more distance for the means of blocks, the oldest first. */
static void extend_blocks(struct channel_motion *m, double c)
{
    m->block_sum += c;
    if (++m->n_in_block < CHANNEL_BLOCK)
        return;
    memmove(m->blocks, m->blocks + 1, (CHANNEL_BLOCKS - 1) * sizeof(m->blocks[0]));
    m->blocks[CHANNEL_BLOCKS - 1] = (float)(m->block_sum / CHANNEL_BLOCK);
    m->n_blocks += m->n_blocks < CHANNEL_BLOCKS;
    m->block_sum = 0;
    m->n_in_block = 0;
    int up = 0;
    for (uint32_t i = 0; i < CHANNEL_BLOCKS; i++)
        for (uint32_t k = i + 1; k < CHANNEL_BLOCKS; k++)
            up += (m->blocks[k] > m->blocks[i]) - (m->blocks[k] < m->blocks[i]);
    m->trend =
        m->n_blocks < CHANNEL_BLOCKS ? 0 : (float)up * 2 / (CHANNEL_BLOCKS * (CHANNEL_BLOCKS - 1));
}

/* The long mean, if it is larger than any recent one. A wandering channel comes and goes, so that
 * its range is soon known; a steady move in one direction, block by block (Mann and Kendall's
 * test), is a drift, and is measured against the range before it began. */
static double long_record(struct channel_motion *m, double slow, double signed_slow)
{
    double record = tail_record(&m->most_long, slow, BEYOND_LONG, RISE_LONG);
    double steady = tail_record(&m->most_steady, slow, BEYOND_LONG, RISE_STEADY);
    /* How a channel wanders is unknown until it was seen for a few of the long means. */
    bool known = m->all_weight >= ENOUGH * LONG + CHANNEL_BLOCKS * CHANNEL_BLOCK;
    bool drifts = known && (double)m->trend * (signed_slow > 0 ? 1 : -1) >= STEADY;
    return record > 0 ? record : drifts ? steady : 0;
}

/* The statistics after one more value. */
static void step_stats(const struct profile *p, struct channel_motion *m, double value,
                       double usual, double out[CHANNEL_N_STATS], double *z_out)
{
    double z = clamp((value - usual) / p->spread, MOST), c = clamp(z, CLIP);
    double d = m->started ? clamp((value - m->last) / p->step, MOST) : 0;
    double limited = clamp(d, JUMP_CLIP);
    m->started = true;
    m->last = value;
    double raw16 = moving(&m->raw16, z, SHORT), raw64 = moving(&m->raw64, z, MIDDLE);
    double now = fabs(moving(&m->short16, c, SHORT));
    double spread = moving(&m->spread, limited * limited, SPREAD);
    out[CHANNEL_OUT] = tail_record(&m->most_out, fabs(z), BEYOND, RISE);
    out[CHANNEL_JUMP] = tail_record(&m->most_jump, fabs(d), BEYOND, RISE);
    out[CHANNEL_SHIFT] = from_all(m, raw16);
    out[CHANNEL_SLOW] = from_all(m, raw64);
    /* Not more than the last steps indicate, so that it ends when the channel is back. */
    double slow = moving(&m->slow, c, LONG);
    extend_blocks(m, c);
    out[CHANNEL_LONG] = long_record(m, fmin(now, fabs(slow)), slow);
    out[CHANNEL_SPREAD] = m->spread.weight < SPREAD / 2 ? 0 : spread;
    *z_out = z;
}

/* ---- learning ---- */

static void learn_day(struct profile *p, const double *v, const int64_t *times, size_t n,
                      double *rest, double *scratch)
{
    double plain = robust_spread(v, n, p->mean, scratch);
    p->daily = false;
    if (!times || (double)(times[n - 1] - times[0]) < MIN_DAYS * DAY_MS)
        return;
    for (uint32_t b = 0; b < CHANNEL_DAY_BINS; b++) {
        size_t k = 0;
        for (size_t i = 0; i < n; i++)
            if ((uint32_t)bin_of(times[i]) == b)
                scratch[k++] = v[i];
        p->day[b] = (float)(k > 0 ? quantile(scratch, k, 0.5) : p->mean);
    }
    for (size_t i = 0; i < n; i++)
        rest[i] = v[i] - day_at(p->day, times[i]);
    p->daily = robust_spread(rest, n, 0, scratch) < 0.7 * plain;
}

static uint32_t longest_run(const double *v, size_t n)
{
    uint32_t run = 1, best = 1;
    for (size_t i = 1; i < n; i++) {
        run = v[i] == v[i - 1] ? run + 1 : 1;
        best = run > best ? run : best;
    }
    return best;
}

static void learn_tails(struct profile *p, const double *v, const int64_t *times, size_t n,
                        double *one, double *scratch)
{
    static const double windows[CHANNEL_N_STATS] = {1, 1, SHORT, MIDDLE, MIDDLE, SPREAD};
    double out[CHANNEL_N_STATS], z;
    for (uint32_t s = 0; s < CHANNEL_N_STATS; s++) {
        struct channel_motion m = {.short16 = {0, SHORT}, .slow = {0, LONG}};
        for (size_t i = 0; i < n; i++) {
            m.most_out = m.most_jump = m.most_long = 0; /* every value is a record here */
            step_stats(p, &m, v[i], channel_usual(p, times ? times[i] : -1), out, &z);
            extend_all(&m, z);
            one[i] = log1p(out[s]);
            p->most_long = fmax(p->most_long, out[CHANNEL_LONG]);
        }
        /* A statistic seen for less than a few of its windows is not meaningful yet. */
        tail_learn(&p->tails[s], one, (double)n >= ENOUGH * windows[s] ? n : 0, scratch);
    }
}

/* Mean, deviation and largest values, outliers and all. */
static void learn_plain(struct profile *p, const double *v, const int64_t *times, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double z = (v[i] - channel_usual(p, times ? times[i] : -1)) / p->spread;
        double jump = i > 0 ? fabs(v[i] - v[i - 1]) / p->step : 0;
        sum += z;
        squares += z * z;
        p->most_out = fmax(p->most_out, fabs(z));
        p->most_jump = fmax(p->most_jump, jump);
    }
    p->plain_mean = sum / (double)n;
    p->plain_spread = sqrt(fmax(squares / (double)n - p->plain_mean * p->plain_mean, 0));
}

/* least: the deviation, at least. */
static void learn(struct profile *p, const double *v, const int64_t *times, size_t n,
                  double interval_ms, double least, double *scratch)
{
    double *a = scratch, *b = scratch + n, *c = scratch + 2 * n;
    *p = (struct profile){.interval_ms = interval_ms, .n = (uint32_t)n};
    if (n < 2) {
        p->n = 0;
        return;
    }
    memcpy(a, v, n * sizeof(*a));
    p->mean = quantile(a, n, 0.5);
    p->low = a[(size_t)(0.005 * (double)(n - 1))];
    p->high = a[(size_t)ceil(0.995 * (double)(n - 1))];
    learn_day(p, v, times, n, a, b);
    for (size_t i = 0; i < n; i++)
        a[i] = v[i] - channel_usual(p, times ? times[i] : -1);
    /* A constant channel still has a scale, so that any change is large but finite. */
    least = fmax(least, 1e-3 * fmax(fabs(p->mean), fmax(fabs(p->low), fabs(p->high))));
    least = fmax(least, 1e-9);
    p->spread = fmax(robust_spread(a, n, 0, b), least);
    for (size_t i = 1; i < n; i++)
        a[i - 1] = v[i] - v[i - 1];
    p->step = fmax(robust_spread(a, n - 1, 0, b), 0.1 * least);
    p->longest_run = longest_run(v, n);
    learn_plain(p, v, times, n);
    learn_tails(p, v, times, n, b, c);
}

void channel_learn(struct profile *p, const double *v, const int64_t *times, size_t n,
                   double interval_ms, double *scratch)
{
    learn(p, v, times, n, interval_ms, 0, scratch);
}

static uint32_t slot_of(const struct channel *c, uint32_t back)
{
    return (c->next + CHANNEL_MAX_LEARN - back) % CHANNEL_MAX_LEARN;
}

static double folded(const struct channel *c, double value, bool *at)
{
    *at = false;
    return c->fixed ? value : duty_fold(&c->duty, value, at);
}

double channel_unfolded(const struct channel *c, double value)
{
    return c->fixed ? value : duty_unfold(&c->duty, value);
}

double channel_kept(const struct channel *c, uint32_t back)
{
    bool at;
    return folded(c, (double)c->kept[slot_of(c, back)], &at);
}

bool channel_is_doubtful(const struct channel *c, uint32_t back)
{
    const uint32_t slot = slot_of(c, back);
    return c->doubtful[slot / 32] >> slot % 32 & 1;
}

static void set_doubtful(struct channel *c, uint32_t back)
{
    const uint32_t slot = slot_of(c, back);
    c->doubtful[slot / 32] |= 1u << slot % 32;
}

/* The last steps that can be learned from, at most `learn`, the oldest first. */
static uint32_t good_steps(const struct channel *c, double out[CHANNEL_MAX_LEARN])
{
    uint32_t n = 0, from = 0;
    while (from < c->n_kept && n < c->learn)
        n += !channel_is_doubtful(c, ++from);
    n = 0;
    for (uint32_t back = from; back > 0; back--)
        if (!channel_is_doubtful(c, back))
            out[n++] = channel_kept(c, back);
    return n;
}

/* From the last good steps of the ring. What is happening goes on: the moving values see the last
 * steps again, in the new units. */
static void learn_now(struct channel *c)
{
    double v[CHANNEL_MAX_LEARN] = {0}, scratch[3 * CHANNEL_MAX_LEARN], out[CHANNEL_N_STATS], z;
    const uint32_t n = good_steps(c, v);
    const double interval_ms = c->usual.interval_ms;
    bool at;
    learn(&c->usual, v, NULL, n, interval_ms, c->fixed ? 0 : duty_least(&c->duty), scratch);
    begin_motion(&c->motion, &c->usual, n);
    for (uint32_t i = n > AGAIN ? n - AGAIN : 0; i < n; i++)
        step_stats(&c->usual, &c->motion, v[i], c->usual.mean, out, &z);
    c->motion.started = true;
    c->motion.last = folded(c, c->last, &at);
    c->n_since = 0;
}

/* The levels of a duty cycle are known, or others than before: what was at one of them is usual,
 * and was reported when it was new. */
static void take_levels(struct channel *c)
{
    uint32_t n_doubtful = 0, n_was = 0;
    bool at;
    for (uint32_t back = 1; back <= c->n_kept; back++)
        n_was += channel_is_doubtful(c, back);
    memset(c->doubtful, 0, sizeof(c->doubtful));
    for (uint32_t back = 1; c->duty.n_known > 0 && back <= c->n_kept; back++) {
        (void)folded(c, (double)c->kept[slot_of(c, back)], &at);
        if (!at)
            set_doubtful(c, back);
        n_doubtful += !at;
    }
    c->n_good = c->n_kept - n_doubtful;
    c->n_doubtful -= n_was > n_doubtful ? n_was - n_doubtful : 0;
    c->n_far = c->n_unusual = 0;
    c->reported = false;
    learn_now(c);
}

/* The state that lasts is the usual one from now on. */
static void settle(struct channel *c)
{
    memset(c->doubtful, 0, sizeof(c->doubtful));
    for (uint32_t back = c->learn + 1; back <= c->n_kept; back++)
        set_doubtful(c, back); /* those before it */
    c->n_unusual = 0;
    c->reported = false;
    learn_now(c);
}

void channel_init(struct channel *c, const struct profile *p, uint32_t learn, double interval_ms)
{
    *c = (struct channel){.learn = learn == 0                  ? LEARN
                                   : learn < MIN_LEARN         ? MIN_LEARN
                                   : learn > CHANNEL_MAX_LEARN ? CHANNEL_MAX_LEARN
                                                               : learn,
                          .wanted = CHANNEL_FALSE_ALARMS,
                          .fixed = p && p->n > 0};
    if (c->fixed) {
        c->usual = *p;
        begin_motion(&c->motion, p, p->n);
    }
    c->usual.interval_ms = c->fixed ? p->interval_ms : interval_ms;
}

/* ---- following ---- */

static void keep(struct channel *c, double value)
{
    c->kept[c->next] = (float)value;
    c->doubtful[c->next / 32] &= ~(1u << c->next % 32);
    c->next = (c->next + 1) % CHANNEL_MAX_LEARN;
    c->n_kept += c->n_kept < CHANNEL_MAX_LEARN;
}

static void doubt(struct channel *c, uint32_t back)
{
    if (c->n_kept < back || channel_is_doubtful(c, back))
        return;
    set_doubtful(c, back);
    c->n_good -= c->n_good > 0;
    c->n_doubtful++;
}

void channel_doubt(struct channel *c)
{
    doubt(c, 1);
}

static bool is_learning(const struct channel *c)
{
    return !c->fixed && c->usual.n < c->learn;
}

/* A few far values belong to a channel with spikes. More in a row may be the beginning of a state
 * that is found only later, and must not be in what it is measured with. */
static bool begins_a_state(struct channel *c, double z)
{
    c->n_far =
        is_learning(c) && fabs(z) > fmax(CLIP, BEYOND * c->usual.most_out) ? c->n_far + 1 : 0;
    for (uint32_t back = 2; c->n_far == FAR && back <= FAR; back++)
        doubt(c, back);
    return c->n_far >= FAR;
}

double channel_target(double wanted, double steps, double interval_ms)
{
    double days = steps * fmax(interval_ms, 1) / DAY_MS;
    return wanted * CHANNEL_DAYS / fmin(CHANNEL_DAYS, fmax(days, 1e-9));
}

static void follow(struct channel *c, double value, double z)
{
    struct profile *p = &c->usual;
    /* Slow from the beginning: a level that went with the first hundreds of steps would have
     * followed a fault by the time that its means are full. */
    const double part = 1 / FOLLOW;
    double size = fmin(fabs(z), 4);
    p->mean += part * copysign(size, z) * p->spread;
    /* The mean absolute distance of a normal channel is 0.8 deviations. */
    p->spread *= 1 + part * fmin(size / 0.8 - 1, 1) * 0.5; /* a drift is not a spread */
    if (size < 4) {
        p->low = fmin(p->low, value);
        p->high = fmax(p->high, value);
    }
}

static bool is_stuck(const struct channel *c)
{
    uint32_t usual = c->usual.longest_run;
    /* A channel that is often constant (a setpoint, a state) never counts as stuck. */
    if (usual * 4 >= c->usual.n || c->run <= 16 || c->run <= 6 * usual)
        return false;
    /* Who moved again after such a run was not stuck: fewer digits, a slower source. */
    return c->run > 2 * c->ended_run;
}

/* ---- the cascade ---- */

static bool follows(uint32_t s)
{
    return s == CHANNEL_SHIFT || s == CHANNEL_SLOW || s == CHANNEL_SPREAD;
}

/* The fast detector: is every statistic below the start of its tail, that is, outside the largest
 * tenth of normal times? It only compares. */
static bool surely_usual(const struct profile *p, const double stats[CHANNEL_N_STATS])
{
    bool sure = true;
    for (uint32_t s = 0; s < CHANNEL_N_STATS; s++)
        sure = sure && stats[s] <= p->tails[s].least;
    return sure;
}

static void tails_below(struct profile *p)
{
    for (uint32_t s = 0; s < CHANNEL_N_STATS; s++)
        if (follows(s))
            tail_follow_below(&p->tails[s]);
}

/* The precise detector: how often each statistic reaches its value by chance. */
static void weigh(const struct channel *c, const double stats[CHANNEL_N_STATS],
                  struct channel_result *r)
{
    const double per_day = r->expected, seen = (double)c->usual.n + c->n_since;
    r->expected = INFINITY;
    for (uint32_t s = 0; s < CHANNEL_N_STATS; s++) {
        double n = tail_expected(&c->usual.tails[s], log1p(stats[s]), per_day,
                                 trust[s] * seen / (seen + few[s]));
        if (n < r->expected) {
            r->expected = n;
            r->stat = (enum channel_stat)s;
        }
    }
}

static void tails_follow(struct profile *p, const double stats[CHANNEL_N_STATS], bool learns)
{
    for (uint32_t s = 0; s < CHANNEL_N_STATS; s++) {
        if (learns && follows(s))
            tail_follow(&p->tails[s], log1p(stats[s]));
        tail_gauge(&p->tails[s]);
    }
}

/* What the channel learns from a step. */
static void learn_step(struct channel *c, double value, const double stats[CHANNEL_N_STATS],
                       struct channel_result *r)
{
    /* A profile that was learned before stays, so how often its channel leaves it can be counted.
     */
    const bool drifts = stats[CHANNEL_LONG] > 0, learns = !r->doubtful || c->reported || c->fixed;
    if (r->checked)
        tails_follow(&c->usual, stats, learns);
    else
        tails_below(&c->usual);
    if (learns)
        extend_all(&c->motion, r->z);
    if (c->fixed)
        return;
    if (!r->doubtful && !drifts) /* otherwise it would follow the change that it must find */
        follow(c, value, r->z);
    const uint32_t more = c->usual.n + c->usual.n / 2;
    if (is_learning(c) && c->n_far == 0 && c->n_good >= (more < c->learn ? more : c->learn))
        learn_now(c);
    if (c->n_unusual > (4 * c->learn > SETTLE ? 4 * c->learn : SETTLE)) {
        if (!c->reported) { /* nobody has been told about it yet */
            r->expected = fmin(r->expected, r->target);
            r->stat = CHANNEL_LONG;
        }
        settle(c);
    }
}

/* Judges a value that is folded, and learns from it. */
static void judge(struct channel *c, double value, int64_t time_ms, struct channel_result *r)
{
    double stats[CHANNEL_N_STATS];
    step_stats(&c->usual, &c->motion, value, channel_usual(&c->usual, time_ms), stats, &r->z);
    r->checked = c->always || !surely_usual(&c->usual, stats);
    if (r->checked)
        weigh(c, stats, r);
    r->away = fabs(c->motion.short16.sum) > AWAY * c->motion.short16.weight;
    bool drifts = stats[CHANNEL_LONG] > 0;
    r->doubtful = begins_a_state(c, r->z) || r->away || r->expected <= DOUBT * r->target;
    c->n_unusual = r->doubtful || drifts ? c->n_unusual + 1 : 0;
    c->reported = c->n_unusual > 0 && (c->reported || r->expected <= r->target);
    if (r->doubtful)
        channel_doubt(c);
    learn_step(c, value, stats, r);
}

struct channel_result channel_step(struct channel *c, double value, int64_t time_ms)
{
    struct channel_result r = {.expected = INFINITY};
    bool at;
    const bool same = c->n_since + c->n_kept > 0 && value == c->last;
    if (!same && c->usual.n > 0 && c->run > c->ended_run)
        c->ended_run = c->run;
    c->run = same ? c->run + 1 : 1;
    c->last = value;
    keep(c, value);
    c->n_since++;
    c->n_good++;
    if (duty_step(&c->duty, value) && !c->fixed && c->usual.n > 0)
        take_levels(c);
    if (c->usual.n == 0) {
        if (c->n_kept >= MIN_LEARN)
            learn_now(c);
        return r;
    }
    r.expected = DAY_MS / fmax(c->usual.interval_ms, 1);
    r.target = channel_target(c->wanted, (double)c->usual.n + c->n_since, c->usual.interval_ms);
    r.stuck = is_stuck(c);
    r.overdue = duty_overdue(&c->duty);
    r.ready = true;
    if (!c->fixed && duty_where(&c->duty) == DUTY_BETWEEN)
        channel_doubt(c);
    else
        judge(c, folded(c, value, &at), time_ms, &r);
    return r;
}
