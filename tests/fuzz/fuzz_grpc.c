/* fuzz_grpc.c - messages of proto/shoal/v1 to JSON bodies, and answers of any shape to messages.
 * Also questions to reflection, and the frames of a stream, some of them in gzip.  The first byte
 * chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/grpc/grpc_codec.h"
#include "gateway/grpc/grpc_frame.h"
#include "gateway/grpc/reflection.h"

#define MAX_PLAIN 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_reflection(const uint8_t *p, size_t n)
{
    struct buf out;
    buf_init(&out, 1 << 24);
    if (reflection_answer(&out, p, n) == 0 && out.len == 0)
        abort(); /* every question has an answer */
    buf_fini(&out);
}

/* A stream as the server reads it: message by message, each a question. */
static void read_frames(const uint8_t *p, size_t n)
{
    struct grpc_frame f;
    struct buf plain;
    buf_init(&plain, 1 << 20);
    while (grpc_frame_next(&f, p, n, 1 << 16) == 1) {
        size_t bytes = f.bytes;
        buf_clear(&plain);
        if (bytes > n)
            abort();
        if (grpc_frame_unpack(&f, &plain, MAX_PLAIN) == 0)
            ask_reflection(f.p, f.n);
        if (plain.len > MAX_PLAIN + 16384)
            abort(); /* a bomb goes off */
        p += bytes;
        n -= bytes;
    }
    buf_fini(&plain);
}

/* What is compressed comes out as it was. */
static void zip(const uint8_t *p, size_t n)
{
    struct buf packed, plain;
    buf_init(&packed, 1 << 24);
    buf_init(&plain, 1 << 24);
    if (grpc_zip(&packed, p, n)) {
        struct grpc_frame f = {(const uint8_t *)packed.data, packed.len, 0, true};
        if (packed.len >= n || grpc_frame_unpack(&f, &plain, n) < 0 || f.n != n ||
            memcmp(f.p, p, n) != 0)
            abort();
    }
    buf_fini(&packed);
    buf_fini(&plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Generate", "GenerateStream", "Classify",
                                        "Tag",      "Embed",          "Score"};
    struct buf out;
    const char *path = NULL;
    if (size < 1)
        return 0;
    switch (data[0] % 9) {
    case 6:
        ask_reflection(data + 1, size - 1);
        return 0;
    case 7:
        read_frames(data + 1, size - 1);
        return 0;
    case 8:
        zip(data + 1, size - 1);
        return 0;
    default:
        break;
    }
    const struct grpc_method *m = grpc_method(names[data[0] % 9]);
    buf_init(&out, 1 << 24);
    if (grpc_to_json(m, &out, &path, data + 1, size - 1) == 0) {
        cJSON *json = cJSON_ParseWithLength(buf_str(&out), out.len);
        if (!json || !path)
            abort(); /* what we write is JSON */
        cJSON_Delete(json);
    }
    buf_clear(&out);
    cJSON *answer = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (answer)
        if (grpc_to_message(m, &out, answer) < 0)
            abort(); /* there is memory, and every answer is a message */
    cJSON_Delete(answer);
    buf_fini(&out);
    return 0;
}
