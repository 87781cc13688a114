/* things_row.c - the channels of a machine together: a row of their distances from the usual. */
#include <math.h>

#include "base/mem.h"
#include "things/things_int.h"

#define DAY_MS 86400000.0
#define MIN_ROWS 32u /* to learn from */
#define RELEASE 10.0 /* as for a single channel: the alarm ends a little below where it began */

static double per_day(const struct things_machine *m)
{
    double longest = 1;
    for (uint32_t i = 0; i < m->n_members; i++)
        longest = fmax(longest, m->members[i]->interval_ms);
    return DAY_MS / longest;
}

/* Rows to learn from: as many as the channels learn from. */
static uint32_t rows_wanted(const struct things_machine *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_members; i++)
        n = m->members[i]->channel.learn > n ? m->members[i]->channel.learn : n;
    return n;
}

/* Whether the steps that the members remember are rows: they were made together. */
static bool in_step(const struct things_machine *m)
{
    const struct things_sensor *first = m->members[0];
    for (uint32_t i = 0; i < m->n_members; i++) {
        const struct things_sensor *s = m->members[i];
        if (s->channel.n_kept != first->channel.n_kept || s->channel.next != first->channel.next ||
            s->step_ms != first->step_ms || s->channel.usual.daily)
            return false;
    }
    return true;
}

/* The rows without a step in doubt, the oldest first; rows NULL: only counts them. */
static uint32_t good_rows(const struct things_machine *m, double *rows)
{
    const struct channel *first = &m->members[0]->channel;
    uint32_t n = m->n_members, n_rows = 0, back = first->n_kept;
    for (; back > 0; back--) {
        bool good = true;
        for (uint32_t i = 0; i < n && good; i++)
            good = !channel_is_doubtful(&m->members[i]->channel, back);
        for (uint32_t i = 0; i < n && good && rows; i++) {
            const struct channel *c = &m->members[i]->channel;
            rows[(size_t)n_rows * n + i] =
                (channel_kept(c, back) - c->usual.mean) / c->usual.spread;
        }
        n_rows += good;
    }
    return n_rows;
}

/* The steps that the channels have learned from show how they fit together, as in a recording: from
 * the first verdict of the channels on, and again at each half more. */
static void learn_from_steps(struct things_machine *m)
{
    uint32_t n = m->n_members, has = m->n_learned, wanted = rows_wanted(m);
    uint32_t next = has + has / 2 < wanted ? has + has / 2 : wanted;
    struct err e = {0};
    if (has >= wanted || ++m->n_waiting < next - has)
        return;
    uint32_t n_rows = good_rows(m, NULL);
    double *rows = n_rows >= next && n_rows >= MIN_ROWS
                       ? mem_zalloc_n((size_t)n_rows * n, sizeof(*rows))
                       : NULL;
    if (!rows)
        return; /* too few, or without memory: at one of the next rows */
    good_rows(m, rows);
    if (joint_learn(m->joint, rows, n_rows, &e) == 0) {
        m->n_learned = n_rows;
        m->n_waiting = 0;
    }
    mem_free(rows);
}

/* The members keep rows until there are enough. */
static void keep_row(struct things_machine *m)
{
    uint32_t n = m->n_members, wanted = rows_wanted(m);
    struct err e = {0};
    wanted = wanted < THINGS_JOINT_ROWS ? wanted : THINGS_JOINT_ROWS;
    if (m->n_rows < wanted) {
        for (uint32_t i = 0; i < n; i++)
            m->members[i]->zs[m->n_rows] = (float)m->members[i]->z;
        m->n_rows++;
    }
    if (m->n_rows < wanted)
        return;
    double *rows = mem_zalloc_n((size_t)wanted * n, sizeof(*rows));
    for (uint32_t r = 0; rows && r < wanted; r++)
        for (uint32_t i = 0; i < n; i++)
            rows[r * n + i] = (double)m->members[i]->zs[r];
    if (!rows || joint_learn(m->joint, rows, wanted, &e) < 0)
        m->n_rows = 0; /* without memory: from the next rows */
    else
        m->n_learned = UINT32_MAX; /* once: their steps are not rows */
    mem_free(rows);
}

/* The member whose alarm represents the pattern: one that already has an alarm, or the worst. */
static struct things_sensor *choose_holder(const struct things_machine *m, uint32_t worst)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i]->held)
            return m->members[i];
    return m->members[worst];
}

static void judge_row(struct things *t, struct things_machine *m, uint32_t worst, int64_t time_ms)
{
    struct things_sensor *h = m->holder;
    if (m->members[0]->policy.no_statistics)
        return;
    const double target = channel_target(m->policy.false_alarms, m->n_seen, DAY_MS / per_day(m));
    m->score = 1 / (1 + m->expected / target);
    for (uint32_t i = 0; i < m->n_members && m->expected <= RELEASE * target; i++)
        channel_doubt(&m->members[i]->channel);
    if (m->expected > target * (h ? RELEASE : 1)) {
        if (h)
            h->pattern = 0; /* its alarm ends after its next calm readings */
        m->holder = NULL;
        return;
    }
    h = m->holder = h ? h : choose_holder(m, worst);
    h->pattern = m->score;
    struct things_cause c = {true, ALARM_PATTERN, ALARM_WARNING, h->pattern, (double)NAN, 0};
    things_judge(t, h, &c, time_ms);
}

void things_row(struct things *t, struct things_sensor *s, int64_t time_ms)
{
    struct things_machine *m = s->machine;
    double row[JOINT_MAX_CHANNELS];
    uint32_t worst = 0, n_known = 0;
    if (!m) {
        s->fresh = false;
        return;
    }
    for (uint32_t i = 0; i < m->n_members; i++) {
        if (i < JOINT_MAX_CHANNELS)
            row[i] = m->members[i]->fresh ? m->members[i]->z : (double)NAN;
        n_known += m->members[i]->ready;
        m->members[i]->fresh = false;
    }
    m->n_fresh = 0;
    if (!m->joint || m->n_members < 2 || joint_channels(m->joint) != m->n_members)
        return;
    m->n_seen += 1;
    if (n_known == m->n_members && m->learns) {
        if (m->n_rows == 0 && in_step(m))
            learn_from_steps(m);
        else if (!joint_ready(m->joint))
            keep_row(m);
    }
    if (!joint_ready(m->joint))
        return;
    m->expected = joint_step(m->joint, row, per_day(m), &worst);
    judge_row(t, m, worst, time_ms);
}
