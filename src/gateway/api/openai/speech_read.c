/* speech_read.c - bodies of /v1/audio/speech to requests; see speech.h. */
#include <string.h>

#include "flow/speak_inputs.h"
#include "gateway/api/openai/speech.h"

struct body {
    const char *model, *input, *response_format, *stream_format;
    const cJSON *voice;
    double speed, volume;
};

#define AT(member) offsetof(struct body, member)

const struct field speech_fields[] = {
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"input", FIELD_STR, AT(input), 0, 0, "the text to say, at most 16,384 bytes", NULL},
    {"voice", FIELD_VALUE, AT(voice), 0, 0, "a voice of the model; default: its first",
     "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"properties\":{\"id\":{\"type\":"
     "\"string\"}}}]}"},
    {"response_format", FIELD_STR, AT(response_format), 0, 0,
     "wav, pcm, flac, opus or mp3, if the system can write it; default: mp3 or else wav", NULL},
    {"speed", FIELD_NUM, AT(speed), 0.25, 4, "how fast; 1: as the voice speaks", NULL},
    {"volume", FIELD_NUM, AT(volume), 0.01, 4, "how loud; 1: as the voice speaks", NULL},
    {"stream_format", FIELD_STR, AT(stream_format), 0, 0,
     "audio: the bytes of the sound; sse: events with parts of them", NULL},
    {"instructions", FIELD_UNBUILT, 0, 0, 0, "how to speak: not supported", ""},
    {"user", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
};
const size_t speech_n_fields = sizeof(speech_fields) / sizeof(speech_fields[0]);

/* Without a format: OpenAI's is MP3, which not every system writes. */
static int read_format(struct speech_ask *ask, const char *name, struct fields_error *e)
{
    struct err why = {0};
    const uint32_t any_rate = 22050;
    if (!name) {
        ask->form =
            audio_form_check(AUDIO_FORM_MP3, any_rate, &why) == 0 ? AUDIO_FORM_MP3 : AUDIO_FORM_WAV;
        return 0;
    }
    if (!audio_form_named(name, &ask->form))
        return fields_fail(e, "response_format", "invalid_value",
                           "response_format '%.20s' is not supported: wav, pcm, flac, opus or mp3",
                           name);
    if (audio_form_check(ask->form, any_rate, &why) < 0)
        return fields_fail(e, "response_format", "unsupported_value", "%s", why.msg);
    return 0;
}

static int read_voice(struct speech_ask *ask, const cJSON *v, struct fields_error *e)
{
    if (cJSON_IsObject(v))
        v = cJSON_GetObjectItemCaseSensitive(v, "id");
    if (v && !cJSON_IsString(v))
        return fields_fail(e, "voice", "invalid_type", "voice must be a name");
    ask->voice = v && v->valuestring[0] ? v->valuestring : NULL;
    return 0;
}

int speech_input(struct request *r, const char *text, struct fields_error *e)
{
    struct err why = {0};
    if (!text || !text[0])
        return fields_fail(e, "input", "missing_required_parameter",
                           "input is missing: the text to say");
    const int rc = speak_inputs(r, text, strlen(text), &why);
    return rc == 0 ? 0
                   : fields_fail(e, "input",
                                 rc == SHOAL_ELIMIT ? "string_above_max_length" : "invalid_value",
                                 "%s", why.msg);
}

int speech_read(struct request *r, struct speech_ask *ask, const cJSON *body, bool lenient,
                struct fields_error *e)
{
    struct body b = {.speed = 0};
    *ask = (struct speech_ask){.form = AUDIO_FORM_WAV};
    int rc = fields_read(speech_fields, speech_n_fields, body, &b, lenient, e);
    if (rc == 0)
        rc = read_format(ask, b.response_format, e);
    if (rc == 0)
        rc = read_voice(ask, b.voice, e);
    if (rc == 0 && b.stream_format && strcmp(b.stream_format, "sse") != 0 &&
        strcmp(b.stream_format, "audio") != 0)
        rc = fields_fail(e, "stream_format", "invalid_value", "stream_format must be audio or sse");
    if (rc < 0)
        return rc;
    ask->sse = b.stream_format && strcmp(b.stream_format, "sse") == 0;
    if (lenient)
        ask->voice = NULL;
    r->model = b.model && b.model[0] ? request_copy(r, b.model, strlen(b.model)) : NULL;
    r->infer = (struct request_infer){.speed = (float)b.speed, .volume = (float)b.volume};
    if (ask->voice)
        r->infer.labels = request_copy(r, ask->voice, strlen(ask->voice));
    return speech_input(r, b.input, e);
}
