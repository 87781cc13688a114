/* grpc_recognize.c - see grpc_recognize.h. */
#include "gateway/grpc/grpc_recognize.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <shoal/v1/shoal.pb-c.h>

#include "base/mem.h"
#include "flow/failure.h"
#include "gateway/api/live_sound.h"
#include "gateway/call/call.h"
#include "gateway/grpc/grpc_answer.h"
#include "gateway/grpc/grpc_call.h"
#include "voice/ear.h"
#include "wire/pb.h"

#define MAX_MESSAGE_BYTES ((size_t)512 << 10) /* below a stream's window, which is 1 MiB */
#define MAX_FIELDS 4096u
#define MAX_OUT_BYTES ((size_t)1 << 20)
#define OUT_BYTES ((size_t)128 << 10) /* pending output at which we stop reading */

struct session {
    struct live_sound live; /* first */
    struct call *call;      /* the stream, held; NULL: its client is gone */
    char model[128], language[8];
    bool home, has_first;
    bool stopped; /* the client sends no more */
    bool over;    /* it is ended by `end`: a listener cannot be destroyed in its own callback */
    bool pumping, failed;
    struct failure failure; /* with failed */
    char param[64];         /* of the failure */
    struct buf text;
    size_t used; /* consumed bytes of the body */
    uint32_t turn;
    struct executor_task end;
};

/* ---- messages ---- */

static int read_form(struct pcm_form *form, const Shoal__V1__RecognizeRequest *m,
                     struct fields_error *e)
{
    const bool is_float = strcmp(m->format, "f32") == 0;
    if (m->format[0] && !is_float && strcmp(m->format, "s16") != 0)
        return fields_fail(e, "format", "invalid_value", "'format' must be s16 or f32");
    *form = (struct pcm_form){.rate = m->rate ? m->rate : EAR_RATE,
                              .channels = m->channels ? m->channels : 1,
                              .width = is_float ? 4 : 2,
                              .is_float = is_float};
    return 0;
}

static int read_settings(struct grpc_recognize_ask *ask, const Shoal__V1__RecognizeRequest *m,
                         struct fields_error *e)
{
    const size_t n = strlen(m->language);
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)m->language[i]) || n > 3)
            return fields_fail(e, "language", "invalid_value",
                               "'language' must be a code of two or three small letters, such as "
                               "en");
    if (strlen(m->model) >= sizeof(((struct session *)NULL)->model))
        return fields_fail(e, "model", "invalid_value", "'model' is no name of a model");
    ask->model = m->model;
    ask->language = m->language;
    ask->phrases = (const char *const *)m->phrases;
    ask->n_phrases = m->n_phrases;
    ask->home = m->home;
    return read_form(&ask->form, m, e);
}

int grpc_recognize_read(struct grpc_recognize_ask *ask, struct arena *a, const uint8_t *p, size_t n,
                        bool first, struct fields_error *e)
{
    char path[sizeof(e->param)];
    *ask = (struct grpc_recognize_ask){.model = "", .language = ""};
    int rc =
        pb_check(&shoal__v1__recognize_request__descriptor, p, n, MAX_FIELDS, path, sizeof(path));
    if (rc == SHOAL_EFORMAT)
        return fields_fail(e, path, "invalid_value",
                           "'%s' contains NUL (\\0), which is not allowed in a request", path);
    const Shoal__V1__RecognizeRequest *m =
        rc < 0 ? NULL : pb_unpack(&shoal__v1__recognize_request__descriptor, a, p, n);
    if (!m)
        return rc < 0 ? rc : a->rc < 0 ? SHOAL_ENOMEM : SHOAL_EFORMAT;
    ask->audio = m->audio.data;
    ask->n_audio = m->audio.len;
    ask->end = m->end;
    if (first)
        return read_settings(ask, m, e);
    if (m->model[0] || m->rate || m->channels || m->format[0] || m->language[0] || m->n_phrases ||
        m->home)
        return fields_fail(e, "model", "invalid_value",
                           "model, rate, channels, format, language, phrases and home belong to "
                           "the first message");
    return 0;
}

/* ---- the end ---- */

static void on_end(struct executor_task *t)
{
    struct session *s = LOOP_OF(t, struct session, end);
    struct gw_loop *gl = s->live.gl;
    struct call *c = s->call;
    if (c) {
        c->job = NULL;
        c->arrived = c->resume = c->abandon = NULL;
        if (s->failed)
            grpc_answer_fail(c, &s->failure, s->model[0] ? s->model : NULL);
        else
            grpc_call_finish(c);
        call_release(c);
    }
    live_fini(&s->live);
    buf_fini(&s->text);
    mem_free(s);
    gl->flow.n_jobs--;
}

static void end(struct session *s)
{
    if (s->over)
        return;
    s->over = true;
    s->end.fn = on_end;
    s->live.gl->flow.n_jobs++;
    executor_post(s->live.gl->flow.executor, &s->end);
}

static void fail(struct session *s, const struct failure *f)
{
    if (!s->failed)
        s->failure = *f;
    s->failed = true;
    end(s);
}

static void fail_with(struct session *s, int code, const char *param, const char *message)
{
    struct failure f;
    failure_of(&f, code, message);
    if (param && !s->failed) {
        snprintf(s->param, sizeof(s->param), "%s", param);
        f.param = s->param;
    }
    fail(s, &f);
}

/* ---- turns ---- */

static void send_words(struct session *s, const Shoal__V1__RecognizeEvent *m)
{
    buf_clear(&s->live.out);
    if (!s->call || s->over)
        return;
    if (pb_put(&s->live.out, &m->base) < 0)
        fail_with(s, SHOAL_ENOMEM, NULL, "out of memory");
    else
        grpc_call_send(s->call, &s->live.out);
}

static char *text_of(struct session *s, const char *text, size_t n)
{
    buf_clear(&s->text);
    grpc_answer_put_utf8(&s->text, text, n);
    return pb_text(buf_str(&s->text));
}

static void on_partial(void *ctx, const char *text, size_t n)
{
    struct session *s = ctx;
    Shoal__V1__RecognizeEvent m = SHOAL__V1__RECOGNIZE_EVENT__INIT;
    m.turn = s->turn + 1;
    m.text = text_of(s, text, n);
    send_words(s, &m);
}

static void on_turn(void *ctx, const struct listener_turn *t)
{
    struct session *s = ctx;
    Shoal__V1__RecognizeEvent m = SHOAL__V1__RECOGNIZE_EVENT__INIT;
    if (t->text_bytes > 0 || !s->stopped) { /* the rest behind the last turn is none */
        m.turn = ++s->turn;
        m.text = text_of(s, t->text, t->text_bytes);
        m.final = true;
        m.confidence = t->confidence;
        m.start = t->start_s;
        m.stop = t->end_s;
        m.language = pb_text(t->language);
        send_words(s, &m);
    }
    if (t->last && s->stopped)
        end(s);
}

static void on_failed(void *ctx, const struct failure *f)
{
    fail(ctx, f);
}

static void pump(struct session *s);

static void on_room(void *ctx)
{
    pump(ctx);
}

static struct request *new_request(void *ctx)
{
    struct session *s = ctx;
    struct request *r = live_request(&s->live, "/shoal.v1.Shoal/Recognize", s->model);
    if (r && s->language[0])
        r->infer.labels = request_copy(r, s->language, strlen(s->language));
    return r;
}

static const char *phrases(void *ctx)
{
    struct session *s = ctx;
    return s->live.phrases.len > 0 && s->live.phrases.rc == 0 ? buf_str(&s->live.phrases) : NULL;
}

/* ---- sound ---- */

static void take_settings(struct session *s, const struct grpc_recognize_ask *ask)
{
    s->has_first = true;
    s->live.form = ask->form;
    memcpy(s->model, ask->model, strlen(ask->model) + 1);
    memcpy(s->language, ask->language, strlen(ask->language) + 1);
    if (ask->home)
        (void)live_home_phrases(&s->live);
    for (size_t i = 0; i < ask->n_phrases; i++) {
        buf_puts(&s->live.phrases, ask->phrases[i]);
        buf_putc(&s->live.phrases, '\n');
    }
}

static bool listen(struct session *s, struct err *e)
{
    static const struct listener_ops ops = {.partial = on_partial,
                                            .turn = on_turn,
                                            .failed = on_failed,
                                            .room = on_room,
                                            .request = new_request,
                                            .phrases = phrases};
    return live_listen(&s->live, &ops, e) >= 0;
}

static void take(struct session *s, const uint8_t *p, size_t n)
{
    struct grpc_recognize_ask ask;
    struct fields_error wrong = {{0}, {0}, NULL};
    struct err e = {0};
    struct arena a;
    arena_init(&a, 16 * MAX_MESSAGE_BYTES);
    const int rc = grpc_recognize_read(&ask, &a, p, n, !s->has_first, &wrong);
    if (rc == 0 && !s->has_first)
        take_settings(s, &ask);
    if (rc == SHOAL_EINVAL)
        fail_with(s, rc, wrong.param, wrong.msg);
    else if (rc < 0)
        fail_with(s, rc == SHOAL_ENOMEM ? rc : SHOAL_EINVAL, NULL,
                  "the body is not one message of this method");
    else if (!listen(s, &e) || live_feed(&s->live, ask.audio, ask.n_audio, &e) < 0)
        fail_with(s, e.code == SHOAL_ENOMEM || e.code == SHOAL_EBUSY ? e.code : SHOAL_EINVAL,
                  "audio", e.msg);
    else if (ask.end)
        listener_finish(s->live.listener);
    arena_fini(&a);
}

/* The client has said all. */
static void stop(struct session *s)
{
    s->stopped = true;
    if (s->used != s->call->req->body_bytes)
        fail_with(s, SHOAL_EINVAL, NULL, "the body is not one message of this method");
    else if (s->live.listener)
        listener_finish(s->live.listener);
    else
        end(s);
}

static bool may_read(const struct session *s)
{
    return s->call && !s->over && !s->stopped && http_queued(s->call->req) <= OUT_BYTES &&
           !(s->live.listener && listener_full(s->live.listener));
}

/* false: there is no whole message. */
static bool next(struct session *s, struct buf *plain)
{
    struct grpc_frame f;
    const int rc = grpc_call_read(s->call, &f, plain, s->used, MAX_MESSAGE_BYTES);
    if (rc == 1) {
        s->used += f.bytes;
        take(s, f.p, f.n);
    } else if (rc == 0 && !s->call->req->more) {
        stop(s);
    } else if (rc < 0) { /* the call is answered */
        struct call *c = s->call;
        s->call = NULL;
        c->job = NULL;
        c->arrived = c->resume = c->abandon = NULL;
        end(s);
        call_release(c);
    }
    return rc == 1;
}

static void pump(struct session *s)
{
    struct buf plain;
    if (s->pumping)
        return;
    s->pumping = true;
    buf_init(&plain, 2 * MAX_MESSAGE_BYTES);
    while (may_read(s) && next(s, &plain))
        ;
    buf_fini(&plain);
    s->pumping = false;
    if (s->call && s->call->req && s->call->req->more && s->used > 0) {
        const size_t used = s->used;
        s->used = 0;
        http_take(s->call->req, used);
    }
}

/* ---- the stream ---- */

static void on_bytes(struct call *c)
{
    if (c->job && c->req)
        pump(c->job);
}

static void on_gone(struct call *c)
{
    struct session *s = c->job;
    if (!s)
        return;
    s->call = NULL;
    c->job = NULL;
    c->arrived = c->resume = c->abandon = NULL;
    end(s);
    call_release(c);
}

void grpc_recognize(struct call *c)
{
    if (!grpc_call_is(c, "Recognize"))
        return;
    struct session *s = mem_zalloc(sizeof(*s));
    if (!s) {
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
        return;
    }
    if (!live_open(&s->live, c, MAX_MESSAGE_BYTES, MAX_OUT_BYTES)) {
        live_fini(&s->live);
        mem_free(s);
        return;
    }
    buf_init(&s->text, MAX_OUT_BYTES);
    s->call = c;
    c->job = s;
    c->arrived = c->resume = on_bytes;
    c->abandon = on_gone;
    call_hold(c);
    grpc_call_begin(c);
    pump(s);
}
