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

#include "base/crew.h"

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

/* A member that is away for a while, as if the OS had taken its core: the others do its chunk, and
 * what it brings late changes nothing. */
struct late {
    _Atomic uint32_t commits[N_PHASES][MAX_CHUNKS];
    uint32_t stage[4], result[N_PHASES][MAX_CHUNKS];
    _Atomic uint32_t computed, naps;
    struct crew_phase phases[N_PHASES];
};

static void late_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct late *l = ctx;
    atomic_fetch_add(&l->computed, 1);
    if (p->arg == 5 && c == 2 && atomic_fetch_add(&l->naps, 1) == 0)
        usleep(30000); /* whoever comes first */
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
    struct crew_lane *c = NULL;
    uint32_t redone = 0;
    assert_int_equal(crew_lane_create(&c, NULL, 3, NULL), 0);
    for (uint32_t round = 0; round < 20; round++) {
        memset(&l, 0, sizeof(l));
        for (uint32_t i = 0; i < N_PHASES; i++)
            l.phases[i] = (struct crew_phase){
                .chunk = late_chunk, .commit = late_commit, .arg = i, .n_chunks = 6};
        crew_run(c, &l, l.phases, N_PHASES, NULL);
        for (uint32_t i = 0; i < N_PHASES; i++)
            for (uint32_t k = 0; k < 6; k++) {
                assert_int_equal(atomic_load(&l.commits[i][k]), 1);
                assert_int_equal(l.result[i][k], i * 1000 + k);
            }
        redone += atomic_load(&l.computed) - N_PHASES * 6;
        usleep(40000); /* l is reused: let the late one come home */
        for (uint32_t i = 0; i < N_PHASES; i++)
            for (uint32_t k = 0; k < 6; k++)
                assert_int_equal(atomic_load(&l.commits[i][k]), 1);
    }
    crew_lane_destroy(c);
#ifndef __SANITIZE_THREAD__
    assert_true(redone >= 10); /* mostly somebody else was there to do it */
#endif
}

/* Programs that follow each other without their owner. */
#define N_PROGRAMS 40u
struct following {
    struct late late;
    uint32_t given; /* no two at a time may ask for the next */
    _Atomic uint32_t asking, by_others, errors;
    pthread_t owner;
    bool empty_ones;
};

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
            .chunk = late_chunk, .commit = late_commit, .arg = i, .n_chunks = empty ? 0 : 6};
    if (f->given % 10 == 9)
        atomic_store(&f->late.naps, 0); /* somebody is away again */
    *phases = f->late.phases;
    atomic_fetch_sub(&f->asking, 1);
    return f->given++ < N_PROGRAMS ? N_PHASES : 0;
}

static void test_programs_follow_without_their_owner(void **state)
{
    (void)state;
    static struct following f;
    uint32_t by_others = 0;
    for (uint32_t members = 1; members <= 3; members++) {
        struct crew_lane *c = NULL;
        assert_int_equal(crew_lane_create(&c, NULL, members, NULL), 0);
        for (uint32_t round = 0; round < 4; round++) {
            memset(&f, 0, sizeof(f));
            f.owner = pthread_self();
            f.empty_ones = round % 2;
            crew_run(c, &f, NULL, 0, next_program);
            assert_int_equal(f.given, N_PROGRAMS + 1);
            assert_int_equal(atomic_load(&f.errors), 0);
            usleep(40000); /* f is reused: let the late one come home */
        }
        by_others += atomic_load(&f.by_others);
        crew_lane_destroy(c);
    }
    assert_true(by_others > 0);
}

/* Who waits brings near what it begins the next phase with. */
struct fetching {
    _Atomic uint32_t steps[4], errors;
};

static void slow_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    (void)ctx;
    (void)member;
    if (p->arg == 0 && chunk == 3)
        usleep(20000); /* the others wait for this one */
}

static bool fetch(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t step)
{
    struct fetching *f = ctx;
    if (p->arg != 1 || chunk % 2 != 0 || chunk > 6 || step > 2)
        atomic_fetch_add(&f->errors, 1);
    else
        atomic_fetch_add(&f->steps[chunk / 2], 1);
    return step < 2;
}

static void test_who_waits_fetches_ahead(void **state)
{
    (void)state;
    struct crew_lane *c;
    struct fetching f = {0};
    const struct crew_phase phases[] = {
        {.chunk = slow_chunk, .n_chunks = 4},
        {.n_chunks = 0}, /* nothing to fetch: the one after it counts */
        {.chunk = slow_chunk, .ahead = fetch, .arg = 1, .n_chunks = 8},
    };
    assert_int_equal(crew_lane_create(&c, NULL, 4, NULL), 0);
    for (int round = 0; round < 5; round++)
        crew_run(c, &f, phases, 3, NULL);
    crew_lane_destroy(c);
    uint32_t fetched = 0;
    for (uint32_t i = 0; i < 4; i++)
        fetched += atomic_load(&f.steps[i]);
    assert_int_equal(atomic_load(&f.errors), 0);
    assert_true(fetched >= 3);
}

/* A member that shares its core may move, but what its thread is allowed stays as it was. */
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
    for (int narrow = 0; narrow < 2; narrow++) { /* all on one core; then where the OS puts them */
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

/* Every member is held until all have a chunk: then each has one of its own share. */
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
    while (atomic_load(&m->here) < 4)
        sched_yield();
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
        cmocka_unit_test(test_who_waits_fetches_ahead),
        cmocka_unit_test(test_threads_may_run_where_they_might),
        cmocka_unit_test(test_bad_sizes_are_refused),
        cmocka_unit_test(test_members_begin_with_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
