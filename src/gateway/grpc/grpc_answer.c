/* grpc_answer.c - see grpc_answer.h. */
#include "gateway/grpc/grpc_answer.h"

#include <string.h>

#include <shoal/v1/shoal.pb-c.h>

#include "base/utf8.h"
#include "flow/request.h"
#include "gateway/call.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/grpc/grpc_read.h"
#include "wire/pb.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static struct grpc_answer *answer_of(struct sink *s)
{
    return (struct grpc_answer *)(void *)s; /* its first member */
}

/* ---- text ---- */

/* The same bytes, as valid UTF-8, which protobuf requires of a string. */
static void put_utf8(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t valid = utf8_valid_prefix(p + i, n - i);
        buf_put(out, p + i, valid);
        i += valid;
        if (i < n) {
            buf_put(out, REPLACEMENT, 3);
            i++;
        }
    }
}

static void put_event_head(struct buf *out, size_t n)
{
    char head[GRPC_HEAD_BYTES + 11];
    size_t at = GRPC_HEAD_BYTES, v = n;
    head[at++] = 0x0a; /* GenerateEvent.text: field 1, a string */
    for (; v >= 0x80; v >>= 7)
        head[at++] = (char)(v | 0x80);
    head[at++] = (char)v;
    grpc_frame_head(head, at - GRPC_HEAD_BYTES + n, false);
    buf_put(out, head, at);
}

void grpc_answer_put_text(struct buf *out, const char *p, size_t n)
{
    if (utf8_valid_prefix(p, n) == n) {
        put_event_head(out, n);
        buf_put(out, p, n);
        return;
    }
    struct buf valid;
    buf_init(&valid, 3 * n);
    put_utf8(&valid, p, n);
    put_event_head(out, valid.len);
    buf_put(out, buf_str(&valid), valid.len);
    if (valid.rc < 0)
        out->rc = valid.rc;
    buf_fini(&valid);
}

/* ---- messages ---- */

/* Sends a message; false: out of memory, and the call has failed. */
static bool send(struct grpc_answer *a, const ProtobufCMessage *m)
{
    struct buf b;
    buf_init(&b, MAX_TEXT_BYTES);
    int rc = pb_put(&b, m);
    if (rc == 0)
        grpc_call_send(a->call, &b);
    else
        grpc_call_fail_plain(a->call, GRPC_UNAVAILABLE, NULL, "the request failed");
    buf_fini(&b);
    return rc == 0;
}

static Shoal__V1__Usage usage_of(const struct sink_usage *u)
{
    Shoal__V1__Usage out = SHOAL__V1__USAGE__INIT;
    out.prompt_tokens = u->prompt_tokens;
    out.completion_tokens = u->generated_tokens;
    out.cached_tokens = u->cached_tokens;
    return out;
}

static char *finish_name(const struct sink_done *d)
{
    return pb_text(d->finish == SHOAL_FINISH_LENGTH ? "length"
                   : d->n_calls > 0                 ? "tool_calls"
                                                    : "stop");
}

/* ---- generate ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    answer_of(s)->model = e->model;
    call_set_model(answer_of(s)->call, e);
}

static void begin_stream(struct call *c)
{
    if (c->began)
        return;
    grpc_call_begin(c);
    buf_clear(&c->out);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct grpc_answer *a = answer_of(s);
    struct call *c = a->call;
    a->started = true;
    if (!c->req || t->text_bytes == 0)
        return;
    if (!a->method->stream) {
        put_utf8(&a->text, t->text, t->text_bytes);
        return;
    }
    begin_stream(c);
    grpc_answer_put_text(&c->out, t->text, t->text_bytes);
}

/* A call of a buffered answer; out of memory: see request_rc. */
static void gather_call(struct grpc_answer *a, const struct sink_call *e)
{
    struct arena *arena = &a->request->arena;
    if (e->begins)
        buf_clear(&a->arguments);
    put_utf8(&a->arguments, e->text, e->text_bytes);
    if (!e->ends)
        return;
    Shoal__V1__ToolCall *m = arena_zalloc(arena, sizeof(*m));
    Shoal__V1__ToolCall **list =
        arena_zalloc_n(arena, (size_t)a->n_calls + 1, sizeof(*list)); /* calls are few */
    if (!m || !list)
        return;
    shoal__v1__tool_call__init(m);
    m->index = e->index;
    m->id = pb_text(request_copy(a->request, e->id, strlen(e->id)));
    m->name = pb_text(e->name); /* borrowed from the request's tools */
    m->arguments = pb_text(request_copy(a->request, buf_str(&a->arguments), a->arguments.len));
    if (a->arguments.rc < 0)
        arena->rc = a->arguments.rc;
    for (uint32_t i = 0; i < a->n_calls; i++)
        list[i] = a->calls[i];
    list[a->n_calls++] = m;
    a->calls = list;
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    struct grpc_answer *a = answer_of(s);
    struct call *c = a->call;
    a->started = true;
    if (!c->req)
        return;
    if (!a->method->stream) {
        gather_call(a, e);
        return;
    }
    if (e->ends || (!e->begins && e->text_bytes == 0))
        return;
    Shoal__V1__GenerateEvent event = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__ToolCall piece = SHOAL__V1__TOOL_CALL__INIT;
    buf_clear(&a->arguments);
    put_utf8(&a->arguments, e->text, e->text_bytes);
    piece.index = e->index;
    piece.id = pb_text(e->begins ? e->id : "");
    piece.name = pb_text(e->begins ? e->name : "");
    piece.arguments = pb_text(buf_str(&a->arguments));
    event.tool_call = &piece;
    begin_stream(c);
    call_flush(c);
    if (!send(a, &event.base))
        flow_cancel(c->sink);
}

/* Sends the buffered messages; false: some are missing, and the call has failed. */
static bool flush(struct grpc_answer *a)
{
    if (a->call->out.rc < 0) {
        grpc_call_fail_plain(a->call, GRPC_UNAVAILABLE, NULL, "the request failed");
        return false;
    }
    call_flush(a->call);
    return true;
}

static void stream_done(struct grpc_answer *a, const struct sink_done *d)
{
    Shoal__V1__GenerateEvent end = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__GenerateEvent last = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__Usage usage = usage_of(&d->usage);
    end.finish_reason = finish_name(d);
    last.usage = &usage;
    if (flush(a) && send(a, &end.base) && send(a, &last.base))
        grpc_call_finish(a->call);
}

static void whole_done(struct grpc_answer *a, const struct sink_done *d)
{
    Shoal__V1__GenerateResponse m = SHOAL__V1__GENERATE_RESPONSE__INIT;
    Shoal__V1__Usage usage = usage_of(&d->usage);
    m.model = pb_text(a->model);
    m.text = pb_text(buf_str(&a->text));
    m.finish_reason = finish_name(d);
    m.usage = &usage;
    m.tool_calls = a->calls;
    m.n_tool_calls = a->n_calls;
    if (a->text.rc < 0 || request_rc(a->request) < 0)
        call_fail(a->call, 503, NULL, NULL, NULL, "out of memory");
    else if (send(a, &m.base))
        grpc_call_finish(a->call);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct grpc_answer *a = answer_of(s);
    a->started = true;
    if (!a->call->req || !d->last)
        return;
    if (a->method->stream)
        stream_done(a, d);
    else
        whole_done(a, d);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct grpc_answer *a = answer_of(s);
    struct call *c = a->call;
    if (!c->req)
        return;
    if (!a->started || !a->method->stream) {
        call_fail_with(c, f);
        return;
    }
    const struct grpc_error e = {.status = f->kind == FAILURE_DEADLINE ? GRPC_DEADLINE_EXCEEDED
                                           : f->kind == FAILURE_BUSY   ? GRPC_RESOURCE_EXHAUSTED
                                           : f->kind == FAILURE_UNAVAILABLE ? GRPC_UNAVAILABLE
                                                                            : GRPC_INTERNAL,
                                 .message = f->message,
                                 .reason = f->reason ? f->reason : err_name(f->code),
                                 .retry_s = f->retry_after_s,
                                 .model = a->request->model};
    call_flush(c);
    grpc_call_fail(c, &e);
}

static void on_flush(struct sink *s)
{
    struct grpc_answer *a = answer_of(s);
    if (a->method->stream && a->call->began && a->call->req && !flush(a))
        flow_cancel(a->call->sink);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

/* ---- specialists ---- */

/* Sends the response of a method that has one message per input; NULL: out of memory. */
static void send_response(struct grpc_answer *a, const ProtobufCMessage *m)
{
    if (!m || request_rc(a->request) < 0)
        call_fail(a->call, 503, NULL, NULL, NULL, "out of memory");
    else if (send(a, m))
        grpc_call_finish(a->call);
}

static void put_labels(struct arena *arena, Shoal__V1__Classification *out,
                       const struct shoal_result *r, uint32_t top)
{
    uint32_t n = top && top < r->n_labels ? top : r->n_labels;
    Shoal__V1__Label *labels = arena_zalloc_n(arena, n, sizeof(*labels));
    out->label = pb_text(r->label);
    out->confidence = r->confidence;
    out->labels = arena_zalloc_n(arena, n, sizeof(*out->labels));
    for (uint32_t i = 0; labels && out->labels && i < n; i++) {
        shoal__v1__label__init(&labels[i]);
        labels[i].label = pb_text(r->labels[i].name);
        labels[i].score = r->labels[i].score;
        out->labels[out->n_labels++] = &labels[i];
    }
}

static void send_classes(struct grpc_answer *a, struct arena *arena, uint32_t n)
{
    Shoal__V1__ClassifyResponse m = SHOAL__V1__CLASSIFY_RESPONSE__INIT;
    Shoal__V1__Classification *list = arena_zalloc_n(arena, n, sizeof(*list));
    m.model = pb_text(a->model);
    m.data = arena_zalloc_n(arena, n, sizeof(*m.data));
    for (uint32_t i = 0; list && m.data && i < n; i++) {
        shoal__v1__classification__init(&list[i]);
        put_labels(arena, &list[i], a->results[i], a->top);
        list[i].truncated = a->results[i]->truncated;
        m.data[m.n_data++] = &list[i];
    }
    send_response(a, &m.base);
}

static void put_spans(struct arena *arena, Shoal__V1__Tags *out, const struct shoal_result *r,
                      const char *text)
{
    Shoal__V1__Span *spans = arena_zalloc_n(arena, r->n_spans, sizeof(*spans));
    out->spans = arena_zalloc_n(arena, r->n_spans, sizeof(*out->spans));
    for (uint32_t i = 0; spans && out->spans && i < r->n_spans; i++) {
        const struct shoal_span *from = &r->spans[i];
        size_t n = from->end - from->start;
        char *copy = arena_bytes(arena, n + 1);
        if (!copy)
            return; /* request_rc tells */
        memcpy(copy, text + from->start, n);
        copy[n] = '\0';
        shoal__v1__span__init(&spans[i]);
        spans[i].label = pb_text(from->label ? from->label : "");
        spans[i].text = copy;
        spans[i].start = from->start_char;
        spans[i].end = from->end_char;
        spans[i].score = from->score;
        out->spans[out->n_spans++] = &spans[i];
    }
}

static void send_tags(struct grpc_answer *a, struct arena *arena, uint32_t n)
{
    Shoal__V1__TagResponse m = SHOAL__V1__TAG_RESPONSE__INIT;
    Shoal__V1__Tags *list = arena_zalloc_n(arena, n, sizeof(*list));
    m.model = pb_text(a->model);
    m.data = arena_zalloc_n(arena, n, sizeof(*m.data));
    for (uint32_t i = 0; list && m.data && i < n; i++) {
        shoal__v1__tags__init(&list[i]);
        put_spans(arena, &list[i], a->results[i], a->request->infer.inputs[i].text);
        list[i].truncated = a->results[i]->truncated;
        m.data[m.n_data++] = &list[i];
    }
    send_response(a, &m.base);
}

static void send_vectors(struct grpc_answer *a, struct arena *arena, uint32_t n)
{
    Shoal__V1__EmbedResponse m = SHOAL__V1__EMBED_RESPONSE__INIT;
    Shoal__V1__Vector *list = arena_zalloc_n(arena, n, sizeof(*list));
    m.model = pb_text(a->model);
    m.data = arena_zalloc_n(arena, n, sizeof(*m.data));
    for (uint32_t i = 0; list && m.data && i < n; i++) {
        shoal__v1__vector__init(&list[i]);
        list[i].values = (float *)(uintptr_t)a->results[i]->vector; /* only read */
        list[i].n_values = a->results[i]->n_dims;
        list[i].truncated = a->results[i]->truncated;
        m.data[m.n_data++] = &list[i];
    }
    send_response(a, &m.base);
}

static void send_rows(struct grpc_answer *a, struct arena *arena, uint32_t n)
{
    Shoal__V1__ScoreResponse m = SHOAL__V1__SCORE_RESPONSE__INIT;
    Shoal__V1__Row *list = arena_zalloc_n(arena, n, sizeof(*list));
    m.model = pb_text(a->model);
    m.data = arena_zalloc_n(arena, n, sizeof(*m.data));
    for (uint32_t i = 0; list && m.data && i < n; i++) {
        shoal__v1__row__init(&list[i]);
        list[i].values = (double *)(uintptr_t)a->results[i]->values; /* only read */
        list[i].n_values = a->results[i]->n_values;
        m.data[m.n_data++] = &list[i];
    }
    send_response(a, &m.base);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct grpc_answer *a = answer_of(s);
    struct arena *arena = &a->request->arena;
    uint32_t n = a->request->infer.n_inputs;
    a->results[e->index] = e->result;
    if (!e->last || !a->call->req)
        return;
    switch (a->method->kind) {
    case SHOAL_KIND_CLASSIFY:
        send_classes(a, arena, n);
        break;
    case SHOAL_KIND_TAG:
        send_tags(a, arena, n);
        break;
    case SHOAL_KIND_EMBED:
        send_vectors(a, arena, n);
        break;
    default:
        send_rows(a, arena, n);
        break;
    }
}

/* ---- lifetime ---- */

static void on_closed(struct sink *s)
{
    struct grpc_answer *a = answer_of(s);
    a->call->asked_model = NULL; /* it is freed with the request */
    buf_fini(&a->text);
    buf_fini(&a->arguments);
    call_unset_sink(a->call);
}

struct grpc_answer *grpc_answer_open(struct call *c, const struct grpc_method *m, struct request *r,
                                     uint32_t top)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .call = on_call,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct grpc_answer *a = arena_zalloc(&r->arena, sizeof(*a));
    if (a && m->kind != SHOAL_KIND_GENERATE) {
        a->results = arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(struct shoal_result *));
        if (!a->results)
            return NULL;
    }
    if (!a)
        return NULL;
    a->sink.ops = &ops;
    a->call = c;
    a->method = m;
    a->request = r;
    a->top = top;
    buf_init(&a->text, MAX_TEXT_BYTES);
    buf_init(&a->arguments, MAX_TEXT_BYTES);
    call_set_sink(c, &a->sink);
    return a;
}
