/* ask_speak.c - see ask_speak.h. */
#include "apps/home/ask/ask_speak.h"

#include <string.h>

#include "base/utf8.h"
#include "engine/chat/chat_tokens.h"
#include "apps/home/home_truth.h"

#define REPLY_TOKENS 120u

/* The model cannot word the reply. If the deadline passed after something was done, the plain words
 * of it are the reply: an error beside a deed would say that nothing happened. */
static void lose_words(struct ask_request *r, int code, const char *message)
{
    if (code == SHOAL_EDEADLINE && r->plan.n_actions > 0)
        r->wordless = true;
    else
        ask_request_fail(r, code, message);
}

static void reply_event(void *ctx, const struct shoal_event *ev)
{
    struct ask_request *r = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN) {
        if (ev->text_bytes == 0)
            return;
        buf_put(&r->reply, ev->text, ev->text_bytes);
        return;
    }
    if (ev->finish == SHOAL_FINISH_ERROR)
        lose_words(r, ev->code, err_text(ev->code));
    r->step_tokens = ev->generated_tokens;
    ask_request_part_done(r);
}

/* The context is the only message to the reply model. Special tokens in the user's words stay plain
 * text. */
static int reply_tokens(struct ask_request *r, const char *context, int32_t **tokens, size_t *n,
                        struct err *e)
{
    struct chat_message m = {.role = "user"};
    m.content = utf8_repaired(&r->arena, context, strlen(context), &m.content_bytes);
    const struct chat chat = {.messages = &m, .n_messages = 1};
    return r->arena.rc < 0 ? err_set(e, r->arena.rc, "context")
                           : chat_tokens_of(r->reply_engine, &chat, tokens, n, e);
}

void ask_speak_start(struct ask_request *r)
{
    const char *context = r->contexts[r->at_context].text;
    struct err e = {0};
    struct shoal_task *t;
    int32_t *tokens = NULL;
    size_t n = 0;
    r->stage = ASK_STAGE_REPLY;
    atomic_store_explicit(&r->pending, 2, memory_order_relaxed); /* the task, and this function */
    int rc = r->reply_engine ? reply_tokens(r, context, &tokens, &n, &e) : 0;
    r->reply_from = r->reply.len;
    if (rc == 0 && r->at_context > 0) /* replies are joined by a space */
        buf_putc(&r->reply, ' ');
    struct shoal_task_opts o = {.size = sizeof(o),
                                .tokens = tokens,
                                .n_tokens = (uint32_t)n,
                                .max_tokens = REPLY_TOKENS,
                                .deadline_ns = r->deadline_ns,
                                .priority = r->priority,
                                .client = r->client,
                                .weight = r->weight,
                                .event = reply_event,
                                .event_ctx = r};
    if (!r->reply_engine) {
        r->away->ops->reply(r->away, context, &o);
        ask_request_part_done(r);
        return;
    }
    if (rc == 0)
        rc = shoal_task_submit(r->reply_engine, &o, &t, &e);
    shoal_free(tokens);
    if (rc < 0) {
        lose_words(r, e.code, e.msg);
        ask_request_part_done(r);
    } else {
        ask_request_keep_task(r, t);
    }
    ask_request_part_done(r);
}

/* Emits the part of the buffer after `from`, word by word. */
static void speak(struct ask_request *r, size_t from)
{
    const char *text = buf_str(&r->reply);
    for (size_t at = from, n; r->reply.rc == 0 && at < r->reply.len; at += n) {
        n = 1;
        while (at + n < r->reply.len && text[at + n] != ' ')
            n++;
        ask_request_emit(
            r, &(struct ask_event){.kind = ASK_EVENT_TEXT, .text = text + at, .text_bytes = n});
    }
}

/* "Sorry, I can't help with that", once for all that is no deed. */
static bool is_said(struct ask_request *r, size_t gap)
{
    const struct home_draft_context *c = &r->contexts[r->at_context];
    const char *reply = buf_str(&r->reply), *text = reply + r->reply_from + gap;
    size_t n = strlen(text);
    bool deed = c->say && *c->say;
    for (const char *at = reply; !deed && n > 0 && (at = strstr(at, text)) && at < text; at++)
        if ((at == reply || at[-1] == ' ') && at[n] == ' ')
            return true;
    return false;
}

/* The reply to a context is complete: replaces what the model got wrong by plain words. */
void ask_speak_check(struct ask_request *r)
{
    const struct home_draft_context *c = &r->contexts[r->at_context];
    size_t gap = r->at_context > 0 ? 1 : 0;
    if (r->reply.rc == 0 && r->wordless) {
        r->reply.len = r->reply_from + gap;
        buf_puts(&r->reply, c->say ? c->say : "");
        r->wordless = false;
    } else if (r->reply.rc == 0 && c->say && *c->say &&
               !home_truth_holds(&r->arena, c->text, buf_str(&r->reply) + r->reply_from + gap)) {
        r->reply.len = r->reply_from + gap;
        buf_puts(&r->reply, c->say);
    }
    if (r->reply.rc == 0 && is_said(r, gap)) {
        r->reply.len = r->reply_from;
        buf_put(&r->reply, "", 0); /* its end moves too */
    }
    speak(r, r->reply_from);
}

/* Contexts that need no model. */
void ask_speak_plain(struct ask_request *r)
{
    for (; r->at_context < r->n_contexts && !r->contexts[r->at_context].text; r->at_context++) {
        size_t from = r->reply.len;
        if (r->at_context > 0)
            buf_putc(&r->reply, ' ');
        buf_puts(&r->reply, r->contexts[r->at_context].say);
        speak(r, from);
    }
}
