/* test_admission_model.c - random clients against a model of who may enter: keys that come and go,
 * places, rates, tokens of the day. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/admission.h"
#include "host/quota.h"
#include "support/dice.h"

#define N_KEYS 5u
#define N_NAMES 4u /* two keys are one client's */
#define DAY_S 86400u
#define STEP_NS UINT64_C(1000000000000) /* of the rate: what the test itself takes is nothing */
#define STEPS 20000

static const char *const names[N_KEYS] = {"a", "b", "b", "c", "d"};
static const char *const secrets[N_KEYS] = {"ka", "kb1", "kb2", "kc", "kd"};
static uint64_t clock_s;

struct key_model {
    struct admission_key key;
    struct admission_client *client; /* as found first: it stays the same */
    bool listed;
    double tokens; /* of its rate */
    uint32_t in_flight;
};

struct name_model {
    uint64_t used, day, limit, spent, refused[QUOTA_N_REFUSED];
};

struct model {
    struct key_model keys[N_KEYS];
    struct name_model names[N_NAMES];
    uint32_t max_in_flight, in_flight, anonymous;
    uint32_t n_seen[4]; /* by verdict */
};

static uint64_t now(void *ctx)
{
    (void)ctx;
    return clock_s;
}

static struct name_model *name_of(struct model *m, uint32_t key)
{
    return &m->names[key < 2 ? key : key - 1];
}

static void begin_day(struct name_model *n)
{
    if (clock_s / DAY_S > n->day) {
        n->day = clock_s / DAY_S;
        n->used = 0;
    }
}

/* Limits of all keys anew, and who is listed. */
static void reload(struct admission *a, struct model *m, struct quota *q)
{
    static const uint64_t limits[] = {0, 50, 1000};
    struct admission_key list[N_KEYS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_KEYS; i++) {
        struct key_model *k = &m->keys[i];
        k->listed = dice_below(4) > 0;
        if (!k->listed)
            continue; /* who is inside keeps the old limits, also an account without a key */
        k->key.rate = dice_below(2) ? 0.001 : 0;
        k->key.burst = 1 + (double)dice_below(4);
        k->key.max_in_flight = dice_below(4);
        if (!(i == 2 && m->keys[1].listed))
            name_of(m, i)->limit = limits[dice_below(3)];
        k->key.tokens_per_day = (double)name_of(m, i)->limit;
        list[n++] = k->key;
        if (!k->client)
            k->tokens = k->key.burst;
    }
    m->max_in_flight = dice_below(3) ? 4 + dice_below(12) : 0;
    const struct admission_opts o = {list, n, m->max_in_flight, q};
    assert_int_equal(admission_reload(a, &o, NULL), 0);
    assert_int_equal(admission_needed(a), n > 0);
    for (uint32_t i = 0; i < N_KEYS; i++) {
        struct key_model *k = &m->keys[i];
        struct admission_client *c = admission_find(a, secrets[i], strlen(secrets[i]));
        assert_int_equal(c != NULL, k->listed);
        if (c && k->client)
            assert_ptr_equal(c, k->client);
        if (c)
            k->client = c;
        bool other = (i == 1 && m->keys[2].listed) || (i == 2 && m->keys[1].listed);
        assert_int_equal(admission_find_name(a, names[i]) != NULL, k->listed || other);
    }
}

/* What the rules say of one more request of key k; NULL: of nobody. */
static enum admission_verdict expected(struct model *m, struct key_model *k, struct name_model *n)
{
    if (n) {
        begin_day(n);
        if (n->limit > 0 && n->used >= n->limit)
            return ADMISSION_QUOTA;
    }
    const uint32_t left = m->max_in_flight > m->in_flight ? m->max_in_flight - m->in_flight : 0;
    if (m->max_in_flight > 0 && (left == 0 || (k && k->in_flight >= 7 * left)))
        return ADMISSION_FULL;
    if (k && k->key.max_in_flight > 0 && k->in_flight >= k->key.max_in_flight)
        return ADMISSION_FULL;
    if (k && k->key.rate > 0) {
        k->tokens = k->tokens > k->key.burst ? k->key.burst : k->tokens;
        if (k->tokens < 1)
            return ADMISSION_RATE;
        k->tokens -= 1;
    }
    return ADMISSION_OK;
}

static void check_retry(const struct key_model *k, enum admission_verdict v, uint32_t retry_ms)
{
    if (v == ADMISSION_OK)
        assert_int_equal(retry_ms, 0);
    else if (v == ADMISSION_QUOTA)
        assert_int_equal(retry_ms, (DAY_S - clock_s % DAY_S) * 1000);
    else if (v == ADMISSION_FULL)
        assert_int_equal(retry_ms, 1000);
    else /* until the next request is there, less what the test has taken */
        assert_in_range(retry_ms, (1 - k->tokens) * 1e6 - 1e5, (1 - k->tokens) * 1e6 + 1);
}

static void enter(struct admission *a, struct model *m, struct key_model *k, struct name_model *n)
{
    uint32_t retry_ms = 7;
    const enum admission_verdict want = expected(m, k, n);
    assert_int_equal(admission_enter(a, k ? k->client : NULL, &retry_ms), want);
    check_retry(k, want, retry_ms);
    m->n_seen[want]++;
    if (want == ADMISSION_OK) {
        m->in_flight++;
        *(k ? &k->in_flight : &m->anonymous) += 1;
    } else if (n) {
        n->refused[want == ADMISSION_RATE   ? QUOTA_REFUSED_RATE
                   : want == ADMISSION_FULL ? QUOTA_REFUSED_BUSY
                                            : QUOTA_REFUSED_TOKENS]++;
    }
}

static uint32_t least(uint32_t max, uint32_t used, uint32_t other)
{
    const uint32_t left = max == 0 ? UINT32_MAX : max > used ? max - used : 0;
    return left < other ? left : other;
}

/* A request that is as much work as n more. */
static void enter_more(struct admission *a, struct model *m, struct key_model *k, uint32_t n)
{
    uint32_t *own = k ? &k->in_flight : &m->anonymous, most;
    const uint32_t own_max = k ? k->key.max_in_flight : 0;
    if (*own == 0)
        return;
    const bool fits = n <= least(own_max, *own, least(m->max_in_flight, m->in_flight, UINT32_MAX));
    assert_int_equal(admission_enter_more(a, k ? k->client : NULL, n, &most),
                     fits ? ADMISSION_OK : ADMISSION_FULL);
    assert_int_equal(most, least(own_max, 0, least(m->max_in_flight, 0, UINT32_MAX)));
    *own += fits ? n : 0;
    m->in_flight += fits ? n : 0;
}

static void leave(struct admission *a, struct model *m, struct key_model *k)
{
    uint32_t *own = k ? &k->in_flight : &m->anonymous;
    const uint32_t n = dice_below(*own + 1);
    admission_leave(a, k ? k->client : NULL, n);
    *own -= n;
    m->in_flight -= n;
}

static void spend(struct admission *a, struct key_model *k, struct name_model *n)
{
    const uint32_t prompt = dice_below(20), generated = dice_below(20);
    admission_spend(a, k->client, prompt, generated);
    begin_day(n);
    n->used += prompt + generated;
    n->spent += prompt + generated;
}

static void wait_for_rate(struct model *m)
{
    for (uint32_t i = 0; i < N_KEYS; i++)
        if (m->keys[i].client && m->keys[i].key.rate > 0) {
            m->keys[i].client->filled_ns -= STEP_NS; /* as if it were that long ago */
            m->keys[i].tokens += 1;
        }
}

struct figures {
    struct model *m;
    uint32_t n;
};

static void check_figures(void *ctx, const struct quota_figures *f)
{
    struct figures *x = ctx;
    for (uint32_t i = 0; i < N_KEYS; i++)
        if (strcmp(f->name, names[i]) == 0) {
            struct name_model *n = name_of(x->m, i);
            begin_day(n);
            assert_int_equal(f->used, n->used);
            assert_int_equal(f->limit, n->limit);
            assert_int_equal(f->prompt_tokens + f->generated_tokens, n->spent);
            assert_memory_equal(f->refused, n->refused, sizeof(n->refused));
            x->n++;
            return;
        }
    fail_msg("nobody is called %s", f->name);
}

static void check_all(struct admission *a, struct quota *q, struct model *m)
{
    uint32_t n = 0;
    struct figures x = {m, 0};
    for (uint32_t i = 0; i < N_KEYS; i++)
        n += m->keys[i].listed && !(i == 2 && m->keys[1].listed);
    quota_each(q, check_figures, &x);
    assert_int_equal(x.n, n);
    assert_int_equal(admission_in_flight(a), m->in_flight);
}

static void step(struct admission *a, struct quota *q, struct model *m)
{
    const uint32_t at = dice_below(N_KEYS + 1), what = dice_below(40);
    struct key_model *k = at < N_KEYS && m->keys[at].client ? &m->keys[at] : NULL;
    struct name_model *n = k ? name_of(m, at) : NULL;
    if (what < 18)
        enter(a, m, k, n);
    else if (what < 28)
        leave(a, m, k);
    else if (what < 31)
        enter_more(a, m, k, 1 + dice_below(6));
    else if (what < 34 && k)
        spend(a, k, n);
    else if (what < 38)
        wait_for_rate(m);
    else if (what < 39)
        reload(a, m, q);
    else
        clock_s += dice_below(6 * 3600);
    check_all(a, q, m);
}

static void test_random_clients(void **state)
{
    struct model m = {.max_in_flight = 0};
    struct admission *a;
    struct quota *q;
    (void)state;
    dice_seed(20);
    clock_s = 20000u * DAY_S + 100;
    for (uint32_t i = 0; i < N_KEYS; i++) {
        m.keys[i].key = (struct admission_key){.name = (char *)(uintptr_t)names[i]};
        assert_true(admission_hash(secrets[i], strlen(secrets[i]), m.keys[i].key.sha256));
    }
    assert_int_equal(quota_create(&q, &(struct quota_opts){.cache_dir = "", .now_s = now}, NULL),
                     0);
    assert_int_equal(admission_create(&a, &(struct admission_opts){NULL, 0, 0, q}, NULL), 0);
    reload(a, &m, q);
    for (int i = 0; i < STEPS; i++)
        step(a, q, &m);
    for (int v = ADMISSION_OK; v <= ADMISSION_QUOTA; v++)
        assert_true(m.n_seen[v] > 20); /* the random steps reach every rule */
    admission_destroy(a);
    quota_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
