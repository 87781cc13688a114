/* control_state.c - the control plane on one real nats-server: concurrent changes of the desired
 * state, invalid values, the server down for ten seconds, the snapshot, events. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"
#include "cluster/control/control.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/control/desired_file.h"
#include "cluster/control/desired_store.h"
#include "cluster/control/event_log.h"
#include "cluster/control/roll_code.h"
#include "support/nats_site.h"

static struct nats_site site;

static void open_bus(struct bus **b, struct executor *x, bus_link_fn fn, void *ctx)
{
    struct err e = {0};
    struct bus_opts o = {
        .cluster = "test", .urls = site.urls, .n_urls = site.n, .reconnect_ms = 50};
    if (bus_open(b, &o, x, fn, ctx, &e) < 0)
        fail_msg("%s", e.msg);
}

static struct desired_store *open_store(struct bus *b)
{
    struct desired_store_opts o = {.bus = b, .retry_ms = 60000};
    struct desired_store *s;
    struct err e = {0};
    if (desired_store_open(&s, &o, NULL, NULL, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

/* ---- many writers --------------------------------------------------------------------------- */

enum { N_WRITERS = 4, N_UPDATES = 250 };

static int add_one(void *ctx, struct desired *d, struct err *e)
{
    unsigned *calls = ctx;
    (void)e;
    ++*calls;
    d->policy.placement.max_moves++;
    return 0;
}

struct writer {
    pthread_t thread;
    unsigned calls; /* calls of add_one: more than updates if writers collided */
    int rc;
    struct err e;
};

static void *write_many(void *arg)
{
    struct writer *w = arg;
    struct bus_opts bo = {.cluster = "test", .urls = site.urls, .n_urls = site.n};
    struct desired_store_opts so = {.retry_ms = 120000};
    struct desired_store *s = NULL;
    w->rc = bus_open(&so.bus, &bo, NULL, NULL, NULL, &w->e);
    if (w->rc == 0)
        w->rc = bus_wait(so.bus, 30000, &w->e);
    if (w->rc == 0)
        w->rc = desired_store_open(&s, &so, NULL, NULL, NULL, &w->e);
    for (int i = 0; w->rc == 0 && i < N_UPDATES; i++)
        w->rc = desired_store_update(s, 0, add_one, &w->calls, NULL, &w->e);
    desired_store_close(s);
    bus_close(so.bus);
    return NULL;
}

static void test_no_update_is_lost(void **state)
{
    (void)state;
    struct writer w[N_WRITERS] = {{0}};
    struct desired *d = NULL;
    struct err e = {0};
    struct bus *b;
    unsigned calls = 0;
    for (int i = 0; i < N_WRITERS; i++)
        assert_int_equal(pthread_create(&w[i].thread, NULL, write_many, &w[i]), 0);
    for (int i = 0; i < N_WRITERS; i++)
        pthread_join(w[i].thread, NULL);
    for (int i = 0; i < N_WRITERS; i++) {
        if (w[i].rc < 0)
            fail_msg("writer %d: %s", i, w[i].e.msg);
        calls += w[i].calls;
    }
    open_bus(&b, NULL, NULL, NULL);
    struct desired_store *s = open_store(b);
    if (desired_store_load(s, &d, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    printf("%d writers, %d updates each: version %llu, %u conflicts\n", N_WRITERS, N_UPDATES,
           (unsigned long long)d->version, calls - N_WRITERS * N_UPDATES);
    assert_int_equal(d->policy.placement.max_moves,
                     placement_policy_default().max_moves + N_WRITERS * N_UPDATES);
    assert_int_equal(d->version, N_WRITERS * N_UPDATES);
    desired_destroy(d);
    desired_store_close(s);
    bus_close(b);
}

/* ---- a large state -------------------------------------------------------------------------- */

enum { N_MODELS = 200, N_REPLICAS = 30000 };

static int fill_large(void *ctx, struct desired *d, struct err *e)
{
    static struct desired_assignment all[N_REPLICAS];
    static char nodes[N_REPLICAS][16], models[N_MODELS][16];
    (void)ctx;
    (void)e;
    for (int i = 0; i < N_MODELS; i++) {
        snprintf(models[i], sizeof(models[i]), "model-%d", i);
        struct desired_model m = {.name = models[i], .replicas_max = N_REPLICAS};
        int rc = desired_put_model(d, &m);
        if (rc < 0)
            return rc;
    }
    for (int i = 0; i < N_REPLICAS; i++) {
        snprintf(nodes[i], sizeof(nodes[i]), "node-%d", i / 3);
        all[i] = (struct desired_assignment){
            .node = nodes[i], .model = models[i % N_MODELS], .duty = DESIRED_SERVE, .epoch = 1};
    }
    return desired_set_assignments(d, all, N_REPLICAS);
}

static void test_a_large_state(void **state)
{
    (void)state;
    struct err e = {0};
    struct desired *d = NULL;
    struct buf b;
    struct bus_opts o = {.cluster = "large", .urls = site.urls, .n_urls = site.n};
    struct desired_store_opts so = {.retry_ms = 60000, .wait_ms = 20000};
    struct desired_store *s;
    assert_int_equal(bus_open(&so.bus, &o, NULL, NULL, NULL, &e), 0);
    assert_int_equal(bus_wait(so.bus, 30000, &e), 0);
    assert_int_equal(desired_store_open(&s, &so, NULL, NULL, NULL, &e), 0);
    double begin = nats_site_now();
    if (desired_store_update(s, 0, fill_large, NULL, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    double written = nats_site_now();
    if (desired_store_load(s, &d, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    double loaded = nats_site_now();
    assert_int_equal(d->n_assignments, N_REPLICAS);
    assert_string_equal(d->assignments[N_REPLICAS - 1].node, "node-9999");
    buf_init(&b, 8 << 20);
    assert_int_equal(desired_code_put(&b, d, &e), 0);
    printf("%d replicas of %d models: %zu bytes, written in %.0f ms, read in %.0f ms\n", N_REPLICAS,
           N_MODELS, b.len, (written - begin) * 1e3, (loaded - written) * 1e3);
    buf_fini(&b);
    desired_destroy(d);
    desired_store_close(s);
    bus_close(so.bus);
}

/* ---- a member that watches ------------------------------------------------------------------ */

struct member {
    struct executor_queue owner;
    struct bus *bus;
    struct desired_store *store;
    uint64_t version;
    uint64_t called; /* number of the last roll call */
    unsigned n_changes, n_beats, n_links;
    struct bus_status link;
};

static void on_change(void *ctx, const struct desired *d)
{
    struct member *m = ctx;
    m->version = d->version;
    m->n_changes++;
}

static void on_call(void *ctx, uint64_t number)
{
    ((struct member *)ctx)->called = number;
}

static void on_beat(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct member *m = ctx;
    assert_string_equal(subject, "shoal.test.hb.n1");
    assert_int_equal(n, 5);
    assert_memory_equal(bytes, "alive", 5);
    m->n_beats++;
}

static void on_link(void *ctx, const struct bus_status *s)
{
    struct member *m = ctx;
    m->link = *s;
    m->n_links++;
}

static void member_open(struct member *m, const char *file)
{
    struct err e = {0};
    *m = (struct member){0};
    assert_int_equal(executor_queue_init(&m->owner, &e), 0);
    open_bus(&m->bus, &m->owner.executor, on_link, m);
    struct desired_store_opts so = {.bus = m->bus,
                                    .name = "n1",
                                    .on_call = on_call,
                                    .file = file,
                                    .poll_ms = 500,
                                    .wait_ms = 1000};
    if (bus_subscribe(m->bus, "hb.*", on_beat, m, NULL, &e) < 0 ||
        desired_store_open(&m->store, &so, &m->owner.executor, on_change, m, &e) < 0)
        fail_msg("%s", e.msg);
}

static void member_close(struct member *m)
{
    desired_store_close(m->store);
    bus_close(m->bus);
    while (executor_queue_turn(&m->owner, 200)) /* tasks that were posted */
        ;
    executor_queue_fini(&m->owner);
}

/* Runs the member's thread until the condition holds. */
#define UNTIL(m, condition)                                                                        \
    do {                                                                                           \
        double end_ = nats_site_now() + 60;                                                        \
        while (!(condition) && nats_site_now() < end_)                                             \
            executor_queue_turn(&(m)->owner, 200);                                                 \
        if (!(condition))                                                                          \
            fail_msg("line %d: never came: %s", __LINE__, #condition);                             \
    } while (0)

static void beat(struct member *m)
{
    (void)!bus_publish(m->bus, "hb.n1", "alive", 5, NULL);
}

static void test_changes_reach_a_member(void **state)
{
    (void)state;
    struct member m;
    struct desired_store_status st;
    struct err e = {0};
    unsigned calls = 0;
    member_open(&m, NULL);
    UNTIL(&m, m.version > 0);
    uint64_t before = m.version;
    if (desired_store_update(m.store, 0, add_one, &calls, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    UNTIL(&m, m.version == before + 1);
    assert_int_equal(desired_store_current(m.store)->version, before + 1);
    UNTIL(&m, (desired_store_get_status(m.store, &st), st.fresh));
    assert_int_equal(st.origin, DESIRED_FROM_NATS);
    member_close(&m);
}

/* ---- reads that are known to be the newest -------------------------------------------------- */

static uint64_t read_state(struct bucket *k)
{
    struct buf b;
    struct err e = {0};
    uint64_t revision = 0;
    buf_init(&b, 1 << 20);
    if (bucket_get(k, "state", &b, &revision, &e) != 0)
        fail_msg("%s", e.msg);
    buf_fini(&b);
    return revision;
}

static void change_state(struct desired_store *s)
{
    struct err e = {0};
    unsigned calls = 0;
    if (desired_store_update(s, 0, add_one, &calls, NULL, &e) < 0)
        fail_msg("%s", e.msg);
}

/* What a server that woke up answers is an old revision: it is not confirmed, whoever has read or
 * written since. */
static void test_an_old_read_is_not_confirmed(void **state)
{
    struct desired *d = NULL;
    struct bucket *k;
    struct bus *b;
    struct err e = {0}, unsure = {.code = 1};
    (void)state;
    open_bus(&b, NULL, NULL, NULL);
    struct desired_store *s = open_store(b);
    assert_int_equal(bucket_open(&k, b, "desired", 60000, &e), 0);
    change_state(s);
    const uint64_t old = read_state(k);
    assert_int_equal(bucket_confirm(k, old, &e), 0);
    assert_int_equal(bucket_confirm(k, old, &e), 0); /* after the first one: it still is */
    change_state(s);
    assert_int_equal(bucket_confirm(k, old, &e), 1); /* the change came after the last read */
    const uint64_t now = read_state(k);
    assert_int_equal(bucket_confirm(k, now, &e), 0);
    assert_int_equal(bucket_confirm(k, old, &e), 1); /* a read came after the change */
    assert_int_equal(desired_store_load(s, &d, &unsure, &e), 0);
    assert_int_equal(unsure.code, 0);
    assert_int_equal(d->revision, now);
    desired_destroy(d);
    bucket_close(k);
    desired_store_close(s);
    bus_close(b);
}

static void hear_answer(struct desired_store *s, uint64_t version, uint64_t writer, uint64_t number)
{
    const struct desired_heard h = {
        .name = "other", .version = version, .writer = writer, .roll_call = number};
    desired_store_heard(s, &h);
}

static void hear(struct desired_store *s, uint64_t version, uint64_t writer)
{
    hear_answer(s, version, writer, 0);
}

/* A node that comes back is not told by an old answer that its version is the present one. */
static void test_members_know_better_than_an_old_answer(void **state)
{
    struct member m;
    struct desired_store_status st;
    (void)state;
    member_open(&m, NULL);
    UNTIL(&m, m.version > 0);
    UNTIL(&m, (desired_store_get_status(m.store, &st), st.fresh));
    assert_true(desired_store_confirmed(m.store, m.version, 1));
    hear(m.store, m.version + 1, 0);
    assert_false(desired_store_confirmed(m.store, m.version, 1));
    member_close(&m);
}

/* ---- invalid values ------------------------------------------------------------------------- */

static void test_garbage_is_refused(void **state)
{
    (void)state;
    struct member m;
    struct bucket *k;
    struct buf old;
    struct desired_store_status st;
    struct err e = {0};
    uint64_t revision, next;
    unsigned calls = 0;
    member_open(&m, NULL);
    UNTIL(&m, m.version > 0);
    uint64_t version = m.version;
    assert_int_equal(bucket_open(&k, m.bus, "desired", 60000, &e), 0);
    buf_init(&old, 1 << 20);
    assert_int_equal(bucket_get(k, "state", &old, &revision, &e), 0);
    if (bucket_put(k, "state", "garbage", 7, revision, NULL, &next, &e) != 0)
        fail_msg("%s", e.msg);
    UNTIL(&m, (desired_store_get_status(m.store, &st), st.n_refused >= 1));
    assert_non_null(strstr(st.error, "not a desired state"));
    assert_int_equal(m.version, version); /* the last valid state stays */
    assert_int_equal(desired_store_current(m.store)->version, version);
    /* Nobody overwrites it. */
    assert_int_equal(desired_store_update(m.store, 0, add_one, &calls, NULL, &e), SHOAL_EFORMAT);
    assert_int_equal(calls, 0);
    /* An old state is rejected too, but a valid newer one is accepted. */
    assert_int_equal(bucket_put(k, "state", old.data, old.len, next, NULL, &next, &e), 0);
    if (desired_store_update(m.store, 0, add_one, &calls, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    UNTIL(&m, m.version == version + 1);
    UNTIL(&m, (desired_store_get_status(m.store, &st), st.error[0] == '\0'));
    buf_fini(&old);
    bucket_close(k);
    member_close(&m);
}

static void test_fence(void **state)
{
    (void)state;
    struct err e = {0};
    struct bus *b;
    struct desired *d;
    unsigned calls = 0;
    open_bus(&b, NULL, NULL, NULL);
    struct desired_store *s = open_store(b);
    assert_int_equal(desired_store_claim(s, 1000, &e), 0);
    assert_int_equal(desired_store_update(s, 1000, add_one, &calls, NULL, &e), 0);
    assert_int_equal(desired_store_claim(s, 1001, &e), 0);
    calls = 0;
    assert_int_equal(desired_store_update(s, 1000, add_one, &calls, NULL, &e), SHOAL_ECHANGED);
    assert_non_null(strstr(e.msg, "newer controller"));
    assert_int_equal(calls, 0);
    assert_int_equal(desired_store_update(s, 0, add_one, &calls, &d, &e), 0); /* an administrator */
    assert_int_equal(d->fence, 1001);
    desired_destroy(d);
    desired_store_close(s);
    bus_close(b);
}

/* ---- the server is down for ten seconds ----------------------------------------------------- */

static void test_server_away(void **state)
{
    (void)state;
    struct member m, late;
    struct desired_store_status st;
    struct err e = {0};
    unsigned calls = 0;
    char file[100];
    snprintf(file, sizeof(file), "%s/snapshot", site.dir);
    member_open(&m, file);
    UNTIL(&m, m.version > 0 && m.link.link == BUS_UP);
    UNTIL(&m, (beat(&m), m.n_beats >= 3));
    uint64_t version = m.version;

    double gone = nats_site_now();
    nats_site_kill(&site, 0);
    UNTIL(&m, m.link.link == BUS_AWAY);
    unsigned beats = m.n_beats;
    assert_int_equal(bus_publish(m.bus, "hb.n1", "alive", 5, &e), SHOAL_EBUSY);
    assert_non_null(strstr(e.msg, "NATS is away"));

    /* A member that starts now serves from the snapshot, and reports that. */
    member_open(&late, file);
    UNTIL(&late, late.version == version);
    desired_store_get_status(late.store, &st);
    assert_int_equal(st.origin, DESIRED_FROM_FILE);
    assert_false(st.fresh);
    assert_int_equal(late.link.n_connects, 0);
    assert_int_equal(m.n_beats, beats);

    while (nats_site_now() < gone + 10) {
        beat(&m);
        executor_queue_turn(&m.owner, 200);
    }
    nats_site_restart(&site, 0);
    UNTIL(&m, m.link.link == BUS_UP);
    double back = nats_site_now();
    UNTIL(&m, (beat(&m), m.n_beats > beats));
    UNTIL(&late, (beat(&m), late.n_beats > 0));
    printf("away %.1f s, first heartbeat %.2f s after the reconnect, %llu refused meanwhile\n",
           (double)m.link.last_away_ns * 1e-9, nats_site_now() - back,
           (unsigned long long)m.link.n_refused);
    assert_int_equal(m.link.n_losses, 1);
    assert_true(m.link.last_away_ns > 5000000000u);
    UNTIL(&late, (desired_store_get_status(late.store, &st), st.origin == DESIRED_FROM_NATS));
    if (desired_store_update(m.store, 0, add_one, &calls, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    UNTIL(&late, late.version == version + 1);
    UNTIL(&m, m.version == version + 1);
    member_close(&late);
    member_close(&m);

    struct desired *d; /* the newest state is on disk; a damaged file is not used */
    assert_int_equal(desired_file_read(&d, file, &e), 0);
    assert_int_equal(d->version, version + 1);
    desired_destroy(d);
    FILE *f = fopen(file, "r+");
    fseek(f, 40, SEEK_SET);
    int was = fgetc(f);
    fseek(f, 40, SEEK_SET);
    fputc(was ^ 1, f);
    fclose(f);
    assert_int_equal(desired_file_read(&d, file, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "checksum"));
}

static void hear_of_one(void *ctx)
{
    hear(*(struct desired_store **)ctx, 7, 0);
}

/* Another member has a newer copy, with one more model, and sends it. */
static void send_copy(struct bus *b, const char *file, uint64_t version, uint64_t writer,
                      uint64_t number)
{
    struct desired *d;
    struct buf state, message;
    struct err e = {0};
    const struct desired_model m = {
        .name = "only-in-the-copy", .source = "", .apart = "", .replicas_max = 1};
    buf_init(&state, 1 << 20);
    buf_init(&message, 1 << 20);
    assert_int_equal(desired_file_read(&d, file, &e), 0);
    assert_int_equal(desired_put_model(d, &m), 0);
    d->version = version;
    d->fence = writer;
    assert_int_equal(desired_code_put(&state, d, &e), 0);
    assert_int_equal(roll_code_put_copy(&message, number, state.data, state.len), 0);
    assert_int_equal(bus_publish(b, "desired", message.data, message.len, &e), 0);
    desired_destroy(d);
    buf_fini(&state);
    buf_fini(&message);
}

/* ---- the server has lost its data ----------------------------------------------------------- */

static void test_lost_data(void **state)
{
    struct lease_known known = {.fence = 0};
    struct desired_store *admin, *newcomer;
    struct desired_store_opts so = {.retry_ms = 1, .wait_ms = 1000};
    struct member m;
    struct desired *d;
    struct err e = {0};
    unsigned calls = 0;
    char file[100];
    int rc;
    const double end = nats_site_now() + 60;
    (void)state;
    snprintf(file, sizeof(file), "%s/lost", site.dir);
    member_open(&m, file);
    UNTIL(&m, m.version > 0 && m.link.link == BUS_UP);
    const uint64_t version = m.version;
    nats_site_kill(&site, 0);
    UNTIL(&m, m.link.link == BUS_AWAY);
    nats_site_wipe(&site, 0);
    nats_site_restart(&site, 0);
    UNTIL(&m, m.link.link == BUS_UP);

    /* an administrator who heard of it, and one who did not hear, but is a member */
    open_bus(&so.bus, NULL, NULL, NULL);
    assert_int_equal(desired_store_open(&admin, &so, NULL, NULL, NULL, &e), 0);
    /* one who begins a state listens first, and learns that there is one */
    struct desired_store_opts lo = {.bus = so.bus, .retry_ms = 1, .listen = hear_of_one};
    lo.listen_ctx = &newcomer;
    assert_int_equal(desired_store_open(&newcomer, &lo, NULL, NULL, NULL, &e), 0);
    assert_int_equal(desired_store_update(newcomer, 0, add_one, &calls, NULL, &e), SHOAL_EBUSY);
    assert_non_null(strstr(e.msg, "NATS has lost the desired state"));
    desired_store_close(newcomer);
    hear(admin, 1, 0);
    assert_int_equal(desired_store_update(admin, 0, add_one, &calls, NULL, &e), SHOAL_EBUSY);
    assert_non_null(strstr(e.msg, "NATS has lost the desired state"));
    assert_int_equal(desired_store_update(m.store, 0, add_one, &calls, NULL, &e), SHOAL_EBUSY);
    /* a controller without a copy must not begin another one */
    assert_int_equal(desired_store_claim(admin, 1, &e), SHOAL_ENOTFOUND);
    assert_int_equal(calls, 0);
    assert_int_equal(desired_store_load(admin, &d, NULL, &e), SHOAL_ENOTFOUND);

    /* members know a newer copy, which is waited for; then it is written back above all of them */
    hear(m.store, version + 5, 5000);
    hear(m.store, UINT64_MAX, UINT64_MAX); /* nonsense */
    desired_store_known(m.store, &known);
    assert_int_equal(known.fence, 5000);
    assert_int_equal(desired_store_claim(m.store, 4000, &e), SHOAL_ECHANGED);
    assert_int_equal(desired_store_claim(m.store, 5001, &e), SHOAL_ENOTFOUND);
    assert_non_null(strstr(e.msg, "waiting for what members know"));
    UNTIL(&m, m.called != 0);                         /* it hears its own call */
    for (rc = -1; rc < 0 && nats_site_now() < end;) { /* a member answers every call */
        send_copy(so.bus, file, version + 5, 5000, m.called);
        hear_answer(m.store, version + 5, 5000, m.called);
        rc = desired_store_claim(m.store, 5001, &e);
        executor_queue_turn(&m.owner, 50);
    }
    assert_int_equal(rc, 0);
    UNTIL(&m, m.version == version + 6);
    assert_non_null(desired_find_model(desired_store_current(m.store), "only-in-the-copy"));
    desired_store_known(m.store, &known);
    assert_int_equal(known.fence, 5001);
    assert_int_equal(desired_store_update(admin, 0, add_one, &calls, &d, &e), 0);
    assert_int_equal(d->version, version + 7);
    assert_int_equal(d->fence, 5001);
    desired_destroy(d);
    UNTIL(&m, m.version == version + 7);
    desired_store_close(admin);
    bus_close(so.bus);
    member_close(&m);
}

static uint64_t status_revision(const struct member *m)
{
    struct desired_store_status s;
    desired_store_get_status(m->store, &s);
    return s.revision;
}

/* Two controllers have written one version, since NATS lost its data in between: every member
 * follows the later one. */
static void test_the_later_of_two_copies(void **state)
{
    struct member m = {0};
    struct desired *d = NULL;
    struct bucket *k;
    struct bus *b;
    struct buf bytes;
    struct err e = {0};
    uint64_t revision = 0;
    char file[100];
    (void)state;
    snprintf(file, sizeof(file), "%s/fork", site.dir);
    member_open(&m, file);
    UNTIL(&m, m.version > 0 && m.link.link == BUS_UP);
    open_bus(&b, NULL, NULL, NULL);
    assert_int_equal(bucket_open(&k, b, "desired", 5000, &e), 0);
    for (int i = 0; i < 2; i++) {
        const bool later = i == 1;
        buf_init(&bytes, 1 << 20);
        assert_int_equal(bucket_get(k, "state", &bytes, &revision, &e), 0);
        assert_int_equal(desired_code_get(&d, bytes.data, bytes.len, &e), 0);
        const unsigned changes = m.n_changes;
        const uint64_t version = d->version;
        d->fence = later ? d->fence + 10 : d->fence;
        d->policy.placement.max_moves += 1000;
        buf_clear(&bytes);
        assert_int_equal(desired_code_put(&bytes, d, &e), 0);
        assert_int_equal(
            bucket_put(k, "state", bytes.data, bytes.len, revision, NULL, &revision, &e), 0);
        if (later)
            UNTIL(&m, m.n_changes > changes);
        else
            UNTIL(&m, status_revision(&m) == revision); /* looked at, and not taken */
        assert_int_equal(m.n_changes, changes + later);
        assert_int_equal(m.version, version);
        desired_destroy(d);
        buf_fini(&bytes);
    }
    bucket_close(k);
    bus_close(b);
    member_close(&m);
}

/* A lease goes on above the fences that are known, also when NATS counts from 1 again. */
static void know_much(void *ctx, struct lease_known *out)
{
    (void)ctx;
    *out = (struct lease_known){.fence = 100000};
}

static void test_fences_go_on(void **state)
{
    struct executor_queue owner;
    struct err e = {0};
    uint64_t fence = 0, last = 100000;
    (void)state;
    assert_int_equal(executor_queue_init(&owner, &e), 0);
    for (int i = 0; i < 4; i++) {
        struct lease_opts lo = {.name = "n1", .ttl_ms = 500, .known = i == 0 ? know_much : NULL};
        struct lease *lease;
        open_bus(&lo.bus, NULL, NULL, NULL);
        assert_int_equal(lease_open(&lease, &lo, &owner.executor, NULL, NULL, &e), 0);
        for (double end = nats_site_now() + 60; !lease_held(lease, &fence);) {
            assert_true(nats_site_now() < end);
            executor_queue_turn(&owner, 20);
        }
        assert_true(fence > last); /* the base is in the lease: the others do not know the fence */
        last = fence;
        if (i == 2) { /* held while NATS loses it: taken again */
            nats_site_kill(&site, 0);
            nats_site_wipe(&site, 0);
            nats_site_restart(&site, 0);
            for (double end = nats_site_now() + 60; lease_held(lease, &fence);) {
                assert_true(nats_site_now() < end);
                executor_queue_turn(&owner, 20);
            }
            for (double end = nats_site_now() + 60; !lease_held(lease, &fence);) {
                assert_true(nats_site_now() < end);
                executor_queue_turn(&owner, 20);
            }
            assert_true(fence > last);
            last = fence;
        }
        lease_close(lease);
        while (executor_queue_turn(&owner, 200))
            ;
        bus_close(lo.bus);
    }
    executor_queue_fini(&owner);
}

/* ---- events --------------------------------------------------------------------------------- */

struct seen {
    unsigned n;
    char text[8][32];
    enum event_log_kind kind[8];
};

static bool on_event(void *ctx, const struct event_log_entry *entry)
{
    struct seen *s = ctx;
    assert_true(s->n < 8);
    snprintf(s->text[s->n], sizeof(s->text[0]), "%s", entry->text);
    s->kind[s->n++] = entry->kind;
    assert_string_equal(entry->sender, "n1");
    return true;
}

static void test_events(void **state)
{
    (void)state;
    struct event_log_status st;
    struct event_log *l;
    struct seen seen = {0};
    struct err e = {0};
    struct bus *b;
    uint64_t next = 0;
    uint32_t bad = 0;
    open_bus(&b, NULL, NULL, NULL);
    assert_int_equal(bus_wait(b, 30000, &e), 0);
    assert_int_equal(event_log_read(b, 0, 10, on_event, &seen, &next, &bad, &e), 0);
    assert_int_equal(seen.n, 0);
    struct event_log_opts o = {.bus = b, .name = "n1", .max_waiting = 3};
    assert_int_equal(event_log_open(&l, &o, &e), 0);
    event_log_add(l, &(struct event_log_entry){.kind = EVENT_LOG_NODE_JOINED, .text = "first"});
    for (double end = nats_site_now() + 60; nats_site_now() < end; nats_site_pause(20)) {
        event_log_get_status(l, &st);
        if (st.n_stored == 1)
            break;
    }
    assert_int_equal(st.n_stored, 1);
    /* While the server is down, three messages wait and the oldest are dropped. */
    nats_site_kill(&site, 0);
    for (int i = 0; i < 6; i++) {
        char text[24];
        snprintf(text, sizeof(text), "away %d", i);
        event_log_add(l, &(struct event_log_entry){.kind = EVENT_LOG_FAILOVER, .text = text});
    }
    nats_site_restart(&site, 0);
    for (double end = nats_site_now() + 60; nats_site_now() < end; nats_site_pause(20)) {
        event_log_get_status(l, &st);
        if (st.n_waiting == 0 && st.n_stored >= 4)
            break;
    }
    event_log_close(l);
    assert_int_equal(st.n_stored + st.n_dropped, 7);
    assert_true(st.n_stored >= 4); /* one may be in flight while three wait */
    assert_int_equal(event_log_read(b, 0, 100, on_event, &seen, &next, &bad, &e), 0);
    assert_int_equal(seen.n, st.n_stored);
    assert_int_equal(bad, 0);
    assert_string_equal(seen.text[0], "first");
    assert_int_equal(seen.kind[0], EVENT_LOG_NODE_JOINED);
    assert_string_equal(seen.text[seen.n - 1], "away 5");
    assert_string_equal(seen.text[seen.n - 2], "away 4");
    seen.n = 0;
    assert_int_equal(event_log_read(b, next, 100, on_event, &seen, &next, &bad, &e), 0);
    assert_int_equal(seen.n, 0);
    bus_close(b);
}

/* ---- all of a member's tasks ---------------------------------------------------------------- */

struct whole {
    struct executor_queue owner;
    struct control *control;
    unsigned n_beats, n_desired, n_done;
    bool held;
    uint64_t fence, version;
    int rc;
};

static void whole_beat(void *ctx, const void *bytes, size_t n)
{
    struct whole *w = ctx;
    assert_int_equal(n, 5);
    assert_memory_equal(bytes, "state", 5);
    w->n_beats++;
}

static void whole_desired(void *ctx, const struct desired *d)
{
    struct whole *w = ctx;
    w->n_desired++;
    w->version = d->version;
}

static void whole_controller(void *ctx, bool held, uint64_t fence)
{
    struct whole *w = ctx;
    w->held = held;
    w->fence = fence;
}

static void whole_open(struct whole *w, const char *name, bool may_control)
{
    struct control_watch watch = {.ctx = w,
                                  .on_heartbeat = whole_beat,
                                  .on_desired = whole_desired,
                                  .on_controller = whole_controller};
    struct control_opts o = {.bus = {.cluster = "whole",
                                     .name = name,
                                     .urls = site.urls,
                                     .n_urls = site.n,
                                     .reconnect_ms = 50},
                             .hears = !may_control,
                             .may_control = may_control,
                             .lease_ttl_ms =
                                 10000, /* long, so that nobody loses it on a busy machine */
                             .desired_poll_ms = 500};
    struct err e = {0};
    *w = (struct whole){0};
    assert_int_equal(executor_queue_init(&w->owner, &e), 0);
    if (control_open(&w->control, &o, &w->owner.executor, &watch, &e) < 0)
        fail_msg("%s", e.msg);
}

static void whole_close(struct whole *w)
{
    control_close(w->control);
    while (executor_queue_run(&w->owner))
        ;
    executor_queue_fini(&w->owner);
}

static int drain_n1(void *ctx, struct desired *d, struct err *e)
{
    (void)ctx;
    (void)e;
    return desired_set_drained(d, "n1", true);
}

static void on_done(struct control_change *change, int rc, const struct err *e)
{
    struct whole *w = change->ctx;
    (void)e;
    w->rc = rc;
    w->n_done++;
}

static void test_a_whole_member(void **state)
{
    (void)state;
    struct whole a, b, gateway;
    struct control_status st;
    uint64_t fence;
    whole_open(&a, "a", true);
    UNTIL(&a, a.held);
    whole_open(&b, "b", true);
    whole_open(&gateway, "g", false);
    UNTIL(&gateway, ((void)!control_beat(a.control, "state", 5, NULL), gateway.n_beats >= 3));
    struct control_change change = {.fn = drain_n1, .done = on_done, .ctx = &a, .controller = true};
    control_submit(a.control, &change);
    UNTIL(&a, a.n_done == 1);
    assert_int_equal(a.rc, 0);
    UNTIL(&gateway,
          gateway.version >= 2 && desired_is_drained(control_desired(gateway.control), "n1"));
    /* b is not the controller: it must not write. */
    assert_false(control_held(b.control, &fence));
    struct control_change other = {.fn = drain_n1, .done = on_done, .ctx = &b, .controller = true};
    control_submit(b.control, &other);
    UNTIL(&b, b.n_done == 1);
    assert_int_equal(b.rc, SHOAL_ECHANGED);
    /* a leaves and releases the lease: b takes over, with a higher fence. */
    uint64_t was = a.fence;
    struct control_change last = {.fn = drain_n1, .done = on_done, .ctx = &a, .controller = true};
    control_submit(a.control, &last);
    whole_close(&a);
    assert_int_equal(a.n_done, 2); /* written or cancelled, but reported either way */
    UNTIL(&b, b.held);
    assert_true(b.fence > was);
    control_get_status(b.control, &st);
    assert_int_equal(st.bus.link, BUS_UP);
    assert_true(st.lease.held);
    assert_string_equal(st.lease.holder, "b");
    printf("controller a had fence %llu, b has %llu\n", (unsigned long long)was,
           (unsigned long long)b.fence);
    whole_close(&gateway);
    whole_close(&b);
}

/* A holder's messages while the server is stopped. */
struct silence {
    unsigned n_lost, n_held, n_late; /* late: it still counts itself holder after 9/10 of the ttl */
};

static struct silence stop_server(struct lease *l, uint32_t ttl_ms, double end)
{
    struct silence s = {0};
    struct lease_status st;
    uint64_t fence;
    lease_get_status(l, &st);
    uint64_t lost = st.n_lost, renewed = st.n_renewed;
    double last = nats_site_now();
    kill(site.pid[0], SIGSTOP);
    while (st.n_lost == lost && nats_site_now() < end) {
        double before = nats_site_now();
        bool held = lease_held(l, &fence);
        lease_get_status(l, &st);
        if (st.n_renewed != renewed) { /* an earlier reply, sent before now */
            renewed = st.n_renewed;
            last = nats_site_now();
        } else {
            s.n_held += held;
            s.n_late += held && before > last + ttl_ms * 0.9e-3;
        }
        nats_site_pause(2);
    }
    kill(site.pid[0], SIGCONT);
    s.n_lost = (unsigned)(st.n_lost - lost);
    return s;
}

/* A holder that gets no reply loses the lease after 9/10 of the ttl, whatever its thread waits
 * for. On a busy machine the lease may be lost before the server stops: then the test tries
 * again. */
static void test_a_lease_ends_by_the_clock(void **state)
{
    (void)state;
    enum { TTL_MS = 2000 };
    struct lease_opts o = {.name = "clock", .ttl_ms = TTL_MS};
    struct executor_queue owner;
    struct silence s = {0};
    struct lease *l;
    struct err e = {0};
    uint64_t fence;
    assert_int_equal(executor_queue_init(&owner, &e), 0);
    open_bus(&o.bus, NULL, NULL, NULL);
    assert_int_equal(lease_open(&l, &o, &owner.executor, NULL, NULL, &e), 0);
    double end = nats_site_now() + 120;
    while (s.n_held == 0 && nats_site_now() < end) {
        while (!lease_held(l, &fence) && nats_site_now() < end)
            nats_site_pause(2);
        s = stop_server(l, TTL_MS, end);
        assert_int_equal(s.n_late, 0);
    }
    assert_int_equal(s.n_lost, 1);
    assert_true(s.n_held > 0);
    while (!lease_held(l, &fence) && nats_site_now() < end) /* nobody else asked for it */
        nats_site_pause(10);
    assert_true(lease_held(l, &fence));
    lease_close(l);
    while (executor_queue_run(&owner))
        ;
    executor_queue_fini(&owner);
    bus_close(o.bus);
}

/* A server that accepts the first connection and then says nothing for longer than the connect
 * timeout: the member connects once it speaks. */
static void test_a_silent_server_is_waited_for(void **state)
{
    (void)state;
    const char *none = "nats://127.0.0.1:1", *urls[] = {none, site.urls[0], none};
    for (size_t n = 1; n <= 3; n += 2) { /* alone, and among others in any order */
        struct bus_opts o = {
            .cluster = "test", .urls = n == 1 ? site.urls : urls, .n_urls = n, .reconnect_ms = 50};
        struct err e = {0};
        struct bus *b;
        kill(site.pid[0], SIGSTOP);
        pid_t waker = fork();
        if (waker == 0) {
            nats_site_pause(3000);
            kill(site.pid[0], SIGCONT);
            _exit(0);
        }
        int rc = bus_open(&b, &o, NULL, NULL, NULL, &e);
        assert_int_equal(waitpid(waker, NULL, 0), waker);
        assert_int_equal(rc, 0);
        if (bus_wait(b, 60000, &e) < 0)
            fail_msg("%s", e.msg);
        bus_close(b);
    }
}

static void test_no_server(void **state)
{
    (void)state;
    const char *url = "nats://127.0.0.1:1";
    struct bus_opts o = {.cluster = "test", .urls = &url, .n_urls = 1};
    struct err e = {0};
    struct bus *b;
    assert_int_equal(bus_open(&b, &o, NULL, NULL, NULL, &e), 0); /* arrives once the server does */
    assert_int_equal(bus_wait(b, 100, &e), SHOAL_EIO);
    assert_int_equal(bus_publish(b, "hb.n1", "x", 1, &e), SHOAL_EBUSY);
    bus_close(b);
    o.cluster = "Not a name";
    assert_int_equal(bus_open(&b, &o, NULL, NULL, NULL, &e), SHOAL_EINVAL);
    o.cluster = "test";
    url = "http://127.0.0.1:1";
    assert_int_equal(bus_open(&b, &o, NULL, NULL, NULL, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "nats://HOST:PORT"));
    url = "nats://127.0.0.1:1";
    o.ca_file = "/nowhere/ca.pem";
    assert_int_equal(bus_open(&b, &o, NULL, NULL, NULL, &e), SHOAL_EINVAL);
    o.cert_file = o.key_file = "/nowhere/cert.pem";
    assert_int_equal(bus_open(&b, &o, NULL, NULL, NULL, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "/nowhere/ca.pem"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_update_is_lost),
        cmocka_unit_test(test_a_large_state),
        cmocka_unit_test(test_changes_reach_a_member),
        cmocka_unit_test(test_an_old_read_is_not_confirmed),
        cmocka_unit_test(test_members_know_better_than_an_old_answer),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_server_away),
        cmocka_unit_test(test_lost_data),
        cmocka_unit_test(test_the_later_of_two_copies),
        cmocka_unit_test(test_fences_go_on),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_a_whole_member),
        cmocka_unit_test(test_a_lease_ends_by_the_clock),
        cmocka_unit_test(test_a_silent_server_is_waited_for),
        cmocka_unit_test(test_no_server),
    };
    nats_site_begin(&site, 1);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    nats_site_end(&site);
    return rc;
}
