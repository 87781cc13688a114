/* plant.c - see plant.h. */
#include "site/things/plant.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "config/config.h"
#include "host/confidence_watch.h"
#include "host/prometheus.h"
#include "site/things/reading_log.h"
#include "things/machine_file.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define TICK_MS 500
#define DAY_MS 86400000
#define MAX_SKEW_MS 60000 /* as things.h */
#define MAX_FILE_BYTES ((size_t)64 << 20)
#define MAX_EVENT_BYTES ((size_t)64 << 10)

/* An event for the listeners, with copies of texts that may change. */
struct told {
    struct told *next;
    struct alarm_event event;
    char *text, *by, *passage, *source;
};

/* An alarm that was reported and is open. */
struct open_alarm {
    uint64_t id; /* 0: none */
    int64_t changed_ms;
    char *json; /* its last event */
};

/* Two locks. `lock` guards the things and is held for microseconds: event loops take it. `telling`
 * is held while listeners and the file write to disk; a thread that takes both takes `telling`
 * first. */
struct plant {
    pthread_mutex_t lock, telling;
    pthread_cond_t wake;
    pthread_t thread;
    bool has_thread, stop;
    struct things *things;
    struct reading_log *log;    /* NULL: no history */
    struct told *first, **last; /* undelivered events, in order */
    uint64_t n_events;          /* so far */
    struct plant_job *jobs, **last_job;
    int64_t last_ms;
    /* under telling */
    struct {
        plant_alarm_fn fn, restored;
        void *ctx;
    } listeners[PLANT_MAX_LISTENERS];
    uint32_t n_listeners;
    struct open_alarm *open; /* [n_sensors] */
    bool behind;             /* the file is */
    char *file;
    _Atomic uint32_t n_open;
    void (*poll)(void *ctx, struct plant *p); /* or NULL */
    void *poll_ctx;
};

/* Our clock, which must not go back; under lock. */
static int64_t now_ms(struct plant *p)
{
    int64_t now = (int64_t)clock_unix_ms();
    p->last_ms = now > p->last_ms ? now : p->last_ms;
    return p->last_ms;
}

/* ---- open alarms on disk ---- */

static void save(struct plant *p)
{
    struct buf b;
    struct err e = {0};
    bool any = false;
    p->behind = false;
    if (!p->file)
        return;
    buf_init(&b, MAX_FILE_BYTES);
    buf_puts(&b, "{\"open\":[");
    for (uint32_t i = 0; i < things_count(p->things); i++) {
        if (!p->open[i].id)
            continue;
        buf_puts(&b, any ? ",\n" : "\n");
        buf_puts(&b, p->open[i].json);
        any = true;
    }
    buf_puts(&b, "]}\n");
    int rc = b.rc < 0 ? b.rc : file_replace(p->file, buf_str(&b), b.len, &e);
    if (rc < 0)
        log_warn("plant", "cannot save open alarms: %s", e.msg[0] ? e.msg : err_text(rc));
    buf_fini(&b);
}

/* The last reported alarm of a sensor; takes json. NULL: it has none. */
static void note(struct plant *p, uint32_t sensor, const struct alarm_event *e, char *json)
{
    struct open_alarm *a = &p->open[sensor];
    bool was = a->id != 0;
    mem_free(a->json);
    *a = (struct open_alarm){.id = json ? e->id : 0, .changed_ms = e->changed_ms, .json = json};
    if (json && !was)
        atomic_fetch_add(&p->n_open, 1);
    else if (!json && was)
        atomic_fetch_sub(&p->n_open, 1);
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) && v->valuedouble > 0 && v->valuedouble < 9e15 ? v->valuedouble : 0;
}

static double number_or_nan(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

static const char *text_of(const cJSON *o, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
}

/* Index of a name in a table; 0 if unknown. */
static uint32_t index_of(const cJSON *o, const char *key, uint32_t n, const char *(*name)(uint32_t))
{
    const char *text = text_of(o, key);
    for (uint32_t i = 0; text && i < n; i++)
        if (strcmp(text, name(i)) == 0)
            return i;
    return 0;
}

static const char *kind_name(uint32_t i)
{
    return alarm_kind_name((enum alarm_kind)i);
}

static const char *severity_name(uint32_t i)
{
    return alarm_severity_name((enum alarm_severity)i);
}

static const char *change_name(uint32_t i)
{
    return alarm_change_name((enum alarm_change)i);
}

/* Parses an event written by alarm_json; its texts are borrowed from the JSON. False: its sensor is
 * unknown. */
static bool read_event(const struct plant *p, const cJSON *o, struct alarm_event *e,
                       uint32_t *sensor)
{
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(o, "channels"), 0);
    const char *name = text_of(first, "sensor");
    *sensor = name ? things_find(p->things, name) : THINGS_NONE;
    *e = (struct alarm_event){
        .change = (enum alarm_change)index_of(o, "change", ALARM_N_CHANGES, change_name),
        .id = (uint64_t)number(o, "id"),
        .kind = (enum alarm_kind)index_of(o, "kind", ALARM_N_KINDS, kind_name),
        .severity = (enum alarm_severity)index_of(o, "severity", ALARM_CRITICAL + 1, severity_name),
        .n_channels = 1,
        .score = number(o, "score"),
        .limit = number_or_nan(o, "limit"),
        .since_ms = (int64_t)number(o, "since_ms"),
        .raised_ms = (int64_t)number(o, "raised_ms"),
        .changed_ms = (int64_t)number(o, "changed_ms"),
        .acknowledged = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "acknowledged")),
        .acknowledged_by = text_of(o, "acknowledged_by"),
        .text = text_of(o, "text"),
        .passage = text_of(o, "passage"),
        .source = text_of(o, "source")};
    e->channels[0] = (struct alarm_channel){.sensor = name,
                                            .value = number_or_nan(first, "value"),
                                            .before = number_or_nan(first, "before")};
    return *sensor != THINGS_NONE && e->id != 0;
}

/* A damaged file is treated as missing. */
static void load(struct plant *p)
{
    cJSON *root = NULL;
    const cJSON *one;
    struct err e = {0};
    if (!p->file || access(p->file, F_OK) < 0)
        return;
    if (json_in_file(&root, "open alarms", p->file, MAX_FILE_BYTES, &e) < 0) {
        log_warn("plant", "cannot read the open alarms of the last run: %s", e.msg);
        return;
    }
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(root, "open"))
    {
        struct alarm_event event;
        uint32_t sensor;
        char *text = read_event(p, one, &event, &sensor) ? cJSON_PrintUnformatted(one) : NULL;
        char *json = text ? mem_strdup(text) : NULL;
        cJSON_free(text);
        if (json)
            note(p, sensor, &event, json);
    }
    cJSON_Delete(root);
}

void plant_recall(struct plant *p, const char *json, size_t n)
{
    cJSON *root = cJSON_ParseWithLength(json, n);
    struct alarm_event e;
    uint32_t sensor;
    if (read_event(p, root, &e, &sensor)) {
        const struct open_alarm *a = &p->open[sensor];
        bool older = e.id < a->id || (e.id == a->id && e.changed_ms < a->changed_ms);
        if (!older && e.change != ALARM_CLEARED)
            note(p, sensor, &e, mem_strndup(json, n));
        else if (!older && a->id == e.id)
            note(p, sensor, &e, NULL);
        p->behind = true; /* once its message is delivered, only the file knows it */
    }
    cJSON_Delete(root);
}

static void tell_restored(struct plant *p, const struct alarm_event *e)
{
    for (uint32_t i = 0; i < p->n_listeners; i++)
        if (p->listeners[i].restored)
            p->listeners[i].restored(p->listeners[i].ctx, e);
}

/* Restores alarms that were open at the end of the last run. */
static void restore(struct plant *p)
{
    for (uint32_t i = 0; i < things_count(p->things); i++) {
        cJSON *root = p->open[i].id ? cJSON_Parse(p->open[i].json) : NULL;
        struct alarm_event event;
        struct err e = {0};
        uint32_t sensor;
        if (root && read_event(p, root, &event, &sensor)) {
            if (things_restore(p->things, &event, &e) < 0)
                log_warn("plant", "cannot restore an alarm of the last run: %s", e.msg);
            else if (things_alarm(p->things, event.id, &event))
                tell_restored(p, &event);
        }
        cJSON_Delete(root);
    }
    if (p->behind)
        save(p);
    if (atomic_load(&p->n_open) > 0)
        log_info("plant", "alarms that were open at the end of the last run: %u",
                 atomic_load(&p->n_open));
}

/* ---- alarms ---- */

static void free_told(struct told *x)
{
    if (!x)
        return;
    mem_free(x->text);
    mem_free(x->by);
    mem_free(x->passage);
    mem_free(x->source);
    mem_free(x);
}

static char *copy(const char *text, bool *ok)
{
    char *c = text ? mem_strdup(text) : NULL;
    *ok = *ok && (c || !text);
    return c;
}

/* Under lock, within a call of the things: the caller notifies the listeners afterwards. */
static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct plant *p = ctx;
    struct told *x = mem_zalloc(sizeof(*x));
    bool ok = x != NULL;
    p->n_events++;
    if (x) {
        x->event = *e;
        x->event.text = x->text = copy(e->text, &ok);
        x->event.acknowledged_by = x->by = copy(e->acknowledged_by, &ok);
        x->event.passage = x->passage = copy(e->passage, &ok);
        x->event.source = x->source = copy(e->source, &ok);
    }
    if (!ok) {
        free_told(x);
        log_error("plant", "out of memory: alarm %llu is not reported", (unsigned long long)e->id);
        return;
    }
    *p->last = x;
    p->last = &x->next;
}

/* The first undelivered event. */
static struct told *take_event(struct plant *p)
{
    pthread_mutex_lock(&p->lock);
    struct told *x = p->first;
    if (x) {
        p->first = x->next;
        p->last = p->first ? p->last : &p->first;
    }
    pthread_mutex_unlock(&p->lock);
    return x;
}

/* Listeners first: they must store the event before we record it as reported. */
static void tell(struct plant *p, const struct alarm_event *e)
{
    uint32_t sensor = e->n_channels ? things_find(p->things, e->channels[0].sensor) : THINGS_NONE;
    struct buf b;
    for (uint32_t i = 0; i < p->n_listeners; i++)
        p->listeners[i].fn(p->listeners[i].ctx, e);
    if (sensor == THINGS_NONE)
        return;
    buf_init(&b, MAX_EVENT_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    alarm_json(&j, e);
    json_out_object_end(&j);
    note(p, sensor, e, e->change == ALARM_CLEARED ? NULL : buf_take(&b, NULL));
    buf_fini(&b);
    p->behind = true;
}

/* Delivers all pending events. When it returns, the events of this thread's last call are on disk,
 * whichever thread delivered them. */
static void tell_all(struct plant *p)
{
    struct told *x;
    pthread_mutex_lock(&p->telling);
    while ((x = take_event(p))) {
        tell(p, &x->event);
        free_told(x);
    }
    if (p->behind)
        save(p);
    pthread_mutex_unlock(&p->telling);
}

/* ---- the thread ---- */

static void run_jobs(struct plant *p)
{
    for (;;) {
        pthread_mutex_lock(&p->lock);
        struct plant_job *j = p->jobs;
        if (j) {
            p->jobs = j->next;
            p->last_job = p->jobs ? p->last_job : &p->jobs;
        }
        pthread_mutex_unlock(&p->lock);
        if (!j)
            return;
        j->fn(j, p);
    }
}

static void *run(void *arg)
{
    struct plant *p = arg;
    uint64_t next_ns = clock_ns();
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (!p->jobs && clock_ns() < next_ns) {
            const struct timespec ts = {.tv_sec = (time_t)(next_ns / 1000000000u),
                                        .tv_nsec = (long)(next_ns % 1000000000u)};
            pthread_cond_timedwait(&p->wake, &p->lock, &ts);
            continue;
        }
        uint64_t before = p->n_events;
        const bool tick = clock_ns() >= next_ns;
        if (tick) {
            things_tick(p->things, now_ms(p));
            next_ns = clock_ns() + TICK_MS * 1000000ull;
        }
        bool any = p->n_events != before;
        pthread_mutex_unlock(&p->lock);
        if (any)
            tell_all(p);
        if (tick && p->poll)
            p->poll(p->poll_ctx, p);
        run_jobs(p);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    run_jobs(p);
    return NULL;
}

void plant_submit(struct plant *p, struct plant_job *j)
{
    j->next = NULL;
    pthread_mutex_lock(&p->lock);
    bool runs = p->has_thread && !p->stop;
    if (runs) {
        *p->last_job = j;
        p->last_job = &j->next;
        pthread_cond_signal(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
    if (!runs)
        j->fn(j, p);
}

/* ---- life ---- */

/* Whether the machine's sensors are the file's channels, in its order: then they can be watched
 * together as they were learned. */
static bool same_channels(const struct machine_file *m, const char *machine,
                          const struct config_things *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_sensors; i++) {
        const struct things_sensor_opts *s = &c->sensors[i];
        if (s->machine && strcmp(s->machine, machine) == 0 &&
            (n >= m->n || strcmp(m->names[n++], s->name) != 0))
            return false;
    }
    return n == m->n;
}

/* The sensors of a machine get the profiles of its file. */
static int use_profiles(struct things_sensor_opts *sensors, const struct machine_file *m,
                        const char *machine, const struct config_things *c, const char *path,
                        struct err *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_sensors; i++) {
        struct things_sensor_opts *s = &sensors[i];
        uint32_t k = s->machine && strcmp(s->machine, machine) == 0
                         ? machine_file_channel(m, s->name)
                         : UINT32_MAX;
        if (k == UINT32_MAX)
            continue;
        s->profile = &m->profiles[k];
        if (s->interval_ms == 0)
            s->interval_ms = (uint32_t)fmin(fmax(m->profiles[k].interval_ms, 1), 1e9);
        n++;
    }
    return n ? 0
             : err_set(e, SHOAL_EINVAL,
                       "machine %s: no sensor of it is a channel of %.100s, whose first is '%.60s'",
                       machine, path, m->names[0]);
}

static int add_machine(struct plant *p, const struct config_things *c, uint32_t i,
                       struct machine_file **file, struct things_sensor_opts *sensors,
                       struct err *e)
{
    struct things_machine_opts o = c->machines[i];
    int rc = c->learned[i] ? machine_file_open(file, c->learned[i], e) : 0;
    if (rc == 0 && *file)
        rc = use_profiles(sensors, *file, o.name, c, c->learned[i], e);
    if (rc == 0 && *file && same_channels(*file, o.name, c))
        o.joint = (*file)->joint;
    return rc < 0 ? rc : things_add_machine(p->things, &o, e);
}

/* ---- models ---- */

/* Models that classify: only they have confidences. */
static bool is_watched(const struct registry_spec *m)
{
    return m->calibration.rows > 0 || (m->task && strcmp(m->task, "classify") == 0);
}

static uint32_t count_watched(const struct config *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_models; i++)
        n += is_watched(&c->models[i]);
    return n;
}

bool plant_is_needed(const struct config *c)
{
    return c->things.n_sensors > 0 ||
           ((c->webhooks.n > 0 || c->mqtt.broker) && count_watched(c) > 0);
}

/* The index of ensemble/drift.h as a sensor with a limit: model_watch.h says when it is beyond. */
static int add_model(struct plant *p, const char *model, struct err *e)
{
    struct things_sensor_opts o = things_sensor_defaults();
    char name[256], title[256];
    snprintf(name, sizeof(name), PLANT_CONFIDENCE "%s", model);
    snprintf(title, sizeof(title), "drift of the confidences of %s", model);
    o.name = name;
    o.title = title;
    o.limit_high = CONFIDENCE_WATCH_LIMIT;
    o.lost_ms = UINT32_MAX;
    o.policy.no_statistics = true;
    o.policy.clear_ms = 1;
    return things_add_sensor(p->things, &o, e);
}

static int add_models(struct plant *p, const struct config *c, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < c->n_models && rc == 0; i++)
        if (is_watched(&c->models[i]))
            rc = add_model(p, c->models[i].name, e);
    return rc;
}

static int add_all(struct plant *p, const struct config *config, struct err *e)
{
    const struct config_things *c = &config->things;
    struct machine_file **files = mem_zalloc_n(c->n_machines + 1, sizeof(struct machine_file *));
    struct things_sensor_opts *sensors = mem_alloc(c->n_sensors * sizeof(*sensors));
    int rc = files && sensors ? 0 : err_set(e, SHOAL_ENOMEM, "sensors");
    if (rc == 0)
        memcpy(sensors, c->sensors, c->n_sensors * sizeof(*sensors));
    for (uint32_t i = 0; i < c->n_machines && rc == 0; i++)
        rc = add_machine(p, c, i, &files[i], sensors, e);
    for (uint32_t i = 0; i < c->n_sensors && rc == 0; i++)
        rc = things_add_sensor(p->things, &sensors[i], e);
    for (uint32_t i = 0; files && i < c->n_machines; i++)
        machine_file_destroy(files[i]);
    mem_free(files);
    mem_free(sensors);
    return rc;
}

int plant_create(struct plant **out, const struct config *config, const char *file, struct err *e)
{
    const bool needed = plant_is_needed(config);
    struct plant *p = needed ? mem_zalloc(sizeof(*p)) : NULL;
    *out = NULL;
    if (!p)
        return needed ? err_set(e, SHOAL_ENOMEM, "sensors") : 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->telling, NULL);
    p->last = &p->first;
    p->last_job = &p->jobs;
    cond_init(&p->wake);
    /* A number that no earlier process can have used: it raised less than one alarm a millisecond.
     */
    const struct things_opts o = {.alarm = on_alarm, .ctx = p, .first_id = (uint64_t)now_ms(p)};
    int rc = things_create(&p->things, &o, e);
    p->file = file ? mem_strdup(file) : NULL;
    p->open = mem_zalloc_n(config->things.n_sensors + count_watched(config), sizeof(*p->open));
    if (rc == 0 && (!p->open || (file && !p->file)))
        rc = err_set(e, SHOAL_ENOMEM, "sensors");
    if (rc == 0)
        rc = add_all(p, config, e);
    if (rc == 0)
        rc = add_models(p, config, e);
    if (rc == 0)
        rc = reading_log_create(&p->log, config->history, config->history_days * (int64_t)DAY_MS,
                                config->history_bytes, e);
    if (rc < 0) {
        plant_destroy(p);
        return rc;
    }
    load(p);
    *out = p;
    return 0;
}

int plant_listen(struct plant *p, plant_alarm_fn fn, plant_alarm_fn restored, void *ctx,
                 struct err *e)
{
    if (p->n_listeners == PLANT_MAX_LISTENERS)
        return err_set(e, SHOAL_ELIMIT, "more than %u listen to alarms", PLANT_MAX_LISTENERS);
    p->listeners[p->n_listeners].fn = fn;
    p->listeners[p->n_listeners].restored = restored;
    p->listeners[p->n_listeners++].ctx = ctx;
    return 0;
}

void plant_poll(struct plant *p, void (*fn)(void *ctx, struct plant *p), void *ctx)
{
    p->poll = fn;
    p->poll_ctx = ctx;
}

int plant_start(struct plant *p, struct err *e)
{
    restore(p);
    int rc = thread_create(&p->thread, "plant", run, p, e);
    p->has_thread = rc == 0;
    return rc;
}

void plant_stop(struct plant *p)
{
    if (!p || !p->has_thread)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->has_thread = false;
}

void plant_destroy(struct plant *p)
{
    if (!p)
        return;
    plant_stop(p);
    reading_log_destroy(p->log); /* its names belong to the things */
    for (uint32_t i = 0; p->open && p->things && i < things_count(p->things); i++)
        mem_free(p->open[i].json);
    things_destroy(p->things);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->telling);
    pthread_cond_destroy(&p->wake);
    mem_free(p->open);
    mem_free(p->file);
    mem_free(p);
}

uint32_t plant_find(struct plant *p, const char *sensor)
{
    pthread_mutex_lock(&p->lock);
    uint32_t i = things_find(p->things, sensor);
    pthread_mutex_unlock(&p->lock);
    return i;
}

/* A clock that is off by more than the statistics accept is not believed here either. */
static void keep(struct plant *p, const struct reading *r, int64_t now)
{
    struct things_view v;
    if (!p->log || !isfinite(r->value) || r->quality == READING_BAD)
        return;
    things_view(p->things, r->sensor, &v);
    const bool clock = r->time_ms > now - MAX_SKEW_MS && r->time_ms < now + MAX_SKEW_MS;
    reading_log_put(p->log, v.name, v.unit, clock ? r->time_ms : now, r->value);
}

void plant_readings(struct plant *p, const struct reading *list, size_t n)
{
    pthread_mutex_lock(&p->lock);
    uint64_t before = p->n_events;
    for (size_t i = 0; i < n; i++) {
        const int64_t now = now_ms(p);
        things_reading(p->things, &list[i], now);
        keep(p, &list[i], now);
    }
    bool any = p->n_events != before;
    pthread_mutex_unlock(&p->lock);
    if (any) /* before the sender gets its acknowledgement */
        tell_all(p);
}

void plant_reading(struct plant *p, const struct reading *r)
{
    plant_readings(p, r, 1);
}

void plant_look(struct plant *p, void (*fn)(void *ctx, struct things *t), void *ctx)
{
    pthread_mutex_lock(&p->lock);
    fn(ctx, p->things);
    pthread_mutex_unlock(&p->lock);
}

void plant_change(struct plant *p, void (*fn)(void *ctx, struct things *t), void *ctx)
{
    plant_look(p, fn, ctx);
    tell_all(p);
}

int plant_explain(struct plant *p, uint64_t id, const char *passage, const char *source,
                  struct err *e)
{
    int rc = SHOAL_ENOTFOUND;
    pthread_mutex_lock(&p->lock);
    if (!p->stop)
        rc = things_explain(p->things, id, passage, source, now_ms(p), e);
    pthread_mutex_unlock(&p->lock);
    if (rc == 0)
        tell_all(p);
    return rc;
}

uint32_t plant_open_alarms(struct plant *p)
{
    return atomic_load(&p->n_open);
}

static void add_counts(void *ctx, struct things *t)
{
    struct reading_counts *sum = ctx;
    for (uint32_t i = 0; i < things_count(t); i++) {
        struct things_view v;
        things_view(t, i, &v);
        sum->n += v.counts.n;
        sum->bad += v.counts.bad;
        sum->steps += v.counts.steps;
        sum->checked += v.counts.checked;
    }
}

void plant_metrics(struct plant *p, struct buf *b)
{
    struct reading_counts n = {0};
    if (!p)
        return;
    plant_look(p, add_counts, &n);
    prometheus_help(b, "shoal_readings_total", "counter", "Readings of sensors.");
    buf_printf(b, "shoal_readings_total %" PRIu64 "\n", n.n);
    prometheus_help(b, "shoal_readings_bad_total", "counter",
                    "Of them, not numbers, or of bad quality.");
    buf_printf(b, "shoal_readings_bad_total %" PRIu64 "\n", n.bad);
    prometheus_help(b, "shoal_readings_watched_total", "counter",
                    "Steps that the fast detector has seen.");
    buf_printf(b, "shoal_readings_watched_total %" PRIu64 "\n", n.steps);
    prometheus_help(b, "shoal_readings_checked_total", "counter",
                    "Of them, steps that went on to the precise detector.");
    buf_printf(b, "shoal_readings_checked_total %" PRIu64 "\n", n.checked);
    reading_log_metrics(p->log, b);
}
