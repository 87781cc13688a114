/* front_walk.h - random events through the sink of a stage.
 *
 * A stage that changes nothing of an answer must hand on every event with every field, and
 * questions and orders of the client the other way.  walk() sends the same events twice, to the
 * client itself and through the stage, and compares what the client saw.
 *
 * Include it after cmocka.h.  It uses the text of golden_trace.h.
 *
 * Thread: one. */
#ifndef SHOAL_TESTS_FRONT_WALK_H
#define SHOAL_TESTS_FRONT_WALK_H

#include "support/dice.h"
#include "support/golden_trace.h"

#include "flow/flow.h"

#define WALK_LOGPROBS 3u

enum walk_kind { WALK_GENERATE, WALK_INFER, WALK_ASK };

struct walk_opts {
    enum walk_kind kind;
    uint32_t n_choices;
    bool calls;    /* events of tools may come */
    bool replaces; /* the stage lets an answer be replaced */
    /* What the stage changes on purpose; NULL: nothing. */
    void (*edit_start)(struct sink_start *e);
    /* Puts the stage in front of the client, and returns its sink.  end: the request is closed. */
    struct sink *(*open)(struct sink *client);
    void (*end)(void);
};

struct walk_client {
    struct sink sink; /* first */
    bool full, may[2];
    uint32_t n_starts, n_flushes, n_closed;
    const struct ask_plan *plan;
    void (*edit_start)(struct sink_start *e);
};

static inline struct walk_client *walk_client_of(struct sink *s)
{
    return (struct walk_client *)(void *)s;
}

/* ---- the client: it writes down what it sees ---- */

static inline void walk_on_start(struct sink *s, const struct sink_start *e)
{
    struct sink_start copy = *e;
    if (walk_client_of(s)->edit_start)
        walk_client_of(s)->edit_start(&copy);
    trace_start(s, &copy);
    walk_client_of(s)->n_starts++;
}

static inline void walk_on_plan(struct sink *s, const struct sink_plan *e)
{
    trace("plan\n");
    walk_client_of(s)->plan = e->plan;
}

static inline void walk_on_prompt(struct sink *s, const struct sink_prompt *e)
{
    (void)s;
    trace("prompt %u: %u %u %u\n", e->choice, e->tokens, e->cached, e->computed);
}

static inline void walk_on_token(struct sink *s, const struct sink_token *e)
{
    (void)s;
    trace_token(e);
}

static inline void walk_on_call(struct sink *s, const struct sink_call *e)
{
    (void)s;
    trace("call %u.%u %d%d %s %s '%.*s'\n", e->choice, e->index, e->begins, e->ends, e->id, e->name,
          (int)e->text_bytes, e->text);
}

static inline void walk_on_result(struct sink *s, const struct sink_result *e)
{
    (void)s;
    trace_result(e);
}

static inline void walk_done(const char *what, struct sink *s, const struct sink_done *e)
{
    trace_done(what, s, e);
    trace("  %llu %llu %llu energy=%d%d %g steps=%u", (unsigned long long)e->queue_ns,
          (unsigned long long)e->first_token_ns, (unsigned long long)e->total_ns,
          e->usage.energy.known, e->usage.energy.estimated, e->usage.energy.joules, e->n_steps);
    for (uint32_t i = 0; i < e->n_steps; i++)
        trace(" %s", e->steps[i].name);
    trace("\n");
}

static inline void walk_on_done(struct sink *s, const struct sink_done *e)
{
    walk_done("done", s, e);
}

static inline void walk_on_fail(struct sink *s, const struct failure *f)
{
    trace_failure(f);
    trace_choice(s->routed);
}

static inline void walk_on_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    walk_done("broke off", s, e);
    trace("  code=%d\n", code);
}

static inline bool walk_on_may_replace(struct sink *s, bool marked)
{
    return walk_client_of(s)->may[marked];
}

static inline void walk_on_replace(struct sink *s, const struct sink_replace *e)
{
    struct sink_start copy = *e->start;
    if (walk_client_of(s)->edit_start)
        walk_client_of(s)->edit_start(&copy);
    trace("replace: %s\n", e->why);
    trace_start(s, &copy);
}

static inline void walk_on_flush(struct sink *s)
{
    walk_client_of(s)->n_flushes++;
}

static inline bool walk_on_full(struct sink *s)
{
    return walk_client_of(s)->full;
}

static inline void walk_on_closed(struct sink *s)
{
    struct walk_client *c = walk_client_of(s);
    struct buf b;
    buf_init(&b, 1 << 16);
    struct json_out j = json_out_make(&b);
    if (c->plan)
        ask_plan_json(&j, c->plan);
    trace("closed %s\n", buf_str(&b));
    buf_fini(&b);
    c->n_closed++;
}

static const struct sink_ops walk_ops = {.start = walk_on_start,
                                         .plan = walk_on_plan,
                                         .prompt = walk_on_prompt,
                                         .token = walk_on_token,
                                         .call = walk_on_call,
                                         .result = walk_on_result,
                                         .done = walk_on_done,
                                         .fail = walk_on_fail,
                                         .closed = walk_on_closed,
                                         .broke_off = walk_on_broke_off,
                                         .may_replace = walk_on_may_replace,
                                         .replace = walk_on_replace,
                                         .flush = walk_on_flush,
                                         .full = walk_on_full};

/* ---- the work behind the stage ---- */

static struct walk_job {
    struct flow_job job; /* first */
    uint32_t n_cancels, n_resumes;
} walk_job;

static inline void walk_on_cancel(struct flow_job *j)
{
    ((struct walk_job *)(void *)j)->n_cancels++;
}

static inline void walk_on_resume(struct flow_job *j)
{
    ((struct walk_job *)(void *)j)->n_resumes++;
}

static inline struct sink_start walk_start(void)
{
    static const uint8_t sum[32] = {1};
    static const char *const models[] = {"small", "large"};
    return (struct sink_start){.model = models[dice_below(2)],
                               .version = dice_below(2) ? "v1" : "",
                               .sum = dice_below(2) ? sum : NULL,
                               .node = dice_below(2) ? "node-a" : NULL,
                               .cache = (enum sink_cache)dice_below(3),
                               .isolated = dice_below(2),
                               .question = dice_below(2) ? sum : NULL,
                               .slot = dice_below(2)};
}

static inline struct sink_done walk_figures(uint32_t choice)
{
    return (struct sink_done){.choice = choice,
                              .finish = dice_below(2) ? SHOAL_FINISH_STOP : SHOAL_FINISH_LENGTH,
                              .stopped_by_text = dice_below(2),
                              .stop_index = dice_below(5),
                              .prompt_tokens = dice_below(100),
                              .cached_tokens = dice_below(100),
                              .generated_tokens = dice_below(100),
                              .queue_ns = dice_below(1000),
                              .first_token_ns = dice_below(1000),
                              .total_ns = dice_below(1000),
                              .usage = {dice_below(100),
                                        dice_below(100),
                                        dice_below(100),
                                        {dice_below(2), dice_below(2), dice_below(9)}}};
}

static inline void walk_token(struct sink *s, const struct walk_opts *o)
{
    static const char *const words[] = {"hello", "world", "and", "all", ".", "21.5"};
    const char *text = words[dice_below(6)];
    struct sink_logprob log[WALK_LOGPROBS];
    for (uint32_t i = 0; i < WALK_LOGPROBS; i++)
        log[i] = (struct sink_logprob){(int32_t)dice_below(50), -(float)dice_below(9), "ab", 2};
    const bool logs = o->kind == WALK_GENERATE && dice_below(3) == 0;
    const struct sink_token e = {.choice = dice_below(o->n_choices),
                                 .token = o->kind == WALK_ASK ? -1 : (int32_t)dice_below(4) - 1,
                                 .echo = o->kind == WALK_GENERATE && dice_below(5) == 0,
                                 .text = text,
                                 .text_bytes = strlen(text),
                                 .logprobs = logs ? log : NULL,
                                 .n_logprobs = logs ? 1 + dice_below(WALK_LOGPROBS) : 0};
    s->ops->token(s, &e);
}

static inline void walk_call(struct sink *s, const struct walk_opts *o)
{
    static const char *const texts[] = {"{\"a\"", ":1}", "{}"};
    const uint32_t choice = dice_below(o->n_choices), index = dice_below(3), n = dice_below(3);
    struct sink_call e = {
        .choice = choice, .index = index, .id = "call_1", .name = "lamp", .text = ""};
    e.begins = true;
    s->ops->call(s, &e);
    e.begins = false;
    for (uint32_t i = 0; i < n; i++) {
        e.text = texts[i];
        e.text_bytes = strlen(texts[i]);
        s->ops->call(s, &e);
    }
    e.text = "";
    e.text_bytes = 0;
    e.ends = true;
    s->ops->call(s, &e);
}

static inline void walk_generation_event(struct sink *s, const struct walk_opts *o, bool *passed)
{
    const uint32_t what = dice_below(8);
    if (what == 0) {
        const struct sink_prompt e = {dice_below(o->n_choices), dice_below(99), dice_below(99),
                                      dice_below(99)};
        sink_tell_prompt(s, &e);
    } else if (what == 1 && o->calls)
        walk_call(s, o);
    else if (what == 2 && o->replaces && *passed) {
        const struct sink_start start = walk_start();
        const struct sink_replace e = {&start, "it was unsure"};
        s->ops->replace(s, &e);
    } else
        walk_token(s, o);
    *passed = true;
}

static inline void walk_result(struct sink *s, uint32_t index, bool last)
{
    static const struct shoal_label labels[] = {{.name = "yes", .score = 0.75f},
                                                {.name = "no", .score = 0.25f}};
    static const struct shoal_span spans[] = {{.label = "room", .start = 2, .end = 5}};
    const struct shoal_result r = {.kind = SHOAL_KIND_CLASSIFY,
                                   .label = labels[dice_below(2)].name,
                                   .confidence = 0.5f,
                                   .labels = labels,
                                   .n_labels = dice_below(3),
                                   .spans = spans,
                                   .n_spans = dice_below(2),
                                   .n_tokens = dice_below(50),
                                   .truncated = dice_below(2)};
    const struct sink_result e = {.index = index, .result = &r, .last = last};
    s->ops->result(s, &e);
}

static inline void walk_plan(struct sink *s)
{
    static const struct ask_plan_action action = {
        .name = "turn_on", .fields = {{.key = "room", .text = "kitchen"}}, .n_fields = 1};
    static const struct ask_plan_action *const actions[] = {&action};
    static const struct ask_plan plan = {.actions = actions, .n_actions = 1};
    s->ops->plan(s, &(struct sink_plan){.plan = &plan});
}

/* What the client asks and orders reaches the work, and what the work asks the client. */
static inline void walk_talk(struct sink *s, struct walk_client *c, const struct walk_opts *o)
{
    const uint32_t n_flushes = c->n_flushes, n_resumes = walk_job.n_resumes;
    c->full = dice_below(2);
    c->may[0] = dice_below(2);
    c->may[1] = dice_below(2);
    assert_int_equal(sink_is_full(s), c->full);
    for (int marked = 0; marked < 2; marked++)
        assert_int_equal(sink_may_replace(s, marked),
                         (s == &c->sink || o->replaces) && c->may[marked]);
    sink_flush(s);
    if (c->n_starts > 0) /* before, nothing can be sent */
        assert_int_equal(c->n_flushes, n_flushes + 1);
    flow_resume(&c->sink);
    assert_int_equal(walk_job.n_resumes, n_resumes + 1);
    assert_int_equal(walk_job.n_cancels, 0);
}

static inline void walk_finish(struct sink *s, const struct walk_opts *o)
{
    static const struct ask_plan_step steps[] = {{.name = "read"}, {.name = "reply"}};
    for (uint32_t i = 0; i < o->n_choices; i++) {
        struct sink_done e = walk_figures(i);
        e.last = i + 1 == o->n_choices;
        e.steps = o->kind == WALK_ASK ? steps : NULL;
        e.n_steps = o->kind == WALK_ASK ? 2 : 0;
        s->ops->done(s, &e);
    }
}

static inline void walk_break_off(struct sink *s, const struct walk_opts *o)
{
    for (uint32_t i = 0; i < o->n_choices && o->kind == WALK_GENERATE; i++) {
        const struct sink_done e = walk_figures(i);
        sink_tell_broke_off(s, &e, SHOAL_ECANCELLED);
    }
}

static struct routing_ensemble walk_ensemble;
static struct routing_choice walk_choice;

/* How the model was chosen; NULL: the client named it. */
static inline const struct routing_choice *walk_route(void)
{
    walk_ensemble = (struct routing_ensemble){.kind = "cascade", .n_steps = 1};
    walk_ensemble.steps[0].model = "small";
    walk_ensemble.steps[0].what = "answered";
    walk_choice = (struct routing_choice){.route = "auto",
                                          .model = "small",
                                          .node = "node-a",
                                          .domain = "home",
                                          .domain_p = 0.5,
                                          .ensemble = dice_below(2) ? &walk_ensemble : NULL,
                                          .rule = 3,
                                          .policy = "quality cost"};
    return dice_below(2) ? &walk_choice : NULL;
}

/* All events of a request. */
static inline void walk_events(struct sink *s, struct walk_client *c, const struct walk_opts *o)
{
    static const struct flow_job_ops job_ops = {walk_on_cancel, walk_on_resume};
    const struct sink_start start = walk_start();
    const uint32_t n = dice_below(9), way = dice_below(4);
    bool passed = false;
    struct failure f;
    walk_job = (struct walk_job){.job.ops = &job_ops};
    s->job = &walk_job.job;
    assert_ptr_equal(s->routed, c->sink.routed); /* a stage behind the choice has it, too */
    if (dice_below(2))
        s->routed = &walk_choice;
    s->ops->start(s, &start);
    walk_talk(s, c, o);
    if (o->kind == WALK_ASK)
        walk_plan(s);
    for (uint32_t i = 0; i < n; i++) {
        if (o->kind == WALK_GENERATE)
            walk_generation_event(s, o, &passed);
        else if (o->kind == WALK_ASK)
            walk_token(s, o);
        else
            walk_result(s, i, false);
        walk_talk(s, c, o);
    }
    if (n > 0) { /* else the start may not have been sent */
        walk_ensemble.steps[1] = walk_ensemble.steps[0];
        walk_ensemble.steps[1].model = "large";
        walk_ensemble.n_steps = 2;
    }
    if (way == 0) {
        failure_set(&f, FAILURE_BUSY, SHOAL_EBUSY, "model", "overloaded", "no room: %u", n);
        f.retry_after_s = 7;
        (s->ops->fail)(s, &f);
    } else if (way == 1) {
        flow_cancel(&c->sink);
        assert_int_equal(walk_job.n_cancels, 1);
        walk_break_off(s, o);
    } else if (o->kind == WALK_INFER)
        walk_result(s, n, true);
    else
        walk_finish(s, o);
    s->job = NULL;
    s->ops->closed(s);
}

/* What a client sees of the events; through: behind the stage. */
static inline char *walk_once(const struct walk_opts *o, uint64_t seed, bool through)
{
    struct walk_client c = {.sink.ops = &walk_ops};
    dice_state = seed;
    golden_begin();
    c.sink.routed = walk_route();
    if (through) {
        struct sink *s = o->open(&c.sink);
        walk_events(s, &c, o);
        o->end();
        assert_null(c.sink.job);
    } else {
        c.edit_start = o->edit_start;
        walk_events(&c.sink, &c, o);
    }
    assert_int_equal(c.n_closed, 1);
    trace_on = false;
    char *text = strdup(buf_str(&golden_text));
    buf_fini(&golden_text);
    return text;
}

/* Many walks; a failure prints what was expected and what came. */
static inline void walk(const struct walk_opts *o)
{
    dice_seed(1);
    uint64_t seed = dice_state;
    for (uint32_t i = 0; i < 200; i++, seed++) {
        char *want = walk_once(o, seed, false), *got = walk_once(o, seed, true);
        const bool same = strcmp(want, got) == 0;
        if (!same) {
            print_error("seed %llu\n-- expected\n%s", (unsigned long long)seed, want);
            print_error("-- seen\n%s", got); /* apart: cmocka cuts long texts */
        }
        assert_true(same);
        free(want);
        free(got);
    }
}

#endif
