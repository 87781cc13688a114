/* openai_out.c - events to answers in OpenAI's shape, whole and as server-sent events.
 *
 * The common part of all chunks of a stream is written once (openai_answer.prefix). */
#include <math.h>
#include <string.h>

#include "gateway/api/decision.h"
#include "gateway/api/energy_json.h"
#include "gateway/api/logprob_json.h"
#include "gateway/api/openai/openai.h"
#include "gateway/api/recall.h"
#include "gateway/api/timings_json.h"
#include "wire/json_out.h"

static const char *finish_name(const struct openai_answer *a, enum shoal_finish finish,
                               uint32_t n_calls)
{
    const char *called = a->shape.functions ? "function_call" : "tool_calls";
    return finish == SHOAL_FINISH_LENGTH ? "length" : n_calls > 0 ? called : "stop";
}

static struct openai_answer *openai_of(struct answer_sink *a)
{
    return (struct openai_answer *)(void *)a; /* its first member */
}

static void put_head(const struct openai_answer *a, struct json_out *j, const char *object)
{
    json_out_object(j);
    json_out_member_str(j, "id", a->answer.id);
    json_out_member_str(j, "object", object);
    json_out_member_uint(j, "created", a->answer.created_s);
    json_out_member_str(j, "model", a->answer.model);
    json_out_key(j, "system_fingerprint");
    a->answer.version[0] ? json_out_str(j, a->answer.version) : json_out_null(j);
}

/* How a route chose the model: in a whole answer, and in the first chunk of a stream. */
static void put_decision(struct openai_answer *a, struct json_out *j)
{
    if (!a->answer.call->routed || a->explained)
        return;
    json_out_key(j, "shoal");
    decision_json(j, a->answer.call->routed);
    a->explained = true;
}

static void put_usage(struct json_out *j, const struct sink_usage *u)
{
    json_out_member_object(j, "usage");
    json_out_member_uint(j, "prompt_tokens", u->prompt_tokens);
    json_out_member_uint(j, "completion_tokens", u->generated_tokens);
    json_out_member_uint(j, "total_tokens", (uint64_t)u->prompt_tokens + u->generated_tokens);
    json_out_member_object(j, "prompt_tokens_details");
    json_out_member_uint(j, "cached_tokens", u->cached_tokens);
    json_out_object_end(j);
    energy_json(j, &u->energy);
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
        json_out_member_float(j, name, top[i].logprob);
    }
    json_out_object_end(j);
}

/* ---- whole answers ---- */

static void put_function(struct json_out *j, const struct answer_call *call)
{
    json_out_object(j);
    json_out_member_str(j, "name", call->name);
    json_out_member_strn(j, "arguments", call->arguments, call->arguments_bytes);
    json_out_object_end(j);
}

static void put_calls(const struct openai_answer *a, struct json_out *j,
                      const struct answer_choice *ch)
{
    struct answer_cursor at = {0};
    struct answer_call call;
    if (a->shape.functions) { /* at most one call */
        while (answer_next_call(ch, &at, &call))
            ;
        json_out_key(j, "function_call");
        put_function(j, &call);
        return;
    }
    json_out_member_array(j, "tool_calls");
    while (answer_next_call(ch, &at, &call)) {
        json_out_object(j);
        json_out_member_str(j, "id", call.id);
        json_out_member_str(j, "type", "function");
        json_out_key(j, "function");
        put_function(j, &call);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_chat_choice(const struct openai_answer *a, struct json_out *j,
                            struct answer_choice *ch)
{
    json_out_member_object(j, "message");
    json_out_member_str(j, "role", "assistant");
    json_out_key(j, "content");
    const struct thinking_parts parts = a->shape.keeps_thoughts
                                            ? (struct thinking_parts){.thought = NULL}
                                            : thinking_split(buf_str(&ch->text), ch->text.len);
    const size_t begin = parts.answer_at;
    if (ch->n_calls > 0 && ch->text.len == begin)
        json_out_null(j);
    else
        json_out_strn(j, buf_str(&ch->text) + begin, ch->text.len - begin);
    if (parts.thought)
        json_out_member_strn(j, "reasoning_content", parts.thought, parts.thought_bytes);
    json_out_member_null(j, "refusal");
    if (ch->n_calls > 0)
        put_calls(a, j, ch);
    json_out_object_end(j);
    json_out_key(j, "logprobs");
    if (!a->shape.logprobs) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_key(j, "content");
    logprob_json_list(j, ch);
    json_out_member_null(j, "refusal");
    json_out_object_end(j);
}

enum column { COLUMN_TOKEN, COLUMN_LOGPROB, COLUMN_TOP, COLUMN_OFFSET };

static void put_column(struct json_out *j, struct answer_choice *ch, enum column column)
{
    struct answer_cursor at = {0}, here = at;
    struct sink_token t;
    json_out_array(j);
    for (; answer_next_token(ch, &at, &t); here = at) {
        if (!t.logprobs)
            continue;
        if (column == COLUMN_TOKEN)
            json_out_strn(j, t.logprobs[0].text, t.logprobs[0].text_bytes);
        else if (column == COLUMN_LOGPROB)
            logprob_json_number(j, t.logprobs[0].logprob);
        else if (column == COLUMN_OFFSET)
            json_out_uint(j, here.text);
        else
            put_top_logprobs(j, t.logprobs + 1, t.n_logprobs - 1, t.logprobs[0].logprob);
    }
    json_out_array_end(j);
}

static void put_text_choice(const struct openai_answer *a, struct json_out *j,
                            struct answer_choice *ch)
{
    static const char *const names[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
    json_out_member_strn(j, "text", buf_str(&ch->text), ch->text.len);
    json_out_key(j, "logprobs");
    if (!a->shape.logprobs) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    for (int k = COLUMN_TOKEN; k <= COLUMN_OFFSET; k++) {
        json_out_key(j, names[k]);
        put_column(j, ch, (enum column)k);
    }
    json_out_object_end(j);
}

/* The log-probability of an answer, for each of its tokens. */
static double sureness(struct answer_choice *ch)
{
    struct answer_cursor at = {0};
    struct sink_token t;
    double sum = 0;
    uint32_t n = 0;
    while (answer_next_token(ch, &at, &t))
        if (t.logprobs && !t.echo) {
            sum += (double)t.logprobs[0].logprob;
            n++;
        }
    return n > 0 ? sum / n : 0;
}

/* Of the n answers to a prompt, the one that k others are likelier than. */
static struct answer_choice *find_best(struct answer_choice *of_prompt, uint32_t n, uint32_t k)
{
    double sure[REQUEST_MAX_CHOICES];
    uint32_t i = 0;
    for (; i < n; i++)
        sure[i] = sureness(&of_prompt[i]);
    for (i = 0; i < n - 1; i++) {
        uint32_t n_before = 0;
        for (uint32_t m = 0; m < n; m++)
            n_before += sure[m] > sure[i] || (m < i && sure[m] >= sure[i]);
        if (n_before == k)
            break;
    }
    return &of_prompt[i];
}

static void put_whole(struct answer_sink *sink, const struct sink_done *last)
{
    struct openai_answer *a = openai_of(sink);
    const struct openai_shape *shape = &a->shape;
    const uint32_t n_best = shape->n_best,
                   n_shown = n_best ? shape->n_prompts * n_best : sink->n_choices;
    struct json_out j = json_out_make(&sink->call->out);
    put_head(a, &j, shape->chat ? "chat.completion" : "text_completion");
    json_out_member_array(&j, "choices");
    for (uint32_t i = 0; i < n_shown; i++) {
        struct answer_choice *ch =
            n_best ? find_best(&sink->choices[i / n_best * shape->n], shape->n, i % n_best)
                   : &sink->choices[i];
        json_out_object(&j);
        json_out_member_uint(&j, "index", i);
        if (shape->chat)
            put_chat_choice(a, &j, ch);
        else
            put_text_choice(a, &j, ch);
        json_out_member_str(&j, "finish_reason", finish_name(a, ch->done.finish, ch->n_calls));
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    put_usage(&j, &last->usage);
    timings_json(&j, last);
    put_decision(a, &j);
    json_out_object_end(&j);
    buf_putc(j.b, '\n');
}

/* ---- streams ---- */

static void chunk_begin(struct openai_answer *a, uint32_t choice)
{
    struct buf *b = &a->answer.call->out;
    call_event_begin(a->answer.call, NULL);
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
    struct buf *b = &a->answer.call->out;
    buf_puts(b, ",\"finish_reason\":");
    if (finish)
        buf_printf(b, "\"%s\"}]", finish);
    else
        buf_puts(b, "null}]");
    if (a->shape.include_usage)
        buf_puts(b, ",\"usage\":null");
    if (a->answer.call->routed || last) {
        struct json_out j = json_out_make(b);
        j.comma = true;
        if (last)
            timings_json(&j, last);
        put_decision(a, &j);
    }
    buf_putc(b, '}');
    call_event_end(a->answer.call);
}

static void put_prefix(struct openai_answer *a)
{
    buf_clear(&a->prefix);
    struct json_out j = json_out_make(&a->prefix);
    put_head(a, &j, a->shape.chat ? "chat.completion.chunk" : "text_completion");
}

static void begin_stream(struct answer_sink *sink)
{
    struct openai_answer *a = openai_of(sink);
    put_prefix(a);
    for (uint32_t i = 0; a->shape.chat && i < sink->n_choices; i++) {
        chunk_begin(a, i);
        buf_puts(&sink->call->out,
                 "\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},"
                 "\"logprobs\":null");
        chunk_end(a, NULL, NULL);
    }
}

/* The delta of a chunk, from what `pieces` hold: a part of the thought, of the answer, or both. */
static void put_delta(struct openai_answer *a, const char *text, size_t n)
{
    struct buf *b = &a->answer.call->out;
    const struct buf *thought = &a->pieces[1];
    struct json_out j = json_out_make(b);
    buf_puts(b, "\"delta\":{");
    if (thought->len > 0) {
        buf_puts(b, "\"reasoning_content\":");
        json_out_strn(&j, buf_str(thought), thought->len);
    }
    if (thought->len == 0 || n > 0) {
        buf_puts(b, thought->len > 0 ? ",\"content\":" : "\"content\":");
        j = json_out_make(b);
        json_out_strn(&j, text, n);
    }
    buf_putc(b, '}');
}

static void clear_pieces(struct openai_answer *a)
{
    buf_clear(&a->pieces[0]);
    buf_clear(&a->pieces[1]);
}

/* What was held back, since it might have begun or ended a thought, follows. */
static void settle_thought(struct openai_answer *a, uint32_t choice)
{
    if (!a->shape.chat || a->shape.keeps_thoughts)
        return;
    clear_pieces(a);
    thinking_end(&a->thinking[choice], thinking_gather, a->pieces);
    if (a->pieces[0].len + a->pieces[1].len == 0)
        return;
    chunk_begin(a, choice);
    put_delta(a, buf_str(&a->pieces[0]), a->pieces[0].len);
    buf_puts(&a->answer.call->out, ",\"logprobs\":null");
    chunk_end(a, NULL, NULL);
    clear_pieces(a);
}

static void stream_chat(struct answer_sink *sink, const struct sink_token *t)
{
    struct openai_answer *a = openai_of(sink);
    struct buf *b = &sink->call->out;
    struct thinking *thinking = &a->thinking[t->choice];
    const bool plain = a->shape.keeps_thoughts || thinking->state == THINKING_OFF;
    clear_pieces(a);
    if (!plain)
        thinking_push(thinking, t->text, t->text_bytes, thinking_gather, a->pieces);
    if (!plain && t->text_bytes > 0 && !t->logprobs && a->pieces[0].len + a->pieces[1].len == 0)
        return; /* it is held back */
    chunk_begin(a, t->choice);
    put_delta(a, plain ? t->text : buf_str(&a->pieces[0]),
              plain ? t->text_bytes : a->pieces[0].len);
    struct json_out j;
    buf_puts(b, ",\"logprobs\":");
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

static void stream_prompt(struct answer_sink *sink, const struct sink_prompt *e)
{
    struct openai_answer *a = openai_of(sink);
    struct buf *b = &sink->call->out;
    if (!a->shape.progress)
        return;
    answer_begin(sink);
    chunk_begin(a, e->choice);
    buf_puts(b, "\"delta\":{},\"logprobs\":null,\"finish_reason\":null}]");
    struct json_out j = json_out_make(b);
    j.comma = true;
    timings_json_progress(&j, e, sink->call->start_ns);
    buf_putc(b, '}');
    call_event_end(sink->call);
}

static void stream_call(struct answer_sink *sink, const struct sink_call *e)
{
    struct openai_answer *a = openai_of(sink);
    struct buf *b = &sink->call->out;
    if (e->ends || (!e->begins && e->text_bytes == 0))
        return;
    settle_thought(a, e->choice);
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
    json_out_member_strn(&j, "arguments", e->text, e->text_bytes);
    json_out_object_end(&j);
    buf_puts(b, a->shape.functions ? "},\"logprobs\":null" : "}]},\"logprobs\":null");
    chunk_end(a, NULL, NULL);
}

/* {"tokens":[..],"token_logprobs":[..],"top_logprobs":[{..}],"text_offset":[..]} of one token. */
static void put_text_logprobs(struct buf *b, const struct sink_token *t, size_t at)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_array(&j, "tokens");
    json_out_strn(&j, t->logprobs[0].text, t->logprobs[0].text_bytes);
    json_out_array_end(&j);
    json_out_member_array(&j, "token_logprobs");
    logprob_json_number(&j, t->logprobs[0].logprob);
    json_out_array_end(&j);
    json_out_member_array(&j, "top_logprobs");
    put_top_logprobs(&j, t->logprobs + 1, t->n_logprobs - 1, t->logprobs[0].logprob);
    json_out_array_end(&j);
    json_out_member_array(&j, "text_offset");
    json_out_uint(&j, at);
    json_out_array_end(&j);
    json_out_object_end(&j);
}

static void stream_text(struct answer_sink *sink, const struct sink_token *t)
{
    struct openai_answer *a = openai_of(sink);
    struct buf *b = &sink->call->out;
    chunk_begin(a, t->choice);
    buf_puts(b, "\"text\":");
    struct json_out j = json_out_make(b);
    json_out_strn(&j, t->text, t->text_bytes);
    buf_puts(b, ",\"logprobs\":");
    if (t->logprobs)
        put_text_logprobs(b, t, sink->choices[t->choice].text_bytes);
    else
        buf_puts(b, "null");
    chunk_end(a, NULL, NULL);
}

static void stream_done(struct answer_sink *sink, const struct sink_done *d)
{
    struct openai_answer *a = openai_of(sink);
    settle_thought(a, d->choice);
    chunk_begin(a, d->choice);
    buf_puts(&sink->call->out,
             a->shape.chat ? "\"delta\":{},\"logprobs\":null" : "\"text\":\"\",\"logprobs\":null");
    chunk_end(a, finish_name(a, d->finish, d->n_calls),
              d->last && !a->shape.include_usage ? d : NULL);
}

static void stream_end(struct answer_sink *sink, const struct sink_done *d)
{
    struct openai_answer *a = openai_of(sink);
    struct call *c = sink->call;
    if (a->shape.include_usage) {
        call_event_begin(c, NULL);
        buf_put(&c->out, buf_str(&a->prefix), a->prefix.len);
        buf_puts(&c->out, ",\"choices\":[]");
        struct json_out j = json_out_make(&c->out);
        j.comma = true;
        put_usage(&j, &d->usage);
        timings_json(&j, d);
        buf_putc(&c->out, '}');
        call_event_end(c);
    }
    call_event_last(c);
}

static void stream_failure(struct answer_sink *sink, const struct failure *f)
{
    call_event_begin(sink->call, NULL);
    call_put_failure(sink->call, f);
    call_event_end(sink->call);
    call_event_last(sink->call);
}

/* The chunk announces that the earlier text is void, and names the model that answers now. */
static void stream_replace(struct answer_sink *sink, const struct sink_replace *e)
{
    struct openai_answer *a = openai_of(sink);
    struct buf *b = &sink->call->out;
    memset(a->thinking, 0, sizeof(a->thinking));
    put_prefix(a);
    call_event_begin(sink->call, NULL);
    buf_put(b, buf_str(&a->prefix), a->prefix.len);
    buf_puts(b, ",\"choices\":[],\"shoal\":{\"replace\":true,");
    struct json_out j = json_out_make(b);
    json_out_member_str(&j, "why", e->why);
    json_out_key(&j, "decision");
    decision_json(&j, sink->call->routed);
    buf_puts(b, "}}");
    call_event_end(sink->call);
}

/* ---- lifetime ---- */

static void start(struct answer_sink *sink, const struct sink_start *e)
{
    const struct openai_answer *a = openai_of(sink);
    if (e->cache == SINK_CACHE_HIT && !a->recalled && !sink->call->routed && !a->shape.tools &&
        !a->shape.progress) /* the next time the body need not be read */
        recall_keep(sink->call, &a->shape, e);
}

static void closed(struct answer_sink *sink)
{
    struct openai_answer *a = openai_of(sink);
    buf_fini(&a->prefix);
    buf_fini(&a->pieces[0]);
    buf_fini(&a->pieces[1]);
}

#define COMMON                                                                                     \
    .frame = &answer_events, .start = start, .begin = begin_stream, .prompt = stream_prompt,       \
    .call = stream_call, .done = stream_done, .end = stream_end, .failure = stream_failure,        \
    .replace = stream_replace, .whole = put_whole, .closed = closed

int openai_answer_open(struct openai_answer *a, struct call *c, const struct openai_shape *shape)
{
    static const struct answer_dialect chat = {COMMON, .text = stream_chat},
                                       text = {COMMON, .text = stream_text};
    int rc = answer_open(&a->answer, c, shape->chat ? &chat : &text, shape->n_prompts * shape->n,
                         shape->stream);
    if (rc < 0)
        return rc;
    a->shape = *shape;
    a->recalled = a->explained = false;
    a->answer.fixed = shape->tools || !shape->replace;
    if (!shape->stream && (shape->logprobs || shape->n_best > 0))
        a->answer.keeps |= ANSWER_KEEPS_TOKENS;
    buf_init(&a->prefix, 64 << 10);
    buf_init(&a->pieces[0], 1 << 20);
    buf_init(&a->pieces[1], 1 << 20);
    memset(a->thinking, 0, sizeof(a->thinking));
    answer_make_id(&a->answer, shape->chat ? "chatcmpl-" : "cmpl-");
    c->meter.n_each = shape->n;
    return 0;
}
