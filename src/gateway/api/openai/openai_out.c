/* openai_out.c - events to answers in OpenAI's shape, whole and as server-sent events.
 *
 * The common part of all chunks of a stream is written once (openai_answer.prefix). */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/mem.h"
#include "gateway/api/decision.h"
#include "gateway/api/logprob_json.h"
#include "gateway/api/openai/openai.h"
#include "gateway/api/recall.h"
#include "gateway/api/timings_json.h"
#include "gateway/call.h"
#include "wire/json_out.h"
#include "wire/sse.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)

static const char *finish_name(const struct openai_answer *a, enum shoal_finish finish,
                               uint32_t n_calls)
{
    const char *called = a->shape.functions ? "function_call" : "tool_calls";
    return finish == SHOAL_FINISH_LENGTH ? "length" : n_calls > 0 ? called : "stop";
}

static struct openai_answer *answer_of(struct sink *s)
{
    return (struct openai_answer *)(void *)s; /* its first member */
}

static void put_head(const struct openai_answer *a, struct json_out *j, const char *object)
{
    json_out_object(j);
    json_out_key(j, "id");
    json_out_str(j, a->id);
    json_out_key(j, "object");
    json_out_str(j, object);
    json_out_key(j, "created");
    json_out_uint(j, a->created_s);
    json_out_key(j, "model");
    json_out_str(j, a->model);
    json_out_key(j, "system_fingerprint");
    a->version[0] ? json_out_str(j, a->version) : json_out_null(j);
}

/* How a route chose the model: in a whole answer, and in the first chunk of a stream. */
static void put_decision(struct openai_answer *a, struct json_out *j)
{
    if (!a->call->routed || a->explained)
        return;
    json_out_key(j, "shoal");
    decision_json(j, a->call->routed);
    a->explained = true;
}

static void put_usage(struct json_out *j, const struct sink_usage *u)
{
    json_out_key(j, "usage");
    json_out_object(j);
    json_out_key(j, "prompt_tokens");
    json_out_uint(j, u->prompt_tokens);
    json_out_key(j, "completion_tokens");
    json_out_uint(j, u->generated_tokens);
    json_out_key(j, "total_tokens");
    json_out_uint(j, (uint64_t)u->prompt_tokens + u->generated_tokens);
    json_out_key(j, "prompt_tokens_details");
    json_out_object(j);
    json_out_key(j, "cached_tokens");
    json_out_uint(j, u->cached_tokens);
    json_out_object_end(j);
    json_out_object_end(j);
}

/* ---- log-probabilities ---- */

/* The name of an alternative in a text completion, where names are keys. */
static void put_top_logprobs(struct json_out *j, const struct sink_logprob *top, uint32_t n,
                             float own)
{
    if (isnan(own)) { /* the first token of a prompt has no log-probabilities */
        json_out_null(j);
        return;
    }
    json_out_object(j);
    for (uint32_t i = 0; i < n; i++) {
        char name[256] = "";
        memcpy(name, top[i].text,
               top[i].text_bytes < sizeof(name) ? top[i].text_bytes : sizeof(name) - 1);
        json_out_key(j, name);
        json_out_float(j, top[i].logprob);
    }
    json_out_object_end(j);
}

/* ---- whole answers ---- */

/* Memory that ran out while an answer was gathered. */
static void check_choice(struct openai_answer *a, const struct openai_choice *ch)
{
    if (ch->text.rc < 0 || ch->extra.rc < 0 || ch->calls.rc < 0 || ch->arguments.rc < 0)
        a->call->out.rc = SHOAL_ENOMEM;
}

static void gather_chat(struct openai_choice *ch, const struct sink_token *t)
{
    buf_put(&ch->text, t->text, t->text_bytes);
    if (t->logprobs) {
        struct json_out j = json_out_make(&ch->extra);
        j.comma = ch->n_extra++ > 0;
        logprob_json(&j, t);
    }
}

static void put_function(struct json_out *j, const struct openai_choice *ch, const char *name)
{
    json_out_object(j);
    json_out_member_str(j, "name", name);
    json_out_key(j, "arguments");
    json_out_strn(j, buf_str(&ch->arguments), ch->arguments.len);
    json_out_object_end(j);
}

/* A call is complete when its end event arrives. */
static void gather_call(const struct openai_answer *a, struct openai_choice *ch,
                        const struct sink_call *e)
{
    if (e->begins)
        buf_clear(&ch->arguments);
    buf_put(&ch->arguments, e->text, e->text_bytes);
    if (!e->ends)
        return;
    struct json_out j = json_out_make(&ch->calls);
    if (a->shape.functions) { /* at most one call */
        ch->n_calls = 1;
        buf_clear(&ch->calls);
        put_function(&j, ch, e->name);
        return;
    }
    j.comma = ch->n_calls++ > 0;
    json_out_object(&j);
    json_out_member_str(&j, "id", e->id);
    json_out_member_str(&j, "type", "function");
    json_out_key(&j, "function");
    put_function(&j, ch, e->name);
    json_out_object_end(&j);
}

static void put_chat_choice(struct openai_answer *a, struct json_out *j,
                            const struct openai_choice *ch)
{
    json_out_key(j, "message");
    json_out_object(j);
    json_out_key(j, "role");
    json_out_str(j, "assistant");
    json_out_key(j, "content");
    if (ch->n_calls > 0 && ch->text.len == 0)
        json_out_null(j);
    else
        json_out_strn(j, buf_str(&ch->text), ch->text.len);
    json_out_key(j, "refusal");
    json_out_null(j);
    if (ch->n_calls > 0) {
        json_out_key(j, a->shape.functions ? "function_call" : "tool_calls");
        buf_puts(j->b, a->shape.functions ? "" : "[");
        buf_put(j->b, buf_str(&ch->calls), ch->calls.len);
        buf_puts(j->b, a->shape.functions ? "" : "]");
        j->comma = true;
    }
    json_out_object_end(j);
    json_out_key(j, "logprobs");
    if (!a->shape.logprobs) {
        json_out_null(j);
        return;
    }
    buf_puts(j->b, "{\"content\":[");
    buf_put(j->b, buf_str(&ch->extra), ch->extra.len);
    buf_puts(j->b, "],\"refusal\":null}");
    j->comma = true;
}

/* Columns are gathered as records, one per token, and put together at the end: each has this, the
 * token's text, and for every alternative a struct text_top and its text. */
struct text_record {
    float logprob;
    uint32_t n_top, at, text_bytes;
};

struct text_top {
    float logprob;
    uint32_t text_bytes;
};

static void gather_text(struct openai_choice *ch, const struct sink_token *t)
{
    if (t->logprobs) {
        const struct sink_logprob *own = &t->logprobs[0];
        ch->logprob_sum += t->echo ? 0.0 : (double)own->logprob;
        ch->n_tokens += !t->echo;
        struct text_record r = {own->logprob, t->n_logprobs - 1, (uint32_t)ch->text.len,
                                (uint32_t)own->text_bytes};
        buf_put(&ch->extra, &r, sizeof(r));
        buf_put(&ch->extra, own->text, own->text_bytes);
        for (uint32_t i = 1; i < t->n_logprobs; i++) {
            struct text_top top = {t->logprobs[i].logprob, (uint32_t)t->logprobs[i].text_bytes};
            buf_put(&ch->extra, &top, sizeof(top));
            buf_put(&ch->extra, t->logprobs[i].text, top.text_bytes);
        }
    }
    buf_put(&ch->text, t->text, t->text_bytes);
}

enum column { COLUMN_TOKEN, COLUMN_LOGPROB, COLUMN_TOP, COLUMN_OFFSET };

static void put_column(struct json_out *j, const struct buf *records, enum column column)
{
    json_out_array(j);
    for (size_t at = 0; at < records->len;) {
        struct sink_logprob top[20];
        struct text_record r;
        memcpy(&r, records->data + at, sizeof(r));
        const char *text = records->data + at + sizeof(r);
        at += sizeof(r) + r.text_bytes;
        for (uint32_t i = 0; i < r.n_top; i++) {
            struct text_top t;
            memcpy(&t, records->data + at, sizeof(t));
            top[i] = (struct sink_logprob){.logprob = t.logprob,
                                           .text = records->data + at + sizeof(t),
                                           .text_bytes = t.text_bytes};
            at += sizeof(t) + t.text_bytes;
        }
        if (column == COLUMN_TOKEN)
            json_out_strn(j, text, r.text_bytes);
        else if (column == COLUMN_LOGPROB)
            logprob_json_number(j, r.logprob);
        else if (column == COLUMN_OFFSET)
            json_out_uint(j, r.at);
        else
            put_top_logprobs(j, top, r.n_top, r.logprob);
    }
    json_out_array_end(j);
}

static void put_text_choice(struct openai_answer *a, struct json_out *j,
                            const struct openai_choice *ch)
{
    static const char *const names[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
    json_out_key(j, "text");
    json_out_strn(j, buf_str(&ch->text), ch->text.len);
    json_out_key(j, "logprobs");
    if (!a->shape.logprobs || ch->extra.rc < 0) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    for (int k = COLUMN_TOKEN; k <= COLUMN_OFFSET; k++) {
        json_out_key(j, names[k]);
        put_column(j, &ch->extra, (enum column)k);
    }
    json_out_object_end(j);
}

/* Of the answers to one prompt the next best by log-probability for each token, or NULL. */
static const struct openai_choice *take_best(struct openai_choice *of_prompt, uint32_t n)
{
    struct openai_choice *best = NULL;
    double most = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct openai_choice *ch = &of_prompt[i];
        double each = ch->n_tokens > 0 ? ch->logprob_sum / ch->n_tokens : 0;
        if (!ch->taken && (!best || each > most)) {
            best = ch;
            most = each;
        }
    }
    if (best)
        best->taken = true;
    return best;
}

static void put_whole(struct openai_answer *a, const struct sink_done *last)
{
    struct buf *b = &a->call->out;
    buf_clear(b);
    struct json_out j = json_out_make(b);
    put_head(a, &j, a->shape.chat ? "chat.completion" : "text_completion");
    json_out_key(&j, "choices");
    json_out_array(&j);
    uint32_t n_shown = a->shape.n_best > 0 ? a->shape.n_prompts * a->shape.n_best : a->n_choices;
    for (uint32_t i = 0; i < n_shown; i++) {
        const struct openai_choice *ch =
            a->shape.n_best == 0
                ? &a->choices[i]
                : take_best(&a->choices[i / a->shape.n_best * a->shape.n], a->shape.n);
        json_out_object(&j);
        json_out_key(&j, "index");
        json_out_uint(&j, i);
        if (a->shape.chat)
            put_chat_choice(a, &j, ch);
        else
            put_text_choice(a, &j, ch);
        json_out_key(&j, "finish_reason");
        json_out_str(&j, finish_name(a, ch->finish, ch->n_calls));
        json_out_object_end(&j);
        check_choice(a, ch);
    }
    json_out_array_end(&j);
    put_usage(&j, &last->usage);
    timings_json(&j, last);
    put_decision(a, &j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* ---- streams ---- */

static void chunk_begin(struct openai_answer *a, uint32_t choice)
{
    struct buf *b = &a->call->out;
    call_event_begin(a->call, NULL);
    buf_put(b, buf_str(&a->prefix), a->prefix.len);
    if (choice < 10) {
        char text[] = ",\"choices\":[{\"index\":0,";
        text[sizeof(text) - 3] = (char)('0' + choice);
        buf_put(b, text, sizeof(text) - 1);
    } else {
        buf_printf(b, ",\"choices\":[{\"index\":%u,", choice);
    }
}

/* last: the end of the answer, if no later chunk can carry its timings; otherwise NULL. */
static void chunk_end(struct openai_answer *a, const char *finish, const struct sink_done *last)
{
    struct buf *b = &a->call->out;
    buf_puts(b, ",\"finish_reason\":");
    if (finish)
        buf_printf(b, "\"%s\"}]", finish);
    else
        buf_puts(b, "null}]");
    if (a->shape.include_usage)
        buf_puts(b, ",\"usage\":null");
    if (a->call->routed || last) {
        struct json_out j = json_out_make(b);
        j.comma = true;
        if (last)
            timings_json(&j, last);
        put_decision(a, &j);
    }
    buf_putc(b, '}');
    call_event_end(a->call);
}

/* Before the first event: until then a failure is a separate answer. */
static void begin_stream(struct openai_answer *a)
{
    struct call *c = a->call;
    if (!call_begin_events(c))
        return;
    buf_clear(&a->prefix);
    struct json_out j = json_out_make(&a->prefix);
    put_head(a, &j, a->shape.chat ? "chat.completion.chunk" : "text_completion");
    for (uint32_t i = 0; a->shape.chat && i < a->n_choices; i++) {
        chunk_begin(a, i);
        buf_puts(&c->out, "\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},"
                          "\"logprobs\":null");
        chunk_end(a, NULL, NULL);
    }
}

static void stream_chat(struct openai_answer *a, const struct sink_token *t)
{
    struct buf *b = &a->call->out;
    chunk_begin(a, t->choice);
    buf_puts(b, "\"delta\":{\"content\":");
    struct json_out j = json_out_make(b);
    json_out_strn(&j, t->text, t->text_bytes);
    buf_puts(b, "},\"logprobs\":");
    if (t->logprobs) {
        buf_puts(b, "{\"content\":[");
        j = json_out_make(b);
        logprob_json(&j, t);
        buf_puts(b, "],\"refusal\":null}");
    } else {
        buf_puts(b, "null");
    }
    chunk_end(a, NULL, NULL);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct openai_answer *a = answer_of(s);
    if (!a->call->req || !a->shape.progress)
        return;
    begin_stream(a);
    chunk_begin(a, e->choice);
    buf_puts(&a->call->out, "\"delta\":{},\"logprobs\":null,\"finish_reason\":null}]");
    struct json_out j = json_out_make(&a->call->out);
    j.comma = true;
    timings_json_progress(&j, e, a->call->start_ns);
    buf_putc(&a->call->out, '}');
    call_event_end(a->call);
}

static void stream_call(struct openai_answer *a, const struct sink_call *e)
{
    struct buf *b = &a->call->out;
    if (e->ends || (!e->begins && e->text_bytes == 0))
        return;
    chunk_begin(a, e->choice);
    struct json_out j = json_out_make(b);
    if (a->shape.functions) {
        buf_puts(b, "\"delta\":{");
        json_out_key(&j, "function_call");
    } else {
        buf_printf(b, "\"delta\":{\"tool_calls\":[{\"index\":%u,", e->index);
        if (e->begins) {
            json_out_member_str(&j, "id", e->id);
            json_out_member_str(&j, "type", "function");
        }
        json_out_key(&j, "function");
    }
    json_out_object(&j);
    if (e->begins)
        json_out_member_str(&j, "name", e->name);
    json_out_key(&j, "arguments");
    json_out_strn(&j, e->text, e->text_bytes);
    json_out_object_end(&j);
    buf_puts(b, a->shape.functions ? "},\"logprobs\":null" : "}]},\"logprobs\":null");
    chunk_end(a, NULL, NULL);
}

/* {"tokens":[..],"token_logprobs":[..],"top_logprobs":[{..}],"text_offset":[..]} of one token. */
static void put_text_logprobs(struct buf *b, const struct sink_token *t, size_t at)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "tokens");
    json_out_array(&j);
    json_out_strn(&j, t->logprobs[0].text, t->logprobs[0].text_bytes);
    json_out_array_end(&j);
    json_out_key(&j, "token_logprobs");
    json_out_array(&j);
    logprob_json_number(&j, t->logprobs[0].logprob);
    json_out_array_end(&j);
    json_out_key(&j, "top_logprobs");
    json_out_array(&j);
    put_top_logprobs(&j, t->logprobs + 1, t->n_logprobs - 1, t->logprobs[0].logprob);
    json_out_array_end(&j);
    json_out_key(&j, "text_offset");
    json_out_array(&j);
    json_out_uint(&j, at);
    json_out_array_end(&j);
    json_out_object_end(&j);
}

static void stream_text(struct openai_answer *a, const struct sink_token *t)
{
    struct buf *b = &a->call->out;
    chunk_begin(a, t->choice);
    buf_puts(b, "\"text\":");
    struct json_out j = json_out_make(b);
    json_out_strn(&j, t->text, t->text_bytes);
    buf_puts(b, ",\"logprobs\":");
    if (t->logprobs)
        put_text_logprobs(b, t, a->choices[t->choice].n_extra);
    else
        buf_puts(b, "null");
    a->choices[t->choice].n_extra += (uint32_t)t->text_bytes;
    chunk_end(a, NULL, NULL);
}

static void stream_done(struct openai_answer *a, const struct sink_done *d)
{
    struct buf *b = &a->call->out;
    chunk_begin(a, d->choice);
    buf_puts(b,
             a->shape.chat ? "\"delta\":{},\"logprobs\":null" : "\"text\":\"\",\"logprobs\":null");
    chunk_end(a, finish_name(a, d->finish, d->n_calls),
              d->last && !a->shape.include_usage ? d : NULL);
    if (!d->last)
        return;
    if (a->shape.include_usage) {
        call_event_begin(a->call, NULL);
        buf_put(b, buf_str(&a->prefix), a->prefix.len);
        buf_puts(b, ",\"choices\":[]");
        struct json_out j = json_out_make(b);
        j.comma = true;
        put_usage(&j, &d->usage);
        timings_json(&j, d);
        buf_putc(b, '}');
        call_event_end(a->call);
    }
    call_event_last(a->call);
}

/* ---- events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct openai_answer *a = answer_of(s);
    a->model = e->model;
    a->version = e->version;
    call_set_model(a->call, e);
    if (e->cache == SINK_CACHE_HIT && !a->recalled && !s->routed && !a->shape.tools &&
        !a->shape.progress) /* the next time the body need not be read */
        recall_keep(a->call, &a->shape, e);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct openai_answer *a = answer_of(s);
    struct openai_choice *ch = &a->choices[t->choice];
    if (!a->call->req)
        return;
    if (!a->shape.stream) {
        if (a->shape.chat)
            gather_chat(ch, t);
        else
            gather_text(ch, t);
        return;
    }
    begin_stream(a);
    if (t->text_bytes == 0 && !t->logprobs && !t->echo)
        return;
    if (a->shape.chat)
        stream_chat(a, t);
    else
        stream_text(a, t);
}

/* A whole answer is sent at the end: until then nothing needs to be taken back. */
static bool on_may_replace(struct sink *s, bool marked)
{
    const struct openai_answer *a = answer_of(s);
    return !a->shape.tools && (marked || !a->shape.stream || !a->call->began);
}

/* The chunk announces that the earlier text is void, and names the model that answers now. */
static void stream_replace(struct openai_answer *a, const struct sink_replace *e)
{
    struct buf *b = &a->call->out;
    buf_clear(&a->prefix);
    struct json_out j = json_out_make(&a->prefix);
    put_head(a, &j, a->shape.chat ? "chat.completion.chunk" : "text_completion");
    call_event_begin(a->call, NULL);
    buf_put(b, buf_str(&a->prefix), a->prefix.len);
    buf_puts(b, ",\"choices\":[],\"shoal\":{\"replace\":true,");
    j = json_out_make(b);
    json_out_member_str(&j, "why", e->why);
    json_out_key(&j, "decision");
    decision_json(&j, a->call->routed);
    buf_puts(b, "}}");
    call_event_end(a->call);
}

static void on_replace(struct sink *s, const struct sink_replace *e)
{
    struct openai_answer *a = answer_of(s);
    a->model = e->start->model;
    a->version = e->start->version;
    call_set_model(a->call, e->start);
    for (uint32_t i = 0; i < a->n_choices; i++) {
        struct openai_choice *ch = &a->choices[i];
        buf_clear(&ch->text);
        buf_clear(&ch->extra);
        ch->n_extra = ch->n_tokens = 0;
        ch->logprob_sum = 0;
    }
    if (a->call->req && a->call->began)
        stream_replace(a, e);
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    struct openai_answer *a = answer_of(s);
    if (!a->call->req)
        return;
    if (!a->shape.stream) {
        gather_call(a, &a->choices[e->choice], e);
        return;
    }
    begin_stream(a);
    stream_call(a, e);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct openai_answer *a = answer_of(s);
    a->choices[d->choice].finish = d->finish;
    if (!a->call->req)
        return;
    if (a->shape.stream) {
        begin_stream(a);
        stream_done(a, d);
    } else if (d->last) {
        put_whole(a, d);
    }
    if (!d->last)
        return;
    if (a->shape.stream)
        call_end_flushed(a->call);
    else
        call_json(a->call, 200);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct call *c = answer_of(s)->call;
    if (!c->req)
        return;
    if (!c->began) {
        call_fail_with(c, f);
        return;
    }
    call_event_begin(c, NULL);
    call_put_failure(c, f);
    call_event_end(c);
    call_event_last(c);
    call_end_flushed(c);
}

static void on_flush(struct sink *s)
{
    struct openai_answer *a = answer_of(s);
    if (a->shape.stream)
        call_flush(a->call);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void on_closed(struct sink *s)
{
    struct openai_answer *a = answer_of(s);
    for (uint32_t i = 0; i < a->n_choices; i++) {
        buf_fini(&a->choices[i].text);
        buf_fini(&a->choices[i].extra);
        buf_fini(&a->choices[i].calls);
        buf_fini(&a->choices[i].arguments);
    }
    mem_free(a->choices);
    buf_fini(&a->prefix);
    call_unset_sink(a->call);
}

int openai_answer_open(struct openai_answer *a, struct call *c, const struct openai_shape *shape)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .call = on_call,
                                        .may_replace = on_may_replace,
                                        .replace = on_replace,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct timespec ts;
    *a = (struct openai_answer){.sink = {.ops = &ops}, .shape = *shape};
    a->n_choices = shape->n_prompts * shape->n;
    a->choices = mem_zalloc_n(a->n_choices, sizeof(*a->choices));
    if (!a->choices)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < a->n_choices; i++) {
        buf_init(&a->choices[i].text, MAX_TEXT_BYTES);
        buf_init(&a->choices[i].extra, MAX_TEXT_BYTES);
        buf_init(&a->choices[i].calls, MAX_TEXT_BYTES);
        buf_init(&a->choices[i].arguments, MAX_TEXT_BYTES);
    }
    buf_init(&a->prefix, 64 << 10);
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    a->created_s = (uint64_t)ts.tv_sec;
    size_t n = shape->chat ? 9 : 5;
    memcpy(a->id, shape->chat ? "chatcmpl-" : "cmpl-", n);
    hash_hex(a->id + n, hash_bytes(c->id, strlen(c->id), c->gl->gw->id_salt ^ c->start_ns));
    a->call = c;
    call_set_sink(c, &a->sink);
    c->meter.n_each = shape->n;
    return 0;
}
