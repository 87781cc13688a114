/* mqtt_voice.c - see mqtt_voice.h. */
#include "gateway/mqtt/mqtt_voice.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/pcm.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/api/own/voice_turn.h"
#include "gateway/gw.h"
#include "gateway/call/inner_call.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "site/mqtt/mqtt_site.h"
#include "voice/ear.h"
#include "voice/listener.h"
#include "wire/json_out.h"

#define MAX_NAME 64u
#define MAX_WAITING 256 /* messages that the loop has not taken yet: ten seconds of 40 ms */
#define MAX_OUT_BYTES ((size_t)1 << 20)

struct mqtt_voice;

struct voice_mic { /* of the loop */
    struct mqtt_voice *voice;
    char name[MAX_NAME], room[128], *authorization;
    struct pcm *pcm;
    struct pcm_form form;
    struct listener *listener;
    struct inner_call *call; /* the turn that is being answered */
    uint64_t used;           /* when it was heard last, as a count of messages */
};

struct frame { /* a message on its way to the loop */
    struct executor_task task;
    struct mqtt_voice *voice;
    char name[MAX_NAME], room[128], key[256];
    struct pcm_form form;
    size_t n;
    char bytes[];
};

struct mqtt_voice {
    struct gw *gw;
    struct gw_loop *gl;
    struct mqtt *client;
    const struct config_mqtt *config;
    char filter[MQTT_TOPIC_MAX_BYTES];
    _Atomic int n_waiting;
    _Atomic bool closed;
    struct voice_mic *mics[MQTT_VOICE_MOST]; /* the loop's, as is: */
    struct buf samples, out, phrases;
    uint64_t n_frames;
};

static void publish(struct mqtt_voice *v, const char *name, const char *what, const char *json,
                    size_t n)
{
    char topic[MQTT_TOPIC_MAX_BYTES];
    struct err e = {0};
    snprintf(topic, sizeof(topic), "%s/voice/%s/%s", v->config->topic, name, what);
    const struct mqtt_message m = {
        .topic = topic, .payload = json, .n = n, .qos = 1, .content_type = "application/json"};
    if (mqtt_publish(v->client, &m, &e) < 0)
        log_warn("mqtt", "an answer to the microphone %s is lost: %s", name, e.msg);
}

static void publish_error(struct mqtt_voice *v, const char *name, const char *why)
{
    struct buf b;
    buf_init(&b, 4096);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_member_str(&j, "message", why);
    json_out_object_end(&j);
    publish(v, name, "error", buf_str(&b), b.len);
    buf_fini(&b);
}

/* ---- turns, on the loop ---- */

static void on_event(void *ctx, const char *json, size_t n)
{
    (void)ctx;
    (void)json;
    (void)n;
}

static void on_answered(void *ctx, int status, const char *body, size_t n)
{
    struct voice_mic *m = ctx;
    m->call = NULL;
    while (n > 0 && body[n - 1] == '\n')
        n--;
    publish(m->voice, m->name, status == 200 ? "action" : "error", n ? body : "{}", n ? n : 2);
}

static void ask(struct voice_mic *m, const struct listener_turn *t, const char *text)
{
    static const struct inner_call_ops ops = {on_event, on_answered};
    const struct inner_call_opts o = {.path = "/v1/process",
                                      .authorization = m->authorization,
                                      .peer = "mqtt",
                                      .protocol = "mqtt"};
    cJSON *j = cJSON_CreateObject();
    bool ok = j && cJSON_AddStringToObject(j, "text", text) &&
              cJSON_AddNumberToObject(j, "heard", (double)t->confidence) &&
              cJSON_AddStringToObject(j, "session_id", m->name);
    if (ok && m->room[0])
        ok = cJSON_AddStringToObject(j, "room", m->room) != NULL;
    if (!ok || m->call) { /* a microphone has one command at a time */
        cJSON_Delete(j);
        publish_error(m->voice, m->name, "the last command is still being carried out");
        return;
    }
    inner_call_start(&m->call, m->voice->gl, &o, j, &ops, m);
}

static void on_turn(void *ctx, const struct listener_turn *t)
{
    struct voice_mic *m = ctx;
    struct mqtt_voice *v = m->voice;
    struct buf text;
    buf_clear(&v->out);
    buf_clear(&v->phrases);
    struct json_out j = json_out_make(&v->out);
    json_out_object(&j);
    json_out_member_strn(&j, "text", t->text, t->text_bytes);
    json_out_member_num(&j, "confidence", (double)t->confidence);
    json_out_member_num(&j, "start", t->start_s);
    json_out_member_num(&j, "end", t->end_s);
    json_out_object_end(&j);
    publish(v, m->name, "transcript", buf_str(&v->out), v->out.len);
    buf_init(&text, (size_t)64 << 10);
    buf_put(&text, t->text, t->text_bytes);
    if (text.len > 0 && text.rc == 0)
        ask(m, t, buf_str(&text));
    buf_fini(&text);
}

static void on_failed(void *ctx, const struct failure *f)
{
    struct voice_mic *m = ctx;
    publish_error(m->voice, m->name, f->message);
}

static struct request *new_request(void *ctx)
{
    struct voice_mic *m = ctx;
    struct request *r = flow_take_request(&m->voice->gl->flow);
    if (!r)
        return NULL;
    r->from = hash_bytes(m->name, strlen(m->name), 0) | 1u;
    r->path = "/v1/voice";
    r->received_ns = loop_now(m->voice->gl->loop);
    return r;
}

static const char *phrases(void *ctx)
{
    struct mqtt_voice *v = ((struct voice_mic *)ctx)->voice;
    if (v->phrases.len == 0)
        voice_turn_phrases(&v->phrases, v->gl);
    return v->phrases.rc == 0 ? buf_str(&v->phrases) : NULL;
}

static void mic_free(struct voice_mic *m)
{
    if (!m)
        return;
    if (m->call)
        inner_call_cancel(m->call);
    listener_destroy(m->listener);
    pcm_destroy(m->pcm);
    mem_free(m->authorization);
    mem_free(m);
}

/* The microphone of this name; a new one takes the place of the one that is silent longest. */
static struct voice_mic *find(struct mqtt_voice *v, const struct frame *f, struct err *e)
{
    static const struct listener_ops ops = {
        .turn = on_turn, .failed = on_failed, .request = new_request, .phrases = phrases};
    struct voice_mic **place = &v->mics[0];
    for (uint32_t i = 0; i < MQTT_VOICE_MOST; i++) {
        struct voice_mic **at = &v->mics[i];
        if (*at && strcmp((*at)->name, f->name) == 0)
            return *at;
        if (*place && (!*at || (*at)->used < (*place)->used))
            place = at;
    }
    mic_free(*place);
    struct voice_mic *m = *place = mem_zalloc(sizeof(*m));
    if (!m || listener_create(&m->listener, &v->gl->flow, &ops, m, e) < 0) {
        mic_free(m);
        *place = NULL;
        return NULL;
    }
    m->voice = v;
    memcpy(m->name, f->name, sizeof(m->name));
    memcpy(m->room, f->room, sizeof(m->room));
    const size_t cap = strlen(f->key) + sizeof("Bearer ");
    if (f->key[0] && (m->authorization = mem_zalloc(cap)))
        snprintf(m->authorization, cap, "Bearer %s", f->key);
    return m;
}

static int feed(struct mqtt_voice *v, struct voice_mic *m, const struct frame *f, struct err *e)
{
    int rc = 0;
    if (!m->pcm || memcmp(&m->form, &f->form, sizeof(m->form)) != 0) {
        pcm_destroy(m->pcm);
        m->pcm = NULL;
        m->form = f->form;
        rc = pcm_create(&m->pcm, &f->form, e);
    }
    buf_clear(&v->samples);
    if (rc == 0)
        rc = pcm_feed(m->pcm, f->bytes, f->n, &v->samples, e);
    if (rc == 0 &&
        (rc = listener_feed(m->listener, (const int16_t *)(const void *)buf_str(&v->samples),
                            (uint32_t)(v->samples.len / sizeof(int16_t)))) < 0)
        (void)err_set(e, rc, "the sound comes faster than it can be heard: some is lost");
    return rc;
}

static void on_frame(struct executor_task *t)
{
    struct frame *f = LOOP_OF(t, struct frame, task);
    struct mqtt_voice *v = f->voice;
    struct err e = {0};
    atomic_fetch_sub(&v->n_waiting, 1);
    struct voice_mic *m = atomic_load(&v->closed) ? NULL : find(v, f, &e);
    if (m) {
        m->used = ++v->n_frames;
        if (f->n == 0)
            listener_finish(m->listener);
        else if (feed(v, m, f, &e) < 0)
            publish_error(v, f->name, e.msg);
    }
    mem_free(f);
}

/* ---- messages, on the client's thread ---- */

static const char *number(uint32_t *out, const char *text)
{
    char *end = NULL;
    const unsigned long v = text ? strtoul(text, &end, 10) : 0;
    if (!text)
        return NULL;
    if (!*text || *end || v < 1 || v > 1000000)
        return "the user properties 'rate' and 'channels' must be numbers";
    *out = (uint32_t)v;
    return NULL;
}

/* The form of a message's samples, from its user properties; NULL, or what is wrong. */
static const char *read_form(struct pcm_form *out, const struct mqtt_message *m)
{
    const char *format = mqtt_message_get(m, "format");
    memset(out, 0, sizeof(*out)); /* forms are compared byte by byte */
    out->rate = EAR_RATE;
    out->channels = 1;
    out->width = 2;
    const char *wrong = number(&out->rate, mqtt_message_get(m, "rate"));
    wrong = wrong ? wrong : number(&out->channels, mqtt_message_get(m, "channels"));
    if (wrong || !format || strcmp(format, "s16") == 0)
        return wrong;
    if (strcmp(format, "f32") != 0)
        return "the user property 'format' must be s16 or f32";
    out->is_float = true;
    out->width = 4;
    return NULL;
}

static const char *read_frame(struct mqtt_voice *v, struct frame *f, const struct mqtt_message *m)
{
    const char *room = mqtt_message_get(m, "room"), *key = mqtt_message_get(m, "key");
    struct admission *a = v->gw->admission;
    if (admission_needed(a) && (!key || !admission_find(a, key, strlen(key))))
        return key ? "unknown API key" : "no API key: send it as user property 'key'";
    if ((room && strlen(room) >= sizeof(f->room)) || (key && strlen(key) >= sizeof(f->key)))
        return "a user property is too long";
    snprintf(f->room, sizeof(f->room), "%s", room ? room : "");
    snprintf(f->key, sizeof(f->key), "%s", key ? key : "");
    return read_form(&f->form, m);
}

static void on_message(void *ctx, const struct mqtt_message *m)
{
    struct mqtt_voice *v = ctx;
    struct str name[MQTT_TOPIC_MAX_LEVELS] = {{"", 0}};
    size_t n = 0;
    mqtt_topic_matches(v->filter, m->topic, name, &n);
    if (n != 1 || name[0].n == 0 || name[0].n >= MAX_NAME)
        return;
    struct frame *f = mem_zalloc(sizeof(*f) + m->n);
    if (!f)
        return;
    memcpy(f->name, name[0].p, name[0].n);
    const char *wrong = m->n > v->config->payload_bytes
                            ? "the payload is larger than mqtt.requests.payload"
                            : read_frame(v, f, m);
    if (!wrong && atomic_load(&v->n_waiting) >= MAX_WAITING)
        wrong = "the sound comes faster than it can be heard: some is lost";
    if (wrong) {
        publish_error(v, f->name, wrong);
        mem_free(f);
        return;
    }
    f->voice = v;
    f->n = m->n;
    if (m->n > 0)
        memcpy(f->bytes, m->payload, m->n);
    f->task.fn = on_frame;
    atomic_fetch_add(&v->n_waiting, 1);
    loop_post(v->gl->loop, &f->task);
}

/* ---- life ---- */

int mqtt_voice_create(struct mqtt_voice **out, struct gw *gw, struct err *e)
{
    struct mqtt *client = mqtt_site_client(gw->mqtt);
    const struct config_mqtt *k = client ? &mqtt_site_config(gw->mqtt)->mqtt : NULL;
    *out = NULL;
    if (!client || !k->requests)
        return 0;
    struct mqtt_voice *v = mem_zalloc(sizeof(*v));
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "MQTT");
    v->gw = gw;
    v->gl = &gw->loops[0];
    v->client = client;
    v->config = k;
    buf_init(&v->samples, 16 * k->payload_bytes + 64);
    buf_init(&v->out, MAX_OUT_BYTES);
    buf_init(&v->phrases, (size_t)128 << 10);
    snprintf(v->filter, sizeof(v->filter), "%s/voice/+/audio", k->topic);
    int rc = mqtt_subscribe(client, v->filter, 0, MQTT_RETAINED_NEVER, on_message, v, e);
    if (rc < 0) {
        mem_free(v);
        return rc;
    }
    *out = v;
    return 0;
}

void mqtt_voice_end(struct mqtt_voice *v, struct gw_loop *gl)
{
    if (!v || gl != v->gl)
        return;
    atomic_store(&v->closed, true);
    loop_flush(gl->loop); /* posted but not taken */
    for (uint32_t i = 0; i < MQTT_VOICE_MOST; i++) {
        mic_free(v->mics[i]);
        v->mics[i] = NULL;
    }
}

void mqtt_voice_destroy(struct mqtt_voice *v)
{
    if (!v)
        return;
    buf_fini(&v->samples);
    buf_fini(&v->out);
    buf_fini(&v->phrases);
    mem_free(v);
}
