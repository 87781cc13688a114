/* fuzz_transcriptions.c - forms of /v1/audio/transcriptions to requests.  The first byte chooses
 * whether unknown fields are skipped; then the content type up to a line end, then the body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gateway/api/openai/transcriptions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size > 1 ? memchr(data + 1, '\n', size - 1) : NULL;
    if (!line)
        return 0;
    char *type = mem_strndup((const char *)data + 1, (size_t)(line - data - 1));
    const char *body = (const char *)line + 1, *end = (const char *)data + size;
    struct request *r = request_create();
    struct transcriptions_ask ask;
    struct fields_error e = {{0}, {0}, NULL};
    if (type && r) {
        int rc = transcriptions_read(r, &ask, type, body, (size_t)(end - body), data[0] & 2,
                                     data[0] & 1, &e);
        if (rc < 0 && !e.msg[0])
            abort(); /* an error must have a message */
        if (rc == 0 &&
            (ask.sound.p < body || ask.sound.p > end || ask.sound.n > (size_t)(end - ask.sound.p)))
            abort(); /* the sound is a part of the body */
    }
    request_destroy(r);
    mem_free(type);
    return 0;
}
