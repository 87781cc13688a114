/* sim_time.c - see sim_inside.h: simulated time, and threads as coroutines in it. */
#include "cluster/sim/shoal/sim_inside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread/thread.h"

struct sim_site sim;

uint32_t sim_pick(uint32_t n)
{
    return sim_rand_below(&sim.rand, n);
}

uint64_t sim_between(uint64_t low_ns, uint64_t high_ns)
{
    const uint64_t steps = (high_ns - low_ns) / (SIM_MS / 8);
    return low_ns + sim_pick((uint32_t)steps + 1) * (SIM_MS / 8);
}

void sim_broken(const char *format, ...)
{
    char text[256];
    va_list ap;
    if (sim.failed)
        return;
    sim.failed = true;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    err_set(sim.error, SHOAL_EINTERNAL, "seed %llu, at %.3f s: %s", (unsigned long long)sim.seed,
            (double)sim.now_ns / 1e9, text);
}

/* What is given out when memory has run out: the schedule ends soon, and what it does until then
 * does not matter. */
static char spare[2 * SIM_STACK_BYTES];

void *sim_zalloc(size_t n)
{
    void *p = mem_zalloc(n);
    if (p)
        return p;
    sim_broken("out of memory");
    memset(spare, 0, sizeof(spare));
    return spare;
}

void sim_free(void *p)
{
    if (p != spare)
        mem_free(p);
}

/* ---- what happens when ---- */

static bool before(const struct sim_due *a, const struct sim_due *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->number < b->number);
}

static void add_event(struct sim_due e)
{
    if (sim.n_events == sim.cap_events) {
        const size_t cap = sim.cap_events ? 2 * sim.cap_events : 256;
        struct sim_due *more = mem_realloc(sim.events, cap * sizeof(*more));
        if (!more) {
            sim_broken("out of memory");
            return;
        }
        sim.events = more;
        sim.cap_events = cap;
    }
    size_t i = sim.n_events++;
    for (; i > 0 && before(&e, &sim.events[(i - 1) / 2]); i = (i - 1) / 2)
        sim.events[i] = sim.events[(i - 1) / 2];
    sim.events[i] = e;
}

void sim_at(uint64_t at_ns, uint32_t member, void (*fn)(void *ctx), void *ctx)
{
    add_event((struct sim_due){at_ns > sim.now_ns ? at_ns : sim.now_ns, sim.next_number++, fn, ctx,
                               member});
}

void sim_again(uint64_t at_ns)
{
    struct sim_due e = sim.event;
    e.at_ns = at_ns;
    add_event(e);
}

static struct sim_due take_event(void)
{
    struct sim_due top = sim.events[0], last = sim.events[--sim.n_events];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < sim.n_events; i = k) {
        k += k + 1 < sim.n_events && before(&sim.events[k + 1], &sim.events[k]);
        if (!before(&sim.events[k], &last))
            break;
        sim.events[i] = sim.events[k];
    }
    sim.events[i] = last;
    return top;
}

/* ---- clocks ---- */

uint64_t sim_local_ns(const struct sim_member *m, uint64_t at_ns)
{
    return SIM_S + (uint64_t)((double)at_ns * m->rate) + m->jump_ns;
}

static uint64_t global_ns(const struct sim_member *m, uint64_t local_ns)
{
    const uint64_t base = SIM_S + m->jump_ns;
    return local_ns <= base ? 0 : (uint64_t)((double)(local_ns - base) / m->rate) + 1;
}

int sim_clock_gettime(clockid_t id, struct timespec *out)
{
    struct sim_member *m = &sim.members[sim.current];
    if (m->dead)
        m->jump_ns += SIM_S;
    uint64_t ns = sim_local_ns(m, sim.now_ns);
    if (id == CLOCK_REALTIME)
        ns += UINT64_C(1700000000) * SIM_S + (uint64_t)(m->wall_ms * (int64_t)SIM_MS);
    *out = (struct timespec){(time_t)(ns / SIM_S), (long)(ns % SIM_S)};
    return 0;
}

ssize_t sim_getrandom(void *out, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)out)[i] = (uint8_t)sim_pick(256);
    return (ssize_t)n;
}

/* ---- threads ---- */

static void life(void)
{
    struct sim_thread *t = sim.running;
    t->fn(t->arg);
    t->ended = true;
    swapcontext(&t->context, &sim.scheduler);
}

int sim_thread_create(pthread_t *out, const char *name, thread_fn fn, void *arg, struct err *e)
{
    uint32_t i = 0;
    (void)name;
    while (i < SIM_THREADS && sim.threads[i].used)
        i++;
    if (i == SIM_THREADS)
        return err_set(e, SHOAL_ELIMIT, "too many simulated threads");
    struct sim_thread *t = &sim.threads[i];
    char *stack = t->stack ? t->stack : sim_zalloc(SIM_STACK_BYTES);
    *t = (struct sim_thread){.stack = stack,
                             .fn = fn,
                             .arg = arg,
                             .member = sim.current,
                             .wake_ns = sim.now_ns,
                             .used = true};
    getcontext(&t->context);
    t->context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = SIM_STACK_BYTES};
    makecontext(&t->context, life, 0);
    *out = (pthread_t)i;
    return 0;
}

static void resume(struct sim_thread *t)
{
    const uint32_t was = sim.current;
    sim.current = t->member;
    sim.running = t;
    swapcontext(&sim.scheduler, &t->context);
    sim.running = NULL;
    sim.current = was;
}

/* Only while its member ends: then nothing waits. */
int sim_thread_join(pthread_t t, void **out)
{
    struct sim_thread *k = &sim.threads[(uint32_t)t];
    if (out)
        *out = NULL;
    while (!k->ended)
        resume(k);
    k->used = false;
    return 0;
}

bool sim_sleep_until(uint64_t at_ns)
{
    struct sim_thread *t = sim.running;
    if (sim.members[sim.current].dead)
        return false;
    t->wake_ns = at_ns;
    swapcontext(&t->context, &sim.scheduler);
    t->waits = NULL;
    return !sim.members[sim.current].dead;
}

int sim_nanosleep(const struct timespec *t, struct timespec *left)
{
    const uint64_t ns = (uint64_t)t->tv_sec * SIM_S + (uint64_t)t->tv_nsec;
    (void)left;
    (void)!sim_sleep_until(sim.now_ns + (uint64_t)((double)ns / sim.members[sim.current].rate));
    return 0;
}

int sim_mutex_lock(pthread_mutex_t *m)
{
    while (pthread_mutex_trylock(m) != 0) /* held by a thread that waits for NATS */
        if (!sim.running || !sim_sleep_until(sim.now_ns + SIM_MS)) {
            sim_broken("a lock is held for ever");
            break;
        }
    return 0;
}

static void wait_for(const pthread_cond_t *c, pthread_mutex_t *m, uint64_t until_ns)
{
    pthread_mutex_unlock(m);
    if (!sim.members[sim.current].dead) {
        sim.running->waits = c;
        (void)!sim_sleep_until(until_ns);
    }
    sim_mutex_lock(m);
}

int sim_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at)
{
    const uint64_t until =
        global_ns(&sim.members[sim.current], (uint64_t)at->tv_sec * SIM_S + (uint64_t)at->tv_nsec);
    wait_for(c, m, until);
    return sim.now_ns >= until || sim.members[sim.current].dead ? ETIMEDOUT : 0;
}

int sim_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    wait_for(c, m, UINT64_MAX);
    return 0;
}

int sim_cond_signal(pthread_cond_t *c)
{
    for (struct sim_thread *t = sim.threads; t < sim.threads + SIM_THREADS; t++)
        if (t->used && t->waits == c)
            t->wake_ns = sim.now_ns;
    return 0;
}

/* ---- executors ---- */

static struct sim_member *of_executor(struct executor *x)
{
    return EXECUTOR_OF(x, struct sim_member, executor);
}

static void post(struct executor *x, struct executor_task *t)
{
    struct sim_member *m = of_executor(x);
    t->next = NULL;
    *m->end = t;
    m->end = &t->next;
}

static void later(struct executor *x, struct executor_task *t)
{
    if (!t->queued)
        post(x, t);
    t->queued = true;
}

static void timer_clear(struct executor *x, struct executor_timer *t)
{
    (void)x;
    if (!t->prev)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

static void timer_set(struct executor *x, struct executor_timer *t, uint64_t at_ns)
{
    struct executor_timer *ring = &of_executor(x)->timers;
    timer_clear(x, t);
    t->at_ns = at_ns;
    t->prev = ring;
    t->next = ring->next;
    ring->next->prev = t;
    ring->next = t;
}

static void init_executor(struct sim_member *m)
{
    static const struct executor_ops ops = {post, later, timer_set, timer_clear};
    m->executor.ops = &ops;
    m->first = NULL;
    m->end = &m->first;
    m->timers.prev = m->timers.next = &m->timers;
}

void sim_run_tasks(struct sim_member *m)
{
    while (m->first) {
        struct executor_task *t = m->first;
        m->first = t->next;
        if (!m->first)
            m->end = &m->first;
        t->queued = false;
        t->fn(t);
    }
}

static struct executor_timer *first_timer(struct sim_member *m)
{
    struct executor_timer *first = NULL;
    for (struct executor_timer *t = m->timers.next; t != &m->timers; t = t->next)
        if (!first || t->at_ns < first->at_ns)
            first = t;
    return first;
}

/* ---- the scheduler ---- */

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void run_event(void)
{
    const struct sim_due e = sim.event = take_event();
    if (e.member < SIM_MEMBERS && sim.members[e.member].paused_ns > sim.now_ns) {
        sim_again(sim.members[e.member].paused_ns);
        return;
    }
    sim.current = e.member < SIM_MEMBERS ? e.member : SIM_GATEWAY;
    e.fn(e.ctx);
    if (e.member < SIM_MEMBERS)
        sim_run_tasks(&sim.members[e.member]);
}

bool sim_step(uint64_t until_ns)
{
    uint64_t at = until_ns;
    struct sim_thread *thread = NULL;
    struct executor_timer *timer = NULL;
    uint32_t member = SIM_MEMBERS;
    bool event = sim.n_events > 0 && sim.events[0].at_ns < at;
    if (event)
        at = sim.events[0].at_ns;
    for (uint32_t i = 0; i < SIM_MEMBERS; i++) {
        struct sim_member *m = &sim.members[i];
        struct executor_timer *t = first_timer(m);
        uint64_t due = m->first ? sim.now_ns : t ? global_ns(m, t->at_ns) : UINT64_MAX;
        due = later_of(due, m->paused_ns);
        if (due < at)
            at = due, member = i, timer = m->first ? NULL : t, event = false;
    }
    for (struct sim_thread *t = sim.threads; t < sim.threads + SIM_THREADS; t++) {
        const uint64_t due = t->used && !t->ended
                                 ? later_of(t->wake_ns, sim.members[t->member].paused_ns)
                                 : UINT64_MAX;
        if (due < at)
            at = due, thread = t, event = false;
    }
    if (at >= until_ns || sim.failed)
        return false;
    sim.now_ns = later_of(at, sim.now_ns);
    sim.counts->n_events++;
    if (thread) {
        resume(thread);
    } else if (event) {
        run_event();
    } else {
        sim.current = member;
        if (timer) {
            timer_clear(&sim.members[member].executor, timer);
            timer->fn(timer);
        }
        sim_run_tasks(&sim.members[member]);
    }
    return true;
}

void sim_time_init(void)
{
    for (uint32_t i = 0; i < SIM_MEMBERS; i++)
        init_executor(&sim.members[i]);
}

void sim_time_fini(void)
{
    for (uint32_t i = 0; i < SIM_THREADS; i++)
        sim_free(sim.threads[i].stack);
    mem_free(sim.events);
}
