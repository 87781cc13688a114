/* privacy_sink.c - see privacy_sink.h. */
#include "flow/privacy/privacy_sink.h"

#include <string.h>

#include "base/buf.h"
#include "flow/sink_front.h"

#define MAX_PIECE_BYTES ((size_t)64 << 20)

/* Streamed text: the start of a mark is held back. */
struct held {
    char text[PSEUDONYMS_MARK_BYTES];
    size_t n;
};

struct privacy_choice {
    struct held text, arguments;
};

struct privacy_sink {
    struct sink_front front;    /* first */
    struct pseudonyms_map *map; /* NULL: nothing is put back */
    struct arena *arena;
    const struct privacy_input *inputs;
    uint32_t n_inputs, n; /* n: choices */
    struct privacy_choice *choices;
    struct buf out;
};

static struct privacy_sink *privacy_of(struct sink *s)
{
    return (struct privacy_sink *)(void *)s; /* its first member */
}

/* ---- texts ---- */

/* Appends the text to x->out with its marks replaced; a possible start of a mark stays in h. */
static void put_back(struct privacy_sink *x, struct held *h, const char *p, size_t n)
{
    char joined[2 * PSEUDONYMS_MARK_BYTES];
    while (h->n > 0 && n > 0) { /* first the held bytes, with as much as can belong to them */
        size_t take = sizeof(joined) - h->n, bytes;
        take = take < n ? take : n;
        memcpy(joined, h->text, h->n);
        memcpy(joined + h->n, p, take);
        enum pseudonyms_scan s = pseudonyms_scan(joined, h->n + take, &bytes);
        if (s == PSEUDONYMS_PART) { /* all of p belongs to it */
            memcpy(h->text + h->n, p, n);
            h->n += n;
            return;
        }
        size_t old = h->n, n_value;
        h->n = 0;
        if (s == PSEUDONYMS_NO) { /* a held text has one '[' only, its first byte */
            buf_put(&x->out, h->text, old);
            break;
        }
        const char *value = pseudonyms_find(x->map, joined, bytes, &n_value);
        buf_put(&x->out, value ? value : joined, value ? n_value : bytes);
        p += bytes - old;
        n -= bytes - old;
    }
    while (n > 0) {
        const char *at = memchr(p, '[', n);
        size_t plain = at ? (size_t)(at - p) : n, bytes, n_value;
        buf_put(&x->out, p, plain);
        p += plain;
        n -= plain;
        if (!at)
            return;
        enum pseudonyms_scan s = pseudonyms_scan(p, n, &bytes);
        if (s == PSEUDONYMS_PART) {
            memcpy(h->text, p, n);
            h->n = n;
            return;
        }
        const char *value =
            s == PSEUDONYMS_WHOLE ? pseudonyms_find(x->map, p, bytes, &n_value) : NULL;
        bytes = s == PSEUDONYMS_WHOLE ? bytes : 1;
        buf_put(&x->out, value ? value : p, value ? n_value : bytes);
        p += bytes;
        n -= bytes;
    }
}

/* The text has ended: held bytes are not a mark. */
static void release(struct privacy_sink *x, struct held *h)
{
    buf_put(&x->out, h->text, h->n);
    h->n = 0;
}

static void fail_nomem(struct privacy_sink *x)
{
    struct failure f;
    failure_of(&f, x->out.rc, "the answer is too large to restore personal data");
    sink_front_fail(&x->front.sink, &f);
    flow_cancel(&x->front.sink);
}

/* ---- events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct sink_start copy = *e;
    copy.question = NULL; /* the client's text must not be cached with the answer */
    copy.private = true;
    sink_front_start(s, &copy);
}

/* A text of a plan with its marks replaced; NULL: out of memory. */
static const char *whole_text(struct privacy_sink *x, const char *text)
{
    struct held h = {.n = 0};
    if (!text || !strchr(text, '['))
        return text;
    buf_clear(&x->out);
    put_back(x, &h, text, strlen(text));
    release(x, &h);
    buf_putc(&x->out, '\0');
    return x->out.rc < 0 ? NULL : arena_copy(x->arena, x->out.data, x->out.len);
}

/* ctx: the sink */
static const char *on_plan_text(void *ctx, const char *text)
{
    return whole_text(ctx, text);
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct privacy_sink *x = privacy_of(s);
    struct sink_plan copy = *e;
    if (x->map)
        copy.plan = ask_plan_edit(e->plan, x->arena, on_plan_text, x);
    if (!copy.plan) {
        x->out.rc = SHOAL_ENOMEM;
        fail_nomem(x);
        return;
    }
    sink_front_plan(s, &copy);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct privacy_sink *x = privacy_of(s);
    if (!x->map || t->choice >= x->n) {
        sink_front_token(s, t);
        return;
    }
    struct sink_token e = *t;
    buf_clear(&x->out);
    put_back(x, &x->choices[t->choice].text, t->text, t->text_bytes);
    if (x->out.rc < 0) {
        fail_nomem(x);
        return;
    }
    e.text = buf_str(&x->out);
    e.text_bytes = x->out.len;
    if (e.text_bytes > 0 || e.token >= 0 || e.logprobs || t->text_bytes == 0)
        sink_front_token(s, &e);
}

static void on_call(struct sink *s, const struct sink_call *c)
{
    struct privacy_sink *x = privacy_of(s);
    struct sink_call e = *c;
    if (!x->map || c->choice >= x->n) {
        sink_front_call(s, c);
        return;
    }
    struct held *h = &x->choices[c->choice].arguments;
    buf_clear(&x->out);
    put_back(x, h, c->text, c->text_bytes);
    if (c->ends)
        release(x, h);
    if (x->out.rc < 0) {
        fail_nomem(x);
        return;
    }
    e.text = buf_str(&x->out);
    e.text_bytes = x->out.len;
    if (c->ends && e.text_bytes > 0) { /* arguments come before the end */
        e.begins = e.ends = false;
        sink_front_call(s, &e);
        e = *c;
        e.text = "";
        e.text_bytes = 0;
    }
    if (e.begins || e.ends || e.text_bytes > 0)
        sink_front_call(s, &e);
}

/* ---- results ---- */

/* Maps a position of the model's text to the client's; end: after a replaced part, not before
 * it. */
static size_t old_place(const struct privacy_input *in, size_t at, bool end)
{
    size_t moved = at;
    for (uint32_t i = 0; i < in->n_edits; i++) {
        const struct privacy_edit *d = &in->edits[i];
        if (end ? at <= d->new_from : at < d->new_from)
            break;
        if (end ? at <= d->new_to : at < d->new_to)
            return end ? d->to : d->from;
        moved = at - d->new_to + d->to;
    }
    return moved;
}

static uint32_t characters(const char *text, size_t n)
{
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += ((uint8_t)text[i] & 0xc0) != 0x80;
    return k;
}

static const struct shoal_span *old_spans(struct privacy_sink *x, const struct privacy_input *in,
                                          const struct shoal_result *r)
{
    struct shoal_span *list = arena_zalloc_n(x->arena, r->n_spans, sizeof(*list));
    for (uint32_t i = 0; list && i < r->n_spans; i++) {
        list[i] = r->spans[i];
        list[i].start = (uint32_t)old_place(in, r->spans[i].start, false);
        list[i].end = (uint32_t)old_place(in, r->spans[i].end, true);
        list[i].start_char = characters(in->text, list[i].start);
        list[i].end_char = characters(in->text, list[i].end);
    }
    return list;
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct privacy_sink *x = privacy_of(s);
    const struct privacy_input *in = e->index < x->n_inputs ? &x->inputs[e->index] : NULL;
    const struct shoal_result *r = e->result;
    struct sink_result copy = *e;
    struct shoal_result *own = arena_zalloc(x->arena, sizeof(*own));
    bool changed = in && in->n_edits > 0 && (r->n_spans > 0 || r->text_bytes > 0);
    if (changed && own) {
        *own = *r;
        copy.result = own;
        if (r->n_spans > 0)
            own->spans = old_spans(x, in, r);
        if (r->text_bytes > 0 && x->map) {
            struct held h = {.n = 0};
            buf_clear(&x->out);
            put_back(x, &h, r->text, r->text_bytes);
            release(x, &h);
            buf_putc(&x->out, '\0');
            own->text = x->out.rc < 0 ? NULL : arena_copy(x->arena, x->out.data, x->out.len);
            own->text_bytes = x->out.len - 1;
        }
        if ((r->n_spans > 0 && !own->spans) || (r->text_bytes > 0 && !own->text))
            own = NULL;
    }
    if (!own) {
        x->out.rc = SHOAL_ENOMEM;
        fail_nomem(x);
        return;
    }
    sink_front_result(s, &copy);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct privacy_sink *x = privacy_of(s);
    struct held *h = x->map && d->choice < x->n ? &x->choices[d->choice].text : NULL;
    if (h && h->n > 0) {
        const struct sink_token e = {
            .choice = d->choice, .token = -1, .text = h->text, .text_bytes = h->n};
        sink_front_token(s, &e);
        h->n = 0;
    }
    sink_front_done(s, d);
}

static void on_closed(struct sink *s)
{
    struct privacy_sink *x = privacy_of(s);
    buf_fini(&x->out);
    sink_front_close(&x->front);
}

/* ---- its place in front of the codec ---- */

struct sink *privacy_sink_open(struct request *r, struct sink *to, struct pseudonyms_map *map,
                               const struct privacy_input *inputs, uint32_t n_inputs)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .prompt = sink_front_prompt,
                                        .token = on_token,
                                        .call = on_call,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = sink_front_fail,
                                        .closed = on_closed,
                                        .broke_off = sink_front_broke_off,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    uint32_t n = r->kind == REQUEST_GENERATE ? request_choices(&r->generate)
                 : r->kind == REQUEST_ASK    ? 1
                                             : 0;
    struct privacy_sink *x = arena_zalloc(&r->arena, sizeof(*x));
    struct privacy_choice *choices = arena_zalloc_n(&r->arena, n + 1, sizeof(*choices));
    if (!x || !choices)
        return NULL;
    *x = (struct privacy_sink){.map = map,
                               .arena = &r->arena,
                               .inputs = inputs,
                               .n_inputs = n_inputs,
                               .n = n,
                               .choices = choices};
    buf_init(&x->out, MAX_PIECE_BYTES);
    sink_front_open(&x->front, &ops, to);
    return &x->front.sink;
}
