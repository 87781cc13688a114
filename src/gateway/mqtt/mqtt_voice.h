/* mqtt_voice.h - live sound over MQTT: frames of samples in, what was said and done out.
 *
 * TOPIC/voice/NAME/audio has samples of the microphone NAME, as they come; an empty message ends
 * its turn.  TOPIC/voice/NAME/transcript gets the words of each turn, TOPIC/voice/NAME/action what
 * was done and the reply.  docs/VOICE.md
 *
 * Thread:    create, end and destroy as of mqtt_door.h; messages come on the client's thread, turns
 *            run on the first loop.
 * Ownership: sound is kept for its turn; at most MQTT_VOICE_MOST microphones at a time.
 * Failure:   SHOAL_ENOMEM; what is wrong with a message is published as TOPIC/voice/NAME/error. */
#ifndef SHOAL_GATEWAY_MQTT_MQTT_VOICE_H
#define SHOAL_GATEWAY_MQTT_MQTT_VOICE_H

#include "base/err.h"

#define MQTT_VOICE_MOST 8u

struct gw;
struct gw_loop;
struct mqtt_voice;

/* *out is NULL if requests over MQTT are off. */
SHOAL_MUST_CHECK int mqtt_voice_create(struct mqtt_voice **out, struct gw *gw, struct err *e);
void mqtt_voice_end(struct mqtt_voice *v, struct gw_loop *gl); /* NULL is fine */
void mqtt_voice_destroy(struct mqtt_voice *v);

#endif
