/* bucket.c - see bucket.h. */
#include "cluster/control/bucket.h"

#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/control/bus.h"

#define MAX_VALUE_BYTES (6 << 20) /* leaves headroom above the largest state */
#define MAX_CONFIRM_MS 2000u      /* without a majority there is no answer */
#define READ "read"               /* the key of confirmed reads */
/* errors of servers newer than this libnats */
#define DUPLICATE_CONFLICT 10158 /* JSStreamDuplicateMessageConflict: a write is under way */
#define NOT_READY 10163          /* JSStreamExpectedLastSeqPerSubjectNotReady: the same */
#define WRONG_SEQUENCE 10164     /* JSStreamWrongLastSequenceConstant: as WrongLastSequence */

/* A context of a closed connection. Another thread may still wait for it. */
struct old {
    struct old *next;
    jsCtx *js;
};

struct bucket {
    pthread_mutex_t lock; /* guards the next three; not held during calls to a server */
    jsCtx *js;
    uint32_t generation; /* generation of the bus when js was made */
    struct old *old;
    struct bus *bus;
    char name[96];   /* shoal-CLUSTER-NAME */
    char stream[96]; /* KV_shoal-CLUSTER-NAME */
    uint32_t wait_ms;
    uint32_t ttl_ms;    /* 0: values stay */
    int64_t max_bytes;  /* 0: no limit */
    atomic_bool filled; /* a value was seen; relaxed: a thread that misses it only asks once more */
};

static jsCtx *make_context(struct bucket *k)
{
    jsCtx *js = NULL;
    jsOptions o;
    jsOptions_Init(&o);
    o.Wait = k->wait_ms;
    k->generation = bus_generation(k->bus); /* before: a newer connection is noticed */
    return natsConnection_JetStream(&js, bus_connection(k->bus), &o) == NATS_OK ? js : NULL;
}

/* The context of the connection that the bus has now. */
static jsCtx *context(struct bucket *k)
{
    pthread_mutex_lock(&k->lock);
    if (k->generation != bus_generation(k->bus)) {
        uint32_t before = k->generation;
        struct old *old = mem_alloc(sizeof(*old));
        jsCtx *js = old ? make_context(k) : NULL;
        if (js) {
            *old = (struct old){k->old, k->js};
            k->old = old;
            k->js = js;
        } else { /* the old one fails, and the next call retries */
            mem_free(old);
            k->generation = before;
        }
    }
    jsCtx *js = k->js;
    pthread_mutex_unlock(&k->lock);
    return js;
}

int bucket_open(struct bucket **out, struct bus *b, const char *name, uint32_t wait_ms,
                struct err *e)
{
    struct bucket *k = mem_zalloc(sizeof(*k));
    *out = NULL;
    if (!k)
        return err_set(e, SHOAL_ENOMEM, "bucket");
    k->bus = b;
    k->wait_ms = wait_ms;
    snprintf(k->name, sizeof(k->name), "shoal-%s-%s", bus_cluster(b), name);
    snprintf(k->stream, sizeof(k->stream), "KV_%.80s", k->name);
    k->js = make_context(k);
    if (!k->js) {
        mem_free(k);
        return err_set(e, SHOAL_ENOMEM, "bucket");
    }
    pthread_mutex_init(&k->lock, NULL);
    *out = k;
    return 0;
}

void bucket_close(struct bucket *k)
{
    if (!k)
        return;
    jsCtx_Destroy(k->js);
    for (struct old *o = k->old, *next; o; o = next) {
        next = o->next;
        jsCtx_Destroy(o->js);
        mem_free(o);
    }
    pthread_mutex_destroy(&k->lock);
    mem_free(k);
}

void bucket_limit(struct bucket *k, uint32_t ttl_ms, int64_t max_bytes)
{
    k->ttl_ms = ttl_ms;
    k->max_bytes = max_bytes;
}

static uint64_t denied(const struct bucket *k)
{
    struct bus_status s;
    bus_get_status(k->bus, &s);
    return s.n_denied;
}

/* The error for a status of libnats and a code of the server.  before: denied() before the call. */
static int failed(const struct bucket *k, natsStatus s, jsErrCode code, uint64_t before,
                  const char *what, struct err *e)
{
    char text[160];
    if (s == NATS_TIMEOUT &&
        denied(k) != before) /* a request that is not permitted gets no answer */
        return err_set(e, SHOAL_EIO,
                       "NATS does not let this member %s %s: its certificate needs another role",
                       what, k->name);
    bus_reason(k->bus, text, (int)s);
    if (s == NATS_NOT_FOUND || code == JSStreamNotFoundErr)
        return err_set(e, SHOAL_ENOTFOUND, "NATS has no bucket %s yet", k->name);
    if (s == NATS_MAX_PAYLOAD)
        return err_set(
            e, SHOAL_ELIMIT,
            "cannot %s %s: the NATS server accepts messages of at most %lld bytes: raise "
            "max_payload in its configuration",
            what, k->name, (long long)natsConnection_GetMaxPayload(bus_connection(k->bus)));
    if (s == NATS_ERR && code != JSClusterNoPeersErr && code != JSInsufficientResourcesErr &&
        code != JSClusterNotAvailErr && code != JSClusterNotLeaderErr)
        return err_set(e, SHOAL_EIO, "cannot %s %s: %s", what, k->name, text);
    return err_set(e, SHOAL_EBUSY, "cannot %s %s now: %s", what, k->name, text);
}

static bool was_first(jsErrCode code)
{
    return code == JSStreamWrongLastSequenceErr || (int)code == WRONG_SEQUENCE;
}

static int replicas_for(const struct bus *b)
{
    size_t n = bus_n_urls(b);
    return n >= 5 ? 5 : n >= 3 ? 3 : 1;
}

int bucket_create(struct bucket *k, unsigned replicas, unsigned history, struct err *e)
{
    jsStreamInfo *info = NULL;
    kvStore *kv = NULL;
    kvConfig c;
    jsErrCode code = 0;
    uint64_t before = denied(k);
    natsStatus s = js_GetStreamInfo(&info, context(k), k->stream, NULL, &code);
    jsStreamInfo_Destroy(info);
    if (s == NATS_OK)
        return 0;
    if (s != NATS_NOT_FOUND && code != JSStreamNotFoundErr)
        return failed(k, s, code, before, "look at", e);
    kvConfig_Init(&c);
    c.Bucket = k->name;
    c.History = (uint8_t)history;
    c.MaxValueSize = MAX_VALUE_BYTES;
    c.StorageType = js_FileStorage;
    c.TTL = (int64_t)k->ttl_ms * 1000000;
    if (k->max_bytes)
        c.MaxBytes = k->max_bytes;
    c.Replicas = replicas ? (int)replicas : replicas_for(k->bus);
    s = js_CreateKeyValue(&kv, context(k), &c);
    kvStore_Destroy(kv);
    if (s == NATS_OK)
        return 0;
    /* Another member may have created it in the meantime. */
    char why[160];
    bus_reason(k->bus, why, (int)s);
    info = NULL;
    natsStatus again = js_GetStreamInfo(&info, context(k), k->stream, NULL, &code);
    jsStreamInfo_Destroy(info);
    if (again == NATS_OK)
        return 0;
    if (s == NATS_TIMEOUT && denied(k) != before)
        return failed(k, s, code, before, "create", e);
    return err_set(e, SHOAL_EBUSY, "cannot create the bucket %s on %d NATS servers now: %s",
                   k->name, c.Replicas, why);
}

static void subject_of(const struct bucket *k, char out[BUS_MAX_SUBJECT], const char *key)
{
    snprintf(out, BUS_MAX_SUBJECT, "$KV.%s.%s", k->name, key);
}

int bucket_last(struct bucket *k, uint64_t *revision, struct err *e)
{
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;
    uint64_t before = denied(k);
    natsStatus s = js_GetStreamInfo(&info, context(k), k->stream, NULL, &code);
    if (s != NATS_OK)
        return failed(k, s, code, before, "look at", e);
    *revision = info->State.LastSeq;
    jsStreamInfo_Destroy(info);
    return 0;
}

int bucket_get(struct bucket *k, const char *key, struct buf *out, uint64_t *revision,
               struct err *e)
{
    char subject[BUS_MAX_SUBJECT];
    const char *op = NULL;
    natsMsg *m = NULL;
    jsErrCode code = 0;
    int rc = 0;
    *revision = 0;
    /* nats-server 2.9 crashes if a message is requested while its stream is being created, so
     * nothing is requested until something was written. */
    if (!atomic_load_explicit(&k->filled, memory_order_relaxed)) {
        uint64_t last = 0;
        if ((rc = bucket_last(k, &last, e)) < 0)
            return rc;
        if (last == 0)
            return err_set(e, SHOAL_ENOTFOUND, "%s has no value %s yet", k->name, key);
        atomic_store_explicit(&k->filled, true, memory_order_relaxed);
    }
    subject_of(k, subject, key);
    uint64_t before = denied(k);
    natsStatus s = js_GetLastMsg(&m, context(k), k->stream, subject, NULL, &code);
    if (s == NATS_NOT_FOUND && code != JSStreamNotFoundErr)
        return err_set(e, SHOAL_ENOTFOUND, "%s has no value %s yet", k->name, key);
    if (s != NATS_OK) {
        atomic_store_explicit(&k->filled, false,
                              memory_order_relaxed); /* it may be created again */
        return failed(k, s, code, before, "read", e);
    }
    *revision = natsMsg_GetSequence(m);
    bool deleted = natsMsgHeader_Get(m, "KV-Operation", &op) == NATS_OK;
    if (!deleted)
        buf_put(out, natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m));
    natsMsg_Destroy(m);
    if (deleted)
        return err_set(e, SHOAL_ENOTFOUND, "the value %s of %s was deleted", key, k->name);
    return out->rc < 0 ? err_set(e, out->rc, "cannot read %s of %s", key, k->name) : 0;
}

int bucket_put(struct bucket *k, const char *key, const void *bytes, size_t n, uint64_t expected,
               const char *id, uint64_t *revision, struct err *e)
{
    char subject[BUS_MAX_SUBJECT];
    jsPubAck *ack = NULL;
    jsPubOptions o;
    jsErrCode code = 0;
    jsPubOptions_Init(&o);
    o.MaxWait = k->wait_ms;
    o.ExpectStream = k->stream;
    o.MsgId = id;
    if (expected)
        o.ExpectLastSubjectSeq = expected;
    else
        o.ExpectNoMessage = true;
    subject_of(k, subject, key);
    uint64_t before = denied(k);
    natsStatus s = js_Publish(&ack, context(k), subject, bytes, (int)n, &o, &code);
    const uint64_t sequence = s == NATS_OK ? ack->Sequence : 0;
    jsPubAck_Destroy(ack);
    if (sequence > 0) {
        *revision = sequence;
        return 0;
    }
    if (was_first(code))
        return 1;
    /* The server has seen the id and stored nothing: it may be about to, or never do it, if it
     * ceased to lead in between.  Servers before 2.10.20 call that a success. */
    if (s == NATS_OK || (int)code == DUPLICATE_CONFLICT || (int)code == NOT_READY)
        return err_set(e, SHOAL_EBUSY,
                       "cannot write %s now: NATS does not know yet what became of the write",
                       k->name);
    return failed(k, s, code, before, "write", e);
}

/* The value of the key READ, at sequence `at` of the stream: the revision of the other key that was
 * the newest then.  It is written only if the sequence before it is known to be the last one, so by
 * induction every such value is true. */
static int newest_at(struct bucket *k, uint64_t *at, uint64_t *revision, struct err *e)
{
    struct buf b;
    buf_init(&b, 64);
    int rc = bucket_get(k, READ, &b, at, e);
    *revision = rc == 0 ? strtoull(buf_str(&b), NULL, 10) : 0;
    buf_fini(&b);
    if (rc != SHOAL_ENOTFOUND)
        return rc;
    *e = (struct err){0}; /* nobody has confirmed a read yet */
    return 0;
}

int bucket_confirm(struct bucket *k, uint64_t revision, struct err *e)
{
    char subject[BUS_MAX_SUBJECT], text[24];
    uint64_t at = 0, newest = 0;
    jsPubAck *ack = NULL;
    jsPubOptions o;
    jsErrCode code = 0;
    int rc = newest_at(k, &at, &newest, e);
    if (rc < 0)
        return rc;
    if (at > revision && newest != revision)
        return 1;
    jsPubOptions_Init(&o);
    o.MaxWait = k->wait_ms < MAX_CONFIRM_MS ? k->wait_ms : MAX_CONFIRM_MS;
    o.ExpectStream = k->stream;
    o.ExpectLastSeq = at > revision ? at : revision;
    subject_of(k, subject, READ);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)revision);
    uint64_t before = denied(k);
    natsStatus s = js_Publish(&ack, context(k), subject, text, (int)strlen(text), &o, &code);
    jsPubAck_Destroy(ack);
    if (s == NATS_OK)
        return 0;
    return was_first(code) ? 1 : failed(k, s, code, before, "confirm", e);
}
