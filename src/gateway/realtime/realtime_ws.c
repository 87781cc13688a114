/* realtime_ws.c - see realtime_ws.h. */
#include "gateway/realtime/realtime_ws.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "gateway/api/live_sound.h"
#include "gateway/call/call.h"
#include "gateway/call/guard.h"
#include "gateway/realtime/realtime_answer.h"
#include "net/ws.h"

#define MAX_MESSAGE_BYTES ((size_t)2 << 20)
#define MAX_OUT_BYTES ((size_t)8 << 20)

struct session {
    struct live_sound live; /* first */
    char model[128], id[40];
    uint64_t n_events;
    bool beta;
    struct realtime_settings settings;
    struct realtime_items items;
    struct realtime_answer answer;
    struct buf turn;    /* words, until it is committed */
    char turn_item[40]; /* "": nobody speaks */
    double sure;        /* confidence of the words, times their bytes */
    bool sounds;        /* there is sound that was not committed */
    bool asked;         /* the client has committed */
    bool answers;       /* a response shall follow when the present one is over */
};

/* ---- events to the client ---- */

static struct json_out begin(void *ctx, const char *type)
{
    struct session *s = ctx;
    char id[40];
    buf_clear(&s->live.out);
    struct json_out j = json_out_make(&s->live.out);
    json_out_object(&j);
    json_out_member_str(&j, "type", type);
    snprintf(id, sizeof(id), "event_%08x%08x", s->items.salt, (unsigned)++s->n_events);
    json_out_member_str(&j, "event_id", id);
    return j;
}

static void end(void *ctx, struct json_out *j)
{
    struct session *s = ctx;
    json_out_object_end(j);
    live_send(&s->live);
}

/* param: the field that is wrong; NULL: none in particular. */
static void send_error_of(struct session *s, const char *type, const char *code,
                          const char *message, const char *param, const char *event_id)
{
    struct json_out j = begin(s, "error");
    json_out_member_object(&j, "error");
    json_out_member_str(&j, "type", type);
    json_out_member_str(&j, "code", code);
    json_out_member_str(&j, "message", message);
    json_out_key(&j, "param");
    if (param)
        json_out_str(&j, param);
    else
        json_out_null(&j);
    json_out_key(&j, "event_id");
    if (event_id)
        json_out_str(&j, event_id);
    else
        json_out_null(&j);
    json_out_object_end(&j);
    end(s, &j);
}

static void send_error(struct session *s, const char *type, const char *code, const char *message,
                       const char *event_id)
{
    send_error_of(s, type, code, message, NULL, event_id);
}

static void put_json(struct json_out *j, const char *key, const cJSON *v)
{
    char *text = cJSON_PrintUnformatted(v);
    json_out_member_raw(j, key, text ? text : "null", strlen(text ? text : "null"));
    cJSON_free(text);
}

static void send_item(struct session *s, const char *type, const cJSON *item)
{
    const char *before = realtime_items_before(&s->items, item);
    struct json_out j = begin(s, type);
    json_out_key(&j, "previous_item_id");
    if (before)
        json_out_str(&j, before);
    else
        json_out_null(&j);
    put_json(&j, "item", item);
    end(s, &j);
}

static void send_new_item(struct session *s, const cJSON *item)
{
    send_item(s, s->beta ? "conversation.item.created" : "conversation.item.added", item);
    if (!s->beta)
        send_item(s, "conversation.item.done", item);
}

static void put_turns(const struct session *s, struct json_out *j)
{
    json_out_key(j, "turn_detection");
    if (!s->settings.vad) {
        json_out_null(j);
        return;
    }
    json_out_object(j);
    json_out_member_str(j, "type", "server_vad");
    json_out_member_bool(j, "create_response", s->settings.creates);
    json_out_member_bool(j, "interrupt_response", s->settings.interrupts);
    json_out_object_end(j);
}

static void put_modalities(const struct session *s, struct json_out *j)
{
    json_out_member_array(j, s->beta ? "modalities" : "output_modalities");
    if (s->beta || !s->settings.audio)
        json_out_str(j, "text");
    if (s->settings.audio)
        json_out_str(j, "audio");
    json_out_array_end(j);
}

static void put_format(struct json_out *j, const char *side, uint32_t rate)
{
    json_out_member_object(j, side);
    json_out_member_object(j, "format");
    json_out_member_str(j, "type", "audio/pcm");
    json_out_member_uint(j, "rate", rate);
    json_out_object_end(j);
}

static void put_sound(const struct session *s, struct json_out *j)
{
    if (s->beta) {
        json_out_member_str(j, "input_audio_format", "pcm16");
        json_out_member_str(j, "output_audio_format", "pcm16");
        json_out_member_str(j, "voice", s->settings.voice);
        put_turns(s, j);
        return;
    }
    json_out_member_object(j, "audio");
    put_format(j, "input", s->settings.rate);
    put_turns(s, j);
    json_out_object_end(j);
    put_format(j, "output", 24000);
    json_out_member_str(j, "voice", s->settings.voice);
    json_out_object_end(j);
    json_out_object_end(j);
}

static void send_session(struct session *s, const char *type)
{
    struct json_out j = begin(s, type);
    json_out_member_object(&j, "session");
    json_out_member_str(&j, "id", s->id);
    json_out_member_str(&j, "object", "realtime.session");
    if (!s->beta)
        json_out_member_str(&j, "type", "realtime");
    json_out_member_str(&j, "model", s->model);
    put_modalities(s, &j);
    put_sound(s, &j);
    json_out_member_str(&j, "instructions",
                        s->settings.instructions ? s->settings.instructions : "");
    if (s->settings.tools)
        put_json(&j, "tools", s->settings.tools);
    json_out_object_end(&j);
    end(s, &j);
}

/* ---- responses ---- */

static bool is_busy(const struct session *s)
{
    return s->answer.active || live_works(&s->live);
}

static void rest(struct session *s)
{
    if (!is_busy(s))
        live_rest(&s->live);
}

static void respond(struct session *s, struct realtime_settings *settings)
{
    s->answers = false;
    realtime_answer_start(&s->answer, settings);
}

static void on_answered(void *ctx)
{
    struct session *s = ctx;
    struct realtime_settings copy;
    if (s->answers && s->live.ws && realtime_settings_copy(&copy, &s->settings))
        respond(s, &copy);
    rest(s);
}

static void on_response_create(struct session *s, const struct realtime_event *ev)
{
    struct realtime_settings copy;
    const char *wrong = NULL, *param = NULL;
    if (s->answer.active) {
        send_error(s, "invalid_request_error", "conversation_already_has_active_response",
                   "there is a response in progress: wait for response.done, or cancel it",
                   ev->event_id);
        return;
    }
    if (!realtime_settings_copy(&copy, &s->settings))
        wrong = "out of memory";
    else if (ev->settings)
        wrong = realtime_settings_read(&copy, ev->settings, &param);
    if (wrong) {
        realtime_settings_fini(&copy);
        send_error_of(s, "invalid_request_error", "invalid_value", wrong, param, ev->event_id);
        return;
    }
    respond(s, &copy);
}

static void on_response_cancel(struct session *s, const struct realtime_event *ev)
{
    if (s->answer.active)
        realtime_answer_cancel(&s->answer, "client_cancelled");
    else
        send_error(s, "invalid_request_error", "response_cancel_not_active",
                   "there is no response in progress", ev->event_id);
}

/* ---- hearing ---- */

static void begin_turn(struct session *s)
{
    if (!s->turn_item[0])
        realtime_items_id(&s->items, s->turn_item, sizeof(s->turn_item));
}

static void on_started(void *ctx, double start_s)
{
    struct session *s = ctx;
    begin_turn(s);
    if (!s->settings.vad)
        return;
    struct json_out j = begin(s, "input_audio_buffer.speech_started");
    json_out_member_uint(&j, "audio_start_ms", (uint64_t)(start_s * 1000));
    json_out_member_str(&j, "item_id", s->turn_item);
    end(s, &j);
    if (s->settings.interrupts)
        realtime_answer_cancel(&s->answer, "turn_detected");
}

static void send_transcript(struct session *s, const char *item)
{
    struct json_out j = begin(s, "conversation.item.input_audio_transcription.completed");
    json_out_member_str(&j, "item_id", item);
    json_out_member_uint(&j, "content_index", 0);
    json_out_member_strn(&j, "transcript", buf_str(&s->turn), s->turn.len);
    end(s, &j);
}

/* The turn is an item of the conversation. */
static void commit(struct session *s)
{
    begin_turn(s);
    const cJSON *item = realtime_items_say(&s->items, s->turn_item, "user", "input_audio",
                                           "transcript", buf_str(&s->turn));
    const char *before = item ? realtime_items_before(&s->items, item) : NULL;
    struct json_out j = begin(s, "input_audio_buffer.committed");
    json_out_key(&j, "previous_item_id");
    if (before)
        json_out_str(&j, before);
    else
        json_out_null(&j);
    json_out_member_str(&j, "item_id", s->turn_item);
    end(s, &j);
    if (item)
        send_new_item(s, item);
    send_transcript(s, s->turn_item);
    s->answer.heard = s->turn.len ? (float)(s->sure / (double)s->turn.len) : 0;
    s->turn_item[0] = '\0';
    s->sure = 0;
    s->sounds = false;
}

static void answer_turn(struct session *s)
{
    struct realtime_settings copy;
    if (!s->settings.vad || !s->settings.creates || s->turn.len == 0 || !s->live.ws)
        return;
    if (s->answer.active) /* it was not to be interrupted */
        s->answers = true;
    else if (realtime_settings_copy(&copy, &s->settings))
        respond(s, &copy);
}

static void on_turn(void *ctx, const struct listener_turn *t)
{
    struct session *s = ctx;
    if (s->turn.len > 0 && t->text_bytes > 0)
        buf_putc(&s->turn, ' ');
    buf_put(&s->turn, t->text, t->text_bytes);
    s->sure += (double)t->confidence * (double)t->text_bytes;
    if (!s->settings.vad && !t->last) /* the client says when it is over */
        return;
    if (s->settings.vad && s->turn_item[0]) {
        struct json_out j = begin(s, "input_audio_buffer.speech_stopped");
        json_out_member_uint(&j, "audio_end_ms", (uint64_t)(t->end_s * 1000));
        json_out_member_str(&j, "item_id", s->turn_item);
        end(s, &j);
    }
    commit(s);
    buf_clear(&s->live.phrases);
    answer_turn(s);
    buf_clear(&s->turn);
}

static void on_failed(void *ctx, const struct failure *f)
{
    struct session *s = ctx;
    send_error(s, "server_error", f->reason ? f->reason : "failed", f->message, NULL);
    s->turn_item[0] = '\0';
    buf_clear(&s->turn);
}

static struct request *new_request(void *ctx)
{
    return live_request(ctx, "/v1/realtime", NULL);
}

static const char *phrases(void *ctx)
{
    const struct session *s = ctx;
    return strcmp(s->model, REALTIME_HOME) == 0 ? live_home_phrases(ctx) : NULL;
}

static bool open_ear(struct session *s)
{
    static const struct listener_ops ops = {.started = on_started,
                                            .turn = on_turn,
                                            .failed = on_failed,
                                            .room = live_room,
                                            .request = new_request,
                                            .phrases = phrases};
    struct err e = {0};
    s->live.form.rate = s->settings.rate;
    const int rc = live_listen(&s->live, &ops, &e);
    if (rc < 0)
        send_error(s, "server_error", "invalid_sound", e.msg, NULL);
    return rc >= 0;
}

static void close_ear(struct session *s)
{
    live_forget(&s->live);
    s->sounds = false;
    s->turn_item[0] = '\0';
    buf_clear(&s->turn);
}

/* ---- events of the client ---- */

static void on_append(struct session *s, const struct realtime_event *ev)
{
    struct err e = {0};
    if (s->live.draining || !open_ear(s))
        return;
    s->sounds |= ev->n_sound > 0;
    if (live_feed(&s->live, ev->sound, ev->n_sound, &e) < 0)
        send_error(s, "invalid_request_error", "invalid_sound", e.msg, ev->event_id);
}

static void on_commit(struct session *s, const struct realtime_event *ev)
{
    if (!s->sounds) {
        send_error(s, "invalid_request_error", "input_audio_buffer_commit_empty",
                   "there is no sound to commit", ev->event_id);
        return;
    }
    if (open_ear(s))
        listener_finish(s->live.listener);
}

static void on_clear(struct session *s, const struct realtime_event *ev)
{
    (void)ev;
    close_ear(s);
    struct json_out j = begin(s, "input_audio_buffer.cleared");
    end(s, &j);
}

static void on_session_update(struct session *s, const struct realtime_event *ev)
{
    struct realtime_settings copy;
    const uint32_t rate = s->settings.rate;
    const char *param = NULL;
    const char *wrong = realtime_settings_copy(&copy, &s->settings)
                            ? realtime_settings_read(&copy, ev->settings, &param)
                            : "out of memory";
    if (wrong) {
        realtime_settings_fini(&copy);
        send_error_of(s, "invalid_request_error", "invalid_value", wrong, param, ev->event_id);
        return;
    }
    realtime_settings_fini(&s->settings);
    s->settings = copy;
    if (s->settings.rate != rate)
        close_ear(s);
    send_session(s, "session.updated");
}

static void on_item_create(struct session *s, const struct realtime_event *ev)
{
    const cJSON *item = NULL;
    const char *wrong = realtime_items_add(&s->items, ev->item, ev->item_id, &item);
    if (wrong)
        send_error(s, "invalid_request_error", "invalid_value", wrong, ev->event_id);
    else {
        s->answer.heard = 0;
        send_new_item(s, item);
    }
}

static void on_item(struct session *s, const struct realtime_event *ev)
{
    const cJSON *item = realtime_items_find(&s->items, ev->item_id);
    if (!item) {
        send_error(s, "invalid_request_error", "item_not_found", "there is no item with this id",
                   ev->event_id);
        return;
    }
    if (ev->type == REALTIME_ITEM_RETRIEVE) {
        struct json_out j = begin(s, "conversation.item.retrieved");
        put_json(&j, "item", item);
        end(s, &j);
        return;
    }
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(ev->json, "audio_end_ms");
    const bool cut = ev->type == REALTIME_ITEM_TRUNCATE;
    struct json_out j = begin(s, cut ? "conversation.item.truncated" : "conversation.item.deleted");
    json_out_member_str(&j, "item_id", ev->item_id);
    if (cut) { /* the words stay: which of them were heard is not known */
        json_out_member_uint(&j, "content_index", 0);
        json_out_member_num(&j, "audio_end_ms", cJSON_IsNumber(at) ? at->valuedouble : 0);
    }
    end(s, &j);
    if (!cut)
        realtime_items_remove(&s->items, item);
}

static void on_text(struct session *s, const char *p, size_t n)
{
    static void (*const on[])(struct session *, const struct realtime_event *) = {
        [REALTIME_SESSION_UPDATE] = on_session_update,
        [REALTIME_AUDIO_APPEND] = on_append,
        [REALTIME_AUDIO_COMMIT] = on_commit,
        [REALTIME_AUDIO_CLEAR] = on_clear,
        [REALTIME_ITEM_CREATE] = on_item_create,
        [REALTIME_ITEM_DELETE] = on_item,
        [REALTIME_ITEM_RETRIEVE] = on_item,
        [REALTIME_ITEM_TRUNCATE] = on_item,
        [REALTIME_RESPONSE_CREATE] = on_response_create,
        [REALTIME_RESPONSE_CANCEL] = on_response_cancel,
    };
    struct realtime_event ev;
    const char *wrong = realtime_read(&ev, p, n);
    if (wrong)
        send_error(s, "invalid_request_error", "invalid_event", wrong, ev.event_id);
    else
        on[ev.type](s, &ev);
    realtime_free(&ev);
}

static void on_message(struct ws *w, const char *p, size_t n, bool text)
{
    struct session *s = ws_user(w);
    if (!text)
        send_error(s, "invalid_request_error", "invalid_event",
                   "events are texts: sound is sent in base64 with input_audio_buffer.append",
                   NULL);
    else if (n > WS_CHECKED_BYTES && !ws_utf8(p, n))
        ws_close(w, 1007);
    else
        on_text(s, p, n);
}

/* ---- the connection ---- */

static void session_free(struct session *s)
{
    if (!s)
        return;
    realtime_answer_fini(&s->answer);
    live_fini(&s->live);
    realtime_settings_fini(&s->settings);
    realtime_items_fini(&s->items);
    buf_fini(&s->turn);
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

/* OpenAI's clients say which form of the events they expect. */
static bool is_beta(const struct http_req *r)
{
    const char *header = http_header(r, "openai-beta"),
               *offered = http_header(r, "sec-websocket-protocol");
    return (header && strstr(header, "realtime=v1")) ||
           (offered && strstr(offered, "openai-beta.realtime-v1"));
}

static void init(struct session *s, struct call *c)
{
    static const struct realtime_answer_ops ops = {begin, end, on_answered};
    s->beta = is_beta(c->req);
    if (!http_query(c->req, "model", s->model, sizeof(s->model)) || !s->model[0])
        snprintf(s->model, sizeof(s->model), "%s", REALTIME_HOME);
    realtime_items_init(&s->items);
    s->items.salt = (uint32_t)hash_bytes(c->id, strlen(c->id), c->gl->gw->id_salt ^ c->start_ns);
    snprintf(s->id, sizeof(s->id), "sess_%08x", s->items.salt);
    realtime_settings_init(&s->settings);
    s->answer = (struct realtime_answer){.gl = c->gl,
                                         .items = &s->items,
                                         .ops = &ops,
                                         .ctx = s,
                                         .authorization = s->live.authorization,
                                         .peer = s->live.peer,
                                         .model = s->model,
                                         .session = s->id,
                                         .account = s->live.account,
                                         .beta = s->beta};
    realtime_answer_init(&s->answer);
    buf_init(&s->turn, (size_t)256 << 10);
}

void realtime_ws(struct call *c)
{
    static const struct ws_ops callbacks = {on_message, on_drained, on_closed, on_drain, on_busy};
    if (!guard_origin(c)) /* browsers let any page open a WebSocket to any server */
        return;
    struct session *s = mem_zalloc(sizeof(*s));
    if (!s) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    if (!live_open(&s->live, c, MAX_MESSAGE_BYTES, MAX_OUT_BYTES)) {
        live_fini(&s->live);
        mem_free(s);
        return;
    }
    init(s, c);
    if (live_accept(&s->live, c, &callbacks, s, MAX_MESSAGE_BYTES))
        send_session(s, "session.created");
    else
        session_free(s);
}
