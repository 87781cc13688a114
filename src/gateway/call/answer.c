/* answer.c - see answer.h. */
#include "gateway/call/answer.h"

#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/mem.h"
#include "flow/request.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)
#define MAX_TOKENS_BYTES ((size_t)256 << 20)

static struct answer_sink *answer_of(struct sink *s)
{
    return (struct answer_sink *)(void *)s; /* its first member */
}

/* ---- gathering ----
 *
 * Tokens and calls are records in a buffer: a header, and what belongs to it. */

struct token_record { /* then n_logprobs structs sink_logprob, their texts, and padding */
    int32_t token;
    uint32_t text_bytes; /* of the choice's text */
    uint32_t n_logprobs;
    bool echo;
};

struct call_record {           /* then id, name and arguments, each with a NUL */
    size_t text_at, tokens_at; /* what came before it */
    size_t arguments_bytes;
    uint32_t index, id_bytes, name_bytes;
};

static void keep_token(struct answer_choice *ch, const struct sink_token *t)
{
    static const char padding[8];
    const uint32_t n = t->logprobs ? t->n_logprobs : 0;
    const struct token_record r = {t->token, (uint32_t)t->text_bytes, n, t->echo};
    buf_put(&ch->tokens, &r, sizeof(r));
    buf_put(&ch->tokens, t->logprobs, n * sizeof(*t->logprobs));
    for (uint32_t i = 0; i < n; i++)
        buf_put(&ch->tokens, t->logprobs[i].text, t->logprobs[i].text_bytes);
    buf_put(&ch->tokens, padding, -ch->tokens.len % sizeof(padding));
}

bool answer_next_token(struct answer_choice *ch, struct answer_cursor *at, struct sink_token *out)
{
    struct token_record r;
    if (ch->tokens.rc < 0 || at->tokens >= ch->tokens.len)
        return false;
    char *p = ch->tokens.data + at->tokens;
    memcpy(&r, p, sizeof(r));
    struct sink_logprob *list = (struct sink_logprob *)(void *)(p + sizeof(r)); /* 8-byte aligned */
    const char *text = (const char *)(list + r.n_logprobs);
    for (uint32_t i = 0; i < r.n_logprobs; i++) {
        list[i].text = text;
        text += list[i].text_bytes;
    }
    *out = (struct sink_token){.token = r.token,
                               .echo = r.echo,
                               .text = buf_str(&ch->text) + at->text,
                               .text_bytes = r.text_bytes,
                               .logprobs = r.n_logprobs > 0 ? list : NULL,
                               .n_logprobs = r.n_logprobs};
    at->text += r.text_bytes;
    at->tokens = ((size_t)(text - ch->tokens.data) + 7) & ~(size_t)7;
    return true;
}

static void keep_call(struct answer_choice *ch, const struct sink_call *e)
{
    struct buf *b = &ch->calls;
    struct call_record r;
    if (!e->begins && ch->n_calls == 0)
        return; /* the rest of a call that was replaced */
    if (e->begins) {
        r = (struct call_record){.text_at = ch->text.len,
                                 .tokens_at = ch->tokens.len,
                                 .index = e->index,
                                 .id_bytes = (uint32_t)strlen(e->id),
                                 .name_bytes = (uint32_t)strlen(e->name)};
        ch->call_at = b->len;
        ch->n_calls++;
        buf_put(b, &r, sizeof(r));
        buf_put(b, e->id, r.id_bytes + 1u);
        buf_put(b, e->name, r.name_bytes + 1u);
    }
    buf_put(b, e->text, e->text_bytes);
    if (b->rc == 0) {
        memcpy(&r, b->data + ch->call_at, sizeof(r));
        r.arguments_bytes += e->text_bytes;
        memcpy(b->data + ch->call_at, &r, sizeof(r));
    }
    if (e->ends)
        buf_putc(b, '\0');
}

static bool next_call(const struct answer_choice *ch, size_t *at, struct call_record *r,
                      struct answer_call *out)
{
    if (ch->calls.rc < 0 || *at >= ch->calls.len)
        return false;
    const char *p = ch->calls.data + *at;
    memcpy(r, p, sizeof(*r));
    p += sizeof(*r);
    *out = (struct answer_call){.id = p,
                                .name = p + r->id_bytes + 1,
                                .arguments = p + r->id_bytes + r->name_bytes + 2,
                                .arguments_bytes = r->arguments_bytes,
                                .index = r->index};
    *at += sizeof(*r) + r->id_bytes + r->name_bytes + 2 + r->arguments_bytes + 1;
    return true;
}

bool answer_next_call(const struct answer_choice *ch, struct answer_cursor *at,
                      struct answer_call *out)
{
    struct call_record r;
    return next_call(ch, &at->calls, &r, out);
}

bool answer_next_part(const struct answer_choice *ch, struct answer_cursor *at,
                      struct answer_part *out)
{
    struct call_record r = {.text_at = ch->text.len, .tokens_at = ch->tokens.len};
    size_t next = at->calls;
    *out = (struct answer_part){.is_call = false};
    const bool more = next_call(ch, &next, &r, &out->call);
    if (at->text < r.text_at || at->tokens < r.tokens_at) {
        out->text = buf_str(&ch->text) + at->text;
        out->text_bytes = r.text_at - at->text;
        out->from = *at;
        out->tokens_end = r.tokens_at;
        at->text = r.text_at;
        at->tokens = r.tokens_at;
        return true;
    }
    at->calls = next;
    out->is_call = more;
    return more;
}

static void forget(struct answer_choice *ch)
{
    buf_clear(&ch->text);
    buf_clear(&ch->tokens);
    buf_clear(&ch->calls);
    ch->n_calls = ch->n_tokens = 0;
    ch->text_bytes = ch->call_at = 0;
}

/* Whether something is missing because memory ran out. */
static bool is_partial(const struct answer_sink *a)
{
    for (uint32_t i = 0; i < a->n_choices; i++)
        if (a->choices[i].text.rc < 0 || a->choices[i].tokens.rc < 0 || a->choices[i].calls.rc < 0)
            return true;
    return false;
}

/* ---- how answers travel ---- */

const struct answer_frame answer_events = {.type = SSE_TYPE "; charset=utf-8"};
const struct answer_frame answer_lines = {.type = "application/x-ndjson"};

static void frame_end(const struct answer_sink *a)
{
    if (a->dialect->frame->end)
        a->dialect->frame->end(a->call);
    else
        call_end_flushed(a->call);
}

static void frame_send(const struct answer_sink *a)
{
    if (a->dialect->frame->send)
        a->dialect->frame->send(a->call);
    else
        call_json(a->call, 200);
}

/* ---- parts ---- */

void answer_close_part(struct answer_sink *a, const struct sink_done *d)
{
    if (a->part == ANSWER_OPEN_NONE)
        return;
    a->dialect->close_part(a, d);
    a->part = ANSWER_OPEN_NONE;
    a->n_parts++;
}

void answer_open_part(struct answer_sink *a, const struct sink_call *e)
{
    const struct answer_choice *ch = &a->choices[0];
    if (!e && a->part == ANSWER_OPEN_TEXT)
        return;
    answer_close_part(a, NULL);
    a->part = e ? ANSWER_OPEN_CALL : ANSWER_OPEN_TEXT;
    a->part_from = (struct answer_cursor){ch->text.len, ch->tokens.len, ch->call_at};
    a->dialect->open_part(a, e);
}

struct answer_part answer_get_part(struct answer_sink *a)
{
    const struct answer_choice *ch = &a->choices[0];
    struct answer_part p = {.is_call = a->part == ANSWER_OPEN_CALL,
                            .text = buf_str(&ch->text) + a->part_from.text,
                            .text_bytes = ch->text.len - a->part_from.text,
                            .from = a->part_from,
                            .tokens_end = ch->tokens.len};
    struct answer_cursor at = a->part_from;
    if (p.is_call)
        p.is_call = answer_next_call(ch, &at, &p.call);
    return p;
}

/* ---- events ---- */

void answer_begin_first(struct answer_sink *a)
{
    const struct answer_frame *frame = a->dialect->frame;
    struct call *c = a->call;
    if (frame->begin)
        frame->begin(c);
    else
        call_begin(c, frame->type);
    buf_clear(&c->out);
    if (a->dialect->begin)
        a->dialect->begin(a);
}

struct json_out answer_event(struct answer_sink *a, const char *type)
{
    answer_begin(a);
    call_event_begin(a->call, type);
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    json_out_member_str(&j, "type", type);
    return j;
}

void answer_event_end(struct answer_sink *a, struct json_out *j)
{
    json_out_object_end(j);
    call_event_end(a->call);
}

static void report(struct answer_sink *a, const struct failure *f)
{
    struct call *c = a->call;
    if (!c->began) {
        call_fail_with(c, f);
        return;
    }
    if (a->dialect->failure) {
        a->dialect->failure(a, f);
    } else {
        call_event_begin(c, a->dialect->failure_event);
        call_put_failure(c, f);
        call_event_end(c);
    }
    frame_end(a);
}

/* The answer ends with an error instead of a part of it. */
static void give_up(struct answer_sink *a)
{
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, err_text(SHOAL_ENOMEM));
    buf_clear(&a->call->out);
    report(a, &f);
    flow_cancel(a->call->sink);
}

static void set_model(struct answer_sink *a, const struct sink_start *e)
{
    a->model = e->model;
    a->version = e->version;
    call_set_model(a->call, e);
    if (a->dialect->start)
        a->dialect->start(a, e);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    set_model(answer_of(s), e);
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct answer_sink *a = answer_of(s);
    a->plan = e->plan;
    if (a->call->req && a->stream && a->dialect->plan)
        a->dialect->plan(a, e);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct answer_sink *a = answer_of(s);
    if (e->choice == 0)
        a->prompt = (struct sink_usage){.prompt_tokens = e->tokens, .cached_tokens = e->cached};
    if (a->call->req && a->stream && a->dialect->prompt)
        a->dialect->prompt(a, e);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer_sink *a = answer_of(s);
    struct answer_choice *ch = &a->choices[t->choice];
    if (!a->call->req)
        return;
    ch->n_tokens += t->token >= 0;
    if (a->stream) {
        if (!a->dialect->every_token)
            answer_begin(a);
        if (t->text_bytes > 0 || t->logprobs || t->echo || a->dialect->every_token)
            a->dialect->text(a, t);
    }
    ch->text_bytes += t->text_bytes;
    if (a->keeps & ANSWER_KEEPS_TEXT)
        buf_put(&ch->text, t->text, t->text_bytes);
    if (a->keeps & ANSWER_KEEPS_TOKENS)
        keep_token(ch, t);
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    struct answer_sink *a = answer_of(s);
    if (!a->call->req)
        return;
    if (a->keeps & ANSWER_KEEPS_CALLS)
        keep_call(&a->choices[e->choice], e);
    if (!a->stream)
        return;
    answer_begin(a);
    a->dialect->call(a, e);
}

static void send_whole(struct answer_sink *a, const struct sink_done *d)
{
    struct call *c = a->call;
    if (is_partial(a)) {
        give_up(a);
        return;
    }
    buf_clear(&c->out);
    a->dialect->whole(a, d);
    frame_send(a);
}

static void end_stream(struct answer_sink *a, const struct sink_done *d)
{
    const bool partial = is_partial(a);
    if (a->dialect->end && !partial)
        a->dialect->end(a, d);
    if (a->call->out.rc < 0 || partial)
        give_up(a);
    else
        frame_end(a);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer_sink *a = answer_of(s);
    a->choices[d->choice].done = *d;
    if (!a->call->req)
        return;
    if (a->stream) {
        answer_begin(a);
        if (a->dialect->done)
            a->dialect->done(a, d);
        if (d->last)
            end_stream(a, d);
    } else if (d->last) {
        send_whole(a, d);
    }
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct answer_sink *a = answer_of(s);
    a->results[e->index] = e->result;
    if (!a->call->req)
        return;
    if (a->stream) {
        answer_begin(a);
        a->dialect->result(a, e);
        if (e->last)
            end_stream(a, NULL);
    } else if (e->last) {
        send_whole(a, NULL);
    }
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct answer_sink *a = answer_of(s);
    if (a->call->req)
        report(a, f);
}

/* A whole answer is sent at the end: until then nothing needs to be taken back.  A stream that may
 * be marked may be so at any time: `refine` asks before the first token. */
static bool on_may_replace(struct sink *s, bool marked)
{
    const struct answer_sink *a = answer_of(s);
    return !a->stream || (marked ? a->dialect->replace && !a->fixed : !a->call->began);
}

static void on_replace(struct sink *s, const struct sink_replace *e)
{
    struct answer_sink *a = answer_of(s);
    set_model(a, e->start);
    a->prompt = (struct sink_usage){0};
    for (uint32_t i = 0; i < a->n_choices; i++)
        forget(&a->choices[i]);
    if (a->call->req && a->call->began)
        a->dialect->replace(a, e);
}

static void on_flush(struct sink *s)
{
    struct answer_sink *a = answer_of(s);
    struct call *c = a->call;
    if (!a->stream)
        return;
    if (c->out.rc < 0 && c->req && c->began)
        give_up(a);
    else
        call_flush(c);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void on_closed(struct sink *s)
{
    struct answer_sink *a = answer_of(s);
    if (a->dialect->closed)
        a->dialect->closed(a);
    for (uint32_t i = 0; i < a->n_choices; i++) {
        buf_fini(&a->choices[i].text);
        buf_fini(&a->choices[i].tokens);
        buf_fini(&a->choices[i].calls);
    }
    if (a->choices != &a->only)
        mem_free(a->choices);
    call_unset_sink(a->call);
}

/* ---- lifetime ---- */

int answer_open(struct answer_sink *a, struct call *c, const struct answer_dialect *d,
                uint32_t n_choices, bool stream)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .call = on_call,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .may_replace = on_may_replace,
                                        .replace = on_replace,
                                        .flush = on_flush,
                                        .full = on_full};
    *a = (struct answer_sink){.sink.ops = &ops,
                              .call = c,
                              .dialect = d,
                              .stream = stream,
                              .keeps = stream ? 0 : ANSWER_KEEPS_TEXT | ANSWER_KEEPS_CALLS,
                              .choices = &a->only,
                              .n_choices = n_choices};
    if (n_choices > 1)
        a->choices = mem_zalloc_n(n_choices, sizeof(*a->choices));
    if (!a->choices)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < n_choices; i++) {
        buf_init(&a->choices[i].text, MAX_TEXT_BYTES);
        buf_init(&a->choices[i].tokens, MAX_TOKENS_BYTES);
        buf_init(&a->choices[i].calls, MAX_TEXT_BYTES);
    }
    call_set_sink(c, &a->sink);
    return 0;
}

void *answer_create(struct call *c, struct request *r, size_t bytes, const struct answer_dialect *d,
                    bool stream)
{
    const bool generates = r->kind == REQUEST_GENERATE;
    const uint32_t n_results = r->kind == REQUEST_INFER ? r->infer.n_inputs : 0;
    struct answer_sink *a = arena_zalloc(&r->arena, bytes);
    const struct shoal_result **results = arena_zalloc_n(&r->arena, n_results, sizeof(*results));
    if (!a || (n_results > 0 && !results) ||
        answer_open(a, c, d, generates ? request_choices(&r->generate) : 1, stream) < 0) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return NULL;
    }
    a->request = r;
    a->results = results;
    a->n_results = n_results;
    if (generates)
        c->meter.n_each = r->generate.n;
    return a;
}

uint64_t answer_make_id(struct answer_sink *a, const char *prefix)
{
    const struct call *c = a->call;
    const uint64_t h = hash_bytes(c->id, strlen(c->id), c->gl->gw->id_salt ^ c->start_ns);
    const size_t n = strlen(prefix);
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    a->created_s = (uint64_t)ts.tv_sec;
    memcpy(a->id, prefix, n);
    hash_hex(a->id + n, h);
    return h;
}
