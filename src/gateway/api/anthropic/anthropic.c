/* anthropic.c - events to answers in Anthropic's form, whole and as typed events of a stream. */
#include "gateway/api/energy_json.h"
#include "gateway/api/anthropic/anthropic.h"

#include "flow/request.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/thinking.h"
#include "wire/json_out.h"

struct anthropic_answer {
    struct answer_sink answer; /* first */
    /* of a stream */
    struct thinking thinking;
    bool thought_is_open; /* its block was begun */
};

static struct anthropic_answer *anthropic_of(struct answer_sink *a)
{
    return (struct anthropic_answer *)(void *)a; /* its first member */
}

/* The stop sequence that ended the answer, or NULL. */
static const char *stop_sequence(const struct answer_sink *a, const struct sink_done *d)
{
    const struct request_generate *asked = &a->request->generate;
    return d->finish == SHOAL_FINISH_STOP && d->n_calls == 0 && d->stopped_by_text &&
                   d->stop_index < asked->n_stop
               ? asked->stop[d->stop_index]
               : NULL;
}

static void put_stop(const struct answer_sink *a, struct json_out *j, const struct sink_done *d)
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
    json_out_member_object(j, "usage");
    json_out_member_uint(j, "input_tokens", u->prompt_tokens - u->cached_tokens);
    json_out_member_uint(j, "cache_creation_input_tokens", 0);
    json_out_member_uint(j, "cache_read_input_tokens", u->cached_tokens);
    json_out_member_uint(j, "output_tokens", u->generated_tokens);
    energy_json(j, &u->energy);
    json_out_object_end(j);
}

/* The message up to its content, which is left open. */
static void put_message(struct answer_sink *a, struct json_out *j)
{
    json_out_member_str(j, "id", a->id);
    json_out_member_str(j, "type", "message");
    json_out_member_str(j, "role", "assistant");
    json_out_member_str(j, "model", a->model);
    json_out_key(j, "content");
}

/* ---- streams ---- */

static void begin_stream(struct answer_sink *a)
{
    struct json_out j = answer_event(a, "message_start");
    json_out_member_object(&j, "message");
    put_message(a, &j);
    json_out_array(&j);
    json_out_array_end(&j);
    json_out_member_null(&j, "stop_reason");
    json_out_member_null(&j, "stop_sequence");
    put_usage(&j, &a->prompt);
    json_out_object_end(&j);
    answer_event_end(a, &j);
    j = answer_event(a, "ping");
    answer_event_end(a, &j);
}

static void close_block(struct answer_sink *a, const struct sink_done *d)
{
    (void)d;
    struct json_out j = answer_event(a, "content_block_stop");
    json_out_member_uint(&j, "index", a->n_parts);
    answer_event_end(a, &j);
}

static void open_block(struct answer_sink *a, const struct sink_call *e)
{
    struct json_out j = answer_event(a, "content_block_start");
    json_out_member_uint(&j, "index", a->n_parts);
    json_out_member_object(&j, "content_block");
    json_out_member_str(&j, "type", e ? "tool_use" : "text");
    if (e) {
        json_out_member_str(&j, "id", e->id);
        json_out_member_str(&j, "name", e->name);
        json_out_member_object(&j, "input");
        json_out_object_end(&j);
    } else {
        json_out_member_str(&j, "text", "");
    }
    json_out_object_end(&j);
    answer_event_end(a, &j);
}

static void send_delta(struct answer_sink *a, const char *type, const char *key, const char *p,
                       size_t n)
{
    struct json_out j = answer_event(a, "content_block_delta");
    json_out_member_uint(&j, "index", a->n_parts);
    json_out_member_object(&j, "delta");
    json_out_member_str(&j, "type", type);
    json_out_member_strn(&j, key, p, n);
    json_out_object_end(&j);
    answer_event_end(a, &j);
}

/* The block of the thought, in front of the others. */
static void open_thought(struct anthropic_answer *a)
{
    struct json_out j = answer_event(&a->answer, "content_block_start");
    json_out_member_uint(&j, "index", a->answer.n_parts);
    json_out_member_object(&j, "content_block");
    json_out_member_str(&j, "type", "thinking");
    json_out_member_str(&j, "thinking", "");
    json_out_member_str(&j, "signature", "");
    json_out_object_end(&j);
    answer_event_end(&a->answer, &j);
    a->thought_is_open = true;
}

static void close_thought(struct anthropic_answer *a)
{
    if (!a->thought_is_open)
        return;
    close_block(&a->answer, NULL);
    a->answer.n_parts++;
    a->thought_is_open = false;
}

static void stream_piece(void *ctx, bool thought, const char *text, size_t n)
{
    struct anthropic_answer *a = ctx;
    if (thought) {
        if (!a->thought_is_open)
            open_thought(a);
        send_delta(&a->answer, "thinking_delta", "thinking", text, n);
        return;
    }
    close_thought(a);
    answer_open_part(&a->answer, NULL);
    send_delta(&a->answer, "text_delta", "text", text, n);
}

/* Nothing more can belong to the thought. */
static void settle_thought(struct anthropic_answer *a)
{
    thinking_end(&a->thinking, stream_piece, a);
    close_thought(a);
}

static void stream_text(struct answer_sink *a, const struct sink_token *t)
{
    if (t->text_bytes > 0)
        thinking_push(&anthropic_of(a)->thinking, t->text, t->text_bytes, stream_piece, a);
}

static void stream_call(struct answer_sink *a, const struct sink_call *e)
{
    if (e->begins) {
        settle_thought(anthropic_of(a));
        answer_open_part(a, e);
    }
    if (e->text_bytes > 0)
        send_delta(a, "input_json_delta", "partial_json", e->text, e->text_bytes);
    if (e->ends)
        answer_close_part(a, NULL);
}

static void stream_end(struct answer_sink *a, const struct sink_done *d)
{
    settle_thought(anthropic_of(a));
    answer_close_part(a, d);
    struct json_out j = answer_event(a, "message_delta");
    json_out_member_object(&j, "delta");
    put_stop(a, &j, d);
    json_out_object_end(&j);
    put_usage(&j, &d->usage);
    answer_event_end(a, &j);
    j = answer_event(a, "message_stop");
    answer_event_end(a, &j);
}

/* ---- whole answers ---- */

static void put_block(struct json_out *j, const struct answer_part *p)
{
    json_out_object(j);
    json_out_member_str(j, "type", p->is_call ? "tool_use" : "text");
    if (p->is_call) {
        json_out_member_str(j, "id", p->call.id);
        json_out_member_str(j, "name", p->call.name);
        json_out_member_raw(j, "input", p->call.arguments, p->call.arguments_bytes);
    } else {
        json_out_member_strn(j, "text", p->text, p->text_bytes);
    }
    json_out_object_end(j);
}

static void put_thought(struct json_out *j, const struct thinking_parts *parts)
{
    json_out_object(j);
    json_out_member_str(j, "type", "thinking");
    json_out_member_strn(j, "thinking", parts->thought, parts->thought_bytes);
    json_out_member_str(j, "signature", "");
    json_out_object_end(j);
}

/* Takes the thought, which ends at `begin`, from the part.  True: nothing else is in it. */
static bool skip_thought(struct answer_part *p, size_t begin)
{
    if (p->is_call || begin <= p->from.text)
        return false;
    const size_t skip = begin - p->from.text < p->text_bytes ? begin - p->from.text : p->text_bytes;
    p->text += skip;
    p->text_bytes -= skip;
    return p->text_bytes == 0;
}

static void put_whole(struct answer_sink *a, const struct sink_done *d)
{
    struct json_out j = json_out_make(&a->call->out);
    struct answer_cursor at = {0};
    struct answer_part p;
    json_out_object(&j);
    put_message(a, &j);
    json_out_array(&j);
    const struct buf *text = &a->choices[0].text;
    const struct thinking_parts parts = thinking_split(buf_str(text), text->len);
    if (parts.thought)
        put_thought(&j, &parts);
    while (answer_next_part(&a->choices[0], &at, &p))
        if (!skip_thought(&p, parts.answer_at))
            put_block(&j, &p);
    json_out_array_end(&j);
    put_stop(a, &j, d);
    put_usage(&j, &d->usage);
    json_out_object_end(&j);
    buf_putc(j.b, '\n');
}

static void put_count(struct answer_sink *a, const struct sink_done *d)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    json_out_member_uint(&j, "input_tokens", d->usage.prompt_tokens);
    json_out_object_end(&j);
}

static const struct answer_dialect messages = {.frame = &answer_events,
                                               .failure_event = "error",
                                               .begin = begin_stream,
                                               .text = stream_text,
                                               .call = stream_call,
                                               .open_part = open_block,
                                               .close_part = close_block,
                                               .end = stream_end,
                                               .whole = put_whole};
static const struct answer_dialect tokens = {.frame = &answer_events, .whole = put_count};

/* ---- handlers ---- */

static void start(struct call *c, bool count)
{
    struct fields_error e = {{0}, {0}, NULL};
    bool stream = false;
    struct request *r = call_request(c);
    if (!r)
        return;
    int rc = anthropic_read(r, &stream, c->json, count, c->lenient, &e);
    if (rc < 0) {
        call_fail_fields(c, &e);
        flow_give_request(&c->gl->flow, r);
        return;
    }
    stream &= !count;
    r->generate.progress = stream; /* message_start has the prompt's token count */
    struct anthropic_answer *a =
        answer_create(c, r, sizeof(*a), count ? &tokens : &messages, stream);
    if (!a)
        return;
    answer_make_id(&a->answer, "msg_");
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
