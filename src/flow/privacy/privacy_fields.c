/* privacy_fields.c - see privacy_fields.h. */
#include "flow/privacy/privacy_fields.h"

#include <string.h>

#include "base/buf.h"
#include "base/room.h"

#define MAX_TEXT_BYTES REQUEST_MAX_BYTES

/* ---- the texts of a request ---- */

static int add_field(struct privacy_fields *f, const char **text, size_t *n, const char *name,
                     bool prose)
{
    size_t bytes = !*text ? 0 : n ? *n : strlen(*text);
    if (bytes == 0)
        return 0;
    if (!room_make_in(&f->request->arena, &f->list, &f->cap, f->n, sizeof(*f->list), 16))
        return SHOAL_ENOMEM;
    f->list[f->n++] = (struct privacy_field){
        .text = text, .n = n, .bytes = bytes, .name = name, .input = -1, .prose = prose};
    return 0;
}

/* A copy of an array, for changes; NULL: out of memory, see the arena's rc. */
static void *copy_of(struct request *r, const void *list, size_t n, size_t bytes)
{
    void *copy = arena_zalloc_n(&r->arena, n + 1, bytes);
    if (copy && n > 0)
        memcpy(copy, list, n * bytes);
    return copy;
}

static int add_calls(struct privacy_fields *f, struct chat_message *m)
{
    struct chat_call *calls = copy_of(f->request, m->calls, m->n_calls, sizeof(*calls));
    int rc = calls ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; i < m->n_calls && rc == 0; i++)
        rc = add_field(f, &calls[i].arguments, &calls[i].arguments_bytes, "tool_calls", false);
    m->calls = calls;
    return rc;
}

static int add_messages(struct privacy_fields *f, struct chat *c)
{
    struct chat_message *list = copy_of(f->request, c->messages, c->n_messages, sizeof(*list));
    int rc = list ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; i < c->n_messages && rc == 0; i++) {
        rc = add_field(f, &list[i].content, &list[i].content_bytes, "messages", true);
        if (rc == 0)
            rc = add_field(f, &list[i].name, NULL, "messages", false);
        if (rc == 0 && list[i].n_calls > 0)
            rc = add_calls(f, &list[i]);
    }
    if (rc == 0)
        c->messages = list;
    return rc;
}

/* The texts of a value, which *v is a copy of; what it points to is copied here.  It is a flow's
 * input, or a tool's schema, whose names say something too. */
static int add_value(struct privacy_fields *f, struct value *v, bool schema)
{
    int rc = 0;
    if (v->kind == VALUE_TEXT) {
        rc = add_field(f, &v->text.p, &v->text.n, schema ? "tools" : "input", !schema);
    } else if (v->kind == VALUE_LIST) {
        struct value *items = copy_of(f->request, v->list.items, v->list.n, sizeof(*items));
        v->list.items = items;
        rc = items ? 0 : SHOAL_ENOMEM;
        for (size_t i = 0; i < v->list.n && rc == 0; i++)
            rc = add_value(f, &items[i], schema);
    } else if (v->kind == VALUE_MAP) {
        struct value_member *m = copy_of(f->request, v->map.members, v->map.n, sizeof(*m));
        v->map.members = m;
        rc = m ? 0 : SHOAL_ENOMEM;
        for (size_t i = 0; i < v->map.n && rc == 0; i++) {
            if (schema)
                rc = add_field(f, &m[i].key, NULL, "tools", false);
            if (rc == 0)
                rc = add_value(f, &m[i].value, schema);
        }
    }
    return rc;
}

static int add_tools(struct privacy_fields *f, struct chat *c)
{
    struct chat_tool *list = copy_of(f->request, c->tools, c->n_tools, sizeof(*list));
    int rc = list ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; i < c->n_tools && rc == 0; i++) {
        rc = add_field(f, &list[i].description, NULL, "tools", false);
        if (rc == 0)
            rc = add_value(f, &list[i].parameters, true);
    }
    if (rc == 0 && c->n_tools > 0)
        c->tools = list;
    return rc;
}

static int add_pieces(struct privacy_fields *f, struct request_prompt *p)
{
    struct request_piece *list = copy_of(f->request, p->pieces, p->n_pieces, sizeof(*list));
    int rc = list ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; i < p->n_pieces && rc == 0; i++) {
        if (!list[i].text)
            return SHOAL_EINVAL;
        rc = add_field(f, &list[i].text, &list[i].text_bytes, "prompt", true);
        if (rc == 0)
            rc = add_field(f, &list[i].name, NULL, "prompt", true);
    }
    if (rc == 0 && p->n_pieces > 0)
        p->pieces = list;
    return rc;
}

static int add_prompts(struct privacy_fields *f, struct request_generate *g)
{
    uint32_t n = g->prompts ? g->n_prompts : 0;
    struct request_prompt *list = copy_of(f->request, g->prompts, n, sizeof(*list));
    int rc = list ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        if (!list[i].text && list[i].n_ids > 0)
            return SHOAL_EINVAL;
        rc = add_field(f, &list[i].text, &list[i].text_bytes, "prompt", true);
        if (rc == 0)
            rc = add_field(f, &list[i].suffix, &list[i].suffix_bytes, "suffix", true);
        if (rc == 0)
            rc = add_pieces(f, &list[i]);
    }
    if (rc == 0 && n > 0)
        g->prompts = list;
    return rc;
}

static int add_generate(struct privacy_fields *f, struct request_generate *g)
{
    const char **stop = copy_of(f->request, g->stop, g->n_stop, sizeof(*stop));
    int rc = stop ? 0 : SHOAL_ENOMEM;
    if (rc == 0)
        rc = g->chat.n_messages > 0 ? add_messages(f, &g->chat) : add_prompts(f, g);
    if (rc == 0)
        rc = add_tools(f, &g->chat);
    for (uint32_t i = 0; i < g->n_stop && rc == 0; i++)
        rc = add_field(f, &stop[i], NULL, "stop", false);
    if (rc == 0 && g->n_stop > 0)
        g->stop = stop;
    if (rc == 0)
        rc = add_field(f, &g->constraint.text, &g->constraint.text_bytes, "response_format", false);
    return rc;
}

static int add_infer(struct privacy_fields *f, struct request_infer *q)
{
    struct request_input *list = copy_of(f->request, q->inputs, q->n_inputs, sizeof(*list));
    int rc = list ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; i < q->n_inputs && rc == 0; i++) {
        uint32_t before = f->n;
        if (!list[i].text && list[i].n_ids > 0)
            return SHOAL_EINVAL;
        if (list[i].image)
            return SHOAL_EUNSUPPORTED;
        rc = add_field(f, &list[i].text, &list[i].text_bytes, "input", true);
        if (f->n > before)
            f->list[before].input = (int32_t)i;
    }
    if (rc == 0)
        rc = add_field(f, &q->query, NULL, "query", true);
    if (rc == 0)
        rc = add_field(f, &q->title, NULL, "title", true);
    if (rc == 0)
        q->inputs = list;
    return rc;
}

static int add_input(struct privacy_fields *f, struct request *r)
{
    struct value *copy = copy_of(r, r->input, 1, sizeof(*copy));
    int rc = copy ? add_value(f, copy, false) : SHOAL_ENOMEM;
    if (rc == 0)
        r->input = copy;
    return rc;
}

static int add_tokens(struct privacy_fields *f, struct request_tokens *q)
{
    return q->n_ids > 0 ? SHOAL_EINVAL : add_field(f, &q->text, &q->text_bytes, "text", true);
}

int privacy_fields_open(struct privacy_fields *f, struct request *r)
{
    *f = (struct privacy_fields){.request = r};
    int rc = r->kind == REQUEST_GENERATE ? add_generate(f, &r->generate)
             : r->kind == REQUEST_INFER  ? add_infer(f, &r->infer)
             : r->kind == REQUEST_ASK    ? add_field(f, &r->ask.text, NULL, "text", true)
                                         : add_tokens(f, &r->tokens);
    return rc == 0 && r->input ? add_input(f, r) : rc;
}

/* ---- what is found ---- */

static int put_hit(struct privacy_fields *f, struct privacy_field *to, uint32_t at,
                   const struct pii_hit *h)
{
    if (!room_make_in(&f->request->arena, &to->hits, &to->cap, to->n_hits, sizeof(*to->hits), 8))
        return SHOAL_ENOMEM;
    memmove(to->hits + at + 1, to->hits + at, (to->n_hits - at) * sizeof(*h));
    to->hits[at] = *h;
    to->n_hits++;
    return 0;
}

struct finding {
    struct privacy_fields *fields;
    struct privacy_field *field;
    int rc;
};

static void on_hit(void *ctx, const struct pii_hit *h)
{
    struct finding *x = ctx;
    if (x->rc == 0)
        x->rc = put_hit(x->fields, x->field, x->field->n_hits, h);
}

int privacy_fields_find(struct privacy_fields *f, unsigned kinds)
{
    struct finding x = {.fields = f};
    for (uint32_t i = 0; i < f->n && x.rc == 0; i++) {
        x.field = &f->list[i];
        pii_find(*x.field->text, x.field->bytes, kinds, on_hit, &x);
    }
    return x.rc;
}

int privacy_fields_add(struct privacy_fields *f, uint32_t field, const struct pii_hit *h)
{
    struct privacy_field *to = &f->list[field];
    uint32_t at = 0;
    while (at < to->n_hits && to->hits[at].end <= h->start)
        at++;
    if (at < to->n_hits && to->hits[at].start < h->end)
        return 0;
    return put_hit(f, to, at, h);
}

/* ---- the replacements ---- */

static int replace_one(struct privacy_fields *f, struct privacy_field *x,
                       struct pseudonyms_map *map, struct privacy_input *input)
{
    struct arena *a = &f->request->arena;
    struct privacy_edit *edits = arena_zalloc_n(a, x->n_hits, sizeof(*edits));
    const char *old = *x->text;
    struct buf out;
    size_t at = 0;
    int rc = edits ? 0 : SHOAL_ENOMEM;
    buf_init(&out, MAX_TEXT_BYTES);
    for (uint32_t i = 0; i < x->n_hits && rc == 0; i++) {
        const struct pii_hit *h = &x->hits[i];
        char mark[PSEUDONYMS_MARK_BYTES];
        buf_put(&out, old + at, h->start - at);
        edits[i] = (struct privacy_edit){.from = h->start, .to = h->end, .new_from = out.len};
        if (map)
            rc = pseudonyms_mark(map, h->kind, old + h->start, h->end - h->start, mark);
        if (map)
            buf_puts(&out, mark);
        else
            buf_printf(&out, "[%s]", pii_kind_name(h->kind));
        edits[i].new_to = out.len;
        at = h->end;
    }
    buf_put(&out, old + at, x->bytes - at);
    if (rc == 0)
        rc = out.rc;
    const char *text = rc == 0 ? request_copy(f->request, buf_str(&out), out.len) : NULL;
    if (rc == 0)
        rc = request_rc(f->request);
    if (rc == 0) {
        *x->text = text;
        if (x->n)
            *x->n = out.len;
        if (input)
            *input = (struct privacy_input){.text = old, .edits = edits, .n_edits = x->n_hits};
    }
    buf_fini(&out);
    return rc;
}

int privacy_fields_replace(struct privacy_fields *f, struct pseudonyms_map *map,
                           struct privacy_input *inputs)
{
    int rc = 0;
    for (uint32_t i = 0; i < f->n && rc == 0; i++) {
        struct privacy_field *x = &f->list[i];
        if (x->n_hits > 0)
            rc = replace_one(f, x, map, x->input >= 0 && inputs ? &inputs[x->input] : NULL);
    }
    return rc;
}
