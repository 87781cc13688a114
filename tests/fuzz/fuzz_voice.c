/* fuzz_voice.c - messages of the WebSocket /v1/voice, and forms of POST /v1/voice: the first byte
 * chooses; a form has its content type up to a line end, then its body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "support/fuzz_note.h"
#include "gateway/ws/voice_ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void message(const char *p, size_t n)
{
    struct voice_ws_message m = {.form = {.rate = 16000, .channels = 1, .width = 2}};
    const char *wrong = voice_ws_read(&m, p, n);
    FUZZ_NOTE("%s", wrong ? wrong : "good");
    if (wrong && !wrong[0])
        abort();
    if (!wrong && (m.form.width != 2 && m.form.width != 4))
        abort();
    FUZZ_NOTE(" %s %u", m.ask.room, m.form.rate);
}

static void form(const char *p, size_t n, bool lenient)
{
    const char *line = memchr(p, '\n', n);
    char *type = line ? mem_strndup(p, (size_t)(line - p)) : NULL;
    struct voice_ask ask = {0};
    struct str sound;
    struct fields_error e = {{0}, {0}, NULL};
    if (type) {
        const char *body = line + 1, *end = p + n;
        const int rc = voice_turn_read(&ask, &sound, type, body, (size_t)(end - body), lenient, &e);
        FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
        if (rc < 0 && !e.msg[0])
            abort(); /* an error must have a message */
        if (rc == 0 && (sound.p < body || sound.n > (size_t)(end - sound.p)))
            abort(); /* the sound is a part of the body */
    }
    mem_free(type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] & 1)
        form((const char *)data + 1, size - 1, data[0] & 2);
    else
        message((const char *)data + 1, size - 1);
    return 0;
}
