/* plant.c - see plant.h. */
#include "gateway/things/plant.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "gateway/config.h"
#include "things/machine_file.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define TICK_MS 500
#define MAX_FILE_BYTES ((size_t)16 << 20)

/* An alarm that was told and is not over. */
struct open_alarm {
    uint64_t id;     /* as it was told */
    uint64_t now_id; /* in things; 0: of an earlier process, and not raised again yet */
    int64_t raised_ms, since_ms;
    uint32_t kind, severity;
};

struct plant {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool has_thread, stop, told; /* told: the file is behind */
    struct things *things;
    struct {
        plant_alarm_fn fn;
        void *ctx;
    } listeners[PLANT_MAX_LISTENERS];
    uint32_t n_listeners, n_open;
    struct open_alarm *open; /* [n_sensors]; id 0: none */
    int64_t started_ms, last_ms;
    bool recalled; /* what was open before the start has been decided */
    char *file;
};

/* Our clock, which must not go back. */
static int64_t now_ms(struct plant *p)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    int64_t now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
    p->last_ms = now > p->last_ms ? now : p->last_ms;
    return p->last_ms;
}

/* ---- open alarms on disk ---- */

static void save(struct plant *p)
{
    struct buf b;
    struct err e = {0};
    struct things_view v;
    p->told = false;
    if (!p->file)
        return;
    buf_init(&b, MAX_FILE_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_key(&j, "open");
    json_out_array(&j);
    for (uint32_t i = 0; i < things_count(p->things); i++) {
        const struct open_alarm *a = &p->open[i];
        if (!a->id)
            continue;
        things_view(p->things, i, &v);
        json_out_object(&j);
        json_out_member_str(&j, "sensor", v.name);
        json_out_member_uint(&j, "id", a->id);
        json_out_member_uint(&j, "raised_ms", (uint64_t)a->raised_ms);
        json_out_member_uint(&j, "since_ms", (uint64_t)a->since_ms);
        json_out_member_uint(&j, "kind", a->kind);
        json_out_member_uint(&j, "severity", a->severity);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    int rc = b.rc < 0 ? b.rc : file_replace(p->file, buf_str(&b), b.len, &e);
    if (rc < 0)
        log_warn("plant", "open alarms are not kept: %s", e.msg[0] ? e.msg : err_text(rc));
    buf_fini(&b);
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) && v->valuedouble > 0 && v->valuedouble < 9e15 ? v->valuedouble : 0;
}

/* A file that is damaged is as good as none. */
static void load(struct plant *p)
{
    cJSON *root = NULL;
    const cJSON *one;
    struct err e = {0};
    if (!p->file || access(p->file, F_OK) < 0)
        return;
    if (json_in_file(&root, "open alarms", p->file, MAX_FILE_BYTES, &e) < 0) {
        log_warn("plant", "open alarms of the last run are not known: %s", e.msg);
        return;
    }
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(root, "open"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "sensor"));
        uint32_t i = name ? things_find(p->things, name) : THINGS_NONE;
        double kind = number(one, "kind"), severity = number(one, "severity");
        if (i == THINGS_NONE || number(one, "id") == 0 || p->open[i].id || kind >= ALARM_N_KINDS ||
            severity > ALARM_CRITICAL)
            continue;
        p->open[i] = (struct open_alarm){.id = (uint64_t)number(one, "id"),
                                         .raised_ms = (int64_t)number(one, "raised_ms"),
                                         .since_ms = (int64_t)number(one, "since_ms"),
                                         .kind = (uint32_t)kind,
                                         .severity = (uint32_t)severity};
        p->n_open++;
    }
    cJSON_Delete(root);
    if (p->n_open > 0)
        log_info("plant", "alarms that were open at the end of the last run: %u", p->n_open);
}

/* Which name of a table a member is; 0 if it is none. */
static uint32_t index_of(const cJSON *o, const char *key, uint32_t n, const char *(*name)(uint32_t))
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
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

void plant_recall(struct plant *p, const char *json, size_t n)
{
    cJSON *e = cJSON_ParseWithLength(json, n);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(e, "channels"), 0);
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(first, "sensor"));
    uint32_t i = name ? things_find(p->things, name) : THINGS_NONE;
    uint64_t id = (uint64_t)number(e, "id");
    if (i != THINGS_NONE && id) {
        struct open_alarm *a = &p->open[i];
        bool over = index_of(e, "change", ALARM_CLEARED + 1, change_name) == ALARM_CLEARED;
        p->n_open -= a->id != 0 && (!over || a->id == id);
        if (!over)
            *a = (struct open_alarm){
                .id = id,
                .raised_ms = (int64_t)number(e, "raised_ms"),
                .since_ms = (int64_t)number(e, "since_ms"),
                .kind = index_of(e, "kind", ALARM_N_KINDS, kind_name),
                .severity = index_of(e, "severity", ALARM_CRITICAL + 1, severity_name)};
        else if (a->id == id)
            *a = (struct open_alarm){0};
        p->n_open += !over;
    }
    cJSON_Delete(e);
}

/* ---- alarms ---- */

static void tell(struct plant *p, const struct alarm_event *e)
{
    for (uint32_t i = 0; i < p->n_listeners; i++)
        p->listeners[i].fn(p->listeners[i].ctx, e);
}

/* Listeners first: what they keep must be kept before we remember that it was told. */
static void on_alarm(void *ctx, const struct alarm_event *from)
{
    struct plant *p = ctx;
    struct alarm_event e = *from;
    uint32_t i = e.n_channels ? things_find(p->things, e.channels[0].sensor) : THINGS_NONE;
    struct open_alarm none = {0}, *a = i == THINGS_NONE ? &none : &p->open[i];
    bool again = e.change == ALARM_RAISED && a->id && a->now_id == 0;
    bool worse = again && (uint32_t)e.severity > a->severity;
    if (a->id && (again || a->now_id == from->id)) {
        e.id = a->id;
        e.raised_ms = a->raised_ms;
        if (a->since_ms && a->since_ms < e.since_ms)
            e.since_ms = a->since_ms;
    }
    if (worse)
        e.change = ALARM_WORSENED;
    if (!again || worse)
        tell(p, &e);
    if (i == THINGS_NONE)
        return;
    if (e.change == ALARM_CLEARED) {
        p->n_open -= a->id != 0;
        *a = none;
    } else {
        p->n_open += a->id == 0;
        *a = (struct open_alarm){.id = e.id,
                                 .now_id = from->id,
                                 .raised_ms = e.raised_ms,
                                 .since_ms = e.since_ms,
                                 .kind = (uint32_t)e.kind,
                                 .severity = (uint32_t)e.severity};
    }
    p->told = true;
}

/* Alarms of the last run whose cause has not come back are over. */
static void recall(struct plant *p, int64_t now)
{
    struct things_view v;
    bool left = false;
    if (p->recalled || now - p->started_ms < PLANT_RECALL_MS)
        return;
    for (uint32_t i = 0; i < things_count(p->things); i++) {
        struct open_alarm *a = &p->open[i];
        if (!a->id || a->now_id)
            continue;
        things_view(p->things, i, &v);
        if (v.time_ms < p->started_ms) { /* no reading yet: nobody knows */
            left = true;
            continue;
        }
        struct alarm_event e = {.change = ALARM_CLEARED,
                                .id = a->id,
                                .kind = (enum alarm_kind)a->kind,
                                .severity = (enum alarm_severity)a->severity,
                                .machine = v.machine,
                                .machine_title = v.machine,
                                .n_channels = 1,
                                .limit = NAN,
                                .since_ms = a->since_ms,
                                .raised_ms = a->raised_ms,
                                .changed_ms = now,
                                .cleared_ms = now,
                                .acknowledged_by = "",
                                .text = "The cause was over when the server came back."};
        e.channels[0] = (struct alarm_channel){.sensor = v.name,
                                               .title = v.title,
                                               .unit = v.unit,
                                               .value = v.value,
                                               .before = NAN,
                                               .low = v.low,
                                               .high = v.high};
        tell(p, &e);
        *a = (struct open_alarm){0};
        p->n_open--;
        p->told = true;
    }
    p->recalled = !left;
}

static void *run(void *arg)
{
    struct plant *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct timespec ts;
        int64_t now = now_ms(p);
        things_tick(p->things, now);
        recall(p, now);
        if (p->told)
            save(p);
        clock_gettime(CLOCK_MONOTONIC, &ts);
        ts.tv_nsec += TICK_MS * 1000000L;
        ts.tv_sec += ts.tv_nsec / 1000000000;
        ts.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&p->wake, &p->lock, &ts);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
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

static int add_all(struct plant *p, const struct gw_config *config, struct err *e)
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

int plant_create(struct plant **out, const struct gw_config *config, const char *file,
                 struct err *e)
{
    struct plant *p = config->things.n_sensors ? mem_zalloc(sizeof(*p)) : NULL;
    pthread_condattr_t attr;
    *out = NULL;
    if (!p)
        return config->things.n_sensors ? err_set(e, SHOAL_ENOMEM, "sensors") : 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &attr);
    pthread_condattr_destroy(&attr);
    p->started_ms = now_ms(p);
    /* A number that no earlier process can have used: it raised less than one alarm a millisecond.
     */
    const struct things_opts o = {.alarm = on_alarm, .ctx = p, .first_id = (uint64_t)p->started_ms};
    int rc = things_create(&p->things, &o, e);
    p->file = file ? mem_strdup(file) : NULL;
    p->open = mem_zalloc_n(config->things.n_sensors, sizeof(*p->open));
    if (rc == 0 && (!p->open || (file && !p->file)))
        rc = err_set(e, SHOAL_ENOMEM, "sensors");
    if (rc == 0)
        rc = add_all(p, config, e);
    if (rc < 0) {
        plant_destroy(p);
        return rc;
    }
    load(p);
    *out = p;
    return 0;
}

int plant_listen(struct plant *p, plant_alarm_fn fn, void *ctx, struct err *e)
{
    if (p->n_listeners == PLANT_MAX_LISTENERS)
        return err_set(e, SHOAL_ELIMIT, "more than %u listen to alarms", PLANT_MAX_LISTENERS);
    p->listeners[p->n_listeners].fn = fn;
    p->listeners[p->n_listeners++].ctx = ctx;
    return 0;
}

int plant_start(struct plant *p, struct err *e)
{
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
    if (p->told)
        save(p);
}

void plant_destroy(struct plant *p)
{
    if (!p)
        return;
    plant_stop(p);
    things_destroy(p->things);
    pthread_mutex_destroy(&p->lock);
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

void plant_reading(struct plant *p, const struct reading *r)
{
    pthread_mutex_lock(&p->lock);
    things_reading(p->things, r, now_ms(p));
    if (p->told) /* before the sender is told that we have it */
        save(p);
    pthread_mutex_unlock(&p->lock);
}

void plant_look(struct plant *p, void (*fn)(void *ctx, struct things *t), void *ctx)
{
    pthread_mutex_lock(&p->lock);
    fn(ctx, p->things);
    pthread_mutex_unlock(&p->lock);
}

int plant_explain(struct plant *p, uint64_t id, const char *passage, const char *source,
                  struct err *e)
{
    int rc = SHOAL_ENOTFOUND;
    pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; !p->stop && rc == SHOAL_ENOTFOUND && i < things_count(p->things); i++)
        if (p->open[i].id == id && p->open[i].now_id)
            rc = things_explain(p->things, p->open[i].now_id, passage, source, now_ms(p), e);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

uint32_t plant_open_alarms(struct plant *p)
{
    pthread_mutex_lock(&p->lock);
    uint32_t n = p->n_open;
    pthread_mutex_unlock(&p->lock);
    return n;
}
