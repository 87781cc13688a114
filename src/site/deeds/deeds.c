/* deeds.c - see deeds.h. */
#include "site/deeds/deeds.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "apps/home/site/home_things.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "config/config_url.h"
#include "config/deed_text.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "mqtt/payload.h"
#include "net/http_ask.h"
#include "net/tls.h"
#include "site/deeds/deed_command.h"
#include "site/modbus/modbus_site.h"

#define MAX_TEXT_BYTES ((size_t)64 << 10)
#define MAX_ANSWER_BYTES ((size_t)1 << 20)
#define MAX_VALUE 256u

struct deed_job { /* a deed without a result yet */
    struct deed_job *next;
    struct deeds *deeds;
    const struct config_deed *way;
    char id[128], ability[64], unit[32], action[64];
    char wanted[MAX_VALUE], value[MAX_VALUE]; /* value: as it is sent */
    home_sink_done_fn done;
    void *ctx;
    uint64_t until_ns, retry_ns; /* retry_ns: when to send it again; 0: no more */
    uint32_t n_sent;
    bool confirmed, taken; /* taken: a thread works on it, and ends it */
};

struct source { /* a state topic */
    struct deeds *deeds;
    const struct config_deed *way;
};

struct found { /* a discovered way; never removed, so jobs may point to it */
    struct found *next;
    struct config_deed way;
    struct source source;
};

struct deeds {
    struct home_sink sink; /* first */
    const struct config_deeds *config;
    struct mqtt *client;
    struct modbus_site *modbus;
    struct tls_client *tls; /* for https; NULL: no way needs it */
    struct home_things *home;
    struct source *sources;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;
    struct deed_job *jobs;
    struct found *found; /* the newest first */
    uint32_t n_jobs, n_running, n_found;
    _Atomic uint64_t counts[4], n_reports;
};

/* ---- ends ---- */

static void job_finish(struct deed_job *j, enum home_sink_result result, const char *reason)
{
    atomic_fetch_add(&j->deeds->counts[result], 1);
    j->done(j->ctx, result, reason);
    mem_free(j);
}

/* Takes a job out of the list; under the lock. */
static void unlink_job(struct deeds *d, struct deed_job *j)
{
    struct deed_job **at = &d->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    d->n_jobs--;
}

/* ---- ways ---- */

static struct deed_text_facts facts_of(const struct deed_job *j)
{
    return (struct deed_text_facts){.id = j->id,
                                    .ability = j->ability,
                                    .value = j->value,
                                    .unit = j->unit,
                                    .action = j->action};
}

static void put_payload(struct buf *b, const struct deed_job *j)
{
    const struct deed_text_facts f = facts_of(j);
    const char *pattern = j->way->payload;
    deed_text_fill(b, pattern, &f,
                   pattern[0] == '{' && pattern[1] == '"' ? DEED_TEXT_JSON : DEED_TEXT_PLAIN);
}

static int send_mqtt(struct deeds *d, const struct deed_job *j, struct err *e)
{
    const struct deed_text_facts f = facts_of(j);
    struct buf topic, payload;
    buf_init(&topic, MQTT_TOPIC_MAX_BYTES);
    buf_init(&payload, MAX_TEXT_BYTES);
    deed_text_fill(&topic, j->way->topic, &f, DEED_TEXT_PLAIN);
    put_payload(&payload, j);
    const struct mqtt_message m = {.topic = buf_str(&topic),
                                   .payload = buf_str(&payload),
                                   .n = payload.len,
                                   .qos = (uint8_t)j->way->qos,
                                   .retain = j->way->retain,
                                   /* a command must not be delivered from a queue hours later */
                                   .expiry_s = (j->way->timeout_ms + 999) / 1000 + 1};
    int rc = topic.rc < 0 ? topic.rc : payload.rc;
    if (rc < 0)
        err_set(e, rc, "the message is too long");
    else if (!mqtt_is_up(d->client))
        rc = err_set(e, SHOAL_EBUSY, "the MQTT broker is not connected");
    else
        rc = mqtt_publish(d->client, &m, e);
    buf_fini(&topic);
    buf_fini(&payload);
    return rc;
}

static int call_http(const struct deed_job *j, struct err *e)
{
    const struct deed_text_facts f = facts_of(j);
    struct buf path, payload, answer;
    int status = 0;
    buf_init(&path, 4096);
    buf_init(&payload, MAX_TEXT_BYTES);
    buf_init(&answer, MAX_ANSWER_BYTES);
    deed_text_fill(&path, j->way->path, &f, DEED_TEXT_URL);
    put_payload(&payload, j);
    const struct http_ask a = {.server = j->way->server,
                               .tls = j->deeds->tls,
                               .method = j->way->method == 0   ? "POST"
                                         : j->way->method == 1 ? "PUT"
                                                               : "GET",
                               .path = buf_str(&path),
                               .content_type = "application/json",
                               .content = buf_str(&payload),
                               .content_bytes = j->way->method == 2 ? 0 : payload.len,
                               .timeout_ms = j->way->timeout_ms};
    int rc = path.rc < 0 ? path.rc : payload.rc;
    rc = rc < 0 ? err_set(e, rc, "the call is too long") : http_ask(&a, &status, &answer, e);
    if (rc == 0 && (status < 200 || status > 299))
        rc = err_set(e, SHOAL_EIO, "the server answered with status %d", status);
    buf_fini(&path);
    buf_fini(&payload);
    buf_fini(&answer);
    return rc;
}

static int run_command(const struct deed_job *j, struct err *e)
{
    const struct deed_text_facts f = facts_of(j);
    char *argv[CONFIG_MAX_ARGUMENTS + 1] = {0};
    int rc = 0;
    for (uint32_t i = 0; i < j->way->command.n && i < CONFIG_MAX_ARGUMENTS && rc == 0; i++) {
        struct buf b;
        buf_init(&b, MAX_TEXT_BYTES);
        deed_text_fill(&b, j->way->command.v[i], &f, DEED_TEXT_PLAIN);
        argv[i] = buf_take(&b, NULL);
        if (!argv[i])
            rc = err_set(e, SHOAL_ENOMEM, "a command");
        buf_fini(&b);
    }
    if (rc == 0)
        rc = deed_command_run(argv, j->way->timeout_ms, e);
    for (uint32_t i = 0; i <= CONFIG_MAX_ARGUMENTS; i++)
        mem_free(argv[i]);
    return rc;
}

/* The controller has the value when this returns, so the home knows it, too. */
static int set_tag(struct deed_job *j, struct err *e)
{
    double value = payload_number(j->value, strlen(j->value)),
           wanted = payload_number(j->wanted, strlen(j->wanted));
    if (isnan(value))
        return err_set(e, SHOAL_EINVAL, "'%.60s' is not a number: add it to values", j->value);
    int rc = modbus_site_write(j->deeds->modbus, j->way->tag, value, e);
    if (rc == 0) {
        j->confirmed = true;
        home_things_report(j->deeds->home, j->id, j->ability, isnan(wanted) ? j->wanted : NULL,
                           isnan(wanted) ? 0 : wanted, j->way->unit ? j->way->unit : j->unit);
    }
    return rc;
}

static enum home_sink_result result_of(int rc)
{
    return rc == 0                                      ? HOME_SINK_SENT
           : rc == SHOAL_EBUSY || rc == SHOAL_ENOTFOUND ? HOME_SINK_NOT_CONNECTED
                                                        : HOME_SINK_FAILED;
}

/* ---- HTTP calls and commands, each on its own thread ---- */

static void *work(void *arg)
{
    struct deed_job *j = arg;
    struct deeds *d = j->deeds;
    struct err e = {0};
    int rc = -1;
    for (uint32_t i = 0; rc < 0 && i <= j->way->retry && clock_ns() < j->until_ns; i++) {
        e.msg[0] = '\0';
        rc = j->way->via == CONFIG_DEED_HTTP     ? call_http(j, &e)
             : j->way->via == CONFIG_DEED_MODBUS ? set_tag(j, &e)
                                                 : run_command(j, &e);
    }
    pthread_mutex_lock(&d->lock);
    j->taken = false;
    bool waits = rc == 0 && j->way->state && !j->confirmed && !d->stop;
    enum home_sink_result result = rc == 0 && j->confirmed ? HOME_SINK_DONE : result_of(rc);
    if (!waits)
        unlink_job(d, j);
    pthread_mutex_unlock(&d->lock);
    if (!waits)
        job_finish(j, result, e.msg[0] ? e.msg : NULL);
    pthread_mutex_lock(&d->lock);
    d->n_running--;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static bool start_work(struct deeds *d, struct deed_job *j)
{
    pthread_t thread;
    struct err e = {0};
    if (thread_create(&thread, "deed", work, j, &e) < 0)
        return false;
    pthread_detach(thread);
    (void)d;
    return true;
}

/* ---- times ---- */

/* Ends deeds whose state did not arrive in time; under the lock, which is released for `done`.
 */
static uint64_t look_at_times(struct deeds *d)
{
    uint64_t now = clock_ns(), next = now + 3600000000000ull;
    for (struct deed_job *j = d->jobs, *after; j; j = after) {
        after = j->next;
        if (j->taken)
            continue;
        if (j->retry_ns && now >= j->retry_ns) {
            struct err e = {0};
            j->retry_ns = j->n_sent++ < j->way->retry
                              ? now + j->way->timeout_ms * 1000000ull / (j->way->retry + 1)
                              : 0;
            (void)!send_mqtt(d, j, &e); /* the time decides */
        }
        if (now >= j->until_ns || d->stop) {
            unlink_job(d, j);
            pthread_mutex_unlock(&d->lock);
            job_finish(j, HOME_SINK_FAILED,
                       d->stop ? "the server is stopping" : "it did not confirm");
            pthread_mutex_lock(&d->lock);
            return 0; /* the list may have changed */
        }
        next = j->until_ns < next ? j->until_ns : next;
        next = j->retry_ns && j->retry_ns < next ? j->retry_ns : next;
    }
    return next;
}

static void *run(void *arg)
{
    struct deeds *d = arg;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        uint64_t next = look_at_times(d);
        struct timespec ts = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        if (next == 0)
            continue;
        if (d->stop && d->n_running == 0)
            break;
        pthread_cond_timedwait(&d->changed, &d->lock, &ts);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- carrying out ---- */

static const struct config_deed *find_way(struct deeds *d, const char *id, const char *ability)
{
    const struct found *f;
    for (uint32_t i = 0; i < d->config->n; i++) {
        const struct config_deed *w = &d->config->v[i];
        if (w->ability && strcmp(w->ability, ability) != 0)
            continue;
        for (uint32_t k = 0; k < w->things.n; k++)
            if (deed_text_glob(w->things.v[k], id))
                return w;
    }
    pthread_mutex_lock(&d->lock);
    for (f = d->found; f; f = f->next)
        if (strcmp(f->way.things.v[0], id) == 0 && strcmp(f->way.ability, ability) == 0)
            break;
    pthread_mutex_unlock(&d->lock);
    return f ? &f->way : NULL;
}

/* "on=ON": maps a value to the thing's name for it; and back. */
static const char *map_value(const struct config_deed *w, const char *value, bool back, char *out)
{
    const struct yaml_in_strs *list = back && w->state_values.n ? &w->state_values : &w->values;
    for (uint32_t i = 0; i < list->n; i++) {
        const char *eq = strchr(list->v[i], '=');
        size_t n = (size_t)(eq - list->v[i]);
        if (!back && strlen(value) == n && strncmp(list->v[i], value, n) == 0)
            return eq + 1;
        if (back && strcmp(eq + 1, value) == 0) {
            snprintf(out, MAX_VALUE, "%.*s", (int)n, list->v[i]);
            return out;
        }
    }
    return value;
}

/* The value to send; false: it depends on an unknown current value. */
static bool set_value(struct deed_job *j, const struct home_deed *x)
{
    char text[MAX_VALUE], number[48];
    if (x->text) {
        snprintf(j->wanted, sizeof(j->wanted), "%s", x->text);
        snprintf(j->value, sizeof(j->value), "%s", map_value(j->way, x->text, false, text));
        return true;
    }
    if (x->change) /* a sum made here would reach the thing without a look at its limits */
        return false;
    snprintf(number, sizeof(number), "%.10g", x->number);
    snprintf(j->wanted, sizeof(j->wanted), "%s", number);
    snprintf(j->value, sizeof(j->value), "%s", map_value(j->way, number, false, text));
    return true;
}

static struct deed_job *job_make(struct deeds *d, const struct config_deed *w,
                                 const struct home_deed *x, home_sink_done_fn done, void *ctx)
{
    struct deed_job *j = mem_zalloc(sizeof(*j));
    uint64_t now = clock_ns();
    if (!j)
        return NULL;
    j->deeds = d;
    j->way = w;
    j->done = done;
    j->ctx = ctx;
    snprintf(j->id, sizeof(j->id), "%s", x->id);
    snprintf(j->ability, sizeof(j->ability), "%s", x->ability);
    snprintf(j->unit, sizeof(j->unit), "%s", x->unit ? x->unit : "");
    snprintf(j->action, sizeof(j->action), "%s", x->action ? x->action : "");
    j->until_ns = now + w->timeout_ms * 1000000ull;
    if (x->deadline_ns && x->deadline_ns < j->until_ns)
        j->until_ns = x->deadline_ns;
    j->taken = true;
    return j;
}

static void carry(struct home_sink *s, const struct home_deed *x, home_sink_done_fn done, void *ctx)
{
    struct deeds *d = (struct deeds *)(void *)s;
    const struct config_deed *w = find_way(d, x->id, x->ability);
    struct err e = {0};
    if (!w) {
        atomic_fetch_add(&d->counts[HOME_SINK_NOT_CONNECTED], 1);
        done(ctx, HOME_SINK_NOT_CONNECTED, "nothing is configured for it");
        return;
    }
    struct deed_job *j = job_make(d, w, x, done, ctx);
    if (!j) {
        done(ctx, HOME_SINK_FAILED, "out of memory");
        return;
    }
    if (!set_value(j, x)) {
        job_finish(j, HOME_SINK_FAILED, "its current value is unknown");
        return;
    }
    bool mqtt = w->via == CONFIG_DEED_MQTT;
    pthread_mutex_lock(&d->lock);
    bool room =
        !d->stop && d->n_jobs < DEEDS_MAX_WAITING && (mqtt || d->n_running < DEEDS_MAX_RUNNING);
    if (room) { /* before it is sent: the confirmation may be fast */
        j->next = d->jobs;
        d->jobs = j;
        d->n_jobs++;
        d->n_running++; /* this call, or its thread */
    }
    pthread_mutex_unlock(&d->lock);
    if (!room) {
        job_finish(j, HOME_SINK_FAILED, "too many actions are waiting");
        return;
    }
    if (!mqtt && start_work(d, j))
        return;
    int rc = mqtt ? send_mqtt(d, j, &e) : err_set(&e, SHOAL_ENOMEM, "out of memory");
    pthread_mutex_lock(&d->lock);
    j->taken = false;
    bool waits = rc == 0 && w->state && !j->confirmed && !d->stop;
    enum home_sink_result result = rc == 0 && j->confirmed ? HOME_SINK_DONE : result_of(rc);
    if (waits)
        j->retry_ns = w->retry ? clock_ns() + w->timeout_ms * 1000000ull / (w->retry + 1) : 0;
    else
        unlink_job(d, j);
    d->n_running--;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (!waits)
        job_finish(j, result, e.msg[0] ? e.msg : NULL);
}

static const struct home_sink_ops ops = {carry};

/* ---- states ---- */

/* The value of a state message as text; false: none. */
static bool read_state(const struct config_deed *w, const struct mqtt_message *m, char *out)
{
    size_t n = m->n;
    const char *p = m->payload;
    bool every;
    while (n > 0 && strchr(" \r\n\t", p[n - 1]))
        n--;
    if (!w->state_value) {
        snprintf(out, MAX_VALUE, "%.*s", (int)(n < MAX_VALUE ? n : MAX_VALUE - 1), p);
        return n > 0 && n < MAX_VALUE;
    }
    if (m->n > MAX_TEXT_BYTES)
        return false;
    cJSON *root = cJSON_ParseWithLength(p, m->n);
    const cJSON *v = root ? payload_find(root, w->state_value, &every) : NULL;
    bool ok = v && !every;
    if (cJSON_IsString(v))
        snprintf(out, MAX_VALUE, "%s", v->valuestring);
    else if (cJSON_IsNumber(v))
        snprintf(out, MAX_VALUE, "%.10g", v->valuedouble);
    else if (cJSON_IsBool(v))
        snprintf(out, MAX_VALUE, "%s", cJSON_IsTrue(v) ? "true" : "false");
    else
        ok = false;
    cJSON_Delete(root);
    return ok;
}

static bool same_value(const char *a, const char *b)
{
    double x = payload_number(a, strlen(a)), y = payload_number(b, strlen(b));
    if (isnan(x) || isnan(y))
        return strcmp(a, b) == 0;
    return fabs(x - y) <= 1e-6 + 0.005 * fabs(x); /* things round */
}

/* Ends the jobs that waited for this. */
static void confirm(struct deeds *d, const char *id, const char *ability, const char *value)
{
    for (;;) {
        pthread_mutex_lock(&d->lock);
        struct deed_job *j = d->jobs;
        while (j && (j->confirmed || !j->way->state || strcmp(j->id, id) != 0 ||
                     strcmp(j->ability, ability) != 0 || !same_value(j->wanted, value)))
            j = j->next;
        bool ours = j && !j->taken;
        if (j)
            j->confirmed = true;
        if (ours)
            unlink_job(d, j);
        pthread_mutex_unlock(&d->lock);
        if (!j)
            return;
        if (ours)
            job_finish(j, HOME_SINK_DONE, NULL);
    }
}

static void on_state(void *ctx, const struct mqtt_message *m)
{
    const struct source *s = ctx;
    const struct config_deed *w = s->way;
    struct deeds *d = s->deeds;
    struct str in_id, in_ability;
    char id[128], ability[64], value[MAX_VALUE], back[MAX_VALUE];
    if (!deed_text_match(w->state, m->topic, &in_id, &in_ability) || !read_state(w, m, value))
        return;
    if (in_id.p)
        snprintf(id, sizeof(id), "%.*s", (int)in_id.n, in_id.p);
    else
        snprintf(id, sizeof(id), "%s", w->things.v[0]);
    if (in_ability.p)
        snprintf(ability, sizeof(ability), "%.*s", (int)in_ability.n, in_ability.p);
    else
        snprintf(ability, sizeof(ability), "%s", w->ability);
    bool ours = false;
    for (uint32_t k = 0; k < w->things.n && !ours; k++)
        ours = deed_text_glob(w->things.v[k], id);
    if (!ours || (w->ability && strcmp(ability, w->ability) != 0))
        return;
    const struct config_deed *first = find_way(d, id, ability);
    if (first && first != w && first->state)
        return; /* the other one has the unit and the words */
    const char *known = map_value(w, value, true, back);
    double number = payload_number(known, strlen(known));
    bool is_number = !isnan(number) && strcmp(known, "true") != 0 && strcmp(known, "false") != 0;
    atomic_fetch_add(&d->n_reports, 1);
    home_things_report(d->home, id, ability, is_number ? NULL : known, is_number ? number : 0,
                       w->unit);
    confirm(d, id, ability, known);
}

/* ---- life ---- */

/* CAs for calls over https, if there are any. */
static int trust(struct deeds *d, struct err *e)
{
    const struct tls_opts o = {.ca = d->config->ca, .reload = true, .foreign = true};
    for (uint32_t i = 0; i < d->config->n; i++)
        if (d->config->v[i].server && config_url_is_secure(d->config->v[i].server))
            return tls_client_open(&d->tls, &o, e);
    return 0;
}

static int subscribe(struct deeds *d, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < d->config->n && rc == 0; i++) {
        const struct config_deed *w = &d->config->v[i];
        char filter[MQTT_TOPIC_MAX_BYTES];
        d->sources[i] = (struct source){d, w};
        if ((w->state || w->via == CONFIG_DEED_MQTT) && !d->client)
            return err_set(e, SHOAL_EINVAL, "deeds: entry %u needs mqtt.broker", i + 1);
        if (w->state && deed_text_filter(filter, sizeof(filter), w->state))
            rc = mqtt_subscribe(d->client, filter, 1, MQTT_RETAINED_ALWAYS, on_state,
                                &d->sources[i], e);
    }
    return rc;
}

int deeds_create(struct deeds **out, const struct config_deeds *config, struct mqtt *client,
                 struct modbus_site *modbus, struct home_things *home, struct err *e)
{
    struct deeds *d = mem_zalloc(sizeof(*d));
    *out = NULL;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "deeds");
    d->sink.ops = &ops;
    d->config = config;
    d->client = client;
    d->modbus = modbus;
    d->home = home;
    pthread_mutex_init(&d->lock, NULL);
    cond_init(&d->changed);
    d->sources = mem_zalloc_n(config->n + 1, sizeof(*d->sources));
    int rc = d->sources ? trust(d, e) : err_set(e, SHOAL_ENOMEM, "deeds");
    if (rc == 0)
        rc = subscribe(d, e);
    if (rc == 0)
        rc = thread_create(&d->thread, "deeds", run, d, e);
    d->has_thread = rc == 0;
    if (rc < 0) {
        deeds_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}

static int copy_list(struct yaml_in_strs *to, const char *const *from, uint32_t n, struct err *e)
{
    return n ? yaml_in_strs_add(to, from, n, e) : 0;
}

static char *copy(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

static void found_free(struct found *f)
{
    struct config_deeds one = {.v = NULL};
    if (!f)
        return;
    one.v = mem_alloc(sizeof(*one.v));
    if (one.v) { /* frees what the entry holds, and the entry */
        *one.v = f->way;
        one.n = 1;
        config_deeds_fini(&one);
    }
    mem_free(f);
}

int deeds_add(struct deeds *d, const struct deeds_way *w, struct err *e)
{
    struct found *f = mem_zalloc(sizeof(*f));
    if (!f)
        return err_set(e, SHOAL_ENOMEM, "a way to %s", w->id);
    struct config_deed *k = &f->way;
    *k = (struct config_deed){.via = CONFIG_DEED_MQTT,
                              .qos = 1,
                              .timeout_ms = 2000,
                              .retry = 1,
                              .ability = copy(w->ability),
                              .topic = copy(w->topic),
                              .payload = copy(w->payload),
                              .state = copy(w->state),
                              .state_value = copy(w->state_value),
                              .unit = copy(w->unit)};
    f->source = (struct source){d, k};
    int rc = copy_list(&k->things, &w->id, 1, e);
    if (rc == 0)
        rc = copy_list(&k->values, w->values, w->n_values, e);
    if (rc == 0)
        rc = copy_list(&k->state_values, w->state_values, w->n_values, e);
    if (rc == 0 && (!k->ability || !k->topic || !k->payload || (w->state && !k->state) ||
                    (w->state_value && !k->state_value) || (w->unit && !k->unit)))
        rc = err_set(e, SHOAL_ENOMEM, "a way to %s", w->id);
    pthread_mutex_lock(&d->lock);
    if (rc == 0 && d->n_found == DEEDS_MAX_FOUND)
        rc = err_set(e, SHOAL_ELIMIT, "more than %u devices were discovered", DEEDS_MAX_FOUND);
    if (rc == 0) {
        f->next = d->found;
        d->found = f;
        d->n_found++;
    }
    pthread_mutex_unlock(&d->lock);
    if (rc < 0) {
        found_free(f);
        return rc;
    }
    if (k->state)
        rc = mqtt_subscribe(d->client, k->state, 1, MQTT_RETAINED_ALWAYS, on_state, &f->source, e);
    return rc;
}

struct home_sink *deeds_sink(struct deeds *d)
{
    return &d->sink;
}

void deeds_stop(struct deeds *d)
{
    if (!d || !d->has_thread)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    d->has_thread = false;
}

void deeds_destroy(struct deeds *d)
{
    if (!d)
        return;
    deeds_stop(d);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    while (d->found) {
        struct found *f = d->found;
        d->found = f->next;
        found_free(f);
    }
    tls_client_close(d->tls);
    mem_free(d->sources);
    mem_free(d);
}

void deeds_count(const struct deeds *d, struct deeds_counts *out)
{
    *out = (struct deeds_counts){
        atomic_load(&d->counts[HOME_SINK_DONE]), atomic_load(&d->counts[HOME_SINK_SENT]),
        atomic_load(&d->counts[HOME_SINK_FAILED]), atomic_load(&d->counts[HOME_SINK_NOT_CONNECTED]),
        atomic_load(&d->n_reports)};
}
