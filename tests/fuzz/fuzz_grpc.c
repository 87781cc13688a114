/* fuzz_grpc.c - messages of proto/shoal/v1 to JSON bodies, and answers of any shape to messages.
 * The first byte chooses the method. */
#include <stdint.h>
#include <stdlib.h>

#include "gateway/grpc_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Generate", "GenerateStream", "Classify",
                                        "Tag",      "Embed",          "Score"};
    struct buf out;
    const char *path = NULL;
    if (size < 1)
        return 0;
    const struct grpc_method *m = grpc_method(names[data[0] % 6]);
    buf_init(&out, 1 << 24);
    if (m->to_json(&out, &path, data + 1, size - 1) == 0) {
        cJSON *json = cJSON_ParseWithLength(buf_str(&out), out.len);
        if (!json || !path)
            abort(); /* what we write is JSON */
        cJSON_Delete(json);
    }
    buf_clear(&out);
    cJSON *answer = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (answer)
        (void)m->to_message(&out, answer);
    cJSON_Delete(answer);
    buf_fini(&out);
    return 0;
}
