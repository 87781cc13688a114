/* speak_inputs.c - see speak_inputs.h. */
#include "flow/speak_inputs.h"

#include "text/speech/speech_text.h"

#define MAX_WORDS ((size_t)1 << 20) /* bytes of the text when it is written out */

static uint32_t count_pieces(const struct buf *words)
{
    uint32_t n = 0;
    for (size_t at = 0, len; (len = speech_text_cut(buf_str(words) + at, words->len - at)) > 0;
         at += len)
        n++;
    return n;
}

static int put_pieces(struct request *r, const struct buf *words, struct err *e)
{
    const uint32_t n_pieces = count_pieces(words), most = REQUEST_MAX_INPUTS / SHOAL_SPEAK_PARTS;
    uint32_t i = 0;
    if (n_pieces > most)
        return err_set(e, SHOAL_ELIMIT, "the text has %u sentences, at most %u are said at a time",
                       n_pieces, most);
    struct request_input *list =
        arena_zalloc_n(&r->arena, (size_t)n_pieces * SHOAL_SPEAK_PARTS, sizeof(*list));
    for (size_t at = 0, len;
         list && (len = speech_text_cut(buf_str(words) + at, words->len - at)) > 0; at += len) {
        const char *text = request_copy(r, buf_str(words) + at, len);
        for (uint32_t part = 1; part <= SHOAL_SPEAK_PARTS; part++)
            list[i++] = (struct request_input){.text = text, .text_bytes = len, .part = part};
    }
    r->infer.inputs = list;
    r->infer.n_inputs = i;
    return request_rc(r) < 0 ? err_set(e, SHOAL_ENOMEM, "out of memory for a text") : 0;
}

int speak_inputs(struct request *r, const char *text, size_t n, struct err *e)
{
    struct buf words;
    if (n > SPEAK_INPUTS_MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "the text has %zu bytes, at most %zu are said at a time", n,
                       SPEAK_INPUTS_MAX_BYTES);
    buf_init(&words, MAX_WORDS);
    speech_text_normal(text, n, &words);
    r->kind = REQUEST_INFER;
    r->infer.kind = SHOAL_KIND_SPEAK;
    r->streams = true;
    r->input_bytes = words.len;
    const int rc = words.rc < 0 ? err_set(e, words.rc, "the text is too long to say")
                   : words.len == 0
                       ? err_set(e, SHOAL_EINVAL, "there is nothing to say in the text")
                       : put_pieces(r, &words, e);
    buf_fini(&words);
    return rc;
}
