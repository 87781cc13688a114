/* test_chained.c - an engine whose first layers are computed elsewhere gives the answers of one
 * that has them all, also when what computes them is lost in the middle.  Here "elsewhere" is the
 * same process; tests/integration/cluster_shard.js has other nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine_chained.h"
#include "engine/native/layer_part.h"

#define MODEL SHOAL_TEST_DATA "/refs/gemma3.gguf" /* 7 layers, with windows */
#define N_TASKS 6u
#define N_TOKENS 60u
#define PROMPT 300u /* several pieces */
#define MAX_STEPS 64u

/* Two parts in front of the engine. */
struct fake {
    struct layer_part *parts[2];
    uint32_t cuts[3];
    struct chain_shape shape;
    struct { /* steps that were sent and not received */
        float *x;
        uint32_t n;
    } done[MAX_STEPS];
    uint32_t n_sent, n_received, most_waiting;
    uint32_t lose_at; /* fails after so many steps, and every so many; 0: never */
    uint32_t n_steps, n_lost;
    int refuse; /* of reconnect */
};

static struct fake *fake_of(void *ctx)
{
    return ctx;
}

static int fake_cut(void *ctx, const struct chain_costs *c, struct chain_cut *out, struct err *e)
{
    struct fake *f = ctx;
    (void)e;
    assert_int_equal(c->n_layers, 7);
    assert_true(c->layer > 0 && c->head > 0 && c->kv > 0 && c->scratch > 0);
    out->first = f->cuts[2];
    return 0;
}

static int open_parts(struct fake *f, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < 2; i++) {
        const struct layer_part_opts o = {.path = MODEL,
                                          .cache_dir = "",
                                          .first = f->cuts[i],
                                          .end = f->cuts[i + 1],
                                          .n_layers = f->shape.n_layers,
                                          .dim = f->shape.dim,
                                          .n_ctx = f->shape.n_ctx,
                                          .max_batch = f->shape.max_batch,
                                          .n_pages = f->shape.n_pages};
        rc = layer_part_open(&f->parts[i], &o, e);
    }
    return rc;
}

static void drop_steps(struct fake *f)
{
    for (; f->n_received < f->n_sent; f->n_received++)
        free(f->done[f->n_received % MAX_STEPS].x);
}

static void close_parts(struct fake *f)
{
    drop_steps(f);
    for (uint32_t i = 0; i < 2; i++) {
        layer_part_close(f->parts[i]);
        f->parts[i] = NULL;
    }
}

static int fake_connect(void *ctx, const struct chain_shape *s, struct err *e)
{
    struct fake *f = ctx;
    f->shape = *s;
    assert_int_equal(s->cut.first, f->cuts[2]);
    return open_parts(f, e);
}

static int fake_send(void *ctx, const struct decoder_run *runs, uint32_t n_runs)
{
    struct fake *f = ctx;
    struct layer_part_run r[16];
    int32_t tokens[2048];
    struct layer_part_step s = {.runs = r, .n_runs = n_runs, .tokens = tokens};
    const float *x = NULL;
    if (f->lose_at && ++f->n_steps % f->lose_at == 0)
        return SHOAL_EIO;
    assert_true(n_runs <= 16);
    for (uint32_t i = 0; i < n_runs; i++) {
        const uint32_t end = runs[i].pos0 + runs[i].n;
        r[i] = (struct layer_part_run){.pos0 = runs[i].pos0,
                                       .n = runs[i].n,
                                       .pages = runs[i].pages,
                                       .n_pages = (end + LAYER_PART_PAGE - 1) / LAYER_PART_PAGE};
        memcpy(tokens + s.n_tokens, runs[i].tokens, runs[i].n * sizeof(*tokens));
        s.n_tokens += runs[i].n;
    }
    assert_int_equal(layer_part_run(f->parts[0], &s, &x, NULL), 0);
    s.tokens = NULL;
    s.x = x;
    assert_int_equal(layer_part_run(f->parts[1], &s, &x, NULL), 0);
    const uint32_t at = f->n_sent++ % MAX_STEPS;
    f->done[at].n = s.n_tokens;
    f->done[at].x = malloc((size_t)s.n_tokens * f->shape.dim * sizeof(float));
    memcpy(f->done[at].x, x, (size_t)s.n_tokens * f->shape.dim * sizeof(float));
    if (f->n_sent - f->n_received > f->most_waiting)
        f->most_waiting = f->n_sent - f->n_received;
    return 0;
}

static int fake_receive(void *ctx, float *x, uint32_t n_tokens)
{
    struct fake *f = ctx;
    const uint32_t at = f->n_received++ % MAX_STEPS;
    assert_int_equal(f->done[at].n, n_tokens);
    memcpy(x, f->done[at].x, (size_t)n_tokens * f->shape.dim * sizeof(float));
    free(f->done[at].x);
    return 0;
}

/* The new parts know nothing of what the lost ones have computed. */
static int fake_reconnect(void *ctx, struct decoder_rows *rows)
{
    struct fake *f = ctx;
    (void)rows;
    f->n_lost++;
    drop_steps(f);
    if (f->refuse)
        return f->refuse;
    close_parts(f);
    return open_parts(f, NULL);
}

static uint32_t fake_n_parts(const void *ctx)
{
    (void)ctx;
    return 3;
}

static void fake_close(void *ctx)
{
    close_parts(fake_of(ctx));
}

static const struct chain_ops fake_ops = {.cut = fake_cut,
                                          .connect = fake_connect,
                                          .send = fake_send,
                                          .receive = fake_receive,
                                          .reconnect = fake_reconnect,
                                          .n_parts = fake_n_parts,
                                          .close = fake_close};

struct got {
    int32_t tokens[N_TOKENS];
    uint32_t n;
    int code;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE)
        g->code = ev->code;
    if (ev->kind == SHOAL_EVENT_TOKEN && ev->token >= 0 && g->n < N_TOKENS)
        g->tokens[g->n++] = ev->token;
}

/* Some tasks at once: prompts with a common beginning, greedy and seeded. */
static void run_tasks(struct shoal_engine *en, struct got *got)
{
    static int32_t prompts[N_TASKS][PROMPT];
    struct shoal_task *tasks[N_TASKS];
    for (uint32_t t = 0; t < N_TASKS; t++) {
        const uint32_t n = t < 2 ? PROMPT : 20 + t;
        for (uint32_t i = 0; i < n; i++)
            prompts[t][i] = (int32_t)(3 + (i < 40 ? i % 7 : i * (t + 3)) % 250);
        struct shoal_task_opts o = {.size = sizeof(o),
                                    .tokens = prompts[t],
                                    .n_tokens = n,
                                    .max_tokens = N_TOKENS,
                                    .ignore_end = 1,
                                    .event = on_event,
                                    .event_ctx = &got[t]};
        o.sampling.temperature = t % 2 ? 0.9f : 0.0f;
        o.sampling.seed = 40 + t;
        got[t] = (struct got){.n = 0};
        assert_int_equal(shoal_task_submit(en, &o, &tasks[t], NULL), 0);
    }
    for (uint32_t t = 0; t < N_TASKS; t++) {
        shoal_task_wait(tasks[t]);
        shoal_task_free(tasks[t]);
    }
}

static const struct shoal_engine_opts opts = {
    .size = sizeof(opts), .cache_dir = "", .n_ctx = 512, .max_tasks = 4};

static void whole(struct got *got)
{
    struct shoal_engine *en;
    struct err e = {0};
    if (shoal_engine_open(&en, MODEL, &opts, &e) < 0)
        fail_msg("%s", e.msg);
    run_tasks(en, got);
    shoal_engine_close(en);
    for (uint32_t t = 0; t < N_TASKS; t++)
        assert_int_equal(got[t].n, N_TOKENS);
}

static struct shoal_engine *open_chained(struct fake *f, uint32_t first, uint32_t second)
{
    struct shoal_engine *en;
    struct err e = {0};
    struct chain c = {&fake_ops, f};
    f->cuts[1] = first;
    f->cuts[2] = second;
    if (engine_open_chained(&en, MODEL, &opts, &c, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static void compare(const struct got *got, const struct got *want)
{
    for (uint32_t t = 0; t < N_TASKS; t++) {
        assert_int_equal(got[t].code, 0);
        assert_int_equal(got[t].n, want[t].n);
        assert_memory_equal(got[t].tokens, want[t].tokens, want[t].n * sizeof(int32_t));
    }
}

static void test_gives_the_answers_of_the_whole_model(void **state)
{
    (void)state;
    struct got want[N_TASKS], got[N_TASKS];
    whole(want);
    for (uint32_t first = 1; first < 6; first += 2) {
        struct fake f = {.lose_at = 0};
        struct shoal_engine *en = open_chained(&f, first, first + 1);
        struct shoal_engine_info info = {.size = sizeof(info)};
        assert_int_equal(shoal_engine_info(en, &info), 0);
        assert_string_equal(info.engine, "chained");
        run_tasks(en, got);
        shoal_engine_close(en);
        compare(got, want);
        assert_true(f.most_waiting > 1); /* pieces of a prompt follow each other */
        assert_int_equal(f.n_sent, f.n_received);
    }
}

static void test_goes_on_after_a_loss(void **state)
{
    (void)state;
    struct got want[N_TASKS], got[N_TASKS];
    whole(want);
    static const uint32_t after[] = {1000000, 37, 23};
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        struct fake f = {.lose_at = after[i]};
        struct shoal_engine *en = open_chained(&f, 2, 5);
        run_tasks(en, got);
        shoal_engine_close(en);
        compare(got, want);
        assert_true(i == 0 ? f.n_lost == 0 : f.n_lost > 1);
    }
}

/* What can no longer be computed ends with the reason, and the engine goes on. */
static void test_fails_if_nothing_can_take_over(void **state)
{
    (void)state;
    struct got want[N_TASKS], got[N_TASKS];
    whole(want);
    struct fake f = {.lose_at = 5, .refuse = SHOAL_EBUSY};
    struct shoal_engine *en = open_chained(&f, 2, 5);
    run_tasks(en, got);
    uint32_t n_failed = 0;
    for (uint32_t t = 0; t < N_TASKS; t++)
        n_failed += got[t].code == SHOAL_EBUSY;
    assert_true(n_failed > 0);
    f.refuse = 0;
    f.lose_at = 0;
    run_tasks(en, got);
    compare(got, want);
    shoal_engine_close(en);
}

/* A step of another process is checked before anything is computed. */
static void test_a_part_refuses_nonsense(void **state)
{
    (void)state;
    const struct layer_part_opts o = {.path = MODEL,
                                      .cache_dir = "",
                                      .first = 0,
                                      .end = 3,
                                      .n_layers = 7,
                                      .dim = 0,
                                      .n_ctx = 64,
                                      .max_batch = 8,
                                      .n_pages = 4};
    struct layer_part_opts good = o;
    struct layer_part *p;
    struct err e = {0};
    assert_int_equal(layer_part_open(&p, &o, &e), SHOAL_EFORMAT); /* another width */
    assert_int_equal(sscanf(e.msg, "the model has 7 layers of %u", &good.dim), 1);
    assert_int_equal(layer_part_open(&p, &good, &e), 0);
    static const uint32_t pages[] = {0, 1, 2, 3}, beyond[] = {0, 4};
    const int32_t tokens[9] = {1, 2, 3}, wrong[] = {1, -1, 2}, large[] = {1, 1 << 30};
    const float *x, floats[] = {1.0f};
    const struct {
        struct layer_part_run run;
        uint32_t n_tokens;
        const int32_t *tokens;
        const float *x;
    } bad[] = {{{0, 3, 1, pages}, 2, tokens, NULL},         {{0, 2, 1, pages}, 3, tokens, NULL},
               {{0, 9, 1, pages}, 9, tokens, NULL},         {{63, 2, 4, pages}, 2, tokens, NULL},
               {{15, 2, 1, pages}, 2, tokens, NULL},        {{15, 2, 2, beyond}, 2, tokens, NULL},
               {{0, 3, 1, pages}, 3, wrong, NULL},          {{0, 2, 1, pages}, 2, large, NULL},
               {{0, 1, 1, pages}, 1, NULL, floats},         {{0, 0, 1, pages}, 0, tokens, NULL},
               {{UINT32_MAX, 2, 1, pages}, 2, tokens, NULL}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct layer_part_step s = {.runs = &bad[i].run,
                                          .n_runs = 1,
                                          .n_tokens = bad[i].n_tokens,
                                          .tokens = bad[i].tokens,
                                          .x = bad[i].x};
        if (layer_part_run(p, &s, &x, &e) != SHOAL_EFORMAT)
            fail_msg("step %zu is computed", i);
    }
    const struct layer_part_run run = {0, 3, 1, pages};
    const struct layer_part_step s = {.runs = &run, .n_runs = 1, .n_tokens = 3, .tokens = tokens};
    assert_int_equal(layer_part_run(p, &s, &x, &e), 0);
    assert_true(layer_part_finite(x, 3 * (size_t)good.dim));
    const float nan[] = {1.0f, __builtin_nanf("")}, inf[] = {__builtin_inff()};
    assert_false(layer_part_finite(nan, 2));
    assert_false(layer_part_finite(inf, 1));
    layer_part_close(p);
}

static void test_only_decoders_are_chained(void **state)
{
    (void)state;
    struct fake f = {.lose_at = 0};
    struct chain c = {&fake_ops, &f};
    struct shoal_engine *en;
    struct err e = {0};
    const char *const others[] = {MODEL};
    struct shoal_engine_opts o = opts;
    o.average_paths = others;
    o.n_average = 1;
    assert_int_equal(engine_open_chained(&en, MODEL, &o, &c, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "cannot be sharded"));
    assert_null(c.ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gives_the_answers_of_the_whole_model),
        cmocka_unit_test(test_goes_on_after_a_loss),
        cmocka_unit_test(test_fails_if_nothing_can_take_over),
        cmocka_unit_test(test_a_part_refuses_nonsense),
        cmocka_unit_test(test_only_decoders_are_chained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
