/* things.c - see things.h. */
#include "things/things.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "things/things_int.h"

#define MAX_NAME 128u
#define DEFAULT_ALARMS 1000u
#define DEFAULT_SKEW_MS 60000u
#define DEFAULT_INTERVAL_MS 1000.0

/* ---- names ---- */

static uint32_t find_slot(const struct things *t, const char *name)
{
    uint32_t at = (uint32_t)hash_bytes(name, strlen(name), 0) & (t->n_slots - 1);
    while (t->slots[at] != THINGS_NONE && strcmp(t->sensors[t->slots[at]]->name, name) != 0)
        at = (at + 1) & (t->n_slots - 1);
    return at;
}

uint32_t things_find(const struct things *t, const char *name)
{
    return t->n_slots ? t->slots[find_slot(t, name)] : THINGS_NONE;
}

/* Twice as many slots as sensors, and one sensor more fits. */
static int grow_slots(struct things *t)
{
    if (2 * (t->n_sensors + 1) <= t->n_slots)
        return 0;
    uint32_t n = t->n_slots ? 2 * t->n_slots : 64, *slots = mem_alloc(n * sizeof(*slots));
    if (!slots)
        return SHOAL_ENOMEM;
    mem_free(t->slots);
    t->slots = slots;
    t->n_slots = n;
    memset(slots, 0xff, n * sizeof(*slots));
    for (uint32_t i = 0; i < t->n_sensors; i++)
        slots[find_slot(t, t->sensors[i]->name)] = i;
    return 0;
}

static struct things_machine *find_machine(const struct things *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_machines; i++)
        if (strcmp(t->machines[i]->name, name) == 0)
            return t->machines[i];
    return NULL;
}

/* ---- making ---- */

static void free_machine(struct things_machine *m)
{
    if (!m)
        return;
    mem_free(m->name);
    mem_free(m->title);
    mem_free(m->members);
    joint_destroy(m->joint);
    mem_free(m);
}

static void free_sensor(struct things_sensor *s)
{
    if (!s)
        return;
    mem_free(s->name);
    mem_free(s->title);
    mem_free(s->unit);
    mem_free(s);
}

int things_create(struct things **out, const struct things_opts *o, struct err *e)
{
    struct things *t = mem_zalloc(sizeof(*t));
    *out = NULL;
    if (t) {
        t->opts = *o;
        if (t->opts.max_alarms == 0)
            t->opts.max_alarms = DEFAULT_ALARMS;
        if (t->opts.max_skew_ms == 0)
            t->opts.max_skew_ms = DEFAULT_SKEW_MS;
        t->alarms = mem_zalloc_n(t->opts.max_alarms, sizeof(*t->alarms));
        t->next_id = o->first_id ? o->first_id : 1;
    }
    if (!t || !t->alarms) {
        things_destroy(t);
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u alarms", o->max_alarms);
    }
    *out = t;
    return 0;
}

void things_destroy(struct things *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n_sensors; i++)
        free_sensor(t->sensors[i]);
    for (uint32_t i = 0; i < t->n_machines; i++)
        free_machine(t->machines[i]);
    mem_free(t->sensors);
    mem_free(t->machines);
    mem_free(t->slots);
    for (uint32_t i = 0; t->alarms && i < t->opts.max_alarms; i++) {
        mem_free(t->alarms[i].passage);
        mem_free(t->alarms[i].source);
    }
    mem_free(t->alarms);
    mem_free(t);
}

static bool good_name(const char *name)
{
    return name && *name && strlen(name) <= MAX_NAME;
}

/* One more pointer. */
static int grow(void *list, uint32_t n)
{
    void **v = mem_realloc(*(void **)list, (n + 1) * sizeof(*v));
    if (!v)
        return SHOAL_ENOMEM;
    *(void **)list = v;
    return 0;
}

static double first_above_0(double a, double b, double c)
{
    return a > 0 ? a : b > 0 ? b : c;
}

static struct things_policy policy_of(const struct things_policy *own,
                                      const struct things_machine *m)
{
    static const struct things_policy none = {0};
    const struct things_policy *up = m ? &m->policy : &none;
    return (struct things_policy){
        .false_alarms = first_above_0(own->false_alarms, up->false_alarms, CHANNEL_FALSE_ALARMS),
        .delay_ms = own->delay_ms ? own->delay_ms : up->delay_ms,
        .clear_ms = own->clear_ms ? own->clear_ms : up->clear_ms,
        .hold_off_ms = own->hold_off_ms  ? own->hold_off_ms
                       : up->hold_off_ms ? up->hold_off_ms
                                         : 60000,
        .hysteresis = first_above_0(own->hysteresis, up->hysteresis, 0.02),
        .no_cascade = own->no_cascade || up->no_cascade,
        .no_statistics = own->no_statistics || up->no_statistics,
    };
}

int things_add_machine(struct things *t, const struct things_machine_opts *o, struct err *e)
{
    if (!good_name(o->name))
        return err_set(e, SHOAL_EINVAL, "a machine needs a name of 1 to %u bytes", MAX_NAME);
    if (find_machine(t, o->name))
        return err_set(e, SHOAL_EINVAL, "two machines are named %s", o->name);
    if (t->n_machines == THINGS_MAX_MACHINES)
        return err_set(e, SHOAL_ELIMIT, "more than %u machines", THINGS_MAX_MACHINES);
    struct things_machine *m = mem_zalloc(sizeof(*m));
    if (m) {
        m->name = mem_strdup(o->name);
        m->title = mem_strdup(o->title ? o->title : o->name);
        m->policy = policy_of(&o->policy, NULL);
        m->apart = m->no_joint = o->no_joint;
        m->expected = INFINITY;
        m->learns = !o->joint;
        m->n_seen = o->joint ? joint_facts(o->joint)->rows : 0;
    }
    if (!m || !m->name || !m->title || grow(&t->machines, t->n_machines) < 0 ||
        (o->joint && !o->no_joint && joint_copy(&m->joint, o->joint, e) < 0)) {
        free_machine(m);
        return err_set(e, SHOAL_ENOMEM, "out of memory for the machine %s", o->name);
    }
    t->machines[t->n_machines++] = m;
    return 0;
}

/* Adds one channel. A joint that was learned before already has all of them. */
static int extend_joint(struct things_machine *m, struct err *e)
{
    struct joint *joint = NULL;
    if (m->no_joint || (m->joint && joint_ready(m->joint)))
        return 0;
    if (m->n_members + 1 > JOINT_MAX_CHANNELS) {
        joint_destroy(m->joint); /* too many to watch together */
        m->joint = NULL;
        m->no_joint = true;
        return 0;
    }
    int rc = joint_create(&joint, m->n_members + 1, e);
    if (rc < 0)
        return rc;
    joint_destroy(m->joint);
    m->joint = joint;
    return 0;
}

struct things_sensor_opts things_sensor_defaults(void)
{
    return (struct things_sensor_opts){.normal_low = (double)NAN,
                                       .normal_high = (double)NAN,
                                       .limit_low = (double)NAN,
                                       .limit_high = (double)NAN};
}

static int check_sensor(const struct things *t, const struct things_sensor_opts *o, struct err *e)
{
    if (!good_name(o->name))
        return err_set(e, SHOAL_EINVAL, "a sensor needs a name of 1 to %u bytes", MAX_NAME);
    if (things_find(t, o->name) != THINGS_NONE)
        return err_set(e, SHOAL_EINVAL, "two sensors are named %s", o->name);
    if (o->limit_low >= o->limit_high)
        return err_set(e, SHOAL_EINVAL, "sensor %s: the lower limit must be below the upper one",
                       o->name);
    if (o->normal_low >= o->normal_high)
        return err_set(e, SHOAL_EINVAL, "sensor %s: its normal range is empty", o->name);
    if (o->machine && *o->machine && !find_machine(t, o->machine))
        return err_set(e, SHOAL_EINVAL, "sensor %s: there is no machine %s", o->name, o->machine);
    if (t->n_sensors == THINGS_MAX_SENSORS)
        return err_set(e, SHOAL_ELIMIT, "more than %u sensors", THINGS_MAX_SENSORS);
    return 0;
}

static struct things_sensor *make_sensor(const struct things_sensor_opts *o,
                                         struct things_machine *m)
{
    struct things_sensor *s = mem_zalloc(sizeof(*s));
    if (!s)
        return NULL;
    s->name = mem_strdup(o->name);
    s->title = mem_strdup(o->title ? o->title : o->name);
    s->unit = mem_strdup(o->unit ? o->unit : "");
    s->machine = m;
    s->normal_low = o->normal_low;
    s->normal_high = o->normal_high;
    s->limit_low = o->limit_low;
    s->limit_high = o->limit_high;
    s->max_rate = o->max_rate > 0 ? o->max_rate : INFINITY;
    s->interval_ms = o->interval_ms ? o->interval_ms : 0;
    s->learns_interval = o->interval_ms == 0;
    s->lost_ms = o->lost_ms;
    s->policy = policy_of(&o->policy, m);
    s->expected = INFINITY;
    s->value = s->last_step = s->before = (double)NAN;
    channel_init(&s->channel, o->profile, o->learn,
                 o->interval_ms ? (double)o->interval_ms : DEFAULT_INTERVAL_MS);
    s->channel.always = s->policy.no_cascade;
    s->channel.wanted = s->policy.false_alarms;
    if (s->channel.fixed && s->learns_interval) {
        s->interval_ms = s->channel.usual.interval_ms;
        s->learns_interval = false;
    }
    if (!s->name || !s->title || !s->unit) {
        free_sensor(s);
        return NULL;
    }
    return s;
}

int things_add_sensor(struct things *t, const struct things_sensor_opts *o, struct err *e)
{
    int rc = check_sensor(t, o, e);
    if (rc < 0)
        return rc;
    struct things_machine *m = o->machine && *o->machine ? find_machine(t, o->machine) : NULL;
    struct things_sensor *s = make_sensor(o, m);
    if (!s || grow_slots(t) < 0 || grow(&t->sensors, t->n_sensors) < 0 ||
        (m && (grow(&m->members, m->n_members) < 0 || extend_joint(m, e) < 0))) {
        free_sensor(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for the sensor %s", o->name);
    }
    if (m)
        m->members[m->n_members++] = s;
    t->slots[find_slot(t, s->name)] = t->n_sensors;
    t->sensors[t->n_sensors++] = s;
    return 0;
}

/* ---- views ---- */

uint32_t things_count(const struct things *t)
{
    return t->n_sensors;
}

size_t things_bytes(const struct things *t)
{
    return sizeof(*t) + t->n_sensors * (sizeof(struct things_sensor) + 2 * sizeof(void *)) +
           t->n_machines * sizeof(struct things_machine) + t->n_slots * sizeof(*t->slots) +
           t->opts.max_alarms * sizeof(*t->alarms);
}

double things_machine_score(const struct things *t, const char *machine)
{
    const struct things_machine *m = find_machine(t, machine);
    double most = m ? m->score : 0;
    for (uint32_t i = 0; m && i < m->n_members; i++)
        most = fmax(most, m->members[i]->score);
    return most;
}

double things_machine_expected(const struct things *t, const char *machine)
{
    const struct things_machine *m = find_machine(t, machine);
    double least = INFINITY;
    for (uint32_t i = 0; m && i < m->n_members; i++)
        least = fmin(least, m->n_members * m->members[i]->expected);
    if (!m || !isfinite(m->expected) || !isfinite(least))
        return least;
    return fmin(m->expected, least);
}

void things_view(const struct things *t, uint32_t sensor, struct things_view *out)
{
    const struct things_sensor *s = t->sensors[sensor];
    *out = (struct things_view){.name = s->name,
                                .title = s->title,
                                .unit = s->unit,
                                .machine = s->machine ? s->machine->name : "",
                                .machine_title = s->machine ? s->machine->title : "",
                                .value = s->value,
                                .time_ms = s->time_ms,
                                .low = things_low(s),
                                .high = things_high(s),
                                .limit_low = s->limit_low,
                                .limit_high = s->limit_high,
                                .score = s->score,
                                .expected = s->expected,
                                .alarm = s->held ? s->alarm->id : 0,
                                .serial = s->serial,
                                .learning = things_is_learning(s),
                                .learned = s->channel.usual.n,
                                .learn = s->channel.learn,
                                .doubtful = s->channel.n_doubtful,
                                .counts = s->counts};
}

uint64_t things_serial(const struct things *t)
{
    return t->serial;
}

uint32_t things_history(const struct things *t, uint32_t sensor, float *out, uint32_t max,
                        double *interval_ms, int64_t *end_ms)
{
    const struct things_sensor *s = t->sensors[sensor];
    const struct channel *c = &s->channel;
    uint32_t n = c->n_kept < max ? c->n_kept : max;
    for (uint32_t i = 0; i < n; i++)
        out[i] = c->kept[(c->next + CHANNEL_MAX_LEARN - n + i) % CHANNEL_MAX_LEARN];
    *interval_ms = s->interval_ms > 0 ? s->interval_ms : DEFAULT_INTERVAL_MS;
    *end_ms = s->step_ms;
    return n;
}
