/* things_row.c - the channels of a machine together: a row of their distances from the usual. */
#include <math.h>

#include "base/mem.h"
#include "things/things_int.h"

#define DAY_MS 86400000.0
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
    return n < THINGS_JOINT_ROWS ? n : THINGS_JOINT_ROWS;
}

/* How many of the last steps that the members remember are rows: all of them if they learned in the
 * same row and have stepped together since; otherwise 0. */
static uint32_t rows_in_step(const struct things_machine *m)
{
    const struct channel *first = &m->members[0]->channel;
    for (uint32_t i = 0; i < m->n_members; i++) {
        const struct things_sensor *s = m->members[i];
        const struct channel *c = &s->channel;
        if (c->n_kept != first->n_kept || c->n_since != first->n_since ||
            c->learn != first->learn || s->step_ms != m->members[0]->step_ms || c->usual.daily)
            return 0;
    }
    return first->n_kept >= rows_wanted(m) ? first->n_kept : 0;
}

/* The steps that the channels have just learned from show how they fit together, as in a recording,
 * so the machine need not wait for as many again. False: they are not in step. */
static bool learn_from_steps(struct things_machine *m)
{
    uint32_t n = m->n_members, n_rows = rows_in_step(m);
    struct err e = {0};
    double *rows = n_rows ? mem_zalloc_n((size_t)n_rows * n, sizeof(*rows)) : NULL;
    for (uint32_t i = 0; rows && i < n; i++) {
        const struct channel *c = &m->members[i]->channel;
        uint32_t oldest = c->n_kept == c->learn ? c->next : 0;
        for (uint32_t r = 0; r < n_rows; r++)
            rows[(size_t)r * n + i] =
                ((double)c->kept[(oldest + r) % c->learn] - c->usual.mean) / c->usual.spread;
    }
    bool ok = rows && joint_learn(m->joint, rows, n_rows, &e) == 0;
    mem_free(rows);
    return ok;
}

/* The members keep rows until there are enough. */
static void keep_row(struct things_machine *m)
{
    uint32_t n = m->n_members, wanted = rows_wanted(m);
    struct err e = {0};
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
    mem_free(rows);
}

/* The member whose alarm represents the pattern: one that already has an alarm, or the worst. */
static struct things_sensor *choose_holder(const struct things_machine *m, uint32_t worst)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i]->alarm)
            return m->members[i];
    return m->members[worst];
}

static void judge_row(struct things *t, struct things_machine *m, uint32_t worst, int64_t time_ms)
{
    const struct things_policy *p = &m->members[0]->policy;
    struct things_sensor *h = m->holder;
    if (p->no_statistics)
        return;
    if (m->expected > p->false_alarms * (h ? RELEASE : 1)) {
        if (h)
            h->pattern = 0; /* its alarm ends after its next calm readings */
        m->holder = NULL;
        return;
    }
    h = m->holder = h ? h : choose_holder(m, worst);
    h->pattern = 1 / (1 + m->expected / p->false_alarms);
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
    if (!joint_ready(m->joint)) {
        if (n_known == m->n_members && (m->n_rows > 0 || !learn_from_steps(m)))
            keep_row(m);
        return;
    }
    m->expected = joint_step(m->joint, row, per_day(m), &worst);
    judge_row(t, m, worst, time_ms);
}
