/* tok_wpm.c - WordPiece as BERT has it: normalize, cut into words, longest match first.
 *
 * In GGUF a piece that begins a word has U+2581 in front of it (here: a space) and a piece inside a
 * word has nothing, instead of "##" before the latter. */
#include "model/tok_internal.h"

#include <string.h>

#include <utf8proc.h>

#include "model/gguf.h"

#define MAX_WORD_CHARS 100 /* a longer word is unknown, as in the models' own tokenizer */
#define MAX_WORD (1 + MAX_WORD_CHARS * 4)

struct word {
    char p[MAX_WORD]; /* begins with the space */
    size_t n, n_chars;
};

static bool is_cjk(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) ||
           (c >= 0x2b920 && c <= 0x2ceaf) || /* sic: the original has this gap */
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_punctuation(uint32_t c, utf8proc_category_t cat)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    return cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO;
}

/* Emits the word and empties it. */
static int end_word(struct tok_scratch *s, struct word *w)
{
    const struct tok_vocab *v = &s->t->v;
    size_t before = s->out->n, n = w->n, at = 0;
    bool too_long = w->n_chars > MAX_WORD_CHARS;
    w->n = 1;
    w->n_chars = 0;
    if (n <= 1)
        return 0;
    while (!too_long && at < n) {
        uint32_t id;
        size_t len = n - at < v->max_len ? n - at : v->max_len;
        while (len > 0 && !tok_find(v, w->p + at, len, &id))
            len--;
        if (len == 0)
            break;
        int rc = tok_ids_push(s->out, (int32_t)id);
        if (rc < 0)
            return rc;
        at += len;
    }
    if (at == n)
        return 0;
    s->out->n = before; /* one part that does not match makes the whole word unknown */
    return s->t->info.unk >= 0 ? tok_ids_push(s->out, s->t->info.unk) : 0;
}

static int add_char(struct tok_scratch *s, struct word *w, uint32_t c)
{
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    bool alone = is_punctuation(c, cat) || is_cjk(c);
    int rc = alone ? end_word(s, w) : 0;
    if (s->t->strip_accents && cat == UTF8PROC_CATEGORY_MN)
        return rc;
    if (s->t->lowercase)
        c = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    if (w->n_chars++ < MAX_WORD_CHARS)
        w->n += utf8_encode(w->p + w->n, c);
    return rc == 0 && alone ? end_word(s, w) : rc;
}

int wpm_encode(struct tok_scratch *s, const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    struct word w = {" ", 1, 0};
    int rc = 0;
    while (p < end && rc == 0) {
        uint32_t c;
        unsigned len = utf8_decode(p, end, &c);
        p += len ? len : 1;
        if (len == 0 || c == 0 || c == 0xfffd)
            continue;
        utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
        if ((c >= '\t' && c <= '\r') || c == 0x85 ||
            (cat >= UTF8PROC_CATEGORY_ZS && cat <= UTF8PROC_CATEGORY_ZP)) {
            rc = end_word(s, &w);
            continue;
        }
        if (cat >= UTF8PROC_CATEGORY_CC && cat <= UTF8PROC_CATEGORY_CO)
            continue;
        utf8proc_int32_t parts[32] = {(utf8proc_int32_t)c};
        utf8proc_ssize_t n_parts = 1;
        int boundary = 0;
        if (s->t->strip_accents && c >= 0x80)
            n_parts = utf8proc_decompose_char((utf8proc_int32_t)c, parts, 32, UTF8PROC_DECOMPOSE,
                                              &boundary);
        for (utf8proc_ssize_t i = 0; i < n_parts && i < 32 && rc == 0; i++)
            rc = add_char(s, &w, (uint32_t)parts[i]);
    }
    return rc == 0 ? end_word(s, &w) : rc;
}

int wpm_load(struct tokenizer *t, const struct gguf *g, struct err *e)
{
    (void)e;
    t->lowercase = true;
    (void)gguf_get_bool(g, "tokenizer.ggml.normalizer.lowercase", &t->lowercase);
    t->strip_accents = t->lowercase;
    (void)gguf_get_bool(g, "tokenizer.ggml.normalizer.strip_accents", &t->strip_accents);
    return 0;
}
