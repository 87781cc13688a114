/* fuzz_pages_pb.c - messages between nodes when pages of a prompt are fetched.  The first byte
 * chooses: a request, which survives another round trip within its limits; or a page, which is
 * taken only with the right key and sum. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/pages_pb.h"
#include "engine/decode/page_exchange.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void read_request(const uint8_t *p, size_t n)
{
    struct pages_request r, again;
    struct pages_key k, same;
    struct arena a;
    struct buf b;
    struct err e = {0};
    arena_init(&a, (size_t)64 << 20);
    buf_init(&b, 2 * PAGES_PB_MAX_REQUEST);
    const int rc = pages_pb_read_request(&r, &a, p, n, &e);
    FUZZ_NOTE("%d %s %u %u", rc, e.msg, rc == 0 ? r.n_tokens : 0, rc == 0 ? r.skip : 0);
    if (rc == 0) {
        expect(r.n_tokens >= PAGE_EXCHANGE_TOKENS && r.n_tokens <= PAGES_PB_MAX_TOKENS);
        expect(r.page_bytes > 0 && r.page_bytes <= PAGES_PB_MAX_PAGE && r.model[0]);
        expect(pages_pb_put_request(&b, &r) == 0);
        expect(pages_pb_read_request(&again, &a, (const uint8_t *)b.data, b.len, NULL) == 0);
        expect(pages_key_begin(&k, &r) && pages_key_next(&k, r.tokens));
        expect(pages_key_begin(&same, &again) && pages_key_next(&same, again.tokens));
        expect(memcmp(&k, &same, sizeof(k)) == 0);
        FUZZ_NOTE_BYTES(k.sum, sizeof(k.sum));
    }
    buf_fini(&b);
    arena_fini(&a);
}

/* Page 1 of 32 bytes whose key is all 'k', so that a corpus can have a valid one. */
static void read_page(const uint8_t *p, size_t n)
{
    struct pages_key key;
    uint8_t out[32];
    struct buf b;
    struct err e = {0};
    memset(key.sum, 'k', sizeof(key.sum));
    const int rc = pages_pb_read_page(out, 1, &key, sizeof(out), p, n, &e);
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc < 0)
        return;
    FUZZ_NOTE_BYTES(out, sizeof(out));
    buf_init(&b, 1 << 16);
    expect(pages_pb_put_page(&b, 1, &key, out, sizeof(out)) == 0);
    expect(pages_pb_read_page(out, 1, &key, sizeof(out), (const uint8_t *)b.data, b.len, NULL) ==
           0);
    buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 2 == 0)
        read_request(data + 1, size - 1);
    else
        read_page(data + 1, size - 1);
    return 0;
}
