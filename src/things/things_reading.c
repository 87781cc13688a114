/* things_reading.c - a reading's way: clock, duplicates, limits, rate, then the statistics. */
#include <math.h>

#include "things/things_int.h"

#define GAP 3.0  /* a pause of this many intervals is a gap */
#define LOST 5.0 /* ... and of this many a lost signal */
#define MIN_LOST_MS 5000.0
#define RELEASE 10.0 /* a statistic must fall to this many times the target rate */

/* ---- time ---- */

enum { USE, CHECK_ONLY, DROP };

/* Decides about the time of a reading. */
static int place(struct things *t, struct things_sensor *s, const struct reading *r, int64_t now_ms,
                 int64_t *time_ms)
{
    int64_t at = r->time_ms ? r->time_ms : now_ms;
    if (t->opts.max_skew_ms != UINT32_MAX &&
        (at > now_ms + t->opts.max_skew_ms || at < now_ms - (int64_t)t->opts.max_skew_ms)) {
        s->counts.skewed++;
        at = now_ms;
    }
    *time_ms = at;
    if (s->time_ms && at == s->time_ms && r->time_ms) {
        s->counts.duplicates++;
        return DROP;
    }
    if (s->time_ms && at < s->time_ms) {
        s->counts.late++;
        return CHECK_ONLY;
    }
    return USE;
}

static void learn_interval(struct things_sensor *s, double passed_ms)
{
    if (!s->learns_interval || passed_ms <= 0)
        return;
    if (s->interval_ms <= 0) {
        s->interval_ms = passed_ms;
    } else { /* follows the median */
        double step = s->interval_ms * 0.1;
        if (fabs(passed_ms - s->interval_ms) < step)
            s->interval_ms = passed_ms;
        else
            s->interval_ms += passed_ms > s->interval_ms ? step : -step;
    }
    if (!s->channel.fixed)
        s->channel.usual.interval_ms = s->interval_ms;
}

/* ---- causes ---- */

static void consider(struct things_cause *c, enum alarm_kind kind, enum alarm_severity severity,
                     double score, double limit, int64_t since_ms)
{
    if (c->holds && c->severity >= severity)
        return;
    *c = (struct things_cause){true, kind, severity, score, limit, since_ms};
}

/* By how much a value must be back inside before its alarm may end. */
static double margin(const struct things_sensor *s, double low, double high)
{
    if (!s->held)
        return 0;
    double range = isfinite(low) && isfinite(high) ? high - low
                   : isfinite(high)                ? fabs(high)
                   : isfinite(low)                 ? fabs(low)
                                                   : 0;
    return s->policy.hysteresis * range;
}

static void check_limits(const struct things_sensor *s, double v, struct things_cause *c)
{
    double in = s->kind == ALARM_LIMIT ? margin(s, s->limit_low, s->limit_high) : 0;
    if (v > s->limit_high - in)
        consider(c, ALARM_LIMIT, ALARM_CRITICAL, 1, s->limit_high, 0);
    else if (v < s->limit_low + in)
        consider(c, ALARM_LIMIT, ALARM_CRITICAL, 1, s->limit_low, 0);
    in = s->kind == ALARM_RANGE ? margin(s, s->normal_low, s->normal_high) : 0;
    if (v > s->normal_high - in || v < s->normal_low + in)
        consider(c, ALARM_RANGE, ALARM_WARNING, 0.5, (double)NAN, 0);
}

static enum alarm_kind kind_of(enum channel_stat s)
{
    switch (s) {
    case CHANNEL_SHIFT:
    case CHANNEL_SLOW:
        return ALARM_SHIFT;
    case CHANNEL_LONG:
        return ALARM_DRIFT;
    case CHANNEL_SPREAD:
        return ALARM_NOISE;
    default:
        return ALARM_SPIKE;
    }
}

/* ---- statistics ---- */

static void step(struct things_sensor *s, int64_t time_ms, struct things_cause *c)
{
    double v = s->sum / s->n_sum;
    const struct profile *p = &s->channel.usual;
    double usual = p->n ? channel_unfolded(&s->channel, channel_usual(p, time_ms)) : s->last_step;
    s->sum = 0;
    s->n_sum = 0;
    s->step_ms = time_ms;
    struct channel_result r = channel_step(&s->channel, v, time_ms);
    s->last_step = v;
    if (!s->held)
        s->before = usual;
    if (!r.ready || s->policy.no_statistics)
        return;
    s->z = r.z;
    s->ready = true;
    s->counts.steps++;
    s->counts.checked += r.checked;
    s->expected = r.expected;
    s->score = 1 / (1 + r.expected / r.target);
    if (r.stuck)
        consider(c, ALARM_STUCK, ALARM_WARNING, 0.5, (double)NAN,
                 time_ms - (int64_t)(s->channel.run * s->interval_ms));
    if (r.overdue)
        consider(c, ALARM_CYCLE, ALARM_WARNING, 0.5, (double)NAN,
                 time_ms - (int64_t)(r.overdue * s->interval_ms));
    double wanted = r.target * (s->held ? RELEASE : 1);
    if (r.expected <= wanted)
        consider(c, kind_of(r.stat), ALARM_WARNING, s->score, (double)NAN, 0);
    else if (r.away && s->held && things_is_statistical(s->kind))
        consider(c, s->kind, ALARM_WARNING, s->score, (double)NAN, 0);
}

/* Several readings within an interval are one step. */
static void use(struct things_sensor *s, double v, int64_t time_ms, struct things_cause *c)
{
    double passed = s->step_ms ? (double)(time_ms - s->step_ms) : INFINITY;
    if (s->interval_ms > 0 && isfinite(passed) && passed > GAP * s->interval_ms) {
        s->counts.gaps++;
        s->channel.motion.started = false; /* a jump across a gap is not meaningful */
    }
    s->sum += v;
    s->n_sum++;
    if (passed < 0.5 * s->interval_ms) {
        s->counts.merged++;
        /* The statistics have nothing new: their alarm continues until the next step. */
        if (s->held && s->calm_ms == 0 && s->kind > ALARM_RANGE)
            consider(c, s->kind, ALARM_WARNING, s->score, (double)NAN, 0);
        return;
    }
    step(s, time_ms, c);
    s->fresh = s->ready;
}

void things_reading(struct things *t, const struct reading *r, int64_t now_ms)
{
    struct things_sensor *s = t->sensors[r->sensor];
    struct things_cause c = {.holds = false, .limit = (double)NAN};
    int64_t time_ms;
    s->counts.n++;
    if (!isfinite(r->value) || r->quality == READING_BAD) {
        s->counts.bad++;
        return;
    }
    s->counts.uncertain += r->quality == READING_UNCERTAIN;
    int how = place(t, s, r, now_ms, &time_ms);
    if (how == DROP)
        return;
    check_limits(s, r->value, &c);
    if (how == CHECK_ONLY) {
        if (c.holds && c.severity == ALARM_CRITICAL)
            things_judge(t, s, &c, s->time_ms);
        return;
    }
    double passed_ms = s->time_ms ? (double)(time_ms - s->time_ms) : 0;
    double last = s->value;
    s->value = r->value;
    s->time_ms = time_ms;
    s->heard_ms = now_ms;
    s->serial = ++t->serial;
    if (!s->held && isnan(s->before))
        s->before = last;
    if (passed_ms > 0 && fabs(r->value - last) / (passed_ms / 1000) > s->max_rate) {
        if (!s->held)
            s->before = last;
        consider(&c, ALARM_RATE, ALARM_CRITICAL, 1, s->max_rate, time_ms - (int64_t)passed_ms);
    }
    learn_interval(s, passed_ms);
    if (s->fresh) /* a second step: the row of the machine is not completed by the others */
        things_row(t, s, time_ms);
    use(s, r->value, time_ms, &c);
    if (s->pattern > 0)
        consider(&c, ALARM_PATTERN, ALARM_WARNING, s->pattern, (double)NAN, 0);
    things_judge(t, s, &c, time_ms);
    if (s->fresh && s->machine && ++s->machine->n_fresh == s->machine->n_members)
        things_row(t, s, time_ms);
}

/* ---- lost signals ---- */

static double lost_after(const struct things_sensor *s)
{
    if (s->lost_ms)
        return s->lost_ms == UINT32_MAX ? (double)INFINITY : (double)s->lost_ms;
    return s->interval_ms > 0 && s->counts.n > 2 ? fmax(MIN_LOST_MS, LOST * s->interval_ms)
                                                 : INFINITY;
}

void things_tick(struct things *t, int64_t now_ms)
{
    for (uint32_t i = 0; i < t->n_sensors; i++) {
        struct things_sensor *s = t->sensors[i];
        if (!s->heard_ms)
            continue;
        struct things_cause c = {.holds = false, .limit = (double)NAN};
        if ((double)(now_ms - s->heard_ms) > lost_after(s))
            consider(&c, ALARM_LOST, ALARM_WARNING, 1, (double)NAN, s->heard_ms);
        if (c.holds || (s->held && s->calm_ms))
            things_judge(t, s, &c, now_ms);
    }
}
