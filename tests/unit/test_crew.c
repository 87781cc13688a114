/* test_crew.c - phases run in order, every chunk once, whatever the number of members. */
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
                p.phases[i] = (struct crew_phase){chunk, finish, i, (i * 7 + round) % 9 * 3};
            crew_run(c, &p, p.phases, N_PHASES);
            assert_int_equal(atomic_load(&p.errors), 0);
            assert_int_equal(atomic_load(&p.finished), N_PHASES);
            if (round % 100 == 50)
                usleep(1000); /* let members fall asleep */
        }
        crew_destroy(c);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chunk_runs_once_in_order),
        cmocka_unit_test(test_bad_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
