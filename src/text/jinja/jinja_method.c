/* jinja_method.c - which methods values have; see jinja_eval.h.  As in the sandbox that chat
 * templates run in, no method changes its value, with one exception that the sandbox makes too: pop
 * of a list. */
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_names.h"

static const struct {
    const char *name;
    char of;
} methods[] = {
#define X(id, of, name) {name, of},
    JINJA_METHODS(X)
#undef X
};

/* What Python has besides.  Those of `changing` are hidden by the sandbox. */
static const struct {
    char of;
    const char *unsupported, *changing;
} others[] = {
    {'s',
     "casefold center encode expandtabs format_map isdecimal isidentifier isnumeric isprintable "
     "istitle ljust maketrans rindex rjust swapcase translate",
     ""},
    {'d', "fromkeys", "clear pop popitem setdefault update"},
    {'l', "clear", "append extend insert remove reverse sort"},
};

static char letter_of(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_STRING:
        return 's';
    case JINJA_DICT:
        return 'd';
    case JINJA_LIST:
        return 'l';
    case JINJA_TUPLE:
        return 't';
    case JINJA_LOOP:
        return 'o';
    default:
        return '\0';
    }
}

static int make(struct jinja_run *r, const struct jinja_value *v, int id, struct jinja_str name,
                struct jinja_value *out)
{
    struct jinja_function *f = arena_zalloc(&r->arena, sizeof(*f));
    char *text = arena_bytes(&r->arena, name.n + 1);
    if (!f || !text)
        return jinja_no_memory(r);
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    f->id = JINJA_FN_METHOD;
    f->method = id;
    f->name = id >= 0 ? methods[id].name : text;
    f->self = *v;
    *out = (struct jinja_value){.kind = JINJA_FUNCTION, .function = f};
    return 0;
}

int jinja_method(struct jinja_run *r, const struct jinja_value *v, struct jinja_str name,
                 struct jinja_value *out)
{
    char of = letter_of(v);
    *out = jinja_absent();
    if (!of)
        return 0;
    for (int i = 0; i < JINJA_METHOD_N; i++)
        if ((methods[i].of == of || (methods[i].of == 't' && of == 'l')) &&
            jinja_str_is(name, methods[i].name))
            return make(r, v, i, name, out);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].of != of)
            continue;
        if (jinja_names_has(others[i].changing, name))
            *out = jinja_undefined(name);
        else if (jinja_names_has(others[i].unsupported, name))
            return make(r, v, JINJA_NAME_UNSUPPORTED, name, out);
    }
    return 0;
}
