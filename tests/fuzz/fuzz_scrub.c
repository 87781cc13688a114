/* fuzz_scrub.c - secrets and personal data taken out of any bytes: what is left keeps its quotes
 * and backslashes, and has no e-mail address or card in it. */
#include <stdint.h>
#include <stdlib.h>

#include "privacy/pii.h"
#include "privacy/scrub.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES ((size_t)1 << 20)

static void on_hit(void *ctx, const struct pii_hit *h)
{
    (void)ctx, (void)h;
    abort();
}

static size_t n_quotes(const char *p, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += p[i] == '"' || p[i] == '\\' || (uint8_t)p[i] < 0x20;
    return k;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf b;
    buf_init(&b, MAX_BYTES);
    scrub_text(&b, (const char *)data, size);
    if (b.rc == 0 && n_quotes(buf_str(&b), b.len) != n_quotes((const char *)data, size))
        abort();
    if (b.rc == 0)
        pii_find(buf_str(&b), b.len, PII_BIT(PII_EMAIL) | PII_BIT(PII_CARD), on_hit, NULL);
    FUZZ_NOTE_BYTES(buf_str(&b), b.len);
    buf_clear(&b);
    scrub_quoted(&b, (const char *)data, size);
    if (b.rc == 0 && n_quotes(buf_str(&b), b.len) != n_quotes((const char *)data, size))
        abort();
    FUZZ_NOTE_BYTES(buf_str(&b), b.len);
    buf_fini(&b);
    return 0;
}
