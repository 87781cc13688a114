/* transcriptions.c - see transcriptions.h: the handler, and results to answers. */
#include "gateway/api/openai/transcriptions.h"

#include "audio/audio_read.h"
#include "audio/language.h"
#include "base/mem.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/sound.h"
#include "wire/json_out.h"

struct transcription {
    struct answer_sink answer; /* first */
    enum transcriptions_form form;
    bool translates;
    const struct request_input *inputs;
    struct transcript heard;
    double at; /* seconds: the end of the last window */
};

/* ---- answers ---- */

static struct transcription *of(struct answer_sink *a)
{
    return (struct transcription *)(void *)a; /* its first member */
}

static void add(struct transcription *t, uint32_t i, const struct shoal_result *r)
{
    const double end = t->at + (double)t->inputs[i].n_samples / AUDIO_RATE;
    transcript_add_result(&t->heard, t->at, end, r);
    t->at = end;
}

static void put_usage(struct transcription *t, struct json_out *j)
{
    json_out_member_object(j, "usage");
    json_out_member_str(j, "type", "duration");
    json_out_member_num(j, "seconds", t->at);
    json_out_object_end(j);
}

static void put_whole(struct answer_sink *a, const struct sink_done *d)
{
    struct transcription *t = of(a);
    struct buf *out = &a->call->out;
    struct json_out j = json_out_make(out);
    (void)d;
    for (uint32_t i = 0; i < a->n_results; i++)
        add(t, i, a->results[i]);
    if (t->heard.text.rc < 0 || t->heard.parts.rc < 0 || t->heard.words.rc < 0)
        out->rc = SHOAL_ENOMEM;
    if (t->form == TRANSCRIPTIONS_TEXT || t->form == TRANSCRIPTIONS_SRT ||
        t->form == TRANSCRIPTIONS_VTT) {
        transcript_put(&t->heard, out,
                       t->form == TRANSCRIPTIONS_SRT   ? TRANSCRIPT_SRT
                       : t->form == TRANSCRIPTIONS_VTT ? TRANSCRIPT_VTT
                                                       : TRANSCRIPT_TEXT);
        return;
    }
    json_out_object(&j);
    if (t->form == TRANSCRIPTIONS_VERBOSE) {
        json_out_member_str(&j, "task", t->translates ? "translate" : "transcribe");
        json_out_member_str(&j, "language", language_name(t->heard.language));
        transcript_json(&t->heard, &j);
    } else {
        json_out_member_strn(&j, "text", buf_str(&t->heard.text), t->heard.text.len);
    }
    put_usage(t, &j);
    json_out_object_end(&j);
    buf_putc(out, '\n');
}

static void send_plain(struct call *c)
{
    call_text(c, 200, "text/plain; charset=utf-8", buf_str(&c->out), c->out.len);
}

/* A window of a stream: its text, with the space that parts it from the one before. */
static void put_delta(struct answer_sink *a, const struct sink_result *e)
{
    struct transcription *t = of(a);
    const size_t before = t->heard.text.len;
    add(t, e->index, e->result);
    if (t->heard.text.rc < 0 || t->heard.text.len == before)
        return;
    struct json_out j = answer_event(a, "transcript.text.delta");
    json_out_member_strn(&j, "delta", buf_str(&t->heard.text) + before, t->heard.text.len - before);
    answer_event_end(a, &j);
}

static void put_end(struct answer_sink *a, const struct sink_done *d)
{
    struct transcription *t = of(a);
    (void)d;
    if (t->heard.text.rc < 0) {
        a->call->out.rc = SHOAL_ENOMEM;
        return;
    }
    struct json_out j = answer_event(a, "transcript.text.done");
    json_out_member_strn(&j, "text", buf_str(&t->heard.text), t->heard.text.len);
    put_usage(t, &j);
    answer_event_end(a, &j);
    call_event_last(a->call);
}

static void closed(struct answer_sink *a)
{
    transcript_fini(&of(a)->heard);
}

/* ---- the handler ---- */

static void start(struct call *c, struct request *r, void *ctx)
{
    const struct transcriptions_ask *ask = ctx;
    static const struct answer_frame plain = {.type = "text/plain", .send = send_plain};
    static const struct answer_dialect json = {.frame = &answer_events,
                                               .result = put_delta,
                                               .end = put_end,
                                               .whole = put_whole,
                                               .closed = closed};
    static const struct answer_dialect text = {
        .frame = &plain, .whole = put_whole, .closed = closed};
    const bool is_json = ask->form == TRANSCRIPTIONS_JSON || ask->form == TRANSCRIPTIONS_VERBOSE;
    struct transcription *t = answer_create(c, r, sizeof(*t), is_json ? &json : &text, ask->stream);
    if (!t)
        return;
    t->form = ask->form;
    t->translates = ask->translates;
    t->inputs = r->infer.inputs;
    transcript_init(&t->heard);
    r->infer.labels = ask->language;
    r->infer.words = ask->words;
    stages_run(&c->gl->flow, r, c->sink);
}

static void hear(struct call *c, bool translates)
{
    struct fields_error e = {{0}, {0}, NULL};
    const char *type = http_header(c->req, "content-type");
    const size_t n = c->req->body_bytes;
    struct request *r = call_request(c);
    if (!r)
        return;
    struct transcriptions_ask *ask = arena_zalloc(&r->arena, sizeof(*ask));
    char *body = ask ? http_take_body(c->req) : NULL;
    if (!body) {
        flow_give_request(&c->gl->flow, r);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    if (transcriptions_read(r, ask, type, body, n, translates, c->lenient, &e) < 0) {
        mem_free(body);
        flow_give_request(&c->gl->flow, r);
        call_fail_fields(c, &e);
        return;
    }
    sound_decode(c, r, body, n,
                 &(struct sound_ask){
                     .sound = ask->sound, .phrases = ask->prompt, .then = start, .ctx = ask});
}

void transcriptions_create(struct call *c)
{
    hear(c, false);
}

void transcriptions_translate(struct call *c)
{
    hear(c, true);
}
