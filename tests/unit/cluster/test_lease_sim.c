/* test_lease_sim.c - the election of the controller, with simulated time and a simulated network.
 *
 * The code is that of lease.c, thread function and all.  What it calls is not: its clock, its sleep
 * and the bucket in NATS.  Members are coroutines; a call of the bucket is a message that takes
 * time to arrive and to be answered, or is lost on either way, and one that the caller has given up
 * may still arrive.  A seed decides everything: members pause, crash, leave and come back, clocks
 * run at different rates, the server is away, and it loses its data.
 *
 * Checked after every event: at most one member holds the lease, and a fence that comes into force
 * is higher than all before it.  In the end, when the faults are over, somebody holds it.
 *
 * SEED=N runs that schedule; SCHEDULES=N as many as that, from the first or SEED on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>
#include <ucontext.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/thread/thread.h"
#include "cluster/control/bucket.h"

static int sim_clock(clockid_t id, struct timespec *out);
static ssize_t sim_random(void *out, size_t n, unsigned flags);
static int sim_thread(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                      struct err *e);
static int sim_wait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at);
#define clock_gettime sim_clock
#define getrandom sim_random
#define thread_create sim_thread
#define pthread_cond_timedwait sim_wait
#include "cluster/control/lease.c" /* NOLINT: the code under test, with the names above */

#define MAX_MEMBERS 5u
#define MAX_MESSAGES 64u
#define STACK_BYTES (64u << 10)
#define TTL_MS 3000u
#define MS_NS UINT64_C(1000000)
#define S_NS (1000 * MS_NS)
#define FAULTS_NS (60 * S_NS)
#define CALM_NS (30 * S_NS) /* at most, until somebody holds it again */
#define N_SCHEDULES 2000u

enum what { GET, PUT, LAST, CREATE, CLAIM };

struct message {    /* on its way to the server, or back */
    bool used;      /* until the caller has its result, or has given up and it has arrived */
    bool over;      /* it has arrived, or never will */
    bool applied;   /* it has arrived */
    bool abandoned; /* the caller does not wait any more */
    enum what what;
    uint64_t at_ns; /* when it arrives */
    char bytes[256];
    size_t n;
    uint64_t expected, revision;
    int rc;
};

struct member {
    struct lease *lease; /* NULL: it is not there */
    ucontext_t context;
    char *stack;
    uint64_t wake_ns, paused_ns; /* runs again at the later one */
    uint64_t back_ns;            /* without a lease: when it starts again */
    bool dead;                   /* crashed: nothing it does has an effect */
    bool ended;                  /* the thread function has returned */
    double rate;                 /* of its clock */
    uint64_t heard_fence;        /* in heartbeats; kept on disk */
    uint64_t heard_ns;           /* when a controller was last heard; 0: never */
};

static struct {
    uint64_t now_ns, seed, state;
    ucontext_t main;
    struct member members[MAX_MEMBERS];
    uint32_t n, current;
    struct message messages[MAX_MESSAGES];
    /* the server */
    bool bucket, value;
    uint64_t away_ns; /* until then */
    uint64_t revision, state_fence;
    char bytes[256];
    size_t bytes_n;
    uint64_t slow_ns; /* delays of messages, at most */
    /* what was seen */
    uint64_t fence;
    uint32_t holder, n_terms, n_wiped;
    uint64_t held_ns; /* of all time that somebody held it */
} w;

static uint32_t pick(uint32_t n)
{
    w.state += 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash_mix(w.state) % n);
}

static uint64_t between(uint64_t low, uint64_t high)
{
    return low + pick((uint32_t)((high - low) / MS_NS + 1)) * MS_NS;
}

/* ---- what the code calls ---- */

static struct member *me(void)
{
    return &w.members[w.current];
}

static uint64_t local_ns(void)
{
    return S_NS + (uint64_t)((double)w.now_ns * me()->rate);
}

static int sim_clock(clockid_t id, struct timespec *out)
{
    const uint64_t ns = local_ns();
    (void)id;
    *out = (struct timespec){(time_t)(ns / S_NS), (long)(ns % S_NS)};
    return 0;
}

static ssize_t sim_random(void *out, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)out)[i] = (uint8_t)pick(256);
    return (ssize_t)n;
}

static int sim_thread(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                      struct err *e)
{
    (void)out, (void)name, (void)fn, (void)arg, (void)e;
    return 0; /* it is a coroutine */
}

static void sleep_until(uint64_t ns)
{
    struct member *m = me();
    m->wake_ns = ns;
    swapcontext(&m->context, &w.main);
}

static int sim_wait(pthread_cond_t *c, pthread_mutex_t *lock, const struct timespec *at)
{
    const uint64_t until = (uint64_t)at->tv_sec * S_NS + (uint64_t)at->tv_nsec, now = local_ns();
    (void)c;
    pthread_mutex_unlock(lock);
    if (!me()->dead)
        sleep_until(w.now_ns + (uint64_t)((double)(until > now ? until - now : 0) / me()->rate));
    pthread_mutex_lock(lock);
    return ETIMEDOUT;
}

/* One call of the server. */
static int ask(struct message *out, enum what what, const void *bytes, size_t n, uint64_t expected,
               struct err *e)
{
    const uint64_t late = w.now_ns + (uint64_t)TTL_MS * MS_NS / 4;
    struct message *g = w.messages;
    while (g->used)
        assert_true(++g < w.messages + MAX_MESSAGES);
    *g = (struct message){.used = true,
                          .what = what,
                          .at_ns = w.now_ns + between(0, w.slow_ns),
                          .n = n,
                          .expected = expected};
    assert_true(n <= sizeof(g->bytes));
    if (n > 0)
        memcpy(g->bytes, bytes, n);
    uint64_t back = g->at_ns + between(0, w.slow_ns);
    g->over = me()->dead || pick(40) == 0; /* it does not arrive */
    if (g->over || pick(40) == 0)          /* or its answer does not */
        back = UINT64_MAX;
    if (!me()->dead)
        sleep_until(back < late ? back : late);
    const bool answered = back < late && g->applied && !me()->dead;
    if (answered)
        *out = *g;
    g->abandoned = true;
    g->used = !g->over;
    if (!answered)
        return err_set(e, SHOAL_EBUSY, "no answer");
    return out->rc < 0 ? err_set(e, out->rc, "refused") : out->rc;
}

int bucket_open(struct bucket **out, struct bus *b, const char *name, uint32_t wait_ms,
                struct err *e)
{
    (void)b, (void)name, (void)wait_ms, (void)e;
    *out = NULL;
    return 0;
}

void bucket_close(struct bucket *k)
{
    (void)k;
}

void bucket_limit(struct bucket *k, uint32_t ttl_ms, int64_t max_bytes)
{
    (void)k, (void)ttl_ms, (void)max_bytes;
}

int bucket_create(struct bucket *k, unsigned replicas, unsigned history, struct err *e)
{
    struct message g;
    (void)k, (void)replicas, (void)history;
    return ask(&g, CREATE, NULL, 0, 0, e);
}

int bucket_get(struct bucket *k, const char *key, struct buf *out, uint64_t *revision,
               struct err *e)
{
    struct message g = {.revision = 0};
    int rc = ask(&g, GET, NULL, 0, 0, e);
    (void)k, (void)key;
    *revision = g.revision;
    if (rc == 0)
        buf_put(out, g.bytes, g.n);
    return rc;
}

int bucket_put(struct bucket *k, const char *key, const void *bytes, size_t n, uint64_t expected,
               const char *id, uint64_t *revision, struct err *e)
{
    struct message g;
    int rc = ask(&g, PUT, bytes, n, expected, e);
    (void)k, (void)key, (void)id;
    if (rc == 0)
        *revision = g.revision;
    return rc;
}

int bucket_last(struct bucket *k, uint64_t *revision, struct err *e)
{
    struct message g;
    int rc = ask(&g, LAST, NULL, 0, 0, e);
    (void)k;
    if (rc == 0)
        *revision = g.revision;
    return rc;
}

/* As the controller's claim: the desired state takes no writes with an older fence from now on. */
static int claim_state(void *ctx, uint64_t fence, struct err *e)
{
    struct message g = {.revision = 0};
    int rc = ask(&g, CLAIM, NULL, 0, fence, e);
    (void)ctx;
    if (g.revision > me()->heard_fence) /* it has read the state */
        me()->heard_fence = g.revision;
    return rc;
}

static void tell_known(void *ctx, struct lease_known *out)
{
    (void)ctx;
    out->fence = me()->heard_fence;
    out->heard_ago_ns = me()->heard_ns ? local_ns() - me()->heard_ns + 1 : 0;
}

/* ---- the server ---- */

static void apply_put(struct message *g)
{
    if (g->expected != (w.value ? w.revision : 0)) {
        g->rc = 1;
        return;
    }
    g->revision = ++w.revision;
    w.value = true;
    memcpy(w.bytes, g->bytes, g->n);
    w.bytes_n = g->n;
}

static void apply(struct message *g)
{
    g->over = true;
    g->used = !g->abandoned;
    if (w.now_ns < w.away_ns)
        return; /* nobody is there */
    g->applied = true;
    if (g->what == CLAIM)
        g->revision = w.state_fence;
    if (g->what == CREATE)
        w.bucket = true;
    else if (g->what == CLAIM && w.state_fence > g->expected)
        g->rc = SHOAL_ECHANGED;
    else if (g->what == CLAIM)
        w.state_fence = g->expected;
    else if (!w.bucket)
        g->rc = g->what == PUT ? SHOAL_EIO : SHOAL_ENOTFOUND;
    else if (g->what == GET && !w.value)
        g->rc = SHOAL_ENOTFOUND;
    else if (g->what == PUT)
        apply_put(g);
    else
        g->revision = w.revision;
    if (g->what == GET && g->rc == 0) {
        memcpy(g->bytes, w.bytes, w.bytes_n);
        g->n = w.bytes_n;
    }
}

/* ---- members ---- */

static void post(struct executor *x, struct executor_task *t)
{
    (void)x, (void)t; /* nobody waits for news here */
}

static void life(void)
{
    struct member *m = me();
    run(m->lease);
    m->ended = true;
    swapcontext(&m->context, &w.main);
}

static void start(uint32_t i)
{
    static const struct executor_ops ops = {.post = post};
    static struct executor x = {.ops = &ops};
    struct member *m = &w.members[i];
    char name[16];
    snprintf(name, sizeof(name), "m%u", i);
    const struct lease_opts o = {
        .name = name, .ttl_ms = TTL_MS, .claim = claim_state, .known = tell_known};
    w.current = i;
    assert_int_equal(lease_open(&m->lease, &o, &x, NULL, NULL, NULL), 0);
    m->lease->threaded = false;
    m->dead = m->ended = false;
    getcontext(&m->context);
    m->context.uc_stack = (stack_t){.ss_sp = m->stack, .ss_size = STACK_BYTES};
    m->context.uc_link = NULL;
    makecontext(&m->context, life, 0);
    m->wake_ns = w.now_ns;
}

static void resume(uint32_t i)
{
    struct member *m = &w.members[i];
    w.current = i;
    if (!m->lease) {
        start(i);
        return;
    }
    swapcontext(&w.main, &m->context);
    if (m->ended) {
        free_lease(m->lease);
        m->lease = NULL;
        m->wake_ns = m->back_ns;
    }
}

/* Ends at once: whatever it still waits for has no effect. */
static void crash(uint32_t i, uint64_t back_ns)
{
    struct member *m = &w.members[i];
    m->dead = true;
    m->lease->stop = true;
    m->back_ns = back_ns;
    m->paused_ns = 0;
    m->wake_ns = w.now_ns;
}

static bool holds(uint32_t i, uint64_t *fence)
{
    struct member *m = &w.members[i];
    w.current = i;
    return m->lease && !m->dead && w.now_ns >= m->paused_ns && lease_held(m->lease, fence);
}

static void check(void)
{
    uint32_t n = 0;
    uint64_t fence = 0, one;
    for (uint32_t i = 0; i < w.n; i++) {
        if (!holds(i, &one))
            continue;
        n++;
        fence = one;
        w.holder = i;
    }
    if (n > 1)
        fail_msg("seed %llu: %u members hold the lease at %.3f s", (unsigned long long)w.seed, n,
                 (double)w.now_ns / 1e9);
    for (uint32_t i = 0; n > 0 && i < w.n;
         i++) { /* heartbeats, and the state that it has claimed */
        struct member *m = &w.members[w.current = i];
        m->heard_ns = local_ns();
        m->heard_fence = fence > m->heard_fence ? fence : m->heard_fence;
    }
    if (n == 0 || fence == w.fence)
        return;
    if (fence < w.fence)
        fail_msg("seed %llu: fence %llu after %llu at %.3f s", (unsigned long long)w.seed,
                 (unsigned long long)fence, (unsigned long long)w.fence, (double)w.now_ns / 1e9);
    w.fence = fence;
    w.n_terms++;
}

/* ---- a schedule ---- */

static void fault(void)
{
    const uint32_t i = pick(w.n);
    struct member *m = &w.members[i];
    switch (pick(7)) {
    case 0:
    case 1:
        m->paused_ns = w.now_ns + between(100 * MS_NS, 12 * S_NS);
        break;
    case 2:
        if (m->lease && !m->dead)
            crash(i, w.now_ns + between(100 * MS_NS, 5 * S_NS));
        break;
    case 3:
        w.away_ns = w.now_ns + between(100 * MS_NS, 8 * S_NS);
        break;
    case 4: /* it loses its data */
        for (struct message *g = w.messages; g < w.messages + MAX_MESSAGES; g++) {
            g->over = true; /* its connections end with it */
            g->used &= !g->abandoned;
        }
        w.bucket = w.value = false;
        w.revision = w.state_fence = 0;
        w.n_wiped++;
        break;
    case 5:
        w.slow_ns = between(1 * MS_NS, pick(4) == 0 ? 1500 * MS_NS : 80 * MS_NS);
        break;
    default: /* the one that matters most */
        w.members[w.holder].paused_ns = w.now_ns + between(100 * MS_NS, 6 * S_NS);
        break;
    }
}

static uint64_t ready_ns(const struct member *m)
{
    return m->wake_ns > m->paused_ns ? m->wake_ns : m->paused_ns;
}

/* The next thing that happens, before `until`; false: nothing. */
static bool step(uint64_t until)
{
    uint64_t at = until;
    struct message *arrives = NULL;
    uint32_t runs = w.n;
    for (struct message *g = w.messages; g < w.messages + MAX_MESSAGES; g++)
        if (g->used && !g->over && g->at_ns < at)
            arrives = g, at = g->at_ns;
    for (uint32_t i = 0; i < w.n; i++)
        if (ready_ns(&w.members[i]) < at)
            runs = i, at = ready_ns(&w.members[i]);
    if (at >= until)
        return false;
    if (at > w.now_ns)
        w.now_ns = at;
    if (runs < w.n)
        resume(runs);
    else
        apply(arrives);
    check();
    return true;
}

static void close_world(void)
{
    for (uint32_t i = 0; i < w.n; i++) {
        if (w.members[i].lease) {
            crash(i, UINT64_MAX);
            resume(i);
        }
        free(w.members[i].stack);
    }
}

static void run_schedule(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    w.seed = w.state = seed;
    w.n = 2 + pick(MAX_MEMBERS - 1);
    w.slow_ns = 20 * MS_NS;
    for (uint32_t i = 0; i < w.n; i++) {
        w.members[i].stack = malloc(STACK_BYTES);
        w.members[i].rate = 0.96 + 0.01 * pick(9); /* 10 % between two of them are allowed */
        w.members[i].wake_ns = between(0, 2 * S_NS);
    }
    for (uint64_t next = between(0, 15 * S_NS); next < FAULTS_NS;
         next += between(50 * MS_NS, 6 * S_NS)) {
        while (step(next))
            ;
        w.now_ns = next;
        fault();
        check();
    }
    w.slow_ns = 20 * MS_NS;
    const uint64_t calm = w.now_ns;
    uint64_t fence;
    bool held = false;
    while (!held && step(calm + CALM_NS))
        for (uint32_t i = 0; i < w.n && !held; i++)
            held = holds(i, &fence);
    if (!held)
        fail_msg("seed %llu: nobody holds the lease %.0f s after the last fault",
                 (unsigned long long)seed, (double)CALM_NS / 1e9);
}

static void test_schedules(void **state)
{
    const char *seed = getenv("SEED"), *many = getenv("SCHEDULES");
    const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    const uint64_t n = many ? strtoull(many, NULL, 10) : seed ? 1 : N_SCHEDULES;
    uint64_t terms = 0, wiped = 0;
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    for (uint64_t i = 0; i < n; i++) {
        run_schedule(first + i);
        terms += w.n_terms;
        wiped += w.n_wiped;
        close_world();
    }
    printf("%llu schedules, %llu terms of a controller, NATS lost its data %llu times\n",
           (unsigned long long)n, (unsigned long long)terms, (unsigned long long)wiped);
    assert_true(terms > n); /* it is taken over again and again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
