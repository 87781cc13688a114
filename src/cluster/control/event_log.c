/* event_log.c - see event_log.h. */
#include "cluster/control/event_log.h"

#include <nats/nats.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired_code.h"
#include "shoal/control/v1/control.pb-c.h"
#include "wire/pb.h"

#define STREAM "SHOAL_EVENTS"
#define SUBJECTS "shoal.*.event.>"
#define FORMAT 1u
#define MAX_EVENT_BYTES 4096u
enum {
    DEFAULT_WAITING = 1024,
    DEFAULT_FLUSH_MS = 1000,
    DEFAULT_HOURS = 168,
    WAIT_MS = 2000,
    PAUSE_MS = 250,
};
#define DEFAULT_BYTES (64u << 20)

typedef Shoal__Control__V1__Event PbEvent;

struct waiting {
    struct waiting *next;
    uint64_t number;
    enum event_log_kind kind;
    size_t n;
    uint8_t bytes[];
};

struct event_log {
    struct bus *bus;
    jsCtx *js;           /* the thread's */
    uint32_t generation; /* generation of the bus when js was made */
    char name[EVENT_LOG_MAX_NAME + 1];
    char run[33]; /* random: numbers of this run are unique with it */
    uint32_t max_waiting, flush_ms;
    unsigned replicas;
    uint64_t keep_ns, keep_bytes;
    pthread_t thread;
    bool threaded;
    bool stream_there; /* the thread's */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    struct waiting *first, **end;
    uint64_t number;
    struct event_log_status status;
    bool stop;
    uint64_t stop_by_ns;
};

const char *event_log_kind_text(enum event_log_kind kind)
{
#define X(n, id, text) [n] = text,
    static const char *const texts[] = {EVENT_LOG_KINDS(X)};
#undef X
    return kind > 0 && kind < sizeof(texts) / sizeof(texts[0]) ? texts[kind] : "?";
}

/* ---- one event ------------------------------------------------------------------------------ */

/* The longest start of s within max bytes that cuts no character. */
static const char *cut(char *out, size_t max, const char *s)
{
    size_t n = s ? strnlen(s, max + 1) : 0;
    if (n > max)
        for (n = max; n && ((unsigned char)s[n] & 0xc0) == 0x80;)
            n--;
    if (n)
        memcpy(out, s, n);
    out[n] = '\0';
    return out;
}

static int encode(struct buf *out, const struct event_log *l, const struct event_log_entry *entry)
{
    char sender[EVENT_LOG_MAX_NAME + 1], node[EVENT_LOG_MAX_NAME + 1],
        model[EVENT_LOG_MAX_NAME + 1], text[EVENT_LOG_MAX_TEXT + 1];
    uint8_t sum[SHA256_BYTES];
    PbEvent m = SHOAL__CONTROL__V1__EVENT__INIT;
    memcpy(sum, entry->sha256, sizeof(sum));
    m.format = FORMAT;
    m.kind = entry->kind;
    m.at_ms = entry->at_ms ? entry->at_ms : clock_unix_ms();
    m.sender = pb_text(cut(sender, EVENT_LOG_MAX_NAME, entry->sender ? entry->sender : l->name));
    m.node = pb_text(cut(node, EVENT_LOG_MAX_NAME, entry->node));
    m.model = pb_text(cut(model, EVENT_LOG_MAX_NAME, entry->model));
    m.text = pb_text(cut(text, EVENT_LOG_MAX_TEXT, entry->text));
    if (entry->has_sha256)
        m.sha256 = (ProtobufCBinaryData){sizeof(sum), sum};
    m.fence = entry->fence;
    return pb_put(out, &m.base);
}

int event_log_parse(struct event_log_entry *out, void **memory, const void *bytes, size_t n,
                    struct err *e)
{
    PbEvent *m =
        n <= MAX_EVENT_BYTES ? shoal__control__v1__event__unpack(pb_heap(), n, bytes) : NULL;
    *memory = NULL;
    *out = (struct event_log_entry){0};
    if (!m)
        return err_set(e, SHOAL_EFORMAT, "these bytes are not an event");
    bool sum = m->sha256.len == SHA256_BYTES;
    if (m->format != FORMAT || desired_code_unknown(m) || m->kind == 0 || m->kind > INT32_MAX ||
        (m->sha256.len && !sum) || strlen(m->sender) > EVENT_LOG_MAX_NAME ||
        strlen(m->node) > EVENT_LOG_MAX_NAME || strlen(m->model) > EVENT_LOG_MAX_NAME ||
        strlen(m->text) > EVENT_LOG_MAX_TEXT) {
        shoal__control__v1__event__free_unpacked(m, pb_heap());
        return err_set(e, SHOAL_EFORMAT, "the event is invalid, or from a newer version");
    }
    *out = (struct event_log_entry){.kind = (enum event_log_kind)m->kind,
                                    .at_ms = m->at_ms,
                                    .sender = m->sender,
                                    .node = m->node,
                                    .model = m->model,
                                    .text = m->text,
                                    .has_sha256 = sum,
                                    .fence = m->fence};
    if (sum)
        memcpy(out->sha256, m->sha256.data, SHA256_BYTES);
    *memory = m;
    return 0;
}

void event_log_free(void *memory)
{
    if (memory)
        shoal__control__v1__event__free_unpacked(memory, pb_heap());
}

/* ---- writing -------------------------------------------------------------------------------- */

void event_log_add(struct event_log *l, const struct event_log_entry *entry)
{
    struct waiting *w = NULL, *dropped = NULL;
    struct buf b;
    buf_init(&b, MAX_EVENT_BYTES);
    if (encode(&b, l, entry) == 0 && (w = mem_alloc(sizeof(*w) + b.len))) {
        *w = (struct waiting){.kind = entry->kind, .n = b.len};
        memcpy(w->bytes, b.data, b.len);
    }
    buf_fini(&b);
    pthread_mutex_lock(&l->lock);
    if (!w) {
        l->status.n_dropped++;
    } else {
        if (l->status.n_waiting == l->max_waiting) {
            dropped = l->first;
            l->first = dropped->next;
            if (!l->first)
                l->end = &l->first;
            l->status.n_dropped++;
            l->status.n_waiting--;
        }
        w->number = ++l->number;
        *l->end = w;
        l->end = &w->next;
        l->status.n_waiting++;
        pthread_cond_signal(&l->wake);
    }
    pthread_mutex_unlock(&l->lock);
    mem_free(dropped);
}

static natsStatus create_stream(struct event_log *l)
{
    const char *subjects[] = {SUBJECTS};
    size_t n = bus_n_urls(l->bus);
    jsStreamConfig c;
    jsErrCode code = 0;
    jsStreamInfo *info = NULL;
    natsStatus s = js_GetStreamInfo(&info, l->js, STREAM, NULL, &code);
    jsStreamInfo_Destroy(info);
    if (s != NATS_NOT_FOUND && code != JSStreamNotFoundErr)
        return s;
    jsStreamConfig_Init(&c);
    c.Name = STREAM;
    c.Subjects = subjects;
    c.SubjectsLen = 1;
    c.MaxAge = (int64_t)l->keep_ns;
    c.MaxBytes = (int64_t)l->keep_bytes;
    c.MaxMsgSize = MAX_EVENT_BYTES;
    c.Discard = js_DiscardOld;
    c.Replicas = l->replicas ? (int)l->replicas : n >= 5 ? 5 : n >= 3 ? 3 : 1;
    s = js_AddStream(NULL, l->js, &c, NULL, &code);
    return code == JSStreamNameExistErr ? NATS_OK : s;
}

/* Uses the connection that the bus has now. */
static bool follow_bus(struct event_log *l)
{
    jsCtx *js = NULL;
    jsOptions o;
    uint32_t generation = bus_generation(l->bus);
    if (l->js && generation == l->generation)
        return true;
    jsOptions_Init(&o);
    o.Wait = WAIT_MS;
    if (natsConnection_JetStream(&js, bus_connection(l->bus), &o) != NATS_OK)
        return false;
    jsCtx_Destroy(l->js);
    l->js = js;
    l->generation = generation;
    return true;
}

/* NATS stores it once: repeated ids are ignored. */
static natsStatus store(struct event_log *l, const struct waiting *w)
{
    char subject[BUS_MAX_SUBJECT], tail[64], id[64];
    jsPubOptions o;
    natsStatus s = NATS_OK;
    if (!follow_bus(l))
        return NATS_NO_MEMORY;
    if (!l->stream_there && (s = create_stream(l)) != NATS_OK)
        return s;
    l->stream_there = true;
    snprintf(tail, sizeof(tail), "event.%s", event_log_kind_text(w->kind));
    if (bus_subject(l->bus, subject, tail, NULL) < 0)
        return NATS_INVALID_SUBJECT;
    snprintf(id, sizeof(id), "%s-%llu", l->run, (unsigned long long)w->number);
    jsPubOptions_Init(&o);
    o.MsgId = id;
    o.MaxWait = WAIT_MS;
    s = js_Publish(NULL, l->js, subject, w->bytes, (int)w->n, &o, NULL);
    if (s != NATS_OK)
        l->stream_there = false; /* looked at again */
    return s;
}

/* Waits until ms have passed, there is work, or the log is closed. Under the lock. */
static void wait_ms(struct event_log *l, uint32_t ms, bool for_work)
{
    uint64_t until = clock_ns() + (uint64_t)ms * 1000000u;
    struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    int rc = 0;
    while (rc == 0 && !l->stop && !(for_work && l->first))
        rc = pthread_cond_timedwait(&l->wake, &l->lock, &at);
}

static void *run(void *arg)
{
    struct event_log *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->first && !l->stop)
            wait_ms(l, 60000, true);
        if (!l->first || (l->stop && clock_ns() >= l->stop_by_ns))
            break;
        struct waiting *w = l->first; /* unlinked: add may drop the first */
        l->first = w->next;
        if (!l->first)
            l->end = &l->first;
        l->status.n_waiting--;
        pthread_mutex_unlock(&l->lock);
        natsStatus s = store(l, w);
        char text[160] = "";
        if (s != NATS_OK)
            bus_reason(l->bus, text, (int)s);
        pthread_mutex_lock(&l->lock);
        snprintf(l->status.error, sizeof(l->status.error), "%s", text);
        if (s == NATS_OK) {
            l->status.n_stored++;
            mem_free(w);
            continue;
        }
        w->next = l->first; /* back to the front */
        l->first = w;
        if (!w->next)
            l->end = &w->next;
        l->status.n_waiting++;
        if (l->stop) {
            pthread_mutex_unlock(&l->lock);
            nats_Sleep(PAUSE_MS / 5);
            pthread_mutex_lock(&l->lock);
        } else {
            wait_ms(l, PAUSE_MS, false);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int event_log_open(struct event_log **out, const struct event_log_opts *o, struct err *e)
{
    struct event_log *l = mem_zalloc(sizeof(*l));
    uint32_t hours = o->keep_hours ? o->keep_hours : DEFAULT_HOURS;
    uint64_t r[2] = {0};
    int rc = 0;
    *out = NULL;
    if (!l)
        return err_set(e, SHOAL_ENOMEM, "events");
    l->bus = o->bus;
    snprintf(l->name, sizeof(l->name), "%s", o->name ? o->name : "");
    l->max_waiting = o->max_waiting ? o->max_waiting : DEFAULT_WAITING;
    l->flush_ms = o->flush_ms ? o->flush_ms : DEFAULT_FLUSH_MS;
    l->replicas = o->replicas;
    l->keep_ns = (uint64_t)hours * 3600u * 1000000000u;
    l->keep_bytes = o->keep_bytes ? o->keep_bytes : DEFAULT_BYTES;
    l->end = &l->first;
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->wake);
    if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
        rc = err_set(e, SHOAL_EIO, "no random bytes for events");
    snprintf(l->run, sizeof(l->run), "%016llx%016llx", (unsigned long long)r[0],
             (unsigned long long)r[1]);
    if (rc == 0 && !follow_bus(l))
        rc = err_set(e, SHOAL_ENOMEM, "events");
    if (rc == 0 && (rc = thread_create(&l->thread, "events", run, l, e)) == 0)
        l->threaded = true;
    if (rc < 0) {
        event_log_close(l);
        return rc;
    }
    *out = l;
    return 0;
}

void event_log_close(struct event_log *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    l->stop_by_ns = clock_ns() + (uint64_t)l->flush_ms * 1000000u;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    if (l->threaded)
        pthread_join(l->thread, NULL);
    if (l->first)
        log_warn("control", "%llu events were not stored: %s",
                 (unsigned long long)l->status.n_waiting, l->status.error);
    for (struct waiting *w = l->first, *next; w; w = next) {
        next = w->next;
        mem_free(w);
    }
    jsCtx_Destroy(l->js);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

void event_log_get_status(struct event_log *l, struct event_log_status *out)
{
    pthread_mutex_lock(&l->lock);
    *out = l->status;
    pthread_mutex_unlock(&l->lock);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_failed(struct bus *b, natsStatus s, struct err *e)
{
    char text[160];
    bus_reason(b, text, (int)s);
    return err_set(e, s == NATS_ERR ? SHOAL_EIO : SHOAL_EBUSY, "cannot read events: %s", text);
}

/* One message of the stream to the callback.  False: stop. */
static bool deliver(natsMsg *m, uint64_t sequence, const char *prefix, event_log_fn fn, void *ctx,
                    uint32_t *n_bad)
{
    struct event_log_entry entry;
    void *memory;
    bool go_on = true;
    if (strncmp(natsMsg_GetSubject(m), prefix, strlen(prefix)) != 0)
        return true; /* another cluster's */
    if (event_log_parse(&entry, &memory, natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m),
                        NULL) < 0) {
        ++*n_bad;
        return true;
    }
    entry.sequence = sequence;
    go_on = fn(ctx, &entry);
    event_log_free(memory);
    return go_on;
}

int event_log_read(struct bus *b, uint64_t from, uint32_t n, event_log_fn fn, void *ctx,
                   uint64_t *next, uint32_t *n_bad, struct err *e)
{
    char prefix[BUS_MAX_SUBJECT];
    jsStreamInfo *info = NULL;
    jsCtx *js = NULL;
    jsOptions o;
    jsErrCode code = 0;
    uint64_t at, last;
    int rc = bus_subject(b, prefix, "event.", e);
    *next = from;
    if (rc < 0)
        return rc;
    jsOptions_Init(&o);
    o.Wait = WAIT_MS;
    if (natsConnection_JetStream(&js, bus_connection(b), &o) != NATS_OK)
        return err_set(e, SHOAL_ENOMEM, "events");
    natsStatus s = js_GetStreamInfo(&info, js, STREAM, NULL, &code);
    if (s != NATS_OK) {
        jsCtx_Destroy(js);
        return s == NATS_NOT_FOUND || code == JSStreamNotFoundErr ? 0 : read_failed(b, s, e);
    }
    last = info->State.LastSeq;
    at = last >= n ? last - n + 1 : 1;
    at = at < info->State.FirstSeq ? info->State.FirstSeq : at;
    at = at < from ? from : at;
    jsStreamInfo_Destroy(info);
    for (; rc == 0 && at <= last; at++) {
        natsMsg *m = NULL;
        s = js_GetMsg(&m, js, STREAM, at, NULL, &code);
        if (s == NATS_NOT_FOUND) /* too old, gone meanwhile */
            continue;
        if (s != NATS_OK) {
            rc = read_failed(b, s, e);
            break;
        }
        bool go_on = deliver(m, at, prefix, fn, ctx, n_bad);
        natsMsg_Destroy(m);
        if (!go_on) {
            at++;
            break;
        }
    }
    *next = at;
    jsCtx_Destroy(js);
    return rc;
}
