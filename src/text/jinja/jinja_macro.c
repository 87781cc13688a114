/* jinja_macro.c - see jinja_macro.h. */
#include "text/jinja/jinja_macro.h"

#include "text/jinja/jinja_node.h"

/* A macro takes surplus arguments only when its body reads `kwargs` or `varargs` before it sets
 * them; the order in which Jinja walks the tree decides what "before" is. */
struct scan {
    bool set_kwargs, set_varargs, uses_kwargs, uses_varargs;
};

static void scan_chain(struct scan *s, const struct jinja_node *n);

static void scan_declare(struct scan *s, const struct jinja_node *target)
{
    if (target->kind == JINJA_NODE_TUPLE) {
        for (const struct jinja_node *n = target->a; n; n = n->next)
            scan_declare(s, n);
    } else if (target->kind == JINJA_NODE_NAME || target->kind == JINJA_NODE_KWARG) {
        s->set_kwargs |= jinja_str_is(target->text, "kwargs");
        s->set_varargs |= jinja_str_is(target->text, "varargs");
    }
}

static void scan_parameters(struct scan *s, const struct jinja_node *chain)
{
    for (const struct jinja_node *n = chain; n; n = n->next)
        scan_declare(s, n);
    for (const struct jinja_node *n = chain; n; n = n->next)
        if (n->kind == JINJA_NODE_KWARG)
            scan_chain(s, n->a);
}

static void scan_filter(struct scan *s, const struct jinja_node *filter)
{
    if (filter->kind == JINJA_NODE_CALL) /* the name of a filter is not a variable */
        scan_chain(s, filter->b);
}

static void scan_node(struct scan *s, const struct jinja_node *n)
{
    const struct jinja_node *loop_test = NULL;
    switch (n->kind) {
    case JINJA_NODE_NAME:
        s->uses_kwargs |= !s->set_kwargs && jinja_str_is(n->text, "kwargs");
        s->uses_varargs |= !s->set_varargs && jinja_str_is(n->text, "varargs");
        return;
    case JINJA_NODE_FOR:
        scan_declare(s, n->a);
        if (n->b->kind == JINJA_NODE_SELECT)
            loop_test = n->b->b;
        scan_chain(s, loop_test ? n->b->a : n->b);
        scan_chain(s, n->c);
        scan_chain(s, n->d);
        scan_chain(s, loop_test);
        return;
    case JINJA_NODE_IF:
        for (; n->flag; n = n->c) { /* a chain of elif may be long: no recursion */
            scan_chain(s, n->a);
            scan_chain(s, n->b);
        }
        scan_chain(s, n->a);
        scan_chain(s, n->b);
        scan_chain(s, n->c);
        return;
    case JINJA_NODE_SET:
        scan_declare(s, n->a);
        scan_chain(s, n->b);
        scan_chain(s, n->c);
        return;
    case JINJA_NODE_MACRO:
        scan_parameters(s, n->a);
        scan_chain(s, n->c);
        return;
    case JINJA_NODE_CALLBLOCK:
        scan_chain(s, n->a);
        scan_parameters(s, n->b);
        scan_chain(s, n->c);
        return;
    case JINJA_NODE_FILTERBLOCK:
        scan_chain(s, n->c);
        scan_filter(s, n->b);
        return;
    case JINJA_NODE_FILTER:
        scan_chain(s, n->a);
        scan_filter(s, n->b);
        return;
    case JINJA_NODE_MEMBER:
        scan_chain(s, n->a);
        if (n->flag)
            scan_chain(s, n->b);
        return;
    case JINJA_NODE_SELECT:
        scan_chain(s, n->b);
        scan_chain(s, n->a);
        return;
    default:
        scan_chain(s, n->a);
        scan_chain(s, n->b);
        scan_chain(s, n->c);
        scan_chain(s, n->d);
    }
}

static void scan_chain(struct scan *s, const struct jinja_node *n)
{
    for (; n; n = n->next)
        scan_node(s, n);
}

void jinja_macro_mark(struct jinja_node *macro, const struct jinja_node *parameters)
{
    struct scan s = {0};
    for (const struct jinja_node *n = parameters; n; n = n->next)
        scan_declare(&s, n);
    scan_chain(&s, macro->c);
    macro->uses_kwargs = s.uses_kwargs;
    macro->uses_varargs = s.uses_varargs;
}
