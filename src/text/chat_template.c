/* chat_template.c - see chat_template.h. */
#include "text/chat_template.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/value.h"
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_json.h"
#include "text/jinja/parse/jinja_parse.h"

struct chat_template {
    struct jinja_template jinja;
};

int chat_template_parse(struct chat_template **out, const char *src, size_t n, struct err *e)
{
    *out = NULL;
    struct chat_template *t = mem_zalloc(sizeof(*t));
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the chat template");
    int rc = jinja_parse(&t->jinja, src, n, e);
    if (rc < 0) {
        mem_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void chat_template_destroy(struct chat_template *t)
{
    if (!t)
        return;
    jinja_parse_fini(&t->jinja);
    mem_free(t);
}

static void set_time(struct tm *out, const struct chat_template_opts *o)
{
    time_t t = o->fixed_time ? (time_t)(o->unix_s + o->utc_offset_s) : time(NULL);
    if (!(o->fixed_time ? gmtime_r(&t, out) : localtime_r(&t, out)))
        *out = (struct tm){.tm_year = 70, .tm_mday = 1}; /* a year that does not fit an int */
}

/* What a template is rendered with: JSON text, or typed values. */
struct context {
    const struct value *value; /* NULL: json */
    const char *json;
    size_t json_bytes;
};

static int take_value(struct jinja_run *r, struct jinja_value *out, const struct value *v,
                      int depth)
{
    struct jinja_value item;
    bool whole;
    int rc = jinja_charge(r, 1);
    if (rc == 0 && depth > JINJA_MAX_DATA_DEPTH)
        rc = jinja_fail(r, SHOAL_ELIMIT, "context is nested too deeply");
    if (rc < 0)
        return rc;
    switch (v->kind) {
    case VALUE_NULL:
        *out = jinja_none();
        return 0;
    case VALUE_BOOL:
        *out = jinja_bool(v->boolean);
        return 0;
    case VALUE_NUMBER:
        /* A double does not tell 1 from 1.0; clients mean integers where there is no fraction. */
        whole = v->number == floor(v->number) && fabs(v->number) < 9e18;
        *out = whole ? jinja_int((int64_t)v->number) : jinja_float(v->number);
        return 0;
    case VALUE_TEXT: /* the caller's bytes stay until the run ends */
        *out = jinja_string((struct jinja_str){v->text.p, v->text.n});
        return jinja_charge(r, v->text.n / 64);
    case VALUE_LIST:
        rc = jinja_list_make(r, out, v->list.n);
        for (size_t i = 0; rc == 0 && i < v->list.n; i++) {
            rc = take_value(r, &item, &v->list.items[i], depth + 1);
            if (rc == 0)
                rc = jinja_list_push(r, out->list, item);
        }
        return rc;
    case VALUE_MAP:
        rc = jinja_dict_make(r, out);
        for (size_t i = 0; rc == 0 && i < v->map.n; i++) {
            const char *key = v->map.members[i].key;
            rc = take_value(r, &item, &v->map.members[i].value, depth + 1);
            if (rc == 0)
                rc = jinja_dict_set(r, out->dict, (struct jinja_str){key, strlen(key)}, item);
        }
        return rc;
    }
    return jinja_fail(r, SHOAL_EINTERNAL, "unknown kind of value");
}

static int add_vars(struct jinja_run *r, struct jinja_dict *to, const struct chat_template_opts *o)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->n_vars; i++) {
        const struct jinja_str key = {o->vars[i].key, strlen(o->vars[i].key)};
        struct jinja_value v;
        if (jinja_dict_get(r, to, key))
            continue;
        rc = take_value(r, &v, &o->vars[i].value, 1);
        if (rc == 0)
            rc = jinja_dict_set(r, to, key, v);
    }
    return rc;
}

static int render(struct jinja_run *r, const struct chat_template *t, const struct context *c,
                  const struct chat_template_opts *o)
{
    struct jinja_value context;
    int rc = c->value ? take_value(r, &context, c->value, 0)
                      : jinja_json_read(r, &context, c->json, c->json_bytes, o->text, o->text_ctx);
    if (rc == 0 && context.kind != JINJA_DICT)
        rc = jinja_fail(r, SHOAL_EFORMAT, "context is not a JSON object");
    if (rc == 0)
        rc = add_vars(r, context.dict, o);
    /* As in transformers: templates check whether these are none, not whether they are defined. */
    const struct jinja_str absent[] = {JINJA_STR("tools"), JINJA_STR("documents")};
    for (size_t i = 0; rc == 0 && i < sizeof(absent) / sizeof(absent[0]); i++)
        if (!jinja_dict_get(r, context.dict, absent[i]))
            rc = jinja_dict_set(r, context.dict, absent[i], jinja_none());
    return rc < 0 ? rc : jinja_eval_template(r, &t->jinja, context.dict);
}

static int render_context(const struct chat_template *t, struct buf *out, const struct context *c,
                          const struct chat_template_opts *o, struct err *e)
{
    static const struct chat_template_opts defaults;
    if (!o)
        o = &defaults;
    struct jinja_run r = {.e = e, .steps_left = o->max_steps ? o->max_steps : 20000000};
    size_t mark = out->len;
    arena_init(&r.arena, o->max_memory_bytes ? o->max_memory_bytes : 128u << 20);
    buf_init(&r.out, o->max_output_bytes ? o->max_output_bytes : 16u << 20);
    set_time(&r.now, o);
    int rc = render(&r, t, c, o);
    if (rc == 0) {
        jinja_text_repair(out, (struct jinja_str){buf_str(&r.out), r.out.len});
        if (out->rc < 0) {
            rc = err_set(e, out->rc, "out of memory for a prompt of %zu bytes", r.out.len);
            out->len = mark;
            if (out->data)
                out->data[mark] = '\0';
        }
    }
    buf_fini(&r.out);
    arena_fini(&r.arena);
    return rc;
}

int chat_template_render_opts(const struct chat_template *t, struct buf *out, const char *json,
                              size_t n, const struct chat_template_opts *o, struct err *e)
{
    return render_context(t, out, &(struct context){NULL, json, n}, o, e);
}

int chat_template_render_value(const struct chat_template *t, struct buf *out,
                               const struct value *context, struct err *e)
{
    return render_context(t, out, &(struct context){context, NULL, 0}, NULL, e);
}

int chat_template_render(const struct chat_template *t, struct buf *out, const char *context_json,
                         size_t n, struct err *e)
{
    return chat_template_render_opts(t, out, context_json, n, NULL, e);
}
