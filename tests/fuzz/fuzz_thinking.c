/* fuzz_thinking.c - a text in pieces (the first byte: their length) has the same thought and answer
 * as the whole text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "gateway/api/thinking.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_piece(void *ctx, bool thought, const char *text, size_t n)
{
    struct buf *both = ctx;
    buf_put(&both[thought ? 0 : 1], text, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 1;
    const size_t n = size - 1, each = data[0] % 32 + 1u;
    const struct thinking_parts p = thinking_split(text, n);
    struct thinking t = {.n_held = 0};
    struct buf both[2];
    for (int i = 0; i < 2; i++)
        buf_init(&both[i], n + 1);
    for (size_t at = 0; at < n; at += each)
        thinking_push(&t, text + at, each < n - at ? each : n - at, on_piece, both);
    thinking_end(&t, on_piece, both);
    if (p.answer_at > n || both[0].len != p.thought_bytes || both[1].len != n - p.answer_at ||
        memcmp(buf_str(&both[0]), p.thought ? p.thought : "", both[0].len) != 0 ||
        memcmp(buf_str(&both[1]), text + p.answer_at, both[1].len) != 0)
        abort();
    for (int i = 0; i < 2; i++)
        buf_fini(&both[i]);
    return 0;
}
