/* realtime_read.c - see realtime_read.h. */
#include "gateway/realtime/realtime_read.h"

#include <string.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "wire/json_scan.h"

#define MAX_VALUES 20000u
#define MAX_INSTRUCTIONS ((size_t)64 << 10)
#define MAX_TOOLS 128
#define RATE 24000u

static const cJSON *member(const cJSON *j, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(j, key);
}

static const char *text_of(const cJSON *j, const char *key)
{
    return cJSON_GetStringValue(member(j, key));
}

/* ---- settings ---- */

void realtime_settings_init(struct realtime_settings *s)
{
    *s = (struct realtime_settings){.audio = true,
                                    .vad = true,
                                    .creates = true,
                                    .interrupts = true,
                                    .rate = RATE,
                                    .temperature = -1,
                                    .max_tokens = -1};
}

void realtime_settings_fini(struct realtime_settings *s)
{
    mem_free(s->instructions);
    cJSON_Delete(s->tools);
    cJSON_Delete(s->tool_choice);
    s->instructions = NULL;
    s->tools = s->tool_choice = NULL;
}

bool realtime_settings_copy(struct realtime_settings *out, const struct realtime_settings *from)
{
    *out = *from;
    out->instructions = from->instructions ? mem_strdup(from->instructions) : NULL;
    out->tools = from->tools ? cJSON_Duplicate(from->tools, true) : NULL;
    out->tool_choice = from->tool_choice ? cJSON_Duplicate(from->tool_choice, true) : NULL;
    if ((from->instructions && !out->instructions) || (from->tools && !out->tools) ||
        (from->tool_choice && !out->tool_choice)) {
        realtime_settings_fini(out);
        realtime_settings_init(out);
        return false;
    }
    return true;
}

static const char *read_modalities(struct realtime_settings *s, const cJSON *list)
{
    static const char wrong[] = "modalities must be a list of \"text\" and \"audio\"";
    const cJSON *v;
    bool audio = false;
    if (!list)
        return NULL;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0)
        return wrong;
    cJSON_ArrayForEach(v, list)
    {
        const char *name = cJSON_GetStringValue(v);
        if (!name || (strcmp(name, "audio") != 0 && strcmp(name, "text") != 0))
            return wrong;
        audio |= strcmp(name, "audio") == 0;
    }
    s->audio = audio;
    return NULL;
}

static const char *read_format(struct realtime_settings *s, const cJSON *format, bool input)
{
    const char *name = cJSON_IsString(format) ? format->valuestring : text_of(format, "type");
    const cJSON *rate = member(format, "rate");
    if (!format || cJSON_IsNull(format))
        return NULL;
    if (!name || (strcmp(name, "pcm16") != 0 && strcmp(name, "audio/pcm") != 0))
        return "the format of sound must be pcm16 (audio/pcm): 16 bits, one channel";
    if (rate && (!cJSON_IsNumber(rate) || rate->valuedouble < 8000 || rate->valuedouble > 48000))
        return "the rate of sound must be 8000 to 48000";
    if (rate && !input && rate->valuedouble != RATE)
        return "sound is sent with 24000 samples a second";
    if (rate && input)
        s->rate = (uint32_t)rate->valuedouble;
    return NULL;
}

static const char *read_turns(struct realtime_settings *s, const cJSON *parent)
{
    const cJSON *v = member(parent, "turn_detection"), *creates = member(v, "create_response"),
                *interrupts = member(v, "interrupt_response");
    const char *type = text_of(v, "type");
    if (!v)
        return NULL;
    if (!cJSON_IsNull(v) &&
        (!type || (strcmp(type, "server_vad") != 0 && strcmp(type, "semantic_vad") != 0)))
        return "turn_detection must be null, or have the type server_vad or semantic_vad";
    s->vad = !cJSON_IsNull(v);
    if (cJSON_IsBool(creates))
        s->creates = cJSON_IsTrue(creates);
    if (cJSON_IsBool(interrupts))
        s->interrupts = cJSON_IsTrue(interrupts);
    return NULL;
}

static const char *read_voice(struct realtime_settings *s, const cJSON *voice)
{
    if (cJSON_IsObject(voice))
        voice = member(voice, "id");
    if (!voice || cJSON_IsNull(voice))
        return NULL;
    if (!cJSON_IsString(voice) || strlen(voice->valuestring) >= sizeof(s->voice))
        return "voice must be a name of at most 63 bytes";
    memcpy(s->voice, voice->valuestring, strlen(voice->valuestring) + 1);
    return NULL;
}

static const char *read_instructions(struct realtime_settings *s, const cJSON *v)
{
    if (!v || cJSON_IsNull(v))
        return NULL;
    if (!cJSON_IsString(v) || strlen(v->valuestring) > MAX_INSTRUCTIONS)
        return "instructions must be a text of at most 64 KiB";
    char *copy = mem_strdup(v->valuestring);
    if (!copy)
        return "out of memory";
    mem_free(s->instructions);
    s->instructions = copy;
    return NULL;
}

/* {"type": "function", "name": ...} as {"type": "function", "function": {"name": ...}} */
static cJSON *chat_tool(const cJSON *tool)
{
    cJSON *out = cJSON_CreateObject(), *f = cJSON_Duplicate(tool, true);
    cJSON_DeleteItemFromObjectCaseSensitive(f, "type");
    if (out && f && cJSON_AddStringToObject(out, "type", "function") &&
        cJSON_AddItemToObject(out, "function", f))
        return out;
    cJSON_Delete(out);
    cJSON_Delete(f);
    return NULL;
}

static const char *read_tools(struct realtime_settings *s, const cJSON *list)
{
    const cJSON *v;
    if (!list || cJSON_IsNull(list))
        return NULL;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > MAX_TOOLS)
        return "tools must be a list of at most 128 functions";
    cJSON_ArrayForEach(v, list)
    {
        const char *type = text_of(v, "type");
        if (!type || strcmp(type, "function") != 0 || !text_of(v, "name"))
            return "a tool must have the type function, and a name";
    }
    cJSON *tools = cJSON_CreateArray();
    cJSON_ArrayForEach(v, list)
    {
        cJSON *tool = chat_tool(v);
        if (!tool || !cJSON_AddItemToArray(tools, tool)) {
            cJSON_Delete(tool);
            cJSON_Delete(tools);
            return "out of memory";
        }
    }
    cJSON_Delete(s->tools);
    s->tools = tools;
    if (tools && cJSON_GetArraySize(tools) == 0) {
        cJSON_Delete(tools);
        s->tools = NULL;
    }
    return NULL;
}

static const char *read_choice(struct realtime_settings *s, const cJSON *v)
{
    const char *word = cJSON_GetStringValue(v), *type = text_of(v, "type"),
               *name = text_of(v, "name");
    if (!v || cJSON_IsNull(v))
        return NULL;
    if (word ? strcmp(word, "auto") != 0 && strcmp(word, "none") != 0 &&
                   strcmp(word, "required") != 0
             : !name || !type || strcmp(type, "function") != 0)
        return "tool_choice must be auto, none, required, or a function with its name";
    cJSON *copy = name ? chat_tool(v) : cJSON_Duplicate(v, true);
    if (!copy)
        return "out of memory";
    cJSON_Delete(s->tool_choice);
    s->tool_choice = copy;
    return NULL;
}

static const char *read_numbers(struct realtime_settings *s, const cJSON *json)
{
    static const char *const names[] = {"max_output_tokens", "max_response_output_tokens"};
    const cJSON *t = member(json, "temperature");
    if (t && !cJSON_IsNull(t)) {
        if (!cJSON_IsNumber(t) || !(t->valuedouble >= 0 && t->valuedouble <= 2))
            return "temperature must be 0 to 2";
        s->temperature = t->valuedouble;
    }
    for (int i = 0; i < 2; i++) {
        const cJSON *v = member(json, names[i]);
        if (!v || cJSON_IsNull(v))
            continue;
        const bool inf = cJSON_IsString(v) && strcmp(v->valuestring, "inf") == 0;
        if (!inf && (!cJSON_IsNumber(v) || !(v->valuedouble >= 1 && v->valuedouble <= 1e6)))
            return "max_output_tokens must be a number from 1, or \"inf\"";
        s->max_tokens = inf ? -1 : v->valuedouble;
    }
    return NULL;
}

/* A ratio that stays after a cut is OpenAI's for its prices: as many turns as fit stay here. */
static const char *read_truncation(struct realtime_settings *s, const cJSON *v)
{
    const char *type = v && cJSON_IsObject(v) ? text_of(v, "type") : cJSON_GetStringValue(v);
    if (!v || cJSON_IsNull(v))
        return NULL;
    if (!type || (strcmp(type, "auto") != 0 && strcmp(type, "disabled") != 0 &&
                  strcmp(type, "retention_ratio") != 0))
        return "truncation must be auto, disabled, or an object of the type retention_ratio";
    s->keeps_all = strcmp(type, "disabled") == 0;
    return NULL;
}

static const char *read_sound(struct realtime_settings *s, const cJSON *json)
{
    const cJSON *audio = member(json, "audio"), *in = member(audio, "input"),
                *out = member(audio, "output");
    const char *wrong = read_format(s, member(json, "input_audio_format"), true);
    wrong = wrong ? wrong : read_format(s, member(json, "output_audio_format"), false);
    wrong = wrong ? wrong : read_format(s, member(in, "format"), true);
    wrong = wrong ? wrong : read_format(s, member(out, "format"), false);
    wrong = wrong ? wrong : read_turns(s, json);
    wrong = wrong ? wrong : read_turns(s, in);
    wrong = wrong ? wrong : read_voice(s, member(json, "voice"));
    return wrong ? wrong : read_voice(s, member(out, "voice"));
}

const char *realtime_settings_read(struct realtime_settings *s, const cJSON *json,
                                   const char **param)
{
    static const struct {
        const char *name;
        const char *(*read)(struct realtime_settings *s, const cJSON *v);
    } fields[] = {{"modalities", read_modalities},     {"output_modalities", read_modalities},
                  {"instructions", read_instructions}, {"tools", read_tools},
                  {"tool_choice", read_choice},        {"truncation", read_truncation}};
    const char *type = text_of(json, "type"), *wrong;
    *param = NULL;
    if (!cJSON_IsObject(json))
        return "settings must be an object";
    if (type && strcmp(type, "realtime") != 0)
        return "the type of a session must be realtime";
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if ((wrong = fields[i].read(s, member(json, fields[i].name)))) {
            *param = fields[i].name;
            return wrong;
        }
    wrong = read_sound(s, json);
    return wrong ? wrong : read_numbers(s, json);
}

/* ---- events ---- */

static const struct {
    const char *name;
    enum realtime_type type;
} types[] = {
    {"session.update", REALTIME_SESSION_UPDATE},
    {"input_audio_buffer.append", REALTIME_AUDIO_APPEND},
    {"input_audio_buffer.commit", REALTIME_AUDIO_COMMIT},
    {"input_audio_buffer.clear", REALTIME_AUDIO_CLEAR},
    {"conversation.item.create", REALTIME_ITEM_CREATE},
    {"conversation.item.delete", REALTIME_ITEM_DELETE},
    {"conversation.item.retrieve", REALTIME_ITEM_RETRIEVE},
    {"conversation.item.truncate", REALTIME_ITEM_TRUNCATE},
    {"response.create", REALTIME_RESPONSE_CREATE},
    {"response.cancel", REALTIME_RESPONSE_CANCEL},
};

static const char *decode(struct realtime_event *ev, const char *text)
{
    const size_t len = text ? strlen(text) : 0;
    if (!text || len % 4 != 0)
        return "'audio' must be base64";
    if (len == 0)
        return NULL;
    ev->sound = mem_alloc(len);
    if (!ev->sound)
        return "out of memory";
    const int got = EVP_DecodeBlock(ev->sound, (const unsigned char *)text, (int)len);
    if (got < 0)
        return "'audio' must be base64";
    ev->n_sound = (size_t)got - (text[len - 1] == '=') - (text[len - 2] == '=');
    return NULL;
}

static const char *read_parts(struct realtime_event *ev)
{
    switch (ev->type) {
    case REALTIME_AUDIO_APPEND:
        return decode(ev, text_of(ev->json, "audio"));
    case REALTIME_ITEM_CREATE:
        ev->item = member(ev->json, "item");
        ev->item_id = text_of(ev->json, "previous_item_id");
        return cJSON_IsObject(ev->item) ? NULL : "'item' must be an object";
    case REALTIME_ITEM_DELETE:
    case REALTIME_ITEM_RETRIEVE:
    case REALTIME_ITEM_TRUNCATE:
        ev->item_id = text_of(ev->json, "item_id");
        return ev->item_id ? NULL : "'item_id' is missing";
    case REALTIME_SESSION_UPDATE:
        ev->settings = member(ev->json, "session");
        return cJSON_IsObject(ev->settings) ? NULL : "'session' must be an object";
    case REALTIME_RESPONSE_CREATE:
        ev->settings = member(ev->json, "response");
        return !ev->settings || cJSON_IsObject(ev->settings) ? NULL
                                                             : "'response' must be an object";
    case REALTIME_AUDIO_COMMIT:
    case REALTIME_AUDIO_CLEAR:
    case REALTIME_RESPONSE_CANCEL:
        break;
    }
    return NULL;
}

const char *realtime_read(struct realtime_event *out, const char *p, size_t n)
{
    struct json_scan scan;
    *out = (struct realtime_event){.json = NULL};
    if (json_scan(&scan, p, n, MAX_VALUES, NULL) < 0)
        return "an event must be a JSON object, without NUL";
    out->json = cJSON_ParseWithLength(p, n);
    out->event_id = text_of(out->json, "event_id");
    const char *type = text_of(out->json, "type");
    if (!type)
        return "an event must be a JSON object with a \"type\"";
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, type) == 0) {
            out->type = types[i].type;
            return read_parts(out);
        }
    return "an event of this type is not known";
}

void realtime_free(struct realtime_event *ev)
{
    cJSON_Delete(ev->json);
    mem_free(ev->sound);
    *ev = (struct realtime_event){.json = NULL};
}
