/* satellite.c - see satellite.h. */
#include "voice/satellite.h"

#include <string.h>

#include "voice/wake.h"
#include "wire/json_out.h"
#include "wire/wyoming.h"

#define MAX_OUT_BYTES ((size_t)64 << 10)
#define MOST_SILENCE (8u * SATELLITE_RATE) /* behind the wake word, without a word */

void satellite_init(struct satellite *s, const struct satellite_opts *o,
                    const struct satellite_ops *ops, void *ctx)
{
    *s = (struct satellite){.ops = ops, .ctx = ctx, .o = *o};
    s->state = o->serves ? SATELLITE_PAUSED : SATELLITE_WAITS;
    buf_init(&s->out, MAX_OUT_BYTES);
}

void satellite_fini(struct satellite *s)
{
    buf_fini(&s->out);
}

/* ---- events to the other side ---- */

static struct json_out begin(struct satellite *s)
{
    buf_clear(&s->out);
    struct json_out j = json_out_make(&s->out);
    json_out_object(&j);
    return j;
}

static void send(struct satellite *s, const char *type, struct json_out *j, const void *payload,
                 size_t n)
{
    json_out_object_end(j);
    if (s->out.rc == 0)
        s->ops->send(s->ctx, type, buf_str(&s->out), s->out.len, payload, n);
}

static void send_bare(struct satellite *s, const char *type)
{
    s->ops->send(s->ctx, type, NULL, 0, NULL, 0);
}

static void send_sound(struct satellite *s, const char *type, const int16_t *samples, uint32_t n)
{
    struct json_out j = begin(s);
    json_out_member_num(&j, "rate", SATELLITE_RATE);
    json_out_member_num(&j, "width", sizeof(int16_t));
    json_out_member_num(&j, "channels", 1);
    send(s, type, &j, samples, n * sizeof(*samples));
}

/* ---- turns ---- */

static void begin_turn(struct satellite *s)
{
    if (s->o.serves) {
        struct json_out j = begin(s);
        json_out_member_str(&j, "start_stage", "asr");
        json_out_member_str(&j, "end_stage", "tts");
        json_out_key(&j, "restart_on_end"); /* without a wake word one turn follows the other */
        json_out_bool(&j, !s->o.wake);
        send(s, "run-pipeline", &j, NULL, 0);
    } else {
        send_bare(s, "transcribe");
    }
    send_sound(s, "audio-start", NULL, 0);
    s->state = SATELLITE_HEARS;
    s->n_sent = 0;
    s->words = false;
}

static void stop_hearing(struct satellite *s)
{
    if (s->state != SATELLITE_HEARS)
        return;
    send_bare(s, "audio-stop");
    s->state = SATELLITE_THINKS;
}

static void turn_over(struct satellite *s)
{
    s->state = SATELLITE_WAITS;
    if (s->o.wake)
        wake_ear_reset(s->o.wake); /* it may have heard the reply */
}

/* Waits for the wake word; returns how many samples belong to that. */
static uint32_t await_word(struct satellite *s, const int16_t *samples, uint32_t n)
{
    const int64_t at = wake_ear_feed(s->o.wake, samples, n);
    if (at < 0)
        return n;
    struct json_out j = begin(s);
    json_out_member_str(&j, "name", wake_ear_word(s->o.wake));
    s->ops->note(s->ctx, "woken", wake_ear_word(s->o.wake));
    if (s->o.serves)
        send(s, "detection", &j, NULL, 0);
    begin_turn(s);
    return (uint32_t)at;
}

/* A server's other side may never say that a turn is over: the next word begins another one. */
static bool may_wake(const struct satellite *s)
{
    return s->state == SATELLITE_WAITS || (s->o.serves && s->state == SATELLITE_THINKS);
}

void satellite_hear(struct satellite *s, const int16_t *samples, uint32_t n)
{
    if (s->o.wake && may_wake(s)) {
        const uint32_t used = await_word(s, samples, n);
        samples += used;
        n -= used;
    } else if (s->state == SATELLITE_WAITS) {
        begin_turn(s);
    }
    if (s->state != SATELLITE_HEARS || n == 0)
        return;
    send_sound(s, "audio-chunk", samples, n);
    s->n_sent += n;
    if (s->o.wake && !s->words && s->n_sent > MOST_SILENCE)
        stop_hearing(s);
}

void satellite_end(struct satellite *s)
{
    s->ended = true;
    stop_hearing(s);
}

bool satellite_works(const struct satellite *s)
{
    return !s->ended || s->state == SATELLITE_THINKS || s->state == SATELLITE_SPEAKS;
}

/* ---- events of the other side ---- */

/* A client: the words of the turn go back to be carried out. */
static void carry_out(struct satellite *s, const struct wyoming_event *ev, const char *text)
{
    const cJSON *context = cJSON_GetObjectItemCaseSensitive(ev->data, "context");
    const cJSON *sure = cJSON_GetObjectItemCaseSensitive(context, "confidence");
    struct json_out j = begin(s);
    json_out_member_str(&j, "text", text);
    json_out_key(&j, "context");
    json_out_object(&j);
    json_out_member_str(&j, "conversation_id", s->o.name);
    if (s->o.room)
        json_out_member_str(&j, "area", s->o.room);
    if (cJSON_IsNumber(sure))
        json_out_member_num(&j, "confidence", sure->valuedouble);
    json_out_object_end(&j);
    send(s, "transcript", &j, NULL, 0);
}

static void on_transcript(struct satellite *s, const struct wyoming_event *ev)
{
    const char *text = wyoming_text(ev, "text");
    text = text ? text : "";
    s->ops->note(s->ctx, "heard", text);
    if (s->o.serves) {
        if (s->o.wake) /* otherwise the pipeline begins again, and wants its sound */
            stop_hearing(s);
        return;
    }
    stop_hearing(s);
    if (text[0])
        carry_out(s, ev, text);
    else
        turn_over(s);
}

/* The recognizer takes the turn for complete; a client ends it, and gets the whole text. */
static void on_chunk_of_text(struct satellite *s, const struct wyoming_event *ev)
{
    (void)ev;
    s->words = true;
    if (!s->o.serves)
        stop_hearing(s);
}

static void on_voice_started(struct satellite *s, const struct wyoming_event *ev)
{
    (void)ev;
    s->words = true;
}

static void on_voice_stopped(struct satellite *s, const struct wyoming_event *ev)
{
    (void)ev;
    if (s->o.wake)
        stop_hearing(s);
}

static void on_handled(struct satellite *s, const struct wyoming_event *ev)
{
    const char *text = wyoming_text(ev, "text");
    if (s->o.serves)
        return;
    s->ops->note(s->ctx, "reply", text ? text : "");
    if (!text || !text[0]) {
        turn_over(s);
        return;
    }
    struct json_out j = begin(s);
    json_out_member_str(&j, "text", text);
    send(s, "synthesize", &j, NULL, 0);
}

static void on_audio_start(struct satellite *s, const struct wyoming_event *ev)
{
    if (s->plays)
        s->ops->sound_end(s->ctx);
    s->ops->sound_begin(s->ctx, wyoming_number(ev, "rate", 22050));
    s->plays = true;
    if (s->state != SATELLITE_PAUSED)
        s->state = SATELLITE_SPEAKS;
}

static void on_audio_chunk(struct satellite *s, const struct wyoming_event *ev)
{
    int16_t part[1024];
    size_t n = ev->payload_bytes / sizeof(int16_t);
    if (!s->plays || wyoming_number(ev, "width", 2) != 2 || wyoming_number(ev, "channels", 1) != 1)
        return;
    for (size_t at = 0, k; at < n; at += k) { /* the payload is not aligned */
        k = n - at < 1024 ? n - at : 1024;
        memcpy(part, ev->payload + at * sizeof(int16_t), k * sizeof(int16_t));
        s->ops->sound(s->ctx, part, k);
    }
}

static void on_audio_stop(struct satellite *s, const struct wyoming_event *ev)
{
    (void)ev;
    if (!s->plays)
        return;
    s->plays = false;
    s->ops->sound_end(s->ctx);
    if (s->o.serves)
        send_bare(s, "played");
    if (s->state == SATELLITE_SPEAKS)
        turn_over(s);
}

static void on_error(struct satellite *s, const struct wyoming_event *ev)
{
    const char *text = wyoming_text(ev, "text");
    s->ops->note(s->ctx, "error", text ? text : "");
    if (s->state == SATELLITE_HEARS && !s->o.serves)
        send_bare(s, "audio-stop");
    if (s->state != SATELLITE_PAUSED)
        turn_over(s);
}

static void on_ping(struct satellite *s, const struct wyoming_event *ev)
{
    const char *text = wyoming_text(ev, "text");
    struct json_out j = begin(s);
    if (text)
        json_out_member_str(&j, "text", text);
    send(s, "pong", &j, NULL, 0);
}

static void on_run(struct satellite *s, const struct wyoming_event *ev)
{
    (void)ev;
    if (s->o.serves && s->state == SATELLITE_PAUSED)
        turn_over(s);
}

static void on_pause(struct satellite *s, const struct wyoming_event *ev)
{
    (void)ev;
    if (s->o.serves)
        s->state = SATELLITE_PAUSED;
}

/* ---- what it is ---- */

static void put_format(struct json_out *j, const char *key, uint32_t rate)
{
    json_out_key(j, key);
    json_out_object(j);
    json_out_member_num(j, "rate", rate);
    json_out_member_num(j, "width", sizeof(int16_t));
    json_out_member_num(j, "channels", 1);
    json_out_object_end(j);
}

static void put_device(struct json_out *j, const char *domain, const char *format, uint32_t rate,
                       const char *what)
{
    json_out_key(j, domain);
    json_out_array(j);
    json_out_object(j);
    wyoming_put_artifact(j, "shoal", what);
    put_format(j, format, rate);
    json_out_object_end(j);
    json_out_array_end(j);
}

static void put_satellite(struct satellite *s, struct json_out *j)
{
    json_out_key(j, "satellite");
    json_out_object(j);
    wyoming_put_artifact(j, s->o.name, "microphone and loudspeaker");
    if (s->o.room)
        json_out_member_str(j, "area", s->o.room);
    json_out_key(j, "has_vad");
    json_out_bool(j, false);
    json_out_key(j, "active_wake_words");
    json_out_array(j);
    if (s->o.wake)
        json_out_str(j, wake_ear_word(s->o.wake));
    json_out_array_end(j);
    json_out_member_num(j, "max_active_wake_words", s->o.wake ? 1 : 0);
    json_out_object_end(j);
}

static void on_describe(struct satellite *s, const struct wyoming_event *ev)
{
    static const char *const none[] = {"asr", "tts", "handle", "intent"};
    struct json_out j = begin(s);
    (void)ev;
    put_satellite(s, &j);
    put_device(&j, "mic", "mic_format", SATELLITE_RATE, "microphone");
    put_device(&j, "snd", "snd_format", 22050, "loudspeaker");
    wyoming_put_wake(&j, s->o.wake ? wake_ear_word(s->o.wake) : NULL);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        json_out_key(&j, none[i]);
        json_out_array(&j);
        json_out_array_end(&j);
    }
    send(s, "info", &j, NULL, 0);
}

static const struct {
    const char *type;
    void (*fn)(struct satellite *s, const struct wyoming_event *ev);
} events[] = {
    {"audio-chunk", on_audio_chunk},
    {"audio-start", on_audio_start},
    {"audio-stop", on_audio_stop},
    {"describe", on_describe},
    {"error", on_error},
    {"handled", on_handled},
    {"not-handled", on_handled},
    {"pause-satellite", on_pause},
    {"ping", on_ping},
    {"run-satellite", on_run},
    {"transcript", on_transcript},
    {"transcript-chunk", on_chunk_of_text},
    {"voice-started", on_voice_started},
    {"voice-stopped", on_voice_stopped},
};

void satellite_event(struct satellite *s, const struct wyoming_event *ev)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strcmp(events[i].type, ev->type) == 0) {
            events[i].fn(s, ev);
            return;
        }
}
