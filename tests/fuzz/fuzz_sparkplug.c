/* fuzz_sparkplug.c - payloads of Sparkplug B: as a birth, then as data of the same node. */
#include <stdint.h>
#include <stdlib.h>

#include "mqtt/sparkplug.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *ctx, const struct payload_reading *r)
{
    (void)ctx;
    if (!r->name.p || r->name.n == 0 || r->name.n >= PAYLOAD_MAX_NAME)
        abort();
    FUZZ_NOTE(" %.*s=%.9g", (int)r->name.n, r->name.p, r->value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const topics[] = {"spBv1.0/g/NBIRTH/n", "spBv1.0/g/NDATA/n",
                                         "spBv1.0/g/DDATA/n/d"};
    static struct sparkplug *s; /* its table is large */
    struct err e = {0};
    if (!s && sparkplug_create(&s, &e) < 0)
        return 0;
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        struct sparkplug_topic t;
        if (!sparkplug_topic_read(&t, topics[i]))
            abort();
        e.msg[0] = '\0';
        if (sparkplug_read(s, &t, data, size, check, NULL, &e) < 0 && !e.msg[0])
            abort();
        FUZZ_NOTE("|%s", e.msg);
    }
    return 0;
}
