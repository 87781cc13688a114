/* node_link.c - see node_link.h. */
#include "base/plural.h"
#include "cluster/node_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/node/v1/node.pb-c.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/machine/clock_offset.h"
#include "cluster/trust/cert.h"
#include "cluster/messages/event_feed.h"
#include "cluster/messages/request_pb.h"
#include "cluster/silence.h"
#include "cluster/trust/roles.h"
#include "flow/flow.h"
#include "net/grpc_frame.h"
#include "net/http_client.h"
#include "net/listen.h"
#include "wire/pb.h"

#define MS_NS 1000000u
#define TICK_NS (25u * MS_NS)
#define MIN_RETRY_NS (50u * MS_NS)
#define MAX_RETRY_NS (400u * MS_NS) /* a node that comes back is used within half a second */
#define MAX_MESSAGE_BYTES ((size_t)64 << 20)
#define SCRATCH_KEPT ((size_t)16 << 10)
#define N_BREAKERS 64u
#define MIN_CONNECT_MS 500u
#define MIN_PIECES 8u /* shortest answer whose speed is meaningful */
#define MAX_SLOWNESS 1e9
#define SLOWNESS_KEPT 0.98 /* share kept per tick */

/* One request that the node works on. */
struct remote {
    struct flow_job job; /* first */
    struct http_call call;
    struct node_link *link;
    struct flow_owner *owner;
    struct remote *prev, *next;
    struct buf in; /* unread bytes of the answer */
    struct event_feed feed;
    bool held;               /* the sink was full */
    bool closing;            /* cancelled: `closed` is due */
    int status;              /* gRPC status if it came with the headers; -1: not yet */
    struct breaker *breaker; /* NULL: the outcome was already reported */
    uint64_t sent_ns;
    double claim_ns, first_claim_ns; /* see read_claim; 0: not known */
    struct executor_task close;
};

struct node_link {
    struct replica replica; /* first */
    struct loop *loop;
    struct http_client *client;
    char *address;
    char name[96];
    char expected[96]; /* name in its certificate; "": any */
    uint32_t heartbeat_ms;
    uint64_t silent_ns;
    struct remote *calls;
    uint32_t n_calls, told_calls; /* told: at the time of its last state */
    uint64_t ended_ns;            /* turn in which its connection last ended */
    uint32_t n_ended;             /* requests it had at that time */
    /* watching */
    struct http_call watch;
    struct buf watch_in;
    bool watching, settled, lost; /* lost: silent or disconnected since it was heard */
    struct silence silence;
    uint64_t retry_ns;
    uint32_t n_tries; /* connections that failed, one after the other */
    struct executor_timer tick;
    struct arena arenas[2]; /* for the current state and the next one */
    unsigned current;
    struct node_state state;
    uint64_t *prefixes; /* [PREFIX_TABLE_SLOTS], from its states; NULL: none yet */
    bool has_state;
    struct replica_counts *counts;
    struct breaker breakers[N_BREAKERS]; /* by the hash of the model's name; two may share one */
    double slowness; /* how many times slower than reported, recently; 0: unknown */
    struct probe probe;
    struct clock_offset clock;
    bool told_slowness; /* already logged that its reported speed is not credible */
    char error[160];
};

static const struct http_header grpc_headers[] = {{"content-type", "application/grpc"},
                                                  {"te", "trailers"}};

/* ---- breakers ---- */

static uint32_t breaker_index(const char *model)
{
    return (uint32_t)(hash_bytes(model ? model : "", model ? strlen(model) : 0, 0) % N_BREAKERS);
}

static void count_failure(struct node_link *k, struct breaker *b, const char *what)
{
    if (!breaker_failed(b, clock_ns()))
        return;
    k->counts->n_opened++;
    log_warn("cluster", "node %s: requests fail there (%s); sending none for a while", k->name,
             what);
}

static void blame(struct replica *p, const struct request *r)
{
    struct node_link *k = (struct node_link *)(void *)p;
    count_failure(k, &k->breakers[breaker_index(r->model)], "too slow or wrong");
}

/* A model that runs a request stays as it is until that has ended, so what was told later is true
 * of it, too. */
static const uint8_t *version(const struct replica *p, const struct request *r)
{
    const struct node_link *k = (const struct node_link *)(const void *)p;
    const struct node_model *m =
        k->has_state && r->model ? node_state_model(&k->state, r->model, 0) : NULL;
    return m && !node_state_next(&k->state, m, r->model, 0) ? m->sum : NULL;
}

/* ---- what it says and what it does ---- */

/* The node's claim: how long a token takes there now, and the first one. */
static void read_claim(struct remote *q, const struct request *r)
{
    const struct node_link *k = q->link;
    const struct node_model *m = r->kind == REQUEST_GENERATE && k->has_state
                                     ? node_state_model(&k->state, r->model, SHOAL_KIND_GENERATE)
                                     : NULL;
    uint32_t busy = m && m->in_flight > k->n_calls ? m->in_flight : k->n_calls;
    if (!m)
        return;
    q->claim_ns = m->token_ns * (1 + busy);
    q->first_claim_ns = q->claim_ns + m->prefill_ns * (1 + busy) * (double)r->input_bytes;
}

/* A stream has ended: compares its token times with the node's claim. An abandoned stream counts if
 * the claim was clearly wrong. */
static void learn(struct node_link *k, const struct remote *q)
{
    double ns = (double)(clock_ns() - q->sent_ns);
    bool whole = q->feed.n_pieces >= MIN_PIECES;
    if (q->claim_ns <= 0)
        return;
    double ratio = whole ? ns / q->feed.n_pieces / q->claim_ns : ns / q->first_claim_ns;
    if (!whole && (q->feed.n_pieces > 0 || ratio < NODE_LINK_INCREDIBLE))
        return;
    ratio = ratio < MAX_SLOWNESS ? ratio : MAX_SLOWNESS;
    k->slowness = k->slowness > 0 ? k->slowness + (ratio - k->slowness) / 8 : ratio;
    bool lies = k->slowness > NODE_LINK_INCREDIBLE;
    if (lies && !k->told_slowness)
        log_warn("cluster", "node %s is %.0f times slower than it reports: correcting its figures",
                 k->name, k->slowness);
    k->told_slowness = lies;
}

/* ---- one request ---- */

static struct remote *remote_of(struct http_call *k)
{
    return EXECUTOR_OF(k, struct remote, call);
}

static void remote_close(struct remote *q)
{
    struct node_link *k = q->link;
    struct flow_owner *o = q->owner;
    struct sink *s = q->feed.sink;
    if (q->prev)
        q->prev->next = q->next;
    else
        k->calls = q->next;
    if (q->next)
        q->next->prev = q->prev;
    k->n_calls--;
    if (q->breaker)
        breaker_forgot(q->breaker);
    learn(k, q);
    buf_fini(&q->in);
    s->job = NULL;
    s->ops->closed(s);
    event_feed_fini(&q->feed);
    mem_free(q);
    o->n_jobs--;
}

/* The node is lost, or sends invalid data: another one must take over. */
static void fail_lost(struct remote *q, bool ended, const char *why)
{
    struct node_link *k = q->link;
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, ended ? REPLICA_ENDED : REPLICA_LOST,
                "node %.96s: %.200s", k->name, why);
    if (!q->feed.quiet && q->breaker) {
        count_failure(k, q->breaker, why);
        q->breaker = NULL;
    }
    k->replica.n_ended = ended ? k->n_ended : 0;
    event_feed_fail(&q->feed, &f);
    k->replica.n_ended = 0;
}

static void on_close(struct executor_task *t)
{
    remote_close(EXECUTOR_OF(t, struct remote, close));
}

/* Ends it from within its own events. */
static void close_later(struct remote *q)
{
    http_call_cancel(&q->call);
    if (!q->closing) {
        q->closing = true;
        loop_later(q->link->loop, &q->close);
    }
}

static int deliver(struct remote *q, const uint8_t *p, size_t n)
{
    int rc = event_feed_put(&q->feed, p, n);
    if (q->breaker && q->feed.broke)
        count_failure(q->link, q->breaker, "reported by the node itself");
    else if (q->breaker && q->feed.n_pieces > 0)
        breaker_succeeded(q->breaker);
    if (q->feed.broke || q->feed.n_pieces > 0)
        q->breaker = NULL;
    return rc;
}

/* Reads whole messages, as long as the sink has room. */
static void pump(struct remote *q)
{
    struct grpc_frame f;
    size_t at = 0;
    int rc = 1;
    while (!q->closing && at < q->in.len) {
        if (event_feed_full(&q->feed)) {
            q->held = true;
            http_call_pause(&q->call);
            break;
        }
        rc = grpc_frame_next(&f, (const uint8_t *)q->in.data + at, q->in.len - at,
                             MAX_MESSAGE_BYTES);
        if (rc <= 0)
            break;
        rc = f.packed ? SHOAL_EFORMAT : deliver(q, f.p, f.n);
        at += f.bytes;
        if (rc < 0)
            break;
    }
    if (rc < 0) {
        fail_lost(q, false, "it sent a damaged message");
        close_later(q);
        return;
    }
    if (at == q->in.len) {
        buf_clear(&q->in);
    } else if (at > 0) {
        memmove(q->in.data, q->in.data + at, q->in.len - at);
        q->in.len -= at;
    }
    event_feed_flush(&q->feed);
}

static int status_in(const struct http_header *h, size_t n, const char **message)
{
    int status = -1;
    for (size_t i = 0; i < n; i++)
        if (strcmp(h[i].name, "grpc-status") == 0)
            status = (int)strtol(h[i].value, NULL, 10);
        else if (strcmp(h[i].name, "grpc-message") == 0)
            *message = h[i].value;
    return status;
}

static void on_head(struct http_call *c, int status, const struct http_header *h, size_t n)
{
    struct remote *q = remote_of(c);
    const char *message = NULL;
    char text[160];
    q->status = status_in(h, n, &message);
    if (status != 200) {
        snprintf(text, sizeof(text), "it answers with HTTP status %d", status);
        fail_lost(q, false, text);
        close_later(q);
    } else if (q->status > 0) {
        fail_lost(q, false, message ? message : "it refuses");
    }
}

static void on_data(struct http_call *c, const char *p, size_t n)
{
    struct remote *q = remote_of(c);
    buf_put(&q->in, p, n);
    if (q->in.rc < 0) {
        fail_lost(q, false, "it sends too much data");
        close_later(q);
    } else if (!q->held) {
        pump(q);
    }
}

static void on_ended(struct http_call *c, const struct http_header *trailers, size_t n)
{
    struct remote *q = remote_of(c);
    const char *message = NULL;
    int status = status_in(trailers, n, &message);
    if (q->closing)
        return;
    if (!q->feed.quiet)
        fail_lost(q, false, message && status > 0 ? message : "it broke off");
    remote_close(q);
}

static void on_failed(struct http_call *c, int code, const char *message)
{
    struct remote *q = remote_of(c);
    struct node_link *k = q->link;
    struct http_client_state s;
    if (q->closing)
        return;
    http_client_state(k->client, &s);
    if (k->ended_ns != loop_now(k->loop)) { /* the first of those that end together */
        k->ended_ns = loop_now(k->loop);
        k->n_ended = k->n_calls;
    }
    fail_lost(q, code != SHOAL_EBUSY && !s.connected, message);
    remote_close(q);
}

static const struct http_call_ops run_ops = {
    .head = on_head, .data = on_data, .ended = on_ended, .failed = on_failed};

static void on_cancel(struct flow_job *j)
{
    struct remote *q = (struct remote *)(void *)j;
    if (q->closing)
        return;
    q->feed.quiet = true;
    close_later(q);
}

static void on_resume(struct flow_job *j)
{
    struct remote *q = (struct remote *)(void *)j;
    if (!q->held || q->closing)
        return;
    q->held = false;
    pump(q);
    if (!q->held && !q->closing)
        http_call_resume(&q->call); /* may end the call */
}

/* One gRPC message in its frame; false: out of memory. */
static bool put_frame(struct buf *out, size_t head_at)
{
    char head[GRPC_HEAD_BYTES];
    if (out->rc < 0)
        return false;
    grpc_frame_head(head, out->len - head_at - GRPC_HEAD_BYTES, false);
    memcpy(out->data + head_at, head, sizeof(head));
    return true;
}

static int start_run(struct remote *q, const struct request *r)
{
    static const char room[GRPC_HEAD_BYTES];
    struct buf b;
    buf_init(&b, MAX_MESSAGE_BYTES);
    buf_put(&b, room, sizeof(room));
    int rc = request_pb_put(&b, r, clock_ns());
    if (rc == 0 && !put_frame(&b, 0))
        rc = b.rc;
    if (rc == 0)
        rc = http_call_start(q->link->client, &q->call, "POST", "/shoal.node.v1.Node/Run",
                             grpc_headers, 2, b.data, b.len, true);
    buf_fini(&b);
    return rc;
}

static void run(struct replica *p, struct flow_owner *o, const struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct node_link *k = (struct node_link *)(void *)p;
    struct remote *q = mem_zalloc(sizeof(*q));
    struct failure f;
    if (!q) {
        flow_refuse_nomem(o, NULL, s);
        return;
    }
    q->job.ops = &ops;
    q->call.ops = &run_ops;
    q->link = k;
    q->owner = o;
    q->status = -1;
    q->close.fn = on_close;
    q->breaker = &k->breakers[breaker_index(r->model)];
    q->sent_ns = clock_ns();
    read_claim(q, r);
    breaker_sent(q->breaker, q->sent_ns);
    buf_init(&q->in, MAX_MESSAGE_BYTES + GRPC_HEAD_BYTES);
    event_feed_init(&q->feed, s);
    q->next = k->calls;
    if (q->next)
        q->next->prev = q;
    k->calls = q;
    k->n_calls++;
    o->n_jobs++;
    s->job = &q->job;
    int rc = start_run(q, r);
    if (rc < 0) {
        if (rc == SHOAL_ENOMEM || rc == SHOAL_ELIMIT) {
            failure_of(&f, rc, "the request is too large to be sent to a node");
            event_feed_fail(&q->feed, &f);
        } else {
            fail_lost(q, false, err_text(rc));
        }
        remote_close(q);
    }
}

/* ---- watching ---- */

static struct node_link *link_of(struct http_call *k)
{
    return EXECUTOR_OF(k, struct node_link, watch);
}

static void say_lost(struct node_link *k, const char *why)
{
    if (!k->lost || !k->error[0])
        log_warn("cluster", "node %s is lost: %s", k->name, why);
    k->lost = k->settled = true;
    silence_lost(&k->silence);
    snprintf(k->error, sizeof(k->error), "%s", why);
}

/* Every request goes elsewhere. */
static void drop_calls(struct node_link *k, const char *why)
{
    struct remote *next;
    for (struct remote *q = k->calls; q; q = next) {
        next = q->next;
        if (q->closing)
            continue;
        http_call_cancel(&q->call);
        fail_lost(q, false, why);
        if (!q->closing) {
            q->closing = true;
            loop_later(k->loop, &q->close);
        }
    }
}

static void watch_over(struct node_link *k, const char *why)
{
    uint32_t shift = k->n_tries < 6 ? k->n_tries : 6;
    uint64_t wait = (uint64_t)MIN_RETRY_NS << shift;
    k->watching = false;
    k->n_tries++;
    say_lost(k, why);
    wait = wait < MAX_RETRY_NS ? wait : MAX_RETRY_NS;
    wait += hash_mix(clock_ns()) %
            (wait / 4 + 1); /* jitter, so that gateways do not reconnect all at once */
    k->retry_ns = loop_now(k->loop) + wait;
}

/* Only what changed is sent. */
static void keep_prefixes(struct node_link *k, const struct node_state *s)
{
    if (s->n_prefixes > 0 && !k->prefixes)
        k->prefixes = mem_zalloc(PREFIX_TABLE_SLOTS * sizeof(k->prefixes[0]));
    for (uint32_t i = 0; k->prefixes && i < s->n_prefixes; i++)
        k->prefixes[s->prefixes[i].at] = s->prefixes[i].hash;
}

static void hear(struct node_link *k, const uint8_t *p, size_t n)
{
    struct arena *a = &k->arenas[k->current ^ 1];
    struct node_state s;
    struct err e = {0};
    arena_reset(a, SCRATCH_KEPT);
    if (node_state_read(&s, a, p, n, &e) < 0) {
        log_warn("cluster", "node %s: %s", k->name, e.msg);
        return;
    }
    k->current ^= 1;
    k->state = s;
    silence_heard(&k->silence, clock_ns());
    if (s.health.clock_ms > 0)
        clock_offset_add(&k->clock, s.health.clock_ms, clock_unix_ms());
    k->told_calls = k->n_calls;
    keep_prefixes(k, &s);
    if (s.name[0])
        snprintf(k->name, sizeof(k->name), "%s", s.name);
    if (k->lost) { /* it may be another process */
        memset(k->breakers, 0, sizeof(k->breakers));
        k->slowness = 0;
        k->clock = (struct clock_offset){0};
        k->probe = (struct probe){0};
    }
    if (!k->has_state || k->lost)
        log_info("cluster", "node %s is up: %u model%s, %s", k->name, s.n_models,
                 plural(s.n_models), s.isa);
    k->has_state = k->settled = true;
    k->lost = false;
    k->n_tries = 0;
    k->error[0] = '\0';
}

static void watch_head(struct http_call *c, int status, const struct http_header *h, size_t n)
{
    struct node_link *k = link_of(c);
    const char *message = NULL;
    char text[160];
    int code = status_in(h, n, &message);
    if (status == 200 && code <= 0)
        return;
    snprintf(text, sizeof(text), "it refuses to be watched: %.120s",
             message ? message : "unexpected status");
    http_call_cancel(c);
    watch_over(k, text);
}

static void watch_data(struct http_call *c, const char *p, size_t n)
{
    struct node_link *k = link_of(c);
    struct grpc_frame f;
    size_t at = 0;
    int rc = 0;
    buf_put(&k->watch_in, p, n);
    if (k->watch_in.rc < 0)
        rc = k->watch_in.rc;
    while (rc >= 0 && at < k->watch_in.len) {
        rc = grpc_frame_next(&f, (const uint8_t *)k->watch_in.data + at, k->watch_in.len - at,
                             NODE_STATE_MAX_BYTES);
        if (rc <= 0)
            break;
        if (f.packed)
            rc = SHOAL_EFORMAT;
        else
            hear(k, f.p, f.n);
        at += f.bytes;
    }
    if (rc < 0) {
        http_call_cancel(c);
        watch_over(k, "it sends damaged heartbeats");
        return;
    }
    memmove(k->watch_in.data, k->watch_in.data + at, k->watch_in.len - at);
    k->watch_in.len -= at;
}

static void watch_ended(struct http_call *c, const struct http_header *trailers, size_t n)
{
    const char *message = NULL;
    int status = status_in(trailers, n, &message);
    watch_over(link_of(c), status > 0 && message ? message : "it said goodbye");
}

static void watch_failed(struct http_call *c, int code, const char *message)
{
    (void)code;
    watch_over(link_of(c), message);
}

static const struct http_call_ops watch_ops = {
    .head = watch_head, .data = watch_data, .ended = watch_ended, .failed = watch_failed};

static void start_watch(struct node_link *k)
{
    static const char room[GRPC_HEAD_BYTES];
    Shoal__Node__V1__WatchRequest m = SHOAL__NODE__V1__WATCH_REQUEST__INIT;
    struct buf b;
    m.interval_ms = k->heartbeat_ms;
    buf_init(&b, 4096);
    buf_put(&b, room, sizeof(room));
    buf_clear(&k->watch_in);
    if (k->prefixes) /* a new watch begins with all of them, perhaps of another process */
        memset(k->prefixes, 0, PREFIX_TABLE_SLOTS * sizeof(k->prefixes[0]));
    int rc = pb_put(&b, &m.base);
    if (rc == 0 && !put_frame(&b, 0))
        rc = b.rc;
    if (rc == 0)
        rc = http_call_start(k->client, &k->watch, "POST", "/shoal.node.v1.Node/Watch",
                             grpc_headers, 2, b.data, b.len, true);
    buf_fini(&b);
    k->watching = rc == 0;
    if (rc < 0)
        watch_over(k, err_text(rc));
}

static void on_tick(struct executor_timer *t)
{
    struct node_link *k = LOOP_OF(t, struct node_link, tick);
    uint64_t now = clock_ns();
    if (!k->watching && now >= k->retry_ns)
        start_watch(k);
    if (k->has_state && !k->lost && silence_is_long(&k->silence, now, k->silent_ns)) {
        static const char why[] = "it is silent";
        say_lost(k, why);
        drop_calls(k, why);
        http_call_cancel(&k->watch);
        http_client_reset(k->client, why); /* whatever became of the connection: a new one works */
        watch_over(k, why);
    }
    if (k->slowness >
        NODE_LINK_INCREDIBLE) /* it gets another chance: slowness halves in a second */
        k->slowness *= SLOWNESS_KEPT;
    loop_timer_set(k->loop, t, now + TICK_NS);
}

/* A certificate of the shoal is not enough: the peer must be a node. */
static int check_peer(void *ctx, const struct tls_peer *peer, struct err *e)
{
    const struct node_link *k = ctx;
    struct cert_identity who;
    int rc = cert_identity(&who, peer, e);
    if (rc == 0 && k->expected[0] && strcmp(who.name, k->expected) != 0)
        rc = err_set(e, SHOAL_EINVAL, "it claims to be '%s', but its certificate is for '%s'",
                     k->expected, who.name);
    if (rc == 0 && !(who.roles & ROLE_NODE))
        rc = err_set(e, SHOAL_EINVAL, "the certificate of '%s' does not have the role node",
                     who.name);
    return rc;
}

/* ---- lifetime ---- */

int node_link_create(struct node_link **out, struct loop *l, const struct node_link_opts *o,
                     struct err *e)
{
    static const struct replica_ops ops = {.run = run, .blame = blame, .version = version};
    struct node_link *k = mem_zalloc(sizeof(*k));
    *out = NULL;
    if (!k)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a node");
    /* A socket of this machine that an operator named is plain on both sides.  One that a node
     * named in a heartbeat is not: whatever listens there must show a certificate. */
    struct tls_client *tls = !o->name && listen_is_unix(o->address) ? NULL : o->tls;
    const struct http_client_opts ho = {
        .address = o->address,
        .tls = tls,
        .connect_ms = o->silent_ms > MIN_CONNECT_MS ? o->silent_ms : MIN_CONNECT_MS,
        .check_peer = tls ? check_peer : NULL,
        .ctx = k};
    k->replica = (struct replica){.ops = &ops, .name = k->name};
    k->counts = o->counts;
    k->loop = l;
    k->heartbeat_ms = o->heartbeat_ms;
    k->silent_ns = (uint64_t)o->silent_ms * MS_NS;
    k->watch.ops = &watch_ops;
    k->tick.fn = on_tick;
    k->address = mem_strndup(o->address, strlen(o->address));
    k->replica.address = k->address;
    snprintf(k->name, sizeof(k->name), "%s", o->name ? o->name : o->address);
    snprintf(k->expected, sizeof(k->expected), "%s", o->name ? o->name : "");
    buf_init(&k->watch_in, NODE_STATE_MAX_BYTES + GRPC_HEAD_BYTES);
    for (int i = 0; i < 2; i++)
        arena_init(&k->arenas[i], NODE_STATE_MAX_BYTES * 8);
    int rc = k->address ? http_client_create(&k->client, l, &ho, e)
                        : err_set(e, SHOAL_ENOMEM, "out of memory for a node");
    if (rc < 0) {
        node_link_destroy(k);
        return rc;
    }
    loop_timer_set(l, &k->tick, loop_now(l)); /* on the loop's thread, when it runs */
    *out = k;
    return 0;
}

void node_link_destroy(struct node_link *k)
{
    if (!k)
        return;
    loop_timer_clear(k->loop, &k->tick);
    http_call_cancel(&k->watch);
    drop_calls(k, "this gateway stops");
    while (k->calls) { /* not later: this memory is freed */
        loop_forget(k->loop, &k->calls->close);
        remote_close(k->calls);
    }
    http_client_destroy(k->client);
    buf_fini(&k->watch_in);
    for (int i = 0; i < 2; i++)
        arena_fini(&k->arenas[i]);
    mem_free(k->prefixes);
    mem_free(k->address);
    mem_free(k);
}

struct replica *node_link_replica(struct node_link *k)
{
    return &k->replica;
}

const char *node_link_name(const struct node_link *k)
{
    return k->name;
}

const char *node_link_address(const struct node_link *k)
{
    return k->address;
}

const struct node_state *node_link_state(const struct node_link *k)
{
    return k->has_state ? &k->state : NULL;
}

bool node_link_heard(const struct node_link *k)
{
    return k->has_state && !k->lost;
}

bool node_link_ready(const struct node_link *k, uint64_t now)
{
    (void)now;
    return node_link_heard(k) && !k->state.draining;
}

bool node_link_passes(const struct node_link *k, const char *model, uint64_t now)
{
    return breaker_passes(&k->breakers[breaker_index(model)], now);
}

bool node_link_has_prefix(const struct node_link *k, uint64_t hash)
{
    return k->prefixes && prefix_copy_has(k->prefixes, hash);
}

double node_link_slowness(const struct node_link *k)
{
    return k->slowness;
}

struct probe *node_link_probe(struct node_link *k)
{
    return &k->probe;
}

enum breaker_state node_link_breaker(const struct node_link *k, uint64_t now)
{
    bool half = false;
    for (uint32_t i = 0; i < N_BREAKERS; i++) {
        enum breaker_state s = breaker_state(&k->breakers[i], now);
        if (s == BREAKER_OPEN)
            return s;
        half |= s == BREAKER_HALF_OPEN;
    }
    return half ? BREAKER_HALF_OPEN : BREAKER_CLOSED;
}

bool node_link_settled(const struct node_link *k)
{
    return k->settled;
}

uint32_t node_link_calls(const struct node_link *k)
{
    return k->n_calls;
}

uint32_t node_link_told_calls(const struct node_link *k)
{
    return k->told_calls;
}

const char *node_link_error(const struct node_link *k)
{
    return k->error;
}

bool node_link_clock(const struct node_link *k, int64_t *ms)
{
    return clock_offset_get(&k->clock, ms);
}

uint64_t node_link_rtt_ns(const struct node_link *k)
{
    struct http_client_state s;
    http_client_state(k->client, &s);
    return s.rtt_ns;
}
