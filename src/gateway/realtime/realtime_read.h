/* realtime_read.h - what clients of /v1/realtime send: OpenAI's events as JSON.
 *
 * Two forms of a session are read: the present one (audio.input, output_modalities) and that of the
 * beta (input_audio_format, modalities).
 *
 * Thread:    no state.
 * Ownership: an event owns its JSON until realtime_free; settings own theirs until fini.
 * Failure:   NULL, or a sentence for the client. */
#ifndef SHOAL_GATEWAY_REALTIME_REALTIME_READ_H
#define SHOAL_GATEWAY_REALTIME_REALTIME_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

enum realtime_type {
    REALTIME_SESSION_UPDATE,
    REALTIME_AUDIO_APPEND,
    REALTIME_AUDIO_COMMIT,
    REALTIME_AUDIO_CLEAR,
    REALTIME_ITEM_CREATE,
    REALTIME_ITEM_DELETE,
    REALTIME_ITEM_RETRIEVE,
    REALTIME_ITEM_TRUNCATE,
    REALTIME_RESPONSE_CREATE,
    REALTIME_RESPONSE_CANCEL,
};

struct realtime_event {
    enum realtime_type type;
    cJSON *json;          /* of the whole event */
    const char *event_id; /* the client's, or NULL */
    unsigned char *sound; /* of AUDIO_APPEND, decoded */
    size_t n_sound;
    const cJSON *item;     /* of ITEM_CREATE */
    const char *item_id;   /* of the other ITEM_*; of ITEM_CREATE: behind which; may be NULL */
    const cJSON *settings; /* of SESSION_UPDATE and RESPONSE_CREATE; NULL: none */
};

#define REALTIME_MAX_VOICE 64u

struct realtime_settings {
    bool audio;                     /* the answer is spoken */
    bool vad;                       /* the server finds the ends of turns */
    bool creates;                   /* a turn is answered without being asked for */
    bool interrupts;                /* whoever speaks ends the answer */
    bool keeps_all;                 /* what is too long is refused; else the oldest turns go */
    uint32_t rate;                  /* of the sound that comes */
    double temperature, max_tokens; /* below 0: the model's */
    char *instructions;             /* or NULL */
    cJSON *tools, *tool_choice;     /* as clients of chats send them, or NULL */
    char voice[REALTIME_MAX_VOICE]; /* "": the first one */
};

const char *realtime_read(struct realtime_event *out, const char *p, size_t n);
void realtime_free(struct realtime_event *ev);

void realtime_settings_init(struct realtime_settings *s);
void realtime_settings_fini(struct realtime_settings *s);
/* Changes what json names; whatever is wrong with it, s can be used afterwards. *param: the field
 * that is wrong; NULL: none in particular. */
const char *realtime_settings_read(struct realtime_settings *s, const cJSON *json,
                                   const char **param);
/* false: out of memory; *out is then empty. */
bool realtime_settings_copy(struct realtime_settings *out, const struct realtime_settings *from);

#endif
