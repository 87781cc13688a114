/* test_crew.c - phases run in order, every chunk once, whatever the number of members. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread/crew.h"
#include "support/watchdog.h"

enum { N_PHASES = 40, MAX_CHUNKS = 64 };

struct probe {
    _Atomic uint32_t ran[N_PHASES][MAX_CHUNKS];
    _Atomic uint32_t finished; /* phases finished so far */
    _Atomic uint32_t errors;
    struct crew_phase phases[N_PHASES];
};

static void chunk(void *ctx, const struct crew_phase *phase, uint32_t c, uint32_t member)
{
    struct probe *p = ctx;
    uint32_t arg = phase->arg;
    (void)member;
    if (atomic_load(&p->finished) != arg) /* a chunk may run only while its phase is open */
        atomic_fetch_add(&p->errors, 1);
    atomic_fetch_add(&p->ran[arg][c], 1);
}

static void finish(void *ctx, const struct crew_phase *phase, uint32_t member)
{
    struct probe *p = ctx;
    uint32_t arg = phase->arg;
    (void)member;
    for (uint32_t i = 0; i < p->phases[arg].n_chunks; i++)
        if (atomic_load(&p->ran[arg][i]) != 1)
            atomic_fetch_add(&p->errors, 1);
    if (atomic_fetch_add(&p->finished, 1) != arg)
        atomic_fetch_add(&p->errors, 1);
}

static void test_every_chunk_runs_once_in_order(void **state)
{
    (void)state;
    static struct probe p;
    for (uint32_t members = 1; members <= 4; members++) {
        struct crew_lane *c = NULL;
        assert_int_equal(crew_lane_create(&c, NULL, members, NULL), 0);
        assert_int_equal(crew_lane_size(c), members);
        for (uint32_t round = 0; round < 300; round++) {
            memset(&p, 0, sizeof(p));
            for (uint32_t i = 0; i < N_PHASES; i++)
                p.phases[i] = (struct crew_phase){.chunk = chunk,
                                                  .finish = finish,
                                                  .arg = i,
                                                  .n_chunks = (i * 7 + round) % 9 * 3};
            crew_run(c, &p, p.phases, N_PHASES, NULL);
            assert_int_equal(atomic_load(&p.errors), 0);
            assert_int_equal(atomic_load(&p.finished), N_PHASES);
            if (round % 100 == 50)
                usleep(1000); /* let members fall asleep */
        }
        crew_lane_destroy(c);
    }
}

/* A member is away for a while, as if the OS had preempted it: the others may do its chunk, and
 * its late result changes nothing. Whether they do depends on the scheduler, so rounds repeat
 * until it has happened. */
enum { AWAY_MS = 30, MAX_ROUNDS = 2000 };

struct late {
    _Atomic uint32_t commits[N_PHASES][MAX_CHUNKS];
    uint32_t stage[4], result[N_PHASES][MAX_CHUNKS];
    _Atomic uint32_t computed;
    _Atomic uint32_t arrivals; /* at the chunk with the late member */
    _Atomic bool away;         /* the next one to arrive is late */
    bool alone;                /* nobody else can arrive */
    struct crew_phase phases[N_PHASES];
};

#ifdef __SANITIZE_THREAD__
enum { CREW_REDOES = false }; /* see crew.c */
#else
enum { CREW_REDOES = true };
#endif

static void late_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct late *l = ctx;
    atomic_fetch_add(&l->computed, 1);
    if (p->arg == 5 && c == 2) {
        const uint32_t arrived = atomic_fetch_add(&l->arrivals, 1) + 1;
        if (atomic_exchange(&l->away, false) && CREW_REDOES && !l->alone)
            for (int ms = 0; ms < AWAY_MS && atomic_load(&l->arrivals) == arrived; ms++)
                usleep(1000);
    }
    l->stage[member] = p->arg * 1000 + c;
}

static void late_commit(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct late *l = ctx;
    atomic_fetch_add(&l->commits[p->arg][c], 1);
    l->result[p->arg][c] = l->stage[member];
}

static void test_a_late_member_is_not_waited_for(void **state)
{
    (void)state;
    static struct late l;
    uint32_t redone = 0, round = 0;
    for (; round < 20 || (CREW_REDOES && redone == 0); round++) {
        struct crew_lane *c = NULL;
        assert_true(round < MAX_ROUNDS);
        assert_int_equal(crew_lane_create(&c, NULL, 3, NULL), 0);
        memset(&l, 0, sizeof(l));
        l.away = true;
        for (uint32_t i = 0; i < N_PHASES; i++)
            l.phases[i] = (struct crew_phase){
                .chunk = late_chunk, .commit = late_commit, .arg = i, .n_chunks = 6};
        crew_run(c, &l, l.phases, N_PHASES, NULL);
        for (uint32_t i = 0; i < N_PHASES; i++)
            for (uint32_t k = 0; k < 6; k++) {
                assert_int_equal(atomic_load(&l.commits[i][k]), 1);
                assert_int_equal(l.result[i][k], i * 1000 + k);
            }
        crew_lane_destroy(c); /* ends when the late member is back */
        redone += atomic_load(&l.computed) - N_PHASES * 6;
        for (uint32_t i = 0; i < N_PHASES; i++)
            for (uint32_t k = 0; k < 6; k++)
                assert_int_equal(atomic_load(&l.commits[i][k]), 1);
    }
}

/* Programs that follow each other without their owner. */
#define N_PROGRAMS 40u
struct following {
    struct late late;
    uint32_t given; /* only one at a time may request the next */
    _Atomic uint32_t asking, by_others, errors;
    pthread_t owner;
    _Atomic bool owner_left;
    bool empty_ones;
};

/* The owner is away at first: others may finish the program and request the next. */
static void follow_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct following *f = ctx;
    if (CREW_REDOES && !f->late.alone && pthread_equal(pthread_self(), f->owner) &&
        !atomic_exchange(&f->owner_left, true))
        for (int ms = 0; ms < AWAY_MS && atomic_load(&f->by_others) == 0; ms++)
            usleep(1000);
    late_chunk(&f->late, p, c, member);
}

static uint32_t next_program(void *ctx, const struct crew_phase **phases)
{
    struct following *f = ctx;
    if (atomic_fetch_add(&f->asking, 1) != 0)
        atomic_fetch_add(&f->errors, 1);
    if (!pthread_equal(pthread_self(), f->owner))
        atomic_fetch_add(&f->by_others, 1);
    for (uint32_t i = 0; f->given > 0 && i < N_PHASES; i++)
        for (uint32_t k = 0; k < f->late.phases[i].n_chunks; k++)
            if (atomic_exchange(&f->late.commits[i][k], 0) != 1 ||
                f->late.result[i][k] != i * 1000 + k)
                atomic_fetch_add(&f->errors, 1);
    const bool empty = f->empty_ones && f->given % 3 == 1;
    for (uint32_t i = 0; i < N_PHASES; i++)
        f->late.phases[i] = (struct crew_phase){
            .chunk = follow_chunk, .commit = late_commit, .arg = i, .n_chunks = empty ? 0 : 6};
    if (f->given % 10 == 9)
        atomic_store(&f->late.away, true); /* somebody is away again */
    *phases = f->late.phases;
    atomic_fetch_sub(&f->asking, 1);
    return f->given++ < N_PROGRAMS ? N_PHASES : 0;
}

static void test_programs_follow_without_their_owner(void **state)
{
    (void)state;
    static struct following f;
    for (uint32_t members = 1; members <= 3; members++) {
        uint32_t by_others = 0, round = 0;
        for (; round < 4 || (members > 1 && by_others == 0); round++) {
            struct crew_lane *c = NULL;
            assert_true(round < MAX_ROUNDS);
            assert_int_equal(crew_lane_create(&c, NULL, members, NULL), 0);
            memset(&f, 0, sizeof(f));
            f.owner = pthread_self();
            f.late.alone = members == 1;
            f.empty_ones = round % 2;
            crew_run(c, &f, NULL, 0, next_program);
            assert_int_equal(f.given, N_PROGRAMS + 1);
            assert_int_equal(atomic_load(&f.errors), 0);
            crew_lane_destroy(c); /* ends when the late member is back */
            by_others += atomic_load(&f.by_others);
        }
    }
}

/* A waiting member prefetches the data that it needs first in the next phase. */
struct fetching {
    _Atomic uint32_t steps[4], fetched, errors;
    uint32_t rounds;
};

static void slow_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct fetching *f = ctx;
    (void)member;
    if (p->arg == 0 && chunk == 3) /* the others wait for this one */
        WAIT_UNTIL(atomic_load(&f->fetched) >= f->rounds);
}

static bool fetch(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t step)
{
    struct fetching *f = ctx;
    if (p->arg != 1 || chunk % 2 != 0 || chunk > 6 || step > 2)
        atomic_fetch_add(&f->errors, 1);
    else
        atomic_fetch_add(&f->steps[chunk / 2], 1);
    if (step == 0)
        atomic_fetch_add(&f->fetched, 1);
    return step < 2;
}

static void test_waiting_members_fetch_ahead(void **state)
{
    (void)state;
    struct crew_lane *c;
    struct fetching f = {0};
    const struct crew_phase phases[] = {
        {.chunk = slow_chunk, .n_chunks = 4},
        {.n_chunks = 0}, /* nothing to fetch: the phase after it counts */
        {.chunk = slow_chunk, .ahead = fetch, .arg = 1, .n_chunks = 8},
    };
    assert_int_equal(crew_lane_create(&c, NULL, 4, NULL), 0);
    for (f.rounds = 1; f.rounds <= 5; f.rounds++)
        crew_run(c, &f, phases, 3, NULL);
    crew_lane_destroy(c);
    uint32_t steps = 0;
    for (uint32_t i = 0; i < 4; i++)
        steps += atomic_load(&f.steps[i]);
    assert_int_equal(atomic_load(&f.errors), 0);
    assert_in_range(steps, 5, 5 * 4 * 3);
}

/* A member that shares its core may move, but its thread's affinity does not change. */
struct placed {
    cpu_set_t allowed;
    _Atomic uint32_t errors;
};

static void placed_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct placed *s = ctx;
    cpu_set_t now;
    (void)p;
    (void)member;
    for (uint32_t i = 0; i < (chunk ? 1000 : 200000); i++)
        atomic_load(&s->errors); /* some are long: the others wait */
    if (sched_getaffinity(0, sizeof(now), &now) != 0 || !CPU_EQUAL(&now, &s->allowed))
        atomic_fetch_add(&s->errors, 1);
}

static void test_threads_may_run_where_they_might(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    for (int narrow = 0; narrow < 2;
         narrow++) { /* all on one core, then wherever the OS puts them */
        struct placed s = {.allowed = narrow ? all : one};
        struct crew_lane *c;
        assert_int_equal(sched_setaffinity(0, sizeof(s.allowed), &s.allowed), 0);
        assert_int_equal(crew_lane_create(&c, NULL, 3, NULL), 0);
        for (int round = 0; round < 50; round++)
            crew_run(c, &s, &(struct crew_phase){.chunk = placed_chunk, .n_chunks = 6}, 1, NULL);
        crew_lane_destroy(c);
        assert_int_equal(atomic_load(&s.errors), 0);
    }
}

static void test_bad_sizes_are_refused(void **state)
{
    (void)state;
    struct crew_lane *c = NULL;
    struct err e = {0};
    assert_int_equal(crew_lane_create(&c, NULL, 0, &e), SHOAL_EINVAL);
    assert_int_equal(crew_lane_create(&c, NULL, 1000, &e), SHOAL_EINVAL);
    assert_null(c);
}

/* Holds every member until all have a chunk, so that each gets one of its own share. */
struct meeting {
    _Atomic uint32_t here;
    uint32_t who[4];
};

static void meet_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct meeting *m = ctx;
    (void)p;
    m->who[chunk] = member;
    atomic_fetch_add(&m->here, 1);
    WAIT_UNTIL(atomic_load(&m->here) >= 4);
}

static void test_members_begin_with_their_share(void **state)
{
    (void)state;
    struct crew_lane *c;
    assert_int_equal(crew_lane_create(&c, NULL, 4, NULL), 0);
    for (int round = 0; round < 20; round++) {
        struct meeting m = {0};
        crew_run(c, &m, &(struct crew_phase){.chunk = meet_chunk, .n_chunks = 4}, 1, NULL);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(m.who[i], i);
    }
    crew_lane_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chunk_runs_once_in_order),
        cmocka_unit_test(test_a_late_member_is_not_waited_for),
        cmocka_unit_test(test_programs_follow_without_their_owner),
        cmocka_unit_test(test_waiting_members_fetch_ahead),
        cmocka_unit_test(test_threads_may_run_where_they_might),
        cmocka_unit_test(test_bad_sizes_are_refused),
        cmocka_unit_test(test_members_begin_with_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
