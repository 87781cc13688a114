/* voice_turn.c - see voice_turn.h. */
#include "gateway/api/own/voice_turn.h"

#include <stdio.h>
#include <string.h>

#include "apps/home/site/home_names.h"
#include "apps/home/site/home_things.h"
#include "audio/audio_read.h"
#include "base/clock.h"
#include "base/mem.h"
#include "gateway/api/own/process.h"
#include "gateway/api/sound.h"
#include "gateway/call/call.h"
#include "voice/hearing.h"
#include "wire/multipart.h"

#define MAX_PHRASE_BYTES ((size_t)128 << 10)

/* ---- options ---- */

enum option_kind { OPTION_TEXT, OPTION_BOOL, OPTION_NOT_BOOL };

static const struct option {
    const char *name;
    enum option_kind kind;
    size_t at, cap;
} options[] = {
    {"room", OPTION_TEXT, offsetof(struct voice_ask, room), sizeof(((struct voice_ask *)0)->room)},
    {"session_id", OPTION_TEXT, offsetof(struct voice_ask, session),
     sizeof(((struct voice_ask *)0)->session)},
    {"model", OPTION_TEXT, offsetof(struct voice_ask, model),
     sizeof(((struct voice_ask *)0)->model)},
    {"recognizer", OPTION_TEXT, offsetof(struct voice_ask, recognizer),
     sizeof(((struct voice_ask *)0)->recognizer)},
    {"stream", OPTION_BOOL, offsetof(struct voice_ask, stream), 0},
    {"explain", OPTION_BOOL, offsetof(struct voice_ask, explain), 0},
    {"reply", OPTION_NOT_BOOL, offsetof(struct voice_ask, no_reply), 0},
    {"bias", OPTION_NOT_BOOL, offsetof(struct voice_ask, unbiased), 0},
};
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static bool is(struct str s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static int set_text(char *to, size_t cap, const char *name, struct str v, struct fields_error *e)
{
    if (v.n >= cap || memchr(v.p, '\0', v.n))
        return fields_fail(e, name, "invalid_value", "'%s' must have at most %zu bytes, and no NUL",
                           name, cap - 1);
    memcpy(to, v.p, v.n);
    to[v.n] = '\0';
    return 0;
}

int voice_turn_option(struct voice_ask *ask, const char *name, struct str value, bool lenient,
                      struct fields_error *e)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option *o = &options[i];
        char *at = (char *)ask + o->at;
        if (strcmp(o->name, name) != 0)
            continue;
        if (o->kind == OPTION_TEXT)
            return set_text(at, o->cap, o->name, value, e);
        if (!is(value, "true") && !is(value, "false"))
            return fields_fail(e, o->name, "invalid_type", "'%s' must be true or false", o->name);
        *(bool *)(void *)at = is(value, "true") == (o->kind == OPTION_BOOL);
        return 0;
    }
    return lenient ? 0 : fields_fail(e, name, "unknown_parameter", "unknown option '%.60s'", name);
}

static int read_form(struct voice_ask *ask, struct str *sound, const char *type, const char *body,
                     size_t n, bool lenient, struct fields_error *e)
{
    struct multipart_part part;
    struct multipart m;
    struct err why = {0};
    int rc = multipart_open(&m, type, body, n, &why);
    while (rc == 0 && (rc = multipart_next(&m, &part, &why)) > 0) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)part.name.n, part.name.p);
        if (strcmp(name, "file") == 0)
            *sound = part.content;
        else if (voice_turn_option(ask, name, part.content, lenient, e) < 0)
            return SHOAL_EINVAL;
        rc = 0;
    }
    if (rc < 0)
        return fields_fail(e, "", "invalid_form", "%s", why.msg);
    return sound->p ? 0
                    : fields_fail(e, "file", "missing_required_parameter",
                                  "the form has no file: send the sound in the field 'file'");
}

int voice_turn_read(struct voice_ask *ask, struct str *sound, const char *type, const char *body,
                    size_t n, bool lenient, struct fields_error *e)
{
    *sound = (struct str){body, n};
    if (type && strncmp(type, "multipart/", 10) == 0) {
        *sound = (struct str){NULL, 0};
        if (read_form(ask, sound, type, body, n, lenient, e) < 0)
            return SHOAL_EINVAL;
    }
    if (ask->session[0] && !call_session_ok(ask->session))
        return fields_fail(e, "session_id", "invalid_value",
                           "'session_id' must be 1 to 63 letters, digits or ._:-");
    return 0;
}

/* Options of the query; false: the call has failed. */
static bool read_query(struct call *c, struct voice_ask *ask, struct fields_error *e)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        char v[256];
        if (http_query(c->req, options[i].name, v, sizeof(v)) &&
            voice_turn_option(ask, options[i].name, (struct str){v, strlen(v)}, c->lenient, e) < 0)
            return false;
    }
    return true;
}

void voice_turn_phrases(struct buf *b, struct gw_loop *gl)
{
    struct home_things *things = gl->gw->home.things;
    struct home_file *f = things ? home_things_file(things) : NULL;
    home_names_put(b, f);
    home_file_unref(f);
}

/* The words of a turn as a request of the home, in an empty request. */
static int to_request(struct request *r, const struct voice_ask *ask, const char *text, size_t n,
                      float confidence)
{
    r->kind = REQUEST_ASK;
    r->input_bytes = n;
    r->ask = (struct request_ask){
        .text = request_copy(r, text, n),
        .room = ask->room[0] ? request_copy(r, ask->room, strlen(ask->room)) : NULL,
        .explain = ask->explain,
        .reply = !ask->no_reply,
        .heard = confidence};
    r->model = ask->model[0] ? request_copy(r, ask->model, strlen(ask->model)) : NULL;
    r->streams = ask->stream;
    if (ask->session[0]) {
        memcpy(r->session, ask->session, sizeof(r->session));
        r->remembered = true;
    }
    return request_rc(r);
}

/* ---- a turn ---- */

struct turn {
    struct call *call; /* held */
    struct hearing *hearing;
    struct voice_ask ask;
    double seconds;
    uint64_t start_ns;
};

static void turn_free(struct turn *t)
{
    struct call *c = t->call;
    c->abandon = NULL;
    c->job = NULL;
    mem_free(t);
    call_release(c);
}

static void on_abandon(struct call *c)
{
    struct turn *t = c->job;
    if (t->hearing)
        hearing_cancel(t->hearing);
    turn_free(t);
}

/* Nobody spoke: there is nothing to ask. */
static void answer_nothing(struct call *c, bool stream, const struct process_heard *heard)
{
    struct json_out j = json_out_make(&c->out);
    if (stream) {
        call_begin(c, SSE_TYPE);
        call_event_begin(c, "done");
    }
    json_out_object(&j);
    if (stream)
        json_out_member_str(&j, "type", "done");
    process_put_heard(&j, heard);
    json_out_member_array(&j, "actions");
    json_out_array_end(&j);
    json_out_member_str(&j, "reply", "");
    json_out_object_end(&j);
    if (stream) {
        call_event_end(c);
        call_end_flushed(c);
        return;
    }
    buf_putc(&c->out, '\n');
    call_json(c, 200);
}

static void ask_words(struct turn *t, const struct process_heard *heard)
{
    struct call *c = t->call;
    struct request *r = call_request(c);
    if (!r)
        return;
    if (to_request(r, &t->ask, heard->text, heard->text_bytes, heard->confidence) < 0) {
        flow_give_request(&c->gl->flow, r);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    process_run(c, r, t->ask.stream, heard);
}

static void on_heard(void *ctx, const struct hearing_words *w)
{
    struct turn *t = ctx;
    struct call *c = t->call;
    const struct process_heard heard = {.text = w->text,
                                        .text_bytes = w->text_bytes,
                                        .confidence = w->confidence,
                                        .seconds = t->seconds,
                                        .ns = clock_ns() - t->start_ns};
    c->abandon = NULL;
    if (c->req && w->failure)
        call_fail_with(c, w->failure);
    else if (c->req && w->text_bytes == 0)
        answer_nothing(c, t->ask.stream, &heard);
    else if (c->req)
        ask_words(t, &heard);
    turn_free(t);
}

/* The sound is decoded. */
static void hear(struct call *c, struct request *r, void *ctx)
{
    struct turn *t = mem_zalloc(sizeof(*t));
    if (!t) {
        flow_give_request(&c->gl->flow, r);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *t = (struct turn){.call = c, .ask = *(const struct voice_ask *)ctx, .start_ns = clock_ns()};
    for (uint32_t i = 0; i < r->infer.n_inputs; i++)
        t->seconds += (double)r->infer.inputs[i].n_samples / AUDIO_RATE;
    call_hold(c);
    c->job = t;
    c->abandon = on_abandon;
    hearing_start(&t->hearing, &c->gl->flow, r, on_heard, t);
}

/* The phrases in the request's arena; NULL: none. */
static const char *phrases_for(struct call *c, struct request *r, const struct voice_ask *ask)
{
    struct buf b;
    if (ask->unbiased)
        return NULL;
    buf_init(&b, MAX_PHRASE_BYTES);
    voice_turn_phrases(&b, c->gl);
    const char *text = b.rc == 0 && b.len > 0 ? request_copy(r, buf_str(&b), b.len) : NULL;
    buf_fini(&b);
    return text;
}

void voice_turn_post(struct call *c)
{
    struct fields_error e = {{0}, {0}, NULL};
    const char *type = http_header(c->req, "content-type");
    const size_t n = c->req->body_bytes;
    struct str sound;
    struct request *r = call_request(c);
    if (!r)
        return;
    struct voice_ask *ask = arena_zalloc(&r->arena, sizeof(*ask));
    char *body = ask ? http_take_body(c->req) : NULL;
    const bool memory = body != NULL;
    if (!memory || !read_query(c, ask, &e) ||
        voice_turn_read(ask, &sound, type, body, n, c->lenient, &e) < 0) {
        mem_free(body);
        flow_give_request(&c->gl->flow, r);
        if (memory)
            call_fail_fields(c, &e);
        else
            call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    r->model = ask->recognizer[0] ? ask->recognizer : NULL;
    const struct sound_ask what = {
        .sound = sound, .phrases = phrases_for(c, r, ask), .then = hear, .ctx = ask};
    sound_decode(c, r, body, n, &what);
}
