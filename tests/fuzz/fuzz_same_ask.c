/* fuzz_same_ask.c - two prompts, with a newline between them: the guard of the semantic cache does
 * not depend on their order, and a prompt with words asks the same as itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge/same_ask.h"
#include "knowledge/support.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
    size_t n = end ? (size_t)(end - text) : size, rest = end ? size - n - 1 : 0;
    const char *why, *back;
    bool same = same_ask(text, n, end ? end + 1 : "", rest, &why);
    if (same != same_ask(end ? end + 1 : "", rest, text, n, &back))
        abort();
    if (!same_ask(text, n, text, n, &why) && strcmp(why, "too long or empty") != 0)
        abort();
    FUZZ_NOTE("%d %s %s", same, same ? "" : why, same ? "" : back);
    struct support s;
    support_split(&s, text, size);
    for (uint32_t i = 0; i < s.n; i++)
        if (s.sentences[i].at + s.sentences[i].n > size)
            abort();
    for (uint32_t i = 0; i < s.n; i++)
        FUZZ_NOTE(" %zu+%zu", (size_t)s.sentences[i].at, (size_t)s.sentences[i].n);
    return 0;
}
