/* pipeline_run.c - see pipeline_run.h. */
#include "pipeline/pipeline_run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "flow/flow_run.h"
#include "pipeline/graph/graph_kind.h"
#include "pipeline/pipeline_answer.h"
#include "pipeline/pipeline_input.h"
#include "pipeline/pipeline_live.h"
#include "pipeline/pipeline_report.h"
#include "pipeline/pipeline_reserve.h"
#include "pipeline/pipeline_value.h"
#include "pipeline/pipeline_work.h"
#include "trace/trace_words.h"

#define LEAST_MARGIN_NS 500000u  /* part of the deadline reserved for the answer: */
#define MOST_MARGIN_NS 20000000u /* a twentieth of the time, within these */
#define LEAST_PART 4u            /* of the time that is left, for a step that others wait for */

static void advance(struct pipeline_live *x);

/* ---- steps that end ---- */

static void step_done(struct pipeline_live *x, uint32_t i, struct value v)
{
    struct pipeline_live_step *s = &x->steps[i];
    s->value = v;
    s->state = PIPELINE_DONE;
    s->end_ns = clock_ns();
    s->task = NULL;
}

static void demand(struct pipeline_live *x, uint32_t i)
{
    struct pipeline_live_step *s = &x->steps[i];
    if (s->state != PIPELINE_UNUSED)
        return;
    s->state = PIPELINE_WAITING;
    for (uint32_t k = 0; k < x->graph->n_steps; k++)
        if (x->graph->steps[i].needs & pipeline_live_bit(k))
            demand(x, k);
}

/* The value that replaces the result of a failed step: of on_timeout or fallback; false: none. */
static bool fallback_value(struct pipeline_live *x, const struct graph_step *g,
                           const struct value *item, bool late, struct value *out)
{
    const struct graph_arg *a = late ? graph_arg(g, GRAPH_ROLE_ON_TIMEOUT, 0) : NULL;
    struct err e = {0};
    struct value v;
    if (!a)
        a = graph_arg(g, GRAPH_ROLE_FALLBACK, 0);
    if (!a || pipeline_live_eval(x, a, item, &v, &e) < 0)
        return false;
    *out = pipeline_live_main_only(x, g, v);
    return true;
}

static void step_failed(struct pipeline_live *x, uint32_t i, const struct failure *f, bool late)
{
    const struct graph_step *g = &x->graph->steps[i];
    struct pipeline_live_step *s = &x->steps[i];
    struct value v;
    /* text that was sent cannot be replaced */
    bool fixed = s->replaced || (x->n_of_piece > 0 && pipeline_live_feeds_output(x, i));
    s->late |= late;
    s->task = NULL;
    if (!s->why[0]) {
        s->failure = *f;
        s->failure.param = NULL; /* valid only during the event, as is the reason */
        s->failure.reason = f->kind == FAILURE_DEADLINE ? "deadline" : NULL;
        snprintf(s->why, sizeof(s->why), "%.199s", f->message);
    }
    if (!fixed && fallback_value(x, g, NULL, late, &v)) {
        s->degraded = true;
        step_done(x, i, v);
    } else if (!fixed && g->fallback_step >= 0) {
        s->degraded = s->replaced = true;
        s->waits_for = g->fallback_step;
        s->state = PIPELINE_PENDING;
        demand(x, (uint32_t)g->fallback_step);
    } else {
        s->state = PIPELINE_FAILED;
        s->end_ns = clock_ns();
    }
}

static void step_error(struct pipeline_live *x, uint32_t i, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    if (rc == SHOAL_EINVAL)
        f.kind = FAILURE_INTERNAL; /* the flow is wrong, not the request */
    step_failed(x, i, &f, false);
}

static void step_late(struct pipeline_live *x, uint32_t i)
{
    struct failure f;
    failure_late(&f, false, false, "it exceeded its time limit");
    step_failed(x, i, &f, true);
}

/* ---- tasks ---- */

static void abandon(struct pipeline_task *t)
{
    t->over = true;
    executor_timer_clear(t->run->owner->executor, &t->timer);
    if (t->open)
        pipeline_work_cancel(&t->work);
}

static void abandon_map(struct pipeline_live *x, int32_t map)
{
    for (struct pipeline_task *t = x->tasks; t; t = t->next)
        if (t->map == map && !t->over)
            abandon(t);
}

static struct value map_value(struct pipeline_live *x, const struct pipeline_live_step *s)
{
    const struct value_member m[] = {
        {"items", {.kind = VALUE_LIST, .list = {s->items, s->n_items}}},
        {"count", pipeline_value_number(s->n_items)}};
    return pipeline_value_map(&x->request->arena, m, 2);
}

/* One item of a map is complete. */
static void item_done(struct pipeline_live *x, struct pipeline_task *t, struct value v)
{
    struct pipeline_live_step *s = &x->steps[t->map];
    s->items[t->index] = v;
    if (--s->n_left == 0)
        step_done(x, (uint32_t)t->map, map_value(x, s));
}

static void item_failed(struct pipeline_live *x, struct pipeline_task *t, const struct failure *f,
                        bool late)
{
    struct value v;
    if (fallback_value(x, &x->graph->steps[t->step], t->item, late, &v)) {
        x->steps[t->map].degraded = true;
        item_done(x, t, v);
        return;
    }
    abandon_map(x, t->map);
    step_failed(x, (uint32_t)t->map, f, late);
}

static void task_failed(struct pipeline_task *t, const struct failure *f, bool late)
{
    if (t->map >= 0)
        item_failed(t->run, t, f, late);
    else
        step_failed(t->run, t->step, f, late);
}

static void on_task_timer(struct executor_timer *timer)
{
    struct pipeline_task *t = EXECUTOR_OF(timer, struct pipeline_task, timer);
    struct pipeline_live *x = t->run;
    struct failure f;
    if (t->over)
        return;
    x->advancing = true; /* events that arrive in the meantime wait for the end */
    abandon(t);
    failure_late(&f, false, false, "it exceeded its time limit");
    task_failed(t, &f, true);
    x->advancing = false;
    advance(x);
}

static void on_work_done(struct pipeline_work *w, const struct failure *f)
{
    struct pipeline_task *t = (struct pipeline_task *)(void *)w;
    struct pipeline_live *x = t->run;
    bool counts = !t->over, inside = x->advancing;
    if (f)
        trace_fail(w->spans.trace, w->spans.span, f->reason);
    trace_end(w->spans.trace, w->spans.span, clock_ns());
    t->open = false;
    t->over = true;
    x->n_open--;
    x->prompt_tokens += w->prompt_tokens;
    x->generated_tokens += w->generated_tokens;
    executor_timer_clear(x->owner->executor, &t->timer);
    x->advancing = true;
    if (counts && f)
        task_failed(t, f, f->kind == FAILURE_DEADLINE);
    else if (counts && t->map >= 0)
        item_done(x, t, w->result);
    else if (counts)
        step_done(x, t->step, w->result);
    x->advancing = inside;
    advance(x);
}

static void on_work_more(struct pipeline_work *w);

static bool on_work_full(struct pipeline_work *w)
{
    const struct pipeline_live *x = ((const struct pipeline_task *)(const void *)w)->run;
    return sink_is_full(x->sink);
}

/* The end of the flow less what later steps need; a step always has a part of what is left. */
static uint64_t end_for(const struct pipeline_live *x, uint32_t step, uint64_t now)
{
    const uint64_t left = x->end_ns > now ? x->end_ns - now : 0;
    const uint64_t later = left > 0 ? pipeline_reserve_ns(x, step) : 0;
    const uint64_t most = left - left / LEAST_PART;
    return x->end_ns - (later < most ? later : most);
}

/* Until when a step may work (for the items of a map: that of the map); 0: for ever. */
static uint64_t limit_of(const struct pipeline_live *x, const struct graph_step *g, uint32_t step)
{
    uint64_t now = clock_ns(), until = x->end_ns ? end_for(x, step, now) : 0, at;
    if (g->spec.timeout_ms) {
        at = now + g->spec.timeout_ms * 1000000ull;
        until = until == 0 || at < until ? at : until;
    }
    if (g->spec.share > 0 && x->end_ns) {
        at = now + (uint64_t)(g->spec.share * (double)(x->end_ns - x->start_ns));
        until = at < until ? at : until;
    }
    return until;
}

static bool eval_args(struct pipeline_live *x, const struct graph_step *g, const struct value *item,
                      struct value **out, struct err *e)
{
    struct value *args = arena_zalloc_n(&x->request->arena, g->n_args, sizeof(*args));
    *out = args;
    if (!args) {
        err_set(e, SHOAL_ENOMEM, "out of memory");
        return false;
    }
    for (uint32_t i = 0; i < g->n_args; i++) {
        enum graph_role r = g->args[i].role;
        bool later = r == GRAPH_ROLE_WHEN || r == GRAPH_ROLE_FALLBACK ||
                     r == GRAPH_ROLE_ON_TIMEOUT || r == GRAPH_ROLE_CASE_WHEN ||
                     r == GRAPH_ROLE_CASE_VALUE;
        if (!later && pipeline_live_eval(x, &g->args[i], item, &args[i], e) < 0)
            return false;
    }
    return true;
}

static struct trace_at spans_of(const struct pipeline_live *x, const struct graph_step *g)
{
    struct trace_at at = x->request->spans;
    at.span = trace_begin(at.trace, at.span, g->spec.name, clock_ns());
    trace_text(at.trace, at.span, TRACE_STEP_KIND, graph_kinds[g->spec.kind].name);
    return at;
}

/* map -1: the step's own work. Events may arrive before this returns. */
static void start_task(struct pipeline_live *x, uint32_t step, int32_t map, uint32_t index,
                       const struct value *item)
{
    const struct graph_step *g = &x->graph->steps[step];
    struct pipeline_task *t = arena_zalloc(&x->request->arena, sizeof(*t));
    struct value *args;
    struct err e = {0};
    struct failure f;
    if (!t) {
        step_error(x, map >= 0 ? (uint32_t)map : step, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *t = (struct pipeline_task){
        .run = x, .next = x->tasks, .step = step, .map = map, .index = index, .item = item};
    x->tasks = t;
    t->timer.fn = on_task_timer;
    if (!eval_args(x, g, item, &args, &e)) {
        t->over = true;
        failure_of(&f, e.code, e.msg);
        f.kind = FAILURE_INTERNAL;
        task_failed(t, &f, false);
        return;
    }
    if (g->spec.kind == GRAPH_TEMPLATE) { /* the body of a map */
        t->over = true;
        item_done(x, t, pipeline_live_main_only(x, g, args[0]));
        return;
    }
    if (x->late) {
        t->over = true;
        failure_late(&f, false, false, "there was no time left for it");
        task_failed(t, &f, true);
        return;
    }
    uint64_t until = limit_of(x, g, map >= 0 ? (uint32_t)map : step);
    bool read = x->request->streams && g->spec.kind == GRAPH_GENERATE && map < 0;
    t->work = (struct pipeline_work){.owner = x->owner,
                                     .collections = x->site->collections,
                                     .outside = x->site->outside,
                                     .step = g,
                                     .from = x->request,
                                     .spans = spans_of(x, g),
                                     .args = args,
                                     .deadline_ns = until,
                                     .index = index,
                                     .arena = &x->request->arena,
                                     .done = on_work_done,
                                     .more = read ? on_work_more : NULL,
                                     .full = read ? on_work_full : NULL};
    t->open = true;
    x->n_open++;
    if (map < 0)
        x->steps[step].task = t;
    if (until)
        executor_timer_set(x->owner->executor, &t->timer, until);
    pipeline_work_start(&t->work);
}

/* ---- steps that are computed at once ---- */

static void start_switch(struct pipeline_live *x, uint32_t i)
{
    const struct graph_step *g = &x->graph->steps[i];
    struct pipeline_live_step *s = &x->steps[i];
    struct err e = {0};
    for (uint32_t k = 0; k < g->n_cases; k++) {
        const struct graph_case *c = &g->cases[k];
        struct value v = value_bool(true);
        int rc = c->when ? pipeline_live_eval(x, c->when, NULL, &v, &e) : 0;
        if (rc == 0 && !(v.kind == VALUE_BOOL && v.boolean))
            continue;
        if (rc == 0 && c->value)
            rc = pipeline_live_eval(x, c->value, NULL, &v, &e);
        if (rc < 0) {
            step_error(x, i, rc, e.msg);
            return;
        }
        s->chosen = k + 1;
        if (c->step >= 0) {
            s->state = PIPELINE_PENDING;
            s->waits_for = c->step;
            demand(x, (uint32_t)c->step);
            return;
        }
        const struct value_member m[] = {{"value", v}, {"case", pipeline_value_number(s->chosen)}};
        step_done(x, i, pipeline_value_map(&x->request->arena, m, 2));
        return;
    }
    step_done(x, i, (struct value){.kind = VALUE_MAP}); /* no case: an empty value */
}

/* Appends a value, or the items of a list. */
static uint32_t put_items(struct value *to, uint32_t n, const struct value *v, uint32_t most)
{
    if (v->kind != VALUE_LIST) {
        if (n < most && v->kind != VALUE_NULL)
            to[n++] = *v;
        return n;
    }
    for (size_t i = 0; i < v->list.n && n < most; i++)
        to[n++] = v->list.items[i];
    return n;
}

static void start_merge(struct pipeline_live *x, uint32_t i)
{
    const struct graph_step *g = &x->graph->steps[i];
    struct pipeline_live_step *s = &x->steps[i];
    struct value *args, out = graph_type_empty(graph_type_field(g->gives, "value", 5));
    struct buf b;
    struct err e = {0};
    uint32_t most = 4096, n = 0;
    for (uint32_t k = 0; k < x->graph->n_steps; k++)
        if ((g->needs & pipeline_live_bit(k)) && x->steps[k].state == PIPELINE_FAILED)
            s->degraded = true; /* the failed step's value counts as empty */
    if (!eval_args(x, g, NULL, &args, &e)) {
        step_error(x, i, e.code, e.msg);
        return;
    }
    buf_init(&b, PIPELINE_MAX_OUTPUT_BYTES);
    struct value *list =
        g->spec.how == GRAPH_LIST ? arena_zalloc_n(&x->request->arena, most, sizeof(*list)) : NULL;
    for (uint32_t k = 0; k < g->n_args; k++) {
        if (g->args[k].role != GRAPH_ROLE_FROM || graph_type_is_empty(&args[k]))
            continue;
        if (g->spec.how == GRAPH_FIRST) {
            out = args[k];
            break;
        }
        if (g->spec.how == GRAPH_LIST && list)
            n = put_items(list, n, &args[k], most);
        if (g->spec.how == GRAPH_JOIN) {
            if (b.len > 0)
                buf_puts(&b, g->spec.separator ? g->spec.separator : "\n");
            graph_expr_put(&b, &args[k], GRAPH_EXPR_PLAIN);
        }
    }
    if (g->spec.how == GRAPH_LIST)
        out = (struct value){.kind = VALUE_LIST, .list = {list, list ? n : 0}};
    if (g->spec.how == GRAPH_JOIN)
        out = pipeline_value_copy(&x->request->arena, buf_str(&b), b.len);
    int rc = b.rc;
    buf_fini(&b);
    if (rc < 0)
        step_error(x, i, rc, "the merged text is too long");
    else
        step_done(x, i, pipeline_live_main_only(x, g, out));
}

static void start_map(struct pipeline_live *x, uint32_t i)
{
    const struct graph_step *g = &x->graph->steps[i];
    struct pipeline_live_step *s = &x->steps[i];
    struct value list;
    struct err e = {0};
    int rc = pipeline_live_eval(x, graph_arg(g, GRAPH_ROLE_OVER, 0), NULL, &list, &e);
    if (rc < 0 || list.kind != VALUE_LIST || list.list.n > PIPELINE_MAX_ITEMS) {
        const char *why =
            list.kind != VALUE_LIST ? "`over` is not a list" : "the list has more than 64 items";
        step_error(x, i, rc < 0 ? rc : SHOAL_ELIMIT, rc < 0 ? e.msg : why);
        return;
    }
    s->n_items = s->n_left = (uint32_t)list.list.n;
    s->items = arena_zalloc_n(&x->request->arena, s->n_items, sizeof(*s->items));
    if (!s->items) {
        step_error(x, i, SHOAL_ENOMEM, "out of memory");
        return;
    }
    if (s->n_items == 0)
        step_done(x, i, map_value(x, s));
    for (uint32_t k = 0; k < s->n_items && s->state == PIPELINE_RUNNING; k++)
        start_task(x, (uint32_t)g->body, (int32_t)i, k, &list.list.items[k]);
}

static void start_template(struct pipeline_live *x, uint32_t i)
{
    const struct graph_step *g = &x->graph->steps[i];
    struct value v;
    struct err e = {0};
    int rc = pipeline_live_eval(x, graph_arg(g, GRAPH_ROLE_TEXT, 0), NULL, &v, &e);
    if (rc < 0)
        step_error(x, i, rc, e.msg);
    else
        step_done(x, i, pipeline_live_main_only(x, g, v));
}

/* ---- which steps start ---- */

/* The step that a failed one needs; -1: all that it needs are well. */
static int32_t failed_need(const struct pipeline_live *x, const struct graph_step *g)
{
    for (uint32_t k = 0; k < x->graph->n_steps; k++)
        if ((g->needs & pipeline_live_bit(k)) && x->steps[k].state == PIPELINE_FAILED)
            return (int32_t)k;
    return -1;
}

static void start_step(struct pipeline_live *x, uint32_t i)
{
    const struct graph_step *g = &x->graph->steps[i];
    struct pipeline_live_step *s = &x->steps[i];
    const struct graph_arg *when = graph_arg(g, GRAPH_ROLE_WHEN, 0);
    struct value v = value_bool(true);
    struct err e = {0};
    int32_t bad = g->spec.kind == GRAPH_MERGE ? -1 : failed_need(x, g);
    s->state = PIPELINE_RUNNING;
    s->start_ns = clock_ns();
    if (bad >= 0) {
        struct failure f = x->steps[bad].failure;
        snprintf(f.message, sizeof(f.message), "it needs '%s', which failed: %.200s",
                 x->graph->steps[bad].spec.name, x->steps[bad].why);
        step_failed(x, i, &f, x->steps[bad].late);
        return;
    }
    int rc = when ? pipeline_live_eval(x, when, NULL, &v, &e) : 0;
    if (rc < 0) {
        step_error(x, i, rc, e.msg);
        return;
    }
    if (!(v.kind == VALUE_BOOL && v.boolean)) {
        s->state = PIPELINE_SKIPPED;
        s->end_ns = s->start_ns;
        s->value = graph_type_empty(g->gives);
        return;
    }
    switch (g->spec.kind) {
    case GRAPH_SWITCH:
        start_switch(x, i);
        break;
    case GRAPH_MERGE:
        start_merge(x, i);
        break;
    case GRAPH_MAP:
        start_map(x, i);
        break;
    case GRAPH_TEMPLATE:
        start_template(x, i);
        break;
    default:
        start_task(x, i, -1, 0, NULL);
        break;
    }
}

/* The fallback of a step has ended. */
static void take_place(struct pipeline_live *x, uint32_t i)
{
    const struct graph_step *g = &x->graph->steps[i];
    struct pipeline_live_step *s = &x->steps[i];
    const struct graph_step *og = &x->graph->steps[s->waits_for];
    const struct pipeline_live_step *o = &x->steps[s->waits_for];
    if (o->state == PIPELINE_FAILED) {
        step_failed(x, i, &o->failure, o->late);
        return;
    }
    s->degraded |= o->degraded;
    if (g->spec.kind == GRAPH_SWITCH && !s->replaced) {
        const struct value_member m[] = {{"value", pipeline_live_main_of(og, &o->value)},
                                         {"case", pipeline_value_number(s->chosen)}};
        step_done(x, i, pipeline_value_map(&x->request->arena, m, 2));
    } else {
        step_done(x, i,
                  g->main && og->main
                      ? pipeline_live_main_only(x, g, pipeline_live_main_of(og, &o->value))
                      : o->value);
    }
}

/* One pass over all steps; true: something has changed. */
static bool move_steps(struct pipeline_live *x)
{
    bool moved = false;
    for (uint32_t i = 0; i < x->graph->n_steps; i++) {
        struct pipeline_live_step *s = &x->steps[i];
        if (s->state == PIPELINE_WAITING &&
            pipeline_live_needs_are_over(x, x->graph->steps[i].needs)) {
            start_step(x, i);
            moved = true;
        } else if (s->state == PIPELINE_PENDING && pipeline_live_is_over(&x->steps[s->waits_for])) {
            take_place(x, i);
            moved = true;
        }
    }
    return moved;
}

/* ---- the end ---- */

static void on_work_more(struct pipeline_work *w)
{
    struct pipeline_task *t = (struct pipeline_task *)(void *)w;
    struct pipeline_live *x = t->run;
    bool inside = x->advancing;
    if (t->over || x->answered || x->cancelled)
        return;
    x->advancing = true; /* calls of the reader in the meantime wait for the end */
    pipeline_answer_so_far(x, t);
    x->advancing = inside;
    if (x->again)
        advance(x);
}

static void close_run(struct pipeline_live *x)
{
    struct flow_owner *o = x->owner;
    struct request *r = x->request;
    struct sink *s = x->sink;
    struct graph *g = x->graph;
    executor_timer_clear(o->executor, &x->timer);
    o->n_jobs--;
    s->job = NULL;
    s->ops->closed(s);
    flow_give_request(o, r);
    graph_unref(g);
}

static void abandon_all(struct pipeline_live *x)
{
    for (struct pipeline_task *t = x->tasks; t; t = t->next)
        if (!t->over)
            abandon(t);
}

/* Starts all steps that can start, answers, and closes. */
static void advance(struct pipeline_live *x)
{
    if (x->advancing) {
        x->again = true;
        return;
    }
    x->advancing = true;
    do {
        x->again = false;
        while (!x->answered && !x->cancelled && move_steps(x))
            continue;
        if (!x->answered && !x->cancelled && pipeline_answer_is_ready(x))
            pipeline_answer(x);
        if (x->answered || x->cancelled)
            abandon_all(x);
    } while (x->again);
    x->advancing = false;
    if ((x->answered || x->cancelled) && x->n_open == 0)
        close_run(x);
}

/* ---- life ---- */

/* Time is up: running steps are too late, and steps that would need work are not started. */
static void on_deadline(struct executor_timer *timer)
{
    struct pipeline_live *x = EXECUTOR_OF(timer, struct pipeline_live, timer);
    x->late = true;
    x->advancing = true;
    for (struct pipeline_task *t = x->tasks; t; t = t->next)
        if (!t->over && t->map < 0) {
            abandon(t);
            step_late(x, t->step);
        } else if (!t->over) {
            struct failure f;
            abandon(t);
            failure_late(&f, false, false, "it exceeded its time limit");
            item_failed(x, t, &f, true);
        }
    x->advancing = false;
    advance(x);
}

static void on_cancel(struct flow_job *j)
{
    struct pipeline_live *x = (struct pipeline_live *)(void *)j;
    if (x->cancelled)
        return;
    x->cancelled = true;
    advance(x);
}

static void on_resume(struct flow_job *j)
{
    struct pipeline_live *x = (struct pipeline_live *)(void *)j;
    bool inside = x->advancing;
    x->advancing = true;
    for (struct pipeline_task *t = x->tasks; t; t = t->next)
        if (t->open && t->work.full)
            flow_resume(&t->work.sink);
    x->advancing = inside;
    if (x->again)
        advance(x);
}

static void set_deadline(struct pipeline_live *x)
{
    struct request *r = x->request;
    if (!r->deadline_ns)
        request_set_budget(r, x->graph->budget_ms);
    if (!r->deadline_ns)
        return;
    uint64_t left = r->deadline_ns > x->start_ns ? r->deadline_ns - x->start_ns : 0;
    uint64_t margin = left / 20;
    margin = margin < LEAST_MARGIN_NS  ? LEAST_MARGIN_NS
             : margin > MOST_MARGIN_NS ? MOST_MARGIN_NS
                                       : margin;
    x->end_ns = x->start_ns + (left > margin ? left - margin : 1);
    x->timer.fn = on_deadline;
    executor_timer_set(x->owner->executor, &x->timer, x->end_ns);
}

/* Takes the request; its text is the last message, the prompt, or the ask's text. */
static void run_graph(const struct pipeline_site *site, struct graph *g, struct flow_owner *o,
                      struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct pipeline_live *x = arena_zalloc(&r->arena, sizeof(*x));
    struct failure f;
    if (!x) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    *x = (struct pipeline_live){.job = {&ops},
                                .owner = o,
                                .request = r,
                                .sink = s,
                                .graph = g,
                                .site = site,
                                .start_ns = clock_ns()};
    x->steps = arena_zalloc_n(&r->arena, g->n_steps, sizeof(*x->steps));
    if (!x->steps) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    if (!pipeline_input_read(&x->input, g, r, &f)) {
        flow_refuse(o, r, s, &f);
        return;
    }
    graph_ref(g);
    flow_stamp(o, r);
    if (!r->received_ns)
        r->received_ns = x->start_ns;
    s->job = &x->job;
    o->n_jobs++;
    set_deadline(x);
    for (uint32_t i = 0; i < g->n_steps; i++)
        if (g->at_start & pipeline_live_bit(i))
            demand(x, i);
    advance(x);
}

/* ---- requests whose model is a flow ---- */

/* NULL: there is none of this name. */
static struct graph *find_graph(const struct pipeline_site *s, const char *name)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->graphs[i]->name, name) == 0)
            return s->graphs[i];
    return NULL;
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct pipeline_site *site = (const struct pipeline_site *)(void *)d;
    struct graph *g = r->model ? find_graph(site, r->model) : NULL;
    struct failure f;
    if (!g)
        return false;
    bool text = r->kind == REQUEST_ASK || r->kind == REQUEST_GENERATE;
    if (!text || (r->kind == REQUEST_GENERATE && request_choices(&r->generate) != 1)) {
        failure_set(&f, FAILURE_INVALID, SHOAL_EUNSUPPORTED, "model", NULL,
                    "'%s' is a flow: it answers one text with one text", g->name);
        flow_refuse(o, r, s, &f);
    } else if (r->depth >= PIPELINE_MAX_DEPTH) {
        failure_set(&f, FAILURE_INTERNAL, SHOAL_ELIMIT, NULL, NULL,
                    "flows call each other more than %u deep, the last is '%s'", PIPELINE_MAX_DEPTH,
                    g->name);
        flow_refuse(o, r, s, &f);
    } else {
        run_graph(site, g, o, r, s);
    }
    return true;
}

void pipeline_site_init(struct pipeline_site *s, struct collections *c, struct pipeline_outside *o)
{
    static const struct dispatch_ops ops = {.run = take};
    *s = (struct pipeline_site){.dispatch = {&ops}, .collections = c, .outside = o};
}
