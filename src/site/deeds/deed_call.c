/* deed_call.c - see deed_call.h. */
#include "site/deeds/deed_call.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "config/config_url.h"
#include "mqtt/mqtt.h"
#include "net/http_ask.h"
#include "net/tls.h"
#include "pipeline/pipeline_call.h"
#include "site/deeds/deed_command.h"
#include "site/deeds/deed_plugin.h"

#define PAUSE_NS 50000000ull /* before a call is repeated; then twice as long, and so on */

struct deed_calls {
    struct pipeline_outside outside; /* first */
    struct mqtt *client;
    struct deed_plugins *plugins;
    pthread_mutex_t lock; /* guards n_running, tls */
    pthread_cond_t ended;
    uint32_t n_running;
    struct tls_client *tls; /* for https; NULL: not needed yet */
};

struct call_job {
    struct deed_calls *calls;
    struct pipeline_call *call;
    struct executor_task back;
    struct err error;
    int rc;
    bool again; /* a failure that may be temporary */
};

static uint32_t left_ms(const struct pipeline_call *c)
{
    uint64_t now = clock_ns();
    uint64_t ms = c->deadline_ns > now ? (c->deadline_ns - now) / 1000000u : 0;
    return ms > 3600000u ? 3600000u : (uint32_t)ms;
}

/* ---- one attempt ---- */

/* CAs for calls over https. Most servers make none, and a reload may add one: the first call opens
 * the system's CAs. */
static int trust(struct deed_calls *d, const char *ca, struct err *e)
{
    const struct tls_opts o = {.ca = ca, .reload = true, .foreign = true};
    int rc = 0;
    pthread_mutex_lock(&d->lock);
    if (!d->tls)
        rc = tls_client_open(&d->tls, &o, e);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static int call_http(struct call_job *j)
{
    struct pipeline_call *c = j->call;
    char header[128];
    snprintf(header, sizeof(header), "Idempotency-Key: %s", c->key);
    if (config_url_is_secure(c->how->server) && trust(j->calls, NULL, &j->error) < 0)
        return SHOAL_EIO;
    const struct http_ask a = {.server = c->how->server,
                               .tls = j->calls->tls,
                               .method = c->how->method,
                               .path = c->url + strlen(c->how->server),
                               .header = header,
                               .content_type = "application/json",
                               .content = c->payload ? c->payload : "",
                               .content_bytes =
                                   strcmp(c->how->method, "GET") == 0 ? 0 : c->payload_bytes,
                               .timeout_ms = left_ms(c)};
    buf_clear(&c->answer);
    int rc = http_ask(&a, &c->status, &c->answer, &j->error);
    j->again = rc == SHOAL_ENOTFOUND || rc == SHOAL_EIO || rc == SHOAL_EFORMAT;
    if (rc == 0 && (c->status < 200 || c->status > 299)) {
        j->again = c->status >= 500 || c->status == 429;
        rc = err_set(&j->error, SHOAL_EIO, "%s answered with status %d", c->how->server, c->status);
    }
    return rc;
}

static int publish(struct call_job *j)
{
    const struct pipeline_call *c = j->call;
    const struct mqtt_message m = {.topic = c->topic,
                                   .payload = c->payload,
                                   .n = c->payload_bytes,
                                   .qos = (uint8_t)c->how->qos,
                                   .retain = c->how->retain,
                                   /* it must not be delivered from a queue hours later */
                                   .expiry_s = left_ms(c) / 1000 + 1};
    if (!j->calls->client)
        return err_set(&j->error, SHOAL_EINVAL, "no broker is configured: set mqtt.broker");
    j->again = true;
    if (!mqtt_is_up(j->calls->client))
        return err_set(&j->error, SHOAL_EBUSY, "the MQTT broker is not connected");
    return mqtt_publish(j->calls->client, &m, &j->error);
}

static int run_command(struct call_job *j)
{
    struct pipeline_call *c = j->call;
    buf_clear(&c->answer);
    int rc = deed_command_read(c->argv, left_ms(c), &c->answer, &j->error);
    j->again = rc == SHOAL_EIO;
    return rc;
}

static int run_plugin(struct call_job *j)
{
    struct pipeline_call *c = j->call;
    buf_clear(&c->answer);
    int rc = deed_plugins_run(j->calls->plugins, c->how->plugin, c->payload ? c->payload : "",
                              c->payload_bytes, c->key, left_ms(c), &c->answer, &j->error);
    j->again = rc == SHOAL_EIO;
    return rc;
}

/* ---- the thread ---- */

static void on_back(struct executor_task *t)
{
    struct call_job *j = EXECUTOR_OF(t, struct call_job, back);
    struct pipeline_call *c = j->call;
    struct err e = j->error;
    int rc = j->rc;
    mem_free(j);
    c->done(c, rc, e.msg);
}

static void *work(void *arg)
{
    struct call_job *j = arg;
    struct deed_calls *d = j->calls;
    const struct pipeline_call *c = j->call;
    uint64_t pause = PAUSE_NS;
    for (uint32_t i = 0;; i++) {
        j->error = (struct err){0};
        j->again = false;
        j->rc = c->how->via == GRAPH_HTTP     ? call_http(j)
                : c->how->via == GRAPH_MQTT   ? publish(j)
                : c->how->via == GRAPH_PLUGIN ? run_plugin(j)
                                              : run_command(j);
        if (j->rc == 0 || !j->again || i == c->how->retry || clock_ns() + pause >= c->deadline_ns)
            break;
        const struct timespec ts = {(time_t)(pause / 1000000000u), (long)(pause % 1000000000u)};
        nanosleep(&ts, NULL);
        pause *= 2;
    }
    /* the job and the call belong to the owner from here on */
    executor_post(c->owner->executor, &j->back);
    pthread_mutex_lock(&d->lock);
    d->n_running--;
    pthread_cond_broadcast(&d->ended);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static bool enter(struct deed_calls *d)
{
    pthread_mutex_lock(&d->lock);
    bool room = d->n_running < DEED_CALL_MAX_RUNNING;
    d->n_running += room;
    pthread_mutex_unlock(&d->lock);
    return room;
}

static void leave(struct deed_calls *d)
{
    pthread_mutex_lock(&d->lock);
    d->n_running--;
    pthread_mutex_unlock(&d->lock);
}

static void run(struct pipeline_outside *o, struct pipeline_call *c)
{
    struct deed_calls *d = (struct deed_calls *)(void *)o;
    struct err e = {0};
    pthread_t thread;
    if (!enter(d)) {
        c->done(c, SHOAL_EBUSY, "too many calls run already: try again later");
        return;
    }
    struct call_job *j = mem_zalloc(sizeof(*j));
    if (j)
        *j = (struct call_job){.calls = d, .call = c, .back = {.fn = on_back}};
    if (!j || thread_create(&thread, "call", work, j, &e) < 0) {
        leave(d);
        mem_free(j);
        c->done(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    pthread_detach(thread);
}

/* ---- life ---- */

int deed_calls_create(struct deed_calls **out, struct mqtt *client, const char *ca,
                      size_t plugin_memory_bytes, struct err *e)
{
    static const struct pipeline_outside_ops ops = {run};
    struct deed_calls *d = mem_zalloc(sizeof(*d));
    *out = NULL;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "calls of flows");
    if (deed_plugins_create(&d->plugins, plugin_memory_bytes, e) < 0) {
        mem_free(d);
        return SHOAL_ENOMEM;
    }
    d->outside.ops = &ops;
    d->client = client;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->ended, NULL);
    if (ca && trust(d, ca, e) < 0) { /* an invalid file is reported at start */
        deed_calls_destroy(d);
        return SHOAL_EINVAL;
    }
    *out = d;
    return 0;
}

void deed_calls_destroy(struct deed_calls *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    while (d->n_running > 0)
        pthread_cond_wait(&d->ended, &d->lock);
    pthread_mutex_unlock(&d->lock);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->ended);
    deed_plugins_destroy(d->plugins);
    tls_client_close(d->tls);
    mem_free(d);
}

struct pipeline_outside *deed_calls_outside(struct deed_calls *d)
{
    return &d->outside;
}

void deed_calls_count_plugins(struct deed_calls *d, struct deed_plugin_counts *out)
{
    deed_plugins_count(d->plugins, out);
}
