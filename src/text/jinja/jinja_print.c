/* jinja_print.c - see jinja_print.h. */
#include "text/jinja/jinja_print.h"

#include "text/jinja/jinja_json.h"

static int not_text(struct jinja_run *r, const struct jinja_value *v)
{
    return jinja_fail(r, SHOAL_EINVAL, "%s cannot be written as text", jinja_kind_name(v));
}

int jinja_print(struct jinja_run *r, const struct jinja_value *v)
{
    char text[JINJA_TEXT_NUMBER];
    switch (v->kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        buf_puts(&r->out, "undefined"); /* only seen inside a list: {{ none }} writes nothing */
        break;
    case JINJA_BOOL:
        buf_puts(&r->out, v->b ? "true" : "false");
        break;
    case JINJA_INT:
        buf_put(&r->out, text, jinja_text_number(text, v->num));
        break;
    case JINJA_FLOAT:
        buf_put(&r->out, text, jinja_text_float(text, v->num));
        break;
    case JINJA_STRING:
        if (v->str.p)
            buf_put(&r->out, v->str.p, v->str.n);
        else
            buf_puts(&r->out, "undefined");
        break;
    case JINJA_LIST:
    case JINJA_DICT:
    case JINJA_NAMESPACE: {
        int rc = jinja_json_write(r, v, &(struct jinja_json_opts){.undefined = true});
        if (rc < 0)
            return rc;
        break;
    }
    default: /* absent, tuple, named arguments, function: the reference writes none of them */
        return not_text(r, v);
    }
    return jinja_check_out(r);
}

int jinja_write_raw(struct jinja_run *r, const struct jinja_value *v)
{
    char text[JINJA_TEXT_NUMBER];
    if (v->kind == JINJA_FLOAT) {
        buf_put(&r->out, text, jinja_text_number(text, v->num));
        return jinja_check_out(r);
    }
    if (jinja_is_dict(v) || v->kind == JINJA_NAMESPACE) {
        buf_puts(&r->out, "[object Map]"); /* as the reference writes it */
        return jinja_check_out(r);
    }
    if (!jinja_is_list(v))
        return v->kind == JINJA_ABSENT ? not_text(r, v) : jinja_print(r, v);
    int rc = jinja_charge(r, v->list->n);
    for (size_t i = 0; rc == 0 && i < v->list->n; i++) {
        if (i)
            buf_putc(&r->out, ',');
        if (v->list->at[i].kind != JINJA_ABSENT)
            rc = jinja_print(r, &v->list->at[i]);
    }
    return rc < 0 ? rc : jinja_check_out(r);
}

int jinja_raw_text(struct jinja_run *r, const struct jinja_value *v, struct jinja_str *out)
{
    struct jinja_value text;
    if (v->kind == JINJA_STRING && v->str.p) {
        *out = v->str;
        return 0;
    }
    size_t mark = r->out.len;
    int rc = jinja_write_raw(r, v);
    if (rc == 0)
        rc = jinja_cut(r, mark, &text);
    if (rc == 0)
        *out = text.str;
    return rc;
}
