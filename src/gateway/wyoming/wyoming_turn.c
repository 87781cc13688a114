/* wyoming_turn.c - see wyoming_turn.h. */
#include "gateway/wyoming/wyoming_turn.h"

#include <ctype.h>
#include <string.h>

#include <openssl/evp.h>

#include "audio/pcm.h"
#include "base/mem.h"
#include "gateway/api/own/voice_turn.h"
#include "gateway/call/call.h"
#include "gateway/call/inner_call.h"
#include "gateway/wyoming/wyoming_info.h"
#include "net/peers.h"
#include "voice/ear.h"
#include "voice/listener.h"
#include "voice/wake.h"
#include "wire/wyoming.h"

#define MAX_OUT_BYTES ((size_t)1 << 20)
#define MAX_TEXT_BYTES ((size_t)256 << 10)
#define MAX_PHRASE_BYTES ((size_t)128 << 10)
#define MAX_NAMES 256u /* that a client sends */
#define SOUND_BYTES ((2 * (size_t)EAR_MOST + LISTENER_MOST) * sizeof(int16_t))

enum asked { ASKED_NOTHING, ASKED_HANDLE, ASKED_INTENT, ASKED_SPEECH };

struct wyoming_turn {
    struct gw_loop *gl;
    struct peer *account;
    const struct wyoming_turn_ops *ops;
    void *ctx;
    struct buf out, samples, phrases, text; /* text: of the pieces heard so far */
    double sure;                            /* their confidence, times bytes */
    struct pcm *pcm;
    struct listener *listener;
    bool charged;          /* SOUND_BYTES to the account */
    bool began;            /* transcript-start was sent */
    bool stopped;          /* the end of the sound has come, the transcript has not */
    bool failed;           /* the client knows that there will be no transcript */
    struct wake_ear *wake; /* looks for the wake word instead of hearing; NULL: it hears */
    bool detected;
    char recognizer[128];
    char language[8]; /* that the client asks for; "": as it is heard */
    struct inner_call *call;
    enum asked asked;
    cJSON *context; /* of the client, for its answer */
    uint32_t rate;  /* of the sound that is sent; 0: it has not begun */
};

/* ---- events to the client ---- */

static struct json_out begin(struct wyoming_turn *t)
{
    buf_clear(&t->out);
    struct json_out j = json_out_make(&t->out);
    json_out_object(&j);
    return j;
}

static void send(struct wyoming_turn *t, const char *type, struct json_out *j)
{
    json_out_object_end(j);
    if (t->out.rc == 0)
        t->ops->send(t->ctx, type, buf_str(&t->out), t->out.len, NULL, 0);
}

static void send_text(struct wyoming_turn *t, const char *type, const char *text, size_t n)
{
    struct json_out j = begin(t);
    json_out_member_strn(&j, "text", text, n);
    send(t, type, &j);
}

void wyoming_turn_error(struct wyoming_turn *t, const char *code, const char *text)
{
    struct json_out j = begin(t);
    json_out_member_str(&j, "text", text);
    json_out_member_str(&j, "code", code);
    send(t, "error", &j);
}

static void put_context(const struct wyoming_turn *t, struct json_out *j)
{
    char *text = t->context ? cJSON_PrintUnformatted(t->context) : NULL;
    if (!text)
        return;
    json_out_key(j, "context");
    buf_puts(j->b, text);
    j->comma = true;
    cJSON_free(text);
}

/* ---- sound ---- */

static void on_turn(void *ctx, const struct listener_turn *piece)
{
    struct wyoming_turn *t = ctx;
    if (piece->text_bytes > 0) {
        const size_t before = t->text.len;
        if (before > 0)
            buf_putc(&t->text, ' ');
        buf_put(&t->text, piece->text, piece->text_bytes);
        t->sure += (double)piece->confidence * (double)piece->text_bytes;
        if (!t->began)
            t->ops->send(t->ctx, "transcript-start", NULL, 0, NULL, 0);
        t->began = true;
        send_text(t, "transcript-chunk", buf_str(&t->text) + before, t->text.len - before);
    }
    if (!piece->last || t->failed) {
        t->failed = t->failed && !piece->last;
        return;
    }
    t->stopped = false;
    struct json_out j = begin(t);
    json_out_member_strn(&j, "text", buf_str(&t->text), t->text.len);
    if (piece->language[0] || t->language[0])
        json_out_member_str(&j, "language", piece->language[0] ? piece->language : t->language);
    json_out_member_object(&j, "context");
    json_out_member_num(&j, "confidence", t->text.len ? t->sure / (double)t->text.len : 0);
    json_out_object_end(&j);
    send(t, "transcript", &j);
    if (t->began)
        t->ops->send(t->ctx, "transcript-stop", NULL, 0, NULL, 0);
    t->began = false;
    t->sure = 0;
    buf_clear(&t->text);
}

static void on_failed(void *ctx, const struct failure *f)
{
    struct wyoming_turn *t = ctx;
    wyoming_turn_error(t, f->reason ? f->reason : "failed", f->message);
    t->began = false;
    t->failed = !t->stopped;
    t->stopped = false;
    buf_clear(&t->text);
}

static void on_room(void *ctx)
{
    struct wyoming_turn *t = ctx;
    t->ops->room(t->ctx);
}

static struct request *new_request(void *ctx)
{
    struct wyoming_turn *t = ctx;
    struct request *r = flow_take_request(&t->gl->flow);
    if (!r)
        return NULL;
    r->path = "wyoming";
    r->received_ns = loop_now(t->gl->loop);
    if (t->recognizer[0])
        r->model = request_copy(r, t->recognizer, strlen(t->recognizer));
    if (t->language[0])
        r->infer.labels = request_copy(r, t->language, strlen(t->language));
    return r;
}

static const char *phrases(void *ctx)
{
    struct wyoming_turn *t = ctx;
    return t->phrases.rc == 0 ? buf_str(&t->phrases) : NULL;
}

static int open_listener(struct wyoming_turn *t, struct err *e)
{
    static const struct listener_ops ops = {.turn = on_turn,
                                            .failed = on_failed,
                                            .room = on_room,
                                            .request = new_request,
                                            .phrases = phrases};
    if (t->listener)
        return 0;
    if (!t->charged && peers_take(t->account, SOUND_BYTES) != PEERS_OK)
        return err_set(e, SHOAL_EBUSY,
                       "the sound does not fit into the memory for clients (limits.buffers, "
                       "limits.client_buffers)");
    t->charged = true;
    if (t->phrases.len == 0)
        voice_turn_phrases(&t->phrases, t->gl);
    return listener_create(&t->listener, &t->gl->flow, &ops, t, e);
}

/* Opens what takes the sound of an audio-start, or of a chunk without one. */
static bool open_sound(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    const struct pcm_form form = {.rate = wyoming_number(ev, "rate", EAR_RATE),
                                  .width = wyoming_number(ev, "width", 2),
                                  .channels = wyoming_number(ev, "channels", 1)};
    struct err e = {0};
    int rc = open_listener(t, &e);
    pcm_destroy(t->pcm);
    t->pcm = NULL;
    if (rc == 0)
        rc = pcm_create(&t->pcm, &form, &e);
    if (rc < 0)
        wyoming_turn_error(t, "invalid_sound", e.msg);
    return rc == 0;
}

/* ---- the wake word ---- */

/* What follows is searched for the wake word. */
static void on_detect(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    struct err e = {0};
    (void)ev;
    wake_ear_destroy(t->wake);
    t->wake = NULL;
    t->detected = false;
    if (!t->gl->gw->wake)
        wyoming_turn_error(t, "no_wake_word", "this server has no wake word");
    else if (wake_ear_create(&t->wake, t->gl->gw->wake, &e) < 0)
        wyoming_turn_error(t, "busy", e.msg);
}

static void detect(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    const cJSON *timestamp = cJSON_GetObjectItemCaseSensitive(ev->data, "timestamp");
    const int16_t *samples = (const int16_t *)(const void *)buf_str(&t->samples);
    uint32_t n = (uint32_t)(t->samples.len / sizeof(int16_t));
    for (int64_t at; n > 0 && (at = wake_ear_feed(t->wake, samples, n)) >= 0;) {
        struct json_out j = begin(t);
        json_out_member_str(&j, "name", wake_ear_word(t->wake));
        if (cJSON_IsNumber(timestamp))
            json_out_member_num(&j, "timestamp", timestamp->valuedouble);
        send(t, "detection", &j);
        t->detected = true;
        samples += at;
        n -= (uint32_t)at;
    }
}

static void end_detection(struct wyoming_turn *t)
{
    if (!t->detected)
        t->ops->send(t->ctx, "not-detected", NULL, 0, NULL, 0);
    t->detected = false;
    wake_ear_reset(t->wake);
}

static void on_audio_start(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    listener_destroy(t->listener); /* what was heard of another sound is void */
    t->listener = NULL;
    t->began = t->failed = t->stopped = false;
    buf_clear(&t->text);
    (void)open_sound(t, ev);
}

static void on_audio_chunk(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    struct err e = {0};
    if (!t->pcm && !open_sound(t, ev))
        return;
    buf_clear(&t->samples);
    int rc = pcm_feed(t->pcm, ev->payload, ev->payload_bytes, &t->samples, &e);
    if (rc == 0 && t->wake)
        detect(t, ev);
    else if (rc == 0 &&
             (rc = listener_feed(t->listener, (const int16_t *)(const void *)buf_str(&t->samples),
                                 (uint32_t)(t->samples.len / sizeof(int16_t)))) < 0)
        (void)err_set(&e, rc, "the sound comes faster than it can be heard: some is lost");
    if (rc < 0)
        wyoming_turn_error(t, "invalid_sound", e.msg);
}

static void on_audio_stop(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    struct err e = {0};
    (void)ev;
    if (t->wake) {
        end_detection(t);
        return;
    }
    if (open_listener(t, &e) < 0) {
        wyoming_turn_error(t, "busy", e.msg);
        return;
    }
    pcm_destroy(t->pcm);
    t->pcm = NULL;
    t->stopped = true;
    listener_finish(t->listener);
}

static void add_names(struct wyoming_turn *t, const struct wyoming_event *ev, const char *key)
{
    const cJSON *v, *list = cJSON_GetObjectItemCaseSensitive(ev->data, key);
    uint32_t n = 0;
    cJSON_ArrayForEach(v, list)
    {
        const char *s = cJSON_GetStringValue(v);
        if (!s || strlen(s) < 2 || strlen(s) > 80 || strpbrk(s, ",\n") || n++ == MAX_NAMES)
            continue;
        buf_puts(&t->phrases, s);
        buf_putc(&t->phrases, '\n');
    }
}

/* "de-AT", "pt_BR" and "EN" are de, pt and en. */
static void read_language(struct wyoming_turn *t, const char *name)
{
    size_t n = 0;
    while (name && isalpha((unsigned char)name[n]) && n + 1 < sizeof(t->language)) {
        t->language[n] = (char)tolower((unsigned char)name[n]);
        n++;
    }
    t->language[n] = '\0';
}

/* What follows is to be recognized: by which model, in which language, and which names may be said.
 */
static void on_transcribe(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    const char *name = wyoming_text(ev, "name");
    wake_ear_destroy(t->wake);
    t->wake = NULL;
    t->recognizer[0] = '\0';
    if (name && strlen(name) < sizeof(t->recognizer))
        memcpy(t->recognizer, name, strlen(name) + 1);
    read_language(t, wyoming_text(ev, "language"));
    buf_clear(&t->phrases);
    add_names(t, ev, "transcript_names");
    add_names(t, ev, "transcript_terms");
    voice_turn_phrases(&t->phrases, t->gl);
}

/* ---- texts ---- */

static void put_entity(struct json_out *j, const cJSON *field)
{
    char *text = cJSON_PrintUnformatted(field);
    json_out_object(j);
    json_out_member_str(j, "name", field->string);
    if (text) {
        json_out_key(j, "value");
        buf_puts(j->b, text);
        j->comma = true;
    }
    json_out_object_end(j);
    cJSON_free(text);
}

static void send_intent(struct wyoming_turn *t, const cJSON *action)
{
    const cJSON *v;
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(action, "action"));
    struct json_out j = begin(t);
    json_out_member_str(&j, "name", name ? name : "");
    json_out_member_array(&j, "entities");
    cJSON_ArrayForEach(v, action) if (strcmp(v->string, "action") != 0) put_entity(&j, v);
    json_out_array_end(&j);
    put_context(t, &j);
    send(t, "intent", &j);
}

static void answer_intent(struct wyoming_turn *t, const cJSON *body)
{
    const cJSON *actions = cJSON_GetObjectItemCaseSensitive(body, "actions"), *v;
    const int n = cJSON_GetArraySize(actions);
    if (n == 0) {
        struct json_out j = begin(t);
        put_context(t, &j);
        send(t, "not-recognized", &j);
        return;
    }
    if (n > 1)
        t->ops->send(t->ctx, "intents-start", NULL, 0, NULL, 0);
    cJSON_ArrayForEach(v, actions) send_intent(t, v);
    if (n > 1)
        t->ops->send(t->ctx, "intents-stop", NULL, 0, NULL, 0);
}

static void answer_handle(struct wyoming_turn *t, const cJSON *body)
{
    const char *reply = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "reply"));
    const int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(body, "actions"));
    struct json_out j = begin(t);
    json_out_member_str(&j, "text", reply ? reply : "");
    put_context(t, &j);
    send(t, n > 0 || (reply && reply[0]) ? "handled" : "not-handled", &j);
}

/* ---- text to sound ---- */

#define WAV_HEAD 44u /* bytes in front of the samples, as /v1/audio/speech streams them */

static void send_sound(struct wyoming_turn *t, const char *type, const void *samples, size_t n)
{
    struct json_out j = begin(t);
    json_out_member_num(&j, "rate", t->rate);
    json_out_member_num(&j, "width", 2);
    json_out_member_num(&j, "channels", 1);
    json_out_object_end(&j);
    if (t->out.rc == 0)
        t->ops->send(t->ctx, type, buf_str(&t->out), t->out.len, samples, n);
}

/* Bytes of a WAV file in the order of their coming. */
static void send_bytes(struct wyoming_turn *t, const unsigned char *p, size_t n)
{
    if (t->rate == 0 && n >= WAV_HEAD) {
        t->rate = (uint32_t)p[24] | (uint32_t)p[25] << 8 | (uint32_t)p[26] << 16;
        send_sound(t, "audio-start", NULL, 0);
        p += WAV_HEAD;
        n -= WAV_HEAD;
    }
    for (size_t k; t->rate > 0 && n > 0; p += k, n -= k) {
        k = n < WYOMING_MAX_PAYLOAD ? n : WYOMING_MAX_PAYLOAD;
        send_sound(t, "audio-chunk", p, k);
    }
}

/* An event of /v1/audio/speech, which has a piece of the sound in base64. */
static void on_event(void *ctx, const char *json, size_t n)
{
    struct wyoming_turn *t = ctx;
    cJSON *j = t->asked == ASKED_SPEECH ? cJSON_ParseWithLength(json, n) : NULL;
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, "audio"));
    const size_t len = text ? strlen(text) : 0;
    unsigned char *bytes = len > 0 && len < INT32_MAX ? mem_alloc(len) : NULL;
    const int got = bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len) : 0;
    const size_t padding = len > 1 ? (size_t)(text[len - 1] == '=') + (text[len - 2] == '=') : 0;
    if (got > 0)
        send_bytes(t, bytes, (size_t)got - padding);
    mem_free(bytes);
    cJSON_Delete(j);
}

static void end_sound(struct wyoming_turn *t)
{
    if (t->rate > 0)
        t->ops->send(t->ctx, "audio-stop", NULL, 0, NULL, 0);
    t->rate = 0;
}

static void on_end(void *ctx, int status, const char *body, size_t n)
{
    struct wyoming_turn *t = ctx;
    const enum asked asked = t->asked;
    cJSON *json = cJSON_ParseWithLength(body, n);
    t->asked = ASKED_NOTHING;
    t->call = NULL;
    if (status != 200) {
        t->rate = 0;
        const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error");
        const char *msg = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "message"));
        wyoming_turn_error(t, "failed", msg ? msg : "the text could not be answered");
    } else if (asked == ASKED_SPEECH) {
        end_sound(t);
    } else if (asked == ASKED_INTENT) {
        answer_intent(t, json);
    } else {
        answer_handle(t, json);
    }
    cJSON_Delete(json);
    t->ops->room(t->ctx);
}

/* The body of /v1/process; NULL: out of memory. */
static cJSON *body_of(const struct wyoming_turn *t, const char *text, bool intent)
{
    cJSON *j = cJSON_CreateObject();
    const cJSON *sure = cJSON_GetObjectItemCaseSensitive(t->context, "confidence");
    const char *id =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(t->context, "conversation_id"));
    const char *area = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(t->context, "area"));
    bool ok = j && cJSON_AddStringToObject(j, "text", text);
    if (ok && intent)
        ok = cJSON_AddTrueToObject(j, "dry_run") && cJSON_AddFalseToObject(j, "reply");
    if (ok && area)
        ok = cJSON_AddStringToObject(j, "room", area) != NULL;
    if (ok && id && call_session_ok(id))
        ok = cJSON_AddStringToObject(j, "session_id", id) != NULL;
    if (ok && cJSON_IsNumber(sure) && sure->valuedouble > 0 && sure->valuedouble <= 1)
        ok = cJSON_AddNumberToObject(j, "heard", sure->valuedouble) != NULL;
    if (ok)
        return j;
    cJSON_Delete(j);
    return NULL;
}

static void start_call(struct wyoming_turn *t, const char *path, cJSON *body, enum asked asked)
{
    static const struct inner_call_ops ops = {on_event, on_end};
    const struct inner_call_opts o = {.path = path,
                                      .peer = "wyoming",
                                      .protocol = "wyoming",
                                      .account = t->account,
                                      .trusted = true};
    t->asked = asked;
    inner_call_start(&t->call, t->gl, &o, body, &ops, t);
}

static void ask_text(struct wyoming_turn *t, const struct wyoming_event *ev, enum asked asked)
{
    const char *text = wyoming_text(ev, "text");
    const cJSON *context = cJSON_GetObjectItemCaseSensitive(ev->data, "context");
    cJSON_Delete(t->context);
    t->context = cJSON_IsObject(context) ? cJSON_Duplicate(context, true) : NULL;
    if (!text || !text[0]) { /* nothing was said */
        struct json_out j = begin(t);
        put_context(t, &j);
        send(t, asked == ASKED_INTENT ? "not-recognized" : "not-handled", &j);
        return;
    }
    start_call(t, "/v1/process", body_of(t, text, asked == ASKED_INTENT), asked);
}

static void on_transcript(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    ask_text(t, ev, ASKED_HANDLE);
}

static void on_recognize(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    ask_text(t, ev, ASKED_INTENT);
}

/* ---- the rest ---- */

static void on_describe(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    (void)ev;
    buf_clear(&t->out);
    wyoming_info_put(&t->out, t->gl);
    if (t->out.rc == 0)
        t->ops->send(t->ctx, "info", buf_str(&t->out), t->out.len, NULL, 0);
}

static void on_ping(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    const char *text = wyoming_text(ev, "text");
    struct json_out j = begin(t);
    if (text)
        json_out_member_str(&j, "text", text);
    send(t, "pong", &j);
}

/* audio-start, audio-chunk and audio-stop with what the text sounds like. */
static void on_synthesize(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    const char *text = wyoming_text(ev, "text");
    const cJSON *voice = cJSON_GetObjectItemCaseSensitive(ev->data, "voice");
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(voice, "speaker"));
    char model[128];
    cJSON *j = cJSON_CreateObject();
    bool ok =
        j && cJSON_AddStringToObject(j, "input", text ? text : "") &&
        cJSON_AddStringToObject(j, "model", wyoming_info_voice(t->gl, model, sizeof(model))) &&
        cJSON_AddStringToObject(j, "response_format", "wav") &&
        cJSON_AddStringToObject(j, "stream_format", "sse");
    if (ok && name)
        ok = cJSON_AddStringToObject(j, "voice", name) != NULL;
    if (!ok) {
        cJSON_Delete(j);
        wyoming_turn_error(t, "failed", "out of memory");
        return;
    }
    start_call(t, "/v1/audio/speech", j, ASKED_SPEECH);
}

static const struct {
    const char *type;
    void (*fn)(struct wyoming_turn *t, const struct wyoming_event *ev);
} events[] = {
    {"audio-chunk", on_audio_chunk}, {"audio-start", on_audio_start}, {"audio-stop", on_audio_stop},
    {"transcribe", on_transcribe},   {"transcript", on_transcript},   {"recognize", on_recognize},
    {"describe", on_describe},       {"detect", on_detect},           {"ping", on_ping},
    {"synthesize", on_synthesize}};

void wyoming_turn_event(struct wyoming_turn *t, const struct wyoming_event *ev)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strcmp(events[i].type, ev->type) == 0) {
            events[i].fn(t, ev);
            return;
        }
    /* The protocol wants events that nobody knows to be skipped. */
}

bool wyoming_turn_full(const struct wyoming_turn *t)
{
    return t->asked != ASKED_NOTHING || (t->listener && listener_full(t->listener));
}

int wyoming_turn_create(struct wyoming_turn **out, struct gw_loop *gl, struct peer *account,
                        const struct wyoming_turn_ops *ops, void *ctx, struct err *e)
{
    struct wyoming_turn *t = mem_zalloc(sizeof(*t));
    *out = t;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a connection");
    t->gl = gl;
    t->account = account;
    t->ops = ops;
    t->ctx = ctx;
    buf_init(&t->out, MAX_OUT_BYTES);
    buf_init(&t->samples, 16 * WYOMING_MAX_PAYLOAD + 64);
    buf_init(&t->phrases, MAX_PHRASE_BYTES);
    buf_init(&t->text, MAX_TEXT_BYTES);
    return 0;
}

void wyoming_turn_destroy(struct wyoming_turn *t)
{
    if (!t)
        return;
    if (t->call)
        inner_call_cancel(t->call);
    listener_destroy(t->listener);
    wake_ear_destroy(t->wake);
    pcm_destroy(t->pcm);
    if (t->charged)
        peers_give(t->account, SOUND_BYTES);
    cJSON_Delete(t->context);
    buf_fini(&t->out);
    buf_fini(&t->samples);
    buf_fini(&t->phrases);
    buf_fini(&t->text);
    mem_free(t);
}
