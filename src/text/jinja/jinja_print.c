/* jinja_print.c - see jinja_print.h. */
#include "text/jinja/jinja_print.h"

#include "text/jinja/parse/jinja_node.h"
#include "text/jinja/jinja_number.h"

static int repr_at(struct jinja_run *r, const struct jinja_value *v, int depth);

static void repr_string(struct buf *b, struct jinja_str s)
{
    bool single = memchr(s.p, '\'', s.n) != NULL, twofold = memchr(s.p, '"', s.n) != NULL;
    char quote = single && !twofold ? '"' : '\'';
    buf_putc(b, quote);
    for (size_t i = 0; i < s.n && b->rc == 0;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        if (cp == (uint32_t)quote || cp == '\\')
            buf_printf(b, "\\%c", (int)cp);
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            buf_puts(b, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t");
        else if (jinja_text_is_printable(cp))
            buf_put(b, s.p + i, len);
        else
            buf_printf(b, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
        i += len;
    }
    buf_putc(b, quote);
}

static int repr_list(struct jinja_run *r, const struct jinja_list *l, const char *brackets,
                     int depth)
{
    int rc = 0;
    buf_putc(&r->out, brackets[0]);
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (i)
            buf_puts(&r->out, ", ");
        rc = repr_at(r, &l->at[i], depth + 1);
    }
    if (brackets[0] == '(' && l->n == 1)
        buf_putc(&r->out, ',');
    buf_putc(&r->out, brackets[1]);
    return rc;
}

/* The entries of a dict; of: which part of them, or -1 for both. */
static int repr_entries(struct jinja_run *r, const struct jinja_dict *d, int of, int depth)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        if (i)
            buf_puts(&r->out, ", ");
        if (of == JINJA_VIEW_ITEMS)
            buf_putc(&r->out, '(');
        if (of != JINJA_VIEW_VALUES)
            rc = repr_at(r, &d->at[i].key, depth + 1);
        if (rc == 0 && (of == JINJA_VIEW_ITEMS || of < 0))
            buf_puts(&r->out, of < 0 ? ": " : ", ");
        if (rc == 0 && of != JINJA_VIEW_KEYS)
            rc = repr_at(r, &d->at[i].value, depth + 1);
        if (of == JINJA_VIEW_ITEMS)
            buf_putc(&r->out, ')');
    }
    return rc;
}

static int repr_dict(struct jinja_run *r, const struct jinja_value *v, int depth)
{
    static const char *const views[] = {"dict_keys([", "dict_values([", "dict_items(["};
    int rc;
    if (v->kind == JINJA_VIEW) {
        buf_puts(&r->out, views[v->view->of]);
        rc = repr_entries(r, v->view->dict, (int)v->view->of, depth + 1);
        buf_puts(&r->out, "])");
        return rc;
    }
    buf_puts(&r->out, v->kind == JINJA_NAMESPACE ? "<Namespace {" : "{");
    rc = repr_entries(r, v->dict, -1, depth);
    buf_puts(&r->out, v->kind == JINJA_NAMESPACE ? "}>" : "}");
    return rc;
}

static void repr_range(struct buf *b, const struct jinja_range *g)
{
    buf_printf(b, "range(%lld, %lld", (long long)g->start, (long long)g->stop);
    if (g->step != 1)
        buf_printf(b, ", %lld", (long long)g->step);
    buf_putc(b, ')');
}

static int repr_function(struct jinja_run *r, const struct jinja_function *f)
{
    if (f->id != JINJA_FN_MACRO)
        return jinja_fail(r, SHOAL_EINVAL, "function '%s' cannot be written as text: call it",
                          f->name);
    struct jinja_str name = f->node->text;
    buf_puts(&r->out, "<Macro ");
    if (f->node->kind == JINJA_NODE_MACRO)
        repr_string(&r->out, name);
    else
        buf_puts(&r->out, "anonymous");
    buf_putc(&r->out, '>');
    return 0;
}

static int repr_at(struct jinja_run *r, const struct jinja_value *v, int depth)
{
    char text[JINJA_NUMBER_TEXT];
    struct buf *b = &r->out;
    int rc = jinja_charge(r, 1);
    if (rc == 0 && depth > JINJA_MAX_DATA_DEPTH) /* a namespace may hold itself */
        rc = jinja_fail(r, SHOAL_ELIMIT, "value is nested too deeply to be written");
    if (rc < 0 || b->rc < 0)
        return rc < 0 ? rc : jinja_check_out(r);
    switch (v->kind) {
    case JINJA_ABSENT:
    case JINJA_UNDEFINED:
        buf_puts(b, "Undefined");
        return 0;
    case JINJA_NONE:
        buf_puts(b, "None");
        return 0;
    case JINJA_BOOL:
        buf_puts(b, v->b ? "True" : "False");
        return 0;
    case JINJA_INT:
        buf_printf(b, "%lld", (long long)v->i);
        return 0;
    case JINJA_BIGINT:
        buf_put(b, v->str.p, v->str.n);
        return 0;
    case JINJA_FLOAT:
        buf_put(b, text, jinja_number_repr(text, v->num));
        return 0;
    case JINJA_STRING:
        buf_puts(b, v->markup ? "Markup(" : "");
        repr_string(b, v->str);
        buf_puts(b, v->markup ? ")" : "");
        return 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return repr_list(r, v->list, v->kind == JINJA_LIST ? "[]" : "()", depth);
    case JINJA_DICT:
    case JINJA_VIEW:
    case JINJA_NAMESPACE:
        return repr_dict(r, v, depth);
    case JINJA_RANGE:
        repr_range(b, v->range);
        return 0;
    case JINJA_LOOP:
        buf_printf(b, "<LoopContext %zu/%zu>", v->loop->index + 1, v->loop->items->n);
        return 0;
    case JINJA_FUNCTION:
        return repr_function(r, v->function);
    case JINJA_LAZY:
        break;
    }
    return jinja_fail(r, SHOAL_EINVAL, "%s cannot be written as text: make a list of it",
                      jinja_kind_name(v));
}

int jinja_print_repr(struct jinja_run *r, const struct jinja_value *v)
{
    int rc = repr_at(r, v, 0);
    return rc < 0 ? rc : jinja_check_out(r);
}

int jinja_print(struct jinja_run *r, const struct jinja_value *v)
{
    if (v->kind == JINJA_STRING)
        buf_put(&r->out, v->str.p, v->str.n);
    else if (v->kind != JINJA_UNDEFINED)
        return jinja_print_repr(r, v);
    return jinja_check_out(r);
}

int jinja_print_text(struct jinja_run *r, const struct jinja_value *v, struct jinja_str *out)
{
    struct jinja_value text;
    if (v->kind == JINJA_STRING) {
        *out = v->str;
        return 0;
    }
    size_t mark = r->out.len;
    int rc = jinja_print(r, v);
    if (rc == 0)
        rc = jinja_cut(r, mark, &text);
    if (rc == 0)
        *out = text.str;
    return rc;
}
