/* fuzz_grpc.c - messages of proto/shoal/v1 to requests, and tokens of any bytes to messages.
 * Also questions to reflection, and the frames of a stream, some of them in gzip.  The first byte
 * chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/call/fields.h"
#include "gateway/grpc/grpc_answer.h"
#include "net/grpc_frame.h"
#include "gateway/grpc/grpc_read.h"
#include "gateway/grpc/reflection.h"
#include "support/fuzz_request.h"

#define MAX_PLAIN 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_reflection(const uint8_t *p, size_t n)
{
    struct buf out;
    buf_init(&out, 1 << 24);
    if (reflection_answer(&out, p, n) == 0 && out.len == 0)
        abort(); /* every question gets an answer */
    FUZZ_NOTE_BYTES(out.data, out.len);
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
            abort(); /* a decompression bomb */
        FUZZ_NOTE(" %zu %zu", bytes, plain.len);
        p += bytes;
        n -= bytes;
    }
    buf_fini(&plain);
}

/* Decompressing gives the original. */
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

/* The result is within the limits that flow relies on. */
static void read_message(const struct grpc_method *m, const uint8_t *p, size_t n)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = request_create();
    uint32_t top;
    if (!r)
        return;
    int rc = grpc_read(r, &top, m, p, n, 1000, &e);
    fuzz_request(r, rc, &e);
    if (rc == SHOAL_EINVAL && !e.msg[0])
        abort(); /* an error must have a message */
    if (rc == 0 && r->kind == REQUEST_GENERATE) {
        const struct request_generate *g = &r->generate;
        if (request_choices(g) != 1 || g->n_stop > REQUEST_MAX_STOPS ||
            (g->chat.n_messages == 0 && !g->prompts[0].text))
            abort();
    } else if (rc == 0) {
        if (r->infer.n_inputs < 1 || r->infer.n_inputs > REQUEST_MAX_INPUTS)
            abort();
    }
    request_destroy(r);
}

static void write_token(const uint8_t *p, size_t n)
{
    struct grpc_frame f;
    struct buf out;
    buf_init(&out, 1 << 24);
    grpc_answer_put_text(&out, (const char *)p, n);
    if (grpc_frame_next(&f, (const uint8_t *)out.data, out.len, out.len) != 1 || f.bytes != out.len)
        abort();
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Generate", "GenerateStream", "Classify",
                                        "Tag",      "Embed",          "Score"};
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
    read_message(grpc_method(names[data[0] % 9]), data + 1, size - 1);
    write_token(data + 1, size - 1);
    return 0;
}
