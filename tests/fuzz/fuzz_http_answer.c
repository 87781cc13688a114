/* fuzz_http_answer.c - responses of a server to http_ask.  The first byte says how it is cut into
 * pieces; the result must not depend on the split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/http_answer.h"
#include "support/fuzz_note.h"

#define MAX_BODY_BYTES 500u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How parsing ends: a status or an error code. */
static int read_answer(const char *p, size_t n, size_t step, struct buf *body)
{
    struct http_answer a;
    int rc = 0;
    buf_init(body, MAX_BODY_BYTES);
    http_answer_init(&a, body);
    for (size_t at = 0; rc == 0 && at < n && !a.complete; at += step)
        rc = http_answer_feed(&a, p + at, n - at < step ? n - at : step);
    if (rc == 0 && !a.complete)
        rc = http_answer_feed(&a, NULL, 0);
    if (rc == 0 && !a.complete)
        abort(); /* nothing left to wait for */
    return rc < 0 ? rc : a.status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole, pieces;
    if (size < 1 || size > 65536)
        return 0;
    size_t step = data[0] ? data[0] : 1;
    const char *p = (const char *)data + 1;
    int a = read_answer(p, size - 1, size, &whole), b = read_answer(p, size - 1, step, &pieces);
    if (a != b || whole.len > MAX_BODY_BYTES)
        abort();
    if (a >= 0 && (a < 200 || whole.len != pieces.len ||
                   memcmp(buf_str(&whole), buf_str(&pieces), whole.len) != 0))
        abort();
    FUZZ_NOTE("%d ", a);
    FUZZ_NOTE_BYTES(whole.data, whole.len);
    buf_fini(&whole);
    buf_fini(&pieces);
    return 0;
}
