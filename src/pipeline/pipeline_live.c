/* pipeline_live.c - see pipeline_live.h. */
#include "pipeline/pipeline_live.h"

#include <string.h>

#include "pipeline/pipeline_value.h"

struct view {
    struct graph_values values; /* first */
    const struct pipeline_live *run;
    const struct value *item;
};

static const struct value *view_get(const struct graph_values *v, const char *name, size_t n)
{
    const struct view *w = (const struct view *)(const void *)v;
    int32_t i = graph_find(w->run->graph, name, n);
    if (i >= 0)
        return &w->run->steps[i].value;
    return n == 5 && memcmp(name, "input", 5) == 0 ? &w->run->input : w->item;
}

static enum graph_expr_form form_of(const struct graph_arg *a)
{
    if (a->role == GRAPH_ROLE_PATH)
        return GRAPH_EXPR_URL;
    if (a->role == GRAPH_ROLE_TOPIC)
        return GRAPH_EXPR_TOPIC;
    if (a->role == GRAPH_ROLE_PAYLOAD && (a->text[0] == '[' || a->text[0] == '{'))
        return GRAPH_EXPR_JSON;
    return GRAPH_EXPR_PLAIN;
}

int pipeline_live_eval_expr(struct pipeline_live *x, const struct graph_expr *expr,
                            enum graph_expr_form form, const struct value *item, struct value *out,
                            struct err *e)
{
    const struct view v = {{view_get}, x, item};
    return graph_expr_eval(out, expr, &v.values, form, &x->request->arena, e);
}

int pipeline_live_eval(struct pipeline_live *x, const struct graph_arg *a, const struct value *item,
                       struct value *out, struct err *e)
{
    return pipeline_live_eval_expr(x, a->expr, form_of(a), item, out, e);
}

struct value pipeline_live_main_only(struct pipeline_live *x, const struct graph_step *s,
                                     struct value v)
{
    const struct value_member m[] = {{s->main, v}};
    return pipeline_value_map(&x->request->arena, m, 1);
}

struct value pipeline_live_main_of(const struct graph_step *s, const struct value *v)
{
    const struct value *m = graph_type_member(v, s->main, strlen(s->main));
    return m ? *m : graph_type_empty(graph_type_field(s->gives, s->main, strlen(s->main)));
}

bool pipeline_live_needs_are_over(const struct pipeline_live *x, uint64_t needs)
{
    for (uint32_t k = 0; k < x->graph->n_steps; k++)
        if ((needs & pipeline_live_bit(k)) && !pipeline_live_is_over(&x->steps[k]))
            return false;
    return true;
}

bool pipeline_live_feeds_output(const struct pipeline_live *x, uint32_t i)
{
    const struct graph *g = x->graph;
    const struct graph_expr *piece = graph_expr_piece(g->output.expr, x->piece);
    for (uint32_t k = 0; k < g->n_steps; k++) {
        const char *name = g->steps[k].spec.name;
        uint32_t at = k;
        if (!g->steps[k].main || !graph_expr_is_field(piece, name, strlen(name), g->steps[k].main))
            continue;
        while (at != i && x->steps[at].state == PIPELINE_PENDING)
            at = (uint32_t)x->steps[at].waits_for;
        return at == i;
    }
    return false;
}
