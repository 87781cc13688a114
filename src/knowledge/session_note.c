/* session_note.c - see session_note.h. */
#include "knowledge/session_note.h"

#include <string.h>

#include "flow/stages.h"

#define MAX_NOTE_BYTES ((size_t)4 << 10)
#define NOTE_TOKENS 200u
#define NOTE_SENTENCES 6u
#define INSTRUCTION                                                                                \
    "Condense this beginning of a conversation into a short note of the facts that matter later: " \
    "names, numbers, wishes and decisions. Write the note only."

static void add_text(struct session_note *x, const char *text, size_t n)
{
    const size_t room = MAX_NOTE_BYTES - x->note.len;
    for (size_t i = 0; i < n && i < room; i++)
        buf_putc(&x->note, text[i] ? text[i] : ' '); /* a note is read as a text that ends at NUL */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s, (void)e;
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    add_text(EXECUTOR_OF(s, struct session_note, sink), e->text, e->text_bytes);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    add_text(EXECUTOR_OF(s, struct session_note, sink), e->result->text, e->result->text_bytes);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    (void)s, (void)e;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct session_note *x = EXECUTOR_OF(s, struct session_note, sink);
    x->failed = true;
    x->why = *f;
}

static void finish(struct session_note *x)
{
    if (!x->failed && (x->note.rc < 0 || x->note.len == 0)) {
        x->failed = true;
        failure_of(&x->why, x->note.rc < 0 ? x->note.rc : SHOAL_EFORMAT,
                   "the model has written no note");
    }
    struct buf note = x->note;
    x->done(x, x->failed ? &x->why : NULL); /* x may be gone */
    buf_fini(&note);
}

static void submit(struct session_note *x, struct request *r)
{
    if (r)
        r->input_bytes = x->text_bytes;
    if (r && request_rc(r) == 0) {
        stages_run(x->owner, r, &x->sink);
        return;
    }
    if (r)
        flow_give_request(x->owner, r);
    failure_of(&x->why, SHOAL_ENOMEM, "out of memory");
    x->failed = true;
    finish(x);
}

/* A model that writes: a conversation of its own. */
static void ask(struct session_note *x)
{
    struct request *r = embedding_request(x->owner, &x->who, REQUEST_GENERATE, x->model);
    struct chat_message *m = r ? arena_zalloc_n(&r->arena, 2, sizeof(*m)) : NULL;
    x->asked = true;
    x->failed = false;
    if (m) {
        m[0] = (struct chat_message){
            .role = "system", .content = INSTRUCTION, .content_bytes = strlen(INSTRUCTION)};
        m[1] = (struct chat_message){
            .role = "user", .content = x->text, .content_bytes = x->text_bytes};
        r->generate.chat.messages = m;
        r->generate.chat.n_messages = 2;
        r->generate.n = r->generate.n_prompts = 1;
        r->generate.max_tokens = NOTE_TOKENS;
        r->truncates = true;
        r->no_cache = true;
    }
    submit(x, r);
}

static void on_closed(struct sink *s)
{
    struct session_note *x = EXECUTOR_OF(s, struct session_note, sink);
    x->sink.job = NULL;
    if (x->failed && !x->asked && x->why.kind == FAILURE_INVALID)
        ask(x); /* it does not summarize */
    else
        finish(x);
}

void session_note_run(struct session_note *x)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    x->sink = (struct sink){.ops = &ops};
    x->asked = x->failed = false;
    buf_init(&x->note, MAX_NOTE_BYTES + 1);
    struct request *r = embedding_request(x->owner, &x->who, REQUEST_INFER, x->model);
    struct request_input *in = r ? arena_zalloc(&r->arena, sizeof(*in)) : NULL;
    if (in) {
        *in = (struct request_input){.text = x->text, .text_bytes = x->text_bytes};
        r->infer = (struct request_infer){.kind = SHOAL_KIND_SUMMARIZE,
                                          .inputs = in,
                                          .n_inputs = 1,
                                          .max_sentences = NOTE_SENTENCES,
                                          .max_tokens = NOTE_TOKENS};
    }
    submit(x, r);
}
