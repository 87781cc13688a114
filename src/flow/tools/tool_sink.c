/* tool_sink.c - see tool_sink.h. */
#include "flow/tools/tool_sink.h"

#include <string.h>

#include "base/hash.h"
#include "flow/sink_front.h"
#include "flow/tools/tool_parse.h"

struct tool_choice {
    struct tool_sink *owner;
    struct tool_parse parse;
    char id[32]; /* of the current call */
    /* The token whose text is being parsed; its first piece of text takes it along. */
    const struct sink_token *token;
};

struct tool_sink {
    struct sink_front front; /* first */
    const struct chat *chat;
    uint64_t salt; /* makes the ids of calls unique */
    bool stream, started;
    uint32_t n; /* choices */
    struct tool_choice *choices;
};

static struct tool_sink *tools_of(struct sink *s)
{
    return (struct tool_sink *)(void *)s; /* its first member */
}

static uint32_t index_of(const struct tool_choice *ch)
{
    return (uint32_t)(ch - ch->owner->choices);
}

/* ---- pieces of an answer ---- */

static void send_text(struct tool_choice *ch, const char *text, size_t n)
{
    struct sink *to = ch->owner->front.to;
    struct sink_token e = {.choice = index_of(ch), .token = -1, .text = text, .text_bytes = n};
    if (ch->token) {
        e = *ch->token;
        e.text = text;
        e.text_bytes = n;
        ch->token = NULL;
    }
    to->ops->token(to, &e);
}

static void make_id(struct tool_choice *ch, uint32_t call)
{
    const struct tool_sink *x = ch->owner;
    uint64_t n = (uint64_t)index_of(ch) << 32 | call;
    memcpy(ch->id, "call_", 5);
    hash_hex(ch->id + 5, hash_mix(x->salt ^ hash_mix(n + 1)));
}

static void on_piece(void *ctx, const struct tool_parse_event *p)
{
    struct tool_choice *ch = ctx;
    struct sink *to = ch->owner->front.to;
    if (p->kind == TOOL_PARSE_TEXT) {
        send_text(ch, p->text, p->text_bytes);
        return;
    }
    if (p->kind == TOOL_PARSE_BEGIN)
        make_id(ch, p->index);
    const struct sink_call e = {.choice = index_of(ch),
                                .index = p->index,
                                .begins = p->kind == TOOL_PARSE_BEGIN,
                                .ends = p->kind == TOOL_PARSE_END,
                                .id = ch->id,
                                .name = ch->owner->chat->tools[p->tool].name,
                                .text = p->kind == TOOL_PARSE_ARGUMENTS ? p->text : "",
                                .text_bytes = p->kind == TOOL_PARSE_ARGUMENTS ? p->text_bytes : 0};
    to->ops->call(to, &e);
}

/* ---- events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct tool_sink *x = tools_of(s);
    const struct chat *c = x->chat;
    for (uint32_t i = 0; i < x->n && !x->started; i++) {
        struct tool_choice *ch = &x->choices[i];
        ch->owner = x;
        tool_parse_init(&ch->parse, e->tools, c->tools, c->n_tools, c->one_call ? 1 : 0, x->stream,
                        on_piece, ch);
    }
    x->started = true;
    sink_front_start(s, e);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct tool_sink *x = tools_of(s);
    if (t->choice >= x->n || t->echo) {
        sink_front_token(s, t);
        return;
    }
    struct tool_choice *ch = &x->choices[t->choice];
    ch->token = t;
    tool_parse_push(&ch->parse, t->text, t->text_bytes);
    if (ch->token && (t->logprobs || t->token >= 0)) /* it counts, even with its text held back */
        send_text(ch, "", 0);
    ch->token = NULL;
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct tool_sink *x = tools_of(s);
    struct sink_done e = *d;
    if (d->choice < x->n && x->started) {
        struct tool_choice *ch = &x->choices[d->choice];
        tool_parse_end(&ch->parse);
        if (ch->parse.rc < 0) {
            struct failure f;
            failure_of(&f, ch->parse.rc, "the answer is too large to be searched for tool calls");
            sink_front_fail(s, &f);
            flow_cancel(&x->front.sink);
            return;
        }
        e.n_calls = ch->parse.n_calls;
    }
    sink_front_done(s, &e);
}

static void on_closed(struct sink *s)
{
    struct tool_sink *x = tools_of(s);
    for (uint32_t i = 0; i < x->n && x->started; i++)
        tool_parse_fini(&x->choices[i].parse);
    sink_front_close(&x->front);
}

/* ---- its place in front of the codec ---- */

bool tool_sink_take(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = sink_front_prompt,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = sink_front_fail,
                                        .closed = on_closed,
                                        .broke_off = sink_front_broke_off,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    if (r->kind != REQUEST_GENERATE || !chat_has_tools(&r->generate.chat))
        return false;
    struct tool_sink *x = arena_zalloc(&r->arena, sizeof(*x));
    uint32_t n = request_choices(&r->generate);
    struct tool_choice *choices = arena_zalloc_n(&r->arena, n, sizeof(*choices));
    if (!x || !choices) {
        flow_refuse_nomem(o, r, s);
        return true;
    }
    *x = (struct tool_sink){
        .chat = &r->generate.chat,
        .salt = hash_bytes(r->id, strnlen(r->id, sizeof(r->id)), hash_mix(r->received_ns)),
        .stream = r->streams && !r->whole_calls,
        .n = n,
        .choices = choices};
    sink_front_open(&x->front, &ops, s);
    request_pass_on(o, r, &x->front.sink);
    return true;
}
