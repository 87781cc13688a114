/* grpc_answer.c - see grpc_answer.h. */
#include "gateway/grpc/grpc_answer.h"

#include <string.h>

#include <shoal/v1/shoal.pb-c.h>

#include "base/utf8.h"
#include "flow/request.h"
#include "gateway/call/answer.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/grpc/grpc_read.h"
#include "wire/pb.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Turns the events of a request into an answer to the call. */
struct grpc_answer {
    struct answer_sink answer; /* first */
    const struct grpc_method *method;
    uint32_t top;
};

static struct grpc_answer *grpc_of(struct answer_sink *a)
{
    return (struct grpc_answer *)(void *)a; /* its first member */
}

/* ---- text ---- */

void grpc_answer_put_utf8(struct buf *out, const char *p, size_t n)
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

/* The head of a string field: its tag and how many bytes follow. */
static size_t field_head(char *out, unsigned field, size_t n)
{
    size_t at = 0;
    out[at++] = (char)(field << 3 | 2);
    for (; n >= 0x80; n >>= 7)
        out[at++] = (char)(n | 0x80);
    out[at++] = (char)n;
    return at;
}

static void put_event_head(struct buf *out, size_t n)
{
    char head[GRPC_HEAD_BYTES + 11];
    size_t at = GRPC_HEAD_BYTES + field_head(head + GRPC_HEAD_BYTES, 1, n); /* GenerateEvent.text */
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
    grpc_answer_put_utf8(&valid, p, n);
    put_event_head(out, valid.len);
    buf_put(out, buf_str(&valid), valid.len);
    if (valid.rc < 0)
        out->rc = valid.rc;
    buf_fini(&valid);
}

/* ---- messages ---- */

/* Sends a message of a stream, after those that wait. */
static void send(struct call *c, const ProtobufCMessage *m)
{
    struct buf b;
    buf_init(&b, MAX_TEXT_BYTES);
    int rc = c->out.rc < 0 ? c->out.rc : pb_put(&b, m);
    if (rc == 0) {
        call_flush(c);
        grpc_call_send(c, &b);
    } else {
        c->out.rc = rc;
    }
    buf_fini(&b);
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

/* ---- how answers travel ---- */

static void end_stream(struct call *c)
{
    call_flush(c);
    grpc_call_finish(c);
}

static void send_whole(struct call *c)
{
    if (c->out.rc < 0) {
        call_fail(c, 503, NULL, NULL, NULL, "out of memory");
        return;
    }
    grpc_call_send(c, &c->out);
    grpc_call_finish(c);
}

static const struct answer_frame frame = {
    .begin = grpc_call_begin, .end = end_stream, .send = send_whole};

static enum grpc_status status_of(const struct failure *f)
{
    switch (f->kind) {
    case FAILURE_DEADLINE:
        return GRPC_DEADLINE_EXCEEDED;
    case FAILURE_BUSY:
        return GRPC_RESOURCE_EXHAUSTED;
    case FAILURE_UNAVAILABLE:
        return GRPC_UNAVAILABLE;
    case FAILURE_NOT_FOUND:
        return GRPC_NOT_FOUND;
    case FAILURE_INVALID:
        return GRPC_INVALID_ARGUMENT;
    default:
        return GRPC_INTERNAL;
    }
}

void grpc_answer_fail(struct call *c, const struct failure *f, const char *model)
{
    const struct grpc_error e = {.status = status_of(f),
                                 .message = f->message,
                                 .reason = f->reason ? f->reason : err_name(f->code),
                                 .field = f->param,
                                 .retry_s = f->retry_after_s,
                                 .model = model};
    call_flush(c);
    grpc_call_fail(c, &e);
}

static void stream_failure(struct answer_sink *a, const struct failure *f)
{
    grpc_answer_fail(a->call, f, a->request->model);
}

static void closed(struct answer_sink *a)
{
    a->call->asked_model = NULL; /* it is freed with the request */
}

/* ---- generate ---- */

static void stream_text(struct answer_sink *a, const struct sink_token *t)
{
    if (t->text_bytes > 0)
        grpc_answer_put_text(&a->call->out, t->text, t->text_bytes);
}

static void stream_call(struct answer_sink *a, const struct sink_call *e)
{
    Shoal__V1__GenerateEvent event = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__ToolCall piece = SHOAL__V1__TOOL_CALL__INIT;
    struct buf arguments;
    if (e->ends || (!e->begins && e->text_bytes == 0))
        return;
    buf_init(&arguments, MAX_TEXT_BYTES);
    grpc_answer_put_utf8(&arguments, e->text, e->text_bytes);
    piece.index = e->index;
    piece.id = pb_text(e->begins ? e->id : "");
    piece.name = pb_text(e->begins ? e->name : "");
    piece.arguments = pb_text(buf_str(&arguments));
    event.tool_call = &piece;
    if (arguments.rc < 0)
        a->call->out.rc = arguments.rc;
    send(a->call, &event.base);
    buf_fini(&arguments);
}

static void stream_end(struct answer_sink *a, const struct sink_done *d)
{
    Shoal__V1__GenerateEvent end = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__GenerateEvent last = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__Usage usage = usage_of(&d->usage);
    end.finish_reason = finish_name(d);
    last.usage = &usage;
    send(a->call, &end.base);
    send(a->call, &last.base);
}

/* A text in the request's arena; out of memory: see request_rc. */
static char *valid_text(struct request *r, const char *p, size_t n)
{
    struct buf valid;
    buf_init(&valid, MAX_TEXT_BYTES);
    grpc_answer_put_utf8(&valid, p, n);
    char *text = pb_text(request_copy(r, buf_str(&valid), valid.len));
    if (valid.rc < 0)
        r->arena.rc = valid.rc;
    buf_fini(&valid);
    return text;
}

/* A message into the call's out; NULL members: out of memory. */
static void put_message(struct answer_sink *a, const ProtobufCMessage *m)
{
    int rc = request_rc(a->request);
    if (rc == 0)
        rc = pb_put(&a->call->out, m);
    if (rc < 0)
        a->call->out.rc = rc;
}

/* A string of a model; protobuf-c would end it at a NUL. */
static void put_text_field(struct answer_sink *a, unsigned field, const struct buf *text)
{
    struct buf valid;
    char head[11];
    buf_init(&valid, MAX_TEXT_BYTES);
    grpc_answer_put_utf8(&valid, text->data, text->len);
    if (valid.len > 0)
        buf_put(&a->call->out, head, field_head(head, field, valid.len));
    buf_put(&a->call->out, valid.data, valid.len);
    if (valid.rc < 0)
        a->call->out.rc = valid.rc;
    buf_fini(&valid);
}

static void put_calls(struct answer_sink *a, Shoal__V1__GenerateResponse *m)
{
    const struct answer_choice *ch = &a->choices[0];
    struct arena *arena = &a->request->arena;
    Shoal__V1__ToolCall *list = arena_zalloc_n(arena, ch->n_calls, sizeof(*list));
    struct answer_cursor at = {0};
    struct answer_call call;
    m->tool_calls = arena_zalloc_n(arena, ch->n_calls, sizeof(*m->tool_calls));
    while (list && m->tool_calls && answer_next_call(ch, &at, &call)) {
        Shoal__V1__ToolCall *one = &list[m->n_tool_calls];
        shoal__v1__tool_call__init(one);
        one->index = call.index;
        one->id = pb_text(call.id);
        one->name = pb_text(call.name);
        one->arguments = valid_text(a->request, call.arguments, call.arguments_bytes);
        m->tool_calls[m->n_tool_calls++] = one;
    }
}

static void put_generated(struct answer_sink *a, const struct sink_done *d)
{
    Shoal__V1__GenerateResponse m = SHOAL__V1__GENERATE_RESPONSE__INIT;
    Shoal__V1__Usage usage = usage_of(&d->usage);
    m.model = pb_text(a->model);
    m.finish_reason = finish_name(d);
    m.usage = &usage;
    put_calls(a, &m);
    put_message(a, &m.base);
    put_text_field(a, 2, &a->choices[0].text); /* GenerateResponse.text */
}

/* ---- specialists ---- */

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

static void put_classes(struct answer_sink *a, struct arena *arena, uint32_t n)
{
    Shoal__V1__ClassifyResponse m = SHOAL__V1__CLASSIFY_RESPONSE__INIT;
    Shoal__V1__Classification *list = arena_zalloc_n(arena, n, sizeof(*list));
    m.model = pb_text(a->model);
    m.data = arena_zalloc_n(arena, n, sizeof(*m.data));
    for (uint32_t i = 0; list && m.data && i < n; i++) {
        shoal__v1__classification__init(&list[i]);
        put_labels(arena, &list[i], a->results[i], grpc_of(a)->top);
        list[i].truncated = a->results[i]->truncated;
        m.data[m.n_data++] = &list[i];
    }
    put_message(a, &m.base);
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

static void put_tags(struct answer_sink *a, struct arena *arena, uint32_t n)
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
    put_message(a, &m.base);
}

static void put_vectors(struct answer_sink *a, struct arena *arena, uint32_t n)
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
    put_message(a, &m.base);
}

static void put_rows(struct answer_sink *a, struct arena *arena, uint32_t n)
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
    put_message(a, &m.base);
}

static void stream_sound(struct answer_sink *a, const struct sink_result *e)
{
    Shoal__V1__SpeakEvent m = SHOAL__V1__SPEAK_EVENT__INIT;
    const struct shoal_result *r = e->result;
    m.audio = pb_bytes((const char *)r->samples, r->n_samples * sizeof(*r->samples));
    m.rate = r->sample_rate;
    if (r->n_samples > 0)
        send(a->call, &m.base);
}

static void end_sound(struct answer_sink *a, const struct sink_done *d)
{
    (void)d;
    answer_begin(a);
}

static void put_results(struct answer_sink *a, const struct sink_done *d)
{
    struct arena *arena = &a->request->arena;
    (void)d;
    switch (grpc_of(a)->method->kind) {
    case SHOAL_KIND_CLASSIFY:
        put_classes(a, arena, a->n_results);
        break;
    case SHOAL_KIND_TAG:
        put_tags(a, arena, a->n_results);
        break;
    case SHOAL_KIND_EMBED:
        put_vectors(a, arena, a->n_results);
        break;
    default:
        put_rows(a, arena, a->n_results);
        break;
    }
}

/* ---- lifetime ---- */

bool grpc_answer_open(struct call *c, const struct grpc_method *m, struct request *r, uint32_t top)
{
    static const struct answer_dialect generate = {.frame = &frame,
                                                   .text = stream_text,
                                                   .call = stream_call,
                                                   .end = stream_end,
                                                   .failure = stream_failure,
                                                   .whole = put_generated,
                                                   .closed = closed};
    static const struct answer_dialect infer = {
        .frame = &frame, .whole = put_results, .closed = closed};
    static const struct answer_dialect speak = {.frame = &frame,
                                                .result = stream_sound,
                                                .end = end_sound,
                                                .failure = stream_failure,
                                                .closed = closed};
    struct grpc_answer *a = answer_create(c, r, sizeof(*a),
                                          m->kind == SHOAL_KIND_GENERATE ? &generate
                                          : m->kind == SHOAL_KIND_SPEAK  ? &speak
                                                                         : &infer,
                                          m->stream);
    if (!a)
        return false;
    a->method = m;
    a->top = top;
    return true;
}
