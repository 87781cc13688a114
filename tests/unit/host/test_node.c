/* test_node.c - what a node needs, with only src/host and below: load a model, learn costs,
 * compute, cache the answer, and answer from the cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "engine/estimate.h"
#include "host/kept_answer.h"
#include "host/prompt_cache.h"
#include "host/registry.h"

#define REPLY SHOAL_TEST_DATA "/../../models/reply.gguf"
#define MAX_TOKENS 24u
#define SECOND UINT64_C(1000000000)

static struct registry *models;
static struct prompt_cache *cache;

static void on_identity(void *ctx, const uint8_t *from, const uint8_t *to)
{
    (void)ctx;
    if (to)
        prompt_cache_rename(cache, from, to);
    else
        prompt_cache_purge(cache, from);
}

struct waiter {
    struct registry_wait wait; /* first */
    _Atomic bool called;
    int rc;
};

static void on_loaded(struct registry_wait *w, struct registry_model *m, int rc)
{
    struct waiter *x = (struct waiter *)(void *)w;
    (void)m;
    x->rc = rc;
    x->called = true;
}

static struct registry_model *get(void)
{
    struct waiter w = {.wait.fn = on_loaded};
    struct registry_model *m = NULL;
    struct err e = {0};
    int rc = registry_get(models, "reply", SHOAL_KIND_GENERATE, &m, &w.wait, &e);
    if (rc == SHOAL_EBUSY) {
        for (int i = 0; i < 60000 && !w.called; i++)
            usleep(1000);
        assert_true(w.called);
        rc = w.rc;
        m = w.wait.model;
    }
    if (rc < 0)
        fail_msg("%d %s", rc, e.msg);
    return m;
}

/* ---- one answer ---- */

struct answer {
    struct buf tokens, text;
    struct shoal_event done;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct answer *a = ctx;
    if (ev->kind == SHOAL_EVENT_DONE) {
        a->done = *ev;
        return;
    }
    const struct kept_token t = {0,         ev->token, ev->logprob,    ev->top,
                                 ev->n_top, ev->text,  ev->text_bytes, false};
    kept_answer_put_token(&a->tokens, &t);
    buf_put(&a->text, ev->text, ev->text_bytes);
}

static struct prompt_key key_of(const struct registry_model *m, const char *text)
{
    const struct prompt_question q = {.kind = PROMPT_KIND_TEXT,
                                      .text = text,
                                      .text_bytes = strlen(text),
                                      .n_prompts = 1,
                                      .n_choices = 1,
                                      .max_tokens = MAX_TOKENS,
                                      .n_ctx = m->slot->n_ctx};
    struct prompt_key key;
    memcpy(key.model, registry_identity(m)->sum, sizeof(key.model));
    assert_true(prompt_key_question(key.question, &q));
    return key;
}

static void compute(struct registry_model *m, const char *text, struct answer *a)
{
    struct shoal_task_opts o = {
        .size = sizeof(o), .max_tokens = MAX_TOKENS, .event = on_event, .event_ctx = a};
    struct shoal_task *t;
    struct err e = {0};
    int32_t *tokens;
    size_t n;
    assert_int_equal(shoal_tokenize(registry_engine(m), text, strlen(text), SHOAL_TEXT_ADD_SPECIAL,
                                    &tokens, &n, &e),
                     0);
    o.tokens = tokens;
    o.n_tokens = (uint32_t)n;
    assert_int_equal(shoal_task_submit(registry_engine(m), &o, &t, &e), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
    shoal_free(tokens);
}

static void keep(const struct registry_model *m, const char *text, const struct answer *a)
{
    const struct shoal_event *d = &a->done;
    const struct kept_choice end = {d->finish,   d->prompt_tokens,  d->generated_tokens,
                                    d->queue_ns, d->first_token_ns, d->total_ns};
    const struct prompt_key key = key_of(m, text);
    struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(kept_answer_put(&b, &end, 1, &a->tokens), 0);
    prompt_cache_put(cache, &key, b.data, b.len, clock_ns());
    buf_fini(&b);
}

/* Copies the cached text to out; false: none. */
static bool recall(const struct registry_model *m, const char *text, struct buf *out)
{
    const struct prompt_key key = key_of(m, text);
    const struct prompt_entry *e = prompt_cache_get(cache, &key, clock_ns());
    struct kept_answer a;
    struct kept_token t;
    if (!e)
        return false;
    assert_int_equal(kept_answer_open(&a, e->data, e->n, NULL), 0);
    while (kept_answer_next(&a, &t))
        buf_put(out, t.text, t.text_bytes);
    prompt_cache_unref(e);
    return true;
}

static void test_an_answer_is_computed_and_kept(void **state)
{
    static const char text[] = "The kitchen lights are";
    struct registry_model *m = get();
    struct answer a = {.done = {.kind = SHOAL_EVENT_TOKEN}};
    struct buf kept;
    (void)state;
    buf_init(&a.tokens, 1 << 20);
    buf_init(&a.text, 1 << 20);
    buf_init(&kept, 1 << 20);
    assert_int_not_equal(registry_identity(m)->kind, IDENTITY_NONE);
    assert_false(recall(m, text, &kept));
    compute(m, text, &a);
    assert_true(a.text.len > 0 && a.done.generated_tokens > 0);
    /* while the model is being identified, the cache may use the name that is about to be
     * replaced */
    bool there = false;
    for (int i = 0; i < 10000 && !there; i++) {
        keep(m, text, &a);
        there = recall(m, text, &kept);
        if (!there)
            usleep(1000);
    }
    assert_true(there);
    assert_string_equal(buf_str(&kept), buf_str(&a.text));
    assert_false(recall(m, "Other lights are", &kept));
    /* the answer is still cached once the content is known */
    for (int i = 0; i < 60000 && registry_identity(m)->kind != IDENTITY_CONTENT; i++)
        usleep(1000);
    assert_int_equal(registry_identity(m)->kind, IDENTITY_CONTENT);
    for (int i = 0; i < 1000 && !recall(m, text, &kept); i++)
        usleep(1000); /* the thread that identified it is about to rename */
    assert_true(recall(m, text, &kept));
    buf_fini(&a.tokens);
    buf_fini(&a.text);
    buf_fini(&kept);
    registry_put(m);
}

/* ---- deadlines ---- */

struct flood {
    _Atomic uint32_t n_ended;
};

static void on_ended(void *ctx, const struct shoal_event *ev)
{
    struct flood *f = ctx;
    if (ev->kind == SHOAL_EVENT_DONE)
        f->n_ended++;
}

/* An overload of requests that cannot all be in time: some are rejected with an estimate, and
 * afterwards an idle model accepts work again. */
static void test_an_overload_locks_nobody_out(void **state)
{
    static const int32_t tokens[] = {5, 6, 7, 8, 9, 10, 11, 12};
    struct registry_model *m = get();
    struct shoal_engine *en = registry_engine(m);
    struct flood f = {.n_ended = 0};
    struct shoal_task_opts o = {.size = sizeof(o),
                                .tokens = tokens,
                                .n_tokens = 8,
                                .max_tokens = MAX_TOKENS,
                                .ignore_end = true,
                                .event = on_ended,
                                .event_ctx = &f};
    const struct cost_request r = {
        .prompt_tokens = 8, .max_tokens = MAX_TOKENS, .ignore_end = true};
    const struct fair_who who = {.client = 0};
    enum { N = 256 };
    struct shoal_task *t, *all[N];
    uint32_t n = 0, n_refused = 0;
    struct err e = {0};
    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(shoal_task_submit(en, &o, &t, &e), 0);
        assert_int_equal(shoal_task_wait(t), 0);
        shoal_task_free(t);
    }
    /* an idle model's own estimate: on a busy machine that exceeds its best time */
    const struct cost_estimate idle = registry_estimate(m, &r, &who);
    assert_true(idle.known && idle.total_ns > 0);
    uint64_t alone = (uint64_t)idle.total_ns;
    f.n_ended = 0;
    /* until one is refused behind others: the queue grows, so this must happen */
    for (int tries = 0; (n_refused == 0 || n == 0) && n < N && tries < 10000; tries++) {
        o.deadline_ns = clock_ns() + 3 * alone;
        int rc = shoal_task_submit(en, &o, &t, &e);
        assert_true(rc == 0 || rc == SHOAL_EDEADLINE || rc == SHOAL_EBUSY);
        if (rc == 0)
            all[n++] = t;
        else
            n_refused++;
    }
    assert_true(n > 0 && n_refused > 0);
    for (uint32_t i = 0; i < n; i++) {
        int rc = shoal_task_wait(all[i]);
        assert_true(rc == 0 || rc == SHOAL_EDEADLINE);
        shoal_task_free(all[i]);
    }
    assert_int_equal(f.n_ended, n);
    uint64_t until = clock_ns() + 30 * SECOND;
    int rc;
    do {
        o.deadline_ns = clock_ns() + 10 * alone;
        rc = shoal_task_submit(en, &o, &t, &e);
        if (rc < 0)
            usleep(10000);
    } while (rc == SHOAL_EDEADLINE && clock_ns() < until);
    if (rc < 0)
        fail_msg("an idle model still refuses after 30 s: %s", e.msg);
    (void)shoal_task_wait(t);
    shoal_task_free(t);
    registry_put(m);
}

static int open_node(void **state)
{
    const struct registry_opts o = {.identity = on_identity};
    const struct registry_spec spec = {
        .name = "reply", .path = REPLY, .n_ctx = 256, .max_tasks = 4, .max_queue = 200};
    (void)state;
    if (prompt_cache_create(&cache, 1 << 20, 0, NULL) < 0 || registry_create(&models, &o, NULL) < 0)
        return -1;
    return registry_add(models, &spec, NULL);
}

static int close_node(void **state)
{
    (void)state;
    registry_destroy(models);
    prompt_cache_destroy(cache);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_computed_and_kept),
        cmocka_unit_test(test_an_overload_locks_nobody_out),
    };
    return cmocka_run_group_tests(tests, open_node, close_node);
}
