/* fuzz_kept_answer.c - entries of the prompt cache that came from elsewhere: an accepted entry
 * is read within its bounds and encodes to the same bytes again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "host/kept_answer.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kept_choice choices[KEPT_ANSWER_MAX_CHOICES];
    struct kept_answer a;
    struct kept_token t;
    struct buf tokens, out;
    struct err e;
    if (kept_answer_open(&a, data, size, &e) < 0) {
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    buf_init(&tokens, size + 1);
    buf_init(&out, size + 1);
    for (uint32_t i = 0; i < a.n_choices; i++)
        choices[i] = kept_answer_choice(&a, i);
    while (kept_answer_next(&a, &t))
        kept_answer_put_token(&tokens, &t);
    FUZZ_NOTE("%u %zu", a.n_choices, tokens.len);
    if (kept_answer_put(&out, choices, a.n_choices, &tokens) < 0 || out.len != size ||
        memcmp(out.data, data, size) != 0)
        abort();
    buf_fini(&tokens);
    buf_fini(&out);
    return 0;
}
