/* crew.c - see crew.h.
 *
 * One 64-bit word holds the state: serial of the open phase (32 bits) and its chunks.  A chunk is
 * taken by writing the phase's number, which has 64 bits and only grows, over a smaller one.  While
 * a phase has an untaken chunk it is open, and when it is over all its chunks have its number or a
 * larger one: so a late member can never take a chunk of one phase for another's.  The serial's
 * half of the word is also what sleepers wait on. */
#include "base/crew.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

/* How long a member spins before it sleeps.  Inside a program: a few times as long as its own last
 * chunk took, since whoever holds the last chunk of the phase is done by then unless the OS has
 * taken it off its core.  Between programs (a token is sampled, the next step begins), with nothing
 * to do: fixed. */
#define SPIN_CHUNKS 4u
/* After so many of its chunk times a waiting member computes a missing chunk itself. */
#define REDO_CHUNKS 2u
#define REDO_LEAST_NS 15000u
#define SPIN_LEAST_NS 50000u
#define SPIN_MOST_NS 3000000u
#define SPIN_IDLE_NS 200000u
#define AHEAD_STEPS 64u
/* Moving to another core is tried at most so often. */
#define MOVE_NS 2000000u

struct slot {
    struct crew_phase phase, next; /* next: of which something can be brought near, or zeros */
    void *ctx;
    uint64_t number;
};
#define SLOT_WORDS ((sizeof(struct slot) + 7) / 8)

struct crew {
    _Alignas(64) _Atomic uint64_t open;
    _Alignas(64) _Atomic uint32_t done;     /* chunks of the open phase that are finished */
    _Alignas(64) _Atomic uint32_t sleepers; /* members in futex wait, or about to */
    /* What members run: the open phase stands in the slot of its serial, written before `open` is.
     * Slots are the crew's own memory, since a member that comes late may look at one when the
     * program, which is its owner's, is gone; and words, since it may look while one is written. */
    _Alignas(64) _Atomic uint64_t slots[4][SLOT_WORDS];
    /* Set before the program's first phase opens, used by whoever finishes a phase. */
    _Alignas(64) void *ctx;
    crew_more_fn more;
    const struct crew_phase *phases;
    uint32_t first_serial, n_phases;
    uint64_t number; /* of the phase that was opened last */
    _Atomic bool stop;
    /* Serial of the last phase whose chunk i was committed: who sets it to the open serial first
     * may commit. */
    _Atomic uint32_t committed[CREW_MAX_COMMITS];
    /* Number of the last phase whose chunk i was taken. */
    _Alignas(64) _Atomic uint64_t taken[CREW_MAX_CHUNKS];
    _Atomic uint64_t moved_ns; /* when a member last moved to another core */
    uint32_t n_members, n_threads;
    struct member {
        pthread_t thread;
        _Alignas(64) _Atomic int core; /* where it last began with a phase */
    } members[];                       /* the first is the owner's: no thread */
};

struct member_start {
    struct crew *c;
    uint32_t member;
};

static uint64_t word(uint32_t serial, uint32_t n_chunks)
{
    return (uint64_t)serial << 32 | n_chunks;
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

/* The phase that follows p: after the last one, what a program like this would begin with again. */
static struct crew_phase following(const struct crew *c, const struct crew_phase *p)
{
    static const struct crew_phase none;
    for (uint32_t i = 1; i <= c->n_phases; i++) {
        const struct crew_phase *q = &c->phases[((uint32_t)(p - c->phases) + i) % c->n_phases];
        if (q->n_chunks > 0)
            return q->ahead ? *q : none;
    }
    return none;
}

/* Opens phase p (NULL: none, the program is over).  seq_cst orders the store before the look at
 * sleepers: whoever counts itself a sleeper after that look sees the new serial before it sleeps.
 */
static void publish(struct crew *c, uint32_t serial, const struct crew_phase *p)
{
    if (p) {
        const struct slot s = {*p, following(c, p), c->ctx, ++c->number};
        uint64_t words[SLOT_WORDS] = {0};
        memcpy(words, &s, sizeof(s));
        for (size_t i = 0; i < SLOT_WORDS; i++)
            atomic_store_explicit(&c->slots[serial % 4][i], words[i], memory_order_release);
    }
    atomic_store_explicit(&c->open, word(serial, p ? p->n_chunks : 0), memory_order_seq_cst);
    if (atomic_load_explicit(&c->sleepers, memory_order_seq_cst) > 0)
        syscall(SYS_futex, serial_futex(c), FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Two members on one core take turns there while a busy process has another core for itself, and
 * the OS calls that balanced.  Who waits, and finds the core it is on to be another member's, goes
 * to one that no member is on: for this moment only those are allowed. */
static void leave_shared_core(struct crew *c, uint32_t member)
{
    const int here = sched_getcpu();
    const uint64_t now = clock_ns();
    uint64_t moved = atomic_load_explicit(&c->moved_ns, memory_order_relaxed);
    cpu_set_t all, free_ones;
    bool shared = false;
    for (uint32_t i = 0; i < c->n_members; i++)
        shared |=
            i != member && atomic_load_explicit(&c->members[i].core, memory_order_relaxed) == here;
    if (!shared || now - moved < MOVE_NS || sched_getaffinity(0, sizeof(all), &all) < 0 ||
        !atomic_compare_exchange_strong_explicit(&c->moved_ns, &moved, now, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    free_ones = all;
    CPU_CLR((size_t)here, &free_ones);
    for (uint32_t i = 0; i < c->n_members; i++)
        CPU_CLR((size_t)atomic_load_explicit(&c->members[i].core, memory_order_relaxed),
                &free_ones);
    if (CPU_COUNT(&free_ones) == 0 || sched_setaffinity(0, sizeof(free_ones), &free_ones) < 0)
        return;
    (void)sched_setaffinity(0, sizeof(all), &all);
    atomic_store_explicit(&c->members[member].core, sched_getcpu(), memory_order_relaxed);
}

/* Returns when the open phase is no longer `serial`, or, with redo_ns, when so much time has
 * passed: then true. */
static bool wait_past(struct crew *c, uint32_t serial, uint64_t spin_ns, uint64_t redo_ns)
{
    uint64_t began = 0;
    for (uint32_t i = 0;; i++) {
        if (serial_of(atomic_load_explicit(&c->open, memory_order_acquire)) != serial)
            return false;
        if (atomic_load_explicit(&c->stop, memory_order_relaxed))
            return false;
        relax();
        if (i % 64 == 63) {
            uint64_t now = clock_ns();
            if (began == 0)
                began = now;
            else if (redo_ns && now - began > redo_ns)
                return true;
            else if (now - began > spin_ns)
                break;
        }
    }
    atomic_fetch_add_explicit(&c->sleepers, 1, memory_order_seq_cst);
    while (serial_of(atomic_load_explicit(&c->open, memory_order_seq_cst)) == serial &&
           !atomic_load_explicit(&c->stop, memory_order_seq_cst))
        syscall(SYS_futex, serial_futex(c), FUTEX_WAIT_PRIVATE, serial, NULL, NULL, 0);
    atomic_fetch_sub_explicit(&c->sleepers, 1, memory_order_relaxed);
    return false;
}

/* Puts the program where finish_phase finds it, its finishes that come before any chunk already
 * run; false: it has no chunk at all. */
static bool begin_program(struct crew *c, const struct crew_phase *phases, uint32_t n_phases,
                          uint32_t serial, uint32_t member)
{
    uint32_t at = 0;
    for (; at < n_phases && phases[at].n_chunks == 0; at++)
        if (phases[at].finish)
            phases[at].finish(c->ctx, &phases[at], member);
    c->phases = phases;
    c->n_phases = n_phases;
    c->first_serial = serial - at;
    return at < n_phases;
}

/* The program that follows, if there is one: true, and its first phase is to get this serial. */
static bool next_program(struct crew *c, uint32_t serial, uint32_t member)
{
    const struct crew_phase *phases;
    uint32_t n;
    while (c->more && (n = c->more(c->ctx, &phases)) > 0)
        if (begin_program(c, phases, n, serial, member))
            return true;
    return false;
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
    uint32_t next = c->first_serial + at;
    const bool open = at < c->n_phases || next_program(c, next, member);
    atomic_store_explicit(&c->done, 0, memory_order_relaxed); /* before publish, which releases */
    publish(c, next, open ? &c->phases[next - c->first_serial] : NULL);
}

static uint64_t spin_for(uint64_t chunk_ns)
{
    uint64_t ns = chunk_ns * SPIN_CHUNKS;
    return ns < SPIN_LEAST_NS ? SPIN_LEAST_NS : ns > SPIN_MOST_NS ? SPIN_MOST_NS : ns;
}

/* A copy of the open phase, if it is still `serial`: whoever computes a chunk that another commits
 * may outlive the phase and the program. */
static bool copy_phase(struct crew *c, uint32_t serial, struct slot *s)
{
    if (serial_of(atomic_load_explicit(&c->open, memory_order_acquire)) != serial)
        return false;
    uint64_t words[SLOT_WORDS] = {0};
    for (size_t i = 0; i < SLOT_WORDS; i++)
        words[i] = atomic_load_explicit(&c->slots[serial % 4][i], memory_order_acquire);
    memcpy(s, words, sizeof(*s));
    /* Still open after the copy: no word of a later phase, which is written after this one was
     * closed, can be in it. */
    return serial_of(atomic_load_explicit(&c->open, memory_order_relaxed)) == serial;
}

/* Computes a chunk and, if nobody else was first, counts it as done. */
static void run_chunk(struct crew *c, const struct crew_phase *p, void *ctx, uint32_t serial,
                      uint32_t chunk, uint32_t member)
{
    p->chunk(ctx, p, chunk, member);
    if (p->commit) {
        uint32_t seen = atomic_load_explicit(&c->committed[chunk], memory_order_acquire);
        /* Lost when this phase has it already, or is over.  If that happens only now, the word is
         * no longer `seen` and the exchange fails. */
        if (seen == serial ||
            serial_of(atomic_load_explicit(&c->open, memory_order_acquire)) != serial ||
            !atomic_compare_exchange_strong_explicit(&c->committed[chunk], &seen, serial,
                                                     memory_order_acq_rel, memory_order_relaxed))
            return;
        p->commit(ctx, p, chunk, member);
    }
    if (atomic_fetch_add_explicit(&c->done, 1, memory_order_acq_rel) + 1 == p->n_chunks)
        finish_phase(c, serial, member);
}

static bool take(struct crew *c, uint32_t chunk, uint64_t number)
{
    uint64_t last = atomic_load_explicit(&c->taken[chunk], memory_order_relaxed);
    return last < number &&
           atomic_compare_exchange_strong_explicit(&c->taken[chunk], &last, number,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Chunk to try as number i: upwards through the member's own share, then downwards through what is
 * before it and, from the end, what is behind, so that others keep the beginnings of theirs. */
static uint32_t chunk_at(const struct crew *c, uint32_t member, uint32_t n, uint32_t i)
{
    const uint32_t from = (uint32_t)((uint64_t)n * member / c->n_members);
    const uint32_t own = (uint32_t)((uint64_t)n * (member + 1) / c->n_members) - from;
    return i < own ? from + i : (from + n - 1 - (i - own)) % n;
}

/* While others still work on this phase: what the member will read first in the next one. */
static void fetch_ahead(struct crew *c, const struct slot *s, uint32_t serial, uint32_t member)
{
    const uint32_t chunk = s->next.ahead ? chunk_at(c, member, s->next.n_chunks, 0) : 0;
    for (uint32_t step = 0; s->next.ahead && step < AHEAD_STEPS; step++)
        if (serial_of(atomic_load_explicit(&c->open, memory_order_acquire)) != serial ||
            !s->next.ahead(s->ctx, &s->next, chunk, step))
            return;
}

static void note_core(struct crew *c, uint32_t member)
{
    _Atomic int *core = &c->members[member].core;
    const int here = sched_getcpu();
    if (atomic_load_explicit(core, memory_order_relaxed) != here)
        atomic_store_explicit(core, here, memory_order_relaxed);
}

/* Takes and runs chunks of the open phase until none is left; returns its serial.  *chunk_ns: how
 * long the last chunk took. */
static uint32_t work(struct crew *c, uint32_t member, uint64_t *chunk_ns)
{
    for (;;) {
        const uint64_t w = atomic_load_explicit(&c->open, memory_order_acquire);
        const uint32_t serial = serial_of(w), n = (uint32_t)w;
        struct slot s;
        if (n == 0)
            return serial;
        if (!copy_phase(c, serial, &s))
            continue; /* away too long: others did it */
        note_core(c, member);
        uint64_t began = clock_ns();
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t chunk = chunk_at(c, member, n, i);
            if (!take(c, chunk, s.number))
                continue;
            run_chunk(c, &s.phase, s.ctx, serial, chunk, member);
            uint64_t now = clock_ns();
            *chunk_ns = now - began;
            began = now;
        }
        fetch_ahead(c, &s, serial, member);
        if (serial_of(atomic_load_explicit(&c->open, memory_order_acquire)) == serial)
            return serial;
    }
}

/* Computes what is missing of a phase whose chunks are all taken. */
static void redo_missing(struct crew *c, uint32_t serial, uint32_t member)
{
    struct slot s;
    if (!copy_phase(c, serial, &s) || !s.phase.commit)
        return;
    for (uint32_t i = 0; i < s.phase.n_chunks; i++)
        if (atomic_load_explicit(&c->committed[i], memory_order_relaxed) != serial &&
            serial_of(atomic_load_explicit(&c->open, memory_order_relaxed)) == serial)
            run_chunk(c, &s.phase, s.ctx, serial, i, member);
}

/* Waits for the phase to end; where it can be helped along, does that once. */
static void wait_or_help(struct crew *c, uint32_t serial, uint64_t chunk_ns, uint32_t member)
{
    uint64_t redo = chunk_ns * REDO_CHUNKS;
    redo = redo < REDO_LEAST_NS ? REDO_LEAST_NS : redo;
#ifdef __SANITIZE_THREAD__
    redo = 0; /* a late chunk reads what later phases write, and is thrown away: a race by intent */
#endif
    if (wait_past(c, serial, spin_for(chunk_ns), redo)) {
        leave_shared_core(c, member);
        redo_missing(c, serial, member);
        (void)wait_past(c, serial, spin_for(chunk_ns), 0);
    }
}

static void *member_main(void *arg)
{
    struct member_start start = *(struct member_start *)arg;
    mem_free(arg);
    struct crew *c = start.c;
    uint64_t chunk_ns = 0;
    while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        uint32_t serial = work(c, start.member, &chunk_ns);
        bool idle = (uint32_t)atomic_load_explicit(&c->open, memory_order_relaxed) == 0;
        if (idle)
            (void)wait_past(c, serial, SPIN_IDLE_NS, 0);
        else
            wait_or_help(c, serial, chunk_ns, start.member);
    }
    return NULL;
}

uint32_t crew_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (uint32_t)n;
}

int crew_create(struct crew **out, uint32_t n_members, struct err *e)
{
    *out = NULL;
    if (n_members == 0 || n_members > 256)
        return err_set(e, SHOAL_EINVAL, "%u compute threads (1 to 256)", n_members);
    struct crew *c = mem_aligned(sizeof(struct crew) + n_members * sizeof(struct member));
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "compute threads");
    c->n_members = n_members;
    for (uint32_t i = 0; i < n_members; i++)
        atomic_init(&c->members[i].core, -1);
    for (uint32_t i = 1; i < n_members; i++) {
        struct member_start *start = mem_alloc(sizeof(*start));
        if (start)
            *start = (struct member_start){c, i};
        if (!start ||
            thread_create_numbered(&c->members[i].thread, "crew", i, member_main, start, e) < 0) {
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
    publish(c, serial_of(w) + 1, NULL);
    for (uint32_t i = 1; i <= c->n_threads; i++)
        pthread_join(c->members[i].thread, NULL);
    mem_free(c);
}

uint32_t crew_size(const struct crew *c)
{
    return c->n_members;
}

void crew_run(struct crew *c, void *ctx, const struct crew_phase *phases, uint32_t n_phases,
              crew_more_fn more)
{
    uint32_t first = serial_of(atomic_load_explicit(&c->open, memory_order_relaxed)) + 1;
    /* No member reads these while no chunk can be taken: the last program's serial is closed. */
    c->ctx = ctx;
    c->more = more;
    if (!begin_program(c, phases, n_phases, first, 0) && !next_program(c, first, 0))
        return;
    publish(c, first, &c->phases[first - c->first_serial]);
    uint64_t chunk_ns = 0;
    for (;;) {
        uint32_t serial = work(c, 0, &chunk_ns);
        if ((uint32_t)atomic_load_explicit(&c->open, memory_order_acquire) == 0)
            return;
        wait_or_help(c, serial, chunk_ns, 0);
    }
}
