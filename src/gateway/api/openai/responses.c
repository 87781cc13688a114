/* responses.c - see responses.h: events to answers, and the handlers. */
#include "gateway/api/energy_json.h"
#include "gateway/api/openai/responses.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/logprob_json.h"
#include "gateway/api/openai/conversations.h"
#include "gateway/api/openai/response_background.h"
#include "gateway/api/openai/response_store.h"
#include "gateway/api/thinking.h"
#include "gateway/api/timings_json.h"
#include "wire/json_out.h"

#define MAX_WHOLE_BYTES ((size_t)128 << 20)
#define PATH "/v1/responses/"

enum status { STATUS_IN_PROGRESS, STATUS_COMPLETED, STATUS_INCOMPLETE, STATUS_FAILED };

static const char *const status_names[] = {"in_progress", "completed", "incomplete", "failed"};

/* Turns the events of a generation into an answer to the call: items of output, one after the
 * other. */
struct responses_answer {
    struct answer_sink answer; /* first */
    struct responses_shape shape;
    bool private; /* it repeats personal data of the client: nothing is stored */
    uint64_t n_events;
    /* of a stream */
    struct thinking thinking;
    bool thought, thought_ended;    /* that item was sent */
    struct buf thought_text;        /* so far */
    const struct sink_token *token; /* that is being sent; NULL: the end */
    uint64_t first_ns;              /* when its first token came */
};

static struct responses_answer *responses_of(struct answer_sink *a)
{
    return (struct responses_answer *)(void *)a; /* its first member */
}

/* Whether the model may call tools: then a token without text, outside of a message, belongs to a
 * call. */
static bool has_tools(const struct answer_sink *a)
{
    return chat_has_tools(&a->request->generate.chat);
}

static const char *owner_of(const struct call *c)
{
    return c->client ? c->client->name : "";
}

/* ---- parts of an answer ---- */

static void put_or_null(struct json_out *j, const char *key, const char *value)
{
    json_out_key(j, key);
    value ? json_out_str(j, value) : json_out_null(j);
}

/* What the gathered text says. The thought is an item of its own, in front of the others. */
static struct thinking_parts split(const struct answer_sink *a)
{
    const struct buf *text = &a->choices[0].text;
    return thinking_split(buf_str(text), text->len);
}

/* Tokens of the thought. */
static uint32_t thought_tokens(struct answer_sink *a)
{
    const struct thinking_parts parts = split(a);
    struct answer_cursor at = {0};
    struct sink_token t;
    uint32_t n = 0;
    while (parts.thought && at.text < parts.answer_at && answer_next_token(&a->choices[0], &at, &t))
        n += t.token >= 0 && at.text <= parts.answer_at;
    return n;
}

/* The part without the thought. */
static struct answer_part without_thought(const struct answer_sink *a, const struct answer_part *p)
{
    const size_t begin = split(a).answer_at;
    struct answer_part left = *p;
    if (p->is_call || begin <= p->from.text)
        return left;
    const size_t skip = begin - p->from.text < p->text_bytes ? begin - p->from.text : p->text_bytes;
    left.text += skip;
    left.text_bytes -= skip;
    return left;
}

static void put_logprobs(struct answer_sink *a, struct json_out *j, const struct answer_part *p)
{
    const size_t begin = split(a).answer_at;
    struct answer_cursor at = p->from;
    struct sink_token t;
    bool began = !has_tools(a);
    json_out_member_array(j, "logprobs");
    while (at.tokens < p->tokens_end && answer_next_token(&a->choices[0], &at, &t)) {
        began |= t.text_bytes > 0;
        if (began && t.logprobs && at.text > begin)
            logprob_json(j, &t);
    }
    json_out_array_end(j);
}

static void put_part(struct answer_sink *a, struct json_out *j, const struct answer_part *p)
{
    json_out_object(j);
    json_out_member_str(j, "type", "output_text");
    json_out_member_strn(j, "text", p->text, p->text_bytes);
    json_out_member_array(j, "annotations");
    json_out_array_end(j);
    put_logprobs(a, j, p);
    json_out_object_end(j);
}

/* The id of item i: that of the response and its place. */
static void put_item_id(struct answer_sink *a, struct json_out *j, const char *key,
                        const char *kind, uint32_t i)
{
    char id[RESPONSE_STORE_ID_BYTES + 16];
    snprintf(id, sizeof(id), "%s_%.40s_%u", kind, a->id + 5, i);
    json_out_member_str(j, key, id);
}

static const char *kind_of(bool is_call)
{
    return is_call ? "fc" : "msg";
}

static void put_thought_part(struct json_out *j, const struct thinking_parts *p)
{
    json_out_object(j);
    json_out_member_str(j, "type", "reasoning_text");
    json_out_member_strn(j, "text", p->thought, p->thought_bytes);
    json_out_object_end(j);
}

/* p: NULL: it has just begun. */
static void put_thought(struct answer_sink *a, struct json_out *j, const struct thinking_parts *p)
{
    json_out_object(j);
    put_item_id(a, j, "id", "rs", 0);
    json_out_member_str(j, "type", "reasoning");
    json_out_member_array(j, "summary");
    json_out_array_end(j);
    json_out_member_array(j, "content");
    if (p)
        put_thought_part(j, p);
    json_out_array_end(j);
    json_out_member_str(j, "status",
                        status_names[!p        ? STATUS_IN_PROGRESS
                                     : p->open ? STATUS_INCOMPLETE
                                               : STATUS_COMPLETED]);
    json_out_object_end(j);
}

static void put_item(struct answer_sink *a, struct json_out *j, uint32_t i,
                     const struct answer_part *p, enum status status)
{
    json_out_object(j);
    put_item_id(a, j, "id", kind_of(p->is_call), i);
    json_out_member_str(j, "type", p->is_call ? "function_call" : "message");
    json_out_member_str(j, "status", status_names[status]);
    if (p->is_call) {
        json_out_member_str(j, "call_id", p->call.id);
        json_out_member_str(j, "name", p->call.name);
        json_out_member_strn(j, "arguments", p->call.arguments, p->call.arguments_bytes);
    } else {
        json_out_member_str(j, "role", "assistant");
        json_out_member_array(j, "content");
        if (status != STATUS_IN_PROGRESS)
            put_part(a, j, p);
        json_out_array_end(j);
    }
    json_out_object_end(j);
}

/* The complete items.  A whole answer has a message, be it empty. */
static void put_items(struct answer_sink *a, struct json_out *j, enum status status)
{
    const enum status last = status == STATUS_INCOMPLETE ? status : STATUS_COMPLETED;
    const struct answer_choice *ch = &a->choices[0];
    static const struct answer_part empty = {.text = ""};
    const struct thinking_parts parts = split(a);
    const uint32_t first = parts.thought != NULL; /* item behind the thought */
    struct answer_cursor at = {0};
    struct answer_part p;
    uint32_t i = 0;
    json_out_member_array(j, "output");
    if (parts.thought)
        put_thought(a, j, &parts);
    while ((!a->stream || i < a->n_parts) && answer_next_part(ch, &at, &p)) {
        const bool ends = at.calls >= ch->calls.len; /* nothing follows a text */
        p = without_thought(a, &p);
        if (p.is_call || p.text_bytes > 0 || (!has_tools(a) && !parts.thought))
            put_item(a, j, first + i++, &p, p.is_call || !ends ? STATUS_COMPLETED : last);
    }
    if (i == 0 && (a->stream ? a->n_parts > 0 : status != STATUS_IN_PROGRESS && !parts.open))
        put_item(a, j, first, &empty, last);
    json_out_array_end(j);
}

static void put_usage(struct answer_sink *a, struct json_out *j, const struct sink_usage *u)
{
    json_out_key(j, "usage");
    if (!u) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_member_uint(j, "input_tokens", u->prompt_tokens);
    json_out_member_object(j, "input_tokens_details");
    json_out_member_uint(j, "cached_tokens", u->cached_tokens);
    json_out_object_end(j);
    json_out_member_uint(j, "output_tokens", u->generated_tokens);
    json_out_member_object(j, "output_tokens_details");
    json_out_member_uint(j, "reasoning_tokens", thought_tokens(a));
    json_out_object_end(j);
    json_out_member_uint(j, "total_tokens", (uint64_t)u->prompt_tokens + u->generated_tokens);
    energy_json(j, &u->energy);
    json_out_object_end(j);
}

/* The part of the request that the answer repeats. */
static void put_asked(const struct responses_shape *s, struct json_out *j)
{
    put_or_null(j, "instructions", s->instructions);
    json_out_key(j, "max_output_tokens");
    s->max_output_tokens > 0 ? json_out_int(j, s->max_output_tokens) : json_out_null(j);
    put_or_null(j, "previous_response_id", s->previous_id);
    if (s->conversation) {
        json_out_member_object(j, "conversation");
        json_out_member_str(j, "id", s->conversation);
        json_out_object_end(j);
    }
    put_or_null(j, "user", s->user);
    json_out_member_object(j, "reasoning");
    put_or_null(j, "effort", s->effort);
    put_or_null(j, "summary", NULL);
    json_out_object_end(j);
    json_out_member_bool(j, "store", s->store);
    json_out_member_num(j, "temperature", s->temperature);
    json_out_member_num(j, "top_p", s->top_p);
    json_out_member_int(j, "top_logprobs", s->top_logprobs);
    json_out_member_raw(j, "metadata", s->metadata, strlen(s->metadata));
    json_out_member_bool(j, "parallel_tool_calls", s->parallel_calls);
    buf_printf(j->b, ",\"text\":{\"format\":%s},\"tool_choice\":%s,\"tools\":%s", s->format,
               s->tool_choice, s->tools);
    buf_printf(j->b, ",\"background\":%s,\"service_tier\":\"default\"",
               s->background ? "true" : "false");
    json_out_member_str(j, "truncation", s->truncates ? "auto" : "disabled");
}

/* f: with STATUS_FAILED. */
static void put_response(struct answer_sink *a, struct json_out *j, enum status status,
                         const struct sink_usage *usage, const struct failure *f)
{
    json_out_object(j);
    json_out_member_str(j, "id", a->id);
    json_out_member_str(j, "object", "response");
    json_out_member_uint(j, "created_at", a->created_s);
    json_out_member_str(j, "status", status_names[status]);
    json_out_key(j, "error");
    if (f) {
        json_out_object(j);
        json_out_member_str(j, "code", f->reason ? f->reason : "server_error");
        json_out_member_str(j, "message", f->message);
        json_out_object_end(j);
    } else {
        json_out_null(j);
    }
    json_out_key(j, "incomplete_details");
    if (status == STATUS_INCOMPLETE) {
        json_out_object(j);
        json_out_member_str(j, "reason", "max_output_tokens");
        json_out_object_end(j);
    } else {
        json_out_null(j);
    }
    json_out_member_str(j, "model", a->model);
    put_items(a, j, status);
    put_asked(&responses_of(a)->shape, j);
    put_usage(a, j, usage);
    json_out_object_end(j);
}

/* ---- streams: every event has a type and a number ---- */

static struct json_out event_begin(struct answer_sink *a, const char *type)
{
    struct json_out j = answer_event(a, type);
    json_out_member_uint(&j, "sequence_number", responses_of(a)->n_events++);
    return j;
}

static void send_response(struct answer_sink *a, const char *type, enum status status,
                          const struct failure *f)
{
    struct json_out j = event_begin(a, type);
    json_out_key(&j, "response");
    put_response(a, &j, status, NULL, f);
    answer_event_end(a, &j);
}

/* The place of the open item of a stream, behind the thought. */
static uint32_t place(struct answer_sink *a)
{
    return a->n_parts + responses_of(a)->thought;
}

/* Begins an event about the open item. */
static struct json_out place_begin(struct answer_sink *a, const char *type)
{
    const bool is_call = a->part == ANSWER_OPEN_CALL;
    struct json_out j = event_begin(a, type);
    put_item_id(a, &j, "item_id", kind_of(is_call), place(a));
    json_out_member_uint(&j, "output_index", place(a));
    if (!is_call)
        json_out_member_uint(&j, "content_index", 0);
    return j;
}

static void send_item(struct answer_sink *a, const char *type, const struct answer_part *p,
                      enum status status)
{
    struct json_out j = event_begin(a, type);
    json_out_member_uint(&j, "output_index", place(a));
    json_out_key(&j, "item");
    put_item(a, &j, place(a), p, status);
    answer_event_end(a, &j);
}

/* An event about the item of the thought: an item, or a part or text of it. */
static struct json_out thought_begin(struct answer_sink *a, const char *type, bool is_item)
{
    struct json_out j = event_begin(a, type);
    if (!is_item)
        put_item_id(a, &j, "item_id", "rs", 0);
    json_out_member_uint(&j, "output_index", 0);
    if (!is_item)
        json_out_member_uint(&j, "content_index", 0);
    return j;
}

static void send_thought_item(struct answer_sink *a, const char *type,
                              const struct thinking_parts *p)
{
    struct json_out j = thought_begin(a, type, true);
    json_out_key(&j, "item");
    put_thought(a, &j, p);
    answer_event_end(a, &j);
}

static void send_thought_part(struct answer_sink *a, const char *type,
                              const struct thinking_parts *p)
{
    struct json_out j = thought_begin(a, type, false);
    json_out_key(&j, "part");
    put_thought_part(&j, p);
    answer_event_end(a, &j);
}

static void add_thought(struct answer_sink *a, const char *text, size_t n)
{
    static const struct thinking_parts empty = {.thought = ""};
    struct responses_answer *r = responses_of(a);
    if (!r->thought) {
        r->thought = true;
        buf_init(&r->thought_text, MAX_WHOLE_BYTES);
        send_thought_item(a, "response.output_item.added", NULL);
        send_thought_part(a, "response.content_part.added", &empty);
    }
    if (n == 0)
        return;
    buf_put(&r->thought_text, text, n);
    struct json_out j = thought_begin(a, "response.reasoning_text.delta", false);
    json_out_member_strn(&j, "delta", text, n);
    answer_event_end(a, &j);
}

static void end_thought(struct answer_sink *a)
{
    struct responses_answer *r = responses_of(a);
    if (!r->thought || r->thought_ended)
        return;
    const struct thinking_parts p = {.thought = buf_str(&r->thought_text),
                                     .thought_bytes = r->thought_text.len,
                                     .open = r->thinking.state == THINKING_ON};
    r->thought_ended = true;
    struct json_out j = thought_begin(a, "response.reasoning_text.done", false);
    json_out_member_strn(&j, "text", p.thought, p.thought_bytes);
    answer_event_end(a, &j);
    send_thought_part(a, "response.content_part.done", &p);
    send_thought_item(a, "response.output_item.done", &p);
}

static void send_part(struct answer_sink *a, const char *type, const struct answer_part *p)
{
    struct json_out j = place_begin(a, type);
    json_out_key(&j, "part");
    put_part(a, &j, p);
    answer_event_end(a, &j);
}

/* As llama.cpp's server reports the prefill: in further events of the response in progress. */
static void stream_prompt(struct answer_sink *a, const struct sink_prompt *e)
{
    if (!responses_of(a)->shape.progress)
        return;
    answer_begin(a);
    struct json_out j = event_begin(a, "response.in_progress");
    json_out_key(&j, "response");
    put_response(a, &j, STATUS_IN_PROGRESS, NULL, NULL);
    timings_json_progress(&j, e, a->call->start_ns);
    answer_event_end(a, &j);
}

/* The timings of the answer so far, since the call came. */
static void put_timings_so_far(struct answer_sink *a, struct json_out *j)
{
    struct responses_answer *r = responses_of(a);
    const uint64_t now = clock_ns(), began = a->call->start_ns;
    if (r->first_ns == 0)
        r->first_ns = now;
    timings_json(j, &(struct sink_done){.prompt_tokens = a->prompt.prompt_tokens,
                                        .cached_tokens = a->prompt.cached_tokens,
                                        .generated_tokens = a->choices[0].n_tokens,
                                        .first_token_ns = r->first_ns - began,
                                        .total_ns = now - began});
}

static void begin_stream(struct answer_sink *a)
{
    send_response(a, "response.created", STATUS_IN_PROGRESS, NULL);
    send_response(a, "response.in_progress", STATUS_IN_PROGRESS, NULL);
}

static void open_item(struct answer_sink *a, const struct sink_call *e)
{
    struct answer_part p = {.is_call = e != NULL, .text = ""};
    if (e)
        p.call = (struct answer_call){.id = e->id, .name = e->name, .arguments = ""};
    send_item(a, "response.output_item.added", &p, STATUS_IN_PROGRESS);
    if (!e)
        send_part(a, "response.content_part.added", &p);
}

/* Closes the open item with its final content. */
static void close_item(struct answer_sink *a, const struct sink_done *d)
{
    const struct answer_part whole = answer_get_part(a), p = without_thought(a, &whole);
    struct json_out j = place_begin(a, p.is_call ? "response.function_call_arguments.done"
                                                 : "response.output_text.done");
    if (p.is_call) {
        json_out_member_str(&j, "name", p.call.name);
        json_out_member_strn(&j, "arguments", p.call.arguments, p.call.arguments_bytes);
    } else {
        json_out_member_strn(&j, "text", p.text, p.text_bytes);
        put_logprobs(a, &j, &p);
    }
    answer_event_end(a, &j);
    if (!p.is_call)
        send_part(a, "response.content_part.done", &p);
    send_item(a, "response.output_item.done", &p,
              d && d->finish == SHOAL_FINISH_LENGTH ? STATUS_INCOMPLETE : STATUS_COMPLETED);
}

/* A piece of the thought or of the answer. */
static void stream_piece(void *ctx, bool thought, const char *text, size_t n)
{
    struct answer_sink *a = ctx;
    const struct sink_token *t = responses_of(a)->token;
    if (thought) {
        add_thought(a, text, n);
        return;
    }
    end_thought(a);
    answer_open_part(a, NULL);
    struct json_out j = place_begin(a, "response.output_text.delta");
    json_out_member_strn(&j, "delta", text, n);
    json_out_member_array(&j, "logprobs");
    if (t && t->logprobs)
        logprob_json(&j, t);
    json_out_array_end(&j);
    if (responses_of(a)->shape.timings)
        put_timings_so_far(a, &j);
    answer_event_end(a, &j);
}

static void stream_text(struct answer_sink *a, const struct sink_token *t)
{
    struct responses_answer *r = responses_of(a);
    if (t->text_bytes == 0 && a->part != ANSWER_OPEN_TEXT && has_tools(a))
        return;
    r->token = t;
    if (r->thinking.state == THINKING_OFF || a->part == ANSWER_OPEN_TEXT)
        stream_piece(a, false, t->text, t->text_bytes);
    else
        thinking_push(&r->thinking, t->text, t->text_bytes, stream_piece, a);
    r->token = NULL;
}

/* Nothing more can belong to the thought. */
static void settle_thought(struct answer_sink *a)
{
    thinking_end(&responses_of(a)->thinking, stream_piece, a);
    end_thought(a);
}

static void stream_call(struct answer_sink *a, const struct sink_call *e)
{
    if (e->begins) {
        settle_thought(a);
        answer_open_part(a, e);
    }
    if (e->text_bytes > 0) {
        struct json_out j = place_begin(a, "response.function_call_arguments.delta");
        json_out_member_strn(&j, "delta", e->text, e->text_bytes);
        answer_event_end(a, &j);
    }
    if (e->ends)
        answer_close_part(a, NULL);
}

static void stream_failure(struct answer_sink *a, const struct failure *f)
{
    send_response(a, "response.failed", STATUS_FAILED, f);
}

/* ---- the end ---- */

/* Keeps the response under its id, if that is wanted. */
static void keep(struct answer_sink *a, const struct buf *json, bool running)
{
    const struct responses_shape *shape = &responses_of(a)->shape;
    struct response_store *store = a->call->gl->gw->response_store;
    const struct chat *chat = &a->request->generate.chat;
    const struct answer_choice *ch = &a->choices[0];
    const uint32_t n = chat->n_messages - shape->n_instructions;
    struct response_entry e = {.json = buf_str(json),
                               .json_bytes = json->len,
                               .n_messages = n + 1,
                               .n_input = shape->n_input,
                               .running = running};
    if (store && shape->conversation && !running && !responses_of(a)->private && json->rc == 0)
        conversations_append(a->call, shape->conversation, shape->conversation_items, buf_str(json),
                             json->len);
    if (!store || !shape->store || json->rc < 0)
        return;
    struct chat_message *messages = arena_zalloc_n(&a->request->arena, n + 1u, sizeof(*messages));
    struct chat_call *calls = arena_zalloc_n(&a->request->arena, ch->n_calls, sizeof(*calls));
    if (request_rc(a->request) < 0)
        return;
    struct answer_cursor at = {0};
    struct answer_call call;
    for (uint32_t i = 0; answer_next_call(ch, &at, &call); i++) {
        calls[i] = (struct chat_call){.id = call.id, .name = call.name};
        calls[i].arguments = utf8_repaired(&a->request->arena, call.arguments, call.arguments_bytes,
                                           &calls[i].arguments_bytes);
    }
    if (n > 0)
        memcpy(messages, chat->messages + shape->n_instructions, n * sizeof(*messages));
    const size_t begin = split(a).answer_at; /* thoughts are not read again */
    messages[n] =
        (struct chat_message){.role = "assistant", .calls = calls, .n_calls = ch->n_calls};
    /* as the client and the file see it: a model may write bytes that are no text */
    messages[n].content = utf8_repaired(&a->request->arena, buf_str(&ch->text) + begin,
                                        ch->text.len - begin, &messages[n].content_bytes);
    if (request_rc(a->request) < 0)
        return;
    e.messages = messages;
    memcpy(e.id, a->id, strlen(a->id) + 1);
    memcpy(e.owner, owner_of(a->call), strnlen(owner_of(a->call), sizeof(e.owner) - 1));
    (void)response_store_put(store, &e,
                             clock_ns()); /* a response that is too large is not stored */
}

static void put_whole(struct answer_sink *a, const struct sink_done *d)
{
    struct json_out j = json_out_make(&a->call->out);
    put_response(a, &j, d->finish == SHOAL_FINISH_LENGTH ? STATUS_INCOMPLETE : STATUS_COMPLETED,
                 &d->usage, NULL);
    keep(a, j.b, false);
}

static void stream_end(struct answer_sink *a, const struct sink_done *d)
{
    const bool length = d->finish == SHOAL_FINISH_LENGTH;
    struct buf whole;
    const bool open = responses_of(a)->thinking.state == THINKING_ON;
    settle_thought(a);
    if (a->n_parts == 0 && !open)
        answer_open_part(a, NULL); /* an answer has a message, be it empty */
    answer_close_part(a, d);
    buf_init(&whole, MAX_WHOLE_BYTES);
    struct json_out all = json_out_make(&whole);
    put_response(a, &all, length ? STATUS_INCOMPLETE : STATUS_COMPLETED, &d->usage, NULL);
    keep(a, &whole, false);
    struct json_out j = event_begin(a, length ? "response.incomplete" : "response.completed");
    json_out_member_raw(&j, "response", buf_str(&whole), whole.len);
    timings_json(&j, d); /* of the event: a stored response has none */
    if (whole.rc < 0)
        j.b->rc = whole.rc;
    answer_event_end(a, &j);
    buf_fini(&whole);
}

static void closed(struct answer_sink *a)
{
    buf_fini(&responses_of(a)->thought_text);
}

static void start(struct answer_sink *a, const struct sink_start *e)
{
    responses_of(a)->private = e->private;
    responses_of(a)->shape.store &= !e->private;
}

/* ---- handlers ---- */

/* NULL: the call is answered. */
static struct responses_answer *make_answer(struct call *c, struct request *r,
                                            const struct responses_shape *shape)
{
    static const struct answer_dialect dialect = {.frame = &answer_events,
                                                  .start = start,
                                                  .begin = begin_stream,
                                                  .prompt = stream_prompt,
                                                  .text = stream_text,
                                                  .call = stream_call,
                                                  .open_part = open_item,
                                                  .close_part = close_item,
                                                  .end = stream_end,
                                                  .failure = stream_failure,
                                                  .whole = put_whole,
                                                  .closed = closed};
    struct responses_answer *a = answer_create(c, r, sizeof(*a), &dialect, shape->stream);
    if (!a)
        return NULL;
    a->shape = *shape;
    /* a stream repeats them at its end; tokens of thoughts are counted */
    a->answer.keeps |= ANSWER_KEEPS_TEXT | ANSWER_KEEPS_CALLS | ANSWER_KEEPS_TOKENS;
    uint64_t h = answer_make_id(&a->answer, "resp_");
    hash_hex(a->answer.id + 21, hash_mix(h ^ c->gl->gw->id_salt)); /* ids must not be guessable */
    return a;
}

static void run(struct call *c, struct request *r, const struct responses_shape *shape)
{
    if (make_answer(c, r, shape))
        stages_run(&c->gl->flow, r, c->sink);
}

/* Answers with a response in progress, whose work is a call of its own. */
static void run_background(struct call *c, struct request *r, const struct responses_shape *shape)
{
    struct call *inner = c->gl->gw->response_store ? response_background_open(c) : NULL;
    if (!inner) {
        flow_give_request(&c->gl->flow, r);
        if (c->gl->gw->response_store)
            call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        else
            call_fail(c, 400, NULL, "background", "unsupported_parameter",
                      "'background' needs stored responses: set 'responses.bytes' in the "
                      "configuration");
        return;
    }
    call_hold(inner);
    struct responses_answer *a = make_answer(inner, r, shape);
    if (!a) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
    } else {
        struct json_out j = json_out_make(&c->out);
        a->answer.model = r->model ? r->model : "";
        put_response(&a->answer, &j, STATUS_IN_PROGRESS, NULL, NULL);
        keep(&a->answer, &c->out, true);
        response_background_begin(inner, a->answer.id);
        stages_run(&c->gl->flow, r, inner->sink);
        call_json(c, 200);
    }
    call_release(inner);
}

static void fail_unknown(struct call *c, const char *param, const char *id)
{
    call_fail(c, 404, NULL, param, "response_not_found",
              "there is no response '%.64s': it was not stored, or it has expired", id);
}

/* The response to continue from, with a reference; NULL and true: none.  False: the call is
 * answered. */
static bool find_previous(struct call *c, const struct response_entry **out)
{
    struct response_store *store = c->gl->gw->response_store;
    const char *id = responses_previous(c->json);
    *out = NULL;
    if (!id)
        return true;
    if (store && !response_entry_is_conversation(id))
        *out = response_store_get(store, id, owner_of(c), clock_ns());
    if (!*out) {
        fail_unknown(c, "previous_response_id", id);
        return false;
    }
    if (!(*out)->running)
        return true;
    response_store_unref(store, *out);
    call_fail(c, 400, NULL, "previous_response_id", "invalid_value",
              "the response '%.64s' is still in progress", id);
    return false;
}

/* Reads the body into r, behind the conversation or the response that it continues.
 * SHOAL_ENOTFOUND: there is no such conversation. */
static int read_call(struct call *c, struct request *r, struct responses_shape *shape,
                     const struct response_entry *previous, struct fields_error *e)
{
    const char *id = conversations_named(c->json);
    struct response_entry conversation;
    int rc = id ? conversations_read(c, id, r, &conversation, e) : 0;
    if (rc < 0)
        return rc;
    return responses_read(r, shape, c->json,
                          id && conversation.n_messages > 0 ? &conversation : previous, c->lenient,
                          e);
}

struct request *responses_request(struct call *c, struct responses_shape *shape)
{
    struct response_store *store = c->gl->gw->response_store;
    const struct response_entry *previous;
    struct fields_error e = {{0}, {0}, NULL};
    if (!find_previous(c, &previous))
        return NULL;
    struct request *r = call_request(c);
    int rc = r ? read_call(c, r, shape, previous, &e) : 0;
    if (previous)
        response_store_unref(store, previous);
    if (rc == 0)
        return r;
    if (rc == SHOAL_ENOTFOUND)
        call_fail(c, 404, NULL, "conversation", "conversation_not_found",
                  "there is no conversation '%.64s': it was not made, or it has expired",
                  conversations_named(c->json));
    else
        call_fail_fields(c, &e);
    flow_give_request(&c->gl->flow, r);
    return NULL;
}

void responses_create(struct call *c)
{
    struct responses_shape shape;
    struct request *r = responses_request(c, &shape);
    if (r && shape.background)
        run_background(c, r, &shape);
    else if (r)
        run(c, r, &shape);
}

/* ---- the input of a response ---- */

/* id: of the response; n counts its items down. */
static void put_input_head(struct json_out *j, const char *id, uint32_t *n, const char *type)
{
    char text[RESPONSE_STORE_ID_BYTES + 16];
    json_out_object(j);
    snprintf(text, sizeof(text), "%s_%u", id, --*n);
    json_out_member_str(j, "id", text);
    json_out_member_str(j, "type", type);
    json_out_member_str(j, "status", "completed");
}

static void put_input_call(struct json_out *j, const char *id, uint32_t *n,
                           const struct chat_call *c)
{
    put_input_head(j, id, n, "function_call");
    json_out_member_str(j, "call_id", c->id);
    json_out_member_str(j, "name", c->name);
    json_out_member_strn(j, "arguments", c->arguments, c->arguments_bytes);
    json_out_object_end(j);
}

static void put_input_message(struct json_out *j, const char *id, uint32_t *n,
                              const struct chat_message *m)
{
    bool result = m->call_id && strcmp(m->role, "tool") == 0;
    put_input_head(j, id, n, result ? "function_call_output" : "message");
    if (result) {
        json_out_member_str(j, "call_id", m->call_id);
        json_out_member_strn(j, "output", m->content, m->content_bytes);
    } else {
        json_out_member_str(j, "role", m->role);
        json_out_member_array(j, "content");
        json_out_object(j);
        json_out_member_str(j, "type",
                            strcmp(m->role, "assistant") == 0 ? "output_text" : "input_text");
        json_out_member_strn(j, "text", m->content, m->content_bytes);
        json_out_object_end(j);
        json_out_array_end(j);
    }
    json_out_object_end(j);
}

static bool has_text(const struct chat_message *m)
{
    return m->n_calls == 0 || m->content_bytes > 0;
}

/* The items of the call that made the response, the last one first. */
static void put_input_items(struct call *c, const struct response_entry *e)
{
    const struct chat_message *messages = &e->messages[e->n_messages - 1 - e->n_input];
    uint32_t n = 0;
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "object", "list");
    json_out_member_array(&j, "data");
    for (uint32_t i = 0; i < e->n_input; i++)
        n += messages[i].n_calls + has_text(&messages[i]);
    for (uint32_t i = e->n_input; i-- > 0;) {
        for (uint32_t k = messages[i].n_calls; k-- > 0;)
            put_input_call(&j, e->id, &n, &messages[i].calls[k]);
        if (has_text(&messages[i]))
            put_input_message(&j, e->id, &n, &messages[i]);
    }
    json_out_array_end(&j);
    json_out_member_bool(&j, "has_more", false);
    json_out_object_end(&j);
}

/* The entry that the path names, with what follows its id, "" or "/...".  NULL: the call is
 * answered. */
static const struct response_entry *named(struct call *c, const char *const known[2],
                                          const char **rest)
{
    struct response_store *store = c->gl->gw->response_store;
    const char *path = c->req->path + strlen(PATH);
    const size_t n = strcspn(path, "/");
    char id[RESPONSE_STORE_ID_BYTES] = "";
    if (n < sizeof(id))
        memcpy(id, path, n);
    *rest = path + n;
    const bool good = strcmp(*rest, known[0]) == 0 || strcmp(*rest, known[1]) == 0;
    const struct response_entry *e = store && good && !response_entry_is_conversation(id)
                                         ? response_store_get(store, id, owner_of(c), clock_ns())
                                         : NULL;
    if (!e)
        fail_unknown(c, NULL, path);
    return e;
}

void responses_cancel(struct call *c)
{
    static const char *const known[2] = {"/cancel", "/cancel"}; /* as the route has it */
    struct response_store *store = c->gl->gw->response_store;
    const char *rest;
    const struct response_entry *e = named(c, known, &rest);
    if (!e)
        return;
    if (e->running && response_store_cancel(store, e->id, e->owner) &&
        response_background_settle(store, e->id, e->owner, "cancelled", NULL, NULL, &c->out))
        call_json(c, 200);
    else
        call_fail(c, 400, NULL, NULL, "invalid_value",
                  "the response '%.64s' is not in progress: only a background response that is "
                  "can be cancelled",
                  e->id);
    response_store_unref(store, e);
}

void responses_get(struct call *c)
{
    static const char *const known[2] = {"", "/input_items"};
    struct response_store *store = c->gl->gw->response_store;
    const char *rest;
    const struct response_entry *e = named(c, known, &rest);
    if (!e)
        return;
    if (rest[0])
        put_input_items(c, e);
    else
        buf_put(&c->out, e->json, e->json_bytes);
    response_store_unref(store, e);
    call_json(c, 200);
}

void responses_delete(struct call *c)
{
    const char *id = c->req->path + strlen(PATH);
    struct response_store *store = c->gl->gw->response_store;
    if (!store || response_entry_is_conversation(id) ||
        !response_store_delete(store, id, owner_of(c), clock_ns())) {
        fail_unknown(c, NULL, id);
        return;
    }
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "id", id);
    json_out_member_str(&j, "object", "response");
    json_out_member_bool(&j, "deleted", true);
    json_out_object_end(&j);
    call_json(c, 200);
}
