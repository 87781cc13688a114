/* crew.c - see crew.h.
 *
 * One 64-bit word holds the state of a lane: serial of the open phase (32 bits) and its number of
 * chunks.  A chunk is taken by writing the phase's number, which has 64 bits and only grows, over a
 * smaller one.  A phase stays open while it has an untaken chunk, and when it is over all its
 * chunks carry its number or a larger one: so a late member can never take a chunk of one phase for
 * another's.  The serial's half of the word is also what the owner sleeps on.
 *
 * Lanes with more than one member are never freed before the crew: a new lane takes over an unused
 * one with its serials and numbers, so that a late thread may look at any lane at any time.  What
 * it must not touch is the ctx of a lane that is gone; therefore a thread announces the lane that
 * it enters (helper.in), looks again whether a program is running, and crew_lane_destroy waits
 * until nobody announces the lane.
 *
 * Memory order: stores that publish work (open) and those that say that a thread sleeps or is in a
 * lane are seq_cst, as are the loads that are paired with them: each side writes its own word and
 * then reads the other's, so at least one of them sees the other. */
#include "base/thread/crew.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread/run_queue.h"
#include "base/thread/thread.h"

/* How long a member spins before it sleeps. Inside a program: a few times the duration of its last
 * chunk, since the holder of the phase's last chunk is done by then unless the OS has descheduled
 * it. After a program: fixed and short, since the thread that sends the result may need this core;
 * not at all if the program would have continued had there been more work. */
#define SPIN_CHUNKS 4u
#define SPIN_LEAST_NS 50000u
#define SPIN_MOST_NS 3000000u
#define SPIN_IDLE_NS 30000u
/* After this many of its chunk times a waiting member computes a missing chunk itself. */
#define REDO_CHUNKS 2u
#define REDO_LEAST_NS 15000u
#define AHEAD_STEPS 64u
/* Moving to another core is tried at most so often. */
#define MOVE_NS 2000000u
/* Lanes of equal urgency: a thread switches to another lane that got this much less help. A program
 * that starts has a credit, so that a short one is helped first. */
#define FAIR_NS 1000000u
#define CREDIT_NS 4000000u

#define WORD_BITS 64u
#define WORDS_OF(n) (((n) + WORD_BITS - 1) / WORD_BITS)

struct slot {
    struct crew_phase phase, next; /* next: zeros when nothing of it can be prefetched */
    void *ctx;
    uint64_t number;
};
#define SLOT_WORDS ((sizeof(struct slot) + 7) / 8)

struct crew_lane {
    _Alignas(64) _Atomic uint64_t open;
    _Alignas(64) _Atomic uint32_t done;     /* chunks of the open phase that are finished */
    _Alignas(64) _Atomic uint32_t sleepers; /* 1: the owner sleeps, or is about to */
    /* The phases to run: the open phase is in the slot of its serial, written before `open`. Slots
     * are the lane's memory, since a late member may look at one when the program is gone; and they
     * are words, since it may look while one is being written. */
    _Alignas(64) _Atomic uint64_t slots[4][SLOT_WORDS];
    /* Set before the program's first phase opens, used by the member that finishes a phase. */
    _Alignas(64) void *ctx;
    crew_more_fn more;
    const struct crew_phase *phases;
    uint32_t first_serial, n_phases;
    uint64_t number; /* number of the phase opened last */
    /* Read by every thread that chooses a lane. */
    _Alignas(64) struct crew *crew;
    _Atomic uint32_t n_members;
    _Atomic int32_t priority;
    _Atomic uint64_t deadline_ns; /* UINT64_MAX: none */
    _Atomic uint64_t helped_ns;   /* time that crew threads spent here while others needed it too */
    /* core on which the owner last started a phase; -1: not running */
    _Atomic int core;
    _Atomic bool chained; /* `more` supplies the programs after the first */
    /* in crew.lanes; NO_INDEX: a lane with one member, not in that table */
    uint32_t index;
    bool in_use, own_crew; /* in_use: under the crew's lock */
    /* Serial of the last phase whose chunk i was committed: the first member to set it to the open
     * serial may commit. */
    _Alignas(64) _Atomic uint32_t committed[CREW_MAX_COMMITS];
    /* Number of the last phase whose chunk i was taken. */
    _Alignas(64) _Atomic uint64_t taken[CREW_MAX_CHUNKS];
};
#define NO_INDEX UINT32_MAX

struct helper {                                  /* a thread of the crew */
    _Alignas(64) _Atomic(struct crew_lane *) in; /* the lane whose ctx it may touch, or NULL */
    /* core on which it last started a phase; -1: idle */
    _Atomic int core;
    struct crew *crew;
    pthread_t thread;
    uint32_t member; /* its number in every lane: 1, 2, ... */
    /* the thread's own */
    uint64_t chunk_ns;
    uint32_t seen[CREW_MAX_LANES]; /* serial of each lane that had no chunk left to take */
};

struct crew {
    /* Read with every phase, changed when a program begins or ends. */
    _Alignas(64) _Atomic uint32_t n_running; /* lanes with a program in flight */
    /* limit of threads that compute at once: owners of programs and crew threads */
    _Atomic uint32_t most_threads;
    _Atomic uint64_t running[WORDS_OF(CREW_MAX_LANES)];               /* bits of those in `lanes` */
    _Alignas(64) _Atomic uint64_t asleep[WORDS_OF(CREW_MAX_MEMBERS)]; /* crew threads, by member */
    _Atomic uint32_t bell;                                            /* the futex they sleep on */
    _Atomic bool stop;
    _Alignas(64) _Atomic uint64_t moved_ns; /* when a thread last moved to another core */
    _Atomic uint32_t n_helpers;
    _Atomic(struct helper *) helpers[CREW_MAX_MEMBERS]; /* [0]: member 1 */
    _Atomic(struct crew_lane *) lanes[CREW_MAX_LANES];
    pthread_mutex_t lock; /* guards adding helpers and lanes */
};

static uint64_t word(uint32_t serial, uint32_t n_chunks)
{
    return (uint64_t)serial << 32 | n_chunks;
}

static uint32_t serial_of(uint64_t w)
{
    return (uint32_t)(w >> 32);
}

static uint32_t open_serial(const struct crew_lane *l)
{
    return serial_of(atomic_load_explicit(&l->open, memory_order_acquire));
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static uint32_t *serial_futex(struct crew_lane *l)
{
    return (uint32_t *)(void *)&l->open + 1; /* the high half: little-endian machines only */
}

static void futex_wake(uint32_t *at)
{
    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void futex_wait(uint32_t *at, uint32_t value)
{
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/* ---- which threads compute ------------------------------------------------------------------- */

/* Members below this number may compute: the owners of running programs and the crew threads
 * together are no more than most_threads. */
static uint32_t first_idle_member(const struct crew *c)
{
    const uint32_t most = atomic_load_explicit(&c->most_threads, memory_order_relaxed);
    const uint32_t running = atomic_load_explicit(&c->n_running, memory_order_seq_cst);
    return running > most ? 1 : most - running + 1;
}

/* Wakes the crew threads that sleep if one of them is below `end` and may compute. */
static void wake_helpers(struct crew *c, uint32_t end)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < WORDS_OF(end); i++) {
        uint64_t asleep = atomic_load_explicit(&c->asleep[i], memory_order_seq_cst);
        if (asleep == 0)
            continue;
        const uint32_t idle = first_idle_member(c), below = idle < end ? idle : end;
        const uint32_t n = below > i * WORD_BITS ? below - i * WORD_BITS : 0;
        any |= n < WORD_BITS ? asleep & (((uint64_t)1 << n) - 1) : asleep;
    }
    if (!any)
        return;
    atomic_fetch_add_explicit(&c->bell, 1, memory_order_seq_cst);
    futex_wake((uint32_t *)(void *)&c->bell);
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* The phase after p: after the last one, the first phase of a similar program. */
static struct crew_phase following(const struct crew_lane *l, const struct crew_phase *p)
{
    static const struct crew_phase none;
    for (uint32_t i = 1; i <= l->n_phases; i++) {
        const struct crew_phase *q = &l->phases[((uint32_t)(p - l->phases) + i) % l->n_phases];
        if (q->n_chunks > 0)
            return q->ahead ? *q : none;
    }
    return none;
}

/* Opens phase p (NULL: none, the program has ended). A thread that decides to sleep after checking
 * sleepers and asleep sees the new serial first. */
static void publish(struct crew_lane *l, uint32_t serial, const struct crew_phase *p)
{
    if (p) {
        const struct slot s = {*p, following(l, p), l->ctx, ++l->number};
        uint64_t words[SLOT_WORDS] = {0};
        memcpy(words, &s, sizeof(s));
        for (size_t i = 0; i < SLOT_WORDS; i++)
            atomic_store_explicit(&l->slots[serial % 4][i], words[i], memory_order_release);
    }
    struct crew *c = l->crew;
    const uint32_t n_members = atomic_load_explicit(&l->n_members, memory_order_relaxed);
    atomic_store_explicit(&l->open, word(serial, p ? p->n_chunks : 0), memory_order_seq_cst);
    if (atomic_load_explicit(&l->sleepers, memory_order_seq_cst) > 0)
        futex_wake(serial_futex(l));
    if (p && n_members > 1)
        wake_helpers(c, n_members);
}

/* Stores the program for finish_phase and runs the finishes before the first chunk; false: it has
 * no chunks. */
static bool begin_program(struct crew_lane *l, const struct crew_phase *phases, uint32_t n_phases,
                          uint32_t serial, uint32_t member)
{
    uint32_t at = 0;
    for (; at < n_phases && phases[at].n_chunks == 0; at++)
        if (phases[at].finish)
            phases[at].finish(l->ctx, &phases[at], member);
    l->phases = phases;
    l->n_phases = n_phases;
    l->first_serial = serial - at;
    return at < n_phases;
}

/* The next program, if there is one: true, and its first phase gets this serial. */
static bool next_program(struct crew_lane *l, uint32_t serial, uint32_t member)
{
    const struct crew_phase *phases;
    uint32_t n;
    while (l->more && (n = l->more(l->ctx, &phases)) > 0)
        if (begin_program(l, phases, n, serial, member))
            return true;
    return false;
}

/* Finishes the phase with this serial and opens the next one that has chunks. */
static void finish_phase(struct crew_lane *l, uint32_t serial, uint32_t member)
{
    uint32_t at = serial - l->first_serial;
    for (;;) {
        const struct crew_phase *p = &l->phases[at];
        if (p->finish)
            p->finish(l->ctx, p, member);
        at++;
        if (at >= l->n_phases || l->phases[at].n_chunks > 0)
            break;
    }
    uint32_t next = l->first_serial + at;
    const bool open = at < l->n_phases || next_program(l, next, member);
    atomic_store_explicit(&l->done, 0, memory_order_relaxed); /* before publish, which releases */
    publish(l, next, open ? &l->phases[next - l->first_serial] : NULL);
}

/* Copies the open phase, if it is still `serial`: a member that computes a chunk committed by
 * another may outlive the phase and the program. */
static bool copy_phase(struct crew_lane *l, uint32_t serial, struct slot *s)
{
    if (open_serial(l) != serial)
        return false;
    uint64_t words[SLOT_WORDS] = {0};
    for (size_t i = 0; i < SLOT_WORDS; i++)
        words[i] = atomic_load_explicit(&l->slots[serial % 4][i], memory_order_acquire);
    memcpy(s, words, sizeof(*s));
    /* Still open after the copy: no word of a later phase, which is written after this one was
     * closed, can be in it. */
    return serial_of(atomic_load_explicit(&l->open, memory_order_relaxed)) == serial;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Computes a chunk and, if it was the first to finish it, counts it as done. */
static void run_chunk(struct crew_lane *l, const struct crew_phase *p, void *ctx, uint32_t serial,
                      uint32_t chunk, uint32_t member)
{
    p->chunk(ctx, p, chunk, member);
    if (p->commit) {
        uint32_t seen = atomic_load_explicit(&l->committed[chunk], memory_order_acquire);
        /* Lost if this phase already has it, or has ended. If that happens only now, the word is no
         * longer `seen` and the exchange fails. */
        if (seen == serial || open_serial(l) != serial ||
            !atomic_compare_exchange_strong_explicit(&l->committed[chunk], &seen, serial,
                                                     memory_order_acq_rel, memory_order_relaxed))
            return;
        p->commit(ctx, p, chunk, member);
    }
    if (atomic_fetch_add_explicit(&l->done, 1, memory_order_acq_rel) + 1 == p->n_chunks)
        finish_phase(l, serial, member);
}

static bool take(struct crew_lane *l, uint32_t chunk, uint64_t number)
{
    uint64_t last = atomic_load_explicit(&l->taken[chunk], memory_order_relaxed);
    return last < number &&
           atomic_compare_exchange_strong_explicit(&l->taken[chunk], &last, number,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Chunk to try as number i: upwards through the member's own share, then downwards through the
 * chunks before it and, from the end, those after it, so that others keep the start of their
 * shares. */
static uint32_t chunk_at(const struct crew_lane *l, uint32_t member, uint32_t n, uint32_t i)
{
    const uint32_t members = atomic_load_explicit(&l->n_members, memory_order_relaxed);
    const uint32_t from = (uint32_t)((uint64_t)n * member / members);
    const uint32_t own = (uint32_t)((uint64_t)n * (member + 1) / members) - from;
    return i < own ? from + i : (from + n - 1 - (i - own)) % n;
}

/* While others still work on this phase: prefetches the memory that the member will read first in
 * the next. */
static void fetch_ahead(struct crew_lane *l, const struct slot *s, uint32_t serial, uint32_t member)
{
    const uint32_t chunk = s->next.ahead ? chunk_at(l, member, s->next.n_chunks, 0) : 0;
    for (uint32_t step = 0; s->next.ahead && step < AHEAD_STEPS; step++)
        if (open_serial(l) != serial || !s->next.ahead(s->ctx, &s->next, chunk, step))
            return;
}

/* ---- choosing a lane ------------------------------------------------------------------------- */

/* By how much lane a is before lane b in a thread's choice: above 0 when it is. */
static int more_urgent(const struct crew_lane *a, const struct crew_lane *b, uint64_t fair_ns)
{
    const int32_t pa = atomic_load_explicit(&a->priority, memory_order_relaxed);
    const int32_t pb = atomic_load_explicit(&b->priority, memory_order_relaxed);
    if (pa != pb)
        return pa > pb ? 1 : -1;
    const uint64_t da = atomic_load_explicit(&a->deadline_ns, memory_order_relaxed);
    const uint64_t db = atomic_load_explicit(&b->deadline_ns, memory_order_relaxed);
    if (da != db)
        return da < db ? 1 : -1;
    const uint64_t ha = atomic_load_explicit(&a->helped_ns, memory_order_relaxed);
    const uint64_t hb = atomic_load_explicit(&b->helped_ns, memory_order_relaxed);
    return ha + fair_ns < hb ? 1 : -1;
}

/* The next running lane from index i on, or NULL; *i becomes its index. */
static struct crew_lane *next_running(const struct crew *c, uint32_t *i)
{
    for (uint32_t w = *i / WORD_BITS; w < WORDS_OF(CREW_MAX_LANES); w++) {
        uint64_t bits = atomic_load_explicit(&c->running[w], memory_order_seq_cst);
        if (w == *i / WORD_BITS)
            bits &= ~(uint64_t)0 << (*i % WORD_BITS);
        if (bits) {
            *i = w * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
            return atomic_load_explicit(&c->lanes[*i], memory_order_acquire);
        }
    }
    return NULL;
}

static bool must_step_back(const struct helper *h)
{
    return h->member >= first_idle_member(h->crew);
}

/* The most urgent lane with a chunk to take; with `than`, only one that is much more urgent. */
static struct crew_lane *choose(const struct helper *h, const struct crew_lane *than)
{
    struct crew_lane *best = NULL, *l;
    if (must_step_back(h))
        return NULL;
    for (uint32_t i = 0; i < CREW_MAX_LANES && (l = next_running(h->crew, &i)); i++) {
        const uint64_t w = atomic_load_explicit(&l->open, memory_order_seq_cst);
        if (l == than || (uint32_t)w == 0 || serial_of(w) == h->seen[i] ||
            h->member >= atomic_load_explicit(&l->n_members, memory_order_relaxed))
            continue;
        if (than && more_urgent(l, than, FAIR_NS) < 0)
            continue;
        if (!best || more_urgent(l, best, 0) > 0)
            best = l;
    }
    return best;
}

/* Should the thread leave its lane, for one that is more urgent than `than` (NULL: for any that has
 * a chunk to take), or to step back? */
static bool should_leave(const struct helper *h, const struct crew_lane *than)
{
    if (atomic_load_explicit(&h->crew->n_running, memory_order_relaxed) < 2)
        return false;
    return must_step_back(h) || choose(h, than);
}

/* A program that begins is as well off as the least helped one, and a little better. */
static void set_credit(struct crew_lane *l)
{
    uint64_t least = UINT64_MAX;
    const struct crew_lane *o;
    for (uint32_t i = 0; i < CREW_MAX_LANES && (o = next_running(l->crew, &i)); i++) {
        const uint64_t helped = atomic_load_explicit(&o->helped_ns, memory_order_relaxed);
        if (o != l && helped < least)
            least = helped;
    }
    if (least == UINT64_MAX)
        return;
    least -= least < CREDIT_NS ? least : CREDIT_NS;
    if (atomic_load_explicit(&l->helped_ns, memory_order_relaxed) < least)
        atomic_store_explicit(&l->helped_ns, least, memory_order_relaxed);
}

/* ---- cores ----------------------------------------------------------------------------------- */

static void note_core(_Atomic int *core)
{
    const int here = sched_getcpu();
    if (atomic_load_explicit(core, memory_order_relaxed) != here)
        atomic_store_explicit(core, here, memory_order_relaxed);
}

/* Takes the cores of all other threads that compute out of *cores; true: one of them is `here`. */
static bool remove_used(const struct crew *c, const _Atomic int *own, int here, cpu_set_t *cores)
{
    bool shared = false;
    const uint32_t n = atomic_load_explicit(&c->n_helpers, memory_order_acquire);
    const struct crew_lane *l;
    for (uint32_t i = 0; i < n; i++) {
        const struct helper *h = atomic_load_explicit(&c->helpers[i], memory_order_acquire);
        const int core = atomic_load_explicit(&h->core, memory_order_relaxed);
        if (&h->core == own || core < 0)
            continue;
        shared |= core == here;
        CPU_CLR((size_t)core, cores);
    }
    for (uint32_t i = 0; i < CREW_MAX_LANES && (l = next_running(c, &i)); i++) {
        const int core = atomic_load_explicit(&l->core, memory_order_relaxed);
        if (&l->core == own || core < 0)
            continue;
        shared |= core == here;
        CPU_CLR((size_t)core, cores);
    }
    return shared;
}

/* Two threads on one core take turns while a busy process has another core to itself, and the OS
 * considers that balanced. A waiting thread that shares its core moves to a core without crew
 * threads, by briefly restricting its affinity. */
static void leave_shared_core(struct crew *c, _Atomic int *own)
{
    const int here = sched_getcpu();
    const uint64_t now = clock_ns();
    uint64_t moved = atomic_load_explicit(&c->moved_ns, memory_order_relaxed);
    cpu_set_t all, unused;
    CPU_ZERO(&unused);
    if (!remove_used(c, own, here, &unused) || now - moved < MOVE_NS ||
        sched_getaffinity(0, sizeof(all), &all) < 0 ||
        !atomic_compare_exchange_strong_explicit(&c->moved_ns, &moved, now, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    unused = all;
    CPU_CLR((size_t)here, &unused);
    (void)remove_used(c, own, here, &unused);
    if (CPU_COUNT(&unused) == 0 || sched_setaffinity(0, sizeof(unused), &unused) < 0)
        return;
    (void)sched_setaffinity(0, sizeof(all), &all);
    atomic_store_explicit(own, sched_getcpu(), memory_order_relaxed);
}

/* ---- working --------------------------------------------------------------------------------- */

static uint64_t spin_for(uint64_t chunk_ns)
{
    uint64_t ns = chunk_ns * SPIN_CHUNKS;
    return ns < SPIN_LEAST_NS ? SPIN_LEAST_NS : ns > SPIN_MOST_NS ? SPIN_MOST_NS : ns;
}

static uint64_t redo_after(uint64_t chunk_ns)
{
#ifdef __SANITIZE_THREAD__
    (void)chunk_ns;
    return 0; /* a late chunk reads memory that later phases write, and its result is discarded: a
                 benign race */
#else
    const uint64_t ns = chunk_ns * REDO_CHUNKS;
    return ns < REDO_LEAST_NS ? REDO_LEAST_NS : ns;
#endif
}

/* Counts time that a lane was helped while other lanes had work too. */
static void count_help(const struct helper *h, struct crew_lane *l, uint64_t ns)
{
    if (atomic_load_explicit(&h->crew->n_running, memory_order_relaxed) > 1)
        atomic_fetch_add_explicit(&l->helped_ns, ns, memory_order_relaxed);
}

/* Takes and runs chunks of the open phase until none is left; returns its serial. *chunk_ns:
 * duration of the last chunk. h: NULL for the owner. false: the thread is needed elsewhere. */
static bool work(struct crew_lane *l, struct helper *h, uint32_t *serial, uint64_t *chunk_ns)
{
    const uint32_t member = h ? h->member : 0;
    for (;;) {
        const uint64_t w = atomic_load_explicit(&l->open, memory_order_acquire);
        const uint32_t n = (uint32_t)w;
        struct slot s;
        *serial = serial_of(w);
        if (n == 0)
            return true;
        if (!copy_phase(l, *serial, &s))
            continue; /* preempted for too long: others did it */
        note_core(h ? &h->core : &l->core);
        uint64_t began = clock_ns();
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t chunk = chunk_at(l, member, n, i);
            if (!take(l, chunk, s.number))
                continue;
            run_chunk(l, &s.phase, s.ctx, *serial, chunk, member);
            const uint64_t now = clock_ns();
            *chunk_ns = now - began;
            began = now;
            if (h) {
                count_help(h, l, *chunk_ns);
                if (should_leave(h, l))
                    return false;
            }
        }
        fetch_ahead(l, &s, *serial, member);
        if (open_serial(l) == *serial)
            return true;
    }
}

/* Computes the missing chunks of a phase whose chunks are all taken. */
static void redo_missing(struct crew_lane *l, uint32_t serial, uint32_t member)
{
    struct slot s;
    if (!copy_phase(l, serial, &s) || !s.phase.commit)
        return;
    for (uint32_t i = 0; i < s.phase.n_chunks; i++)
        if (atomic_load_explicit(&l->committed[i], memory_order_relaxed) != serial &&
            serial_of(atomic_load_explicit(&l->open, memory_order_relaxed)) == serial)
            run_chunk(l, &s.phase, s.ctx, serial, i, member);
}

enum wait_end { WAIT_NEXT, WAIT_REDO, WAIT_LEAVE, WAIT_TIRED };

/* Spins until the open phase is no longer `serial` (WAIT_NEXT), redo_ns have passed (unless 0),
 * spin_ns have passed (WAIT_TIRED), or the crew thread h is needed elsewhere (WAIT_LEAVE). */
static enum wait_end spin(struct crew_lane *l, const struct helper *h, uint32_t serial,
                          uint64_t spin_ns, uint64_t redo_ns)
{
    uint64_t began = 0;
    for (uint32_t i = 0;; i++) {
        if (open_serial(l) != serial)
            return WAIT_NEXT;
        relax();
        if (h && i % 16 == 15 && should_leave(h, NULL))
            return WAIT_LEAVE;
        if (i % 64 == 63) {
            const uint64_t now = clock_ns();
            if (began == 0)
                began = now;
            else if (redo_ns && now - began > redo_ns)
                return WAIT_REDO;
            else if (now - began > spin_ns)
                return WAIT_TIRED;
        }
    }
}

/* Waits in a lane for the phase to end; where it can be helped along, does that once. */
static enum wait_end wait_in_lane(struct crew_lane *l, struct helper *h, uint32_t serial,
                                  uint64_t chunk_ns)
{
    enum wait_end end = spin(l, h, serial, spin_for(chunk_ns), redo_after(chunk_ns));
    if (end != WAIT_REDO)
        return end;
    leave_shared_core(l->crew, h ? &h->core : &l->core);
    redo_missing(l, serial, h ? h->member : 0);
    return spin(l, h, serial, spin_for(chunk_ns), 0);
}

/* The owner: sleeps until the open phase is no longer `serial`. */
static void sleep_past(struct crew_lane *l, uint32_t serial)
{
    atomic_store_explicit(&l->sleepers, 1, memory_order_seq_cst);
    while (serial_of(atomic_load_explicit(&l->open, memory_order_seq_cst)) == serial)
        futex_wait(serial_futex(l), serial);
    atomic_store_explicit(&l->sleepers, 0, memory_order_relaxed);
}

/* ---- the threads of the crew ----------------------------------------------------------------- */

/* Works in lane l until its program ends, or the thread is needed elsewhere.  WAIT_TIRED: it should
 * not wait any longer. */
static enum wait_end serve(struct helper *h, struct crew_lane *l)
{
    enum wait_end end = WAIT_LEAVE;
    uint32_t serial;
    atomic_store_explicit(&h->in, l, memory_order_seq_cst);
    /* A lane that is running now is not destroyed before `in` is seen.  It may be another model's
     * than the one that was chosen, and smaller. */
    if ((uint32_t)atomic_load_explicit(&l->open, memory_order_seq_cst) > 0 &&
        h->member < atomic_load_explicit(&l->n_members, memory_order_relaxed)) {
        while (work(l, h, &serial, &h->chunk_ns)) {
            if ((uint32_t)atomic_load_explicit(&l->open, memory_order_relaxed) == 0) {
                /* nothing follows soon, and the thread that sends the result may need this core */
                end = atomic_load_explicit(&l->chained, memory_order_relaxed) ? WAIT_TIRED
                                                                              : WAIT_NEXT;
                break;
            }
            h->seen[l->index] = serial;
            end = wait_in_lane(l, h, serial, h->chunk_ns);
            if (end != WAIT_NEXT)
                break;
        }
    }
    atomic_store_explicit(&h->in, NULL, memory_order_release);
    return end;
}

static void set_asleep(struct helper *h, bool asleep)
{
    _Atomic uint64_t *w = &h->crew->asleep[h->member / WORD_BITS];
    const uint64_t bit = (uint64_t)1 << (h->member % WORD_BITS);
    if (asleep)
        atomic_fetch_or_explicit(w, bit, memory_order_seq_cst);
    else
        atomic_fetch_and_explicit(w, ~bit, memory_order_relaxed);
}

/* Waits until a lane has something to do: spins for spin_ns, then sleeps. */
static struct crew_lane *wait_for_work(struct helper *h, uint64_t spin_ns)
{
    struct crew *c = h->crew;
    struct crew_lane *l;
    uint64_t began = clock_ns();
    for (uint32_t i = 0; spin_ns > 0 && !must_step_back(h); i++) {
        if ((l = choose(h, NULL)))
            return l;
        if (atomic_load_explicit(&c->stop, memory_order_relaxed))
            return NULL;
        relax();
        if (i % 64 == 63 && clock_ns() - began > spin_ns)
            break;
    }
    atomic_store_explicit(&h->core, -1, memory_order_relaxed);
    for (;;) {
        const uint32_t bell = atomic_load_explicit(&c->bell, memory_order_seq_cst);
        set_asleep(h, true);
        l = choose(h, NULL);
        const bool stop = atomic_load_explicit(&c->stop, memory_order_seq_cst);
        if (!l && !stop)
            futex_wait((uint32_t *)(void *)&c->bell, bell);
        set_asleep(h, false);
        if (l || stop || (l = choose(h, NULL)))
            return l;
    }
}

static void *helper_main(void *arg)
{
    struct helper *h = arg;
    enum wait_end end = WAIT_NEXT;
    struct crew_lane *l;
    const int place = run_queue_join();
    while ((l = wait_for_work(h, end == WAIT_TIRED ? 0 : SPIN_IDLE_NS)))
        end = serve(h, l);
    run_queue_leave(place);
    return NULL;
}

/* ---- crews and lanes ------------------------------------------------------------------------- */

uint32_t crew_cores(void)
{
    cpu_set_t ours; /* those of taskset, a container or a unit, not all of the machine */
    long n = sched_getaffinity(0, sizeof(ours), &ours) == 0 ? CPU_COUNT(&ours)
                                                            : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (uint32_t)n;
}

int crew_create(struct crew **out, struct err *e)
{
    struct crew *c = mem_aligned(sizeof(*c));
    *out = NULL;
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "out of memory for compute threads");
    pthread_mutex_init(&c->lock, NULL);
    atomic_init(&c->most_threads, crew_cores());
    *out = c;
    return 0;
}

void crew_destroy(struct crew *c)
{
    if (!c)
        return;
    atomic_store_explicit(&c->stop, true, memory_order_seq_cst);
    atomic_fetch_add_explicit(&c->bell, 1, memory_order_seq_cst);
    futex_wake((uint32_t *)(void *)&c->bell);
    const uint32_t n = atomic_load_explicit(&c->n_helpers, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        struct helper *h = atomic_load_explicit(&c->helpers[i], memory_order_relaxed);
        pthread_join(h->thread, NULL);
    }
    for (uint32_t i = 0; i < n; i++)
        mem_free(atomic_load_explicit(&c->helpers[i], memory_order_relaxed));
    for (uint32_t i = 0; i < CREW_MAX_LANES; i++) {
        struct crew_lane *l = atomic_load_explicit(&c->lanes[i], memory_order_relaxed);
        assert(!l || !l->in_use);
        mem_free(l);
    }
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

uint32_t crew_n_threads(struct crew *c)
{
    return atomic_load_explicit(&c->n_helpers, memory_order_acquire);
}

/* Under the lock: ensures at least this many threads. */
static int grow(struct crew *c, uint32_t n_threads, struct err *e)
{
    for (uint32_t n = crew_n_threads(c); n < n_threads; n++) {
        struct helper *h = mem_aligned(sizeof(*h));
        if (!h)
            return err_set(e, SHOAL_ENOMEM, "out of memory for compute thread %u", n + 1);
        h->crew = c;
        h->member = n + 1;
        atomic_init(&h->core, -1);
        int rc = thread_create_numbered(&h->thread, "crew", h->member, helper_main, h, e);
        if (rc < 0) {
            mem_free(h);
            return rc;
        }
        atomic_store_explicit(&c->helpers[n], h, memory_order_release);
        atomic_store_explicit(&c->n_helpers, n + 1, memory_order_release);
    }
    if (n_threads + 1 > atomic_load_explicit(&c->most_threads, memory_order_relaxed))
        atomic_store_explicit(&c->most_threads, n_threads + 1, memory_order_relaxed);
    return 0;
}

/* Under the lock: an unused lane, or a new one. */
static int find_lane(struct crew_lane **out, struct crew *c, struct err *e)
{
    for (uint32_t i = 0; i < CREW_MAX_LANES; i++) {
        struct crew_lane *l = atomic_load_explicit(&c->lanes[i], memory_order_relaxed);
        if (l && l->in_use)
            continue;
        if (!l) {
            if (!(l = mem_aligned(sizeof(*l))))
                return err_set(e, SHOAL_ENOMEM, "out of memory for a lane of the compute threads");
            l->index = i;
            atomic_store_explicit(&c->lanes[i], l, memory_order_release);
        }
        *out = l;
        return 0;
    }
    return err_set(e, SHOAL_ELIMIT, "more than %u models with several threads", CREW_MAX_LANES);
}

static int open_lane(struct crew_lane **out, struct crew *c, uint32_t n_members, struct err *e)
{
    int rc;
    if (n_members == 1) { /* no thread of the crew ever looks at it */
        *out = mem_aligned(sizeof(**out));
        if (!*out)
            return err_set(e, SHOAL_ENOMEM, "out of memory for a lane of the compute threads");
        (*out)->index = NO_INDEX;
        return 0;
    }
    pthread_mutex_lock(&c->lock);
    rc = grow(c, n_members - 1, e);
    if (rc == 0)
        rc = find_lane(out, c, e);
    if (rc == 0)
        (*out)->in_use = true;
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int crew_lane_create(struct crew_lane **out, struct crew *c, uint32_t n_members, struct err *e)
{
    struct crew *own = NULL;
    struct crew_lane *l = NULL;
    *out = NULL;
    if (n_members == 0 || n_members > CREW_MAX_MEMBERS)
        return err_set(e, SHOAL_EINVAL, "%u compute threads, expected 1 to %u", n_members,
                       CREW_MAX_MEMBERS);
    int rc = c ? 0 : crew_create(&own, e);
    if (rc == 0)
        rc = open_lane(&l, c ? c : own, n_members, e);
    if (rc < 0) {
        crew_destroy(own);
        return rc;
    }
    l->crew = c ? c : own;
    l->own_crew = own != NULL;
    atomic_store_explicit(&l->n_members, n_members, memory_order_relaxed);
    atomic_store_explicit(&l->core, -1, memory_order_relaxed);
    atomic_store_explicit(&l->helped_ns, 0, memory_order_relaxed);
    crew_lane_set_urgency(l, 0, 0);
    *out = l;
    return 0;
}

/* Waits until no crew thread is in the lane: a late one may still compute a chunk that another
 * member has committed. */
static void wait_until_left(const struct crew_lane *l)
{
    const uint32_t n = crew_n_threads(l->crew);
    for (uint32_t i = 0; i < n; i++) {
        const struct helper *h = atomic_load_explicit(&l->crew->helpers[i], memory_order_acquire);
        for (uint32_t k = 0; atomic_load_explicit(&h->in, memory_order_seq_cst) == l; k++) {
            if (k < 64)
                sched_yield();
            else
                nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        }
    }
}

void crew_lane_destroy(struct crew_lane *l)
{
    if (!l)
        return;
    struct crew *c = l->crew, *own = l->own_crew ? c : NULL;
    assert((uint32_t)atomic_load_explicit(&l->open, memory_order_seq_cst) == 0);
    if (l->index == NO_INDEX) {
        mem_free(l);
    } else {
        wait_until_left(l);
        pthread_mutex_lock(&c->lock);
        l->in_use = false;
        pthread_mutex_unlock(&c->lock);
    }
    crew_destroy(own);
}

uint32_t crew_lane_size(const struct crew_lane *l)
{
    return atomic_load_explicit(&l->n_members, memory_order_relaxed);
}

void crew_lane_set_urgency(struct crew_lane *l, int32_t priority, uint64_t deadline_ns)
{
    atomic_store_explicit(&l->priority, priority, memory_order_relaxed);
    atomic_store_explicit(&l->deadline_ns, deadline_ns ? deadline_ns : UINT64_MAX,
                          memory_order_relaxed);
}

/* The lane has a program in flight from now on, or no longer. */
static void set_running(struct crew_lane *l, bool running)
{
    struct crew *c = l->crew;
    if (running && l->index != NO_INDEX &&
        atomic_load_explicit(&c->n_running, memory_order_relaxed) > 0)
        set_credit(l);
    if (running)
        atomic_fetch_add_explicit(&c->n_running, 1, memory_order_seq_cst);
    if (l->index != NO_INDEX) {
        const uint64_t bit = (uint64_t)1 << (l->index % WORD_BITS);
        if (running)
            atomic_fetch_or_explicit(&c->running[l->index / WORD_BITS], bit, memory_order_seq_cst);
        else
            atomic_fetch_and_explicit(&c->running[l->index / WORD_BITS], ~bit,
                                      memory_order_seq_cst);
    }
    /* With one program less, a crew thread that stepped back may help the others. */
    if (!running && atomic_fetch_sub_explicit(&c->n_running, 1, memory_order_seq_cst) > 1)
        wake_helpers(c, crew_n_threads(c) + 1);
}

void crew_run(struct crew_lane *l, void *ctx, const struct crew_phase *phases, uint32_t n_phases,
              crew_more_fn more)
{
    uint32_t first = serial_of(atomic_load_explicit(&l->open, memory_order_relaxed)) + 1, serial;
    /* No member reads these while no chunk can be taken: the last program's serial is closed. */
    l->ctx = ctx;
    l->more = more;
    atomic_store_explicit(&l->chained, more != NULL, memory_order_relaxed);
    set_running(l, true);
    if (begin_program(l, phases, n_phases, first, 0) || next_program(l, first, 0)) {
        publish(l, first, &l->phases[first - l->first_serial]);
        uint64_t chunk_ns = 0;
        for (;;) {
            (void)work(l, NULL, &serial, &chunk_ns);
            if ((uint32_t)atomic_load_explicit(&l->open, memory_order_acquire) == 0)
                break;
            if (wait_in_lane(l, NULL, serial, chunk_ns) == WAIT_TIRED)
                sleep_past(l, serial);
        }
        atomic_store_explicit(&l->core, -1, memory_order_relaxed);
    }
    set_running(l, false);
}
