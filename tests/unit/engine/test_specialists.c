/* test_specialists.c - inferences as tasks: together and alone, in order, refused, cancelled,
 * with failing memory; on the encoder that comes with Shoal and on trees. */
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "shoal/shoal.h"

#define ENCODER SHOAL_TEST_DATA "/../../models/encoder"
#define SMALL_ENCODER SHOAL_TEST_DATA "/encoders/bert"
#define TREES SHOAL_TEST_DATA "/scorers/trees/regression.txt"
#define ANOMALY SHOAL_TEST_DATA "/../../models/anomaly"
#define SECOND 1000000000ull

static const char *const texts[] = {
    "turn off the kitchen lights",
    "what is the weather in Paris tomorrow",
    "set a timer for ten minutes",
    "hi",
    "remind me to call my sister at six o'clock in the evening and to feed the cat",
    "play some jazz in the living room",
};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

static struct shoal_engine *open_with(const char *path, const struct shoal_engine_opts *o)
{
    struct shoal_engine *en;
    struct err e = {0};
    if (shoal_engine_open(&en, path, o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static struct shoal_engine *open_encoder(void)
{
    struct shoal_engine_opts o = {
        .size = sizeof(o), .cache_dir = "", .int8 = true, .max_tasks = 16};
    return open_with(ENCODER, &o);
}

static struct shoal_task *submit(struct shoal_engine *en, enum shoal_kind kind, const char *text,
                                 const char *labels)
{
    struct shoal_task *t;
    struct err e = {0};
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = kind,
                                 .text = text,
                                 .text_bytes = strlen(text),
                                 .labels = labels};
    if (shoal_infer_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

/* Blocks the engine's thread in the callback of a first task, so that later submissions wait,
 * whatever the machine's load. */
struct gate {
    sem_t held, open;
    struct shoal_task *task;
};

static void hold(void *ctx, const struct shoal_result *r)
{
    struct gate *g = ctx;
    (void)r;
    sem_post(&g->held);
    sem_wait(&g->open);
}

static void gate_close(struct gate *g, struct shoal_engine *en)
{
    struct err e = {0};
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = SHOAL_KIND_EMBED,
                                 .text = "hold",
                                 .text_bytes = 4,
                                 .done = hold,
                                 .done_ctx = g};
    sem_init(&g->held, 0, 0);
    sem_init(&g->open, 0, 0);
    assert_int_equal(shoal_infer_submit(en, &o, &g->task, &e), 0);
    sem_wait(&g->held);
}

static void gate_open(struct gate *g)
{
    sem_post(&g->open);
    assert_int_equal(shoal_task_wait(g->task), 0);
    shoal_task_free(g->task);
    sem_destroy(&g->held);
    sem_destroy(&g->open);
}

static const enum shoal_kind kinds[] = {SHOAL_KIND_EMBED, SHOAL_KIND_CLASSIFY, SHOAL_KIND_TAG};

static void same_result(const struct shoal_result *a, const struct shoal_result *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->n_tokens, b->n_tokens);
    if (a->kind == SHOAL_KIND_CLASSIFY) {
        assert_string_equal(a->label, b->label);
        assert_true(a->confidence == b->confidence);
        for (uint32_t i = 0; i < a->n_labels; i++)
            assert_true(a->labels[i].score == b->labels[i].score);
    } else if (a->kind == SHOAL_KIND_TAG) {
        assert_int_equal(a->n_spans, b->n_spans);
        for (uint32_t i = 0; i < a->n_spans; i++) {
            assert_string_equal(a->spans[i].label, b->spans[i].label);
            assert_int_equal(a->spans[i].start, b->spans[i].start);
            assert_true(a->spans[i].score == b->spans[i].score);
        }
    } else {
        assert_int_equal(a->n_dims, b->n_dims);
        assert_memory_equal(a->vector, b->vector, a->n_dims * sizeof(float));
    }
}

/* The bits of a result do not depend on the rest of the batch. n tasks of the first n_kinds
 * kinds. */
static void check_together(struct shoal_engine *en, size_t n_kinds, size_t n)
{
    struct shoal_task *alone[N_TEXTS * 3], *together[N_TEXTS * 3];
    uint32_t largest = 0;
    struct gate gate;
    for (size_t i = 0; i < n; i++) {
        alone[i] = submit(en, kinds[i % n_kinds], texts[i / n_kinds], NULL);
        assert_int_equal(shoal_task_wait(alone[i]), 0);
        assert_int_equal(shoal_task_result(alone[i])->batch, 1);
    }
    gate_close(&gate, en);
    for (size_t i = 0; i < n; i++)
        together[i] = submit(en, kinds[i % n_kinds], texts[i / n_kinds], NULL);
    gate_open(&gate);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(shoal_task_wait(together[i]), 0);
        const struct shoal_result *r = shoal_task_result(together[i]);
        same_result(r, shoal_task_result(alone[i]));
        largest = r->batch > largest ? r->batch : largest;
        assert_true(r->total_ns >= r->queue_ns + r->run_ns);
    }
    assert_int_equal(largest, n < 16 ? n : 16); /* as many as the engine takes */
    for (size_t i = 0; i < n; i++) {
        shoal_task_free(alone[i]);
        shoal_task_free(together[i]);
    }
    shoal_engine_close(en);
}

static void test_together_as_alone(void **state)
{
    (void)state;
    struct shoal_engine_opts scalar = {.size = sizeof(scalar),
                                       .cache_dir = "",
                                       .int8 = true,
                                       .max_tasks = 16,
                                       .n_threads = 2,
                                       .kernels = "scalar"};
    check_together(open_encoder(), 3, N_TEXTS * 3);
    /* The kernels that ThreadSanitizer instruments, on two threads; slow, so with a small model. */
    check_together(open_with(SMALL_ENCODER, &scalar), 1, 5);
}

static void test_answers_and_label_sets(void **state)
{
    (void)state;
    struct shoal_engine *en = open_encoder();
    struct shoal_engine_info info = {.size = sizeof(info)};
    const char *set;
    uint32_t n = 0, n_labels = 0;
    shoal_engine_info(en, &info);
    assert_int_equal(info.kinds, SHOAL_KIND_CLASSIFY | SHOAL_KIND_TAG | SHOAL_KIND_EMBED);
    assert_string_equal(info.arch, "bert");
    assert_string_equal(info.engine, "native");
    assert_true(info.n_params > 5000000 && info.dim == 384);
    while ((set = shoal_label_set(en, SHOAL_KIND_CLASSIFY, n)) != NULL)
        assert_true(n++ > 0 || strcmp(set, "combined") == 0);
    assert_int_equal(n, 5);
    while (shoal_label(en, SHOAL_KIND_CLASSIFY, "snips", n_labels))
        n_labels++;
    assert_int_equal(n_labels, 7);
    assert_null(shoal_label(en, SHOAL_KIND_CLASSIFY, "nosuch", 0));
    assert_null(shoal_label_set(en, SHOAL_KIND_SCORE, 0));

    struct shoal_task *t = submit(en, SHOAL_KIND_CLASSIFY, texts[0], "router");
    assert_int_equal(shoal_task_wait(t), 0);
    assert_string_equal(shoal_task_result(t)->label, "home");
    float sum = 0;
    for (uint32_t i = 0; i < shoal_task_result(t)->n_labels; i++)
        sum += shoal_task_result(t)->labels[i].score;
    assert_true(fabsf(sum - 1.0f) < 1e-4f);
    shoal_task_free(t);
    shoal_engine_close(en);
}

static void refuse(struct shoal_engine *en, const struct shoal_infer_opts *o, int code,
                   const char *why)
{
    struct shoal_task *t;
    struct err e = {0};
    assert_int_equal(shoal_infer_submit(en, o, &t, &e), code);
    assert_null(t);
    if (!strstr(e.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", e.msg, why);
}

static void test_what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct shoal_engine *en = open_encoder();
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_CLASSIFY, .text = "a", .text_bytes = 1};
    struct shoal_task_opts g = {.size = sizeof(g), .tokens = (const int32_t[]){1}, .n_tokens = 1};
    struct shoal_session *session;
    struct shoal_task *t;
    struct err e = {0};
    double row[8] = {0};
    char *text;
    size_t n;
    o.labels = "nosuch";
    refuse(en, &o, SHOAL_EINVAL, "nosuch");
    o.labels = NULL;
    o.kind = SHOAL_KIND_RERANK;
    o.document = "b";
    o.document_bytes = 1;
    refuse(en, &o, SHOAL_EUNSUPPORTED, "it can: classify, tag, embed");
    o.kind = (enum shoal_kind)(SHOAL_KIND_CLASSIFY | SHOAL_KIND_TAG);
    refuse(en, &o, SHOAL_EUNSUPPORTED, "it can");
    o.kind = SHOAL_KIND_EMBED;
    o.dimensions = 385;
    refuse(en, &o, SHOAL_EINVAL, "384");
    o.dimensions = 0;
    o.text = NULL;
    refuse(en, &o, SHOAL_EINVAL, "missing");
    o.text = "a";
    o.deadline_ns = 1;
    refuse(en, &o, SHOAL_EDEADLINE, "passed");
    assert_int_equal(shoal_task_submit(en, &g, &t, &e), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_session_create(&session, en, &e), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_chat_prompt(en, "{}", 2, &text, &n, &e), SHOAL_EUNSUPPORTED);
    shoal_engine_close(en);

    en = open_with(TREES, NULL);
    o = (struct shoal_infer_opts){.size = sizeof(struct shoal_infer_opts),
                                  .kind = SHOAL_KIND_SCORE,
                                  .values = row,
                                  .n_values = 7};
    refuse(en, &o, SHOAL_EINVAL, "cannot be split into rows of");
    o.n_values = 0;
    refuse(en, &o, SHOAL_EINVAL, "values");
    o = (struct shoal_infer_opts){.size = sizeof(struct shoal_infer_opts),
                                  .kind = SHOAL_KIND_TAG,
                                  .text = "a",
                                  .text_bytes = 1};
    refuse(en, &o, SHOAL_EUNSUPPORTED, "it can: score");
    assert_int_equal(shoal_tokenize(en, "a", 1, 0, (int32_t **)&text, &n, &e), SHOAL_EUNSUPPORTED);
    shoal_engine_close(en);
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    static char text[20000];
    struct shoal_engine *en = open_encoder();
    for (size_t i = 0; i + 6 < sizeof(text); i += 5)
        memcpy(text + i, "word ", 6);
    struct shoal_task *t = submit(en, SHOAL_KIND_TAG, text, NULL);
    assert_int_equal(shoal_task_wait(t), 0);
    assert_true(shoal_task_result(t)->truncated);
    assert_int_equal(shoal_task_result(t)->n_tokens, 256);
    shoal_task_free(t);
    shoal_engine_close(en);
}

struct order {
    _Atomic uint32_t next;
    uint32_t at[32];
};

struct one {
    struct order *order;
    uint32_t id;
};

static void note(void *ctx, const struct shoal_result *r)
{
    struct one *one = ctx;
    (void)r;
    one->order->at[atomic_fetch_add(&one->order->next, 1)] = one->id;
}

static void test_priority_then_deadline(void **state)
{
    (void)state;
    struct shoal_engine_opts eo = {
        .size = sizeof(eo), .cache_dir = "", .max_tasks = 1}; /* one at a time */
    struct shoal_engine *en = open_with(ENCODER, &eo);
    struct order order = {0};
    struct gate gate;
    struct one ones[4];
    struct shoal_task *t[4];
    struct err e = {0};
    uint64_t now = clock_ns();
    const struct {
        int32_t priority;
        uint64_t deadline;
    } how[4] = {{0, 0}, {0, now + 1000 * SECOND}, {0, now + 500 * SECOND}, {1, 0}};
    gate_close(&gate, en);
    for (uint32_t i = 0; i < 4; i++) {
        ones[i] = (struct one){&order, i};
        struct shoal_infer_opts o = {.size = sizeof(o),
                                     .kind = SHOAL_KIND_EMBED,
                                     .text = "a",
                                     .text_bytes = 1,
                                     .priority = how[i].priority,
                                     .deadline_ns = how[i].deadline,
                                     .done = note,
                                     .done_ctx = &ones[i]};
        assert_int_equal(shoal_infer_submit(en, &o, &t[i], &e), 0);
    }
    gate_open(&gate);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(shoal_task_wait(t[i]), 0);
        shoal_task_free(t[i]);
    }
    /* by priority, then by deadline, those without one last */
    const uint32_t want[4] = {3, 2, 1, 0};
    assert_memory_equal(order.at, want, sizeof(want));
    shoal_engine_close(en);
}

static void test_cancel_deadline_and_full_queue(void **state)
{
    (void)state;
    struct shoal_engine_opts eo = {
        .size = sizeof(eo), .cache_dir = "", .max_tasks = 1, .max_queue = 4};
    struct shoal_engine *en = open_with(ENCODER, &eo);
    struct shoal_task *t[5];
    struct err e = {0};
    struct gate gate;
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_EMBED, .text = "a", .text_bytes = 1};
    gate_close(&gate, en);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(shoal_infer_submit(en, &o, &t[i], &e), 0);
    assert_int_equal(shoal_infer_submit(en, &o, &t[4], &e), SHOAL_EBUSY);
    shoal_task_cancel(t[3]);
    gate_open(&gate);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(shoal_task_wait(t[i]), i == 3 ? SHOAL_ECANCELLED : 0);
        assert_int_equal(shoal_task_result(t[i])->code, i == 3 ? SHOAL_ECANCELLED : 0);
        shoal_task_free(t[i]);
    }
    /* The speed is known now: impossible requests are rejected at once, with the arithmetic. */
    o.deadline_ns = clock_ns() + 1000;
    assert_int_equal(shoal_infer_submit(en, &o, &t[0], &e), SHOAL_EDEADLINE);
    /* A request that passes its deadline in the queue ends there. */
    gate_close(&gate, en);
    int rc = SHOAL_EDEADLINE; /* retried with more time if it passes before it is queued */
    for (uint64_t ms = 200; rc == SHOAL_EDEADLINE && ms < 60000; ms *= 2) {
        o.deadline_ns = clock_ns() + ms * 1000000;
        rc = shoal_infer_submit(en, &o, &t[0], &e);
    }
    assert_int_equal(rc, 0);
    while (clock_ns() <= o.deadline_ns)
        usleep(1000);
    gate_open(&gate);
    assert_int_equal(shoal_task_wait(t[0]), SHOAL_EDEADLINE);
    shoal_task_free(t[0]);
    /* Closing ends waiting tasks. */
    o.deadline_ns = 0;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(shoal_infer_submit(en, &o, &t[i], &e), 0);
    shoal_engine_close(en);
    for (uint32_t i = 0; i < 4; i++)
        shoal_task_free(t[i]);
}

static void *many(void *ctx)
{
    struct shoal_engine *en = ctx;
    for (int i = 0; i < 30; i++) {
        struct shoal_task *t = submit(en, kinds[i % 3], texts[(size_t)i % N_TEXTS], NULL);
        if (i % 7 == 0)
            shoal_task_cancel(t);
        (void)shoal_task_wait(t);
        shoal_task_free(t);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    struct shoal_engine *en = open_encoder();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many, en), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    shoal_engine_close(en);
}

static void test_scores(void **state)
{
    (void)state;
    struct shoal_engine *en = open_with(TREES, NULL);
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct shoal_task *t;
    struct err e = {0};
    double rows[16];
    shoal_engine_info(en, &info);
    assert_int_equal(info.kinds, SHOAL_KIND_SCORE);
    assert_true(info.dim > 0 && info.dim <= 8);
    for (uint32_t i = 0; i < 2 * info.dim; i++)
        rows[i] = i % info.dim * 0.25; /* two equal rows */
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_SCORE, .values = rows, .n_values = 2 * info.dim};
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    assert_int_equal(shoal_task_result(t)->n_values, 2);
    assert_true(shoal_task_result(t)->values[0] == shoal_task_result(t)->values[1]);
    shoal_task_free(t);
    shoal_engine_close(en);
}

/* The anomaly model takes rows of any length, so its info names no length. */
static void test_any_channels(void **state)
{
    enum { N = 240 };
    (void)state;
    struct shoal_engine *en = open_with(ANOMALY, NULL);
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct err e = {0};
    struct shoal_task *t;
    double values[N], one[3], same[3];
    shoal_engine_info(en, &info);
    assert_int_equal(info.kinds, SHOAL_KIND_SCORE);
    assert_int_equal(info.dim, 0);
    assert_string_equal(shoal_label(en, SHOAL_KIND_SCORE, NULL, 2), "value");
    for (int i = 0; i < N; i++)
        values[i] = i * i % 17;
    for (uint32_t columns = 0; columns <= 3; columns++) {
        struct shoal_infer_opts o = {.size = sizeof(o),
                                     .kind = SHOAL_KIND_SCORE,
                                     .values = values,
                                     .n_values = N,
                                     .n_columns = columns};
        uint32_t rows = N / (columns ? columns : 1);
        assert_int_equal(shoal_infer_submit(en, &o, &t, &e), 0);
        assert_int_equal(shoal_task_wait(t), 0);
        assert_int_equal(shoal_task_result(t)->n_values, 3 * rows);
        if (columns <= 1) /* without a number of columns there is one channel */
            memcpy(columns ? same : one, shoal_task_result(t)->values + 3 * (rows - 1),
                   sizeof(one));
        shoal_task_free(t);
    }
    assert_memory_equal(one, same, sizeof(one));
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = SHOAL_KIND_SCORE,
                                 .values = values,
                                 .n_values = N,
                                 .n_columns = 7};
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "240 values cannot be split into rows of 7"));
    o.n_columns = UINT32_MAX;
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "the model reads at most"));
    shoal_engine_close(en);
}

static void test_failed_allocations_leave_nothing(void **state)
{
    (void)state;
    struct shoal_engine_opts eo = {.size = sizeof(eo), .cache_dir = "", .n_threads = 1};
    struct shoal_engine *en;
    struct err e;
    for (uint64_t i = 1;; i += 1 + i / 8) { /* every early one, then a sample of the rest */
        mem_fail_at(i);
        int rc = shoal_engine_open(&en, ENCODER, &eo, &e);
        mem_fail_at(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
    }
    for (size_t k = 0; k < 3; k++)
        for (uint64_t i = 1;; i++) {
            struct shoal_task *t;
            struct shoal_infer_opts o = {.size = sizeof(o),
                                         .kind = kinds[k],
                                         .text = texts[0],
                                         .text_bytes = strlen(texts[0])};
            mem_fail_at(i);
            int rc = shoal_infer_submit(en, &o, &t, &e);
            mem_fail_at(0);
            if (rc == 0) {
                assert_int_equal(shoal_task_wait(t), 0);
                shoal_task_free(t);
                break;
            }
            assert_int_equal(rc, SHOAL_ENOMEM);
        }
    shoal_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together_as_alone),
        cmocka_unit_test(test_answers_and_label_sets),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_priority_then_deadline),
        cmocka_unit_test(test_cancel_deadline_and_full_queue),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_any_channels),
        cmocka_unit_test(test_failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
