/* graph.c - see graph.h: building a graph. */
#include "pipeline/graph/graph.h"

#include <string.h>

#include "base/mem.h"

#define MAX_GRAPH_BYTES ((size_t)8 << 20)

int graph_create(struct graph **out, const char *name)
{
    struct graph *g = mem_zalloc(sizeof(*g));
    *out = NULL;
    if (!g)
        return SHOAL_ENOMEM;
    atomic_init(&g->refs, 1);
    arena_init(&g->arena, MAX_GRAPH_BYTES);
    g->name = arena_copy(&g->arena, name, strlen(name) + 1);
    if (!g->name) {
        graph_unref(g);
        return SHOAL_ENOMEM;
    }
    *out = g;
    return 0;
}

struct graph *graph_ref(struct graph *g)
{
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void graph_unref(struct graph *g)
{
    /* acq_rel: the thread that frees sees the writes of the others */
    if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
        return;
    arena_fini(&g->arena);
    mem_free(g);
}

static const char *keep(struct graph *g, const char *s)
{
    return s ? arena_copy(&g->arena, s, strlen(s) + 1) : NULL;
}

static int arena_rc(const struct graph *g)
{
    return g->arena.rc;
}

int graph_set_name(struct graph *g, const char *name, const char *text, uint32_t budget_ms)
{
    g->name = keep(g, name);
    g->text = keep(g, text ? text : "");
    g->budget_ms = budget_ms;
    return arena_rc(g);
}

int graph_add_input(struct graph *g, const char *name, enum graph_input_type type,
                    const char *fallback, const void *where)
{
    if (g->n_inputs == GRAPH_MAX_INPUTS)
        return SHOAL_ELIMIT;
    g->inputs[g->n_inputs++] = (struct graph_input){
        .name = keep(g, name), .type = type, .fallback = keep(g, fallback), .where = where};
    return arena_rc(g);
}

int graph_add_step(struct graph *g, const struct graph_step_spec *spec, const void *where,
                   struct graph_step **out)
{
    *out = NULL;
    if (g->n_steps == GRAPH_MAX_STEPS)
        return SHOAL_ELIMIT;
    struct graph_step *s = &g->steps[g->n_steps];
    *s = (struct graph_step){
        .spec = *spec, .where = where, .body = -1, .fallback_step = -1, .body_of = -1};
    struct graph_step_spec *k = &s->spec;
    const char **texts[] = {&k->name,        &k->model,       &k->labels,        &k->collection,
                            &k->reranker,    &k->body,        &k->fallback_step, &k->separator,
                            &k->call.server, &k->call.method, &k->call.plugin};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = keep(g, *texts[i]);
    s->args = arena_zalloc_n(&g->arena, GRAPH_MAX_ARGS, sizeof(*s->args));
    s->cases = arena_zalloc_n(&g->arena, GRAPH_MAX_CASES, sizeof(*s->cases));
    if (arena_rc(g) < 0)
        return arena_rc(g);
    g->n_steps++;
    *out = s;
    return 0;
}

int graph_add_arg(struct graph *g, struct graph_step *s, enum graph_role role, const char *text,
                  const void *where)
{
    if (s->n_args == GRAPH_MAX_ARGS)
        return SHOAL_ELIMIT;
    s->args[s->n_args++] = (struct graph_arg){.role = role, .text = keep(g, text), .where = where};
    return arena_rc(g);
}

int graph_add_case(struct graph *g, struct graph_step *s, const char *when, const void *when_where,
                   const char *value, const void *value_where, const char *step, const void *where)
{
    int rc = 0;
    if (s->n_cases == GRAPH_MAX_CASES)
        return SHOAL_ELIMIT;
    struct graph_case *c = &s->cases[s->n_cases++];
    *c = (struct graph_case){.step_name = keep(g, step), .step = -1, .where = where};
    if (when)
        rc = graph_add_arg(g, s, GRAPH_ROLE_CASE_WHEN, when, when_where);
    if (when && rc == 0)
        c->when = &s->args[s->n_args - 1];
    if (value && rc == 0)
        rc = graph_add_arg(g, s, GRAPH_ROLE_CASE_VALUE, value, value_where);
    if (value && rc == 0)
        c->value = &s->args[s->n_args - 1];
    return rc < 0 ? rc : arena_rc(g);
}

int graph_set_output(struct graph *g, const char *text, const void *where)
{
    g->output = (struct graph_arg){.text = keep(g, text), .where = where};
    return arena_rc(g);
}

int graph_set_fallback(struct graph *g, const char *text, const void *where)
{
    g->fallback = (struct graph_arg){.text = keep(g, text), .where = where};
    return arena_rc(g);
}

const struct graph_arg *graph_arg(const struct graph_step *s, enum graph_role role, uint32_t i)
{
    for (uint32_t k = 0; k < s->n_args; k++)
        if (s->args[k].role == role && i-- == 0)
            return &s->args[k];
    return NULL;
}

int32_t graph_find(const struct graph *g, const char *name, size_t n)
{
    for (uint32_t i = 0; i < g->n_steps; i++)
        if (strlen(g->steps[i].spec.name) == n && memcmp(g->steps[i].spec.name, name, n) == 0)
            return (int32_t)i;
    return -1;
}

bool graph_name_ok(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t n = strlen(name);
    return n > 0 && n < GRAPH_NAME_BYTES && strchr(first, name[0]) && name[n - 1] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-") == n &&
           strcmp(name, "input") != 0 && strcmp(name, "item") != 0 && strcmp(name, "true") != 0 &&
           strcmp(name, "false") != 0;
}
