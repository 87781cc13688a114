/* voice_ws.c - see voice_ws.h. */
#include "gateway/ws/voice_ws.h"

#include <string.h>

#include "base/mem.h"
#include "gateway/api/live_sound.h"
#include "gateway/call/call.h"
#include "gateway/call/guard.h"
#include "gateway/call/inner_call.h"
#include "net/ws.h"
#include "voice/ear.h"
#include "voice/wake.h"
#include "wire/json_scan.h"

#define MAX_MESSAGE_BYTES ((size_t)1 << 20)
#define MAX_OUT_BYTES ((size_t)4 << 20)
#define MAX_VALUES 64u
#define MAX_ASKS 4u /* turns that are being answered */

struct session;

struct asking { /* a turn that is being answered */
    struct session *session;
    struct inner_call *call; /* NULL: the place is free */
    uint32_t turn;
    bool used;
};

struct session {
    struct live_sound live; /* first */
    struct voice_ask ask;
    bool listens;
    bool wakes; /* each turn needs the wake word */
    struct asking asks[MAX_ASKS];
    uint32_t turn; /* counts from 1 */
};

/* ---- messages to the client ---- */

static struct json_out begin(struct session *s, const char *type)
{
    buf_clear(&s->live.out);
    struct json_out j = json_out_make(&s->live.out);
    json_out_object(&j);
    json_out_member_str(&j, "type", type);
    return j;
}

static void send(struct session *s, struct json_out *j)
{
    json_out_object_end(j);
    live_send(&s->live);
}

static void send_error(struct session *s, uint32_t turn, const char *code, const char *message)
{
    struct json_out j = begin(s, "error");
    if (turn)
        json_out_member_num(&j, "turn", turn);
    json_out_member_object(&j, "error");
    json_out_member_str(&j, "message", message);
    json_out_member_str(&j, "code", code);
    json_out_object_end(&j);
    send(s, &j);
}

/* ---- answers ---- */

static bool is_busy(const struct session *s)
{
    bool busy = live_works(&s->live);
    for (uint32_t i = 0; i < MAX_ASKS; i++)
        busy |= s->asks[i].used;
    return busy;
}

static void rest(struct session *s)
{
    if (!is_busy(s))
        live_rest(&s->live);
}

/* An event of /v1/process, with the number of its turn. */
static void on_event(void *ctx, const char *json, size_t n)
{
    struct asking *a = ctx;
    struct session *s = a->session;
    struct buf *out = &s->live.out;
    buf_clear(out);
    buf_printf(out, "{\"turn\":%u,", a->turn);
    buf_put(out, json + 1, n - 1); /* it begins with a brace */
    if (s->live.ws && out->rc == 0 && n > 2)
        ws_send(s->live.ws, buf_str(out), out->len);
}

static void on_end(void *ctx, int status, const char *body, size_t n)
{
    struct asking *a = ctx;
    struct session *s = a->session;
    a->used = false;
    a->call = NULL;
    if (status != 200) { /* refused before it began: the body is an error */
        cJSON *json = cJSON_ParseWithLength(body, n);
        const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error");
        const char *msg = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "message"));
        send_error(s, a->turn, "failed", msg ? msg : "the command could not be answered");
        cJSON_Delete(json);
    }
    rest(s);
}

static cJSON *body_of(const struct session *s, const struct listener_turn *t)
{
    cJSON *j = cJSON_CreateObject();
    char *text = mem_zalloc(t->text_bytes + 1);
    if (text)
        memcpy(text, t->text, t->text_bytes);
    bool ok = j && text && cJSON_AddStringToObject(j, "text", text) &&
              cJSON_AddNumberToObject(j, "heard", (double)t->confidence) &&
              cJSON_AddTrueToObject(j, "stream") &&
              cJSON_AddBoolToObject(j, "reply", !s->ask.no_reply);
    if (ok && s->ask.room[0])
        ok = cJSON_AddStringToObject(j, "room", s->ask.room) != NULL;
    if (ok && s->ask.session[0])
        ok = cJSON_AddStringToObject(j, "session_id", s->ask.session) != NULL;
    if (ok && s->ask.model[0])
        ok = cJSON_AddStringToObject(j, "model", s->ask.model) != NULL;
    mem_free(text);
    if (!ok) {
        cJSON_Delete(j);
        return NULL;
    }
    return j;
}

static void ask_turn(struct session *s, const struct listener_turn *t)
{
    static const struct inner_call_ops ops = {on_event, on_end};
    const struct inner_call_opts o = {.path = "/v1/process",
                                      .authorization = s->live.authorization,
                                      .peer = s->live.peer,
                                      .protocol = "websocket",
                                      .account = s->live.account};
    struct asking *a = s->asks;
    while (a < s->asks + MAX_ASKS && a->used)
        a++;
    if (a == s->asks + MAX_ASKS) {
        send_error(s, s->turn, "busy", "too many turns are being answered");
        return;
    }
    *a = (struct asking){.session = s, .turn = s->turn, .used = true};
    inner_call_start(&a->call, s->live.gl, &o, body_of(s, t), &ops, a);
}

/* ---- hearing ---- */

static void on_partial(void *ctx, const char *text, size_t n)
{
    struct session *s = ctx;
    struct json_out j = begin(s, "partial");
    json_out_member_num(&j, "turn", s->turn + 1);
    json_out_member_strn(&j, "text", text, n);
    send(s, &j);
}

static void on_turn(void *ctx, const struct listener_turn *t)
{
    struct session *s = ctx;
    s->turn++;
    struct json_out j = begin(s, "transcript");
    json_out_member_num(&j, "turn", s->turn);
    json_out_member_strn(&j, "text", t->text, t->text_bytes);
    json_out_member_num(&j, "confidence", (double)t->confidence);
    json_out_member_num(&j, "start", t->start_s);
    json_out_member_num(&j, "end", t->end_s);
    json_out_member_num(&j, "hearings", t->n_hearings);
    json_out_member_num(&j, "clipped", (double)t->clipped);
    send(s, &j);
    buf_clear(&s->live.phrases);
    if (t->text_bytes > 0 && !s->listens && s->live.ws)
        ask_turn(s, t);
}

static void on_woken(void *ctx)
{
    struct session *s = ctx;
    struct json_out j = begin(s, "wake");
    json_out_member_str(&j, "word", wake_word(s->live.gl->gw->wake));
    send(s, &j);
}

static void on_asleep(void *ctx)
{
    struct session *s = ctx;
    struct json_out j = begin(s, "asleep");
    send(s, &j);
}

static void on_failed(void *ctx, const struct failure *f)
{
    struct session *s = ctx;
    send_error(s, ++s->turn, f->reason ? f->reason : "failed", f->message);
}

static struct request *new_request(void *ctx)
{
    struct session *s = ctx;
    return live_request(&s->live, "/v1/voice", s->ask.recognizer);
}

static const char *phrases(void *ctx)
{
    const struct session *s = ctx;
    return s->ask.unbiased ? NULL : live_home_phrases(ctx);
}

/* ---- messages of the client ---- */

static const char *read_form(struct pcm_form *f, const cJSON *json)
{
    const cJSON *rate = cJSON_GetObjectItemCaseSensitive(json, "rate");
    const cJSON *channels = cJSON_GetObjectItemCaseSensitive(json, "channels");
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(json, "format");
    const char *name = cJSON_GetStringValue(format);
    if ((rate &&
         (!cJSON_IsNumber(rate) || !(rate->valuedouble >= 1 && rate->valuedouble <= 1e6))) ||
        (channels && (!cJSON_IsNumber(channels) ||
                      !(channels->valuedouble >= 1 && channels->valuedouble <= 1000))))
        return "'rate' and 'channels' must be numbers";
    if (format && (!name || (strcmp(name, "s16") != 0 && strcmp(name, "f32") != 0)))
        return "'format' must be s16 or f32";
    if (rate)
        f->rate = (uint32_t)rate->valuedouble;
    if (channels)
        f->channels = (uint32_t)channels->valuedouble;
    if (name) {
        f->is_float = strcmp(name, "f32") == 0;
        f->width = f->is_float ? 4 : 2;
    }
    return NULL;
}

static const char *read_start(struct voice_ws_message *m, const cJSON *json)
{
    static _Thread_local struct fields_error e;
    static const char *const known[] = {"type", "rate", "channels", "format"};
    const cJSON *v;
    const char *wrong = read_form(&m->form, json);
    cJSON_ArrayForEach(v, json)
    {
        bool skip = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            skip |= strcmp(v->string, known[i]) == 0;
        if (wrong || skip)
            continue;
        if (strcmp(v->string, "ask") == 0 && cJSON_IsBool(v)) {
            m->listens = cJSON_IsFalse(v);
            continue;
        }
        if (strcmp(v->string, "wake") == 0 && cJSON_IsBool(v)) {
            m->wakes = cJSON_IsTrue(v);
            continue;
        }
        const char *text = cJSON_IsString(v) ? v->valuestring : cJSON_IsTrue(v) ? "true" : "false";
        e = (struct fields_error){{0}, {0}, NULL};
        if (!cJSON_IsString(v) && !cJSON_IsBool(v))
            wrong = "options of a turn are texts, or true or false";
        else if (voice_turn_option(&m->ask, v->string, (struct str){text, strlen(text)}, false,
                                   &e) < 0)
            wrong = e.msg;
    }
    if (!wrong && m->ask.session[0] && !call_session_ok(m->ask.session))
        wrong = "'session_id' must be 1 to 63 letters, digits or ._:-";
    return wrong;
}

const char *voice_ws_read(struct voice_ws_message *m, const char *p, size_t n)
{
    struct json_scan scan;
    if (json_scan(&scan, p, n, MAX_VALUES, NULL) < 0)
        return "a message must be a JSON object of a few values, without NUL";
    cJSON *json = cJSON_ParseWithLength(p, n);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "type"));
    const char *wrong = NULL;
    if (!type)
        wrong = "a message must be a JSON object with a \"type\"";
    else if (strcmp(type, "start") == 0)
        m->type = VOICE_WS_START, wrong = read_start(m, json);
    else if (strcmp(type, "end") == 0)
        m->type = VOICE_WS_END;
    else if (strcmp(type, "cancel") == 0)
        m->type = VOICE_WS_CANCEL;
    else
        wrong = "\"type\" must be start, end or cancel";
    cJSON_Delete(json);
    return wrong;
}

/* What was being heard or answered is dropped. */
static void drop_all(struct session *s)
{
    for (uint32_t i = 0; i < MAX_ASKS; i++) {
        if (s->asks[i].used && s->asks[i].call)
            inner_call_cancel(s->asks[i].call);
        s->asks[i] = (struct asking){0};
    }
    live_forget(&s->live);
}

static bool open_ear(struct session *s)
{
    static const struct listener_ops ops = {.partial = on_partial,
                                            .turn = on_turn,
                                            .woken = on_woken,
                                            .asleep = on_asleep,
                                            .failed = on_failed,
                                            .room = live_room,
                                            .request = new_request,
                                            .phrases = phrases};
    struct wake_ear *ear = NULL;
    struct err e = {0};
    int rc = live_listen(&s->live, &ops, &e);
    if (rc == 1 && s->wakes && (rc = wake_ear_create(&ear, s->live.gl->gw->wake, &e)) == 0)
        listener_await(s->live.listener, ear);
    if (rc < 0)
        send_error(s, 0, "invalid_sound", e.msg);
    return rc >= 0;
}

static void start(struct session *s, const struct voice_ws_message *m)
{
    drop_all(s);
    s->live.form = m->form;
    s->ask = m->ask;
    s->listens = m->listens;
    s->wakes = m->wakes;
    buf_clear(&s->live.phrases);
    if (s->wakes && !s->live.gl->gw->wake) {
        s->wakes = false;
        send_error(s, 0, "no_wake_word",
                   "this server has no wake word: set 'wake' in its configuration");
        return;
    }
    if (!open_ear(s))
        return;
    struct json_out j = begin(s, "ready");
    json_out_member_num(&j, "rate", s->live.form.rate);
    send(s, &j);
}

static void on_text(struct session *s, const char *p, size_t n)
{
    struct voice_ws_message m = {.form = {.rate = EAR_RATE, .channels = 1, .width = 2}};
    const char *wrong = voice_ws_read(&m, p, n);
    if (wrong)
        send_error(s, 0, "invalid_message", wrong);
    else if (m.type == VOICE_WS_START)
        start(s, &m);
    else if (m.type == VOICE_WS_CANCEL)
        drop_all(s);
    else if (open_ear(s))
        listener_finish(s->live.listener);
}

static void on_sound(struct session *s, const char *p, size_t n)
{
    struct err e = {0};
    const int rc = open_ear(s) ? live_feed(&s->live, p, n, &e) : 0;
    if (rc < 0)
        send_error(s, 0, rc == SHOAL_EBUSY || rc == SHOAL_ENOMEM ? "busy" : "invalid_sound", e.msg);
}

static void on_message(struct ws *w, const char *p, size_t n, bool text)
{
    struct session *s = ws_user(w);
    if (text && (n > WS_CHECKED_BYTES))
        ws_close(w, 1009);
    else if (text)
        on_text(s, p, n);
    else if (!s->live.draining)
        on_sound(s, p, n);
}

/* ---- the connection ---- */

static void session_free(struct session *s)
{
    if (!s)
        return;
    drop_all(s);
    live_fini(&s->live);
    mem_free(s);
}

static void on_closed(struct ws *w)
{
    struct session *s = ws_user(w);
    s->live.ws = NULL;
    session_free(s);
}

static void on_drained(struct ws *w)
{
    (void)w;
}

static void on_drain(struct ws *w)
{
    struct session *s = ws_user(w);
    live_drain(&s->live, is_busy(s));
}

static bool on_busy(struct ws *w)
{
    return is_busy(ws_user(w));
}

void voice_ws(struct call *c)
{
    static const struct ws_ops callbacks = {on_message, on_drained, on_closed, on_drain, on_busy};
    if (!guard_origin(c)) /* browsers let any page open a WebSocket to any server */
        return;
    struct session *s = mem_zalloc(sizeof(*s));
    if (!s)
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
    else if (!live_open(&s->live, c, MAX_MESSAGE_BYTES, MAX_OUT_BYTES) ||
             !live_accept(&s->live, c, &callbacks, s, MAX_MESSAGE_BYTES))
        session_free(s);
}
