/* pipeline_answer.c - see pipeline_answer.h. */
#include "pipeline/pipeline_answer.h"

#include <stdio.h>

#include "base/clock.h"
#include "pipeline/graph/graph_kind.h"

static void report_steps(struct pipeline_live *x, struct pipeline_report *to)
{
    struct pipeline_report_step *list =
        arena_zalloc_n(&x->request->arena, x->graph->n_steps, sizeof(*list));
    uint64_t now = clock_ns();
    for (uint32_t i = 0; list && i < x->graph->n_steps; i++) {
        const struct pipeline_live_step *s = &x->steps[i];
        uint64_t end = s->end_ns ? s->end_ns : now;
        list[i] = (struct pipeline_report_step){
            .name = x->graph->steps[i].spec.name,
            .kind = x->graph->steps[i].spec.kind,
            .state = s->state,
            .degraded = s->degraded,
            .late = s->late,
            .why = s->why,
            .start_ns = s->start_ns ? s->start_ns - x->start_ns : 0,
            .ns = s->start_ns && end > s->start_ns ? end - s->start_ns : 0,
            .n_items = s->n_items,
            .value = s->value};
    }
    to->steps = list;
    to->n_steps = list ? x->graph->n_steps : 0;
}

static bool any_degraded(const struct pipeline_live *x)
{
    for (uint32_t i = 0; i < x->graph->n_steps; i++)
        if (x->steps[i].degraded || x->steps[i].state == PIPELINE_FAILED)
            return true;
    return false;
}

static void send_failure(struct pipeline_live *x, const struct failure *f)
{
    x->answered = true;
    x->sink->ops->fail(x->sink, f);
}

/* The names of the events and of the report live as long as the graph, which is held.  False: out
 * of memory, and nothing happened. */
static bool begin_answer(struct pipeline_live *x, bool degraded)
{
    const struct routing_choice *route = x->sink->routed;
    const struct sink_start start = {.model = x->graph->name, .version = ""};
    x->choice = arena_zalloc(&x->request->arena, sizeof(*x->choice));
    if (!x->choice)
        return false;
    *x->choice = (struct routing_choice){.route = route ? route->route : x->graph->name,
                                         .model = x->graph->name,
                                         .degraded = degraded,
                                         .rule = -1};
    x->began = true;
    x->sink->routed = x->choice;
    x->sink->ops->start(x->sink, &start);
    return true;
}

static void send_text(struct pipeline_live *x, const char *p, size_t n)
{
    const struct sink_token token = {.token = -1, .text = p, .text_bytes = n};
    if (n == 0 || x->cancelled)
        return;
    if (x->n_sent == 0)
        x->first_ns = clock_ns() - x->start_ns;
    x->n_sent += n;
    x->sink->ops->token(x->sink, &token);
}

struct needs {
    const struct graph *graph;
    uint64_t bits;
};

static int add_need(void *ctx, const char *name, size_t n, size_t at)
{
    struct needs *to = ctx;
    int32_t i = graph_find(to->graph, name, n);
    (void)at;
    if (i >= 0)
        to->bits |= pipeline_live_bit((uint32_t)i);
    return 0;
}

/* The text of a piece of the output; false: not known yet, or not available. */
static bool piece_text(struct pipeline_live *x, uint32_t i, struct buf *b)
{
    const struct graph_expr *piece = graph_expr_piece(x->graph->output.expr, i);
    struct needs need = {x->graph, 0};
    struct value out;
    struct err e = {0};
    if (graph_expr_names(piece, add_need, &need) != 0 ||
        !pipeline_live_needs_are_over(x, need.bits))
        return false;
    for (uint32_t k = 0; k < x->graph->n_steps; k++)
        if ((need.bits & pipeline_live_bit(k)) && x->steps[k].state == PIPELINE_FAILED)
            return false;
    if (pipeline_live_eval_expr(x, piece, GRAPH_EXPR_PLAIN, NULL, &out, &e) < 0)
        return false;
    graph_expr_put(b, &out, GRAPH_EXPR_PLAIN);
    return b->rc == 0;
}

void pipeline_answer_so_far(struct pipeline_live *x, const struct pipeline_task *t)
{
    uint32_t n_pieces = graph_expr_pieces(x->graph->output.expr), old = x->piece;
    size_t n_old = x->n_of_piece;
    const struct buf *text = &t->work.text;
    struct buf b;
    buf_init(&b, PIPELINE_MAX_OUTPUT_BYTES);
    while (x->piece < n_pieces && !pipeline_live_feeds_output(x, t->step) &&
           piece_text(x, x->piece, &b)) {
        x->piece++;
        x->n_of_piece = 0;
    }
    if (x->piece < n_pieces && pipeline_live_feeds_output(x, t->step) && b.rc == 0 &&
        (x->began || begin_answer(x, any_degraded(x)))) {
        send_text(x, buf_str(&b) + n_old, x->piece > old ? b.len - n_old : 0);
        send_text(x, buf_str(text) + x->n_of_piece, text->len - x->n_of_piece);
        x->n_of_piece = text->len;
        if (!x->cancelled)
            sink_flush(x->sink);
    } else { /* it waits for an earlier piece */
        x->piece = old;
        x->n_of_piece = n_old;
    }
    buf_fini(&b);
}

static void send_answer(struct pipeline_live *x, const struct value *output, bool degraded)
{
    struct pipeline_report *report = arena_zalloc(&x->request->arena, sizeof(*report));
    struct buf b;
    struct failure f;
    buf_init(&b, PIPELINE_MAX_OUTPUT_BYTES);
    graph_expr_put(&b, output, GRAPH_EXPR_PLAIN);
    if (!report || b.rc < 0 || b.len < x->n_sent || (!x->began && !begin_answer(x, degraded))) {
        failure_of(&f, b.rc < 0 ? b.rc : SHOAL_ENOMEM, "the flow's answer is too long");
        buf_fini(&b);
        send_failure(x, &f);
        return;
    }
    uint64_t total = clock_ns() - x->start_ns;
    *report = (struct pipeline_report){
        .flow = x->graph->name,
        .output = *output,
        .degraded = degraded,
        .total_ns = total,
        .budget_ns = x->request->deadline_ns ? x->request->deadline_ns - x->start_ns : 0};
    report_steps(x, report);
    const struct sink_done done = {
        .finish = SHOAL_FINISH_STOP,
        .prompt_tokens = x->prompt_tokens,
        .generated_tokens = x->generated_tokens,
        .first_token_ns = x->n_sent > 0 ? x->first_ns : total,
        .total_ns = total,
        .last = true,
        .usage = {.prompt_tokens = x->prompt_tokens, .generated_tokens = x->generated_tokens},
        .report = report};
    x->answered = true;
    x->choice->degraded = degraded;
    send_text(x, buf_str(&b) + x->n_sent, b.len - x->n_sent);
    if (!x->cancelled)
        x->sink->ops->done(x->sink, &done);
    sink_flush(x->sink);
    buf_fini(&b);
}

void pipeline_answer(struct pipeline_live *x)
{
    struct graph *g = x->graph;
    const struct graph_arg *from = &g->output;
    bool degraded = any_degraded(x);
    int32_t bad = -1;
    struct value out;
    struct err e = {0};
    struct failure f;
    for (uint32_t i = 0; i < g->n_steps && bad < 0; i++)
        if ((g->output_needs & pipeline_live_bit(i)) && x->steps[i].state == PIPELINE_FAILED)
            bad = (int32_t)i;
    int rc = bad < 0 ? pipeline_live_eval(x, from, NULL, &out, &e) : SHOAL_EINVAL;
    if (rc < 0 && g->fallback.text && !x->began) {
        degraded = true;
        rc = pipeline_live_eval(x, &g->fallback, NULL, &out, &e);
        bad = rc == 0 ? -1 : bad;
    }
    if (rc == 0) {
        send_answer(x, &out, degraded);
        return;
    }
    if (bad >= 0) {
        f = x->steps[bad].failure;
        f.param = NULL;
        snprintf(f.message, sizeof(f.message), "the flow '%s' has no answer: step '%s': %.200s",
                 g->name, g->steps[bad].spec.name, x->steps[bad].why);
        if (f.kind == FAILURE_INVALID || f.kind == FAILURE_NOT_FOUND)
            f.kind = FAILURE_UNAVAILABLE; /* the client named neither the model nor its input */
    } else {
        failure_of(&f, SHOAL_EINVAL, e.msg);
        f.kind = FAILURE_INTERNAL;
    }
    send_failure(x, &f);
}

bool pipeline_answer_is_ready(const struct pipeline_live *x)
{
    if (!pipeline_live_needs_are_over(x, x->graph->output_needs))
        return false;
    for (uint32_t i = 0; i < x->graph->n_steps; i++)
        if (graph_kinds[x->graph->steps[i].spec.kind].acts &&
            x->steps[i].state != PIPELINE_UNUSED && !pipeline_live_is_over(&x->steps[i]) &&
            x->graph->steps[i].body_of < 0)
            return false;
    return true;
}
