/* voice_ws.h - WebSocket /v1/voice: live sound in; words as they are spoken, then what was done and
 * the reply out (docs/VOICE.md).
 *
 * Thread:    the loop's; voice_ws_read has no state. */
#ifndef SHOAL_GATEWAY_WS_VOICE_WS_H
#define SHOAL_GATEWAY_WS_VOICE_WS_H

#include "audio/pcm.h"
#include "gateway/api/own/voice_turn.h"

enum voice_ws_type { VOICE_WS_START, VOICE_WS_END, VOICE_WS_CANCEL };

struct voice_ws_message {
    enum voice_ws_type type;
    struct pcm_form form; /* of START; set by the caller before, as is: */
    struct voice_ask ask;
    bool listens; /* only transcripts are wanted */
    bool wakes;   /* each turn needs the wake word */
};

/* Parses a text message of the client; NULL, or what is wrong with it. */
const char *voice_ws_read(struct voice_ws_message *m, const char *p, size_t n);

void voice_ws(struct call *c);

#endif
