/* crew.c - see crew.h.
 *
 * One 64-bit word holds the state: serial of the open phase (32 bits), its chunks (16), the next
 * chunk to take (16).  Taking is one fetch_add, and the word that comes back says which phase the
 * chunk belongs to, so a late member can never take a chunk of one phase for another's.  The serial
 * only grows; its half of the word is also what sleepers wait on. */
#include "base/crew.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* How long a member spins before it sleeps.  Inside a program: a few times as long as its own last
 * chunk took, since whoever holds the last chunk of the phase is done by then unless the OS has
 * taken it off its core.  Between programs (a token is sampled, the next step begins): fixed. */
#define SPIN_CHUNKS 4u
#define SPIN_LEAST_NS 50000u
#define SPIN_MOST_NS 3000000u
#define SPIN_IDLE_NS 200000u

struct crew {
    _Alignas(64) _Atomic uint64_t open;
    _Alignas(64) _Atomic uint32_t done;     /* chunks of the open phase that are finished */
    _Alignas(64) _Atomic uint32_t sleepers; /* members in futex wait, or about to */
    /* Set by crew_run before the first phase opens; the release store of `open` publishes them. */
    _Alignas(64) void *ctx;
    const struct crew_phase *phases;
    uint32_t first_serial, n_phases;
    _Atomic bool stop;
    uint32_t n_members, n_threads;
    pthread_t threads[];
};

struct member_start {
    struct crew *c;
    uint32_t member;
};

static uint64_t word(uint32_t serial, uint32_t n_chunks)
{
    return (uint64_t)serial << 32 | (uint64_t)n_chunks << 16;
}

static uint32_t serial_of(uint64_t w)
{
    return (uint32_t)(w >> 32);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static uint32_t *serial_futex(struct crew *c)
{
    return (uint32_t *)(void *)&c->open + 1; /* the high half: little-endian machines only */
}

/* Opens a phase.  seq_cst orders the store before the look at sleepers: whoever counts itself a
 * sleeper after that look sees the new serial before it sleeps. */
static void publish(struct crew *c, uint32_t serial, uint32_t n_chunks)
{
    atomic_store_explicit(&c->open, word(serial, n_chunks), memory_order_seq_cst);
    if (atomic_load_explicit(&c->sleepers, memory_order_seq_cst) > 0)
        syscall(SYS_futex, serial_futex(c), FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Returns when the open phase is no longer `serial`. */
static void wait_past(struct crew *c, uint32_t serial, uint64_t spin_ns)
{
    uint64_t until = 0;
    for (uint32_t i = 0;; i++) {
        if (serial_of(atomic_load_explicit(&c->open, memory_order_acquire)) != serial)
            return;
        if (atomic_load_explicit(&c->stop, memory_order_relaxed))
            return;
        relax();
        if (i % 64 == 63) {
            uint64_t now = clock_ns();
            if (until == 0)
                until = now + spin_ns;
            else if (now > until)
                break;
        }
    }
    atomic_fetch_add_explicit(&c->sleepers, 1, memory_order_seq_cst);
    while (serial_of(atomic_load_explicit(&c->open, memory_order_seq_cst)) == serial &&
           !atomic_load_explicit(&c->stop, memory_order_seq_cst))
        syscall(SYS_futex, serial_futex(c), FUTEX_WAIT_PRIVATE, serial, NULL, NULL, 0);
    atomic_fetch_sub_explicit(&c->sleepers, 1, memory_order_relaxed);
}

/* Finishes the phase with this serial and opens the next one that has chunks. */
static void finish_phase(struct crew *c, uint32_t serial, uint32_t member)
{
    uint32_t at = serial - c->first_serial;
    for (;;) {
        const struct crew_phase *p = &c->phases[at];
        if (p->finish)
            p->finish(c->ctx, p, member);
        at++;
        if (at >= c->n_phases || c->phases[at].n_chunks > 0)
            break;
    }
    atomic_store_explicit(&c->done, 0, memory_order_relaxed); /* before publish, which releases */
    publish(c, c->first_serial + at, at < c->n_phases ? c->phases[at].n_chunks : 0);
}

/* Takes and runs chunks of the open phase until none is left; returns its serial.  *chunk_ns: how
 * long the last chunk took. */
static uint32_t work(struct crew *c, uint32_t member, uint64_t *chunk_ns)
{
    uint64_t began = 0;
    for (;;) {
        uint64_t w = atomic_load_explicit(&c->open, memory_order_acquire);
        if ((uint16_t)w >= (uint16_t)(w >> 16))
            return serial_of(w);
        w = atomic_fetch_add_explicit(&c->open, 1, memory_order_acquire);
        uint32_t n = (uint16_t)(w >> 16), chunk = (uint16_t)w;
        if (chunk >= n)
            return serial_of(w);
        /* Holding a chunk keeps the phase, and so the program, alive. */
        const struct crew_phase *p = &c->phases[serial_of(w) - c->first_serial];
        if (began == 0)
            began = clock_ns();
        p->chunk(c->ctx, p, chunk, member);
        uint64_t now = clock_ns();
        *chunk_ns = now - began;
        began = now;
        if (atomic_fetch_add_explicit(&c->done, 1, memory_order_acq_rel) + 1 == n)
            finish_phase(c, serial_of(w), member);
    }
}

static uint64_t spin_for(uint64_t chunk_ns)
{
    uint64_t ns = chunk_ns * SPIN_CHUNKS;
    return ns < SPIN_LEAST_NS ? SPIN_LEAST_NS : ns > SPIN_MOST_NS ? SPIN_MOST_NS : ns;
}

static void *member_main(void *arg)
{
    struct member_start start = *(struct member_start *)arg;
    mem_free(arg);
    struct crew *c = start.c;
    uint64_t chunk_ns = 0;
    while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        uint32_t serial = work(c, start.member, &chunk_ns);
        bool idle = (uint16_t)(atomic_load_explicit(&c->open, memory_order_relaxed) >> 16) == 0;
        wait_past(c, serial, idle ? SPIN_IDLE_NS : spin_for(chunk_ns));
    }
    return NULL;
}

int crew_create(struct crew **out, uint32_t n_members, struct err *e)
{
    *out = NULL;
    if (n_members == 0 || n_members > 256)
        return err_set(e, SHOAL_EINVAL, "%u compute threads (1 to 256)", n_members);
    struct crew *c = mem_aligned(sizeof(struct crew) + n_members * sizeof(pthread_t));
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "compute threads");
    c->n_members = n_members;
    for (uint32_t i = 1; i < n_members; i++) {
        struct member_start *start = mem_alloc(sizeof(*start));
        if (start)
            *start = (struct member_start){c, i};
        if (!start || pthread_create(&c->threads[c->n_threads], NULL, member_main, start) != 0) {
            mem_free(start);
            crew_destroy(c);
            return err_set(e, SHOAL_ENOMEM, "cannot start compute thread %u", i);
        }
        c->n_threads++;
    }
    *out = c;
    return 0;
}

void crew_destroy(struct crew *c)
{
    if (!c)
        return;
    atomic_store_explicit(&c->stop, true, memory_order_seq_cst);
    uint64_t w = atomic_load_explicit(&c->open, memory_order_relaxed);
    publish(c, serial_of(w) + 1, 0);
    for (uint32_t i = 0; i < c->n_threads; i++)
        pthread_join(c->threads[i], NULL);
    mem_free(c);
}

uint32_t crew_size(const struct crew *c)
{
    return c->n_members;
}

void crew_run(struct crew *c, void *ctx, const struct crew_phase *phases, uint32_t n_phases)
{
    uint32_t before = serial_of(atomic_load_explicit(&c->open, memory_order_relaxed));
    uint32_t at = 0;
    for (; at < n_phases && phases[at].n_chunks == 0; at++)
        if (phases[at].finish)
            phases[at].finish(ctx, &phases[at], 0);
    if (at == n_phases)
        return;
    /* No member reads these while no chunk can be taken: the last program's serial is closed. */
    c->ctx = ctx;
    c->phases = phases;
    c->n_phases = n_phases;
    c->first_serial = before + 1 - at;
    uint32_t end = c->first_serial + n_phases;
    publish(c, before + 1, phases[at].n_chunks);
    uint64_t chunk_ns = 0;
    for (;;) {
        uint32_t serial = work(c, 0, &chunk_ns);
        if (serial == end)
            return;
        wait_past(c, serial, spin_for(chunk_ns));
    }
}
