/* plugin_frame.h - the protocol between the server and a plug-in's process: alternating questions
 * and answers over a local socket.
 *
 * A plug-in may write anything, so the server validates every field of an answer.
 *
 * Thread:  any; no state.
 * Failure: SHOAL_EFORMAT: not a head of this kind, or sizes that are too large. */
#ifndef SHOAL_SITE_DEEDS_PLUGIN_FRAME_H
#define SHOAL_SITE_DEEDS_PLUGIN_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PLUGIN_FRAME_WHY_BYTES 256u /* limit of the reason for a failure */
#define PLUGIN_FRAME_HEAD_BYTES 16u /* head of an answer; reason and text follow */
#define PLUGIN_FRAME_MAX_BYTES (1u << 30)

/* In front of a payload; both ends are the same program. */
struct plugin_frame_question {
    uint32_t payload_bytes, timeout_ms;
    uint64_t max_answer_bytes;
    char key[80];
};

struct plugin_frame_answer {
    int code; /* 0, SHOAL_EIO, SHOAL_ENOTFOUND, SHOAL_EUNSUPPORTED or SHOAL_ELIMIT */
    uint32_t why_bytes, text_bytes;
};

void plugin_frame_write(uint8_t out[PLUGIN_FRAME_HEAD_BYTES], const struct plugin_frame_answer *a);
SHOAL_MUST_CHECK int plugin_frame_read(struct plugin_frame_answer *out,
                                       const uint8_t head[PLUGIN_FRAME_HEAD_BYTES],
                                       size_t max_text_bytes);
/* Turns a plug-in's text into one line for people: no control characters, valid UTF-8. */
void plugin_frame_clean(char *text, size_t n);

#endif
