/* test_crew_shared.c - several lanes on the threads of one crew. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread/crew.h"
#include "support/watchdog.h"

enum { N_PHASES = 20, N_CHUNKS = 12, MAX_LANES = 8 };

/* ---- a program that checks itself ------------------------------------------------------------ */

struct probe {
    _Atomic uint32_t ran[N_PHASES][N_CHUNKS];
    _Atomic uint32_t finished; /* phases so far */
    _Atomic uint32_t errors, most_member;
    uint32_t stage[8], result[N_PHASES][N_CHUNKS];
    uint32_t n_members, value;
    struct crew_phase phases[N_PHASES];
};

static void note_member(struct probe *p, uint32_t member)
{
    uint32_t most = atomic_load(&p->most_member);
    while (member > most && !atomic_compare_exchange_weak(&p->most_member, &most, member))
        ;
    if (member >= p->n_members)
        atomic_fetch_add(&p->errors, 1);
}

static void probe_chunk(void *ctx, const struct crew_phase *phase, uint32_t c, uint32_t member)
{
    struct probe *p = ctx;
    note_member(p, member);
    if (!phase->commit) {
        if (atomic_load(&p->finished) != phase->arg)
            atomic_fetch_add(&p->errors, 1);
        atomic_fetch_add(&p->ran[phase->arg][c], 1);
    }
    p->stage[member] = p->value + phase->arg * 100 + c;
}

static void probe_commit(void *ctx, const struct crew_phase *phase, uint32_t c, uint32_t member)
{
    struct probe *p = ctx;
    atomic_fetch_add(&p->ran[phase->arg][c], 1);
    p->result[phase->arg][c] = p->stage[member];
}

static void probe_finish(void *ctx, const struct crew_phase *phase, uint32_t member)
{
    struct probe *p = ctx;
    (void)member;
    for (uint32_t i = 0; i < phase->n_chunks; i++)
        if (atomic_load(&p->ran[phase->arg][i]) != 1 ||
            (phase->commit && p->result[phase->arg][i] != p->value + phase->arg * 100 + i))
            atomic_fetch_add(&p->errors, 1);
    if (atomic_fetch_add(&p->finished, 1) != phase->arg)
        atomic_fetch_add(&p->errors, 1);
}

/* Every second phase has a commit. */
static void probe_run(struct probe *p, struct crew_lane *l, uint32_t round)
{
    for (uint32_t i = 0; i < N_PHASES; i++) {
        for (uint32_t k = 0; k < N_CHUNKS; k++)
            atomic_store(&p->ran[i][k], 0);
        p->phases[i] = (struct crew_phase){.chunk = probe_chunk,
                                           .commit = i % 2 ? probe_commit : NULL,
                                           .finish = probe_finish,
                                           .arg = i,
                                           .n_chunks = (i * 7 + round) % (N_CHUNKS + 1)};
    }
    p->n_members = crew_lane_size(l);
    atomic_store(&p->finished, 0);
    crew_run(l, p, p->phases, N_PHASES, NULL);
}

struct owner {
    struct crew *crew;
    uint32_t n_members, rounds, value;
    _Atomic bool *until; /* NULL: run this many rounds */
    uint32_t errors, n_run;
    bool own_lanes; /* a new lane for every round, whose memory is freed at once */
    pthread_t thread;
};

static void *owner_main(void *arg)
{
    struct owner *o = arg;
    struct crew_lane *lane = NULL;
    struct probe *p = NULL;
    for (; o->until ? !atomic_load(o->until) : o->n_run < o->rounds; o->n_run++) {
        if (!lane && crew_lane_create(&lane, o->crew, o->n_members, NULL) < 0) {
            o->errors++;
            return NULL;
        }
        if (!p)
            p = calloc(1, sizeof(*p));
        p->value = o->value + o->n_run;
        probe_run(p, lane, o->n_run);
        if (atomic_load(&p->finished) != N_PHASES)
            o->errors++;
        if (o->own_lanes || o->n_run % 50 == 49) {
            crew_lane_destroy(lane);
            lane = NULL;
        }
        if (o->own_lanes) { /* no thread of the crew may use it any more */
            o->errors += atomic_load(&p->errors);
            memset(p, 0xff, sizeof(*p));
            free(p);
            p = NULL;
        }
    }
    crew_lane_destroy(lane);
    if (p)
        o->errors += atomic_load(&p->errors);
    free(p);
    return NULL;
}

static void start(struct owner *o)
{
    assert_int_equal(pthread_create(&o->thread, NULL, owner_main, o), 0);
}

static void join(struct owner *o)
{
    pthread_join(o->thread, NULL);
    assert_int_equal(o->errors, 0);
}

static void test_two_programs_at_once(void **state)
{
    (void)state;
    struct crew *c;
    assert_int_equal(crew_create(&c, NULL), 0);
    struct owner o[2] = {{.crew = c, .n_members = 4, .rounds = 400, .value = 1},
                         {.crew = c, .n_members = 3, .rounds = 400, .value = 700000}};
    for (int i = 0; i < 2; i++)
        start(&o[i]);
    for (int i = 0; i < 2; i++)
        join(&o[i]);
    assert_int_equal(crew_n_threads(c), 3); /* those of the wider lane, shared by both */
    crew_destroy(c);
}

static void test_many_lanes_on_two_threads(void **state)
{
    (void)state;
    struct crew *c;
    struct owner o[MAX_LANES];
    assert_int_equal(crew_create(&c, NULL), 0);
    for (uint32_t i = 0; i < MAX_LANES; i++) {
        o[i] = (struct owner){.crew = c, .n_members = 1 + i % 2, .rounds = 60, .value = i * 100000};
        start(&o[i]);
    }
    for (uint32_t i = 0; i < MAX_LANES; i++) {
        join(&o[i]);
        assert_int_equal(o[i].n_run, 60);
    }
    assert_int_equal(crew_n_threads(c), 1);
    crew_destroy(c);
}

static void test_lanes_come_and_go_while_others_run(void **state)
{
    (void)state;
    struct crew *c;
    _Atomic bool stop = false;
    assert_int_equal(crew_create(&c, NULL), 0);
    struct owner steady = {.crew = c, .n_members = 3, .until = &stop, .value = 1};
    struct owner passing[2] = {
        {.crew = c, .n_members = 4, .rounds = 150, .own_lanes = true, .value = 1000000},
        {.crew = c, .n_members = 2, .rounds = 150, .own_lanes = true, .value = 2000000}};
    start(&steady);
    start(&passing[0]);
    start(&passing[1]);
    join(&passing[0]);
    join(&passing[1]);
    atomic_store(&stop, true);
    join(&steady);
    crew_destroy(c);
}

/* ---- members --------------------------------------------------------------------------------- */

static void test_a_lane_keeps_to_its_members(void **state)
{
    (void)state;
    struct crew *c;
    struct probe *p = calloc(1, sizeof(*p));
    assert_non_null(p);
    assert_int_equal(crew_create(&c, NULL), 0);
    /* Also in sequence, where a smaller lane reuses the memory of a larger one. */
    static const uint32_t sizes[] = {4, 2, 1, 3, 1, 4, 2};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct crew_lane *l;
        assert_int_equal(crew_lane_create(&l, c, sizes[i], NULL), 0);
        assert_int_equal(crew_lane_size(l), sizes[i]);
        atomic_store(&p->most_member, 0);
        for (uint32_t round = 0; round < 50; round++)
            probe_run(p, l, round);
        assert_int_equal(atomic_load(&p->errors), 0);
        assert_true(atomic_load(&p->most_member) < sizes[i]);
        crew_lane_destroy(l);
    }
    assert_int_equal(crew_n_threads(c), 3);
    free(p);
    crew_destroy(c);
}

static void test_bad_sizes_and_too_many_lanes(void **state)
{
    (void)state;
    struct crew *c;
    struct crew_lane *lanes[CREW_MAX_LANES], *more = NULL;
    struct err e = {0};
    assert_int_equal(crew_create(&c, NULL), 0);
    assert_int_equal(crew_lane_create(&more, c, 0, &e), SHOAL_EINVAL);
    assert_int_equal(crew_lane_create(&more, c, CREW_MAX_MEMBERS + 1, &e), SHOAL_EINVAL);
    for (uint32_t i = 0; i < CREW_MAX_LANES; i++)
        assert_int_equal(crew_lane_create(&lanes[i], c, 2, &e), 0);
    assert_int_equal(crew_lane_create(&more, c, 2, &e), SHOAL_ELIMIT);
    assert_null(more);
    assert_int_equal(crew_lane_create(&more, c, 1, &e), 0); /* needs no slot among them */
    crew_lane_destroy(more);
    for (uint32_t i = 0; i < CREW_MAX_LANES; i++)
        crew_lane_destroy(lanes[i]);
    crew_destroy(c);
}

/* ---- a late thread --------------------------------------------------------------------------- */

struct late {
    _Atomic uint32_t asleep, woke, committed;
    uint32_t stage[3];
};

/* The first crew thread to arrive stays away for long, as if it were descheduled. */
static void late_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct late *l = ctx;
    (void)p;
    if (member > 0 && atomic_fetch_add(&l->asleep, 1) == 0) {
        usleep(60000);
        l->stage[member] = chunk;
        atomic_store(&l->woke, 1);
    } else if (member == 0) {
        for (int i = 0; i < 100000 && atomic_load(&l->asleep) == 0; i++)
            usleep(100); /* until a crew thread has arrived, even on a busy machine */
    }
}

static void late_commit(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct late *l = ctx;
    (void)p;
    (void)chunk;
    (void)member;
    atomic_fetch_add(&l->committed, 1);
}

static void test_destroy_waits_for_a_late_thread(void **state)
{
    (void)state;
    struct crew *c;
    uint32_t n_late = 0;
    assert_int_equal(crew_create(&c, NULL), 0);
    for (int round = 0; round < 5; round++) {
        struct crew_lane *l;
        struct late *late = calloc(1, sizeof(*late));
        const struct crew_phase phase = {.chunk = late_chunk, .commit = late_commit, .n_chunks = 6};
        assert_non_null(late);
        assert_int_equal(crew_lane_create(&l, c, 2, NULL), 0);
        crew_run(l, late, &phase, 1, NULL);
        assert_int_equal(atomic_load(&late->committed), 6); /* with or without the late one */
        crew_lane_destroy(l);
        const uint32_t asleep = atomic_load(&late->asleep);
        n_late += asleep > 0;
        assert_int_equal(atomic_load(&late->woke),
                         asleep > 0); /* it is back: nobody holds `late` */
        free(late);
    }
    assert_true(n_late > 0);
    crew_destroy(c);
}

/* ---- who is helped --------------------------------------------------------------------------- */

struct contest; /* of two lanes for one crew thread */

struct contestant {
    struct contest *contest;
    struct crew_lane *lane;
    uint32_t n_chunks;
    _Atomic uint32_t started, by_crew;
    pthread_t thread;
};

struct contest {
    struct contestant low, high;
    _Atomic bool high_waits; /* when the crew thread ended its last chunk */
    _Atomic uint32_t wrong;
};

static bool has_more(struct contestant *k)
{
    const uint32_t started = atomic_load(&k->started);
    return started > 0 && started + 4 < k->n_chunks;
}

static void contest_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct contestant *k = ctx;
    struct contest *x = k->contest;
    (void)p;
    (void)chunk;
    atomic_fetch_add(&k->started, 1);
    if (member > 0) {
        atomic_fetch_add(&k->by_crew, 1);
        if (k == &x->low && atomic_load(&x->high_waits) && has_more(&x->high))
            atomic_fetch_add(&x->wrong, 1);
    }
    usleep(300);
    /* Halfway an owner waits for help, however busy the machine is. */
    for (int i = 0; member == 0 && i < 100000 && atomic_load(&k->by_crew) == 0 &&
                    atomic_load(&k->started) > k->n_chunks / 2;
         i++)
        usleep(100);
    if (member > 0)
        atomic_store(&x->high_waits, has_more(&x->high));
}

static void *contest_main(void *arg)
{
    struct contestant *k = arg;
    const struct crew_phase phase = {.chunk = contest_chunk, .n_chunks = k->n_chunks};
    crew_run(k->lane, k, &phase, 1, NULL);
    return NULL;
}

/* Two lanes and, beside their owners, one crew thread that may compute. */
static void run_contest(struct contest *x, int32_t priority, uint32_t n_high)
{
    struct crew *c;
    assert_int_equal(crew_create(&c, NULL), 0);
    /* As wide as needed for one thread beside two owners, whatever the machine. */
    const uint32_t size = crew_cores() > 3 ? crew_cores() : 3;
    *x = (struct contest){.low = {.contest = x, .n_chunks = 300},
                          .high = {.contest = x, .n_chunks = n_high}};
    assert_int_equal(crew_lane_create(&x->low.lane, c, size, NULL), 0);
    assert_int_equal(crew_lane_create(&x->high.lane, c, 2, NULL), 0);
    crew_lane_set_urgency(x->high.lane, priority, 0);
    assert_int_equal(pthread_create(&x->low.thread, NULL, contest_main, &x->low), 0);
    WAIT_UNTIL(atomic_load(&x->low.started) >= 4);
    assert_int_equal(pthread_create(&x->high.thread, NULL, contest_main, &x->high), 0);
    pthread_join(x->high.thread, NULL);
    pthread_join(x->low.thread, NULL);
    assert_int_equal(atomic_load(&x->low.started), 300);
    assert_int_equal(atomic_load(&x->high.started), n_high);
    crew_lane_destroy(x->low.lane);
    crew_lane_destroy(x->high.lane);
    crew_destroy(c);
}

static void test_the_urgent_lane_is_helped_first(void **state)
{
    (void)state;
    struct contest x;
    run_contest(&x, 5, 60);
    assert_true(atomic_load(&x.high.by_crew) > 0);
    if (crew_cores() <= 3) /* exactly one crew thread */
        assert_int_equal(atomic_load(&x.wrong), 0);
}

static void test_equal_lanes_are_both_helped(void **state)
{
    (void)state;
    struct contest x;
    run_contest(&x, 0, 300);
    assert_true(atomic_load(&x.high.by_crew) > 0);
    assert_true(atomic_load(&x.low.by_crew) > 0);
}

/* ---- how many compute ------------------------------------------------------------------------ */

struct gate {
    _Atomic uint32_t inside;
    _Atomic bool open;
    struct crew *crew;
};

static void gate_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct gate *g = ctx;
    (void)p;
    (void)chunk;
    (void)member;
    atomic_fetch_add(&g->inside, 1);
    WAIT_UNTIL(atomic_load(&g->open));
}

static void *gate_main(void *arg)
{
    struct gate *g = arg;
    struct crew_lane *l;
    if (crew_lane_create(&l, g->crew, 1, NULL) < 0)
        return NULL;
    crew_run(l, g, &(struct crew_phase){.chunk = gate_chunk, .n_chunks = 1}, 1, NULL);
    crew_lane_destroy(l);
    return NULL;
}

/* When as many programs run as there are cores, only their owners compute; when they end, the crew
 * helps again. */
static void test_the_crew_steps_back_for_owners(void **state)
{
    (void)state;
    enum { MAX_OWNERS = 64 };
    pthread_t owners[MAX_OWNERS];
    const uint32_t n = crew_cores() > 2 ? crew_cores() : 2;
    struct gate g = {0};
    struct crew_lane *l;
    struct probe *p = calloc(1, sizeof(*p));
    assert_non_null(p);
    assert_int_equal(crew_create(&g.crew, NULL), 0);
    assert_int_equal(crew_lane_create(&l, g.crew, 2, NULL), 0);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&owners[i], NULL, gate_main, &g), 0);
    WAIT_UNTIL(atomic_load(&g.inside) >= n);
    for (uint32_t round = 0; round < 100; round++)
        probe_run(p, l, round);
    assert_int_equal(atomic_load(&p->most_member), 0); /* the owner alone */
    atomic_store(&g.open, true);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(owners[i], NULL);
    for (uint32_t round = 0; round < 100000 && atomic_load(&p->most_member) == 0; round++)
        probe_run(p, l, round);
    assert_int_equal(atomic_load(&p->most_member), 1);
    assert_int_equal(atomic_load(&p->errors), 0);
    crew_lane_destroy(l);
    free(p);
    crew_destroy(g.crew);
}

/* taskset, a container or a unit may leave fewer cores than the machine has. */
static void test_only_allowed_cores_count(void **state)
{
    cpu_set_t all, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(crew_cores(), CPU_COUNT(&all) < 64 ? CPU_COUNT(&all) : 64);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    const uint32_t left = crew_cores();
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(left, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_allowed_cores_count),
        cmocka_unit_test(test_two_programs_at_once),
        cmocka_unit_test(test_many_lanes_on_two_threads),
        cmocka_unit_test(test_lanes_come_and_go_while_others_run),
        cmocka_unit_test(test_a_lane_keeps_to_its_members),
        cmocka_unit_test(test_bad_sizes_and_too_many_lanes),
        cmocka_unit_test(test_destroy_waits_for_a_late_thread),
        cmocka_unit_test(test_the_urgent_lane_is_helped_first),
        cmocka_unit_test(test_equal_lanes_are_both_helped),
        cmocka_unit_test(test_the_crew_steps_back_for_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
