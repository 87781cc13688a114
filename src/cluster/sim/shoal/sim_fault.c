/* sim_fault.c - see sim_inside.h: what goes wrong, what administrators want, and whole schedules.
 */
#include "cluster/sim/shoal/sim_inside.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/thread/thread.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_store.h"
#include "cluster/join.h"
#include "cluster/placement/placement.h"
#include "cluster/quota_bucket.h"
#include "cluster/rollout/rollout.h"
#include "cluster/rollout/rollout_admin.h"
#include "host/quota.h"

#define FAULTS_NS (40 * SIM_S)
#define CALM_NS (300 * SIM_S) /* at most, until all is well again */
#define STREAMS_NS (6 * SIM_S)
#define LOOK_NS (250 * SIM_MS)
#define QUOTA 1000u

/* ---- the administrator ---- */

static struct {
    struct desired_store *store;
    struct bus *bus;
    uint32_t version; /* of the model, the last one that was rolled out */
    uint32_t n_heard; /* heartbeats */
    uint32_t unknown; /* changes whose outcome is not known */
    bool deployed, listens;
    pthread_t thread;
} admin;

static int deploy(void *ctx, struct desired *d, struct err *e)
{
    struct desired_model m = {.name = SIM_MODEL,
                              .source = "",
                              .kinds = SHOAL_KIND_GENERATE,
                              .memory_bytes = 1 << 20,
                              .replicas_min = 2,
                              .replicas_max = sim.n_nodes,
                              .replicas_want = 2,
                              .per_node = sim.seed % 2 ? 2 : 0,
                              .apart = ""};
    (void)ctx;
    (void)e;
    sim_version_sum(m.sha256, 1);
    return desired_find_model(d, SIM_MODEL) ? 1 : desired_put_model(d, &m);
}

static int count(void *ctx, struct desired *d, struct err *e)
{
    (void)ctx;
    (void)e;
    d->policy.placement.max_moves++;
    return 0;
}

static int roll(void *ctx, struct desired *d, struct err *e)
{
    static const enum desired_rollout_kind kinds[] = {DESIRED_ROLLING, DESIRED_STRONG,
                                                      DESIRED_EVENTUAL, DESIRED_CANARY};
    const struct desired_rollout *out;
    struct rollout_start o = {.model = SIM_MODEL, .kind = kinds[*(uint32_t *)ctx % 4], .by = "sim"};
    sim_version_sum(o.to, (uint8_t)admin.version);
    return rollout_admin_start(d, &o, 1, &out, e);
}

static int act(void *ctx, struct desired *d, struct err *e)
{
    const struct desired_rollout *out;
    return rollout_admin_act(d, SIM_MODEL, *(uint32_t *)ctx % 3 ? ROLLOUT_PROMOTE : ROLLOUT_UNDO,
                             "sim", 1, &out, e);
}

static int drain(void *ctx, struct desired *d, struct err *e)
{
    char name[16];
    (void)e;
    snprintf(name, sizeof(name), "n%u", *(uint32_t *)ctx % sim.n_nodes);
    const bool was = desired_is_drained(d, name);
    return !was && d->drained.n > 0 ? 1 : desired_set_drained(d, name, !was);
}

/* Nothing is drained, and no update is under way by hand, so that all can be well. */
static int settle(void *ctx, struct desired *d, struct err *e)
{
    const struct desired_rollout *r = rollout_of(d, SIM_MODEL), *out;
    const struct desired_names none = {NULL, 0};
    (void)ctx;
    int rc = desired_set_all_drained(d, &none);
    if (!desired_find_model(d, SIM_MODEL)) /* it was lost with NATS, before a member had it */
        return deploy(NULL, d, e);
    if (rc == 0 && r && (r->kind == DESIRED_CANARY || r->state == DESIRED_PAUSED))
        rc = rollout_admin_act(d, r->id, ROLLOUT_PROMOTE, "sim", 1, &out, e);
    return rc;
}

/* As cluster_site.c, on which the commands are built. */
static void on_heartbeat(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct node_state state;
    struct arena a;
    struct err e = {0};
    (void)ctx;
    (void)subject;
    if (!admin.listens)
        return;
    admin.n_heard++;
    arena_init(&a, NODE_STATE_MAX_BYTES);
    if (node_state_read(&state, &a, bytes, n, &e) == 0) {
        const struct desired_heard h = {.version = state.desired,
                                        .writer = state.desired_fence,
                                        .fence = state.fence,
                                        .known_fence = state.known_fence};
        desired_store_heard(admin.store, &h);
    }
    arena_fini(&a);
}

/* Somebody at least: where no member is heard, nobody can say whether there is a state. */
static void listen_to_members(void *ctx)
{
    (void)ctx;
    admin.n_heard = 0;
    admin.listens = true;
    while (sim_sleep_until(sim.now_ns + 3 * SIM_S) && admin.n_heard == 0)
        ;
    admin.listens = false;
}

/* Every command is a process of its own, which knows nothing. */
static int command(desired_update_fn fn, void *ctx)
{
    const struct desired_store_opts so = {
        .retry_ms = 5000, .wait_ms = 1000, .bus = admin.bus, .listen = listen_to_members};
    struct err e = {0};
    int rc = desired_store_open(&admin.store, &so, NULL, NULL, NULL, &e);
    if (rc < 0)
        return rc;
    rc = desired_store_update(admin.store, 0, fn, ctx, NULL, &e);
    desired_store_close(admin.store);
    admin.store = NULL;
    return rc;
}

static void change(desired_update_fn fn)
{
    uint32_t dice = sim_pick(1 << 16);
    sim.done_version = 0; /* until the next update is done; the check looks at NATS itself */
    const uint32_t lost = sim.n_lost;
    int rc = command(fn, &dice);
    if (rc == 0)
        sim.counts->n_changes++;
    if (fn != count)
        return;
    if (rc == 0 && lost == sim.n_lost)
        sim.acked++;
    else if (rc == SHOAL_EBUSY || rc == 0)
        admin.unknown++;
}

static void *administrate(void *arg)
{
    (void)arg;
    while (!admin.deployed && sim_sleep_until(sim.now_ns + 200 * SIM_MS)) {
        admin.deployed = command(deploy, NULL) == 0;
    }
    while (sim_sleep_until(sim.now_ns + sim_between(500 * SIM_MS, 6 * SIM_S))) {
        const uint32_t what = sim_pick(8);
        if (sim.calm) {
            change(settle);
        } else if (what < 3) {
            change(count);
        } else if (what < 5) {
            if (admin.version < SIM_VERSIONS)
                admin.version++;
            change(roll);
        } else {
            change(what == 5 ? act : drain);
        }
    }
    return NULL;
}

static void start_admin(void)
{
    struct sim_member *m = &sim.members[SIM_ADMIN];
    struct err e = {0};
    const struct bus_opts bo = {.cluster = "sim"};
    memset(&admin, 0, sizeof(admin));
    admin.version = 1;
    sim.current = SIM_ADMIN;
    m->life = 1;
    if (bus_open(&admin.bus, &bo, NULL, NULL, NULL, &e) < 0 ||
        bus_subscribe(admin.bus, "hb.*", on_heartbeat, NULL, NULL, &e) < 0 ||
        thread_create(&admin.thread, "admin", administrate, NULL, &e) < 0)
        sim_broken("%s", e.msg);
}

static void end_admin(void)
{
    sim.current = SIM_ADMIN;
    sim.members[SIM_ADMIN].dead = true;
    (void)!pthread_join(admin.thread, NULL);
    bus_close(admin.bus);
    sim_run_tasks(&sim.members[SIM_ADMIN]);
}

/* ---- quotas ---- */

static void *use_quota(void *arg)
{
    const struct sim_member *m = arg;
    while (sim_sleep_until(sim.now_ns + sim_between(50 * SIM_MS, 4 * SIM_S)) && m->quota) {
        struct quota_source *s = quota_bucket_source(m->quota);
        struct err e = {0};
        uint64_t got = 0;
        if (s->ops->lease(s, "client", 1, QUOTA, 60, &got, &e) < 0)
            continue;
        sim.quota_taken += got;
        if (sim.quota_taken > (uint64_t)QUOTA * (1 + sim.n_lost))
            sim_broken("%llu of %u tokens were handed out, and NATS lost its data %u times",
                       (unsigned long long)sim.quota_taken, QUOTA, sim.n_lost);
    }
    return NULL;
}

static void start_quota(uint32_t member)
{
    struct sim_member *m = &sim.members[member];
    struct err e = {0};
    sim.current = member;
    m->uses_quota = thread_create(&m->quota_user, "quota", use_quota, m, &e) == 0;
    if (!m->uses_quota)
        sim_broken("%s", e.msg);
}

/* ---- faults ---- */

static void start_again(void *ctx)
{
    const uint32_t i = (uint32_t)(uintptr_t)ctx;
    if (!sim.members[i].dead || sim.closing)
        return;
    sim_member_start(i);
    if (!sim.streams && i < 2)
        start_quota(i);
}

static void crash(uint32_t i)
{
    if (!sim_member_up(&sim.members[i]))
        return;
    sim.counts->n_crashes++;
    sim_member_end(i);
    sim_at(sim.now_ns + sim_between(50 * SIM_MS, 8 * SIM_S), SIM_MEMBERS, start_again,
           (void *)(uintptr_t)i);
}

/* What waits for the end of a fault keeps its order: no fault ends earlier than it was to. */
static void extend(uint64_t *until_ns, uint64_t ns)
{
    if (sim.now_ns + ns > *until_ns)
        *until_ns = sim.now_ns + ns;
}

static void pause_for(uint32_t i, uint64_t ns)
{
    sim.counts->n_pauses++;
    extend(&sim.members[i].paused_ns, ns);
}

static void pause_all(void *ctx)
{
    const uint64_t ns = sim_between(1200 * SIM_MS, 2500 * SIM_MS);
    for (uint32_t i = 0; i < sim.n_nodes; i++)
        pause_for(i, ns);
    if (ctx && !sim.calm)
        sim_at(sim.now_ns + ns + sim_between(300 * SIM_MS, 1500 * SIM_MS), SIM_MEMBERS, pause_all,
               (void *)((uintptr_t)ctx - 1));
}

/* The machine that all nodes share has far too much to do, and NATS is slow to answer. */
static void overload(void)
{
    if (sim_pick(2))
        sim.away_ns = sim.now_ns + sim_between(5 * SIM_S, 20 * SIM_S);
    pause_all((void *)(uintptr_t)sim_pick(10));
}

static void fault_of_nats(void)
{
    switch (sim_pick(8)) {
    case 0:
        sim_nats_lose();
        break;
    case 1:
    case 2:
    case 3:
        sim.stale_ns = sim.now_ns + sim_between(50 * SIM_MS, 2 * SIM_S);
        break;
    default:
        sim.away_ns = sim.now_ns + sim_between(100 * SIM_MS, 8 * SIM_S);
        break;
    }
}

static void fault_of_member(struct sim_member *m)
{
    switch (sim_pick(4)) {
    case 0:
        m->cut_ns = sim.now_ns + sim_between(100 * SIM_MS, 12 * SIM_S);
        break;
    case 1:
        extend(&m->cable_ns, sim_between(50 * SIM_MS, 6 * SIM_S));
        break;
    case 2:
        m->wall_ms = (int64_t)sim_pick(7200000) - 3600000;
        break;
    default:
        m->full_ns = sim.now_ns + sim_between(SIM_S, 10 * SIM_S);
        break;
    }
}

static void strike(void)
{
    const uint32_t i = sim_pick(sim.n_nodes);
    switch (sim_pick(10)) {
    case 0:
    case 1:
        pause_for(i, sim_between(50 * SIM_MS, 10 * SIM_S));
        break;
    case 2:
    case 3:
        crash(i);
        break;
    case 4:
        if (i == 0)
            overload();
        else
            pause_for(sim.holder, sim_between(100 * SIM_MS, 6 * SIM_S));
        break;
    case 5:
        pause_for(SIM_GATEWAY, sim_between(50 * SIM_MS, 3 * SIM_S));
        break;
    case 6:
        fault_of_nats();
        break;
    case 7:
    case 8:
        fault_of_member(&sim.members[sim_pick(8) == 0 ? SIM_GATEWAY : i]);
        break;
    default:
        sim.slow_ns = sim_between(SIM_MS, sim_pick(4) == 0 ? 900 * SIM_MS : 60 * SIM_MS);
        sim.loss = sim_pick(3) == 0 ? sim_pick(60) : 5;
        break;
    }
}

/* ---- checks of the whole ---- */

static void check_done(const struct desired *d)
{
    const struct desired_model *m = desired_find_model(d, SIM_MODEL);
    if (!m || rollout_of(d, SIM_MODEL))
        sim.done_version = 0;
    else if (m->sha256[0] != sim.done_version) {
        sim.done_version = m->sha256[0];
        sim.done_ns = sim.now_ns;
        sim.counts->n_rollouts += sim.done_version > 1;
    }
}

static uint32_t changes_in(const struct desired *d)
{
    return d->policy.placement.max_moves - placement_policy_default().max_moves;
}

static void see_changes(void *ctx, const struct desired *d)
{
    *(uint32_t *)ctx = changes_in(d);
}

/* Who knows how much, and since when he can tell the others. */
static void note_members(bool known)
{
    for (uint32_t i = 0; i <= SIM_GATEWAY; i++) {
        struct sim_member *m = &sim.members[i];
        if (!m->join || m->paused_ns > sim.now_ns || m->cut_ns > sim.now_ns ||
            sim.away_ns > sim.now_ns)
            m->away_ns = sim.now_ns;
        if (i < sim.n_nodes && m->join && (known || m->noted_life != m->life)) {
            m->n_known = 0; /* its last life may have known more than its disk, which was full */
            m->noted_life = m->life;
            join_with_desired(m->join, see_changes, &m->n_known);
        }
    }
}

/* The state was written back.  The newest copy counts, not that of the majority: a change that was
 * acknowledged may have reached just one member.  As long as he was there to tell, it is in it. */
static void check_restored(const struct desired *d)
{
    uint32_t most = 0, n = 0;
    for (uint32_t i = 0; i < sim.n_nodes; i++) {
        const struct sim_member *m = &sim.members[i];
        most = m->n_known > most ? m->n_known : most;
        if (m->n_known > changes_in(d) && sim_is_heard(m))
            sim_broken("%s knew %u changes, and %u were written back", m->name, m->n_known,
                       changes_in(d));
    }
    for (uint32_t i = 0; i < sim.n_nodes; i++)
        n += sim.members[i].n_known == most;
    sim.counts->n_restored++;
    sim.counts->n_minority += most > 0 && 2 * n < sim.n_nodes;
}

/* Only a strong update has an epoch of its own: with another one, an epoch has two versions. */
static void note_mixed(const struct desired *d)
{
    const struct desired_rollout *r = d ? rollout_of(d, SIM_MODEL) : NULL;
    if (!d || (r && r->kind != DESIRED_STRONG))
        sim.mixed_ns = sim.now_ns;
}

static void look(void)
{
    struct desired *d = sim_nats_state();
    note_mixed(d);
    sim_nats_links();
    if (d && sim.empty)
        check_restored(d);
    sim.empty = !d && sim.n_lost > 0;
    note_members(d != NULL);
    if (d)
        check_done(d);
    else
        sim.done_version = 0;
    desired_destroy(d);
}

static uint32_t n_ready(const struct desired_model *want)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim.n_nodes; i++) {
        struct sim_loaded *k = sim_member_model(&sim.members[i], want->sha256);
        n += k && k->slot.state == REGISTRY_READY && k->model.service.duty == REGISTRY_SERVE;
    }
    return n;
}

static void see_version(void *ctx, const struct desired *d)
{
    *(uint64_t *)ctx = d->version;
}

/* What is not well yet; NULL: nothing. */
static const char *trouble(const struct desired *d)
{
    const struct desired_model *m = d ? desired_find_model(d, SIM_MODEL) : NULL;
    uint64_t fence;
    sim.current = sim.holder; /* whose clock counts */
    if (!d || !m)
        return "NATS has no state";
    if (rollout_of(d, SIM_MODEL))
        return "an update is under way";
    if (d->drained.n > 0)
        return "a node is drained";
    if (n_ready(m) < 2)
        return "there are too few replicas";
    if (!sim_nats_held(sim.holder, &fence))
        return "there is no controller";
    for (uint32_t i = 0; i <= SIM_GATEWAY; i++) {
        uint64_t version = 0;
        if (i >= sim.n_nodes && i < SIM_GATEWAY)
            continue;
        if (sim.members[i].join)
            join_with_desired(sim.members[i].join, see_version, &version);
        if (version != d->version)
            return "a member does not follow the state in NATS";
    }
    return NULL;
}

static bool is_unplugged(void)
{
    for (uint32_t i = 0; i < sim.n_nodes; i++)
        if (sim.members[i].cable_ns > sim.now_ns)
            return true;
    return false;
}

static const char *not_well(void)
{
    struct desired *d = sim.streams ? NULL : sim_nats_state();
    const char *what = sim_stream_open() > 0 ? "a request is not answered"
                       : is_unplugged()      ? "a node is unplugged"
                       : sim.streams         ? NULL
                                             : trouble(d);
    desired_destroy(d);
    return what;
}

static void check_changes(void)
{
    struct desired *d = sim_nats_state();
    const uint32_t n = d ? changes_in(d) : 0;
    if (sim.n_lost == 0 && (n < sim.acked || n > sim.acked + admin.unknown))
        sim_broken("%u changes were acknowledged and %u may have happened, but there are %u",
                   sim.acked, admin.unknown, n);
    desired_destroy(d);
}

/* ---- a schedule ---- */

static void new_client(void *ctx)
{
    sim_stream_client();
    if (!sim.calm)
        sim_at(sim.now_ns + sim_between(20 * SIM_MS, sim.streams ? 600 * SIM_MS : 2 * SIM_S),
               SIM_GATEWAY, new_client, ctx);
}

static void open_site(uint64_t seed, bool streams, struct sim_shoal_counts *counts, struct err *e)
{
    memset(&sim, 0, sizeof(sim));
    sim.seed = seed;
    sim.rand = sim_rand_make(seed, 30, 0);
    sim.streams = streams;
    sim.counts = counts;
    sim.error = e;
    sim.n_nodes = 2 + sim_pick(SIM_NODES - 1);
    sim.slow_ns = 20 * SIM_MS;
    sim.loss = 5;
    sim_time_init();
    sim_nats_init();
    for (uint32_t i = 0; i < SIM_MEMBERS; i++) {
        struct sim_member *m = &sim.members[i];
        m->rate = 0.96 + 0.01 * sim_pick(9); /* a lease allows for 10 % between two of them */
        snprintf(m->name, sizeof(m->name), i < SIM_NODES ? "n%u" : "front%u", i);
    }
    sim_stream_init();
    for (uint32_t i = 0; i < sim.n_nodes; i++)
        sim_member_start(i);
    sim_member_start(SIM_GATEWAY);
    for (uint32_t i = 0; !streams && i < 2; i++)
        start_quota(i);
    if (!streams)
        start_admin();
    sim_at(SIM_S, SIM_GATEWAY, new_client, NULL);
}

static void close_site(void)
{
    sim.failed = false; /* it may still run, to end */
    struct err unused = {0};
    sim.error = &unused;
    sim.calm = sim.closing = true;
    for (uint32_t i = 0; i < SIM_MEMBERS; i++)
        sim.members[i].paused_ns = sim.members[i].cable_ns = 0;
    sim_stream_fini();
    sim_run_tasks(&sim.members[SIM_GATEWAY]);
    if (!sim.streams)
        end_admin();
    for (uint32_t i = 0; i < sim.n_nodes; i++)
        sim_member_end(i);
    for (uint32_t i = 0; i < 100000 && (sim.n_clients > 0 || sim.calls || sim.n_events > 1); i++)
        if (!sim_step(sim.now_ns + 20 * SIM_S))
            break;
    sim_member_end(SIM_GATEWAY);
    sim_stream_free();
    for (uint32_t i = 0; i < SIM_MEMBERS; i++)
        buf_fini(&sim.members[i].disk);
    sim_nats_fini();
    sim_time_fini();
}

/* Until `until`, or all is well if that is asked for. */
static bool run_until(uint64_t until_ns, bool well)
{
    while (sim.now_ns < until_ns && !sim.failed) {
        const uint64_t next = sim.now_ns + LOOK_NS < until_ns ? sim.now_ns + LOOK_NS : until_ns;
        while (sim_step(next))
            if (!sim.streams)
                sim_check_members();
        if (sim.failed)
            return false;
        sim.now_ns = next;
        if (!sim.streams)
            look();
        if (!sim.streams && sim.now_ns / SIM_S != (sim.now_ns - LOOK_NS) / SIM_S)
            sim_show();
        if (well && !not_well())
            return true;
    }
    return !well && !sim.failed;
}

static void run_schedule(void)
{
    const uint64_t end = sim.streams ? STREAMS_NS : FAULTS_NS;
    const uint64_t gap = sim.streams ? SIM_S : 4 * SIM_S;
    bool fine = true;
    for (uint64_t at = sim_between(SIM_S, sim.streams ? 2 * SIM_S : 10 * SIM_S); fine && at < end;
         at += sim_between(20 * SIM_MS, gap)) {
        fine = run_until(at, false);
        if (fine)
            strike();
    }
    if (!fine)
        return;
    sim.calm = true;
    sim.slow_ns = 5 * SIM_MS;
    sim.loss = 0;
    sim.stale_ns = 0;
    const uint64_t until = sim.now_ns + CALM_NS;
    if (!run_until(until, true) && !sim.failed)
        sim_broken("%.0f s after the last fault, %s", (double)CALM_NS / 1e9, not_well());
    if (!sim.failed && !sim.streams)
        check_changes();
    if (!sim.failed)
        sim_stream_client();
    if (!sim.failed && !run_until(sim.now_ns + 30 * SIM_S, true) && !sim.failed)
        sim_broken("30 s after a request in a healthy shoal, %s", not_well());
}

int sim_shoal_run(uint64_t seed, bool streams, struct sim_shoal_counts *counts, struct err *e)
{
    open_site(seed, streams, counts, e);
    run_schedule();
    const bool failed = sim.failed;
    counts->n_schedules++;
    counts->seconds += (double)sim.now_ns / 1e9;
    close_site();
    return failed ? e->code : 0;
}
