/* chat_template.c - see chat_template.h. */
#include "text/chat_template.h"

#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "text/jinja/jinja_eval.h"
#include "text/jinja/jinja_json.h"
#include "text/jinja/jinja_parse.h"

struct chat_template {
    struct jinja_template jinja;
};

int chat_template_parse(struct chat_template **out, const char *src, size_t n, struct err *e)
{
    *out = NULL;
    struct chat_template *t = mem_zalloc(sizeof(*t));
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "chat template");
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

static int render(struct jinja_run *r, const struct chat_template *t, const char *json, size_t n)
{
    struct jinja_value context;
    int rc = jinja_json_read(r, &context, json, n);
    if (rc == 0 && context.kind != JINJA_DICT)
        rc = jinja_fail(r, SHOAL_EFORMAT, "context is not a JSON object");
    return rc < 0 ? rc : jinja_eval_template(r, &t->jinja, context.dict);
}

int chat_template_render_opts(const struct chat_template *t, struct buf *out, const char *json,
                              size_t n, const struct chat_template_opts *o, struct err *e)
{
    static const struct chat_template_opts defaults;
    if (!o)
        o = &defaults;
    struct jinja_run r = {.e = e, .steps_left = o->max_steps ? o->max_steps : 20000000};
    size_t mark = out->len;
    arena_init(&r.arena, o->max_memory_bytes ? o->max_memory_bytes : 128u << 20);
    buf_init(&r.out, o->max_output_bytes ? o->max_output_bytes : 16u << 20);
    set_time(&r.now, o);
    int rc = render(&r, t, json, n);
    if (rc == 0) {
        jinja_text_repair(out, (struct jinja_str){buf_str(&r.out), r.out.len});
        if (out->rc < 0) {
            rc = err_set(e, out->rc, "no room for the prompt of %zu bytes", r.out.len);
            out->len = mark;
            if (out->data)
                out->data[mark] = '\0';
        }
    }
    buf_fini(&r.out);
    arena_fini(&r.arena);
    return rc;
}

int chat_template_render(const struct chat_template *t, struct buf *out, const char *context_json,
                         size_t n, struct err *e)
{
    return chat_template_render_opts(t, out, context_json, n, NULL, e);
}
