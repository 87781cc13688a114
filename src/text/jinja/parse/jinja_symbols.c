/* jinja_symbols.c - see jinja_symbols.h.  Follows Jinja's own analysis (Symbols, RootVisitor and
 * FrameSymbolVisitor of its idtracking module). */
#include "text/jinja/parse/jinja_symbols.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

struct symbols {
    const struct symbols *parent;
    uint8_t *load; /* enum jinja_load by name */
    bool *stored;
};

struct analysis {
    struct arena *arena;
    struct err *e;
    int rc;
    const struct jinja_str *names;
    size_t n;
    int32_t loop, caller, kwargs, varargs; /* ids, -1: the template has no such name */
};

static int no_memory(struct analysis *z)
{
    z->rc = err_set(z->e, SHOAL_ENOMEM, "out of memory for the template");
    return z->rc;
}

static bool symbols_init(struct analysis *z, struct symbols *s, const struct symbols *parent,
                         const struct symbols *copy)
{
    s->parent = parent;
    s->load = mem_zalloc_n(z->n + 1, 2);
    if (!s->load) {
        no_memory(z);
        return false;
    }
    s->stored = (bool *)(s->load + z->n);
    if (copy)
        memcpy(s->load, copy->load, z->n * 2);
    return true;
}

static bool has_ref(const struct symbols *s, int32_t id)
{
    for (; s; s = s->parent)
        if (s->load[id])
            return true;
    return false;
}

static void store(struct symbols *s, int32_t id)
{
    s->stored[id] = true;
    if (!s->load[id])
        s->load[id] = has_ref(s->parent, id) ? JINJA_LOAD_ALIAS : JINJA_LOAD_UNDEFINED;
}

static void load(struct symbols *s, int32_t id)
{
    if (!has_ref(s, id))
        s->load[id] = JINJA_LOAD_RESOLVE;
}

static void declare(struct symbols *s, int32_t id)
{
    if (id < 0)
        return;
    s->stored[id] = true;
    s->load[id] = JINJA_LOAD_PARAMETER;
}

static void visit_chain(struct analysis *z, struct symbols *s, const struct jinja_node *n);

static void visit_parts(struct analysis *z, struct symbols *s, const struct jinja_node *n)
{
    visit_chain(z, s, n->a);
    visit_chain(z, s, n->b);
    visit_chain(z, s, n->c);
}

/* Adds the names of one branch of an if, starting from those known before the if. */
static bool visit_branch(struct analysis *z, const struct symbols *s, struct symbols *branch,
                         const struct jinja_node *body)
{
    if (!symbols_init(z, branch, s->parent, s))
        return false;
    visit_chain(z, branch, body);
    return z->rc == 0;
}

static void visit_if(struct analysis *z, struct symbols *s, const struct jinja_node *n)
{
    const struct jinja_node *const bodies[3] = {n->b, n->c, n->d};
    struct symbols branch[3] = {{0}};
    bool ok = true;
    visit_chain(z, s, n->a);
    for (size_t i = 0; ok && i < 3; i++)
        ok = visit_branch(z, s, &branch[i], bodies[i]);
    for (size_t id = 0; ok && id < z->n; id++) {
        int stores = 0;
        bool before = s->stored[id];
        for (size_t i = 0; i < 3; i++) {
            stores += branch[i].stored[id];
            if (branch[i].load[id])
                s->load[id] = branch[i].load[id];
            s->stored[id] |= branch[i].stored[id];
        }
        if (!before && stores > 0 && stores < 3) /* set in some branches only */
            s->load[id] = has_ref(s->parent, (int32_t)id) ? JINJA_LOAD_ALIAS : JINJA_LOAD_RESOLVE;
    }
    for (size_t i = 0; i < 3; i++)
        mem_free(branch[i].load);
}

/* A node of the scope itself; scopes inside it are not entered. */
static void visit(struct analysis *z, struct symbols *s, const struct jinja_node *n)
{
    switch (n->kind) {
    case JINJA_NODE_NAME:
        if (n->flag)
            store(s, n->id);
        else
            load(s, n->id);
        return;
    case JINJA_NODE_NSREF:
        load(s, n->id);
        return;
    case JINJA_NODE_IF:
        visit_if(z, s, n);
        return;
    case JINJA_NODE_FOR:
    case JINJA_NODE_CALLBLOCK:
    case JINJA_NODE_FILTERBLOCK:
        visit_chain(z, s, n->b);
        return;
    case JINJA_NODE_SET:
        visit_chain(z, s, n->b);
        visit_chain(z, s, n->a);
        return;
    case JINJA_NODE_SETBLOCK:
        visit_chain(z, s, n->a);
        return;
    case JINJA_NODE_MACRO:
        store(s, n->id);
        return;
    case JINJA_NODE_WITH:
        for (const struct jinja_node *p = n->a; p; p = p->next)
            visit_chain(z, s, p->b);
        return;
    case JINJA_NODE_GENERATION:
        return;
    default:
        visit_parts(z, s, n);
    }
}

static void visit_chain(struct analysis *z, struct symbols *s, const struct jinja_node *n)
{
    for (; z->rc == 0 && n; n = n->next)
        visit(z, s, n);
}

/* The names that a target sets, as parameters. */
static void declare_target(struct symbols *s, const struct jinja_node *target)
{
    if (target->kind == JINJA_NODE_NAME)
        declare(s, target->id);
    for (const struct jinja_node *n = target->kind == JINJA_NODE_TUPLE ? target->a : NULL; n;
         n = n->next)
        declare_target(s, n);
}

/* ---- special names of macros ---------------------------------------------------------------- */

struct special {
    int32_t id;
    bool used, set; /* read before it is set, in the order of the source */
};

static void scan_chain(struct special *p, const struct jinja_node *n)
{
    for (; n && !p->used && !p->set; n = n->next) {
        bool name = n->kind == JINJA_NODE_NAME && n->id == p->id;
        p->used |= name && !n->flag;
        p->set |= name && n->flag;
        if (n->kind == JINJA_NODE_MACRO || n->kind == JINJA_NODE_CALLBLOCK)
            for (const struct jinja_node *arg = n->a; arg; arg = arg->next)
                p->set |= arg->id == p->id;
        scan_chain(p, n->a);
        scan_chain(p, n->b);
        scan_chain(p, n->c);
        scan_chain(p, n->d);
        scan_chain(p, n->test);
    }
}

static bool uses(int32_t id, const struct jinja_node *macro)
{
    struct special p = {.id = id};
    if (id < 0)
        return false;
    scan_chain(&p, macro->c);
    return p.used;
}

static bool has_parameter(const struct jinja_node *macro, int32_t id)
{
    for (const struct jinja_node *p = macro->a; p; p = p->next)
        if (p->id == id)
            return true;
    return false;
}

static void declare_macro(struct analysis *z, struct symbols *s, struct jinja_node *n)
{
    n->uses_caller = uses(z->caller, n);
    n->uses_kwargs = uses(z->kwargs, n) && !has_parameter(n, z->kwargs);
    n->uses_varargs = uses(z->varargs, n) && !has_parameter(n, z->varargs);
    for (const struct jinja_node *p = n->a; p; p = p->next)
        declare(s, p->id);
    declare(s, n->uses_caller ? z->caller : -1);
    declare(s, n->uses_kwargs ? z->kwargs : -1);
    declare(s, n->uses_varargs ? z->varargs : -1);
    for (const struct jinja_node *p = n->a; p; p = p->next)
        visit_chain(z, s, p->a);
}

/* ---- scopes --------------------------------------------------------------------------------- */

static void enter_chain(struct analysis *z, const struct symbols *s, struct jinja_node *n);

static void finish_frame(struct analysis *z, const struct symbols *s, struct jinja_frame *out)
{
    size_t n = 0;
    for (size_t id = 0; id < z->n; id++)
        n += s->load[id] != JINJA_LOAD_NONE;
    out->at = arena_zalloc_n(z->arena, n + 1, sizeof(*out->at));
    if (!out->at) {
        no_memory(z);
        return;
    }
    for (size_t id = 0; id < z->n; id++)
        if (s->load[id] != JINJA_LOAD_NONE)
            out->at[out->n++] = (struct jinja_symbol){z->names[id], (enum jinja_load)s->load[id]};
}

enum part { PART_BODY, PART_ELSE, PART_TEST };

/* The scope that a part of node n opens. */
static void enter_part(struct analysis *z, const struct symbols *outer, struct jinja_node *n,
                       enum part part)
{
    struct symbols s = {0};
    struct jinja_node *body = part == PART_BODY ? n->c : part == PART_ELSE ? n->d : NULL;
    if (z->rc < 0 || !symbols_init(z, &s, outer, NULL))
        return;
    if (n->kind == JINJA_NODE_FOR && part != PART_ELSE)
        declare_target(&s, n->a);
    if (n->kind == JINJA_NODE_FOR && part == PART_BODY)
        declare(&s, z->loop);
    if (n->kind == JINJA_NODE_MACRO || n->kind == JINJA_NODE_CALLBLOCK)
        declare_macro(z, &s, n);
    for (const struct jinja_node *p = n->kind == JINJA_NODE_WITH ? n->a : NULL; p; p = p->next)
        declare_target(&s, p->a);
    visit_chain(z, &s, part == PART_TEST ? n->test : body);
    if (n->kind == JINJA_NODE_FILTERBLOCK)
        visit_chain(z, &s, n->b);
    if (z->rc == 0)
        finish_frame(z, &s, &n->frames[part]);
    enter_chain(z, &s, body);
    mem_free(s.load);
}

static void enter(struct analysis *z, const struct symbols *s, struct jinja_node *n)
{
    switch (n->kind) {
    case JINJA_NODE_IF:
        enter_chain(z, s, n->b);
        enter_chain(z, s, n->c);
        enter_chain(z, s, n->d);
        return;
    case JINJA_NODE_FOR:
    case JINJA_NODE_SETBLOCK:
    case JINJA_NODE_MACRO:
    case JINJA_NODE_CALLBLOCK:
    case JINJA_NODE_FILTERBLOCK:
    case JINJA_NODE_WITH:
    case JINJA_NODE_GENERATION:
        n->frames = arena_zalloc_n(z->arena, 3, sizeof(*n->frames));
        if (!n->frames) {
            no_memory(z);
            return;
        }
        enter_part(z, s, n, PART_BODY);
        if (n->kind == JINJA_NODE_FOR) {
            enter_part(z, s, n, PART_ELSE);
            enter_part(z, s, n, PART_TEST);
        }
        return;
    default:
        return;
    }
}

static void enter_chain(struct analysis *z, const struct symbols *s, struct jinja_node *n)
{
    for (; z->rc == 0 && n; n = n->next)
        enter(z, s, n);
}

static int32_t find_name(const struct analysis *z, const char *name)
{
    for (size_t i = 0; i < z->n; i++)
        if (jinja_str_is(z->names[i], name))
            return (int32_t)i;
    return -1;
}

int jinja_symbols_resolve(struct jinja_frame *root, struct jinja_node *body,
                          const struct jinja_str *names, size_t n_names, struct arena *a,
                          struct err *e)
{
    struct analysis z = {.arena = a, .e = e, .names = names, .n = n_names};
    struct symbols s = {0};
    z.loop = find_name(&z, "loop");
    z.caller = find_name(&z, "caller");
    z.kwargs = find_name(&z, "kwargs");
    z.varargs = find_name(&z, "varargs");
    *root = (struct jinja_frame){0};
    if (!symbols_init(&z, &s, NULL, NULL))
        return z.rc;
    visit_chain(&z, &s, body);
    if (z.rc == 0)
        finish_frame(&z, &s, root);
    enter_chain(&z, &s, body);
    mem_free(s.load);
    return z.rc;
}
