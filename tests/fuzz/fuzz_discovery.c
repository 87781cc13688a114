/* fuzz_discovery.c - discovery messages of Home Assistant: the topic in the first line, then the
 * payload. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/deed_text.h"
#include "mqtt/mqtt_topic.h"
#include "site/deeds/discovery_read.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct discovery_entity *x)
{
    if (!x->id || !x->id[0] || strpbrk(x->id, "/+# ") || !x->name || x->n_ways > DISCOVERY_MAX_WAYS)
        abort();
    if (x->gone != (x->n_ways == 0))
        abort();
    for (uint32_t i = 0; i < x->n_ways; i++) {
        const struct discovery_way *w = &x->ways[i];
        if (!mqtt_topic_is_name(w->topic) || (w->state && !mqtt_topic_is_name(w->state)) ||
            !deed_text_ok(w->payload) || !w->ability)
            abort();
        for (uint32_t k = 0; k < w->n_values; k++)
            if (!strchr(w->values[k], '=') || !strchr(w->state_values[k], '='))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    size_t n = line ? (size_t)(line - data) : size;
    struct discovery_entity x;
    struct arena a;
    struct err e = {0};
    char *topic = malloc(n + 1);
    if (!topic)
        return 0;
    memcpy(topic, data, n);
    topic[n] = '\0';
    arena_init(&a, 1 << 20);
    int rc = discovery_read(&x, &a, topic, line ? line + 1 : data, line ? size - n - 1 : 0, &e);
    if (rc == 0)
        check(&x);
    else if (!e.msg[0])
        abort();
    FUZZ_NOTE("%d %s", rc, e.msg);
    for (uint32_t i = 0; rc == 0 && i < x.n_ways; i++)
        FUZZ_NOTE(" %s %s %s %s %u", x.id, x.ways[i].topic, x.ways[i].state ? x.ways[i].state : "",
                  x.ways[i].payload, x.ways[i].n_values);
    arena_fini(&a);
    free(topic);
    return 0;
}
