/* fuzz_trace.c - a traceparent, which is written and read again, and the answer of a collector. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_note.h"
#include "trace/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256], again[TRACE_CONTEXT_CHARS + 1];
    struct trace_context c, same;
    const uint64_t rejected = otlp_rejected(data, size);
    FUZZ_NOTE_BYTES(&rejected, sizeof(rejected));
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!trace_context_read(&c, text))
        return 0;
    trace_context_write(again, &c);
    FUZZ_NOTE_BYTES(again, sizeof(again));
    if (!trace_context_read(&same, again) || same.span != c.span || same.sampled != c.sampled ||
        memcmp(same.id, c.id, sizeof(c.id)) != 0)
        abort();
    return 0;
}
