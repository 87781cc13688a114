/* fuzz_stream_ws.c - messages of a client of /v1/stream. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/ws/stream_ws.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stream_ws_message m;
    const char *wrong = stream_ws_read(&m, (const char *)data, size, true, 1000);
    if (wrong ? m.body != NULL : !m.id[0] || m.path[0] != '/' || m.cancel == (m.body != NULL))
        abort();
    FUZZ_NOTE("%s|%s|%s|%d", wrong ? wrong : "", m.id, wrong ? "" : m.path, m.cancel);
    cJSON_Delete(m.body);
    if (!stream_ws_read(&m, (const char *)data, size, false, 1000))
        abort(); /* a binary message is refused */
    return 0;
}
