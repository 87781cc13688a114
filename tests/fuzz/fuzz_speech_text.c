/* fuzz_speech_text.c - any bytes to words that can be said, which are cut into pieces without a
 * loss. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_note.h"
#include "text/speech/speech_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_words(const struct buf *b)
{
    for (size_t i = 0; i < b->len; i++)
        if (!((b->data[i] >= 'a' && b->data[i] <= 'z') || strchr("' ,.;:!?", b->data[i])))
            abort();
}

/* A piece is short, and is words again when it is written out again. */
static void check_piece(const char *text, size_t n)
{
    struct buf again;
    buf_init(&again, (size_t)1 << 24);
    speech_text_normal(text, n, &again);
    check_words(&again);
    if (n > SPEECH_TEXT_PIECE)
        abort();
    buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf words;
    size_t at = 0;
    buf_init(&words, (size_t)1 << 24);
    speech_text_normal((const char *)data, size, &words);
    check_words(&words);
    for (size_t n; (n = speech_text_cut(buf_str(&words) + at, words.len - at)) > 0; at += n) {
        while (n > 0 && buf_str(&words)[at] == ' ') {
            at++;
            n--;
        }
        check_piece(buf_str(&words) + at, n);
    }
    if (at != words.len)
        abort();
    FUZZ_NOTE(" %s", buf_str(&words));
    buf_fini(&words);
    return 0;
}
