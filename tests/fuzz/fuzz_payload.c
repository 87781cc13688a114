/* fuzz_payload.c - payloads of sensors in every format, with paths and columns from the input's
 * first line. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mqtt/payload.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *ctx, const struct payload_reading *r)
{
    (void)ctx;
    if (isinf(r->value) && r->name.n > 1000000)
        abort();
    if (!r->name.p)
        abort();
    FUZZ_NOTE(" %.*s=%.9g@%lld", (int)r->name.n, r->name.p, r->value, (long long)r->time_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    size_t n = line ? (size_t)(line - data) : 0;
    char *path = malloc(n + 1);
    if (!path)
        return 0;
    memcpy(path, data, n);
    path[n] = '\0';
    const char *columns[] = {"a", "-", path};
    const uint8_t *payload = line ? line + 1 : data;
    size_t left = size - (size_t)(payload - data);
    bool ok = payload_path_ok(path);
    for (int kind = PAYLOAD_NUMBER; kind <= PAYLOAD_CSV; kind++)
        for (int with = 0; with < 2; with++) {
            struct payload_map m = {.kind = (enum payload_kind)kind};
            struct err e = {0};
            if (with && kind == PAYLOAD_JSON && ok)
                m.value = m.time = path;
            if (with && kind == PAYLOAD_CSV) {
                m.columns = columns;
                m.n_columns = 3;
                m.time = path;
            }
            if (payload_read(&m, payload, left, check, NULL, &e) < 0 && !e.msg[0])
                abort();
            FUZZ_NOTE("|%s", e.msg);
        }
    (void)payload_time_text(path);
    free(path);
    return 0;
}
