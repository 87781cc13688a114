/* responses.c - see responses.h: events to answers, and the handlers. */
#include "gateway/api/openai/responses.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "flow/stages.h"
#include "gateway/api/logprob_json.h"
#include "gateway/api/openai/response_store.h"
#include "gateway/call.h"
#include "wire/json_out.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)
#define PATH "/v1/responses/"

enum status { STATUS_IN_PROGRESS, STATUS_COMPLETED, STATUS_INCOMPLETE, STATUS_FAILED };

static const char *const status_names[] = {"in_progress", "completed", "incomplete", "failed"};

enum item { ITEM_NONE, ITEM_MESSAGE, ITEM_CALL };

/* Turns the events of a generation into an answer to the call: items of output, one after the
 * other. */
struct answer {
    struct sink sink;
    struct call *call; /* held */
    struct request *request;
    struct responses_shape shape;
    char id[RESPONSE_STORE_ID_BYTES];
    uint64_t created_s, n_events;
    const char *model;
    uint32_t n_items;    /* completed items */
    struct buf items;    /* they, as elements of a list */
    enum item open;      /* kind of the open item */
    struct buf text;     /* of the open item: its text, or its arguments */
    struct buf logprobs; /* of the open item: elements of a list */
    uint32_t n_logprobs;
    const char *call_id, *name; /* of the open item, if it is a call */
    struct buf said;            /* the texts of all messages, to be kept */
    struct chat_call *calls;    /* complete ones, to be kept; in the request's arena */
    uint32_t n_calls, room;
};

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
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

static void put_part(struct answer *a, struct json_out *j, bool whole)
{
    json_out_object(j);
    json_out_member_str(j, "type", "output_text");
    json_out_key(j, "text");
    json_out_strn(j, whole ? buf_str(&a->text) : "", whole ? a->text.len : 0);
    json_out_key(j, "annotations");
    json_out_array(j);
    json_out_array_end(j);
    json_out_key(j, "logprobs");
    buf_putc(j->b, '[');
    if (whole)
        buf_put(j->b, buf_str(&a->logprobs), a->logprobs.len);
    buf_putc(j->b, ']');
    j->comma = true;
    json_out_object_end(j);
}

/* The id of the open item: that of the response and its place. */
static void put_item_id(struct answer *a, struct json_out *j, const char *key)
{
    char id[RESPONSE_STORE_ID_BYTES + 16];
    snprintf(id, sizeof(id), "%s_%.40s_%u", a->open == ITEM_CALL ? "fc" : "msg", a->id + 5,
             a->n_items);
    json_out_member_str(j, key, id);
}

/* The open item. */
static void put_item(struct answer *a, struct json_out *j, enum status status)
{
    bool whole = status != STATUS_IN_PROGRESS;
    json_out_object(j);
    put_item_id(a, j, "id");
    json_out_member_str(j, "type", a->open == ITEM_CALL ? "function_call" : "message");
    json_out_member_str(j, "status", status_names[status]);
    if (a->open == ITEM_CALL) {
        json_out_member_str(j, "call_id", a->call_id);
        json_out_member_str(j, "name", a->name);
        json_out_key(j, "arguments");
        json_out_strn(j, whole ? buf_str(&a->text) : "", whole ? a->text.len : 0);
    } else {
        json_out_member_str(j, "role", "assistant");
        json_out_key(j, "content");
        json_out_array(j);
        if (whole)
            put_part(a, j, true);
        json_out_array_end(j);
    }
    json_out_object_end(j);
}

static void put_usage(struct json_out *j, const struct sink_usage *u)
{
    json_out_key(j, "usage");
    if (!u) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_member_uint(j, "input_tokens", u->prompt_tokens);
    json_out_key(j, "input_tokens_details");
    json_out_object(j);
    json_out_member_uint(j, "cached_tokens", u->cached_tokens);
    json_out_object_end(j);
    json_out_member_uint(j, "output_tokens", u->generated_tokens);
    json_out_key(j, "output_tokens_details");
    json_out_object(j);
    json_out_member_uint(j, "reasoning_tokens", 0);
    json_out_object_end(j);
    json_out_member_uint(j, "total_tokens", (uint64_t)u->prompt_tokens + u->generated_tokens);
    json_out_object_end(j);
}

/* The part of the request that the answer repeats. */
static void put_asked(const struct answer *a, struct json_out *j)
{
    const struct responses_shape *s = &a->shape;
    put_or_null(j, "instructions", s->instructions);
    json_out_key(j, "max_output_tokens");
    s->max_output_tokens > 0 ? json_out_int(j, s->max_output_tokens) : json_out_null(j);
    put_or_null(j, "previous_response_id", s->previous_id);
    put_or_null(j, "user", s->user);
    json_out_key(j, "reasoning");
    json_out_object(j);
    put_or_null(j, "effort", s->effort);
    put_or_null(j, "summary", NULL);
    json_out_object_end(j);
    json_out_key(j, "store");
    json_out_bool(j, s->store);
    json_out_member_num(j, "temperature", s->temperature);
    json_out_member_num(j, "top_p", s->top_p);
    json_out_key(j, "top_logprobs");
    json_out_int(j, s->top_logprobs);
    json_out_key(j, "metadata");
    json_out_raw(j, s->metadata, strlen(s->metadata));
    json_out_key(j, "parallel_tool_calls");
    json_out_bool(j, s->parallel_calls);
    buf_printf(j->b, ",\"text\":{\"format\":%s},\"tool_choice\":%s,\"tools\":%s", s->format,
               s->tool_choice, s->tools);
    /* constant members */
    buf_puts(j->b,
             ",\"background\":false,\"service_tier\":\"default\",\"truncation\":\"disabled\"");
}

/* f: with STATUS_FAILED. */
static void put_response(struct answer *a, struct json_out *j, enum status status,
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
    json_out_key(j, "output");
    json_out_array(j);
    buf_put(j->b, buf_str(&a->items), a->items.len);
    json_out_array_end(j);
    put_asked(a, j);
    put_usage(j, usage);
    json_out_object_end(j);
}

/* ---- streams: every event has a type and a number ---- */

static struct json_out event_begin(struct answer *a, const char *type)
{
    call_event_begin(a->call, type);
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    json_out_member_str(&j, "type", type);
    json_out_member_uint(&j, "sequence_number", a->n_events++);
    return j;
}

static void event_end(struct answer *a, struct json_out *j)
{
    json_out_object_end(j);
    call_event_end(a->call);
}

static void send_response(struct answer *a, const char *type, enum status status,
                          const struct sink_usage *usage, const struct failure *f)
{
    struct json_out j = event_begin(a, type);
    json_out_key(&j, "response");
    put_response(a, &j, status, usage, f);
    event_end(a, &j);
}

static void put_place(struct answer *a, struct json_out *j)
{
    put_item_id(a, j, "item_id");
    json_out_member_uint(j, "output_index", a->n_items);
    if (a->open == ITEM_MESSAGE)
        json_out_member_uint(j, "content_index", 0);
}

static void send_item(struct answer *a, const char *type, enum status status)
{
    struct json_out j = event_begin(a, type);
    json_out_member_uint(&j, "output_index", a->n_items);
    json_out_key(&j, "item");
    put_item(a, &j, status);
    event_end(a, &j);
}

static void send_part(struct answer *a, const char *type, bool whole)
{
    struct json_out j = event_begin(a, type);
    put_place(a, &j);
    json_out_key(&j, "part");
    put_part(a, &j, whole);
    event_end(a, &j);
}

static void begin_stream(struct answer *a)
{
    struct call *c = a->call;
    if (!call_begin_events(c))
        return;
    send_response(a, "response.created", STATUS_IN_PROGRESS, NULL, NULL);
    send_response(a, "response.in_progress", STATUS_IN_PROGRESS, NULL, NULL);
}

static void send_text_delta(struct answer *a, const struct sink_token *t)
{
    struct json_out j = event_begin(a, "response.output_text.delta");
    put_place(a, &j);
    json_out_key(&j, "delta");
    json_out_strn(&j, t->text, t->text_bytes);
    json_out_key(&j, "logprobs");
    json_out_array(&j);
    if (t->logprobs)
        logprob_json(&j, t);
    json_out_array_end(&j);
    event_end(a, &j);
}

static void send_call_delta(struct answer *a, const struct sink_call *e)
{
    struct json_out j = event_begin(a, "response.function_call_arguments.delta");
    put_place(a, &j);
    json_out_key(&j, "delta");
    json_out_strn(&j, e->text, e->text_bytes);
    event_end(a, &j);
}

/* Closes the open item with its final content. */
static void send_whole(struct answer *a)
{
    bool call = a->open == ITEM_CALL;
    struct json_out j = event_begin(a, call ? "response.function_call_arguments.done"
                                            : "response.output_text.done");
    put_place(a, &j);
    if (call)
        json_out_member_str(&j, "name", a->name);
    json_out_key(&j, call ? "arguments" : "text");
    json_out_strn(&j, buf_str(&a->text), a->text.len);
    if (!call) {
        json_out_key(&j, "logprobs");
        buf_putc(j.b, '[');
        buf_put(j.b, buf_str(&a->logprobs), a->logprobs.len);
        buf_putc(j.b, ']');
    }
    event_end(a, &j);
}

/* ---- items ---- */

static void keep_call(struct answer *a)
{
    struct arena *arena = &a->request->arena;
    if (a->n_calls == a->room) {
        uint32_t room = a->room ? 2 * a->room : 4;
        struct chat_call *more = arena_zalloc_n(arena, room, sizeof(*more));
        if (!more)
            return; /* out of memory: nothing is stored then */
        if (a->n_calls > 0)
            memcpy(more, a->calls, a->n_calls * sizeof(*more));
        a->calls = more;
        a->room = room;
    }
    a->calls[a->n_calls++] =
        (struct chat_call){.id = a->call_id,
                           .name = a->name,
                           .arguments = request_copy(a->request, buf_str(&a->text), a->text.len),
                           .arguments_bytes = a->text.len};
}

/* The open item is complete, with this status. */
static void close_item(struct answer *a, enum status status)
{
    if (a->open == ITEM_NONE)
        return;
    if (a->shape.stream) {
        send_whole(a);
        if (a->open == ITEM_MESSAGE)
            send_part(a, "response.content_part.done", true);
        send_item(a, "response.output_item.done", status);
    }
    struct json_out j = json_out_make(&a->items);
    j.comma = a->n_items > 0;
    put_item(a, &j, status);
    if (a->open == ITEM_CALL)
        keep_call(a);
    else
        buf_put(&a->said, buf_str(&a->text), a->text.len);
    a->open = ITEM_NONE;
    a->n_items++;
}

/* e: a call that begins; NULL: a message. */
static void open_item(struct answer *a, const struct sink_call *e)
{
    close_item(a, STATUS_COMPLETED);
    a->open = e ? ITEM_CALL : ITEM_MESSAGE;
    a->n_logprobs = 0;
    buf_clear(&a->text);
    buf_clear(&a->logprobs);
    if (e) {
        a->call_id = request_copy(a->request, e->id, strlen(e->id));
        a->name = e->name;
    }
    if (!a->shape.stream)
        return;
    send_item(a, "response.output_item.added", STATUS_IN_PROGRESS);
    if (!e)
        send_part(a, "response.content_part.added", false);
}

/* ---- keeping ---- */

static void keep(struct answer *a, const struct buf *json)
{
    struct response_store *store = a->call->gl->gw->response_store;
    const struct chat *chat = &a->request->generate.chat;
    const uint32_t n = chat->n_messages - a->shape.n_instructions;
    struct response_entry e = {.json = buf_str(json),
                               .json_bytes = json->len,
                               .n_messages = n + 1,
                               .n_input = a->shape.n_input};
    const bool wanted = store && a->shape.store && json->rc == 0 && request_rc(a->request) == 0;
    struct chat_message *messages = wanted ? mem_zalloc_n(n + 1u, sizeof(*messages)) : NULL;
    if (!messages)
        return;
    memcpy(messages, chat->messages + a->shape.n_instructions, n * sizeof(*messages));
    messages[n] = (struct chat_message){.role = "assistant",
                                        .content = buf_str(&a->said),
                                        .content_bytes = a->said.len,
                                        .calls = a->calls,
                                        .n_calls = a->n_calls};
    e.messages = messages;
    memcpy(e.id, a->id, sizeof(e.id));
    memcpy(e.owner, owner_of(a->call), strnlen(owner_of(a->call), sizeof(e.owner) - 1));
    (void)response_store_put(store, &e,
                             clock_ns()); /* a response that is too large is not stored */
    mem_free(messages);
}

/* ---- events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct answer *a = answer_of(s);
    a->model = e->model;
    a->shape.store &= !e->private;
    call_set_model(a->call, e);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer *a = answer_of(s);
    if (!a->call->req)
        return;
    if (a->shape.stream)
        begin_stream(a);
    /* during a call, a token without text belongs to it */
    const bool tools = chat_has_tools(&a->request->generate.chat);
    if (t->text_bytes == 0 && (!t->logprobs || (tools && a->open != ITEM_MESSAGE)))
        return;
    if (a->open != ITEM_MESSAGE)
        open_item(a, NULL);
    buf_put(&a->text, t->text, t->text_bytes);
    if (t->logprobs) {
        struct json_out j = json_out_make(&a->logprobs);
        j.comma = a->n_logprobs++ > 0;
        logprob_json(&j, t);
    }
    if (a->shape.stream)
        send_text_delta(a, t);
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    struct answer *a = answer_of(s);
    if (!a->call->req)
        return;
    if (a->shape.stream)
        begin_stream(a);
    if (e->begins)
        open_item(a, e);
    buf_put(&a->text, e->text, e->text_bytes);
    if (a->shape.stream && e->text_bytes > 0)
        send_call_delta(a, e);
    if (e->ends)
        close_item(a, STATUS_COMPLETED);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    enum status status = d->finish == SHOAL_FINISH_LENGTH ? STATUS_INCOMPLETE : STATUS_COMPLETED;
    struct buf whole;
    if (!c->req)
        return;
    if (a->shape.stream)
        begin_stream(a);
    if (a->open == ITEM_NONE && a->n_items == 0)
        open_item(a, NULL); /* an answer has a message, be it empty */
    close_item(a, status);
    buf_init(&whole, 2 * MAX_TEXT_BYTES);
    struct json_out j = json_out_make(&whole);
    put_response(a, &j, status, &d->usage, NULL);
    if (a->text.rc < 0 || a->logprobs.rc < 0 || a->items.rc < 0 || a->said.rc < 0)
        whole.rc = SHOAL_ENOMEM;
    keep(a, &whole);
    if (a->shape.stream) {
        send_response(a, status == STATUS_COMPLETED ? "response.completed" : "response.incomplete",
                      status, &d->usage, NULL);
        call_end_flushed(c);
    } else {
        buf_clear(&c->out);
        buf_put(&c->out, buf_str(&whole), whole.len);
        if (whole.rc < 0)
            c->out.rc = whole.rc;
        call_json(c, 200);
    }
    buf_fini(&whole);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    if (!c->req)
        return;
    if (!c->began) {
        call_fail_with(c, f);
        return;
    }
    send_response(a, "response.failed", STATUS_FAILED, NULL, f);
    call_end_flushed(c);
}

static void on_flush(struct sink *s)
{
    if (answer_of(s)->shape.stream)
        call_flush(answer_of(s)->call);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void on_closed(struct sink *s)
{
    struct answer *a = answer_of(s);
    buf_fini(&a->items);
    buf_fini(&a->text);
    buf_fini(&a->logprobs);
    buf_fini(&a->said);
    call_unset_sink(a->call);
}

/* ---- handlers ---- */

static void make_id(struct answer *a, const struct call *c)
{
    uint64_t h = hash_bytes(c->id, strlen(c->id), c->gl->gw->id_salt ^ c->start_ns);
    memcpy(a->id, "resp_", 5);
    hash_hex(a->id + 5, h);
    hash_hex(a->id + 21, hash_mix(h ^ c->gl->gw->id_salt)); /* ids must not be guessable */
}

static void run(struct call *c, struct request *r, const struct responses_shape *shape)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .call = on_call,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct timespec ts;
    struct answer *a = arena_zalloc(&r->arena, sizeof(*a));
    if (!a) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    a->sink.ops = &ops;
    a->call = c;
    a->shape = *shape;
    a->request = r;
    a->created_s = (uint64_t)ts.tv_sec;
    make_id(a, c);
    buf_init(&a->items, MAX_TEXT_BYTES);
    buf_init(&a->text, MAX_TEXT_BYTES);
    buf_init(&a->logprobs, MAX_TEXT_BYTES);
    buf_init(&a->said, MAX_TEXT_BYTES);
    call_set_sink(c, &a->sink);
    stages_run(&c->gl->flow, r, c->sink);
}

static void fail_unknown(struct call *c, const char *param, const char *id)
{
    call_fail(c, 404, NULL, param, "response_not_found",
              "there is no response '%.64s': it was not stored, or it has expired", id);
}

struct request *responses_request(struct call *c, struct responses_shape *shape)
{
    struct response_store *store = c->gl->gw->response_store;
    const char *id = responses_previous(c->json);
    const struct response_entry *previous =
        id && store ? response_store_get(store, id, owner_of(c), clock_ns()) : NULL;
    struct fields_error e = {{0}, {0}, NULL};
    if (id && !previous) {
        fail_unknown(c, "previous_response_id", id);
        return NULL;
    }
    struct request *r = call_request(c);
    int rc = r ? responses_read(r, shape, c->json, previous, c->lenient, &e) : 0;
    if (previous)
        response_store_unref(store, previous);
    if (rc == 0)
        return r;
    call_fail_fields(c, &e);
    flow_give_request(&c->gl->flow, r);
    return NULL;
}

void responses_create(struct call *c)
{
    struct responses_shape shape;
    struct request *r = responses_request(c, &shape);
    if (r)
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
    json_out_key(j, "arguments");
    json_out_strn(j, c->arguments, c->arguments_bytes);
    json_out_object_end(j);
}

static void put_input_message(struct json_out *j, const char *id, uint32_t *n,
                              const struct chat_message *m)
{
    bool result = m->call_id && strcmp(m->role, "tool") == 0;
    put_input_head(j, id, n, result ? "function_call_output" : "message");
    if (result) {
        json_out_member_str(j, "call_id", m->call_id);
        json_out_key(j, "output");
        json_out_strn(j, m->content, m->content_bytes);
    } else {
        json_out_member_str(j, "role", m->role);
        json_out_key(j, "content");
        json_out_array(j);
        json_out_object(j);
        json_out_member_str(j, "type",
                            strcmp(m->role, "assistant") == 0 ? "output_text" : "input_text");
        json_out_key(j, "text");
        json_out_strn(j, m->content, m->content_bytes);
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
    json_out_key(&j, "data");
    json_out_array(&j);
    for (uint32_t i = 0; i < e->n_input; i++)
        n += messages[i].n_calls + has_text(&messages[i]);
    for (uint32_t i = e->n_input; i-- > 0;) {
        for (uint32_t k = messages[i].n_calls; k-- > 0;)
            put_input_call(&j, e->id, &n, &messages[i].calls[k]);
        if (has_text(&messages[i]))
            put_input_message(&j, e->id, &n, &messages[i]);
    }
    json_out_array_end(&j);
    json_out_key(&j, "has_more");
    json_out_bool(&j, false);
    json_out_object_end(&j);
}

void responses_get(struct call *c)
{
    static const char items[] = "/input_items";
    struct response_store *store = c->gl->gw->response_store;
    const char *path = c->req->path + strlen(PATH), *rest = strchr(path, '/');
    size_t n = rest ? (size_t)(rest - path) : strlen(path);
    char id[RESPONSE_STORE_ID_BYTES] = "";
    if (n < sizeof(id))
        memcpy(id, path, n);
    bool known = !rest || strcmp(rest, items) == 0;
    const struct response_entry *e =
        store && known ? response_store_get(store, id, owner_of(c), clock_ns()) : NULL;
    if (!e) {
        fail_unknown(c, NULL, path);
        return;
    }
    if (rest)
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
    if (!store || !response_store_delete(store, id, owner_of(c), clock_ns())) {
        fail_unknown(c, NULL, id);
        return;
    }
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "id", id);
    json_out_member_str(&j, "object", "response");
    json_out_key(&j, "deleted");
    json_out_bool(&j, true);
    json_out_object_end(&j);
    call_json(c, 200);
}
