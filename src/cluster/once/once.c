/* once.c - see once.h. */
#include "cluster/once/once.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/holdings.h"
#include "cluster/messages/event_feed.h"
#include "cluster/messages/event_pb.h"
#include "cluster/once/once_ledger.h"
#include "cluster/once/once_record.h"
#include "cluster/messages/request_pb.h"
#include "flow/flow_run.h"
#include "host/sha256.h"

#define N_BUCKETS 1024u
#define MAX_RUNNING 1024u
#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define MAX_REQUEST_BYTES ((size_t)256 << 20)
#define MS_NS 1000000u

/* State of a key. Under the lock, except `begun`, `node` and `usage`: they are written before the
 * event that announces them is appended, and do not change after that. */
struct entry {
    struct entry *next;          /* in its bucket */
    struct entry *older, *newer; /* list of complete entries */
    uint8_t key[SHA256_BYTES], body[SHA256_BYTES];
    uint32_t refs;
    bool listed;              /* can be found by its key */
    bool over, failed;        /* nothing follows; the answer is a failure */
    uint64_t expires_ns, who; /* who: the client, in holdings */
    struct buf events;        /* messages of RunEvents, each as once_record_put_message puts it */
    struct reader *readers;
    struct sink_start begun;
    char model[256], version[128], node[128];
    uint8_t sum[SHA256_BYTES];
    struct sink_usage usage;
};

/* The work on a key. */
struct run {
    struct sink inner; /* first */
    struct once *all;
    struct entry *entry;
    struct flow_owner *owner;
    struct run *prev, *next;
    struct buf events; /* not appended yet */
    /* with a ledger */
    struct once_claim claim;
    struct request *request;        /* held until it is known which gateway runs it */
    bool left;                      /* the owner goes */
    bool held;                      /* the key is this gateway's */
    bool foreign;                   /* replays another gateway's answer */
    struct once_record_about about; /* with foreign: its node and token counts */
};

/* A client. */
struct reader {
    struct flow_job job; /* first */
    struct once *all;
    struct entry *entry;
    struct flow_owner *owner;
    struct request *request; /* the sink may live in it */
    struct sink *sink, inner;
    struct event_feed feed;
    struct reader *next;
    size_t at;       /* events before this were taken */
    struct buf held; /* taken, but not yet passed to the sink */
    bool posted;     /* under the lock */
    bool pumping, closed;
    struct executor_task wake, end;
    struct executor_timer late;
};

struct once {
    struct dispatch dispatch; /* first */
    struct once_opts opts;
    pthread_mutex_t lock;
    struct entry *buckets[N_BUCKETS];
    struct entry *oldest, *newest;
    struct run *runs;
    struct once_counts counts;
    struct holdings kept, running; /* of each client: bytes, and runs */
};

/* ---- entries; the lock is held ---- */

static struct entry **bucket_of(struct once *w, const uint8_t *key)
{
    return &w->buckets[(key[0] | (uint32_t)key[1] << 8) % N_BUCKETS];
}

static struct entry *find(struct once *w, const uint8_t *key)
{
    struct entry *e = *bucket_of(w, key);
    while (e && memcmp(e->key, key, sizeof(e->key)) != 0)
        e = e->next;
    return e;
}

static void unref(struct entry *e)
{
    if (--e->refs > 0)
        return;
    buf_fini(&e->events);
    mem_free(e);
}

/* Can no longer be found; current readers continue. */
static void unlist(struct once *w, struct entry *e)
{
    struct entry **at = bucket_of(w, e->key);
    if (!e->listed)
        return;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    if (e->over && !e->failed) {
        *(e->older ? &e->older->newer : &w->oldest) = e->newer;
        *(e->newer ? &e->newer->older : &w->newest) = e->older;
        w->counts.bytes -= e->events.len;
        w->counts.n_kept--;
        holdings_sub(&w->kept, e->who, e->events.len);
    }
    e->listed = false;
    unref(e);
}

static void forget_old(struct once *w, uint64_t now)
{
    while (w->oldest && w->oldest->expires_ns <= now)
        unlist(w, w->oldest);
}

/* The oldest of the client that holds most go: others' calls must not run twice for its sake. */
static void make_room(struct once *w, uint64_t who)
{
    while (w->counts.bytes > w->opts.max_bytes) {
        const uint64_t most = holdings_most(&w->kept, who);
        struct entry *e = w->oldest;
        while (e->who != most)
            e = e->newer;
        unlist(w, e);
    }
}

/* The answer is complete.  False: out of memory. */
static bool keep(struct once *w, struct entry *e)
{
    if (!holdings_add(&w->kept, e->who, e->events.len))
        return false;
    e->expires_ns = clock_ns() + (uint64_t)w->opts.ttl_ms * MS_NS;
    e->older = w->newest;
    *(w->newest ? &w->newest->newer : &w->oldest) = e;
    w->newest = e;
    w->counts.bytes += e->events.len;
    w->counts.n_kept++;
    return true;
}

static void wake_readers(struct entry *e)
{
    for (struct reader *r = e->readers; r; r = r->next)
        if (!r->posted) {
            r->posted = true;
            executor_post(r->owner->executor, &r->wake);
        }
}

/* ---- the run ---- */

static struct run *run_of(struct sink *s)
{
    return (struct run *)(void *)s; /* its first member */
}

static void append(struct run *x)
{
    struct entry *e = x->entry;
    size_t n = x->events.len;
    bool broken = false;
    if (n == 0 && x->events.rc == 0)
        return;
    pthread_mutex_lock(&x->all->lock);
    size_t before = e->events.len;
    once_record_put_message(&e->events, x->events.data, n);
    if (x->events.rc < 0 || e->events.rc < 0) { /* readers hear that it was interrupted */
        e->events.len = before;
        unlist(x->all, e);
        e->failed = broken = true;
    }
    wake_readers(e);
    pthread_mutex_unlock(&x->all->lock);
    buf_clear(&x->events);
    if (broken)
        flow_cancel(&x->inner);
}

static void run_start(struct sink *s, const struct sink_start *v)
{
    struct run *x = run_of(s);
    struct entry *e = x->entry;
    const char *node = x->foreign && x->about.node[0] ? x->about.node : v->node;
    snprintf(e->model, sizeof(e->model), "%s", v->model);
    snprintf(e->version, sizeof(e->version), "%s", v->version);
    snprintf(e->node, sizeof(e->node), "%s", node ? node : "");
    if (v->sum)
        memcpy(e->sum, v->sum, sizeof(e->sum));
    e->begun = (struct sink_start){.tools = v->tools,
                                   .model = e->model,
                                   .version = e->version,
                                   .sum = v->sum ? e->sum : NULL,
                                   .node = node ? e->node : NULL,
                                   .cache = v->cache};
    event_pb_put_start(&x->events, v);
}

static void run_plan(struct sink *s, const struct sink_plan *v)
{
    event_pb_put_plan(&run_of(s)->events, v);
}

static void run_token(struct sink *s, const struct sink_token *v)
{
    event_pb_put_token(&run_of(s)->events, v);
}

static void run_result(struct sink *s, const struct sink_result *v)
{
    event_pb_put_result(&run_of(s)->events, v);
}

static void run_done(struct sink *s, const struct sink_done *v)
{
    struct run *x = run_of(s);
    if (v->last && x->foreign)
        x->entry->usage = (struct sink_usage){.prompt_tokens = x->about.prompt_tokens,
                                              .cached_tokens = x->about.cached_tokens,
                                              .generated_tokens = x->about.generated_tokens};
    else if (v->last)
        x->entry->usage = v->usage;
    event_pb_put_done(&x->events, v);
}

static void run_fail(struct sink *s, const struct failure *f)
{
    struct run *x = run_of(s);
    event_pb_put_failure(&x->events, f);
    pthread_mutex_lock(&x->all->lock);
    unlist(x->all, x->entry); /* the next call with this key tries again */
    x->entry->failed = true;
    pthread_mutex_unlock(&x->all->lock);
}

static void run_flush(struct sink *s)
{
    append(run_of(s));
}

/* Reports the outcome to the other gateways. Events no longer change. */
static void end_claim(struct run *x)
{
    struct once_ledger *g = x->all->opts.ledger;
    struct entry *e = x->entry;
    if (!x->held)
        return;
    pthread_mutex_lock(&x->all->lock);
    bool whole = e->listed && !e->failed;
    pthread_mutex_unlock(&x->all->lock);
    struct once_record_about about = {.prompt_tokens = e->usage.prompt_tokens,
                                      .cached_tokens = e->usage.cached_tokens,
                                      .generated_tokens = e->usage.generated_tokens};
    struct buf answer;
    memcpy(about.node, e->node, sizeof(about.node));
    buf_init(&answer, MAX_ANSWER_BYTES);
    once_record_put_about(&answer, &about);
    buf_put(&answer, e->events.data, e->events.len);
    if (whole && answer.rc == 0)
        g->ops->complete(g, e->key, answer.data, answer.len);
    else
        g->ops->release(g, e->key);
    buf_fini(&answer);
}

static void run_closed(struct sink *s)
{
    struct run *x = run_of(s);
    struct once *w = x->all;
    struct entry *e = x->entry;
    append(x);
    end_claim(x);
    pthread_mutex_lock(&w->lock);
    w->counts.n_running--;
    holdings_sub(&w->running, e->who, 1);
    *(x->prev ? &x->prev->next : &w->runs) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    if (e->listed && !keep(w, e))
        unlist(w, e);
    e->over = true; /* from now on a listed one is kept */
    forget_old(w, clock_ns());
    make_room(w, e->who);
    wake_readers(e);
    unref(e);
    pthread_mutex_unlock(&w->lock);
    buf_fini(&x->events);
    buf_fini(&x->claim.answer);
    mem_free(x);
}

/* ---- a reader ---- */

static struct reader *reader_of(struct sink *inner)
{
    return EXECUTOR_OF(inner, struct reader, inner);
}

static void read_start(struct sink *s, const struct sink_start *v)
{
    struct reader *r = reader_of(s);
    (void)v; /* the entry knows more */
    r->sink->ops->start(r->sink, &r->entry->begun);
}

static void read_plan(struct sink *s, const struct sink_plan *v)
{
    struct reader *r = reader_of(s);
    if (r->sink->ops->plan)
        r->sink->ops->plan(r->sink, v);
}

static void read_token(struct sink *s, const struct sink_token *v)
{
    struct reader *r = reader_of(s);
    r->sink->ops->token(r->sink, v);
}

static void read_result(struct sink *s, const struct sink_result *v)
{
    struct reader *r = reader_of(s);
    r->sink->ops->result(r->sink, v);
}

static void read_done(struct sink *s, const struct sink_done *v)
{
    struct reader *r = reader_of(s);
    struct sink_done mine = *v;
    if (v->last)
        mine.usage = r->entry->usage;
    r->sink->ops->done(r->sink, &mine);
}

static void read_fail(struct sink *s, const struct failure *f)
{
    struct reader *r = reader_of(s);
    r->sink->ops->fail(r->sink, f);
}

static void read_closed(struct sink *s)
{
    (void)s; /* reader_close tells the client */
}

static bool read_full(struct sink *s)
{
    struct reader *r = reader_of(s);
    return sink_is_full(r->sink);
}

static void reader_close(struct reader *r)
{
    struct flow_owner *o = r->owner;
    struct reader **at = &r->entry->readers;
    struct sink *s = r->sink;
    executor_timer_clear(o->executor, &r->late);
    s->job = NULL;
    s->ops->closed(s);
    flow_give_request(o, r->request);
    event_feed_fini(&r->feed);
    buf_fini(&r->held);
    o->n_jobs--;
    pthread_mutex_lock(&r->all->lock);
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    unref(r->entry);
    r->closed = true;
    bool posted = r->posted;
    pthread_mutex_unlock(&r->all->lock);
    if (!posted)
        mem_free(r);
}

/* Takes pending events; true: there will be no more. */
static bool take(struct reader *r)
{
    struct entry *e = r->entry;
    pthread_mutex_lock(&r->all->lock);
    r->posted = false;
    buf_put(&r->held, e->events.data + r->at, e->events.len - r->at);
    r->at = e->events.len;
    bool over = e->over || r->held.rc < 0;
    pthread_mutex_unlock(&r->all->lock);
    return over;
}

static void fail_reader(struct reader *r)
{
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, NULL,
                "the call with this idempotency key was interrupted; try again");
    event_feed_fail(&r->feed, &f);
}

/* Passes pending events to the client, as long as it has room. */
static void pump(struct reader *r)
{
    size_t at = 0, n;
    const uint8_t *p;
    int64_t used;
    bool over = take(r), ok = true;
    r->pumping = true;
    while (ok && !r->feed.quiet && !event_feed_full(&r->feed) &&
           (used = once_record_next_message(&p, &n, (const uint8_t *)r->held.data + at,
                                            r->held.len - at)) > 0) {
        ok = event_feed_put(&r->feed, p, n) == 0;
        at += (size_t)used;
    }
    if (at > 0) {
        memmove(r->held.data, r->held.data + at, r->held.len - at);
        r->held.len -= at;
        event_feed_flush(&r->feed);
    }
    if (!ok || (over && r->held.len == 0))
        fail_reader(r); /* nothing, if it has its answer */
    r->pumping = false;
    if (r->feed.quiet)
        reader_close(r);
}

static void on_wake(struct executor_task *t)
{
    struct reader *r = EXECUTOR_OF(t, struct reader, wake);
    if (r->closed)
        mem_free(r);
    else
        pump(r);
}

static void on_end(struct executor_task *t)
{
    reader_close(EXECUTOR_OF(t, struct reader, end));
}

static void on_late(struct executor_timer *t)
{
    struct reader *r = EXECUTOR_OF(t, struct reader, late);
    struct failure f;
    failure_late(&f, false, true,
                 "the deadline passed while the first call with this idempotency key runs");
    event_feed_fail(&r->feed, &f);
    reader_close(r);
}

static void on_cancel(struct flow_job *j)
{
    struct reader *r = (struct reader *)(void *)j;
    if (r->feed.quiet)
        return;
    r->feed.quiet = true;
    executor_timer_clear(r->owner->executor, &r->late);
    if (!r->pumping)
        executor_later(r->owner->executor, &r->end);
}

static void on_resume(struct flow_job *j)
{
    struct reader *r = (struct reader *)(void *)j;
    if (!r->feed.quiet && !r->pumping && r->held.len > 0) {
        pthread_mutex_lock(&r->all->lock);
        bool post = !r->posted;
        r->posted = true;
        pthread_mutex_unlock(&r->all->lock);
        if (post) /* not from within the client's own code */
            executor_post(r->owner->executor, &r->wake);
    }
}

/* ---- a call ---- */

static void refuse(struct flow_owner *o, struct request *r, struct sink *s, const struct failure *f)
{
    s->ops->fail(s, f);
    s->ops->closed(s);
    flow_give_request(o, r);
}

static void fail_reused(struct failure *f)
{
    failure_set(f, FAILURE_CONFLICT, SHOAL_EINVAL, "idempotency-key", "idempotency_key_reused",
                "this idempotency key was used with another request: use a new key");
}

/* The content of a request without client and time: bytes and their hash. False: out of memory. */
static bool describe(struct buf *out, uint8_t sum[SHA256_BYTES], const struct request *r)
{
    struct request same = *r;
    struct sha256 h;
    same.id[0] = '\0';
    same.spans = (struct trace_at){.trace = NULL};
    same.deadline_ns = same.epoch = 0;
    same.node = NULL; /* a router's current preference */
    if (request_pb_put(out, &same, 0) < 0)
        return false;
    sha256_begin(&h);
    sha256_add(&h, out->data, out->len);
    return sha256_end(&h, sum);
}

static struct reader *reader_create(struct once *w, struct flow_owner *o, struct request *r,
                                    struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops ops = {.start = read_start,
                                        .plan = read_plan,
                                        .token = read_token,
                                        .result = read_result,
                                        .done = read_done,
                                        .fail = read_fail,
                                        .closed = read_closed,
                                        .full = read_full};
    struct reader *d = mem_zalloc(sizeof(*d));
    if (!d)
        return NULL;
    d->job.ops = &job_ops;
    d->all = w;
    d->owner = o;
    d->request = r;
    d->sink = s;
    d->inner.ops = &ops;
    d->wake.fn = on_wake;
    d->end.fn = on_end;
    d->late.fn = on_late;
    event_feed_init(&d->feed, &d->inner);
    buf_init(&d->held, MAX_ANSWER_BYTES);
    return d;
}

/* The run, with its own request: the client's is freed with the client. */
static struct run *run_create(struct once *w, struct flow_owner *o, const struct request *r,
                              const struct buf *body, struct request **copy)
{
    static const struct sink_ops ops = {.start = run_start,
                                        .plan = run_plan,
                                        .token = run_token,
                                        .result = run_result,
                                        .done = run_done,
                                        .fail = run_fail,
                                        .closed = run_closed,
                                        .flush = run_flush};
    struct err e = {0};
    struct run *x = mem_zalloc(sizeof(*x));
    struct entry *n = mem_zalloc(sizeof(*n));
    *copy = x && n ? flow_take_request(o) : NULL;
    if (!*copy ||
        request_pb_read(*copy, (const uint8_t *)body->data, body->len, clock_ns(), &e) < 0) {
        if (*copy)
            flow_give_request(o, *copy);
        mem_free(x);
        mem_free(n);
        return NULL;
    }
    memcpy((*copy)->id, r->id, sizeof(r->id));
    request_trace(*copy, &r->spans);
    (*copy)->deadline_ns = r->deadline_ns;
    (*copy)->received_ns = r->received_ns;
    if (r->kind == REQUEST_GENERATE)
        (*copy)->generate.seeded = r->generate.seeded;
    buf_init(&n->events, MAX_ANSWER_BYTES);
    buf_init(&x->events, MAX_ANSWER_BYTES);
    x->inner.ops = &ops;
    x->all = w;
    x->owner = o;
    x->entry = n;
    return x;
}

/* The lock is held. Whether one more run of the client has room: a client may have as many as are
 * free, so that there is always room for others. */
static bool has_room(const struct once *w, const struct request *r)
{
    const uint32_t left = w->opts.max_running - w->counts.n_running;
    return left > 0 && (!r->client.name[0] ||
                        holdings_held(&w->running, request_client_id(&r->client)) <= left);
}

/* The lock is held. */
static void list_run(struct once *w, struct run *x, const uint8_t *key, const uint8_t *body)
{
    struct entry *e = x->entry, **at = bucket_of(w, key);
    memcpy(e->key, key, sizeof(e->key));
    memcpy(e->body, body, sizeof(e->body));
    e->refs = 2; /* the table's and the run's */
    e->listed = true;
    e->next = *at;
    *at = e;
    x->next = w->runs;
    if (x->next)
        x->next->prev = x;
    w->runs = x;
    w->counts.n_running++;
}

/* The lock is held. */
static void join(struct entry *e, struct reader *d)
{
    d->entry = e;
    d->next = e->readers;
    e->readers = d;
    e->refs++;
    d->posted = true; /* the existing part */
    executor_post(d->owner->executor, &d->wake);
}

static void reader_discard(struct reader *d)
{
    if (!d)
        return;
    event_feed_fini(&d->feed);
    buf_fini(&d->held);
    mem_free(d);
}

static void count(struct once *w, uint64_t *n)
{
    pthread_mutex_lock(&w->lock);
    ++*n;
    pthread_mutex_unlock(&w->lock);
}

static void fail_run(struct run *x, const struct failure *f)
{
    x->inner.ops->fail(&x->inner, f);
    x->inner.ops->closed(&x->inner);
}

/* Replays the answer of another gateway, as if it came from a run here. */
static void replay(struct run *x)
{
    const struct once_claim *c = &x->claim;
    struct event_feed feed;
    struct failure f;
    const uint8_t *p;
    size_t at = 0, n;
    struct err e = {0};
    int rc = SHOAL_EFORMAT;
    int64_t used = once_record_next_message(&p, &n, (const uint8_t *)c->answer.data, c->answer.len);
    if (used > 0) {
        rc = once_record_read_about(&x->about, p, n, &e);
        at = (size_t)used;
    }
    x->foreign = true;
    event_feed_init(&feed, &x->inner);
    while (rc == 0 && (used = once_record_next_message(&p, &n, (const uint8_t *)c->answer.data + at,
                                                       c->answer.len - at)) > 0) {
        rc = event_feed_put(&feed, p, n);
        append(x);
        at += (size_t)used;
    }
    if (rc < 0 || used < 0 || !feed.quiet) {
        failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EFORMAT, NULL, NULL,
                    "the answer that gateway %s has shared for this idempotency key is damaged",
                    c->where);
        event_feed_fail(&feed, &f);
    }
    x->inner.ops->closed(&x->inner); /* frees x; the feed no longer uses it */
    event_feed_fini(&feed);
}

/* It is known which gateway runs the call. */
static void on_claimed(struct executor_task *t)
{
    struct run *x = EXECUTOR_OF(t, struct run, claim.done);
    struct once *w = x->all;
    struct request *r = x->request;
    struct failure f;
    x->request = NULL;
    x->owner->n_jobs--;
    x->held = x->claim.how == ONCE_CLAIMED_MINE;
    if (!x->left && (x->held || x->claim.how == ONCE_CLAIMED_UNSHARED)) {
        count(w, &w->counts.n_first);
        flow_run(x->owner, r, &x->inner);
        return;
    }
    flow_give_request(x->owner, r);
    if (x->left) {
        failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_ECANCELLED, NULL, NULL, "this gateway stops");
        fail_run(x, &f);
    } else if (x->claim.how == ONCE_CLAIMED_ANSWERED) {
        count(w, &w->counts.n_replayed);
        replay(x);
    } else if (x->claim.how == ONCE_CLAIMED_OTHER) {
        count(w, &w->counts.n_conflicts);
        fail_reused(&f);
        fail_run(x, &f);
    } else {
        failure_set(&f, FAILURE_CONFLICT, SHOAL_ELIMIT, "idempotency-key", "answer_elsewhere",
                    "the call with this idempotency key is complete, and its answer is too large "
                    "to be shared: ask gateway %s, which has it",
                    x->claim.where);
        fail_run(x, &f);
    }
}

/* Starts the run, unless another gateway has. */
static void begin(struct once *w, struct run *x, struct request *r)
{
    struct once_ledger *g = w->opts.ledger;
    if (!g) {
        count(w, &w->counts.n_first);
        flow_run(x->owner, r, &x->inner);
        return;
    }
    memcpy(x->claim.key, x->entry->key, sizeof(x->claim.key));
    memcpy(x->claim.body, x->entry->body, sizeof(x->claim.body));
    x->claim.executor = x->owner->executor;
    x->claim.done.fn = on_claimed;
    x->request = r;
    x->owner->n_jobs++;
    g->ops->claim(g, &x->claim);
}

static bool take_call(struct dispatch *p, struct flow_owner *o, struct request *r, struct sink *s)
{
    struct once *w = (struct once *)(void *)p;
    struct failure f;
    struct run *x = NULL;
    struct request *copy = NULL;
    uint8_t body[SHA256_BYTES];
    struct buf bytes;
    bool started = false, refused = false;
    buf_init(&bytes, MAX_REQUEST_BYTES);
    struct reader *d = reader_create(w, o, r, s);
    bool ok = d && describe(&bytes, body, r);
    pthread_mutex_lock(&w->lock);
    forget_old(w, clock_ns());
    struct entry *e = ok ? find(w, r->once_key) : NULL;
    if (ok && !e) { /* copied under the lock: two first calls must not both run */
        const uint64_t who = request_client_id(&r->client);
        bool room = has_room(w, r), counted = room && holdings_add(&w->running, who, 1);
        x = counted ? run_create(w, o, r, &bytes, &copy) : NULL;
        if (counted && !x)
            holdings_sub(&w->running, who, 1);
        if (x) {
            x->entry->who = who;
            list_run(w, x, r->once_key, body);
            e = x->entry;
            started = true;
        } else if (!room) {
            failure_set(&f, FAILURE_BUSY, SHOAL_EBUSY, NULL, "overloaded",
                        "too many calls with an idempotency key are in progress: try again later");
            refused = true;
        }
    } else if (e && memcmp(e->body, body, sizeof(body)) != 0) {
        fail_reused(&f);
        w->counts.n_conflicts++;
        refused = true;
        e = NULL;
    } else if (e) {
        w->counts.n_joined += !e->over;
        w->counts.n_replayed += e->over;
    }
    if (e)
        join(e, d);
    pthread_mutex_unlock(&w->lock);
    buf_fini(&bytes);
    if (!e) {
        reader_discard(d);
        if (!refused)
            failure_of(&f, SHOAL_ENOMEM, "out of memory");
        refuse(o, r, s, &f);
        return true;
    }
    s->job = &d->job;
    o->n_jobs++;
    if (r->deadline_ns && (!started || w->opts.ledger)) /* otherwise the run keeps it */
        executor_timer_set(o->executor, &d->late, r->deadline_ns);
    if (started)
        begin(w, x, copy);
    return true;
}

/* ---- lifetime ---- */

int once_create(struct once **out, const struct once_opts *o, struct err *e)
{
    static const struct dispatch_ops ops = {.run = take_call};
    struct once *w = mem_zalloc(sizeof(*w));
    *out = NULL;
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "out of memory for idempotency keys");
    w->dispatch.ops = &ops;
    w->opts = *o;
    w->opts.max_running = o->max_running ? o->max_running : MAX_RUNNING;
    pthread_mutex_init(&w->lock, NULL);
    *out = w;
    return 0;
}

void once_destroy(struct once *w)
{
    if (!w)
        return;
    while (w->oldest)
        unlist(w, w->oldest);
    holdings_fini(&w->kept);
    holdings_fini(&w->running);
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

struct dispatch *once_dispatch(struct once *w)
{
    return &w->dispatch;
}

void once_leave(struct once *w, const struct flow_owner *o)
{
    if (!w)
        return;
    for (;;) { /* only the owner's thread ends its runs: x stays while the lock is not held */
        pthread_mutex_lock(&w->lock);
        struct run *x = w->runs;
        while (x && (x->owner != o || !x->entry->listed))
            x = x->next;
        if (x)
            unlist(w, x->entry);
        pthread_mutex_unlock(&w->lock);
        if (!x)
            return;
        x->left = true;
        if (x->request) /* its claim is still undecided */
            w->opts.ledger->ops->cancel(w->opts.ledger, &x->claim);
        flow_cancel(&x->inner);
    }
}

void once_count(struct once *w, struct once_counts *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->counts;
    pthread_mutex_unlock(&w->lock);
}
