/* test_flow_parts.c - small parts of flows: calibrated confidences, texts that are said, the pool,
 * what is counted as refused. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "flow/calibrated.h"
#include "flow/failure.h"
#include "flow/flow_trace.h"
#include "flow/pool.h"
#include "flow/request.h"
#include "flow/speak_inputs.h"
#include "host/model_stats.h"

/* ---- calibration ---- */

static struct shoal_label labels[] = {{"yes", 0.8f}, {"no", 0.15f}, {"maybe", 0.05f}};
static const struct shoal_result usual = {.kind = SHOAL_KIND_CLASSIFY,
                                          .label = "yes",
                                          .confidence = 0.8f,
                                          .labels = labels,
                                          .n_labels = 3};

static void test_a_temperature_changes_confidences(void **state)
{
    struct arena a;
    double sum = 0;
    (void)state;
    arena_init(&a, 1 << 20);
    const struct shoal_result *r =
        calibrated_result(&a, &usual, &(struct confidence_calibration){.temperature = 2});
    assert_ptr_not_equal(r, &usual);
    assert_string_equal(r->label, "yes");
    const double top = sqrt(0.8) / (sqrt(0.8) + sqrt(0.15) + sqrt(0.05));
    assert_true(fabs((double)r->labels[0].score - top) < 1e-5);
    assert_true(fabs((double)r->confidence - top) < 1e-5);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(r->labels[i].name, labels[i].name);
        sum += (double)r->labels[i].score;
    }
    assert_true(fabs(sum - 1) < 1e-5);
    assert_true(labels[0].score == 0.8f); /* the original stays */
    /* an answer that is not the first label is what remains beside it */
    struct shoal_result other = usual;
    other.label = "unknown";
    r = calibrated_result(&a, &other, &(struct confidence_calibration){.temperature = 2});
    assert_true((double)r->confidence < top);
    arena_fini(&a);
}

static void test_what_is_not_calibrated(void **state)
{
    struct shoal_label apart[] = {{"a", 0.8f}, {"b", 0.7f}}, close[] = {{"a", 0.8f}, {"b", 0.205f}};
    struct shoal_result rows[6];
    struct arena a;
    (void)state;
    for (int i = 0; i < 6; i++)
        rows[i] = usual;
    rows[0].kind = SHOAL_KIND_EMBED;
    rows[1].code = SHOAL_ELIMIT;
    rows[2].n_labels = 0;
    rows[3].labels = apart; /* labels that do not exclude each other */
    rows[3].n_labels = 2;
    arena_init(&a, 1 << 20);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(
            calibrated_result(&a, &rows[i], &(struct confidence_calibration){.temperature = 2}),
            &rows[i]);
    assert_ptr_equal(
        calibrated_result(&a, &usual, &(struct confidence_calibration){.temperature = 0}), &usual);
    rows[4].labels = close; /* rounded */
    rows[4].n_labels = 2;
    rows[4].label = "a";
    assert_ptr_not_equal(
        calibrated_result(&a, &rows[4], &(struct confidence_calibration){.temperature = 2}),
        &rows[4]);
    arena_fini(&a);
    arena_init(&a, 1); /* no memory: as it was */
    assert_ptr_equal(
        calibrated_result(&a, &usual, &(struct confidence_calibration){.temperature = 2}), &usual);
    arena_fini(&a);
}

/* ---- what is said ---- */

static void test_sentences_are_parts(void **state)
{
    static char long_text[SPEAK_INPUTS_MAX_BYTES + 1];
    struct request *r = request_create();
    struct err e = {0};
    (void)state;
    assert_int_equal(speak_inputs(r, "One. Two!", 9, &e), 0);
    assert_int_equal(r->kind, REQUEST_INFER);
    assert_int_equal(r->infer.kind, SHOAL_KIND_SPEAK);
    assert_true(r->streams);
    assert_int_equal(r->infer.n_inputs, 2 * SHOAL_SPEAK_PARTS);
    for (uint32_t i = 0; i < r->infer.n_inputs; i++) {
        const struct request_input *x = &r->infer.inputs[i];
        assert_int_equal(x->part, 1 + i % SHOAL_SPEAK_PARTS);
        assert_non_null(strstr(x->text, i < SHOAL_SPEAK_PARTS ? "one" : "two"));
        assert_int_equal(x->text_bytes, strlen(x->text));
    }
    assert_int_equal(r->input_bytes, 9);
    request_reset(r);
    assert_int_equal(speak_inputs(r, "   ", 3, &e), SHOAL_EINVAL);
    assert_int_equal(speak_inputs(r, "", 0, &e), SHOAL_EINVAL);
    memset(long_text, ' ', sizeof(long_text));
    memcpy(long_text, "Hi.", 3);
    assert_int_equal(speak_inputs(r, long_text, SPEAK_INPUTS_MAX_BYTES, &e), 0);
    request_reset(r);
    assert_int_equal(speak_inputs(r, long_text, SPEAK_INPUTS_MAX_BYTES + 1, &e), SHOAL_ELIMIT);
    /* as many sentences as a request has inputs for, and one more */
    const uint32_t most = REQUEST_MAX_INPUTS / SHOAL_SPEAK_PARTS;
    for (uint32_t n = most; n <= most + 1; n++) {
        for (uint32_t i = 0; i < n; i++)
            memcpy(long_text + (size_t)i * 4, "Hi. ", 4);
        request_reset(r);
        assert_int_equal(speak_inputs(r, long_text, (size_t)n * 4, &e),
                         n == most ? 0 : SHOAL_ELIMIT);
    }
    request_destroy(r);
}

/* ---- the pool ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int order[8];
    uint32_t n, n_held;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct job {
    struct pool_task task; /* first */
    int number;
};

static void hold(struct pool_task *t)
{
    (void)t;
    pthread_mutex_lock(&gate.lock);
    gate.n_held++;
    pthread_cond_signal(&gate.changed);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void note(struct pool_task *t)
{
    pthread_mutex_lock(&gate.lock);
    gate.order[gate.n++] = ((struct job *)(void *)t)->number;
    pthread_mutex_unlock(&gate.lock);
}

/* At most so many wait; in their order; and none is lost at the end. */
static void test_tasks_wait_in_a_bounded_line(void **state)
{
    struct job jobs[4];
    struct pool_task held = {.fn = hold};
    struct pool *p;
    struct err e = {0};
    (void)state;
    assert_int_equal(pool_create(&p, 1, 3, &e), 0);
    assert_int_equal(pool_submit(p, &held), 0);
    pthread_mutex_lock(&gate.lock);
    while (gate.n_held == 0)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){.task.fn = note, .number = i};
        assert_int_equal(pool_submit(p, &jobs[i].task), i < 3 ? 0 : SHOAL_EBUSY);
    }
    pthread_mutex_lock(&gate.lock);
    assert_int_equal(gate.n, 0);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    pool_destroy(p);
    assert_int_equal(gate.n, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(gate.order[i], i);
    mem_fail_at(1);
    assert_int_equal(pool_create(&p, 1, 3, &e), SHOAL_ENOMEM);
    mem_fail_at(0);
    assert_null(p);
    assert_int_equal(pool_create(&p, 100, 1, &e), 0); /* as many as there may be */
    pool_destroy(p);
    pool_destroy(NULL);
}

/* ---- failures ---- */

static void test_what_counts_as_refused(void **state)
{
    static const struct {
        enum failure_kind kind;
        int counter; /* -1: none */
    } rows[] = {
        {FAILURE_BUSY, MODEL_STATS_BUSY},
        {FAILURE_DEADLINE, MODEL_STATS_DEADLINE},
        {FAILURE_INVALID, MODEL_STATS_INVALID},
        {FAILURE_NOT_FOUND, -1},
        {FAILURE_NOT_LOADED, -1},
        {FAILURE_UNAVAILABLE, -1},
        {FAILURE_INTERNAL, -1},
        {FAILURE_CONFLICT, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct model_stats *m = calloc(1, sizeof(*m));
        const struct failure f = {.kind = rows[i].kind};
        failure_count(m, &f);
        failure_count(m, &f);
        for (int k = 0; k < MODEL_STATS_N_REFUSED; k++)
            assert_int_equal(m->refused[k], k == rows[i].counter ? 2 : 0);
        free(m);
    }
}

static void test_late(void **state)
{
    struct failure f;
    (void)state;
    for (int refused = 0; refused < 2; refused++)
        for (int others = 0; others < 2; others++) {
            failure_late(&f, refused, others, "late");
            assert_int_equal(f.kind, FAILURE_DEADLINE);
            assert_int_equal(f.code, SHOAL_EDEADLINE);
            assert_string_equal(f.message, "late");
            /* alone, and refused before it began: a retry cannot succeed */
            assert_string_equal(f.reason, refused && !others ? "deadline_unreachable" : "deadline");
            assert_int_equal(f.retry_after_s, others ? 1 : 0);
        }
}

/* ---- spans of engines ---- */

struct spans {
    struct trace_keeper keeper; /* first */
    struct buf text;
};

/* "name(parent) length key=value ...;" of every span but the root. */
static void put_spans(struct trace_keeper *k, struct trace *t)
{
    struct buf *out = &((struct spans *)(void *)k)->text;
    const struct trace_view v = trace_look(t);
    const uint64_t begin = v.n_spans > 1 ? v.spans[1].start_ns : 0;
    for (uint32_t i = 1; i < v.n_spans; i++) {
        const struct trace_span *x = &v.spans[i];
        buf_printf(out, "%s(%s) %llu+%llu%s", x->name, v.spans[x->parent].name,
                   (unsigned long long)(x->start_ns - begin),
                   (unsigned long long)(x->end_ns - x->start_ns), x->failed ? " failed" : "");
        for (const struct trace_note *n = x->notes; n; n = n->next)
            if (n->text)
                buf_printf(out, " %s=%s", n->key, n->text);
            else
                buf_printf(out, " %s=%lld", n->key, (long long)n->number);
        buf_putc(out, ';');
    }
}

static void test_spans_of_engines(void **state)
{
    const struct sink_energy none = {.known = false}, guessed = {true, true, 0.5},
                             measured = {true, false, 0.25};
    struct spans seen = {.keeper = {.keep = put_spans, .ratio = 1}};
    (void)state;
    const struct shoal_event whole = {.prompt_tokens = 7,
                                      .cached_tokens = 3,
                                      .generated_tokens = 5,
                                      .finish = SHOAL_FINISH_STOP,
                                      .queue_ns = 100,
                                      .first_token_ns = 300,
                                      .total_ns = 1000};
    const struct shoal_event late = {
        .finish = SHOAL_FINISH_ERROR, .code = SHOAL_EDEADLINE, .queue_ns = 400, .total_ns = 400};
    const struct shoal_result good = {.n_tokens = 9, .batch = 4, .queue_ns = 20, .total_ns = 50},
                              bad = {.code = SHOAL_ELIMIT, .total_ns = 30};
    const char *const want[] = {
        "generate(root) 0+1000 gen_ai.response.model=m gen_ai.usage.input_tokens=7 "
        "gen_ai.usage.cache_read.input_tokens=3 gen_ai.usage.output_tokens=5;queue(generate) "
        "0+100;prompt(generate) 100+200;decode(generate) 300+700;",
        "shoal.energy.microjoules=500000 shoal.energy=estimated;",
        "shoal.energy.microjoules=250000 shoal.energy=measured;",
        "generate(root) 0+400 failed gen_ai.response.model=m gen_ai.usage.input_tokens=0 "
        "gen_ai.usage.cache_read.input_tokens=0 gen_ai.usage.output_tokens=0 ",
        "infer(root) 0+50 gen_ai.response.model=m gen_ai.usage.input_tokens=9 "
        "shoal.batch=4;queue(infer) 0+20;run(infer) 20+30;",
        "infer(root) 0+30 failed "};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        buf_init(&seen.text, 4096);
        struct trace_at at = {.trace = trace_open(&seen.keeper, NULL, "root", TRACE_SERVER, 1)};
        assert_non_null(at.trace);
        if (i < 3)
            flow_trace_done(&at, "m", &whole, i == 0 ? &none : i == 1 ? &guessed : &measured);
        else if (i == 3)
            flow_trace_done(&at, "m", &late, &none);
        else
            flow_trace_result(&at, "m", i == 4 ? &good : &bad);
        trace_unref(at.trace);
        if (!strstr(buf_str(&seen.text), want[i]))
            print_error("%zu: %s\n", i, buf_str(&seen.text));
        assert_non_null(strstr(buf_str(&seen.text), want[i]));
        assert_true(i != 3 || (!strstr(buf_str(&seen.text), "prompt(") &&
                               !strstr(buf_str(&seen.text), "decode(")));
        buf_fini(&seen.text);
    }
    const struct trace_at nobody = {.trace = NULL};
    flow_trace_done(&nobody, "m", &whole, &none); /* not traced: nothing happens */
    flow_trace_result(&nobody, "m", &good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_temperature_changes_confidences),
        cmocka_unit_test(test_what_is_not_calibrated),
        cmocka_unit_test(test_sentences_are_parts),
        cmocka_unit_test(test_tasks_wait_in_a_bounded_line),
        cmocka_unit_test(test_what_counts_as_refused),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_spans_of_engines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
