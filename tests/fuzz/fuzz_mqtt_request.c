/* fuzz_mqtt_request.c - requests over MQTT: user properties and payload.
 *
 * The input: lines NAME=VALUE, an empty line, the payload.  The name "content-type" is the
 * message's content type, "expiry" its expiry, "topic" the name in its topic. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/mqtt/mqtt_request.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct mqtt_request *r, const char *wrong, const struct arena *a)
{
    if (wrong) {
        if (r->body || !wrong[0])
            abort();
        return;
    }
    if (!cJSON_IsObject(r->body) || r->path[0] != '/' || a->rc != 0 || r->n_headers == 0)
        abort();
    for (size_t i = 0; i < r->n_headers; i++)
        for (const char *p = r->headers[i].name; *p; p++)
            if (*p >= 'A' && *p <= 'Z')
                abort(); /* headers are found by their names in lower case */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mqtt_property props[MQTT_MAX_PROPERTIES];
    struct mqtt_message m = {.topic = "t", .properties = props};
    const char *name = "model";
    char *text = malloc(size + 1), *p = text;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *end; (end = memchr(p, '\n', size - (size_t)(p - text))); p = end + 1) {
        *end = '\0';
        char *eq = strchr(p, '=');
        if (!eq) {
            p = end + 1;
            break;
        }
        *eq = '\0';
        if (strcmp(p, "content-type") == 0)
            m.content_type = eq + 1;
        else if (strcmp(p, "expiry") == 0)
            m.expiry_s = (uint32_t)strtoul(eq + 1, NULL, 10);
        else if (strcmp(p, "topic") == 0)
            name = eq + 1;
        else if (m.n_properties < MQTT_MAX_PROPERTIES)
            props[m.n_properties++] = (struct mqtt_property){p, eq + 1};
    }
    m.payload = p;
    m.n = size - (size_t)(p - text);
    for (unsigned kinds = 0; kinds < 256; kinds = kinds ? kinds * 2 : 1) {
        struct mqtt_request r;
        struct arena a;
        arena_init(&a, 1 << 20);
        const char *wrong = mqtt_request_read(&r, &a, &m, name, kinds, 1000);
        check(&r, wrong, &a);
        FUZZ_NOTE("%s|%s", wrong ? wrong : "", wrong ? "" : r.path);
        for (size_t i = 0; !wrong && i < r.n_headers; i++)
            FUZZ_NOTE(" %s=%s", r.headers[i].name, r.headers[i].value);
        cJSON_Delete(r.body);
        arena_fini(&a);
    }
    free(text);
    return 0;
}
