/* fuzz_grpc_recognize.c - messages of gRPC's Recognize.  The first byte says whether it is the
 * first one of its stream. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "gateway/grpc/grpc_read.h"
#include "gateway/grpc/grpc_recognize.h"
#include "support/fuzz_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_speak(const uint8_t *p, size_t n)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = request_create();
    uint32_t top;
    if (!r)
        return;
    const int rc = grpc_read(r, &top, grpc_method("Speak"), p, n, 1000, &e);
    fuzz_request(r, rc, &e);
    if ((rc == SHOAL_EINVAL && !e.msg[0]) ||
        (rc == 0 && (r->infer.n_inputs < 1 || r->infer.kind != SHOAL_KIND_SPEAK)))
        abort();
    request_destroy(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct grpc_recognize_ask ask;
    struct arena a;
    if (size > 0 && data[0] % 4 == 2)
        read_speak(data + 1, size - 1);
    if (size == 0 || data[0] % 4 == 2)
        return 0;
    arena_init(&a, 1 << 22);
    const int rc = grpc_recognize_read(&ask, &a, data + 1, size - 1, data[0] & 1, &e);
    if (rc == SHOAL_EINVAL && !e.msg[0])
        abort(); /* an error must have a message */
    if (rc == 0 && (strlen(ask.model) > 127 || strlen(ask.language) > 3 || ask.n_audio > size ||
                    ((data[0] & 1) && (ask.form.rate == 0 || ask.form.width == 0))))
        abort();
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc == 0)
        FUZZ_NOTE(" [%s] [%s] %u %u %u %zu %d%d %zu", ask.model, ask.language, ask.form.rate,
                  ask.form.channels, ask.form.width, ask.n_phrases, ask.home, ask.end, ask.n_audio);
    arena_fini(&a);
    return 0;
}
