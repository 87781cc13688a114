/* otlp_export.c - see otlp_export.h. */
#include "site/traces/otlp_export.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "config/config_url.h"
#include "host/prometheus.h"
#include "net/http_ask.h"
#include "net/tls.h"
#include "trace/otlp.h"

#define MAX_WAITING 2048u
#define MAX_BATCH 256u
#define GATHER_NS 1000000000ull /* how long a batch waits for more */
#define LAST_MS 2000u           /* for the last batches */
#define MAX_BODY_BYTES ((size_t)16 << 20)
#define MAX_ANSWER_BYTES ((size_t)64 << 10)
#define FIRST_WAIT_NS 1000000000ull
#define MAX_WAIT_NS 30000000000ull

enum result { SENT, REFUSED, FAILED, DROPPED, N_RESULTS };
static const char *const result_names[N_RESULTS] = {"sent", "refused", "failed", "dropped"};

struct otlp_export {
    struct trace_keeper keeper; /* first */
    struct otlp_place place;
    struct otlp_resource who;
    char version[64];
    struct tls_client *tls;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, stop;
    int stop_fd; /* ends a call of the thread */
    struct trace *waiting[MAX_WAITING];
    uint32_t first, n;
    uint32_t n_failed; /* batches in a row */
    _Atomic uint64_t counts[N_RESULTS];
};

/* ---- the queue ---- */

static void keep(struct trace_keeper *k, struct trace *t)
{
    struct otlp_export *x = (struct otlp_export *)(void *)k; /* its first member */
    pthread_mutex_lock(&x->lock);
    const bool room = x->n < MAX_WAITING && !x->stop;
    if (room)
        x->waiting[(x->first + x->n++) % MAX_WAITING] = trace_ref(t);
    if (room && (x->n == 1 || x->n == MAX_BATCH))
        pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
    if (!room)
        atomic_fetch_add(&x->counts[DROPPED], 1);
}

/* With the lock; the list is the caller's to let go of. */
static uint32_t take(struct otlp_export *x, struct trace **out)
{
    const uint32_t n = x->n < MAX_BATCH ? x->n : MAX_BATCH;
    for (uint32_t i = 0; i < n; i++)
        out[i] = x->waiting[(x->first + i) % MAX_WAITING];
    x->first = (x->first + n) % MAX_WAITING;
    x->n -= n;
    return n;
}

static void let_go(struct trace **list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        trace_unref(list[i]);
}

/* ---- sending ---- */

/* 0: the collector has them; SHOAL_EINVAL: it never will; otherwise: retry. */
static int post(struct otlp_export *x, const struct buf *body, uint32_t timeout_ms,
                uint64_t *n_refused, struct err *e)
{
    struct buf answer;
    int status = 0;
    buf_init(&answer, MAX_ANSWER_BYTES);
    const struct http_ask a = {.server = x->place.server,
                               .tls = x->tls,
                               .method = "POST",
                               .path = x->place.path,
                               .header = x->place.header.len ? buf_str(&x->place.header) : NULL,
                               .content_type = "application/x-protobuf",
                               .content = body->data,
                               .content_bytes = body->len,
                               .timeout_ms = timeout_ms,
                               .stop_fd = timeout_ms == LAST_MS ? NULL : &x->stop_fd};
    int rc = http_ask(&a, &status, &answer, e);
    const bool later = status == 429 || status == 502 || status == 503 || status == 504;
    if (rc == 0 && (status < 200 || status > 299))
        rc = err_set(e, later ? SHOAL_EIO : SHOAL_EINVAL, "status %d", status);
    else if (rc == SHOAL_EINVAL)
        rc = SHOAL_EIO; /* a bad address may be fixed in DNS */
    *n_refused = rc == 0 ? otlp_rejected(answer.data, answer.len) : 0;
    buf_fini(&answer);
    return rc;
}

/* With the lock: until the time has come, or the end. */
static void wait_until(struct otlp_export *x, uint64_t until_ns)
{
    const struct timespec ts = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                .tv_nsec = (long)(until_ns % 1000000000u)};
    while (!x->stop && clock_ns() < until_ns)
        pthread_cond_timedwait(&x->changed, &x->lock, &ts);
}

static void report(struct otlp_export *x, int rc, uint32_t n, uint64_t n_refused,
                   const struct err *e)
{
    if (rc < 0 && x->n_failed++ == 0)
        log_warn("tracing", "traces not accepted by %s: %s", x->place.server, e->msg);
    if (rc == 0 && x->n_failed > 0)
        log_info("tracing", "traces are accepted again by %s", x->place.server);
    if (rc == 0 && n_refused > 0)
        log_warn("tracing", "%s refused %" PRIu64 " spans", x->place.server, n_refused);
    if (rc == 0)
        x->n_failed = 0;
    atomic_fetch_add(&x->counts[rc == 0 ? SENT : rc == SHOAL_EINVAL ? REFUSED : FAILED], n);
}

/* Sends one batch; a collector that is away gets it again after a while, as long as it is away. */
static void send(struct otlp_export *x, struct trace **list, uint32_t n)
{
    struct err e = {0};
    struct buf body;
    uint64_t n_refused = 0, wait = FIRST_WAIT_NS;
    buf_init(&body, MAX_BODY_BYTES);
    otlp_put(&body, &x->who, list, n);
    for (int rc = body.rc; n > 0;) {
        pthread_mutex_lock(&x->lock);
        const bool stop = x->stop;
        pthread_mutex_unlock(&x->lock);
        if (rc == 0)
            rc = post(x, &body, stop ? LAST_MS : x->place.timeout_ms, &n_refused, &e);
        if (rc == 0 || rc == SHOAL_EINVAL || stop || rc == SHOAL_ENOMEM || rc == SHOAL_ELIMIT) {
            report(x, rc, n, n_refused, &e);
            break;
        }
        if (x->n_failed++ == 0)
            log_warn("tracing", "cannot reach %s, retrying: %s", x->place.server, e.msg);
        pthread_mutex_lock(&x->lock);
        wait_until(x, clock_ns() + wait);
        pthread_mutex_unlock(&x->lock);
        wait = wait * 2 < MAX_WAIT_NS ? wait * 2 : MAX_WAIT_NS;
        rc = 0;
    }
    buf_fini(&body);
}

static void *run(void *arg)
{
    struct otlp_export *x = arg;
    struct trace *list[MAX_BATCH];
    for (bool over = false; !over;) {
        pthread_mutex_lock(&x->lock);
        while (x->n == 0 && !x->stop)
            pthread_cond_wait(&x->changed, &x->lock);
        for (uint64_t until = clock_ns() + GATHER_NS;
             x->n < MAX_BATCH && !x->stop && clock_ns() < until;) {
            const struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
                                        .tv_nsec = (long)(until % 1000000000u)};
            pthread_cond_timedwait(&x->changed, &x->lock, &ts);
        }
        const uint32_t n = take(x, list);
        over = x->stop && x->n == 0;
        pthread_mutex_unlock(&x->lock);
        send(x, list, n);
        let_go(list, n);
        if (over || !x->n_failed)
            continue;
        pthread_mutex_lock(&x->lock);
        over = x->stop; /* it is away: what is left is lost */
        pthread_mutex_unlock(&x->lock);
    }
    return NULL;
}

/* ---- life ---- */

int otlp_export_create(struct otlp_export **out, struct otlp_place *place, const char *ca,
                       const char *version, struct err *e)
{
    struct otlp_export *x = mem_zalloc(sizeof(*x));
    *out = NULL;
    if (!x) {
        otlp_place_fini(place);
        return err_set(e, SHOAL_ENOMEM, "tracing");
    }
    x->keeper.keep = keep;
    x->place = *place;
    *place = (struct otlp_place){.n_pairs = 0};
    snprintf(x->version, sizeof(x->version), "%s", version);
    x->who = (struct otlp_resource){x->place.pairs, x->place.n_pairs, x->version};
    pthread_mutex_init(&x->lock, NULL);
    cond_init(&x->changed);
    x->stop_fd = eventfd(0, EFD_CLOEXEC);
    int rc = x->stop_fd < 0 ? err_set(e, SHOAL_EIO, "tracing: no descriptor is left") : 0;
    if (rc == 0 && config_url_is_secure(x->place.server))
        rc = tls_client_open(&x->tls, &(struct tls_opts){.ca = ca, .reload = true, .foreign = true},
                             e);
    if (rc == 0)
        rc = thread_create(&x->thread, "tracing", run, x, e);
    x->has_thread = rc == 0;
    if (rc < 0) {
        otlp_export_destroy(x);
        return rc;
    }
    *out = x;
    return 0;
}

void otlp_export_destroy(struct otlp_export *x)
{
    const uint64_t one = 1;
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    x->stop = true;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    if (x->has_thread && write(x->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
        pthread_join(x->thread, NULL);
    while (x->n > 0) {
        struct trace *list[MAX_BATCH];
        let_go(list, take(x, list));
    }
    if (x->stop_fd >= 0)
        close(x->stop_fd);
    tls_client_close(x->tls);
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
    otlp_place_fini(&x->place);
    mem_free(x);
}

struct trace_keeper *otlp_export_keeper(struct otlp_export *x)
{
    return x ? &x->keeper : NULL;
}

void otlp_export_metrics(struct otlp_export *x, struct buf *b)
{
    if (!x)
        return;
    prometheus_help(b, "shoal_traces_total", "counter", "Traces for the collector, by result.");
    for (int i = 0; i < N_RESULTS; i++)
        buf_printf(b, "shoal_traces_total{result=\"%s\"} %" PRIu64 "\n", result_names[i],
                   atomic_load(&x->counts[i]));
}
