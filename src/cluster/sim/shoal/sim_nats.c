/* sim_nats.c - see sim_inside.h: NATS, and the network between it and the members. */
#include "cluster/sim/shoal/sim_inside.h"

#include <stdio.h>
#include <string.h>

#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"
#include "cluster/control/control.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/control/event_log.h"

#define BUCKETS 3u
#define KEYS 2u
#define IDS 32u
#define MAX_SUBS 4u
#define NOTICED_NS (2 * SIM_S) /* a member notices that NATS is away */

/* ---- the server ---- */

struct sim_value {
    char key[80];
    uint64_t revision;
    char *bytes;
    size_t n;
};

struct store { /* a bucket */
    char name[16];
    bool there;
    uint64_t last;
    struct sim_value now[KEYS],
        past[KEYS]; /* past: the value before, of the same life of the server */
    struct {
        char id[40];
        uint64_t revision;
    } ids[IDS];
    uint32_t n_ids;
};

static struct store stores[BUCKETS];

struct sim_bucket {
    struct store *store;
    uint32_t wait_ms;
};

static struct sim_bucket *bucket_of(struct bucket *k)
{
    return (struct sim_bucket *)(void *)k;
}

enum what { GET, PUT, LAST, CREATE, CONFIRM };

/* A call on its way to the server, or back. */
struct sim_ask {
    struct store *store;
    enum what what;
    char key[80], id[40];
    uint64_t expected, revision;
    char *bytes;
    size_t n;
    int rc;
    uint32_t life;  /* of the server's data */
    bool arrived;   /* or never will */
    bool applied;   /* the server has answered */
    bool abandoned; /* nobody waits for it any more */
};

static void free_value(struct sim_value *v)
{
    sim_free(v->bytes);
    *v = (struct sim_value){.n = 0};
}

static void set_bytes(char **to, size_t *to_n, const void *bytes, size_t n)
{
    sim_free(*to);
    *to = sim_zalloc(n + 1);
    if (n > 0)
        memcpy(*to, bytes, n);
    *to_n = n;
}

static void wipe(struct store *s)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        free_value(&s->now[i]);
        free_value(&s->past[i]);
    }
    s->there = false;
    s->last = 0;
    s->n_ids = 0;
}

void sim_nats_init(void)
{
    static const char *const names[BUCKETS] = {"desired", "lease", "quota"};
    for (uint32_t i = 0; i < BUCKETS; i++)
        snprintf(stores[i].name, sizeof(stores[i].name), "%s", names[i]);
}

void sim_nats_fini(void)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        wipe(&stores[i]);
}

void sim_nats_lose(void)
{
    sim_nats_fini();
    sim.n_lost++;
    sim.counts->n_lost++;
}

static struct sim_value *value_of(struct sim_value *list, const char *key)
{
    for (uint32_t i = 0; i < KEYS; i++)
        if (list[i].revision && strcmp(list[i].key, key) == 0)
            return &list[i];
    return NULL;
}

static void apply_put(struct store *s, struct sim_ask *a)
{
    struct sim_value *v = value_of(s->now, a->key);
    for (uint32_t i = 0; a->id[0] && i < s->n_ids && i < IDS; i++)
        if (strcmp(s->ids[i].id, a->id) == 0) { /* a repeated write happens once */
            a->revision = s->ids[i].revision;
            return;
        }
    if (a->expected != (v ? v->revision : 0)) {
        a->rc = 1;
        return;
    }
    uint32_t i = v ? (uint32_t)(v - s->now) : 0;
    while (!v && s->now[i].revision)
        i++;
    free_value(&s->past[i]);
    s->past[i] = s->now[i];
    s->now[i] = (struct sim_value){.revision = ++s->last};
    snprintf(s->now[i].key, sizeof(s->now[i].key), "%s", a->key);
    set_bytes(&s->now[i].bytes, &s->now[i].n, a->bytes, a->n);
    a->revision = s->last;
    if (a->id[0]) {
        const uint32_t at = s->n_ids++ % IDS;
        snprintf(s->ids[at].id, sizeof(s->ids[at].id), "%s", a->id);
        s->ids[at].revision = a->revision;
    }
}

static void apply_get(struct store *s, struct sim_ask *a)
{
    struct sim_value *v = value_of(s->now, a->key);
    if (!v) {
        a->rc = SHOAL_ENOTFOUND;
        return;
    }
    struct sim_value *past = &s->past[v - s->now];
    if (past->revision && sim.now_ns < sim.stale_ns && sim_pick(2) == 0) {
        v = past; /* a server that just woke, and believes that it leads */
        sim.counts->n_stale++;
    }
    a->revision = v->revision;
    set_bytes(&a->bytes, &a->n, v->bytes, v->n);
}

static void forget_ask(struct sim_ask *a)
{
    if (!a->arrived || !a->abandoned)
        return;
    sim_free(a->bytes);
    sim_free(a);
}

static void arrive(void *ctx)
{
    struct sim_ask *a = ctx;
    struct store *s = a->store;
    a->arrived = true;
    if (sim.now_ns >= sim.away_ns && a->life == sim.n_lost) { /* its connections end with it */
        a->applied = true;
        if (a->what == CREATE)
            s->there = true;
        else if (!s->there)
            a->rc = a->what == PUT ? SHOAL_EBUSY : SHOAL_ENOTFOUND;
        else if (a->what == PUT)
            apply_put(s, a);
        else if (a->what == GET)
            apply_get(s, a);
        else if (a->what == LAST)
            a->revision = s->last;
        else
            a->rc = value_of(s->now, a->key) && value_of(s->now, a->key)->revision == a->expected
                        ? 0
                        : 1;
    }
    forget_ask(a);
}

static bool lost_message(void)
{
    return sim_pick(1000) < sim.loss;
}

static bool is_cut(const struct sim_member *m)
{
    return sim.now_ns < m->cut_ns || sim.now_ns < sim.away_ns;
}

/* One call of the server by the running thread. */
static int call(struct bucket *bucket, enum what what, const char *key, const void *bytes, size_t n,
                uint64_t expected, const char *id, struct sim_ask **out, struct err *e)
{
    const struct sim_bucket *k = bucket_of(bucket);
    const struct sim_member *m = &sim.members[sim.current];
    const uint64_t late = sim.now_ns + k->wait_ms * SIM_MS;
    *out = NULL;
    if (m->dead)
        return err_set(e, SHOAL_EBUSY, "it has ended");
    struct sim_ask *a = sim_zalloc(sizeof(*a));
    *a =
        (struct sim_ask){.store = k->store, .what = what, .expected = expected, .life = sim.n_lost};
    snprintf(a->key, sizeof(a->key), "%s", key);
    snprintf(a->id, sizeof(a->id), "%s", id ? id : "");
    if (bytes)
        set_bytes(&a->bytes, &a->n, bytes, n);
    const uint64_t there = sim.now_ns + sim_between(0, sim.slow_ns);
    uint64_t back = there + sim_between(0, sim.slow_ns);
    a->arrived = is_cut(m) || lost_message();
    if (!a->arrived)
        sim_at(there, SIM_MEMBERS, arrive, a);
    if (a->arrived || lost_message())
        back = UINT64_MAX;
    const bool alive = sim_sleep_until(back < late ? back : late);
    if (!alive || back > late || !a->applied || is_cut(m)) {
        a->abandoned = true;
        forget_ask(a);
        return err_set(e, SHOAL_EBUSY, "no answer");
    }
    *out = a;
    return a->rc < 0 ? err_set(e, a->rc, "%s: refused", k->store->name) : a->rc;
}

static void end_call(struct sim_ask *a)
{
    if (!a)
        return;
    a->abandoned = true;
    forget_ask(a);
}

int sim_bucket_open(struct bucket **out, struct bus *b, const char *name, uint32_t wait_ms,
                    struct err *e)
{
    struct sim_bucket *k = sim_zalloc(sizeof(*k));
    *out = (struct bucket *)(void *)k;
    (void)b;
    (void)e;
    k->wait_ms = wait_ms;
    k->store = stores;
    while (strcmp(k->store->name, name) != 0)
        k->store++;
    return 0;
}

void sim_bucket_close(struct bucket *k)
{
    sim_free(k);
}

int sim_bucket_create(struct bucket *k, unsigned replicas, unsigned history, struct err *e)
{
    struct sim_ask *a;
    (void)replicas;
    (void)history;
    int rc = call(k, CREATE, "", NULL, 0, 0, NULL, &a, e);
    end_call(a);
    return rc;
}

int sim_bucket_get(struct bucket *k, const char *key, struct buf *out, uint64_t *revision,
                   struct err *e)
{
    struct sim_ask *a;
    int rc = call(k, GET, key, NULL, 0, 0, NULL, &a, e);
    *revision = a ? a->revision : 0;
    if (rc == 0)
        buf_put(out, a->bytes, a->n);
    end_call(a);
    return rc;
}

int sim_bucket_put(struct bucket *k, const char *key, const void *bytes, size_t n,
                   uint64_t expected, const char *id, uint64_t *revision, struct err *e)
{
    struct sim_ask *a;
    int rc = call(k, PUT, key, bytes, n, expected, id, &a, e);
    if (rc == 0)
        *revision = a->revision;
    end_call(a);
    return rc;
}

int sim_bucket_last(struct bucket *k, uint64_t *revision, struct err *e)
{
    struct sim_ask *a;
    int rc = call(k, LAST, "", NULL, 0, 0, NULL, &a, e);
    if (rc == 0)
        *revision = a->revision;
    end_call(a);
    return rc;
}

int sim_bucket_confirm(struct bucket *k, uint64_t revision, struct err *e)
{
    struct sim_ask *a;
    int rc = call(k, CONFIRM, "state", NULL, 0, revision, NULL, &a, e);
    end_call(a);
    return rc;
}

struct desired *sim_nats_state(void)
{
    struct sim_value *v = value_of(stores[0].now, "state");
    struct desired *d = NULL;
    if (!v || desired_code_get(&d, v->bytes, v->n, NULL) < 0)
        return NULL;
    return d;
}

/* ---- messages ---- */

struct sim_sub {
    char tail[32];
    bus_message_fn fn;
    void *ctx;
    bool used;
};

struct sim_bus {
    uint32_t member;
    bus_link_fn on_link;
    void *ctx;
    struct sim_sub subs[MAX_SUBS];
    struct bus_status status;
    uint64_t away_ns; /* since when it has not reached NATS; 0: it does */
};

static struct sim_bus *bus_of(const struct bus *b)
{
    return (struct sim_bus *)(uintptr_t)b;
}

struct parcel { /* a message to one member */
    uint32_t member, life;
    char tail[48];
    char *bytes;
    size_t n;
};

int sim_bus_open(struct bus **out, const struct bus_opts *o, struct executor *x,
                 bus_link_fn on_link, void *ctx, struct err *e)
{
    struct sim_bus *b = sim_zalloc(sizeof(*b));
    *out = (struct bus *)(void *)b;
    (void)o;
    (void)x;
    (void)e;
    *b = (struct sim_bus){.member = sim.current, .on_link = on_link, .ctx = ctx, .away_ns = 1};
    sim.members[sim.current].bus = *out;
    return 0;
}

void sim_bus_close(struct bus *b)
{
    if (!b)
        return;
    sim.members[bus_of(b)->member].bus = NULL;
    sim_free(b);
}

const char *sim_bus_cluster(const struct bus *b)
{
    (void)b;
    return "sim";
}

void sim_bus_get_status(struct bus *b, struct bus_status *out)
{
    *out = bus_of(b)->status;
}

int sim_bus_subscribe(struct bus *bus, const char *tail, bus_message_fn fn, void *ctx,
                      struct bus_sub **out, struct err *e)
{
    struct sim_sub *s = bus_of(bus)->subs;
    (void)e;
    while (s->used)
        s++;
    *s = (struct sim_sub){.fn = fn, .ctx = ctx, .used = true};
    snprintf(s->tail, sizeof(s->tail), "%s", tail);
    if (out)
        *out = (struct bus_sub *)(void *)s;
    return 0;
}

void sim_bus_unsubscribe(struct bus_sub *s)
{
    if (s)
        ((struct sim_sub *)(void *)s)->used = false;
}

static bool matches(const char *tail, const char *subject)
{
    const size_t n = strlen(tail);
    return n > 1 && tail[n - 1] == '*' ? strncmp(tail, subject, n - 1) == 0
                                       : strcmp(tail, subject) == 0;
}

static void deliver(void *ctx)
{
    struct parcel *p = ctx;
    struct sim_member *m = &sim.members[p->member];
    struct sim_bus *b = bus_of(m->bus);
    if (b && m->life == p->life && !is_cut(m))
        for (struct sim_sub *s = b->subs; m->bus && s < b->subs + MAX_SUBS; s++)
            if (s->used && matches(s->tail, p->tail))
                s->fn(s->ctx, p->tail, p->bytes, p->n);
    sim_free(p->bytes);
    sim_free(p);
}

static bool listens(const struct sim_bus *b, const char *tail)
{
    for (const struct sim_sub *s = b->subs; s < b->subs + MAX_SUBS; s++)
        if (s->used && matches(s->tail, tail))
            return true;
    return false;
}

int sim_bus_publish(struct bus *bus, const char *tail, const void *bytes, size_t n, struct err *e)
{
    const struct sim_bus *b = bus_of(bus);
    const struct sim_member *from = &sim.members[b->member];
    if (from->dead || b->status.link != BUS_UP)
        return err_set(e, SHOAL_EBUSY, "NATS is away");
    for (uint32_t i = 0; i < SIM_MEMBERS && !is_cut(from); i++) {
        const struct sim_member *to = &sim.members[i];
        const uint32_t times = lost_message() ? 0 : sim_pick(1000) < sim.loss ? 2 : 1;
        for (uint32_t k = 0; to->bus && listens(bus_of(to->bus), tail) && k < times; k++) {
            struct parcel *p = sim_zalloc(sizeof(*p));
            *p = (struct parcel){.member = i, .life = to->life};
            snprintf(p->tail, sizeof(p->tail), "%s", tail);
            set_bytes(&p->bytes, &p->n, bytes, n);
            sim_at(sim.now_ns + sim_between(0, sim.slow_ns), i, deliver, p);
        }
    }
    return 0;
}

void sim_nats_links(void)
{
    for (uint32_t i = 0; i < SIM_MEMBERS; i++) {
        struct sim_bus *b = bus_of(sim.members[i].bus);
        if (!b || sim.members[i].paused_ns > sim.now_ns)
            continue;
        const bool cut = is_cut(&sim.members[i]), up = b->status.link == BUS_UP;
        if (!cut)
            b->away_ns = 0;
        else if (!b->away_ns)
            b->away_ns = sim.now_ns;
        if (cut ? !up || sim.now_ns - b->away_ns < NOTICED_NS : up)
            continue;
        b->status.link = up ? BUS_AWAY : BUS_UP;
        b->status.n_connects += !up;
        sim.current = i;
        if (b->on_link)
            b->on_link(b->ctx, &b->status);
    }
}

/* The context of a member's connection is its control plane. */
bool sim_nats_held(uint32_t member, uint64_t *fence)
{
    const struct sim_bus *b = bus_of(sim.members[member].bus);
    return b && b->ctx && control_held(b->ctx, fence);
}

uint64_t sim_nats_known(uint32_t member)
{
    const struct sim_bus *b = bus_of(sim.members[member].bus);
    return b && b->ctx ? control_known_fence(b->ctx) : 0;
}

/* ---- events for people ---- */

int sim_event_log_open(struct event_log **out, const struct event_log_opts *o, struct err *e)
{
    (void)o;
    (void)e;
    *out = NULL;
    return 0;
}

void sim_event_log_close(struct event_log *l)
{
    (void)l;
}

void sim_event_log_add(struct event_log *l, const struct event_log_entry *entry)
{
    (void)l;
    (void)entry;
}

void sim_event_log_get_status(struct event_log *l, struct event_log_status *out)
{
    (void)l;
    *out = (struct event_log_status){0};
}
