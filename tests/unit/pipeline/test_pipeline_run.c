/* test_pipeline_run.c - pipeline/pipeline_run.h with models and timers that the test simulates:
 * steps in parallel, fallbacks, timeouts, one deadline for all, cancelling.
 *
 * A timer fires when nothing else is left to do, so that no test depends on real time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor.h"
#include "base/mem.h"
#include "knowledge/support.h"
#include "pipeline/graph/graph_type.h"
#include "pipeline/pipeline_call.h"
#include "pipeline/pipeline_report.h"
#include "pipeline/pipeline_run.h"
#include "pipeline/pipeline_value.h"
#include "store/collection.h"

#define MAX_HELD 64u

/* ---- an executor without a clock ---- */

struct turns {
    struct executor executor; /* first */
    struct executor_task *posted, **end;
    struct executor_timer timers; /* head of a ring */
};

static void post(struct executor *x, struct executor_task *t)
{
    struct turns *q = (struct turns *)(void *)x;
    t->next = NULL;
    *q->end = t;
    q->end = &t->next;
}

static void timer_clear(struct executor *x, struct executor_timer *t)
{
    (void)x;
    if (!t->prev)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

static void timer_set(struct executor *x, struct executor_timer *t, uint64_t at_ns)
{
    struct turns *q = (struct turns *)(void *)x;
    struct executor_timer *behind = &q->timers;
    timer_clear(x, t);
    while (behind->next != &q->timers && behind->next->at_ns <= at_ns)
        behind = behind->next;
    t->at_ns = at_ns;
    t->prev = behind;
    t->next = behind->next;
    behind->next->prev = t;
    behind->next = t;
}

/* Runs one task; if there is none, the earliest timer. False: neither exists. */
static bool turn(struct turns *q)
{
    struct executor_task *t = q->posted;
    struct executor_timer *timer = q->timers.next;
    if (t) {
        q->posted = t->next;
        if (!q->posted)
            q->end = &q->posted;
        t->fn(t);
    } else if (timer != &q->timers) {
        timer_clear(&q->executor, timer);
        timer->fn(timer);
    }
    return t || timer != &q->timers;
}

static const struct executor_ops turn_ops = {post, post, timer_set, timer_clear};

/* ---- models: "ok" answers at the next turn, "slow" when it is cancelled, "bad" fails, "words"
 * sends one word per turn, "torn" fails after the first word ---- */

struct world;

struct held {
    struct flow_job job; /* first */
    struct executor_task turn;
    struct world *world;
    struct request *request;
    struct sink *sink;
    bool cancelled, ended;
    uint32_t n_words;
};

struct world {
    struct dispatch dispatch; /* first */
    struct turns queue;
    struct flow flow;
    struct flow_owner owner;
    struct pipeline_site site;
    struct pipeline_outside outside;
    struct graph *graph;
    struct graph *list[1];
    struct held held[MAX_HELD];
    uint32_t n_held, n_open, most_open, n_cancelled, n_resumed;
    char log[512]; /* models in the order of their requests */
    char keys[256];
    uint32_t n_calls;
    uint64_t epoch; /* of the next request; 0: none */
    uint64_t seen[MAX_HELD];
    uint64_t ends[MAX_HELD]; /* deadlines of the requests */
};

static void end_held(struct held *h)
{
    struct flow_owner *o = &h->world->owner;
    if (h->ended)
        return;
    h->ended = true;
    h->world->n_open--;
    h->sink->job = NULL;
    h->sink->ops->closed(h->sink);
    flow_give_request(o, h->request);
}

static void answer_infer(struct held *h)
{
    static const struct shoal_label labels[] = {{"weather", 0.9f}, {"joke", 0.1f}};
    static const struct shoal_span spans[] = {{"city", 0, 4, 0, 4, 0.5f}, {"city", 5, 6, 5, 6, 1}};
    static const double values[] = {0.25};
    struct shoal_result r = {.kind = h->request->infer.kind,
                             .label = "weather",
                             .confidence = 0.9f,
                             .labels = labels,
                             .n_labels = 2,
                             .spans = spans,
                             .n_spans = 2,
                             .values = values,
                             .n_values = 1,
                             .text = "short",
                             .text_bytes = 5,
                             .n_tokens = 3};
    const struct sink_result e = {.result = &r, .last = true};
    h->sink->ops->result(h->sink, &e);
}

static void answer_text(struct held *h)
{
    const struct request *r = h->request;
    char text[256];
    const struct chat_message *m = r->kind == REQUEST_GENERATE
                                       ? &r->generate.chat.messages[r->generate.chat.n_messages - 1]
                                       : NULL;
    snprintf(text, sizeof(text), "<%s>", m ? m->content : r->ask.text);
    const struct sink_token t = {.token = 1, .text = text, .text_bytes = strlen(text)};
    const struct sink_done d = {.finish = SHOAL_FINISH_STOP,
                                .last = true,
                                .usage = {.prompt_tokens = 5, .generated_tokens = 2}};
    h->sink->ops->token(h->sink, &t);
    h->sink->ops->done(h->sink, &d);
}

/* The next word; false: there are no more. */
static bool answer_word(struct held *h)
{
    static const char *const words[] = {"one ", "two ", "three"};
    const struct sink_start start = {.model = "words", .version = ""};
    const struct sink_done d = {.finish = SHOAL_FINISH_STOP, .last = true};
    if (h->n_words == 0)
        h->sink->ops->start(h->sink, &start);
    if (h->n_words == 3) {
        h->sink->ops->done(h->sink, &d);
        return false;
    }
    const char *word = words[h->n_words++];
    const struct sink_token t = {.token = 1, .text = word, .text_bytes = strlen(word)};
    h->sink->ops->token(h->sink, &t);
    return true;
}

static void on_turn(struct executor_task *t)
{
    struct held *h = EXECUTOR_OF(t, struct held, turn);
    const char *model = h->request->model ? h->request->model : "ok";
    struct failure f;
    bool torn = strcmp(model, "torn") == 0 && h->n_words > 0;
    if (!h->ended && !h->cancelled && !torn &&
        (strcmp(model, "words") == 0 || strcmp(model, "torn") == 0)) {
        if (answer_word(h))
            executor_post(&h->world->queue.executor, &h->turn);
        else
            end_held(h);
        return;
    }
    if (!h->ended && !h->cancelled) {
        const struct sink_start start = {.model = model, .version = ""};
        if (strcmp(model, "bad") == 0 || torn) {
            failure_of(&f, SHOAL_EBUSY, "too busy");
            (h->sink->ops->fail)(h->sink, &f);
        } else {
            h->sink->ops->start(h->sink, &start);
            if (h->request->kind == REQUEST_INFER)
                answer_infer(h);
            else
                answer_text(h);
        }
    }
    end_held(h);
}

static void on_cancel(struct flow_job *j)
{
    struct held *h = (struct held *)(void *)j;
    h->cancelled = true;
    h->world->n_cancelled++;
    if (strcmp(h->request->model, "slow") == 0)
        end_held(h);
}

static void on_resume(struct flow_job *j)
{
    ((struct held *)(void *)j)->world->n_resumed++;
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct world *w = (struct world *)(void *)d;
    const char *model = r->model ? r->model : "ok";
    (void)o;
    assert_true(w->n_held < MAX_HELD);
    w->seen[w->n_held] = r->epoch;
    w->ends[w->n_held] = r->deadline_ns;
    struct held *h = &w->held[w->n_held++];
    *h = (struct held){.job = {&ops}, .turn = {.fn = on_turn}, .world = w, .request = r, .sink = s};
    w->n_open++;
    w->most_open = w->n_open > w->most_open ? w->n_open : w->most_open;
    size_t at = strlen(w->log);
    snprintf(w->log + at, sizeof(w->log) - at, "%s%s", at ? " " : "", model);
    s->job = &h->job;
    if (strcmp(model, "slow") != 0)
        executor_post(&w->queue.executor, &h->turn);
    return true;
}

/* A different epoch each time, as if updates came as fast as steps. */
static uint64_t epoch(struct dispatch *d)
{
    struct world *w = (struct world *)(void *)d;
    return w->epoch ? w->epoch++ : 0;
}

static void run_call(struct pipeline_outside *o, struct pipeline_call *c)
{
    struct world *w = EXECUTOR_OF(o, struct world, outside);
    w->n_calls++;
    snprintf(w->keys, sizeof(w->keys), "%s %s", c->key, c->url ? c->url : c->topic);
    if (c->how->via == GRAPH_MQTT) {
        c->done(c, SHOAL_EBUSY, "the broker is away");
        return;
    }
    c->status = 200;
    buf_printf(&c->answer, "{\"temperature\": 21}");
    c->done(c, 0, NULL);
}

/* ---- a flow and its answer ---- */

struct answer {
    struct sink sink;
    bool closed, done, degraded, full;
    uint32_t cancel_at;                        /* this many pieces of text; 0: never */
    char text[512], pieces[512], failure[512]; /* pieces: each followed by a '|' */
    uint32_t n_pieces;
    enum failure_kind kind;
    char states[512];
    struct sink_usage usage;
};

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    assert_string_equal(e->model, "f");
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer *a = (struct answer *)(void *)s;
    size_t n = strlen(a->text), m = strlen(a->pieces);
    snprintf(a->text + n, sizeof(a->text) - n, "%.*s", (int)t->text_bytes, t->text);
    snprintf(a->pieces + m, sizeof(a->pieces) - m, "%.*s|", (int)t->text_bytes, t->text);
    if (++a->n_pieces == a->cancel_at)
        flow_cancel(s);
}

static bool on_full(struct sink *s)
{
    return ((struct answer *)(void *)s)->full;
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = (struct answer *)(void *)s;
    assert_non_null(d->report);
    a->done = true;
    a->degraded = d->report->degraded;
    a->usage = d->usage;
    for (uint32_t i = 0; i < d->report->n_steps; i++) {
        const struct pipeline_report_step *x = &d->report->steps[i];
        size_t at = strlen(a->states);
        snprintf(a->states + at, sizeof(a->states) - at, "%s%s:%s%s%s", at ? " " : "", x->name,
                 pipeline_state_name(x->state), x->degraded ? "!" : "", x->late ? "~" : "");
    }
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct answer *a = (struct answer *)(void *)s;
    a->kind = f->kind;
    snprintf(a->failure, sizeof(a->failure), "%s", f->message);
}

static void on_closed(struct sink *s)
{
    ((struct answer *)(void *)s)->closed = true;
}

static const struct sink_ops answer_ops = {.start = on_start,
                                           .token = on_token,
                                           .done = on_done,
                                           .fail = on_fail,
                                           .closed = on_closed,
                                           .full = on_full};

static int setup(void **state)
{
    static const struct dispatch_ops ops = {.run = take, .epoch = epoch};
    static const struct pipeline_outside_ops outside_ops = {run_call};
    struct world *w = mem_zalloc(sizeof(*w));
    assert_non_null(w);
    w->queue.executor.ops = &turn_ops;
    w->queue.end = &w->queue.posted;
    w->queue.timers.prev = w->queue.timers.next = &w->queue.timers;
    w->dispatch.ops = &ops;
    w->outside.ops = &outside_ops;
    flow_owner_init(&w->owner, &w->flow, &w->queue.executor);
    w->owner.dispatch = &w->dispatch;
    pipeline_site_init(&w->site, NULL, &w->outside);
    w->site.graphs = w->list;
    w->owner.flows = &w->site.dispatch;
    assert_int_equal(graph_create(&w->graph, "f"), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    assert_int_equal(w->n_open, 0);
    assert_int_equal(w->owner.n_jobs, 0);
    graph_unref(w->graph);
    assert_ptr_equal(w->queue.timers.next, &w->queue.timers);
    flow_owner_fini(&w->owner);
    mem_free(w);
    return 0;
}

static struct graph_step *step(struct world *w, const char *name, enum graph_kind kind,
                               const char *model, const char *text)
{
    struct graph_step *s;
    const struct graph_step_spec spec = {.name = name, .kind = kind, .model = model};
    assert_int_equal(graph_add_step(w->graph, &spec, NULL, &s), 0);
    if (text)
        assert_int_equal(graph_add_arg(w->graph, s, GRAPH_ROLE_TEXT, text, NULL), 0);
    return s;
}

static void arg(struct world *w, struct graph_step *s, enum graph_role role, const char *text)
{
    assert_int_equal(graph_add_arg(w->graph, s, role, text, NULL), 0);
}

static struct request *ready(struct world *w, const char *output, struct answer *a, double budget)
{
    struct graph_error bad;
    *a = (struct answer){.sink = {.ops = &answer_ops}};
    assert_int_equal(graph_set_output(w->graph, output, NULL), 0);
    if (graph_check(w->graph, &bad) < 0)
        fail_msg("%s", bad.msg);
    w->list[0] = w->graph;
    w->site.n = 1;
    struct request *r = flow_take_request(&w->owner);
    assert_non_null(r);
    r->kind = REQUEST_ASK;
    r->model = "f";
    snprintf(r->id, sizeof(r->id), "req-1");
    r->received_ns = clock_ns();
    request_set_budget(r, budget);
    r->ask.text = "Bern x";
    return r;
}

static void finish(struct world *w, struct answer *a)
{
    while (!a->closed)
        assert_true(turn(&w->queue));
}

static void run(struct world *w, const char *output, struct answer *a, double budget)
{
    struct request *r = ready(w, output, a, budget);
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a->sink));
    finish(w, a);
}

/* ---- tests ---- */

static void test_steps_run_together(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "out", GRAPH_TEMPLATE, NULL,
         "${slots.values.city}: ${intent.label} ${round(intent.score, 1)} ${gen.text} ${sum.text}");
    step(w, "intent", GRAPH_CLASSIFY, "ok", "${input.text}");
    step(w, "slots", GRAPH_TAG, "ok", "${input.text}");
    step(w, "gen", GRAPH_GENERATE, "ok", "${intent.label}?");
    step(w, "sum", GRAPH_SUMMARIZE, "ok", "${input.text}");
    run(w, "${out.text}", &a, 0);
    assert_string_equal(a.text, "Bern: weather 0.9 <weather?> short");
    assert_int_equal(w->most_open, 3); /* intent, slots and sum; gen waits for intent */
    assert_false(a.degraded);
    assert_int_equal(a.usage.generated_tokens, 2);
    assert_int_equal(a.usage.prompt_tokens, 14);
}

static void test_switch_starts_what_it_chooses(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    step(w, "intent", GRAPH_CLASSIFY, "ok", "${input.text}");
    step(w, "big", GRAPH_GENERATE, "slow", "${input.text}");
    step(w, "small", GRAPH_GENERATE, "ok", "${only.label}");
    step(w, "only", GRAPH_CLASSIFY, "ok", "needed by small alone");
    s = step(w, "pick", GRAPH_SWITCH, NULL, NULL);
    assert_int_equal(
        graph_add_case(w->graph, s, "intent.label == 'joke'", NULL, NULL, NULL, "big", NULL), 0);
    assert_int_equal(
        graph_add_case(w->graph, s, "intent.score > 0.5", NULL, NULL, NULL, "small", NULL), 0);
    assert_int_equal(graph_add_case(w->graph, s, NULL, NULL, "neither", NULL, NULL, NULL), 0);
    run(w, "${pick.value} ${pick.case}", &a, 0);
    assert_string_equal(a.text, "<weather> 2");
    assert_string_equal(w->log, "ok ok ok"); /* not slow */
    assert_non_null(strstr(a.states, "big:unused"));
}

static void test_all_steps_have_one_epoch(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "intent", GRAPH_CLASSIFY, "ok", "${input.text}");
    step(w, "slots", GRAPH_TAG, "ok", "${input.text}");
    step(w, "gen", GRAPH_GENERATE, "ok", "${intent.label}"); /* after intent */
    w->epoch = 7;
    run(w, "${gen.text} ${slots.values.city}", &a, 0);
    assert_true(a.done);
    assert_int_equal(w->n_held, 3);
    for (uint32_t i = 0; i < w->n_held; i++)
        assert_int_equal(w->seen[i], 7);
    assert_int_equal(w->epoch, 8); /* it was called once */
}

static void test_condition_skips(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    step(w, "intent", GRAPH_CLASSIFY, "ok", "${input.text}");
    s = step(w, "joke", GRAPH_GENERATE, "ok", "x");
    arg(w, s, GRAPH_ROLE_WHEN, "intent.label == 'joke'");
    s = step(w, "all", GRAPH_MERGE, NULL, NULL);
    arg(w, s, GRAPH_ROLE_FROM, "${joke.text}");
    arg(w, s, GRAPH_ROLE_FROM, "no joke");
    run(w, "${all.value}", &a, 0);
    assert_string_equal(a.text, "no joke");
    assert_false(a.degraded);
    assert_non_null(strstr(a.states, "joke:skipped"));
}

static void test_timeout_and_fallbacks(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    s = step(w, "slow", GRAPH_GENERATE, "slow", "x");
    s->spec.timeout_ms = 5;
    arg(w, s, GRAPH_ROLE_FALLBACK, "failed");
    arg(w, s, GRAPH_ROLE_ON_TIMEOUT, "late, ${input.text}");
    s = step(w, "bad", GRAPH_CLASSIFY, "bad", "x");
    arg(w, s, GRAPH_ROLE_FALLBACK, "none");
    arg(w, s, GRAPH_ROLE_ON_TIMEOUT, "late");
    s = step(w, "other", GRAPH_GENERATE, "bad", "x");
    s->spec.fallback_step = "spare";
    step(w, "spare", GRAPH_GENERATE, "ok", "spare");
    run(w, "${slow.text} ${bad.label}${bad.score} ${other.text}", &a, 0);
    assert_string_equal(a.text, "late, Bern x none0 <spare>");
    assert_true(a.degraded);
    assert_int_equal(w->n_cancelled, 1);
    assert_string_equal(a.states, "slow:done!~ bad:done! other:done! spare:done");
}

static void test_share_of_the_deadline(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s = step(w, "slow", GRAPH_GENERATE, "slow", "x");
    s->spec.share = 0.001;
    s->spec.fallback_step = "spare";
    step(w, "spare", GRAPH_GENERATE, "ok", "spare");
    run(w, "${slow.text}", &a, 60000);
    assert_string_equal(a.text, "<spare>"); /* its share ends before the whole deadline */
    assert_true(a.degraded);
}

static void test_one_deadline_for_all(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    step(w, "intent", GRAPH_CLASSIFY, "ok", "${input.text}");
    s = step(w, "first", GRAPH_GENERATE, "slow", "${intent.label}");
    s->spec.fallback_step = "second";
    s = step(w, "second", GRAPH_CALL, NULL, NULL); /* no time is kept for calls */
    s->spec.call.via = GRAPH_HTTP;
    arg(w, s, GRAPH_ROLE_PATH, "http://x/");
    s = step(w, "third", GRAPH_CALL, NULL, NULL);
    s->spec.call.via = GRAPH_HTTP;
    arg(w, s, GRAPH_ROLE_PATH, "http://x/${first.text}");
    arg(w, s, GRAPH_ROLE_FALLBACK, "only ${intent.label}");
    run(w, "${third.text}", &a, 60000);
    assert_int_equal(w->n_calls, 0);
    assert_true(a.done); /* an answer, not an error */
    assert_string_equal(a.text, "only weather");
    assert_true(a.degraded);
    assert_string_equal(a.states, "intent:done first:failed!~ second:failed~ third:done!~");
    assert_string_equal(w->log, "ok slow"); /* nothing starts after the deadline */
}

/* A slow step ends in time for those that wait for it, and for the one in its place. */
static void test_later_steps_keep_their_time(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s = step(w, "first", GRAPH_GENERATE, "slow", "${input.text}");
    s->spec.fallback_step = "second";
    step(w, "second", GRAPH_GENERATE, "slow", "instead");
    arg(w, &w->graph->steps[1], GRAPH_ROLE_ON_TIMEOUT, "nothing");
    s = step(w, "say", GRAPH_GENERATE, "ok", "${first.text}");
    s->spec.max_tokens = 100; /* 200 ms for a model that was not measured */
    struct request *r = ready(w, "${say.text}", &a, 60000);
    const uint64_t end = r->deadline_ns;
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
    const uint64_t first = w->ends[0];
    assert_true(first + 300000000u < end && first + 1000000000u > end);
    finish(w, &a);
    assert_string_equal(a.text, "<nothing>");
    assert_string_equal(w->log, "slow slow ok");
    assert_true(w->ends[1] > first && w->ends[1] + 200000000u < end);
    assert_string_equal(a.states, "first:done!~ second:done!~ say:done");
}

/* If there is too little for all, the first step still has a part of it. */
static void test_a_step_always_has_some_time(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    step(w, "first", GRAPH_CLASSIFY, "ok", "${input.text}");
    s = step(w, "say", GRAPH_GENERATE, "ok", "${first.label}");
    s->spec.max_tokens = 1000000;
    struct request *r = ready(w, "${say.text}", &a, 60000);
    const uint64_t now = clock_ns();
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
    assert_true(w->ends[0] > now + 14000000000u);
    finish(w, &a);
    assert_true(a.done);
}

static void test_no_answer(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "slow", GRAPH_GENERATE, "slow", "x");
    run(w, "${slow.text}", &a, 60000);
    assert_false(a.done);
    assert_int_equal(a.kind, FAILURE_DEADLINE);
    assert_non_null(strstr(a.failure, "step 'slow'"));
}

static void test_fallback_of_the_flow(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "bad", GRAPH_GENERATE, "bad", "x");
    step(w, "next", GRAPH_GENERATE, "ok", "${bad.text}");
    assert_int_equal(graph_set_fallback(w->graph, "sorry, ${input.text}", NULL), 0);
    run(w, "${next.text}", &a, 0);
    assert_string_equal(a.text, "sorry, Bern x");
    assert_true(a.degraded);
    assert_string_equal(w->log, "bad");
}

static void test_map(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    step(w, "slots", GRAPH_TAG, "ok", "${input.text}");
    s = step(w, "each", GRAPH_MAP, NULL, NULL);
    s->spec.body = "one";
    arg(w, s, GRAPH_ROLE_OVER, "${slots.entities}");
    step(w, "one", GRAPH_GENERATE, "ok", "${item.text} of ${input.text}");
    run(w, "${each.count}: ${each.items[0].text} ${each.items[1].text}", &a, 0);
    assert_string_equal(a.text, "2: <Bern of Bern x> <x of Bern x>");
    assert_int_equal(w->most_open, 2);
}

static void test_map_item_falls_back(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    step(w, "slots", GRAPH_TAG, "ok", "${input.text}");
    s = step(w, "each", GRAPH_MAP, NULL, NULL);
    s->spec.body = "one";
    arg(w, s, GRAPH_ROLE_OVER, "${slots.entities}");
    s = step(w, "one", GRAPH_GENERATE, "bad", "x");
    arg(w, s, GRAPH_ROLE_FALLBACK, "no ${item.text}");
    run(w, "${each.items[0].text}, ${each.items[1].text}", &a, 0);
    assert_string_equal(a.text, "no Bern, no x");
    assert_true(a.degraded);
}

static void test_calls(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s = step(w, "get", GRAPH_CALL, NULL, NULL);
    s->spec.call = (struct graph_call){.via = GRAPH_HTTP, .server = "http://h:1", .json = true};
    arg(w, s, GRAPH_ROLE_PATH, "http://h:1/t?at=${input.text}");
    s = step(w, "say", GRAPH_CALL, NULL,
             NULL); /* its result is unused: it runs for its side effect */
    s->spec.call = (struct graph_call){.via = GRAPH_MQTT};
    arg(w, s, GRAPH_ROLE_TOPIC, "say");
    arg(w, s, GRAPH_ROLE_PAYLOAD, "{\"t\": \"${get.json.temperature}\"}");
    run(w, "${get.json.temperature} degrees", &a, 0);
    assert_string_equal(a.text, "21 degrees");
    assert_int_equal(w->n_calls, 2);
    assert_string_equal(w->keys, "req-1-say-0 say");
    assert_true(a.degraded); /* it could not be expressed */
    assert_string_equal(a.states, "get:done say:failed");
}

static void test_cancel(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "slow", GRAPH_GENERATE, "slow", "x");
    step(w, "ok", GRAPH_GENERATE, "ok", "x");
    struct request *r = ready(w, "${slow.text}${ok.text}", &a, 0);
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
    flow_cancel(&a.sink);
    finish(w, &a);
    assert_false(a.done);
    assert_string_equal(a.failure, "");
    assert_int_equal(w->n_cancelled, 2);
}

static void test_inputs(void **state)
{
    struct world *w = *state;
    struct answer a;
    assert_int_equal(graph_add_input(w->graph, "n", GRAPH_IN_NUMBER, NULL, NULL), 0);
    assert_int_equal(graph_add_input(w->graph, "room", GRAPH_IN_TEXT, "hall", NULL), 0);
    step(w, "out", GRAPH_TEMPLATE, NULL, "${input.room} ${input.n + 1} ${input.text}");
    static const struct value_member given[] = {{"n", {.kind = VALUE_NUMBER, .number = 2}}};
    static const struct value_member wrong[] = {{"n", {.kind = VALUE_TEXT, .text = {"2", 1}}}};
    static const struct value_member extra[] = {{"n", {.kind = VALUE_NUMBER, .number = 2}},
                                                {"m", {.kind = VALUE_NUMBER, .number = 2}}};
    static const struct value inputs[] = {{.kind = VALUE_MAP, .map = {given, 1}},
                                          {.kind = VALUE_MAP, .map = {wrong, 1}},
                                          {.kind = VALUE_MAP, .map = {extra, 2}},
                                          {.kind = VALUE_MAP}};
    static const char *const says[] = {"", "needs the input 'n', a number", "has no input 'm'",
                                       "needs the input 'n'"};
    struct request *r = ready(w, "${out.text}", &a, 0);
    for (int i = 0; i < 4; i++) {
        a = (struct answer){.sink = {.ops = &answer_ops}};
        if (i > 0) {
            r = flow_take_request(&w->owner);
            assert_non_null(r);
            r->kind = REQUEST_ASK;
            r->model = "f";
            r->ask.text = "t";
        }
        r->input = &inputs[i];
        assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
        finish(w, &a);
        assert_non_null(strstr(a.failure, says[i]));
        if (i == 0)
            assert_string_equal(a.text, "hall 3 Bern x");
    }
}

/* An empty text is rejected if it is the flow's only input. */
static void test_empty_text(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "lab", GRAPH_CLASSIFY, "ok", "${input.text}");
    struct request *r = ready(w, "${lab.label}", &a, 0);
    r->ask.text = " \n";
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
    finish(w, &a);
    assert_false(a.done);
    assert_non_null(strstr(a.failure, "the flow 'f' needs a text"));
}

static void test_empty_text_that_is_not_read(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "lab", GRAPH_CLASSIFY, "ok", "always the same");
    struct request *r = ready(w, "${lab.label}", &a, 0);
    r->ask.text = "";
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
    finish(w, &a);
    assert_string_equal(a.text, "weather");
}

/* ---- streamed answers ---- */

static void stream(struct world *w, const char *output, struct answer *a, uint32_t cancel_at)
{
    struct request *r = ready(w, output, a, 0);
    a->cancel_at = cancel_at;
    r->streams = true;
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a->sink));
    finish(w, a);
}

static void test_stream_of_the_output(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "lab", GRAPH_CLASSIFY, "ok", "${input.text}");
    step(w, "gen", GRAPH_GENERATE, "words", "${lab.label}");
    step(w, "end", GRAPH_TEMPLATE, NULL, "${text(len(gen.text))}");
    stream(w, "${lab.label}: ${gen.text} (${end.text})", &a, 0);
    assert_string_equal(a.pieces, "weather: |one |two |three| (13)|");
    assert_true(a.done);
    assert_string_equal(a.states, "lab:done gen:done end:done");
}

static void test_without_a_reader_it_comes_as_a_whole(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "gen", GRAPH_GENERATE, "words", "x");
    run(w, "${gen.text}", &a, 0);
    assert_string_equal(a.pieces, "one two three|");
}

static void test_stream_through_a_switch(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s = step(w, "pick", GRAPH_SWITCH, NULL, NULL);
    assert_int_equal(graph_add_case(w->graph, s, "false", NULL, "no", NULL, NULL, NULL), 0);
    assert_int_equal(graph_add_case(w->graph, s, NULL, NULL, NULL, NULL, "gen", NULL), 0);
    step(w, "gen", GRAPH_GENERATE, "words", "x");
    stream(w, "${pick.value}", &a, 0);
    assert_string_equal(a.pieces, "one |two |three|");
}

/* The text of the second step waits for that of the first. */
static void test_stream_of_two_steps_keeps_their_order(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "a", GRAPH_GENERATE, "words", "x");
    step(w, "b", GRAPH_GENERATE, "words", "${late.label}");
    step(w, "late", GRAPH_CLASSIFY, "ok", "x");
    stream(w, "${b.text}, ${a.text}", &a, 0);
    assert_string_equal(a.text, "one two three, one two three");
    assert_true(a.n_pieces >= 4);
}

static void test_a_reader_gets_no_second_beginning(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s = step(w, "gen", GRAPH_GENERATE, "torn", "x");
    arg(w, s, GRAPH_ROLE_FALLBACK, "sorry");
    assert_int_equal(graph_set_fallback(w->graph, "later", NULL), 0);
    stream(w, "${gen.text}", &a, 0);
    assert_string_equal(a.pieces, "one |");
    assert_false(a.done);
    assert_non_null(strstr(a.failure, "step 'gen': too busy"));
}

static void test_a_fallback_before_the_first_word(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s = step(w, "gen", GRAPH_GENERATE, "bad", "x");
    s->spec.fallback_step = "other";
    step(w, "other", GRAPH_GENERATE, "words", "x");
    stream(w, "${gen.text}!", &a, 0);
    assert_string_equal(a.pieces, "one |two |three|!|");
    assert_true(a.degraded);
}

static void test_cancel_in_the_middle_of_a_stream(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "gen", GRAPH_GENERATE, "words", "x");
    step(w, "slow", GRAPH_GENERATE, "slow", "x");
    stream(w, "${gen.text}${slow.text}", &a, 2);
    assert_string_equal(a.pieces, "one |two |");
    assert_false(a.done);
    assert_int_equal(w->n_cancelled, 2);
}

static void test_a_slow_reader_stops_the_model(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "gen", GRAPH_GENERATE, "words", "x");
    struct request *r = ready(w, "${gen.text}", &a, 0);
    r->streams = true;
    assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
    struct sink *model = w->held[0].sink;
    assert_false(model->ops->full(model));
    a.full = true;
    assert_true(model->ops->full(model));
    flow_resume(&a.sink);
    assert_int_equal(w->n_resumed, 1);
    finish(w, &a);
    assert_string_equal(a.pieces, "one |two |three|");
}

/* A flow that calls itself terminates. */
static void test_recursion_ends(void **state)
{
    struct world *w = *state;
    struct answer a;
    step(w, "again", GRAPH_GENERATE, "f", "${input.text}");
    run(w, "${again.text}", &a, 0);
    assert_false(a.done);
    assert_non_null(strstr(a.failure, "call each other"));
}

static void test_memory_failures(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct graph_step *s;
    step(w, "slots", GRAPH_TAG, "ok", "${input.text}");
    s = step(w, "each", GRAPH_MAP, NULL, NULL);
    s->spec.body = "one";
    arg(w, s, GRAPH_ROLE_OVER, "${slots.entities}");
    step(w, "one", GRAPH_GENERATE, "ok", "${item.text}");
    struct request *r = ready(w, "${text(each.items)}", &a, 0);
    bool done = false;
    for (uint64_t n = 1; n < 200 && !done; n++) {
        mem_fail_at(n);
        uint64_t before = mem_calls();
        assert_true(w->owner.flows->ops->run(w->owner.flows, &w->owner, r, &a.sink));
        finish(w, &a);
        mem_fail_at(0);
        done = a.done && mem_calls() - before < n;
        assert_true(a.done || a.failure[0]);
        a = (struct answer){.sink = {.ops = &answer_ops}};
        w->n_held = 0;
        w->log[0] = '\0';
        r = flow_take_request(&w->owner);
        assert_non_null(r);
        r->kind = REQUEST_ASK;
        r->model = "f";
        r->ask.text = "Bern x";
    }
    assert_true(done);
    flow_give_request(&w->owner, r);
}

/* An answer that cites a passage that was not given is unsupported, whatever it says. */
static void test_invented_marks(void **state)
{
    static const struct collection_hit hits[] = {
        {.id = 12, .doc = "", .title = "", .heading = "", .ref = "", .text = "The tank is full."},
        {.id = 7, .doc = "", .title = "", .heading = "", .ref = "", .text = "The pump is hot."}};
    static const char *const passages[] = {"The tank is full.", "The pump is hot."};
    static const struct {
        const char *answer, *verdict;
    } cases[] = {{"The tank is full. [12]", "true"},       {"The tank is full. [12] [7]", "true"},
                 {"The tank is full. [13]", "partly"},     {"The tank is full. [x]", "true"},
                 {"The tank is full. [12] [1]", "partly"}, {"The tank is full. []", "true"}};
    struct arena a;
    (void)state;
    arena_init(&a, 1 << 16);
    const struct value found = pipeline_value_passages(&a, hits, 2);
    const struct value *list = graph_type_member(&found, "passages", 8);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct str answer = {cases[i].answer, strlen(cases[i].answer)};
        struct support s;
        support_split(&s, answer.p, answer.n);
        support_judge(&s, answer.p, passages, 2, NULL);
        const struct value v = pipeline_value_support(&a, &s, answer, list->list.items, 2);
        const struct value *verdict = graph_type_member(&v, "verdict", 7);
        const struct value *supported = graph_type_member(&v, "supported", 9);
        assert_non_null(verdict);
        if (strncmp(verdict->text.p, cases[i].verdict, verdict->text.n) != 0)
            fail_msg("'%s': %.*s", answer.p, (int)verdict->text.n, verdict->text.p);
        assert_int_equal(supported->boolean, strcmp(cases[i].verdict, "true") == 0);
    }
    arena_fini(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_steps_run_together),
        TEST(test_all_steps_have_one_epoch),
        TEST(test_switch_starts_what_it_chooses),
        TEST(test_condition_skips),
        TEST(test_timeout_and_fallbacks),
        TEST(test_share_of_the_deadline),
        TEST(test_later_steps_keep_their_time),
        TEST(test_a_step_always_has_some_time),
        TEST(test_one_deadline_for_all),
        TEST(test_no_answer),
        TEST(test_fallback_of_the_flow),
        TEST(test_map),
        TEST(test_map_item_falls_back),
        TEST(test_calls),
        TEST(test_cancel),
        TEST(test_inputs),
        TEST(test_empty_text),
        TEST(test_empty_text_that_is_not_read),
        TEST(test_stream_of_the_output),
        TEST(test_without_a_reader_it_comes_as_a_whole),
        TEST(test_stream_through_a_switch),
        TEST(test_stream_of_two_steps_keeps_their_order),
        TEST(test_a_reader_gets_no_second_beginning),
        TEST(test_a_fallback_before_the_first_word),
        TEST(test_cancel_in_the_middle_of_a_stream),
        TEST(test_a_slow_reader_stops_the_model),
        TEST(test_recursion_ends),
        TEST(test_invented_marks),
        TEST(test_memory_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
