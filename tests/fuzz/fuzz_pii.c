/* fuzz_pii.c - personal data in any bytes: hits are in order, within the text, whole characters,
 * and contain no byte that needs escaping in JSON. */
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "privacy/pii.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    const char *text;
    size_t n, last;
};

static void on_hit(void *ctx, const struct pii_hit *h)
{
    struct seen *s = ctx;
    if (h->start < s->last || h->end <= h->start || h->end > s->n || h->kind >= PII_PERSON)
        abort();
    s->last = h->end;
    FUZZ_NOTE(" %d:%zu-%zu", (int)h->kind, h->start, h->end);
    size_t n = h->end - h->start;
    if (utf8_valid_prefix(s->text + h->start, n) != n)
        abort();
    for (size_t i = h->start; i < h->end; i++)
        if ((uint8_t)s->text[i] < 0x20 || s->text[i] == '"' || s->text[i] == '\\')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen s = {.text = (const char *)data, .n = size};
    pii_find(s.text, size, PII_BY_RULES, on_hit, &s);
    for (unsigned k = 0; k < PII_PERSON; k++) {
        s.last = 0;
        pii_find(s.text, size, PII_BIT(k), on_hit, &s);
    }
    return 0;
}
