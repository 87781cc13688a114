/* graph_check.c - see graph.h: names, order and types of a graph. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/nearest.h"
#include "pipeline/graph/graph.h"
#include "pipeline/graph/graph_kind.h"

struct checking {
    struct graph *g;
    struct graph_error *e;
    uint32_t order[GRAPH_MAX_STEPS]; /* topological: a step comes after those it needs */
    uint32_t n_order;
    uint8_t mark[GRAPH_MAX_STEPS]; /* 1: being visited, 2: in the order */
    const char *names[GRAPH_MAX_STEPS + 3];
};

static int fail(struct checking *c, const void *where, size_t at, const char *fmt, ...)
    SHOAL_PRINTF(4, 5);

static int fail(struct checking *c, const void *where, size_t at, const char *fmt, ...)
{
    va_list ap;
    c->e->where = where;
    c->e->at = at;
    va_start(ap, fmt);
    vsnprintf(c->e->msg, sizeof(c->e->msg), fmt, ap);
    va_end(ap);
    return SHOAL_EFORMAT;
}

static uint64_t bit(int32_t step)
{
    return 1ull << (uint32_t)step;
}

/* ---- inputs ---- */

static const struct graph_type *type_of_input(enum graph_input_type t)
{
    switch (t) {
    case GRAPH_IN_NUMBER:
        return &graph_type_number;
    case GRAPH_IN_BOOL:
        return &graph_type_bool;
    case GRAPH_IN_TEXTS:
        return &graph_type_texts;
    case GRAPH_IN_NUMBERS:
        return &graph_type_numbers;
    case GRAPH_IN_TEXT:
        break;
    }
    return &graph_type_text;
}

static int set_default(struct checking *c, struct graph_input *in)
{
    const char *text = in->fallback;
    size_t n = text ? strlen(text) : 0;
    in->value = graph_type_empty(in->of);
    if (!text)
        return 0;
    if (in->type == GRAPH_IN_TEXT) {
        in->value = value_text(text, n);
    } else if (in->type == GRAPH_IN_NUMBER) {
        bool whole = n > 0 && decimal_span(text, n) == n;
        in->value.number = whole ? decimal_read(text, n) : NAN;
        if (!isfinite(in->value.number))
            return fail(c, in->where, 0, "the default of '%s' must be a number", in->name);
    } else if (in->type == GRAPH_IN_BOOL) {
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return fail(c, in->where, 0, "the default of '%s' must be true or false", in->name);
        in->value = value_bool(text[0] == 't');
    } else if (n > 0) {
        return fail(c, in->where, 0, "the default of a list can only be empty: \"\"");
    }
    return 0;
}

static int check_inputs(struct checking *c)
{
    struct graph *g = c->g;
    struct graph_field *fields = arena_zalloc_n(&g->arena, g->n_inputs + 1u, sizeof(*fields));
    if (!fields)
        return SHOAL_ENOMEM;
    fields[0] = (struct graph_field){"text", &graph_type_text};
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        struct graph_input *in = &g->inputs[i];
        in->of = type_of_input(in->type);
        if (!graph_name_ok(in->name) || strcmp(in->name, "text") == 0)
            return fail(c, in->where, 0,
                        "an input's name has letters, digits, '_' and '-', and is not text, input "
                        "or item: every flow has the input text");
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(g->inputs[k].name, in->name) == 0)
                return fail(c, in->where, 0, "two inputs are named '%s'", in->name);
        fields[i + 1] = (struct graph_field){in->name, in->of};
        int rc = set_default(c, in);
        if (rc < 0)
            return rc;
    }
    g->input_type = (struct graph_type){
        .kind = GRAPH_TYPE_RECORD, .fields = fields, .n_fields = g->n_inputs + 1};
    return 0;
}

/* ---- names ---- */

static int find_step(struct checking *c, const char *name, const void *where, int32_t *out)
{
    *out = graph_find(c->g, name, strlen(name));
    if (*out >= 0)
        return 0;
    const char *near = nearest_word(name, c->names);
    bool real = near && graph_find(c->g, near, strlen(near)) >= 0;
    return fail(c, where, 0, "there is no step '%.60s'%s%s%s", name, real ? " (did you mean '" : "",
                real ? near : "", real ? "'?)" : "");
}

struct naming {
    struct checking *c;
    const struct graph_arg *arg;
    uint64_t *needs;
};

static int on_name(void *ctx, const char *name, size_t n, size_t at)
{
    struct naming *x = ctx;
    struct checking *c = x->c;
    int32_t i = graph_find(c->g, name, n);
    char typed[GRAPH_NAME_BYTES];
    if (i >= 0)
        *x->needs |= bit(i);
    if (i >= 0 || (n == 5 && memcmp(name, "input", 5) == 0) ||
        (n == 4 && memcmp(name, "item", 4) == 0))
        return 0;
    snprintf(typed, sizeof(typed), "%.*s", n < 60 ? (int)n : 60, name);
    const char *near = nearest_word(typed, c->names);
    return fail(c, x->arg->where, at, "there is no step '%s'%s%s%s", typed,
                near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int parse_arg(struct checking *c, struct graph_arg *a, uint64_t *needs)
{
    struct graph_expr_error bad;
    struct naming x = {c, a, needs};
    bool condition = a->role == GRAPH_ROLE_WHEN || a->role == GRAPH_ROLE_CASE_WHEN;
    int rc = graph_expr_parse(&a->expr, &c->g->arena, a->text, strlen(a->text),
                              condition ? GRAPH_EXPR_CONDITION : GRAPH_EXPR_TEMPLATE, &bad);
    if (rc == SHOAL_ENOMEM)
        return rc;
    if (rc < 0)
        return fail(c, a->where, bad.at, "%s", bad.msg);
    return graph_expr_names(a->expr, on_name, &x);
}

static int name_steps(struct checking *c)
{
    struct graph *g = c->g;
    if (g->n_steps == 0)
        return fail(c, NULL, 0, "the flow '%.60s' has no steps", g->name);
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const char *name = g->steps[i].spec.name;
        if (!graph_name_ok(name))
            return fail(c, g->steps[i].where, 0,
                        "a step's name has letters, digits, '_' and '-', begins with a letter, and "
                        "is not input or item");
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(g->steps[k].spec.name, name) == 0)
                return fail(c, g->steps[i].where, 0, "two steps are named '%s'", name);
        c->names[i] = name;
    }
    c->names[g->n_steps] = "input";
    c->names[g->n_steps + 1] = "item";
    return 0;
}

static int connect_step(struct checking *c, struct graph_step *s)
{
    int rc = 0;
    int32_t self = (int32_t)(s - c->g->steps);
    for (uint32_t i = 0; rc == 0 && i < s->n_args; i++)
        rc = parse_arg(c, &s->args[i], &s->needs);
    for (uint32_t i = 0; rc == 0 && i < s->n_cases; i++)
        if (s->cases[i].step_name) {
            rc = find_step(c, s->cases[i].step_name, s->cases[i].where, &s->cases[i].step);
            s->leads |= rc == 0 ? bit(s->cases[i].step) : 0;
        }
    if (rc == 0 && s->spec.fallback_step) {
        rc = find_step(c, s->spec.fallback_step, s->where, &s->fallback_step);
        s->leads |= rc == 0 ? bit(s->fallback_step) : 0;
    }
    if (rc == 0 && s->spec.body) {
        rc = find_step(c, s->spec.body, s->where, &s->body);
        s->leads |= rc == 0 ? bit(s->body) : 0;
    }
    if (rc == 0 && ((s->needs | s->leads) & bit(self)))
        rc = fail(c, s->where, 0, "step '%s' uses its own result", s->spec.name);
    return rc;
}

/* ---- maps ---- */

/* The body of a map runs once for each item: no other step can use or start it. */
static int check_body(struct checking *c, struct graph_step *map)
{
    struct graph *g = c->g;
    struct graph_step *b = &g->steps[map->body];
    if (!graph_kinds[b->spec.kind].in_map)
        return fail(c, map->where, 0, "'%s' is a %s, which cannot be the step of a map",
                    b->spec.name, graph_kinds[b->spec.kind].name);
    if (b->spec.fallback_step)
        return fail(c, b->where, 0, "the step of a map cannot have a fallback_step: use fallback");
    if (b->body_of >= 0)
        return fail(c, map->where, 0, "'%s' is the step of two maps", b->spec.name);
    b->body_of = (int32_t)(map - g->steps);
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const struct graph_step *s = &g->steps[i];
        if ((s->needs & bit(map->body)) || (s != map && (s->leads & bit(map->body))))
            return fail(c, s->where, 0, "'%s' is the step of the map '%s': use ${%s.items}",
                        b->spec.name, map->spec.name, map->spec.name);
    }
    if (g->output_needs & bit(map->body))
        return fail(c, g->output.where, 0, "'%s' is the step of the map '%s': use ${%s.items}",
                    b->spec.name, map->spec.name, map->spec.name);
    uint64_t own = map->needs;
    map->needs |= b->needs;
    b->needs |= own; /* the type of `item` is that of the map's list */
    return 0;
}

/* ---- order ---- */

static int visit(struct checking *c, uint32_t i)
{
    struct graph *g = c->g;
    uint64_t next = g->steps[i].needs | g->steps[i].leads;
    if (c->mark[i] == 2)
        return 0;
    c->mark[i] = 1;
    for (uint32_t k = 0; k < g->n_steps; k++) {
        if (!(next & bit((int32_t)k)))
            continue;
        if (c->mark[k] == 1)
            return fail(c, g->steps[i].where, 0, "a cycle: '%s' waits for '%s', which waits for it",
                        g->steps[i].spec.name, g->steps[k].spec.name);
        int rc = visit(c, k);
        if (rc < 0)
            return rc;
    }
    c->mark[i] = 2;
    c->order[c->n_order++] = i;
    return 0;
}

/* All dependencies of a set of steps, and with `leads` also the steps it may start. */
static uint64_t closure(const struct graph *g, uint64_t set, bool leads)
{
    for (bool more = true; more;) {
        uint64_t before = set;
        for (uint32_t i = 0; i < g->n_steps; i++)
            if (set & bit((int32_t)i))
                set |= g->steps[i].needs | (leads ? g->steps[i].leads : 0);
        more = set != before;
    }
    return set;
}

static int find_lazy(struct checking *c)
{
    struct graph *g = c->g;
    uint64_t led = 0, roots = g->output_needs | g->fallback_needs;
    for (uint32_t i = 0; i < g->n_steps; i++)
        led |= g->steps[i].leads;
    for (uint32_t i = 0; i < g->n_steps; i++)
        if (graph_kinds[g->steps[i].spec.kind].acts && !(led & bit((int32_t)i)))
            roots |= bit((int32_t)i);
    g->at_start = closure(g, roots, false);
    uint64_t used = closure(g, roots, true);
    for (uint32_t i = 0; i < g->n_steps; i++) {
        g->steps[i].lazy = !(g->at_start & bit((int32_t)i));
        if (!(used & bit((int32_t)i)))
            return fail(c, g->steps[i].where, 0,
                        "nothing uses step '%s': name it in `output` or in another step",
                        g->steps[i].spec.name);
    }
    return 0;
}

/* ---- types ---- */

struct step_scope {
    struct graph_scope scope; /* first */
    const struct checking *c;
    const struct graph_type *item; /* NULL: none */
    char why[160];
};

static const struct graph_type *scope_type(const struct graph_scope *s, const char *name, size_t n,
                                           const char **why)
{
    const struct step_scope *x = (const struct step_scope *)(const void *)s;
    int32_t i = graph_find(x->c->g, name, n);
    if (i >= 0)
        return x->c->g->steps[i].gives;
    if (n == 5 && memcmp(name, "input", 5) == 0) {
        x->c->g->reads_input = true;
        return &x->c->g->input_type;
    }
    if (n == 4 && memcmp(name, "item", 4) == 0) {
        if (!x->item)
            *why = "'item' is only in the step of a map";
        return x->item;
    }
    return NULL;
}

static int check_arg(struct checking *c, struct graph_arg *a, const struct graph_type *item,
                     const struct graph_type *wanted)
{
    struct graph_expr_error bad;
    struct step_scope s = {{scope_type, c->names}, c, item, ""};
    int rc = graph_expr_check(a->expr, &s.scope, wanted, &bad);
    return rc < 0 ? fail(c, a->where, bad.at, "%s", bad.msg) : 0;
}

static const struct graph_type *wanted_of(enum graph_role r)
{
    switch (r) {
    case GRAPH_ROLE_VALUES:
        return &graph_type_numbers;
    case GRAPH_ROLE_PASSAGES:
        return &graph_kind_passages;
    case GRAPH_ROLE_WHEN:
    case GRAPH_ROLE_CASE_WHEN:
        return &graph_type_bool;
    case GRAPH_ROLE_OVER:
    case GRAPH_ROLE_FROM:
    case GRAPH_ROLE_CASE_VALUE:
    case GRAPH_ROLE_FALLBACK:
    case GRAPH_ROLE_ON_TIMEOUT:
        return NULL;
    default:
        return &graph_type_text;
    }
}

/* A record of two fields. */
static const struct graph_type *record(struct checking *c, const char *a,
                                       const struct graph_type *ta, const char *b,
                                       const struct graph_type *tb)
{
    struct graph_field *f = arena_zalloc_n(&c->g->arena, 2, sizeof(*f));
    struct graph_type *t = arena_zalloc(&c->g->arena, sizeof(*t));
    if (!f || !t)
        return NULL;
    f[0] = (struct graph_field){a, ta};
    f[1] = (struct graph_field){b, tb};
    *t = (struct graph_type){.kind = GRAPH_TYPE_RECORD, .fields = f, .n_fields = b ? 2 : 1};
    return t;
}

static const struct graph_type *main_type(const struct graph_step *s)
{
    return s->main ? graph_type_field(s->gives, s->main, strlen(s->main)) : NULL;
}

/* All must be of one type, which becomes *out. */
static int unite(struct checking *c, const struct graph_type **out, const struct graph_type *t,
                 const void *where, const char *what)
{
    if (!*out || (*out)->kind == GRAPH_TYPE_ANY)
        *out = t;
    else if (!graph_type_fits(t, *out) || !graph_type_fits(*out, t))
        return fail(c, where, 0, "this %s gives %s, one before gives %s", what, graph_type_name(t),
                    graph_type_name(*out));
    return 0;
}

static int type_switch(struct checking *c, struct graph_step *s)
{
    const struct graph_type *t = NULL;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < s->n_cases; i++) {
        const struct graph_case *k = &s->cases[i];
        const struct graph_step *other = k->step >= 0 ? &c->g->steps[k->step] : NULL;
        if (!k->when && i + 1 < s->n_cases)
            return fail(c, k->where, 0, "a case without `when` must be the last");
        if (!k->value == !other)
            return fail(c, k->where, 0, "a case needs `value` or `step`, one of them");
        if (other && !main_type(other))
            return fail(c, k->where, 0, "'%s' is a %s, which has no main result: use value",
                        other->spec.name, graph_kinds[other->spec.kind].name);
        rc = unite(c, &t, other ? main_type(other) : graph_expr_type(k->value->expr), k->where,
                   "case");
    }
    if (rc == 0 && !t)
        return fail(c, s->where, 0, "a switch needs cases");
    s->gives = rc == 0 ? record(c, "value", t, "case", &graph_type_number) : NULL;
    return rc;
}

static int type_merge(struct checking *c, struct graph_step *s)
{
    const struct graph_type *t = NULL;
    struct graph_type *list;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < s->n_args; i++) {
        const struct graph_arg *a = &s->args[i];
        const struct graph_type *own = a->role == GRAPH_ROLE_FROM ? graph_expr_type(a->expr) : NULL;
        if (!own)
            continue;
        if (s->spec.how == GRAPH_JOIN && own->kind >= GRAPH_TYPE_LIST)
            return fail(c, a->where, 0, "`how: join` joins texts, but this is %s",
                        graph_type_name(own));
        if (s->spec.how == GRAPH_LIST && own->kind == GRAPH_TYPE_LIST)
            own = own->of; /* the type of its items */
        rc = s->spec.how == GRAPH_JOIN ? 0 : unite(c, &t, own, a->where, "value");
    }
    if (rc < 0)
        return rc;
    if (s->spec.how == GRAPH_JOIN) {
        t = &graph_type_text;
    } else if (s->spec.how == GRAPH_LIST) {
        list = arena_zalloc(&c->g->arena, sizeof(*list));
        if (!list)
            return SHOAL_ENOMEM;
        *list = (struct graph_type){.kind = GRAPH_TYPE_LIST, .of = t};
        t = list;
    }
    s->gives = record(c, "value", t, NULL, NULL);
    return 0;
}

static int type_map(struct checking *c, struct graph_step *s)
{
    struct graph_type *list = arena_zalloc(&c->g->arena, sizeof(*list));
    if (!list)
        return SHOAL_ENOMEM;
    *list = (struct graph_type){.kind = GRAPH_TYPE_LIST, .of = c->g->steps[s->body].gives};
    s->gives = record(c, "items", list, "count", &graph_type_number);
    return 0;
}

/* The type of `item` in the step of a map. */
static int type_of_item(struct checking *c, const struct graph_step *map,
                        const struct graph_type **out)
{
    struct graph_arg *over = (struct graph_arg *)(uintptr_t)graph_arg(map, GRAPH_ROLE_OVER, 0);
    int rc = check_arg(c, over, NULL, NULL);
    if (rc < 0)
        return rc;
    const struct graph_type *t = graph_expr_type(over->expr);
    if (t->kind != GRAPH_TYPE_LIST && t->kind != GRAPH_TYPE_ANY)
        return fail(c, over->where, 0, "`over` needs a list, but this is %s", graph_type_name(t));
    *out = t->kind == GRAPH_TYPE_LIST ? t->of : t;
    return 0;
}

static int type_fallbacks(struct checking *c, struct graph_step *s, const struct graph_type *item)
{
    static const enum graph_role roles[] = {GRAPH_ROLE_FALLBACK, GRAPH_ROLE_ON_TIMEOUT};
    const struct graph_type *t = main_type(s);
    for (int i = 0; i < 2; i++) {
        struct graph_arg *a = (struct graph_arg *)(uintptr_t)graph_arg(s, roles[i], 0);
        if (a && (!t || t->kind == GRAPH_TYPE_LIST))
            return fail(c, a->where, 0,
                        "a %s has no main result that a value could replace: use "
                        "fallback_step",
                        graph_kinds[s->spec.kind].name);
        int rc = a ? check_arg(c, a, item, t) : 0;
        if (rc < 0)
            return rc;
    }
    if (s->fallback_step < 0)
        return 0;
    const struct graph_step *f = &c->g->steps[s->fallback_step];
    if (t && main_type(f) ? !graph_type_fits(main_type(f), t)
                          : !graph_type_fits(f->gives, s->gives))
        return fail(c, s->where, 0, "'%s' cannot replace '%s': their results differ in type",
                    f->spec.name, s->spec.name);
    return 0;
}

static int type_step(struct checking *c, struct graph_step *s)
{
    const struct graph_type *item = NULL;
    int rc = s->body_of >= 0 ? type_of_item(c, &c->g->steps[s->body_of], &item) : 0;
    for (uint32_t i = 0; rc == 0 && i < s->n_args; i++) {
        enum graph_role r = s->args[i].role;
        if (r != GRAPH_ROLE_FALLBACK && r != GRAPH_ROLE_ON_TIMEOUT)
            rc = check_arg(c, &s->args[i], item, wanted_of(r));
    }
    s->main = graph_kinds[s->spec.kind].main;
    s->gives = graph_kinds[s->spec.kind].gives;
    if (rc == 0 && s->spec.kind == GRAPH_SWITCH)
        rc = type_switch(c, s);
    else if (rc == 0 && s->spec.kind == GRAPH_MERGE)
        rc = type_merge(c, s);
    else if (rc == 0 && s->spec.kind == GRAPH_MAP)
        rc = type_map(c, s);
    if (rc == 0 && !s->gives)
        rc = SHOAL_ENOMEM;
    return rc < 0 ? rc : type_fallbacks(c, s, item);
}

int graph_check(struct graph *g, struct graph_error *e)
{
    struct checking c = {.g = g, .e = e};
    *e = (struct graph_error){0};
    int rc = check_inputs(&c);
    if (rc == 0)
        rc = name_steps(&c);
    for (uint32_t i = 0; rc == 0 && i < g->n_steps; i++)
        rc = connect_step(&c, &g->steps[i]);
    if (rc == 0)
        rc = parse_arg(&c, &g->output, &g->output_needs);
    if (rc == 0 && g->fallback.text)
        rc = parse_arg(&c, &g->fallback, &g->fallback_needs);
    if (rc == 0 && g->fallback_needs)
        rc = fail(&c, g->fallback.where, 0,
                  "the flow's fallback is for when steps fail: it cannot use them");
    for (uint32_t i = 0; rc == 0 && i < g->n_steps; i++)
        if (g->steps[i].spec.kind == GRAPH_MAP)
            rc = check_body(&c, &g->steps[i]);
    for (uint32_t i = 0; rc == 0 && i < g->n_steps; i++)
        rc = visit(&c, i);
    if (rc == 0)
        rc = find_lazy(&c);
    for (uint32_t i = 0; rc == 0 && i < g->n_steps; i++)
        rc = type_step(&c, &g->steps[c.order[i]]);
    if (rc == 0)
        rc = check_arg(&c, &g->output, NULL, NULL);
    if (rc == 0 && g->fallback.text)
        rc = check_arg(&c, &g->fallback, NULL, &graph_type_text);
    return rc;
}
