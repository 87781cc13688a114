/* join.c - see join.h. */
#include "cluster/join.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/file/state_file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/control/control.h"
#include "cluster/control/desired.h"
#include "cluster/deployed.h"
#include "cluster/messages/node_state.h"
#include "cluster/once/once_bucket.h"
#include "cluster/peer_book.h"
#include "cluster/quota_bucket.h"
#include "engine/cache_dir.h"

#define MS_NS 1000000u
#define MAX_ADDRESS PEER_BOOK_MAX_ADDRESS
#define MAX_NAME PEER_BOOK_MAX_NAME
#define SETTLE_BEATS 5u           /* all running nodes are heard within this many heartbeats */
#define CONTROLLER_NS 3000000000u /* a controller silent for this long is not shown */
#define AWAY_NS 1000000000u     /* a process that stood still for this long may have missed a lot */
#define ISOLATED_NS 3000000000u /* NATS that cannot be asked for this long is away */
#define GATE_NS 20000000u       /* between two looks at whether it answered */

struct known {
    char address[MAX_ADDRESS], name[MAX_NAME];
    uint64_t heard_ns;
};

struct join {
    struct executor *executor;
    struct control *control;
    struct controller *controller; /* NULL: takes no part in the election */
    struct agent *agent;           /* NULL: not a node */
    struct deployed *deployed;
    struct quota_bucket *quota; /* or NULL */
    struct once_bucket *once;   /* or NULL */
    char name[MAX_NAME];
    uint64_t heartbeat_ns, forget_ns;
    int (*state)(void *ctx, struct buf *out);
    void (*found)(void *ctx, const char *address, const char *name);
    void (*gone)(void *ctx, const char *address);
    void (*heard)(void *ctx, const struct node_state *s);
    bool (*listens)(void *ctx);
    void *ctx;
    struct executor_timer timer;
    struct peer_book *book; /* NULL: it looks for no nodes, or has no place for one */
    bool book_read;
    struct known nodes[JOIN_MAX_NODES];
    uint32_t n_nodes;
    bool full;
    bool may_change;
    uint64_t ticked_ns; /* the last turn of the timer */
    struct executor_timer gate;
    /* Any thread reads them; relaxed: each stands for itself.  waits: while the agent does. */
    _Atomic bool isolated, waits;
    uint64_t isolated_ns; /* since when */
    uint64_t gate_ns;     /* since when the agent waits for the present state; 0: it does not */
    _Atomic bool up;
    uint64_t up_ns; /* since when; or since when it is not */
    _Atomic uint64_t n_heard;

    pthread_mutex_t lock;          /* all below */
    const struct desired *desired; /* in force; replaced on the executor's thread */
    char holder[MAX_NAME];         /* the controller */
    uint64_t holder_fence, holder_ns;
    uint64_t own_fence; /* this member is the controller; 0: it is not */
    uint64_t roll_call; /* the last one that was heard */
};

/* ---- heartbeats of others ---- */

static void note_controller(struct join *j, const char *name, uint64_t fence)
{
    uint64_t now = clock_ns();
    pthread_mutex_lock(&j->lock);
    /* the highest fence; a lower one comes from a member that does not know yet */
    if (fence >= j->holder_fence || now - j->holder_ns > CONTROLLER_NS) {
        snprintf(j->holder, sizeof(j->holder), "%s", name);
        j->holder_fence = fence;
        j->holder_ns = now;
    }
    pthread_mutex_unlock(&j->lock);
}

/* Keeps the addresses of the nodes for the next start. */
static void keep_nodes(struct join *j)
{
    struct buf text;
    if (!j->book)
        return;
    buf_init(&text, PEER_BOOK_MAX_BYTES);
    peer_book_begin(&text);
    for (uint32_t i = 0; i < j->n_nodes; i++)
        peer_book_put(&text, j->nodes[i].address, j->nodes[i].name);
    peer_book_save(j->book, &text);
    buf_fini(&text);
}

/* A node at an address; true: it is new. */
static bool note_node(struct join *j, const char *address, const char *name)
{
    uint32_t i = 0;
    while (i < j->n_nodes && strcmp(j->nodes[i].address, address) != 0)
        i++;
    if (i == JOIN_MAX_NODES) {
        if (!j->full)
            log_warn("cluster", "more than %u nodes: the others are not used", JOIN_MAX_NODES);
        j->full = true;
        return false;
    }
    struct known *k = &j->nodes[i];
    bool is_new = i == j->n_nodes;
    if (is_new) {
        j->n_nodes++;
        snprintf(k->address, sizeof(k->address), "%s", address);
        snprintf(k->name, sizeof(k->name), "%s", name);
    }
    k->heard_ns = clock_ns();
    if (is_new)
        j->found(j->ctx, k->address, k->name);
    return is_new;
}

static void hear(struct join *j, const struct node_state *s)
{
    if (!s->name[0] || strlen(s->name) >= MAX_NAME)
        return;
    if (s->fence)
        note_controller(j, s->name, s->fence);
    const struct desired_heard h = {.name = s->name,
                                    .version = s->desired,
                                    .writer = s->desired_fence,
                                    .fence = s->fence,
                                    .known_fence = s->known_fence,
                                    .roll_call = s->roll_call};
    control_heard(j->control, &h);
    if (!j->found || !s->address[0] || strlen(s->address) >= MAX_ADDRESS ||
        strcmp(s->name, j->name) == 0)
        return;
    if (note_node(j, s->address, s->name))
        keep_nodes(j);
}

/* A node of the last run: NATS may be down. */
static void remember(void *ctx, const char *address, const char *name)
{
    struct join *j = ctx;
    if (strcmp(name, j->name) != 0)
        (void)!note_node(j, address, name);
}

static void on_heartbeat(void *ctx, const void *bytes, size_t n)
{
    struct join *j = ctx;
    struct node_state s;
    struct arena a;
    struct err e = {0};
    j->n_heard++;
    bool listens = j->heard && j->listens(j->ctx);
    if (!listens && !j->found && !j->controller)
        return; /* a plain node: only when it looks for a model */
    arena_init(&a, NODE_STATE_MAX_BYTES * 8);
    if (node_state_read(&s, &a, bytes, n, &e) == 0) {
        hear(j, &s);
        if (listens && strcmp(s.name, j->name) != 0)
            j->heard(j->ctx, &s);
    } else
        log_warn("cluster", "a heartbeat is refused: %s", e.msg);
    arena_fini(&a);
    if (j->controller)
        controller_on_heartbeat(j->controller, bytes, n);
}

/* Not while NATS is down: then no node can be heard. */
static void forget(struct join *j, uint64_t now)
{
    const uint32_t before = j->n_nodes;
    for (uint32_t i = 0; j->up && i < j->n_nodes;) {
        struct known *k = &j->nodes[i];
        if (now - k->heard_ns < j->forget_ns) {
            i++;
            continue;
        }
        j->gone(j->ctx, k->address);
        *k = j->nodes[--j->n_nodes];
        j->full = false;
    }
    if (j->n_nodes != before)
        keep_nodes(j);
}

/* ---- our own ---- */

static void send_heartbeat(struct join *j)
{
    struct err e = {0};
    struct buf b;
    buf_init(&b, NODE_STATE_MAX_BYTES);
    if (j->up && j->state(j->ctx, &b) == 0 && control_beat(j->control, b.data, b.len, &e) < 0 &&
        e.code != SHOAL_EBUSY)
        log_warn("cluster", "no heartbeat could be sent: %s", e.msg);
    buf_fini(&b);
}

/* NATS has lost the desired state, and somebody wants to know what this member has. */
static void on_call(void *ctx, uint64_t number)
{
    struct join *j = ctx;
    pthread_mutex_lock(&j->lock);
    j->roll_call = number;
    pthread_mutex_unlock(&j->lock);
    send_heartbeat(j);
}

/* ---- a node that was away ---- */

/* A node that starts, or stood still, may have missed an update: it serves what is deployed only
 * when it has heard the present state, or cannot. */
static void close_gate(struct join *j)
{
    if (!j->agent)
        return;
    atomic_store_explicit(&j->waits, true, memory_order_relaxed);
    agent_wait(j->agent, true);
    j->gate_ns = clock_ns();
    if (j->control)
        control_look(j->control);
    executor_timer_set(j->executor, &j->gate, j->gate_ns + GATE_NS);
}

static void on_gate(struct executor_timer *t)
{
    struct join *j = EXECUTOR_OF(t, struct join, gate);
    const uint64_t now = clock_ns(), version = j->desired ? j->desired->version : 0;
    bool heard = version > 0 && control_confirmed(j->control, version, j->gate_ns);
    if (!heard && now - j->gate_ns < ISOLATED_NS) {
        executor_timer_set(j->executor, t, now + GATE_NS);
        return;
    }
    if (!heard && version > 0)
        log_warn("cluster",
                 "isolated: NATS cannot be asked, so this node serves version %llu of the desired "
                 "state, which may be outdated",
                 (unsigned long long)version);
    if (!heard && version > 0)
        j->isolated_ns = j->gate_ns;
    atomic_store_explicit(&j->isolated, !heard && version > 0, memory_order_relaxed);
    j->gate_ns = 0;
    agent_wait(j->agent, false);
    atomic_store_explicit(&j->waits, false, memory_order_relaxed);
}

/* A node that runs, and loses NATS, misses the updates from then on. */
static void begin_isolation(struct join *j, uint64_t now)
{
    if (!j->agent || j->up || !j->up_ns || join_is_isolated(j, false) ||
        now - j->up_ns < ISOLATED_NS)
        return;
    j->isolated_ns = j->up_ns;
    atomic_store_explicit(&j->isolated, true, memory_order_relaxed);
    log_warn("cluster", "isolated: NATS is away, so the desired state that this node serves may be "
                        "outdated");
}

/* NATS has confirmed the version that this node serves, or sent a newer one. */
static void end_isolation(struct join *j)
{
    if (!join_is_isolated(j, false) ||
        !control_confirmed(j->control, j->desired ? j->desired->version : 0, j->isolated_ns))
        return;
    atomic_store_explicit(&j->isolated, false, memory_order_relaxed);
    log_info("cluster", "no longer isolated: the desired state is the one in NATS");
}

/* Time that counts while the machine sleeps. */
static uint64_t boot_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void notice_pause(struct join *j)
{
    const uint64_t now = boot_ns();
    if (j->ticked_ns && now - j->ticked_ns > j->heartbeat_ns + AWAY_NS)
        close_gate(j);
    j->ticked_ns = now;
}

static void on_timer(struct executor_timer *t)
{
    struct join *j = EXECUTOR_OF(t, struct join, timer);
    uint64_t now = clock_ns();
    notice_pause(j); /* before anything is said about its models */
    executor_timer_set(j->executor, t, now + j->heartbeat_ns);
    if (j->book && !j->book_read) { /* here, since found must not be called while it opens */
        j->book_read = true;
        peer_book_read(j->book, remember, j);
    }
    send_heartbeat(j);
    begin_isolation(j, now);
    end_isolation(j);
    if (j->found)
        forget(j, now);
    if (j->deployed && j->up && now - j->up_ns >= SETTLE_BEATS * j->heartbeat_ns)
        deployed_settle(j->deployed);
}

static void on_link(void *ctx, const struct bus_status *s)
{
    struct join *j = ctx;
    j->up = s->link == BUS_UP;
    j->up_ns = clock_ns();
    if (j->up) {
        control_look(j->control);
        log_info("cluster", "NATS is there: %s", s->server);
        for (uint32_t i = 0; i < j->n_nodes; i++) /* give all nodes time to be heard again */
            j->nodes[i].heard_ns = clock_ns();
    } else {
        log_warn("cluster", "NATS is unavailable, serving continues with the known nodes: %s",
                 s->error);
    }
    if (j->controller)
        controller_on_link(j->controller, j->up);
}

/* ---- the desired state ---- */

static void on_desired(void *ctx, const struct desired *d)
{
    struct join *j = ctx;
    pthread_mutex_lock(&j->lock);
    j->desired = d; /* the last one is freed after this call */
    pthread_mutex_unlock(&j->lock);
    if (j->deployed)
        deployed_set(j->deployed, d);
    if (j->agent)
        agent_follow(j->agent, d);
    if (j->controller)
        controller_on_desired(j->controller, d);
}

static void on_controller(void *ctx, bool held, uint64_t fence)
{
    struct join *j = ctx;
    pthread_mutex_lock(&j->lock);
    j->own_fence = held ? fence : 0;
    pthread_mutex_unlock(&j->lock);
    if (held)
        note_controller(j, j->name, fence);
    if (j->controller)
        controller_on_lease(j->controller, held, fence);
}

static void on_event(void *ctx, const struct event_log_entry *entry)
{
    struct join *j = ctx;
    control_event(j->control, entry);
}

/* ---- for people ---- */

void join_fill(struct join *j, struct node_state *s, struct arena *a)
{
    if (j->agent)
        agent_fill(j->agent, s, a);
    pthread_mutex_lock(&j->lock);
    s->fence = j->own_fence;
    if (j->desired) {
        s->desired = j->desired->version;
        s->desired_fence = j->desired->fence;
    }
    s->roll_call = j->roll_call;
    pthread_mutex_unlock(&j->lock);
    s->known_fence = control_known_fence(j->control);
    if (j->deployed)
        s->n_wanted = deployed_wanted(j->deployed, a, &s->wanted);
}

void join_get_view(struct join *j, struct join_view *out)
{
    *out = (struct join_view){.fence = 0};
    if (j->controller)
        controller_get_status(j->controller, &out->own);
    pthread_mutex_lock(&j->lock);
    if (j->own_fence || clock_ns() - j->holder_ns < CONTROLLER_NS) {
        snprintf(out->controller, sizeof(out->controller), "%s",
                 j->own_fence ? j->name : j->holder);
        out->fence = j->own_fence ? j->own_fence : j->holder_fence;
    }
    pthread_mutex_unlock(&j->lock);
}

void join_with_desired(struct join *j, void (*fn)(void *ctx, const struct desired *d), void *ctx)
{
    pthread_mutex_lock(&j->lock);
    if (j->desired)
        fn(ctx, j->desired);
    pthread_mutex_unlock(&j->lock);
}

int join_submit(struct join *j, struct control_change *change, struct err *e)
{
    if (!j->may_change)
        return err_set(e, SHOAL_EINVAL,
                       "the certificate of this member may not change the desired state: it needs "
                       "the role controller; or use the command line");
    if (!j->up)
        return err_set(e, SHOAL_EBUSY, "NATS is unavailable: nothing can be changed now");
    control_submit(j->control, change);
    return 0;
}

/* A node being drained or undrained. */
struct draining {
    struct control_change change;
    char node[MAX_NAME];
    bool drained;
};

static int set_drained(void *ctx, struct desired *d, struct err *e)
{
    const struct draining *k = ctx;
    if (desired_is_drained(d, k->node) == k->drained)
        return 1;
    int rc = desired_set_drained(d, k->node, k->drained);
    return rc < 0 ? err_set(e, rc, "drained nodes") : 0;
}

static void on_drained(struct control_change *change, int rc, const struct err *e)
{
    struct draining *k = change->ctx;
    if (rc < 0)
        log_warn("cluster", "node %s could not be %s: %s", k->node,
                 k->drained ? "drained" : "given work again", e->msg);
    mem_free(k);
}

int join_set_drained(struct join *j, const char *node, bool drained, struct err *e)
{
    if (!desired_name_ok(node) || strlen(node) >= MAX_NAME)
        return err_set(e, SHOAL_EINVAL, "'%.64s' is not a valid name for a node", node);
    struct draining *k = mem_zalloc(sizeof(*k));
    if (!k)
        return err_set(e, SHOAL_ENOMEM, "change of the desired state");
    snprintf(k->node, sizeof(k->node), "%s", node);
    k->drained = drained;
    k->change = (struct control_change){.fn = set_drained, .done = on_drained, .ctx = k};
    int rc = join_submit(j, &k->change, e);
    if (rc < 0)
        mem_free(k);
    return rc;
}

void join_damaged(struct join *j, const uint8_t sha256[SHA256_BYTES])
{
    if (j->agent)
        agent_damaged(j->agent, sha256);
}

bool join_is_isolated(const struct join *j, bool may_be_old)
{
    return j && (atomic_load_explicit(&j->isolated, memory_order_relaxed) ||
                 (may_be_old && atomic_load_explicit(&j->waits, memory_order_relaxed)));
}

bool join_up(const struct join *j)
{
    return j->up;
}

uint64_t join_heartbeats(const struct join *j)
{
    return j->n_heard;
}

/* ---- lifetime ---- */

static int open_agent(struct join *j, const struct join_opts *o, struct err *e)
{
    const struct agent_opts ao = {.name = o->name,
                                  .registry = o->registry,
                                  .executor = j->executor,
                                  .source = *o->source,
                                  .event = on_event,
                                  .event_ctx = j};
    return agent_create(&j->agent, &ao, e);
}

/* A name as one part of a subject. */
static void subject_name(char out[MAX_NAME], const char *name)
{
    snprintf(out, MAX_NAME, "%s", name);
    for (char *p = out; *p; p++)
        if (strchr(". *>\t", *p))
            *p = '-';
}

/* The file for the last desired state; NULL: none. */
static const char *snapshot_of(const struct join_opts *o, const char *name, char out[PATH_MAX])
{
    char dir[PATH_MAX];
    const char *cache = cache_dir_wanted(o->cache_dir, dir, sizeof(dir));
    if (o->snapshot)
        return o->snapshot;
    if (cache)
        mkdir(cache, 0755); /* usually there: weights are kept in it too */
    return cache && snprintf(out, PATH_MAX, "%s/desired-%s-%s", cache, o->cluster, name) < PATH_MAX
               ? out
               : NULL;
}

/* A gateway without a place for the book finds its nodes through NATS alone. */
static int open_book(struct join *j, const struct join_opts *o, struct err *e)
{
    char dir[PATH_MAX], path[PATH_MAX], file[2 * MAX_NAME], name[MAX_NAME];
    const char *cache = cache_dir_wanted(o->cache_dir, dir, sizeof(dir));
    subject_name(name, o->name);
    snprintf(file, sizeof(file), "peers-%.64s-%s", o->cluster, name);
    if (!o->found || !state_file_find(path, sizeof(path), file, cache))
        return 0;
    return peer_book_open(&j->book, path, e);
}

static int open_control(struct join *j, const struct join_opts *o, struct err *e)
{
    char name[MAX_NAME], snapshot[PATH_MAX];
    const struct control_watch watch = {.ctx = j,
                                        .on_link = on_link,
                                        .on_heartbeat = on_heartbeat,
                                        .on_desired = on_desired,
                                        .on_call = on_call,
                                        .on_controller = on_controller};
    subject_name(name, o->name);
    const struct control_opts co = {.bus = {.cluster = o->cluster,
                                            .name = name,
                                            .urls = o->urls,
                                            .n_urls = o->n_urls,
                                            .ca_file = o->ca_file,
                                            .cert_file = o->cert_file,
                                            .key_file = o->key_file},
                                    .snapshot = snapshot_of(o, name, snapshot),
                                    .hears = o->found || o->may_control || o->heard,
                                    .may_control = o->may_control,
                                    .lease_ttl_ms = o->lease_ms};
    return control_open(&j->control, &co, j->executor, &watch, e);
}

int join_open(struct join **out, struct executor *x, const struct join_opts *o, struct err *e)
{
    struct join *j = mem_zalloc(sizeof(*j));
    *out = NULL;
    if (!j)
        return err_set(e, SHOAL_ENOMEM, "out of memory to join a shoal");
    j->executor = x;
    j->heartbeat_ns = (uint64_t)o->heartbeat_ms * MS_NS;
    j->forget_ns = (uint64_t)o->forget_ms * MS_NS;
    j->state = o->state;
    j->found = o->found;
    j->gone = o->gone;
    j->heard = o->heard;
    j->listens = o->listens;
    j->ctx = o->ctx;
    j->deployed = o->deployed;
    j->may_change = o->may_change;
    j->timer.fn = on_timer;
    j->gate.fn = on_gate;
    pthread_mutex_init(&j->lock, NULL);
    snprintf(j->name, sizeof(j->name), "%s", o->name);
    int rc = o->registry ? open_agent(j, o, e) : 0;
    if (rc == 0)
        rc = open_book(j, o, e);
    if (rc == 0) /* its callbacks arrive through the executor: not before we return */
        rc = open_control(j, o, e);
    if (rc == 0 && o->quota) {
        j->quota = o->quota;
        rc = quota_bucket_connect(j->quota, control_bus(j->control), e);
    }
    if (rc == 0 && o->once) {
        j->once = o->once;
        rc = once_bucket_connect(j->once, control_bus(j->control), e);
    }
    if (rc == 0 && o->may_control)
        rc = controller_create(&j->controller, j->control, x, e);
    if (rc < 0) {
        join_close(j);
        return rc;
    }
    executor_timer_set(x, &j->timer, clock_ns());
    close_gate(j);
    *out = j;
    return 0;
}

void join_close(struct join *j)
{
    if (!j)
        return;
    executor_timer_clear(j->executor, &j->timer);
    executor_timer_clear(j->executor, &j->gate);
    agent_destroy(j->agent);
    controller_destroy(j->controller);
    quota_bucket_disconnect(j->quota);
    once_bucket_disconnect(j->once);
    control_close(j->control);
    peer_book_close(j->book);
    pthread_mutex_destroy(&j->lock);
    mem_free(j);
}
