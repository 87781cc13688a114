/* anthropic.c - events to answers in Anthropic's form, whole and as typed events of a stream. */
#include "gateway/api/anthropic/anthropic.h"

#include <string.h>

#include "base/hash.h"
#include "flow/stages.h"
#include "gateway/call.h"
#include "wire/json_out.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)

enum block { BLOCK_NONE, BLOCK_TEXT, BLOCK_TOOL };

/* Turns the events of a generation into an answer to the call. */
struct answer {
    struct sink sink;
    struct call *call; /* held */
    bool stream, count;
    const struct request_generate *asked;
    char id[24]; /* "msg_..." */
    const char *model;
    struct sink_usage prompt; /* streams: of the prompt; zero until it is known */
    enum block block;         /* the open block */
    uint32_t n_blocks;        /* begun */
    struct buf blocks;        /* whole answers: blocks as JSON */
    struct buf text, tool;    /* whole answers: of the block that is open */
};

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

/* The stop sequence that ended the answer, or NULL. */
static const char *stop_sequence(const struct answer *a, const struct sink_done *d)
{
    return d->finish == SHOAL_FINISH_STOP && d->n_calls == 0 && d->stopped_by_text &&
                   d->stop_index < a->asked->n_stop
               ? a->asked->stop[d->stop_index]
               : NULL;
}

static void put_stop(const struct answer *a, struct json_out *j, const struct sink_done *d)
{
    const char *text = stop_sequence(a, d);
    json_out_member_str(j, "stop_reason",
                        d->finish == SHOAL_FINISH_LENGTH ? "max_tokens"
                        : d->n_calls > 0                 ? "tool_use"
                        : text                           ? "stop_sequence"
                                                         : "end_turn");
    json_out_key(j, "stop_sequence");
    text ? json_out_str(j, text) : json_out_null(j);
}

/* Cached tokens are counted separately. */
static void put_usage(struct json_out *j, const struct sink_usage *u)
{
    json_out_key(j, "usage");
    json_out_object(j);
    json_out_member_uint(j, "input_tokens", u->prompt_tokens - u->cached_tokens);
    json_out_member_uint(j, "cache_creation_input_tokens", 0);
    json_out_member_uint(j, "cache_read_input_tokens", u->cached_tokens);
    json_out_member_uint(j, "output_tokens", u->generated_tokens);
    json_out_object_end(j);
}

/* The message up to its content, which is left open. */
static void put_message(struct answer *a, struct json_out *j)
{
    json_out_member_str(j, "id", a->id);
    json_out_member_str(j, "type", "message");
    json_out_member_str(j, "role", "assistant");
    json_out_member_str(j, "model", a->model);
    json_out_key(j, "content");
}

/* ---- streams ---- */

static struct json_out event_begin(struct answer *a, const char *type)
{
    call_event_begin(a->call, type);
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    json_out_member_str(&j, "type", type);
    return j;
}

static void event_end(struct answer *a, struct json_out *j)
{
    json_out_object_end(j);
    call_event_end(a->call);
}

static void begin_stream(struct answer *a)
{
    if (!call_begin_events(a->call))
        return;
    struct json_out j = event_begin(a, "message_start");
    json_out_key(&j, "message");
    json_out_object(&j);
    put_message(a, &j);
    json_out_array(&j);
    json_out_array_end(&j);
    json_out_key(&j, "stop_reason");
    json_out_null(&j);
    json_out_key(&j, "stop_sequence");
    json_out_null(&j);
    put_usage(&j, &a->prompt);
    json_out_object_end(&j);
    event_end(a, &j);
    j = event_begin(a, "ping");
    event_end(a, &j);
}

static void close_block(struct answer *a)
{
    if (a->block == BLOCK_NONE)
        return;
    a->block = BLOCK_NONE;
    struct json_out j = event_begin(a, "content_block_stop");
    json_out_member_uint(&j, "index", a->n_blocks - 1);
    event_end(a, &j);
}

/* e NULL: a block of text. */
static void open_block(struct answer *a, const struct sink_call *e)
{
    close_block(a);
    a->block = e ? BLOCK_TOOL : BLOCK_TEXT;
    struct json_out j = event_begin(a, "content_block_start");
    json_out_member_uint(&j, "index", a->n_blocks++);
    json_out_key(&j, "content_block");
    json_out_object(&j);
    json_out_member_str(&j, "type", e ? "tool_use" : "text");
    if (e) {
        json_out_member_str(&j, "id", e->id);
        json_out_member_str(&j, "name", e->name);
        json_out_key(&j, "input");
        json_out_object(&j);
        json_out_object_end(&j);
    } else {
        json_out_member_str(&j, "text", "");
    }
    json_out_object_end(&j);
    event_end(a, &j);
}

static void send_delta(struct answer *a, const char *type, const char *key, const char *p, size_t n)
{
    struct json_out j = event_begin(a, "content_block_delta");
    json_out_member_uint(&j, "index", a->n_blocks - 1);
    json_out_key(&j, "delta");
    json_out_object(&j);
    json_out_member_str(&j, "type", type);
    json_out_key(&j, key);
    json_out_strn(&j, p, n);
    json_out_object_end(&j);
    event_end(a, &j);
}

static void stream_done(struct answer *a, const struct sink_done *d)
{
    close_block(a);
    struct json_out j = event_begin(a, "message_delta");
    json_out_key(&j, "delta");
    json_out_object(&j);
    put_stop(a, &j, d);
    json_out_object_end(&j);
    put_usage(&j, &d->usage);
    event_end(a, &j);
    j = event_begin(a, "message_stop");
    event_end(a, &j);
    call_end_flushed(a->call);
}

/* ---- whole answers ---- */

/* The text so far becomes a block. */
static void gather_text(struct answer *a)
{
    if (a->text.len == 0)
        return;
    struct json_out j = json_out_make(&a->blocks);
    j.comma = a->n_blocks++ > 0;
    json_out_object(&j);
    json_out_member_str(&j, "type", "text");
    json_out_key(&j, "text");
    json_out_strn(&j, a->text.data, a->text.len);
    json_out_object_end(&j);
    buf_clear(&a->text);
}

static void gather_call(struct answer *a, const struct sink_call *e)
{
    if (e->begins)
        buf_clear(&a->tool);
    buf_put(&a->tool, e->text, e->text_bytes);
    if (!e->ends)
        return;
    gather_text(a);
    struct json_out j = json_out_make(&a->blocks);
    j.comma = a->n_blocks++ > 0;
    json_out_object(&j);
    json_out_member_str(&j, "type", "tool_use");
    json_out_member_str(&j, "id", e->id);
    json_out_member_str(&j, "name", e->name);
    json_out_key(&j, "input");
    buf_put(&a->blocks, buf_str(&a->tool), a->tool.len);
    j.comma = true;
    json_out_object_end(&j);
}

static void put_whole(struct answer *a, const struct sink_done *d)
{
    struct call *c = a->call;
    gather_text(a);
    buf_clear(&c->out);
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    put_message(a, &j);
    buf_putc(&c->out, '[');
    buf_put(&c->out, buf_str(&a->blocks), a->blocks.len);
    buf_putc(&c->out, ']');
    j.comma = true;
    put_stop(a, &j, d);
    put_usage(&j, &d->usage);
    json_out_object_end(&j);
    buf_putc(&c->out, '\n');
    if (a->text.rc < 0 || a->blocks.rc < 0 || a->tool.rc < 0)
        c->out.rc = SHOAL_ENOMEM;
    call_json(c, 200);
}

static void put_count(struct answer *a, const struct sink_done *d)
{
    struct call *c = a->call;
    buf_clear(&c->out);
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_uint(&j, "input_tokens", d->usage.prompt_tokens);
    json_out_object_end(&j);
    call_json(c, 200);
}

/* ---- events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct answer *a = answer_of(s);
    a->model = e->model;
    call_set_model(a->call, e);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct answer *a = answer_of(s);
    if (e->choice == 0)
        a->prompt = (struct sink_usage){.prompt_tokens = e->tokens, .cached_tokens = e->cached};
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer *a = answer_of(s);
    if (!a->call->req || a->count)
        return;
    if (!a->stream) {
        buf_put(&a->text, t->text, t->text_bytes);
        return;
    }
    begin_stream(a);
    if (t->text_bytes == 0)
        return;
    if (a->block != BLOCK_TEXT)
        open_block(a, NULL);
    send_delta(a, "text_delta", "text", t->text, t->text_bytes);
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    struct answer *a = answer_of(s);
    if (!a->call->req)
        return;
    if (!a->stream) {
        gather_call(a, e);
        return;
    }
    begin_stream(a);
    if (e->begins)
        open_block(a, e);
    if (e->text_bytes > 0)
        send_delta(a, "input_json_delta", "partial_json", e->text, e->text_bytes);
    if (e->ends)
        close_block(a);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = answer_of(s);
    if (!a->call->req || !d->last)
        return;
    if (a->count) {
        put_count(a, d);
    } else if (a->stream) {
        begin_stream(a);
        stream_done(a, d);
    } else {
        put_whole(a, d);
    }
}

static void on_fail(struct sink *s, const struct failure *f)
{
    call_fail_stream(answer_of(s)->call, "error", f);
}

static void on_flush(struct sink *s)
{
    struct answer *a = answer_of(s);
    if (a->stream)
        call_flush(a->call);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void on_closed(struct sink *s)
{
    struct answer *a = answer_of(s);
    buf_fini(&a->blocks);
    buf_fini(&a->text);
    buf_fini(&a->tool);
    call_unset_sink(a->call);
}

static const struct sink_ops answer_ops = {.start = on_start,
                                           .prompt = on_prompt,
                                           .token = on_token,
                                           .call = on_call,
                                           .done = on_done,
                                           .fail = on_fail,
                                           .closed = on_closed,
                                           .flush = on_flush,
                                           .full = on_full};

/* ---- handlers ---- */

static void start(struct call *c, bool count)
{
    struct fields_error e = {{0}, {0}, NULL};
    bool stream = false;
    struct request *r = call_request(c);
    if (!r)
        return;
    int rc = anthropic_read(r, &stream, c->json, count, c->lenient, &e);
    struct answer *a = rc == 0 ? arena_zalloc(&r->arena, sizeof(*a)) : NULL;
    if (!a) {
        if (rc < 0)
            call_fail_fields(c, &e);
        else
            call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    a->sink.ops = &answer_ops;
    a->call = c;
    a->stream = stream && !count;
    a->count = count;
    a->asked = &r->generate;
    r->generate.progress = a->stream; /* message_start has the prompt's token count */
    memcpy(a->id, "msg_", 4);
    hash_hex(a->id + 4, hash_bytes(c->id, strlen(c->id), c->gl->gw->id_salt ^ c->start_ns));
    buf_init(&a->blocks, MAX_TEXT_BYTES);
    buf_init(&a->text, MAX_TEXT_BYTES);
    buf_init(&a->tool, MAX_TEXT_BYTES);
    call_set_sink(c, &a->sink);
    stages_run(&c->gl->flow, r, c->sink);
}

void anthropic_messages(struct call *c)
{
    start(c, false);
}

void anthropic_count_tokens(struct call *c)
{
    start(c, true);
}
