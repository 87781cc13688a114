/* realtime_answer.c - see realtime_answer.h. */
#include "gateway/realtime/realtime_answer.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "audio/pcm.h"
#include "base/mem.h"
#include "gateway/call/inner_call.h"
#include "gateway/wyoming/wyoming_info.h"

#define MAX_TEXT_BYTES ((size_t)256 << 10)
#define MAX_SOUND_BYTES ((size_t)8 << 20)
#define SOUND_RATE 24000u /* of what is sent */
#define VOICE_RATE 22050u /* of /v1/audio/speech */

void realtime_answer_init(struct realtime_answer *a)
{
    buf_init(&a->text, MAX_TEXT_BYTES);
    buf_init(&a->arguments, MAX_TEXT_BYTES);
    buf_init(&a->name, 256);
    buf_init(&a->call_id, 256);
    buf_init(&a->samples, MAX_SOUND_BYTES);
    buf_init(&a->coded, 2 * MAX_SOUND_BYTES);
}

static void drop(struct realtime_answer *a)
{
    if (a->call)
        inner_call_cancel(a->call);
    a->call = NULL;
    pcm_destroy(a->pcm);
    a->pcm = NULL;
    cJSON_Delete(a->output);
    a->output = NULL;
    realtime_settings_fini(&a->settings);
    a->active = false;
}

void realtime_answer_fini(struct realtime_answer *a)
{
    drop(a);
    buf_fini(&a->text);
    buf_fini(&a->arguments);
    buf_fini(&a->name);
    buf_fini(&a->call_id);
    buf_fini(&a->samples);
    buf_fini(&a->coded);
}

/* ---- events ---- */

/* The name of an event, which the beta wrote differently. */
static const char *named(const struct realtime_answer *a, const char *now, const char *beta)
{
    return a->beta ? beta : now;
}

static struct json_out begin(struct realtime_answer *a, const char *type)
{
    struct json_out j = a->ops->begin(a->ctx, type);
    json_out_member_str(&j, "response_id", a->id);
    return j;
}

static void end(struct realtime_answer *a, struct json_out *j)
{
    a->ops->end(a->ctx, j);
}

static void put_json(struct json_out *j, const char *key, const cJSON *v)
{
    char *text = v ? cJSON_PrintUnformatted(v) : NULL;
    json_out_member_raw(j, key, text ? text : "null", strlen(text ? text : "null"));
    cJSON_free(text);
}

static void send_response(struct realtime_answer *a, const char *type, const char *status,
                          const char *reason, const char *message)
{
    struct json_out j = a->ops->begin(a->ctx, type);
    json_out_member_object(&j, "response");
    json_out_member_str(&j, "id", a->id);
    json_out_member_str(&j, "object", "realtime.response");
    json_out_member_str(&j, "status", status);
    json_out_key(&j, "status_details");
    if (reason) {
        json_out_object(&j);
        json_out_member_str(&j, "type", status);
        if (message) {
            json_out_member_object(&j, "error");
            json_out_member_str(&j, "type", "server_error");
            json_out_member_str(&j, "code", reason);
            json_out_member_str(&j, "message", message);
            json_out_object_end(&j);
        } else {
            json_out_member_str(&j, "reason", reason);
        }
        json_out_object_end(&j);
    } else {
        json_out_null(&j);
    }
    if (a->output)
        put_json(&j, "output", a->output);
    json_out_object_end(&j);
    end(a, &j);
}

/* Members that most events have. */
static void put_place(struct realtime_answer *a, struct json_out *j, const char *item,
                      uint32_t index, bool content)
{
    (void)a;
    json_out_member_str(j, "item_id", item);
    json_out_member_uint(j, "output_index", index);
    if (content)
        json_out_member_uint(j, "content_index", 0);
}

static void put_part(struct realtime_answer *a, struct json_out *j)
{
    json_out_member_object(j, "part");
    json_out_member_str(j, "type", a->audio ? "audio" : "text");
    json_out_member_strn(j, a->audio ? "transcript" : "text", buf_str(&a->text), a->text.len);
    json_out_object_end(j);
}

static void send_item(struct realtime_answer *a, const char *type, uint32_t index,
                      const char *item_type, const char *id, const cJSON *whole)
{
    struct json_out j = begin(a, type);
    json_out_member_uint(&j, "output_index", index);
    if (whole) {
        put_json(&j, "item", whole);
    } else {
        json_out_member_object(&j, "item");
        json_out_member_str(&j, "id", id);
        json_out_member_str(&j, "object", "realtime.item");
        json_out_member_str(&j, "type", item_type);
        json_out_member_str(&j, "status", "in_progress");
        if (strcmp(item_type, "message") == 0) {
            json_out_member_str(&j, "role", "assistant");
            json_out_member_array(&j, "content");
            json_out_array_end(&j);
        } else {
            json_out_member_str(&j, "name", buf_str(&a->name));
            json_out_member_str(&j, "call_id", buf_str(&a->call_id));
            json_out_member_str(&j, "arguments", "");
        }
        json_out_object_end(&j);
    }
    end(a, &j);
}

/* An item is complete: it is part of the conversation. */
static void add_output(struct realtime_answer *a, uint32_t index, const cJSON *item)
{
    if (!item)
        return;
    send_item(a, "response.output_item.done", index, NULL, NULL, item);
    struct json_out j =
        a->ops->begin(a->ctx, named(a, "conversation.item.done", "conversation.item.created"));
    const char *before = realtime_items_before(a->items, item);
    json_out_key(&j, "previous_item_id");
    if (before)
        json_out_str(&j, before);
    else
        json_out_null(&j);
    put_json(&j, "item", item);
    end(a, &j);
    cJSON *copy = cJSON_Duplicate(item, true);
    if (!copy || !cJSON_AddItemToArray(a->output, copy))
        cJSON_Delete(copy);
}

/* ---- its end ---- */

static void send_sound(struct realtime_answer *a, const void *samples, size_t n);

static void end_sound(struct realtime_answer *a)
{
    static const char silence[400]; /* moves the last samples out of the resampler */
    struct err e = {0};
    buf_clear(&a->samples);
    if (a->pcm && pcm_feed(a->pcm, silence, sizeof(silence), &a->samples, &e) == 0)
        send_sound(a, buf_str(&a->samples), a->samples.len);
    struct json_out j = begin(a, named(a, "response.output_audio.done", "response.audio.done"));
    put_place(a, &j, a->item_id, 0, true);
    end(a, &j);
}

static void end_message(struct realtime_answer *a)
{
    if (!a->has_message)
        return;
    if (a->audio)
        end_sound(a);
    struct json_out j =
        begin(a, a->audio ? named(a, "response.output_audio_transcript.done",
                                  "response.audio_transcript.done")
                          : named(a, "response.output_text.done", "response.text.done"));
    put_place(a, &j, a->item_id, 0, true);
    json_out_member_strn(&j, a->audio ? "transcript" : "text", buf_str(&a->text), a->text.len);
    end(a, &j);
    j = begin(a, "response.content_part.done");
    put_place(a, &j, a->item_id, 0, true);
    put_part(a, &j);
    end(a, &j);
    const char *part =
        a->audio ? named(a, "output_audio", "audio") : named(a, "output_text", "text");
    add_output(a, 0,
               realtime_items_say(a->items, a->item_id, "assistant", part,
                                  a->audio ? "transcript" : "text", buf_str(&a->text)));
    a->has_message = false;
}

static void end_function(struct realtime_answer *a)
{
    if (!a->calls)
        return;
    a->calls = false;
    const uint32_t index = a->n_output - 1;
    struct json_out j = begin(a, "response.function_call_arguments.done");
    put_place(a, &j, a->call_item, index, false);
    json_out_member_str(&j, "call_id", buf_str(&a->call_id));
    json_out_member_str(&j, "name", buf_str(&a->name));
    json_out_member_strn(&j, "arguments", buf_str(&a->arguments), a->arguments.len);
    end(a, &j);
    add_output(a, index,
               realtime_items_call(a->items, a->call_item, buf_str(&a->call_id), buf_str(&a->name),
                                   buf_str(&a->arguments)));
}

static void finish(struct realtime_answer *a, const char *status, const char *reason,
                   const char *message)
{
    end_message(a);
    end_function(a);
    send_response(a, "response.done", status, reason, message);
    drop(a);
    a->ops->done(a->ctx);
}

void realtime_answer_cancel(struct realtime_answer *a, const char *reason)
{
    if (!a->active)
        return;
    if (a->call)
        inner_call_cancel(a->call);
    a->call = NULL;
    finish(a, "cancelled", reason, NULL);
}

/* ---- words ---- */

static void begin_message(struct realtime_answer *a)
{
    if (a->has_message)
        return;
    a->has_message = true;
    realtime_items_id(a->items, a->item_id, sizeof(a->item_id));
    send_item(a, "response.output_item.added", a->n_output++, "message", a->item_id, NULL);
    struct json_out j = begin(a, "response.content_part.added");
    put_place(a, &j, a->item_id, 0, true);
    put_part(a, &j);
    end(a, &j);
}

static void take_text(struct realtime_answer *a, const char *text)
{
    if (!text || !text[0])
        return;
    begin_message(a);
    buf_puts(&a->text, text);
    struct json_out j =
        begin(a, a->audio ? named(a, "response.output_audio_transcript.delta",
                                  "response.audio_transcript.delta")
                          : named(a, "response.output_text.delta", "response.text.delta"));
    put_place(a, &j, a->item_id, 0, true);
    json_out_member_str(&j, "delta", text);
    end(a, &j);
}

static const char *text_of(const cJSON *j, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, key));
}

static void begin_function(struct realtime_answer *a, const char *id, const char *name)
{
    end_function(a);
    a->calls = true;
    buf_clear(&a->arguments);
    buf_clear(&a->name);
    buf_clear(&a->call_id);
    buf_puts(&a->name, name);
    buf_puts(&a->call_id, id);
    realtime_items_id(a->items, a->call_item, sizeof(a->call_item));
    if (a->n_output == 0 && a->has_message)
        a->n_output = 1;
    send_item(a, "response.output_item.added", a->n_output++, "function_call", a->call_item, NULL);
}

/* A part of a call: the first has id and name, the others more of the arguments. */
static void take_call(struct realtime_answer *a, const cJSON *call)
{
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(call, "function");
    const char *id = text_of(call, "id"), *name = text_of(f, "name"),
               *more = text_of(f, "arguments");
    if (id && name)
        begin_function(a, id, name);
    if (!a->calls || !more || !more[0])
        return;
    buf_puts(&a->arguments, more);
    struct json_out j = begin(a, "response.function_call_arguments.delta");
    put_place(a, &j, a->call_item, a->n_output - 1, false);
    json_out_member_str(&j, "call_id", buf_str(&a->call_id));
    json_out_member_str(&j, "delta", more);
    end(a, &j);
}

/* ---- sound ---- */

static void send_sound(struct realtime_answer *a, const void *samples, size_t n)
{
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < 48000 ? n - at
                           : 48000; /* a second: divisible by 3, so that it has no padding */
        buf_clear(&a->coded);
        char *to = buf_room(&a->coded, k / 3 * 4 + 8);
        if (!to)
            return;
        const int len =
            EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)samples + at, (int)k);
        struct json_out j =
            begin(a, named(a, "response.output_audio.delta", "response.audio.delta"));
        put_place(a, &j, a->item_id, 0, true);
        json_out_member_strn(&j, "delta", to, (size_t)len);
        end(a, &j);
    }
}

/* A piece of /v1/audio/speech in base64. */
static void take_sound(struct realtime_answer *a, const char *text)
{
    const size_t len = text ? strlen(text) : 0;
    struct err e = {0};
    unsigned char *bytes = len > 0 && len < MAX_SOUND_BYTES ? mem_alloc(len) : NULL;
    const int got = bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len) : 0;
    if (got > 0) {
        const size_t n = (size_t)got - (text[len - 1] == '=') - (text[len - 2] == '=');
        buf_clear(&a->samples);
        if (pcm_feed(a->pcm, bytes, n, &a->samples, &e) == 0)
            send_sound(a, buf_str(&a->samples), a->samples.len);
    }
    mem_free(bytes);
}

static void on_event(void *ctx, const char *text, size_t n);
static void on_end(void *ctx, int status, const char *body, size_t n);
static const struct inner_call_ops call_ops = {on_event, on_end};

static void start_call(struct realtime_answer *a, const char *path, cJSON *body)
{
    const struct inner_call_opts o = {.path = path,
                                      .authorization = a->authorization,
                                      .peer = a->peer,
                                      .protocol = "websocket",
                                      .account = a->account};
    inner_call_start(&a->call, a->gl, &o, body, &call_ops, a);
}

static void speak(struct realtime_answer *a)
{
    const struct pcm_form form = {
        .rate = VOICE_RATE, .channels = 1, .width = 2, .to_rate = SOUND_RATE};
    cJSON *j = cJSON_CreateObject();
    struct err e = {0};
    bool ok = j && cJSON_AddStringToObject(j, "input", buf_str(&a->text)) &&
              cJSON_AddStringToObject(j, "model",
                                      wyoming_info_voice(a->gl, a->voice, sizeof(a->voice))) &&
              cJSON_AddStringToObject(j, "response_format", "pcm") &&
              cJSON_AddStringToObject(j, "stream_format", "sse");
    if (ok && pcm_create(&a->pcm, &form, &e) < 0)
        ok = false;
    if (!ok) {
        cJSON_Delete(j);
        finish(a, "failed", "server_error", e.msg[0] ? e.msg : "out of memory");
        return;
    }
    a->speaks = true;
    start_call(a, "/v1/audio/speech", j);
}

/* ---- the work behind it ---- */

static void on_event(void *ctx, const char *text, size_t n)
{
    struct realtime_answer *a = ctx;
    cJSON *json = cJSON_ParseWithLength(text, n);
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error"), *call;
    if (a->speaks) {
        take_sound(a, text_of(json, "audio"));
    } else if (e) {
        a->failed = true;
        buf_clear(&a->coded);
        buf_puts(&a->coded, text_of(e, "message") ? text_of(e, "message") : "it failed");
    } else if (strcmp(a->model, REALTIME_HOME) == 0) {
        const char *type = text_of(json, "type");
        if (type && strcmp(type, "text") == 0)
            take_text(a, text_of(json, "text"));
    } else {
        const cJSON *delta = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "choices"), 0), "delta");
        take_text(a, text_of(delta, "content"));
        cJSON_ArrayForEach(call, cJSON_GetObjectItemCaseSensitive(delta, "tool_calls"))
            take_call(a, call);
    }
    cJSON_Delete(json);
}

static void on_end(void *ctx, int status, const char *body, size_t n)
{
    struct realtime_answer *a = ctx;
    a->call = NULL;
    if (status != 200) { /* refused before it began: the body is an error */
        cJSON *json = cJSON_ParseWithLength(body, n);
        const char *msg = text_of(cJSON_GetObjectItemCaseSensitive(json, "error"), "message");
        finish(a, "failed", "server_error", msg ? msg : "it could not be answered");
        cJSON_Delete(json);
    } else if (a->failed) {
        char msg[256];
        snprintf(msg, sizeof(msg), "%s", buf_str(&a->coded));
        finish(a, "failed", "server_error", msg);
    } else if (!a->speaks && a->audio && a->text.len > 0) {
        speak(a);
    } else {
        finish(a, "completed", NULL, NULL);
    }
}

/* The body of /v1/process; NULL: out of memory. */
static cJSON *home_body(const struct realtime_answer *a)
{
    cJSON *j = cJSON_CreateObject();
    bool ok = j && cJSON_AddStringToObject(j, "text", realtime_items_last_user(a->items)) &&
              cJSON_AddTrueToObject(j, "stream") &&
              cJSON_AddStringToObject(j, "session_id", a->session);
    if (ok && a->heard > 0)
        ok = cJSON_AddNumberToObject(j, "heard", (double)a->heard) != NULL;
    if (ok)
        return j;
    cJSON_Delete(j);
    return NULL;
}

static bool add_copy(cJSON *to, const char *key, const cJSON *v)
{
    cJSON *copy = v ? cJSON_Duplicate(v, true) : NULL;
    if (!v || (copy && cJSON_AddItemToObject(to, key, copy)))
        return true;
    cJSON_Delete(copy);
    return false;
}

static cJSON *chat_body(const struct realtime_answer *a)
{
    const struct realtime_settings *s = &a->settings;
    cJSON *j = cJSON_CreateObject(), *messages = realtime_items_messages(a->items, s->instructions);
    bool ok = j && messages && cJSON_AddStringToObject(j, "model", a->model) &&
              cJSON_AddTrueToObject(j, "stream");
    if (ok && !cJSON_AddItemToObject(j, "messages", messages))
        ok = false;
    else if (ok)
        messages = NULL;
    ok = ok && add_copy(j, "tools", s->tools) &&
         (!s->tools || add_copy(j, "tool_choice", s->tool_choice));
    if (ok && s->temperature >= 0)
        ok = cJSON_AddNumberToObject(j, "temperature", s->temperature) != NULL;
    if (ok && s->max_tokens > 0)
        ok = cJSON_AddNumberToObject(j, "max_completion_tokens", s->max_tokens) != NULL;
    ok = ok && cJSON_AddStringToObject(j, "truncation", s->keeps_all ? "disabled" : "auto");
    cJSON_Delete(messages);
    if (ok)
        return j;
    cJSON_Delete(j);
    return NULL;
}

void realtime_answer_start(struct realtime_answer *a, struct realtime_settings *s)
{
    const bool home = strcmp(a->model, REALTIME_HOME) == 0;
    char item[40];
    a->settings = *s;
    realtime_settings_init(s);
    a->active = true;
    a->audio = a->settings.audio;
    a->speaks = a->has_message = a->calls = a->failed = false;
    a->n_output = 0;
    a->output = cJSON_CreateArray();
    buf_clear(&a->text);
    realtime_items_id(a->items, item, sizeof(item));
    snprintf(a->id, sizeof(a->id), "resp_%s", item + strlen("item_"));
    send_response(a, "response.created", "in_progress", NULL, NULL);
    start_call(a, home ? "/v1/process" : "/v1/chat/completions",
               home ? home_body(a) : chat_body(a));
}
