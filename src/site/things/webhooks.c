/* webhooks.c - see webhooks.h. */
#include "site/things/webhooks.h"

#include <inttypes.h>
#include <limits.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "config/config_url.h"
#include "config/config_webhooks.h"
#include "host/prometheus.h"
#include "mqtt/spool.h"
#include "net/http_ask.h"
#include "net/tls.h"
#include "site/things/plant.h"
#include "wire/json_out.h"

#define MAX_EVENT_BYTES ((size_t)64 << 10)
#define MAX_ANSWER_BYTES ((size_t)64 << 10)
#define MAX_SECRET_BYTES 4096u
#define FIRST_WAIT_NS 500000000ull
#define MAX_WAIT_NS 60000000000ull

enum result { DELIVERED, REFUSED, EXPIRED, LOST, N_RESULTS };
static const char *const result_names[N_RESULTS] = {"delivered", "refused", "expired", "lost"};

struct waiting { /* an event that is not delivered yet */
    struct waiting *next;
    uint64_t number; /* of the spool, or a count if it is in memory only */
    bool kept;       /* on disk */
    int64_t made_ms;
    size_t n;
    char json[];
};

struct hook {
    struct config_webhook config; /* own strings */
    char secret[MAX_SECRET_BYTES];
    size_t n_secret;        /* 0: no signature */
    struct tls_client *tls; /* NULL: it is called without TLS */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, stop;
    struct spool *spool; /* guarded by lock, as the list */
    struct waiting *first, **last;
    uint64_t n_unkept; /* events that are in memory only */
    uint64_t run;      /* distinguishes their keys from those of another run */
    uint32_t n_failed; /* attempts in a row */
    _Atomic uint64_t counts[N_RESULTS];
    _Atomic uint64_t n_waiting;
};

struct webhooks {
    struct plant *plant;
    uint32_t n;
    struct hook hooks[CONFIG_MAX_WEBHOOKS];
};

static int64_t now_ms(void)
{
    return (int64_t)clock_unix_ms();
}

/* ---- the queue ---- */

static int append(struct hook *h, uint64_t number, bool kept, int64_t made_ms, const char *json,
                  size_t n)
{
    struct waiting *w = mem_zalloc(sizeof(*w) + n + 1);
    if (!w)
        return SHOAL_ENOMEM;
    w->number = number;
    w->kept = kept;
    w->made_ms = made_ms;
    w->n = n;
    memcpy(w->json, json, n);
    *h->last = w;
    h->last = &w->next;
    atomic_fetch_add(&h->n_waiting, 1);
    return 0;
}

/* A record of the spool: the time, then the JSON. */
static int on_kept(void *ctx, uint64_t number, const void *bytes, size_t n)
{
    int64_t made_ms;
    if (n <= sizeof(made_ms))
        return 0;
    memcpy(&made_ms, bytes, sizeof(made_ms));
    return append(ctx, number, true, made_ms, (const char *)bytes + sizeof(made_ms),
                  n - sizeof(made_ms));
}

/* Under the lock. If the disk fails, the event is sent from memory. */
static int keep(struct hook *h, const struct buf *record, struct err *e)
{
    uint64_t number = 0;
    int64_t made_ms;
    int rc =
        record->rc < 0 ? record->rc : spool_put(h->spool, record->data, record->len, &number, e);
    bool kept = rc == 0;
    if (rc == SHOAL_EIO) {
        log_warn("webhook", "an alarm for %s could not be stored on disk: %s", h->config.server,
                 e->msg);
        number = ++h->n_unkept;
        rc = 0;
    }
    if (rc < 0)
        return rc;
    memcpy(&made_ms, record->data, sizeof(made_ms));
    return append(h, number, kept, made_ms, record->data + sizeof(made_ms),
                  record->len - sizeof(made_ms));
}

static void put(struct hook *h, const struct buf *record)
{
    struct err e = {0};
    pthread_mutex_lock(&h->lock);
    int rc = keep(h, record, &e);
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
    if (rc == 0)
        return;
    atomic_fetch_add(&h->counts[LOST], 1);
    log_error("webhook", "alarm not delivered to %s: %s", h->config.server,
              e.msg[0] ? e.msg : err_text(rc));
}

/* Events arrive one at a time, in order. */
static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct webhooks *w = ctx;
    struct buf b;
    int64_t made_ms = now_ms();
    buf_init(&b, MAX_EVENT_BYTES);
    buf_put(&b, (const char *)&made_ms, sizeof(made_ms));
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    alarm_json(&j, e);
    json_out_object_end(&j);
    for (uint32_t i = 0; i < w->n; i++)
        if ((uint32_t)e->severity >= w->hooks[i].config.severity)
            put(&w->hooks[i], &b);
    buf_fini(&b);
}

/* ---- sending ---- */

static void put_signature(struct buf *b, const struct hook *h, const struct waiting *w,
                          int64_t time_ms)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    struct buf text;
    buf_init(&text, MAX_EVENT_BYTES + 64);
    buf_printf(&text, "%" PRId64 ".", time_ms);
    buf_put(&text, w->json, w->n);
    if (text.rc == 0 && HMAC(EVP_sha256(), h->secret, (int)h->n_secret,
                             (const unsigned char *)text.data, text.len, sum, &n)) {
        buf_printf(b, "\r\nX-Shoal-Time: %" PRId64 "\r\nX-Shoal-Signature: sha256=", time_ms);
        for (unsigned int i = 0; i < n; i++)
            buf_printf(b, "%02x", sum[i]);
    } else {
        b->rc = SHOAL_ENOMEM;
    }
    buf_fini(&text);
}

/* 0: delivered; SHOAL_EINVAL: permanently refused; otherwise: retry. */
static int deliver(struct hook *h, const struct waiting *w, struct err *e)
{
    struct buf head, answer;
    int status = 0;
    buf_init(&head, 4096);
    buf_init(&answer, MAX_ANSWER_BYTES);
    buf_printf(&head, "Idempotency-Key: %016" PRIx64 "-%s%" PRIu64,
               w->kept ? spool_salt(h->spool) : h->run, w->kept ? "" : "m", w->number);
    if (h->n_secret)
        put_signature(&head, h, w, now_ms());
    const struct http_ask a = {.server = h->config.server,
                               .tls = h->tls,
                               .method = "POST",
                               .path = h->config.path,
                               .header = buf_str(&head),
                               .content_type = "application/json",
                               .content = w->json,
                               .content_bytes = w->n,
                               .timeout_ms = h->config.timeout_ms};
    int rc = head.rc < 0 ? err_set(e, head.rc, "out of memory") : http_ask(&a, &status, &answer, e);
    if (rc == SHOAL_EINVAL)
        rc = SHOAL_EIO; /* a bad address may be fixed in DNS */
    else if (rc == 0 && (status < 200 || status > 299))
        rc =
            err_set(e,
                    status >= 400 && status < 500 && status != 408 && status != 425 && status != 429
                        ? SHOAL_EINVAL
                        : SHOAL_EIO,
                    "status %d", status);
    buf_fini(&head);
    buf_fini(&answer);
    return rc;
}

/* Takes the first event off the list; under the lock. */
static void drop_first(struct hook *h, enum result why)
{
    struct waiting *w = h->first;
    h->first = w->next;
    if (!h->first)
        h->last = &h->first;
    if (w->kept)
        spool_done(h->spool, w->number);
    mem_free(w);
    atomic_fetch_sub(&h->n_waiting, 1);
    atomic_fetch_add(&h->counts[why], 1);
    h->n_failed = 0;
}

/* Sleeps before the next attempt, or until the end; under the lock. */
static void back_off(struct hook *h)
{
    uint64_t wait = h->n_failed < 8 ? FIRST_WAIT_NS << (h->n_failed - 1) : MAX_WAIT_NS;
    wait = wait > MAX_WAIT_NS ? MAX_WAIT_NS : wait;
    uint64_t until = clock_ns() + wait - hash_mix(clock_ns()) % (wait / 4); /* not all at once */
    const struct timespec ts = {.tv_sec = (time_t)(until / 1000000000),
                                .tv_nsec = (long)(until % 1000000000)};
    while (!h->stop && clock_ns() < until)
        pthread_cond_timedwait(&h->changed, &h->lock, &ts);
}

static void *run(void *arg)
{
    struct hook *h = arg;
    pthread_mutex_lock(&h->lock);
    while (!h->stop) {
        struct err e = {0};
        struct waiting *w = h->first;
        if (!w) {
            pthread_cond_wait(&h->changed, &h->lock);
            continue;
        }
        if (now_ms() - w->made_ms > (int64_t)h->config.keep_ms) {
            log_error("webhook", "alarm not delivered to %s: it did not answer in time",
                      h->config.server);
            drop_first(h, EXPIRED);
            continue;
        }
        pthread_mutex_unlock(&h->lock); /* only this thread takes events off the list */
        int rc = deliver(h, w, &e);
        pthread_mutex_lock(&h->lock);
        if (rc == 0) {
            drop_first(h, DELIVERED);
        } else if (rc == SHOAL_EINVAL) {
            log_error("webhook", "alarm not delivered to %s: %s", h->config.server, e.msg);
            drop_first(h, REFUSED);
        } else {
            if (h->n_failed++ == 0)
                log_warn("webhook", "cannot deliver alarms to %s, retrying: %s", h->config.server,
                         e.msg);
            back_off(h);
        }
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* ---- life ---- */

static int read_secret(struct hook *h, struct err *e)
{
    struct buf b;
    if (!h->config.secret_file)
        return 0;
    buf_init(&b, MAX_SECRET_BYTES);
    int rc = file_read(h->config.secret_file, &b, e);
    while (rc == 0 && b.len > 0 && strchr("\r\n", b.data[b.len - 1]))
        b.len--;
    if (rc == 0 && (b.len == 0 || b.len > sizeof(h->secret)))
        rc = err_set(e, SHOAL_EINVAL, "the secret in %s is empty or too long",
                     h->config.secret_file);
    if (rc == 0) {
        memcpy(h->secret, b.data, b.len);
        h->n_secret = b.len;
    }
    buf_fini(&b);
    return rc;
}

bool webhooks_queue_file(char *out, size_t cap, const char *file, const char *url)
{
    int n = snprintf(out, cap, "%s.webhook-%016" PRIx64, file, hash_bytes(url, strlen(url), 0));
    return n > 0 && (size_t)n < cap;
}

static int open_hook(struct webhooks *w, const struct config_webhook *c, const char *file,
                     struct err *e)
{
    struct hook *h = &w->hooks[w->n++];
    char path[PATH_MAX];
    h->config = *c;
    h->config.url = mem_strdup(c->url);
    h->config.server = mem_strdup(c->server);
    h->config.path = mem_strdup(c->path);
    h->config.secret_file = c->secret_file ? mem_strdup(c->secret_file) : NULL;
    h->config.ca = NULL; /* the TLS client has it */
    h->last = &h->first;
    h->run = hash_mix((uint64_t)now_ms());
    pthread_mutex_init(&h->lock, NULL);
    cond_init(&h->changed);
    if (!h->config.url || !h->config.server || !h->config.path ||
        (c->secret_file && !h->config.secret_file))
        return err_set(e, SHOAL_ENOMEM, "webhook");
    if (!webhooks_queue_file(path, sizeof(path), file, c->url))
        return err_set(e, SHOAL_EINVAL, "the name %.100s... is too long", file);
    const struct spool_opts o = {.path = path, .max_bytes = c->queue_bytes};
    int rc = read_secret(h, e);
    if (rc == 0 && config_url_is_secure(c->server))
        rc = tls_client_open(&h->tls,
                             &(struct tls_opts){.ca = c->ca, .reload = true, .foreign = true}, e);
    if (rc == 0)
        rc = spool_open(&h->spool, &o, on_kept, h, e);
    for (const struct waiting *x = h->first; rc == 0 && x; x = x->next)
        plant_recall(w->plant, x->json, x->n);
    return rc;
}

int webhooks_create(struct webhooks **out, const struct config_webhooks *config, const char *file,
                    struct plant *plant, struct err *e)
{
    *out = NULL;
    if (config->n == 0)
        return 0;
    if (!plant || !file)
        return err_set(e, SHOAL_EINVAL, "alarms.webhooks needs %s",
                       plant ? "alarms.file: there is no state folder" : "sensors");
    struct webhooks *w = mem_zalloc(sizeof(*w));
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "webhooks");
    w->plant = plant;
    int rc = 0;
    for (uint32_t i = 0; i < config->n && rc == 0; i++)
        rc = open_hook(w, &config->v[i], file, e);
    if (rc == 0)
        rc = plant_listen(plant, on_alarm, NULL, w, e);
    if (rc < 0) {
        webhooks_destroy(w);
        return rc;
    }
    *out = w;
    return 0;
}

int webhooks_start(struct webhooks *w, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; w && i < w->n && rc == 0; i++) {
        rc = thread_create(&w->hooks[i].thread, "webhook", run, &w->hooks[i], e);
        w->hooks[i].has_thread = rc == 0;
    }
    return rc;
}

static void hook_fini(struct hook *h)
{
    if (h->has_thread)
        pthread_join(h->thread, NULL);
    while (h->first) {
        struct waiting *x = h->first;
        h->first = x->next;
        mem_free(x);
    }
    spool_close(h->spool);
    tls_client_close(h->tls);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
    mem_free(h->config.url);
    mem_free(h->config.server);
    mem_free(h->config.path);
    mem_free(h->config.secret_file);
}

void webhooks_destroy(struct webhooks *w)
{
    if (!w)
        return;
    for (uint32_t i = 0; i < w->n; i++) { /* all at once */
        pthread_mutex_lock(&w->hooks[i].lock);
        w->hooks[i].stop = true;
        pthread_cond_broadcast(&w->hooks[i].changed);
        pthread_mutex_unlock(&w->hooks[i].lock);
    }
    for (uint32_t i = 0; i < w->n; i++)
        hook_fini(&w->hooks[i]);
    mem_free(w);
}

void webhooks_metrics(struct webhooks *w, struct buf *b)
{
    if (!w)
        return;
    /* By place in the configuration: a URL may hold a secret. */
    prometheus_help(b, "shoal_webhook_events_total", "counter", "Events of alarms, by webhook.");
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t r = 0; r < N_RESULTS; r++)
            buf_printf(b, "shoal_webhook_events_total{webhook=\"%u\",result=\"%s\"} %" PRIu64 "\n",
                       i + 1, result_names[r], atomic_load(&w->hooks[i].counts[r]));
    prometheus_help(b, "shoal_webhook_waiting", "gauge", "Events that wait to be delivered.");
    for (uint32_t i = 0; i < w->n; i++)
        buf_printf(b, "shoal_webhook_waiting{webhook=\"%u\"} %" PRIu64 "\n", i + 1,
                   atomic_load(&w->hooks[i].n_waiting));
}
