/* bus.c - see bus.h. */
#include "cluster/control/bus.h"

#include <errno.h>
#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/cond.h"
#include "base/thread/executor.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"

enum {
    DEFAULT_RECONNECT_MS = 250,
    DEFAULT_PING_MS = 2000,
    CONNECT_TIMEOUT_MS = 2000,
    WRITE_DEADLINE_MS = 2000,
    FILES_MS = 1000, /* while disconnected: interval for checking the certificates */
    CLOCK_MS = 500,  /* interval for checking whether the clock was set */
    STEP_MS = 2000,  /* a smaller change is none: clocks are corrected all the time */
};
#define DEFAULT_QUEUE_BYTES (8u << 20)
#define MAX_QUEUE_MESSAGES 65536u
#define MAX_PAUSE_SHIFT 4u /* reconnect_ms, doubled with every refusal */
#define MS_NS 1000000u
#define N_FILES 3 /* CA, certificate, key */

struct message {
    struct message *next;
    struct bus_sub *sub;
    size_t n, subject_bytes; /* subject with its NUL, then the payload */
    char data[];
};

struct bus_sub {
    struct bus_sub *next;
    struct bus *bus;
    natsSubscription *nats; /* NULL: there was no connection yet */
    bus_message_fn fn;      /* NULL: unsubscribed */
    void *ctx;
    bool running; /* libnats may call; under the lock */
    char subject[BUS_MAX_SUBJECT];
};

/* A connection that libnats has closed. Others may still hold its pointer. */
struct retired {
    struct retired *next;
    natsConnection *nc;
};

struct bus {
    struct executor *x;
    bus_link_fn on_link;
    void *ctx;
    char cluster[BUS_MAX_CLUSTER + 1];
    size_t max_queue_bytes, n_urls;
    struct bus_opts opts; /* strings are owned */
    char *urls[BUS_MAX_SERVERS];
    char *files[N_FILES];
    /* modification times when the files were read; used only by the keeper */
    struct timespec changed_at[N_FILES];
    int64_t clock_ms; /* of this machine, ahead of its uptime; likewise */
    pthread_t keeper;
    bool has_keeper;

    /* The next four; taken before `lock`.  Not held while libnats connects or calls. */
    pthread_mutex_t connection_lock;
    natsConnection *nc;
    struct retired *retired;
    struct bus_sub *subs; /* the list: also under `lock` */
    _Atomic uint32_t generation;

    pthread_mutex_t lock; /* all below; never held during a callback or a call into libnats */
    pthread_cond_t changed;
    struct bus_status status;
    struct message *first, **end;
    size_t queue_bytes, n_queued;
    struct executor_task task;
    bool posted;     /* task is in the executor */
    bool link_news;  /* on_link is due */
    bool nats_calls; /* libnats may still call back for the connection */
    bool dead;       /* libnats has closed the connection */
    bool closed;
};

/* ---- libnats's threads ---------------------------------------------------------------------- */

/* Under the lock. */
static void wake_owner(struct bus *b)
{
    if (b->posted || b->closed || !b->x)
        return;
    b->posted = true;
    executor_post(b->x, &b->task);
}

static void drop_oldest(struct bus *b)
{
    struct message *m = b->first;
    b->first = m->next;
    if (!b->first)
        b->end = &b->first;
    b->queue_bytes -= m->n + m->subject_bytes;
    b->n_queued--;
    mem_free(m);
}

static void on_message(natsConnection *nc, natsSubscription *nats, natsMsg *msg, void *closure)
{
    (void)nc;
    (void)nats;
    struct bus_sub *s = closure;
    struct bus *b = s->bus;
    const char *subject = natsMsg_GetSubject(msg);
    size_t n = (size_t)natsMsg_GetDataLength(msg), subject_bytes = strlen(subject) + 1;
    struct message *m = mem_alloc(sizeof(*m) + subject_bytes + n);
    if (m) {
        *m = (struct message){.sub = s, .n = n, .subject_bytes = subject_bytes};
        memcpy(m->data, subject, subject_bytes);
        if (n)
            memcpy(m->data + subject_bytes, natsMsg_GetData(msg), n);
    }
    natsMsg_Destroy(msg);
    pthread_mutex_lock(&b->lock);
    b->status.n_received++;
    if (!m || b->closed || n + subject_bytes > b->max_queue_bytes) {
        mem_free(m);
    } else {
        while (b->n_queued >= MAX_QUEUE_MESSAGES ||
               b->queue_bytes + n + subject_bytes > b->max_queue_bytes)
            drop_oldest(b);
        *b->end = m;
        b->end = &m->next;
        b->queue_bytes += n + subject_bytes;
        b->n_queued++;
        wake_owner(b);
    }
    pthread_mutex_unlock(&b->lock);
}

static void on_complete(void *closure) /* the last call of a subscription */
{
    struct bus_sub *s = closure;
    struct bus *b = s->bus;
    pthread_mutex_lock(&b->lock);
    s->running = false;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void set_link(struct bus *b, enum bus_link link, const char *server, const char *error)
{
    uint64_t now = clock_ns();
    pthread_mutex_lock(&b->lock);
    struct bus_status *s = &b->status;
    if (link == BUS_UP) {
        s->n_connects++;
        if (s->link == BUS_AWAY)
            s->last_away_ns = now - s->since_ns;
    } else if (link == BUS_AWAY && s->link == BUS_UP) {
        s->n_losses++;
    }
    if (s->link != link)
        s->since_ns = now;
    s->link = link;
    snprintf(s->server, sizeof(s->server), "%s", server);
    if (error[0])
        snprintf(s->error, sizeof(s->error), "%s", error);
    b->link_news = true;
    wake_owner(b);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void on_connected(natsConnection *nc, void *closure)
{
    char url[128] = "";
    natsConnection_GetConnectedUrl(nc, url, sizeof(url));
    const char *at = strrchr(url, '@'); /* without user and password */
    set_link(closure, BUS_UP, at ? at + 1 : url, "");
}

static void on_disconnected(natsConnection *nc, void *closure)
{
    const char *text = NULL;
    natsConnection_GetLastError(nc, &text);
    set_link(closure, BUS_AWAY, "", text && text[0] ? text : "connection lost");
}

static void on_error(natsConnection *nc, natsSubscription *nats, natsStatus s, void *closure)
{
    (void)nats;
    struct bus *b = closure;
    const char *text = NULL;
    if (s == NATS_NOT_PERMITTED) /* "Permissions Violation for Publish to ..." */
        natsConnection_GetLastError(nc, &text);
    pthread_mutex_lock(&b->lock);
    b->status.n_denied += s == NATS_NOT_PERMITTED;
    snprintf(b->status.error, sizeof(b->status.error), "%s",
             text && text[0] ? text : natsStatus_GetText(s));
    pthread_mutex_unlock(&b->lock);
}

static void on_closed(natsConnection *nc, void *closure) /* the last call of a connection */
{
    (void)nc;
    struct bus *b = closure;
    pthread_mutex_lock(&b->lock);
    b->nats_calls = false;
    b->dead = true; /* libnats gives up after two refusals in a row; the keeper thread continues */
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

/* ---- the owner's thread --------------------------------------------------------------------- */

static void free_bus(struct bus *b)
{
    for (size_t i = 0; i < b->n_urls; i++)
        mem_free(b->urls[i]);
    for (int i = 0; i < N_FILES; i++)
        mem_free(b->files[i]);
    mem_free((char *)(uintptr_t)b->opts.name);
    for (struct message *m = b->first, *next; m; m = next) {
        next = m->next;
        mem_free(m);
    }
    for (struct bus_sub *s = b->subs, *next; s; s = next) {
        next = s->next;
        mem_free(s);
    }
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    pthread_mutex_destroy(&b->connection_lock);
    mem_free(b);
}

/* Takes everything that waits.  A callback may close the bus: then the rest is not delivered, and
 * close leaves the bus to us. */
static void run_task(struct executor_task *t)
{
    struct bus *b = EXECUTOR_OF(t, struct bus, task);
    struct bus_status status;
    struct message *m;
    pthread_mutex_lock(&b->lock);
    bool news = b->link_news;
    b->link_news = false;
    status = b->status;
    m = b->first;
    b->first = NULL;
    b->end = &b->first;
    b->queue_bytes = b->n_queued = 0;
    pthread_mutex_unlock(&b->lock);
    if (news && b->on_link && !b->closed) /* closed: set only on this thread */
        b->on_link(b->ctx, &status);
    for (struct message *next; m; m = next) {
        next = m->next;
        if (!b->closed && m->sub->fn)
            m->sub->fn(m->sub->ctx, m->data, m->data + m->subject_bytes, m->n);
        mem_free(m);
    }
    pthread_mutex_lock(&b->lock);
    b->posted = false;
    bool closed = b->closed;
    if (b->first || b->link_news)
        wake_owner(b);
    pthread_mutex_unlock(&b->lock);
    if (closed)
        free_bus(b);
}

/* Under the lock. */
static bool any_calls(const struct bus *b)
{
    for (const struct bus_sub *s = b->subs; s; s = s->next)
        if (s->running)
            return true;
    return b->nats_calls;
}

void bus_close(struct bus *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->closed = true; /* from now on nothing is queued or posted */
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (b->has_keeper)
        pthread_join(b->keeper, NULL);
    if (b->nc)
        natsConnection_Close(b->nc);
    pthread_mutex_lock(&b->lock);
    while (any_calls(b))
        pthread_cond_wait(&b->changed, &b->lock);
    bool posted = b->posted;
    pthread_mutex_unlock(&b->lock);
    for (struct bus_sub *s = b->subs; s; s = s->next)
        natsSubscription_Destroy(s->nats);
    natsConnection_Destroy(b->nc);
    b->nc = NULL;
    for (struct retired *r = b->retired, *next; r; r = next) {
        next = r->next;
        natsConnection_Destroy(r->nc);
        mem_free(r);
    }
    if (!posted) /* else the task frees it */
        free_bus(b);
}

/* ---- opening -------------------------------------------------------------------------------- */

bool bus_cluster_ok(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= BUS_MAX_CLUSTER &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && name[0] != '-';
}

static int check_file(const char *path, const char *what, struct err *e)
{
    if (access(path, R_OK) == 0)
        return 0;
    return err_set(e, SHOAL_EIO, "cannot read the %s %s: %s", what, path, strerror(errno));
}

static int set_tls(natsOptions *no, const struct bus_opts *o, struct err *e)
{
    int rc;
    if (!o->ca_file && !o->cert_file && !o->key_file)
        return 0;
    if (!o->ca_file || !o->cert_file || !o->key_file)
        return err_set(e, SHOAL_EINVAL,
                       "NATS over TLS needs a certificate, its key and the CA's certificate");
    if ((rc = check_file(o->ca_file, "CA certificate", e)) < 0 ||
        (rc = check_file(o->cert_file, "certificate", e)) < 0 ||
        (rc = check_file(o->key_file, "key", e)) < 0)
        return rc;
    natsStatus s = natsOptions_SetSecure(no, true);
    if (s == NATS_OK && natsOptions_LoadCATrustedCertificates(no, o->ca_file) != NATS_OK)
        return err_set(e, SHOAL_EIO, "%s is not a certificate in PEM form", o->ca_file);
    if (s == NATS_OK && natsOptions_LoadCertificatesChain(no, o->cert_file, o->key_file) != NATS_OK)
        return err_set(e, SHOAL_EIO, "%s and %s are not a certificate and its key in PEM form",
                       o->cert_file, o->key_file);
    return s == NATS_OK ? 0 : err_set(e, SHOAL_ENOMEM, "NATS options");
}

/* patient: libnats itself waits for the first server that can be reached. */
static int set_options(natsOptions *no, struct bus *b, bool patient, struct err *e)
{
    const struct bus_opts *o = &b->opts;
    const char *urls[BUS_MAX_SERVERS];
    uint32_t wait = o->reconnect_ms ? o->reconnect_ms : DEFAULT_RECONNECT_MS;
    for (size_t i = 0; i < o->n_urls; i++) {
        urls[i] = o->urls[i];
        if (strncmp(urls[i], "nats://", 7) != 0 && strncmp(urls[i], "tls://", 6) != 0)
            return err_set(e, SHOAL_EINVAL, "'%s' is not the address of a NATS server: use %s",
                           urls[i], "nats://HOST:PORT or tls://HOST:PORT");
    }
    if (natsOptions_SetServers(no, urls, (int)o->n_urls) != NATS_OK)
        return err_set(e, SHOAL_EINVAL, "the addresses of the NATS servers are not valid: %s",
                       nats_GetLastError(NULL));
    natsStatus s = natsOptions_SetName(no, o->name ? o->name : "shoal");
    if (s == NATS_OK)
        s = natsOptions_SetMaxReconnect(no, -1);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectWait(no, wait);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectJitter(no, wait, wait);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectBufSize(no, 0); /* nothing is buffered while disconnected */
    if (s == NATS_OK)
        s = natsOptions_SetPingInterval(no, o->ping_ms ? o->ping_ms : DEFAULT_PING_MS);
    if (s == NATS_OK)
        s = natsOptions_SetMaxPingsOut(no, 2);
    if (s == NATS_OK)
        s = natsOptions_SetTimeout(no, CONNECT_TIMEOUT_MS);
    if (s == NATS_OK)
        s = natsOptions_SetWriteDeadline(no, WRITE_DEADLINE_MS);
    if (s == NATS_OK) /* a request fails at once when the connection is lost */
        s = natsOptions_SetFailRequestsOnDisconnect(no, true);
    if (s == NATS_OK && patient)
        s = natsOptions_SetRetryOnFailedConnect(no, true, on_connected, b);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectedCB(no, on_connected, b);
    if (s == NATS_OK)
        s = natsOptions_SetDisconnectedCB(no, on_disconnected, b);
    if (s == NATS_OK)
        s = natsOptions_SetErrorHandler(no, on_error, b);
    if (s == NATS_OK)
        s = natsOptions_SetClosedCB(no, on_closed, b);
    return s == NATS_OK ? set_tls(no, o, e) : err_set(e, SHOAL_ENOMEM, "NATS options");
}

static const char not_our_ca[] = ": are both certificates valid, and of the same CA?";

/* Connects with the certificates as they are now. */
static int connect_once(struct bus *b, natsConnection **nc, bool patient, struct err *e)
{
    natsOptions *no = NULL;
    struct stat st;
    for (int i = 0; i < N_FILES; i++) /* before they are read */
        if (b->files[i] && stat(b->files[i], &st) == 0)
            b->changed_at[i] = st.st_mtim;
    int rc = natsOptions_Create(&no) == NATS_OK ? set_options(no, b, patient, e)
                                                : err_set(e, SHOAL_ENOMEM, "NATS options");
    if (rc == 0) {
        pthread_mutex_lock(&b->lock); /* before: it may close itself at once */
        b->nats_calls = true;
        b->dead = false;
        pthread_mutex_unlock(&b->lock);
        natsStatus s = natsConnection_Connect(nc, no);
        if (s != NATS_OK && s != NATS_NOT_YET_CONNECTED) {
            pthread_mutex_lock(&b->lock);
            b->nats_calls = false; /* no connection, so no thread of libnats calls us */
            b->dead = true;
            pthread_mutex_unlock(&b->lock);
            rc = err_set(e, SHOAL_EIO, "cannot connect to NATS at %s: %s%s", b->urls[0],
                         natsStatus_GetText(s), s == NATS_SSL_ERROR ? not_our_ca : "");
        }
        if (s == NATS_OK) /* then libnats does not call on_connected */
            on_connected(*nc, b);
    }
    natsOptions_Destroy(no);
    return rc;
}

/* Under connection_lock. */
static natsStatus subscribe(struct bus *b, struct bus_sub *s)
{
    natsSubscription *nats = NULL;
    natsStatus st = natsConnection_Subscribe(&nats, b->nc, s->subject, on_message, s);
    if (st != NATS_OK)
        return st;
    natsSubscription_SetPendingLimits(nats, (int)MAX_QUEUE_MESSAGES, (int)b->max_queue_bytes);
    pthread_mutex_lock(&b->lock);
    s->running = true; /* set first: it may end immediately */
    pthread_mutex_unlock(&b->lock);
    if (natsSubscription_SetOnCompleteCB(nats, on_complete, s) != NATS_OK)
        on_complete(s);
    s->nats = nats;
    return NATS_OK;
}

/* ---- the keeper's thread --------------------------------------------------------------------- */

/* Replaces a connection that libnats has closed. */
static bool replace(struct bus *b, struct err *e)
{
    natsConnection *nc = NULL;
    struct retired *old = mem_alloc(sizeof(*old));
    int rc = old ? connect_once(b, &nc, false, e) : err_set(e, SHOAL_ENOMEM, "NATS connection");
    if (rc < 0) {
        mem_free(old);
        return false;
    }
    natsStatus s = NATS_OK;
    pthread_mutex_lock(&b->connection_lock);
    *old = (struct retired){b->retired, b->nc};
    b->retired = old;
    b->nc = nc;
    for (struct bus_sub *sub = b->subs; sub && s == NATS_OK; sub = sub->next) {
        natsSubscription_Destroy(sub->nats);
        sub->nats = NULL;
        if (sub->fn)
            s = subscribe(b, sub);
    }
    atomic_fetch_add(&b->generation, 1);
    pthread_mutex_unlock(&b->connection_lock);
    if (s != NATS_OK)
        natsConnection_Close(nc); /* on_closed marks it dead, and the keeper replaces it */
    return true;
}

static bool files_changed(const struct bus *b)
{
    struct stat st;
    for (int i = 0; i < N_FILES; i++)
        if (b->files[i] && stat(b->files[i], &st) == 0 &&
            (st.st_mtim.tv_sec != b->changed_at[i].tv_sec ||
             st.st_mtim.tv_nsec != b->changed_at[i].tv_nsec))
            return true;
    return false;
}

/* Under the lock. */
static void wait_changed(struct bus *b, uint64_t until_ns)
{
    struct timespec t = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    (void)pthread_cond_timedwait(&b->changed, &b->lock, &t);
}

static int64_t clock_ahead_ms(void)
{
    return (int64_t)clock_unix_ms() - (int64_t)(clock_ns() / MS_NS);
}

/* libnats waits until a time of the day.  If the clock is set back, what waits then goes on to wait
 * by as much: for an answer that was lost, for the next ping, before it connects again.  A new
 * connection ends all of that. */
static bool was_set_back(struct bus *b)
{
    const int64_t now = clock_ahead_ms(), step = now - b->clock_ms;
    b->clock_ms = now;
    if (step > -STEP_MS && step < STEP_MS)
        return false;
    log_warn("cluster", "the clock of this machine was set %s by %.1f s%s",
             step < 0 ? "back" : "forward", (double)(step < 0 ? -step : step) / 1e3,
             step < 0 ? ": connecting to NATS anew" : ", or it slept");
    return step < 0;
}

/* Keeps a connection: libnats closes one whose credentials were refused twice, reads certificates
 * only when it connects, and trusts the clock. */
static void *keep(void *arg)
{
    struct bus *b = arg;
    uint32_t n_tries = 0;
    b->clock_ms = clock_ahead_ms();
    uint64_t pause = (uint64_t)(b->opts.reconnect_ms ? b->opts.reconnect_ms : DEFAULT_RECONNECT_MS);
    pthread_mutex_lock(&b->lock);
    while (!b->closed) {
        if (was_set_back(b) && !b->dead) {
            pthread_mutex_unlock(&b->lock);
            natsConnection_Close(b->nc); /* only the keeper changes nc */
            pthread_mutex_lock(&b->lock);
        } else if (b->dead && !any_calls(b)) {
            uint64_t most = (pause << (n_tries < MAX_PAUSE_SHIFT ? n_tries : MAX_PAUSE_SHIFT));
            uint64_t end = clock_ns() + (most + hash_mix(clock_ns()) % (most + 1)) * MS_NS;
            struct err e = {0};
            while (!b->closed && clock_ns() < end)
                wait_changed(b, end);
            if (b->closed)
                break;
            pthread_mutex_unlock(&b->lock);
            bool ok = replace(b, &e);
            pthread_mutex_lock(&b->lock);
            n_tries = ok ? 0 : n_tries + 1;
            if (!ok)
                snprintf(b->status.error, sizeof(b->status.error), "%.159s", e.msg);
        } else if (!b->dead && b->status.link != BUS_UP && b->files[0]) {
            wait_changed(b, clock_ns() + (uint64_t)FILES_MS * MS_NS);
            bool away = !b->closed && !b->dead && b->status.link != BUS_UP;
            pthread_mutex_unlock(&b->lock);
            if (away && files_changed(b))
                natsConnection_Close(b->nc); /* only the keeper changes nc */
            pthread_mutex_lock(&b->lock);
        } else {
            wait_changed(b, clock_ns() + (uint64_t)CLOCK_MS * MS_NS);
        }
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- opening, again -------------------------------------------------------------------------- */

static bool copy_opts(struct bus *b, const struct bus_opts *o)
{
    const char *files[N_FILES] = {o->ca_file, o->cert_file, o->key_file};
    bool ok = true;
    b->opts = *o;
    b->opts.name = mem_strndup(o->name ? o->name : "shoal", strlen(o->name ? o->name : "shoal"));
    for (size_t i = 0; i < o->n_urls; i++)
        ok &= (b->urls[i] = mem_strndup(o->urls[i], strlen(o->urls[i]))) != NULL;
    for (int i = 0; i < N_FILES; i++)
        ok &= !files[i] || (b->files[i] = mem_strndup(files[i], strlen(files[i])));
    b->opts.urls = (const char *const *)b->urls;
    b->opts.ca_file = b->files[0];
    b->opts.cert_file = b->files[1];
    b->opts.key_file = b->files[2];
    return ok && b->opts.name;
}

int bus_open(struct bus **out, const struct bus_opts *o, struct executor *x, bus_link_fn on_link,
             void *ctx, struct err *e)
{
    struct bus *b;
    *out = NULL;
    if (!o->cluster || !bus_cluster_ok(o->cluster))
        return err_set(e, SHOAL_EINVAL,
                       "'%s' is not a valid name for a cluster: use up to %u of a-z, 0-9 and -",
                       o->cluster ? o->cluster : "", BUS_MAX_CLUSTER);
    if (o->n_urls == 0 || o->n_urls > BUS_MAX_SERVERS)
        return err_set(e, SHOAL_EINVAL, "%zu NATS servers: give 1 to %u addresses", o->n_urls,
                       BUS_MAX_SERVERS);
    b = mem_zalloc(sizeof(*b));
    if (!b)
        return err_set(e, SHOAL_ENOMEM, "NATS connection");
    b->x = x;
    b->on_link = on_link;
    b->ctx = ctx;
    b->n_urls = o->n_urls;
    b->task.fn = run_task;
    b->end = &b->first;
    b->max_queue_bytes = o->max_queue_bytes ? o->max_queue_bytes : DEFAULT_QUEUE_BYTES;
    snprintf(b->cluster, sizeof(b->cluster), "%s", o->cluster);
    b->status.since_ns = clock_ns();
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->connection_lock, NULL);
    cond_init(&b->changed);
    int rc = copy_opts(b, o) ? connect_once(b, &b->nc, true, e)
                             : err_set(e, SHOAL_ENOMEM, "NATS connection");
    if (rc == 0 && (rc = thread_create(&b->keeper, "bus", keep, b, e)) == 0)
        b->has_keeper = true;
    if (rc < 0) {
        bus_close(b);
        return rc;
    }
    *out = b;
    return 0;
}

/* ---- using ---------------------------------------------------------------------------------- */

int bus_subject(const struct bus *b, char out[BUS_MAX_SUBJECT], const char *tail, struct err *e)
{
    int n = snprintf(out, BUS_MAX_SUBJECT, "shoal.%s.%s", b->cluster, tail);
    if (n < 0 || (size_t)n >= BUS_MAX_SUBJECT)
        return err_set(e, SHOAL_EINVAL, "the subject %.40s... is too long", tail);
    return 0;
}

int bus_subscribe(struct bus *b, const char *tail, bus_message_fn fn, void *ctx,
                  struct bus_sub **out, struct err *e)
{
    struct bus_sub *s = mem_zalloc(sizeof(*s));
    if (out)
        *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "NATS subscription");
    *s = (struct bus_sub){.bus = b, .fn = fn, .ctx = ctx};
    int rc = bus_subject(b, s->subject, tail, e);
    if (rc < 0) {
        mem_free(s);
        return rc;
    }
    pthread_mutex_lock(&b->connection_lock);
    natsStatus st = subscribe(b, s);
    bool ok = st == NATS_OK || st == NATS_CONNECTION_CLOSED; /* closed: the keeper does it */
    if (ok) {
        pthread_mutex_lock(&b->lock);
        s->next = b->subs;
        b->subs = s;
        pthread_mutex_unlock(&b->lock);
    }
    pthread_mutex_unlock(&b->connection_lock);
    if (!ok) {
        rc =
            err_set(e, SHOAL_EIO, "cannot subscribe to %s: %s", s->subject, natsStatus_GetText(st));
        mem_free(s);
        return rc;
    }
    if (out)
        *out = s;
    return 0;
}

void bus_unsubscribe(struct bus_sub *s) /* freed with the bus: messages may still name it */
{
    if (!s)
        return;
    pthread_mutex_lock(&s->bus->connection_lock);
    s->fn = NULL;
    if (s->nats)
        natsSubscription_Unsubscribe(s->nats);
    pthread_mutex_unlock(&s->bus->connection_lock);
}

bool bus_nobody_listens(struct bus *b, const char *tail, uint32_t ms)
{
    char subject[BUS_MAX_SUBJECT];
    natsMsg *reply = NULL;
    struct err e = {0};
    if (bus_subject(b, subject, tail, &e) < 0)
        return false;
    const natsStatus s =
        natsConnection_RequestString(&reply, bus_connection(b), subject, "", (int64_t)ms);
    natsMsg_Destroy(reply);
    return s == NATS_NO_RESPONDERS;
}

int bus_publish(struct bus *b, const char *tail, const void *bytes, size_t n, struct err *e)
{
    char subject[BUS_MAX_SUBJECT];
    int rc = bus_subject(b, subject, tail, e);
    if (rc < 0)
        return rc;
    natsStatus s = n > INT32_MAX
                       ? NATS_MAX_PAYLOAD
                       : natsConnection_Publish(bus_connection(b), subject, bytes, (int)n);
    pthread_mutex_lock(&b->lock);
    if (s == NATS_OK)
        b->status.n_sent++;
    else
        b->status.n_refused++;
    pthread_mutex_unlock(&b->lock);
    switch (s) {
    case NATS_OK:
        return 0;
    case NATS_MAX_PAYLOAD:
        return err_set(e, SHOAL_ELIMIT,
                       "a message of %zu bytes to %s is too large: the NATS server accepts %lld", n,
                       subject, (long long)natsConnection_GetMaxPayload(bus_connection(b)));
    default:
        return err_set(e, SHOAL_EBUSY, "NATS is away (%s)", natsStatus_GetText(s));
    }
}

void bus_get_status(struct bus *b, struct bus_status *out)
{
    pthread_mutex_lock(&b->lock);
    *out = b->status;
    pthread_mutex_unlock(&b->lock);
}

int bus_wait(struct bus *b, uint32_t ms, struct err *e)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&b->lock);
    while (b->status.link != BUS_UP && rc == 0)
        rc = pthread_cond_timedwait(&b->changed, &b->lock, &until);
    bool up = b->status.link == BUS_UP;
    char why[sizeof(b->status.error)];
    memcpy(why, b->status.error, sizeof(why));
    pthread_mutex_unlock(&b->lock);
    if (up)
        return 0;
    const char *last = NULL;
    if (!why[0] && natsConnection_GetLastError(bus_connection(b), &last) != NATS_OK && last)
        snprintf(why, sizeof(why), "%s", last);
    return err_set(e, SHOAL_EIO, "no NATS server can be reached%s%s%s", why[0] ? " (" : "", why,
                   why[0] ? ")" : "");
}

const char *bus_cluster(const struct bus *b)
{
    return b->cluster;
}

size_t bus_n_urls(const struct bus *b)
{
    return b->n_urls;
}

struct __natsConnection *bus_connection(struct bus *b)
{
    pthread_mutex_lock(&b->connection_lock);
    natsConnection *nc = b->nc;
    pthread_mutex_unlock(&b->connection_lock);
    return nc;
}

uint32_t bus_generation(const struct bus *b)
{
    return atomic_load(&b->generation);
}

void bus_reason(struct bus *b, char out[160], int nats_status)
{
    const char *text = nats_GetLastError(NULL), *after;
    struct bus_status s;
    bus_get_status(b, &s);
    if (s.link != BUS_UP) {
        snprintf(out, 160, "NATS is away%s%.140s", s.error[0] ? ": " : "", s.error);
        return;
    }
    if (!text || !text[0])
        text = natsStatus_GetText((natsStatus)nats_status);
    if (text[0] == '(' && (after = strstr(text, "): "))) /* "(js.c:123): ..." */
        text = after + 3;
    snprintf(out, 160, "%s", text);
}
