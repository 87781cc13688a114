/* test_crew.c - phases run in order, every chunk once, whatever the number of members. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
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
        struct crew *c = NULL;
        assert_int_equal(crew_create(&c, members, NULL), 0);
        assert_int_equal(crew_size(c), members);
        for (uint32_t round = 0; round < 300; round++) {
            memset(&p, 0, sizeof(p));
            for (uint32_t i = 0; i < N_PHASES; i++)
                p.phases[i] = (struct crew_phase){.chunk = chunk,
                                                  .finish = finish,
                                                  .arg = i,
                                                  .n_chunks = (i * 7 + round) % 9 * 3};
            crew_run(c, &p, p.phases, N_PHASES);
            assert_int_equal(atomic_load(&p.errors), 0);
            assert_int_equal(atomic_load(&p.finished), N_PHASES);
            if (round % 100 == 50)
                usleep(1000); /* let members fall asleep */
        }
        crew_destroy(c);
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
    struct crew *c = NULL;
    uint32_t redone = 0;
    assert_int_equal(crew_create(&c, 3, NULL), 0);
    for (uint32_t round = 0; round < 20; round++) {
        memset(&l, 0, sizeof(l));
        for (uint32_t i = 0; i < N_PHASES; i++)
            l.phases[i] = (struct crew_phase){
                .chunk = late_chunk, .commit = late_commit, .arg = i, .n_chunks = 6};
        crew_run(c, &l, l.phases, N_PHASES);
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
    crew_destroy(c);
#ifndef __SANITIZE_THREAD__
    assert_true(redone >= 10); /* mostly somebody else was there to do it */
#endif
}

static void test_bad_sizes_are_refused(void **state)
{
    (void)state;
    struct crew *c = NULL;
    struct err e = {0};
    assert_int_equal(crew_create(&c, 0, &e), SHOAL_EINVAL);
    assert_int_equal(crew_create(&c, 1000, &e), SHOAL_EINVAL);
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
    struct crew *c;
    assert_int_equal(crew_create(&c, 4, NULL), 0);
    for (int round = 0; round < 20; round++) {
        struct meeting m = {0};
        crew_run(c, &m, &(struct crew_phase){.chunk = meet_chunk, .n_chunks = 4}, 1);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(m.who[i], i);
    }
    crew_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chunk_runs_once_in_order),
        cmocka_unit_test(test_a_late_member_is_not_waited_for),
        cmocka_unit_test(test_bad_sizes_are_refused),
        cmocka_unit_test(test_members_begin_with_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
