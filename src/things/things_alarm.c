/* things_alarm.c - the life of an alarm: raised, worsened, acknowledged, cleared. */
#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "things/things_int.h"

#define OTHERS_Z 3.0 /* mention another channel if it is this many deviations off */
#define MIN_CLEAR_MS 10000.0

/* ---- events ---- */

static void put_channel(struct alarm_event *e, const struct things_sensor *s, double before)
{
    e->channels[e->n_channels++] = (struct alarm_channel){.sensor = s->name,
                                                          .title = s->title,
                                                          .unit = s->unit,
                                                          .value = s->value,
                                                          .before = before,
                                                          .low = things_low(s),
                                                          .high = things_high(s)};
}

/* Channels of the same machine that show it too, or also left their usual level. */
static void put_others(struct alarm_event *e, const struct things_alarm *a)
{
    const struct things_machine *m = a->lead->machine;
    for (uint32_t i = 0; m && i < m->n_members && e->n_channels < ALARM_MAX_CHANNELS; i++) {
        const struct things_sensor *o = m->members[i];
        const struct profile *p = &o->channel.usual;
        double usual = channel_unfolded(&o->channel, channel_usual(p, o->time_ms));
        if (o == a->lead)
            continue;
        if (o->held && o->alarm == a)
            put_channel(e, o, o->before);
        else if (p->n && fabs(o->value - usual) > OTHERS_Z * p->spread)
            put_channel(e, o, usual);
    }
}

/* Who follows the serials sees the alarm, and its sensor, as they are now. */
static void mark(struct things *t, struct things_alarm *a)
{
    t->alarm_serial = a->event.serial = a->sensor->serial = ++t->serial;
}

static void describe(struct things_alarm *a)
{
    struct buf text;
    buf_init(&text, 4096);
    alarm_explain(&text, &a->event);
    snprintf(a->text, sizeof(a->text), "%s", buf_str(&text));
    buf_fini(&text);
}

static void send(struct things *t, struct things_alarm *a, enum alarm_change change,
                 int64_t time_ms)
{
    a->event.change = change;
    mark(t, a);
    a->event.changed_ms = time_ms;
    if (change == ALARM_RAISED || change == ALARM_WORSENED || change == ALARM_EXTENDED)
        describe(a);
    a->event.text = a->text;
    a->event.acknowledged_by = a->by;
    if (t->opts.alarm)
        t->opts.alarm(t->opts.ctx, &a->event);
}

static void fill_channels(struct things_alarm *a)
{
    a->event.n_channels = 0;
    put_channel(&a->event, a->lead, a->lead->before);
    put_others(&a->event, a);
}

/* The cause of a sensor is what the alarm is about. */
static void fill(struct things_alarm *a, struct things_sensor *s, const struct things_cause *c,
                 int64_t time_ms)
{
    struct alarm_event *e = &a->event;
    a->lead = s;
    e->kind = c->kind;
    e->severity = c->severity;
    e->score = c->score;
    e->limit = c->limit;
    e->learned = c->kind >= ALARM_SPIKE && c->kind != ALARM_LOST && things_is_learning(s)
                     ? s->channel.usual.n
                     : 0;
    e->changed_ms = time_ms;
    fill_channels(a);
}

static const struct alarm_evidence *find_evidence(const struct alarm_event *e,
                                                  const struct things_sensor *s)
{
    for (uint32_t i = 0; i < e->n_evidence; i++)
        if (e->evidence[i].sensor == s->name)
            return &e->evidence[i];
    return NULL;
}

/* The chain of what was observed: each kind of each sensor once. */
static void add_evidence(struct things_alarm *a, const struct things_sensor *s,
                         const struct things_cause *c, int64_t time_ms)
{
    struct alarm_event *e = &a->event;
    for (uint32_t i = 0; i < e->n_evidence; i++)
        if (e->evidence[i].sensor == s->name && e->evidence[i].kind == c->kind)
            return;
    if (e->n_evidence < ALARM_MAX_EVIDENCE)
        e->evidence[e->n_evidence++] =
            (struct alarm_evidence){.sensor = s->name,
                                    .title = s->title,
                                    .unit = s->unit,
                                    .kind = c->kind,
                                    .severity = c->severity,
                                    .value = s->value,
                                    .before = s->before,
                                    .since_ms = c->since_ms ? c->since_ms : time_ms,
                                    .seen_ms = time_ms};
}

/* ---- the sensors of an alarm ---- */

static void take_cause(struct things_sensor *s, struct things_alarm *a, enum alarm_kind kind)
{
    s->alarm = a;
    s->old = NULL;
    s->held = true;
    s->kind = kind;
    s->calm_ms = 0;
}

/* Calls fn for each sensor of the alarm. */
static void each_sensor(struct things_alarm *a, void (*fn)(struct things_sensor *s, void *arg),
                        void *arg)
{
    const struct things_machine *m = a->sensor->machine;
    if (!m)
        fn(a->sensor, arg);
    for (uint32_t i = 0; m && i < m->n_members; i++)
        if (m->members[i]->alarm == a || m->members[i]->old == a)
            fn(m->members[i], arg);
}

static void count_held(struct things_sensor *s, void *arg)
{
    *(uint32_t *)arg += s->held;
}

static void let_go(struct things_sensor *s, void *old)
{
    s->alarm = NULL;
    s->old = old;
    s->held = false;
    s->calm_ms = 0;
}

/* Whether two sensors of a machine with these causes show the same fault. A lost signal says
 * something about the line, not about the machine. */
static bool same_fault(enum alarm_kind a, enum alarm_kind b)
{
    bool line_a = a == ALARM_LOST || a == ALARM_STUCK, line_b = b == ALARM_LOST || b == ALARM_STUCK;
    return line_a || line_b ? a == b : true;
}

/* The alarm that a new cause belongs to: one of the same machine whose causes persist. */
static struct things_alarm *find_group(const struct things_sensor *s, const struct things_cause *c)
{
    const struct things_machine *m = s->machine;
    for (uint32_t i = 0; m && !m->apart && i < m->n_members; i++)
        if (m->members[i]->held && same_fault(m->members[i]->kind, c->kind))
            return m->members[i]->alarm;
    return NULL;
}

/* The oldest slot that is free or whose alarm has ended; otherwise the oldest of all. */
static struct things_alarm *take_place(struct things *t)
{
    struct things_alarm *best = &t->alarms[0];
    for (uint32_t i = 0; i < t->opts.max_alarms; i++) {
        struct things_alarm *a = &t->alarms[i];
        bool open = a->id && a->sensor->alarm == a;
        bool best_open = best->id && best->sensor->alarm == best;
        if ((best_open && !open) || (best_open == open && a->id < best->id))
            best = a;
        if (a->id == 0)
            return a;
    }
    each_sensor(best, let_go, NULL);
    return best;
}

static void raise_alarm(struct things *t, struct things_sensor *s, const struct things_cause *c,
                        int64_t time_ms)
{
    struct things_alarm *a = take_place(t);
    mem_free(a->passage);
    mem_free(a->source);
    *a = (struct things_alarm){.id = t->next_id++, .sensor = s};
    a->event = (struct alarm_event){.id = a->id,
                                    .machine = s->machine ? s->machine->name : "",
                                    .machine_title = s->machine ? s->machine->title : "",
                                    .since_ms = c->since_ms ? c->since_ms : time_ms,
                                    .raised_ms = time_ms};
    take_cause(s, a, c->kind);
    fill(a, s, c, time_ms);
    add_evidence(a, s, c, time_ms);
    send(t, a, ALARM_RAISED, time_ms);
}

/* False: out of memory. */
static bool copy_passage(struct things_alarm *a, const struct alarm_event *e)
{
    if (!e->passage || !e->source)
        return true;
    a->passage = mem_strdup(e->passage);
    a->source = mem_strdup(e->source);
    return a->passage && a->source;
}

int things_restore(struct things *t, const struct alarm_event *e, struct err *err)
{
    uint32_t i = e->n_channels ? things_find(t, e->channels[0].sensor) : THINGS_NONE;
    if (i == THINGS_NONE)
        return err_set(err, SHOAL_ENOTFOUND, "the sensor of alarm %llu is not configured",
                       (unsigned long long)e->id);
    struct things_sensor *s = t->sensors[i];
    if (s->alarm || e->id == 0)
        return err_set(err, SHOAL_EINVAL, "%s has an alarm already", s->name);
    struct things_alarm *a = take_place(t);
    mem_free(a->passage);
    mem_free(a->source);
    *a = (struct things_alarm){.id = e->id, .sensor = s, .lead = s};
    if (!copy_passage(a, e)) {
        mem_free(a->passage);
        mem_free(a->source);
        a->passage = a->source = NULL; /* the alarm matters more */
    }
    snprintf(a->by, sizeof(a->by), "%s", e->acknowledged_by ? e->acknowledged_by : "");
    snprintf(a->text, sizeof(a->text), "%s", e->text ? e->text : "");
    a->event = *e;
    a->event.machine = s->machine ? s->machine->name : "";
    a->event.machine_title = s->machine ? s->machine->title : "";
    a->event.n_channels = 0;
    put_channel(&a->event, s, e->channels[0].before);
    a->event.channels[0].value = e->channels[0].value;
    a->event.cleared_ms = 0;
    a->event.acknowledged_by = a->by;
    a->event.text = a->text;
    a->event.passage = a->passage;
    a->event.source = a->source;
    a->event.n_evidence = 0;
    s->before = e->channels[0].before;
    take_cause(s, a, e->kind);
    const struct things_cause c = {true, e->kind, e->severity, e->score, e->limit, e->since_ms};
    add_evidence(a, s, &c, e->raised_ms);
    mark(t, a);
    if (t->next_id <= e->id)
        t->next_id = e->id + 1;
    return 0;
}

/* ---- judging ---- */

static int64_t clear_ms(const struct things_sensor *s)
{
    return s->policy.clear_ms ? s->policy.clear_ms
                              : (int64_t)fmax(MIN_CLEAR_MS, 10 * s->interval_ms);
}

static void end_alarm(struct things *t, struct things_alarm *a, int64_t time_ms)
{
    a->event.cleared_ms = time_ms;
    a->event.channels[0].value = a->lead->value;
    each_sensor(a, let_go, a);
    send(t, a, ALARM_CLEARED, time_ms);
}

/* An alarm that ended a moment ago continues, without a new event, if the same cause of the sensor
 * returns and is not worse. */
static bool continues(const struct things_sensor *s, const struct things_cause *c, int64_t time_ms)
{
    const struct things_alarm *old = s->old;
    if (!old || old->sensor->alarm || c->severity > old->event.severity ||
        time_ms - old->event.cleared_ms >= s->policy.hold_off_ms)
        return false;
    const struct alarm_evidence *v = find_evidence(&old->event, s);
    return v && (v->kind == c->kind ||
                 (things_is_statistical(v->kind) && things_is_statistical(c->kind)));
}

static void reopen(struct things *t, struct things_sensor *s, const struct things_cause *c)
{
    struct things_alarm *a = s->old;
    take_cause(s, a, c->kind);
    if (a->sensor != s) { /* it keeps the alarm, but has no cause */
        a->sensor->alarm = a;
        a->sensor->old = NULL;
    }
    a->event.cleared_ms = 0;
    a->event.change = ALARM_RAISED;
    mark(t, a);
}

static void hold(struct things *t, struct things_sensor *s, const struct things_cause *c,
                 int64_t time_ms)
{
    struct things_alarm *a = s->alarm;
    bool known = find_evidence(&a->event, s) != NULL, worse = c->severity > a->event.severity;
    take_cause(s, a, c->kind);
    if (c->score > a->event.score)
        a->event.score = c->score;
    add_evidence(a, s, c, time_ms);
    if (known && !worse)
        return;
    if (worse)
        fill(a, s, c, time_ms);
    else
        fill_channels(a);
    a->event.acknowledged = false; /* a person has seen less than this */
    a->by[0] = '\0';
    send(t, a, worse ? ALARM_WORSENED : ALARM_EXTENDED, time_ms);
}

static void calm(struct things *t, struct things_sensor *s, int64_t time_ms)
{
    struct things_alarm *a = s->alarm;
    uint32_t n_held = 0;
    s->pending_ms = 0;
    if (!s->held)
        return;
    if (s->calm_ms == 0)
        s->calm_ms = time_ms;
    if (time_ms - s->calm_ms < clear_ms(s))
        return;
    s->held = false;
    each_sensor(a, count_held, &n_held);
    if (n_held == 0)
        end_alarm(t, a, time_ms);
}

void things_judge(struct things *t, struct things_sensor *s, const struct things_cause *c,
                  int64_t time_ms)
{
    if (!c->holds) {
        calm(t, s, time_ms);
        return;
    }
    if (s->alarm) {
        hold(t, s, c, time_ms);
        return;
    }
    if (s->pending_ms == 0)
        s->pending_ms = time_ms;
    if (time_ms - s->pending_ms < s->policy.delay_ms)
        return;
    struct things_alarm *group = find_group(s, c);
    if (group) {
        s->alarm = group;
        hold(t, s, c, time_ms);
    } else if (continues(s, c, time_ms)) {
        reopen(t, s, c);
    } else {
        raise_alarm(t, s, c, time_ms);
    }
}

/* ---- lists ---- */

static bool is_open(const struct things_alarm *a)
{
    return a->sensor->alarm == a;
}

uint32_t things_alarms(const struct things *t, struct alarm_event *out, uint32_t max,
                       uint64_t after, bool only_open)
{
    uint32_t n = 0, k = 0;
    uint64_t below = UINT64_MAX;
    for (uint32_t i = 0; i < t->opts.max_alarms; i++) {
        const struct things_alarm *a = &t->alarms[i];
        n += a->id > after && (!only_open || is_open(a));
    }
    while (k < n && k < max) {
        const struct things_alarm *best = NULL;
        for (uint32_t i = 0; i < t->opts.max_alarms; i++) {
            const struct things_alarm *a = &t->alarms[i];
            if (a->id > after && a->id < below && (!only_open || is_open(a)) &&
                (!best || a->id > best->id))
                best = a;
        }
        if (!best)
            break;
        out[k++] = best->event;
        below = best->id;
    }
    return n;
}

static struct things_alarm *find(const struct things *t, uint64_t id)
{
    for (uint32_t i = 0; id && i < t->opts.max_alarms; i++)
        if (t->alarms[i].id == id)
            return &t->alarms[i];
    return NULL;
}

bool things_alarm_changed(const struct things *t, uint64_t after, struct alarm_event *out)
{
    const struct things_alarm *best = NULL;
    for (uint32_t i = 0; after < t->alarm_serial && i < t->opts.max_alarms; i++) {
        const struct things_alarm *a = &t->alarms[i];
        if (a->id && a->event.serial > after && (!best || a->event.serial < best->event.serial))
            best = a;
    }
    if (best)
        *out = best->event;
    return best != NULL;
}

bool things_alarm(const struct things *t, uint64_t id, struct alarm_event *out)
{
    const struct things_alarm *a = find(t, id);
    if (a)
        *out = a->event;
    return a != NULL;
}

int things_acknowledge(struct things *t, uint64_t id, const char *by, int64_t now_ms, struct err *e)
{
    struct things_alarm *a = find(t, id);
    if (!a)
        return err_set(e, SHOAL_ENOTFOUND, "there is no alarm %llu", (unsigned long long)id);
    if (a->event.acknowledged)
        return 0;
    a->event.acknowledged = true;
    snprintf(a->by, sizeof(a->by), "%s", by ? by : "");
    send(t, a, ALARM_ACKNOWLEDGED, now_ms);
    return 0;
}

int things_explain(struct things *t, uint64_t id, const char *passage, const char *source,
                   int64_t now_ms, struct err *e)
{
    struct things_alarm *a = find(t, id);
    if (!a || !is_open(a))
        return err_set(e, SHOAL_ENOTFOUND, "there is no open alarm %llu", (unsigned long long)id);
    char *text = mem_strdup(passage), *from = mem_strdup(source);
    if (!text || !from) {
        mem_free(text);
        mem_free(from);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a passage");
    }
    mem_free(a->passage);
    mem_free(a->source);
    a->event.passage = a->passage = text;
    a->event.source = a->source = from;
    send(t, a, ALARM_EXPLAINED, now_ms);
    return 0;
}
