/* fuzz_mqtt_code.c - messages in the queue on disk: a decoded message must encode to the same
 * bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mqtt/mqtt_code.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mqtt_property room[MQTT_MAX_PROPERTIES];
    struct mqtt_message m;
    struct buf b;
    const int rc = mqtt_code_get(&m, room, data, size);
    FUZZ_NOTE("%d", rc);
    if (rc < 0)
        return 0;
    FUZZ_NOTE(" %s %zu %u", m.topic, m.n, (unsigned)m.n_properties);
    buf_init(&b, 1 << 24);
    mqtt_code_put(&b, &m);
    if (b.rc == 0 && (b.len != size || memcmp(b.data, data, 4) != 0 ||
                      memcmp(b.data + 8, data + 8, size - 8) != 0)) /* unknown flags are dropped */
        abort();
    buf_fini(&b);
    return 0;
}
