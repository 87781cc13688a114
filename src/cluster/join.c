/* join.c - see join.h. */
#include "cluster/join.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/control/bus.h"
#include "cluster/node_state.h"

#define MS_NS 1000000u
#define MAX_ADDRESS 256u
#define MAX_NAME 128u

struct known {
    char address[MAX_ADDRESS], name[MAX_NAME];
    uint64_t heard_ns;
};

struct join {
    struct executor *executor;
    struct bus *bus;
    char tail[MAX_NAME + 4]; /* of our heartbeats' subject */
    char name[MAX_NAME];
    uint64_t heartbeat_ns, forget_ns;
    int (*state)(void *ctx, struct buf *out);
    void (*found)(void *ctx, const char *address, const char *name);
    void (*gone)(void *ctx, const char *address);
    void *ctx;
    struct executor_timer timer;
    struct known nodes[JOIN_MAX_NODES];
    uint32_t n_nodes;
    bool full;
    _Atomic bool up;
    _Atomic uint64_t n_heard;
};

/* ---- heartbeats of others ---- */

static void hear(struct join *j, const struct node_state *s)
{
    uint32_t i = 0;
    if (!s->address[0] || strlen(s->address) >= MAX_ADDRESS || !s->name[0] ||
        strlen(s->name) >= MAX_NAME || strcmp(s->name, j->name) == 0)
        return;
    while (i < j->n_nodes && strcmp(j->nodes[i].address, s->address) != 0)
        i++;
    if (i == JOIN_MAX_NODES) {
        if (!j->full)
            log_warn("cluster", "more than %u nodes: the others are not used", JOIN_MAX_NODES);
        j->full = true;
        return;
    }
    struct known *k = &j->nodes[i];
    bool is_new = i == j->n_nodes;
    if (is_new) {
        j->n_nodes++;
        snprintf(k->address, sizeof(k->address), "%s", s->address);
        snprintf(k->name, sizeof(k->name), "%s", s->name);
    }
    k->heard_ns = clock_ns();
    if (is_new)
        j->found(j->ctx, k->address, k->name);
}

static void on_heartbeat(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct join *j = ctx;
    struct node_state s;
    struct arena a;
    struct err e = {0};
    j->n_heard++;
    arena_init(&a, NODE_STATE_MAX_BYTES * 8);
    if (node_state_read(&s, &a, bytes, n, &e) == 0)
        hear(j, &s);
    else
        log_warn("cluster", "heartbeat on %s: %s", subject, e.msg);
    arena_fini(&a);
}

/* Not while NATS is away: then nobody can be heard. */
static void forget(struct join *j, uint64_t now)
{
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
}

/* ---- our own ---- */

static void send_heartbeat(struct join *j)
{
    struct err e = {0};
    struct buf b;
    buf_init(&b, NODE_STATE_MAX_BYTES);
    if (j->up && j->state(j->ctx, &b) == 0 && bus_publish(j->bus, j->tail, b.data, b.len, &e) < 0 &&
        e.code != SHOAL_EBUSY)
        log_warn("cluster", "no heartbeat could be sent: %s", e.msg);
    buf_fini(&b);
}

static void on_timer(struct executor_timer *t)
{
    struct join *j = EXECUTOR_OF(t, struct join, timer);
    uint64_t now = clock_ns();
    executor_timer_set(j->executor, t, now + j->heartbeat_ns);
    if (j->state)
        send_heartbeat(j);
    if (j->found)
        forget(j, now);
}

static void on_link(void *ctx, const struct bus_status *s)
{
    struct join *j = ctx;
    j->up = s->link == BUS_UP;
    if (j->up) {
        log_info("cluster", "NATS is there: %s", s->server);
        for (uint32_t i = 0; i < j->n_nodes; i++) /* all get the time to be heard again */
            j->nodes[i].heard_ns = clock_ns();
    } else {
        log_warn("cluster", "NATS is away, serving goes on with the nodes that are known: %s",
                 s->error);
    }
}

/* ---- lifetime ---- */

int join_open(struct join **out, struct executor *x, const struct join_opts *o, struct err *e)
{
    const struct bus_opts bo = {.cluster = o->cluster,
                                .name = o->name,
                                .urls = o->urls,
                                .n_urls = o->n_urls,
                                .ca_file = o->ca_file,
                                .cert_file = o->cert_file,
                                .key_file = o->key_file};
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
    j->ctx = o->ctx;
    j->timer.fn = on_timer;
    snprintf(j->name, sizeof(j->name), "%s", o->name);
    snprintf(j->tail, sizeof(j->tail), "hb.%s", j->name);
    for (char *p = j->tail + 3; *p; p++) /* one part of a subject */
        if (strchr(". *>\t", *p))
            *p = '-';
    int rc = bus_open(&j->bus, &bo, x, on_link, j, e);
    if (rc == 0 && j->found)
        rc = bus_subscribe(j->bus, "hb.*", on_heartbeat, j, NULL, e);
    if (rc < 0) {
        join_close(j);
        return rc;
    }
    executor_timer_set(x, &j->timer, clock_ns());
    *out = j;
    return 0;
}

void join_close(struct join *j)
{
    if (!j)
        return;
    executor_timer_clear(j->executor, &j->timer);
    bus_close(j->bus);
    mem_free(j);
}

bool join_up(const struct join *j)
{
    return j->up;
}

uint64_t join_heartbeats(const struct join *j)
{
    return j->n_heard;
}
