/* tok_wpm.c - WordPiece as BERT has it: normalize, cut into words, longest match first.
 *
 * In GGUF a piece that begins a word has U+2581 in front of it (here: a space) and a piece inside a
 * word has nothing, instead of "##" before the latter. */
#include "text/tokenizer/tok_internal.h"

#include <string.h>

#include <utf8proc.h>

#include "format/model_file.h"

#define MAX_WORD (1 + WPM_MAX_WORD_CHARS * 4)

/* A word while it is read, and where its bytes come from. */
struct word {
    char p[MAX_WORD]; /* begins with the space */
    uint32_t from[MAX_WORD], to[MAX_WORD];
    size_t n, n_chars;
};

bool wpm_is_cjk(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) ||
           (c >= 0x2b920 && c <= 0x2ceaf) || /* sic: the original has this gap */
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

bool wpm_is_punctuation(uint32_t c, int cat)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    return cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO;
}

/* Pieces of a word that begins with a space, the longest first. */
int wpm_word(struct tok_scratch *s, const char *p, size_t n, size_t n_chars)
{
    const struct tokenizer *t = s->t;
    const struct tok_vocab *v = &t->v;
    size_t before = s->out->n, at = 0;
    while (n_chars <= t->max_word_chars && at < n) {
        uint32_t id;
        size_t len = n - at < v->max_len ? n - at : v->max_len;
        while (len > 0 && !tok_find(v, p + at, len, &id))
            len--;
        if (len == 0)
            break;
        size_t skip = at == 0; /* the space is not of the input */
        int rc = tok_emit(s, (int32_t)id, p + at + skip, len - skip);
        if (rc < 0)
            return rc;
        at += len;
    }
    if (at == n)
        return 0;
    s->out->n = before; /* one part that does not match makes the whole word unknown */
    return t->model_unk >= 0 ? tok_emit(s, t->model_unk, p + 1, n - 1) : 0;
}

/* Emits the word and empties it. */
static int end_word(struct tok_scratch *s, struct word *w)
{
    size_t n = w->n, n_chars = w->n_chars;
    w->n = 1;
    w->n_chars = 0;
    if (n <= 1)
        return 0;
    struct tok_view view = s->view;
    s->view = (struct tok_view){w->p, w->from, w->to, 0};
    int rc = wpm_word(s, w->p, n, n_chars);
    s->view = view;
    return rc;
}

/* A character of the word that comes from bytes [from, to) of the input. */
static int add_char(struct tok_scratch *s, struct word *w, uint32_t c, uint32_t from, uint32_t to)
{
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    bool alone = wpm_is_punctuation(c, (int)cat) || wpm_is_cjk(c);
    int rc = alone ? end_word(s, w) : 0;
    if (s->t->strip_accents && cat == UTF8PROC_CATEGORY_MN)
        return rc;
    if (s->t->lowercase)
        c = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    if (w->n_chars++ < WPM_MAX_WORD_CHARS) {
        unsigned len = utf8_encode(w->p + w->n, c);
        for (unsigned i = 0; i < len; i++, w->n++) {
            w->from[w->n] = from;
            w->to[w->n] = to;
        }
    }
    return rc == 0 && alone ? end_word(s, w) : rc;
}

int wpm_encode(struct tok_scratch *s, const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    struct word w;
    int rc = 0;
    w.p[0] = ' ';
    w.from[0] = w.to[0] = 0;
    w.n = 1;
    w.n_chars = 0;
    while (p < end && rc == 0) {
        uint32_t c, from = tok_view_from(&s->view, (const char *)p);
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
            rc = add_char(s, &w, (uint32_t)parts[i], from, from + len);
    }
    return rc == 0 ? end_word(s, &w) : rc;
}

int wpm_load(struct tokenizer *t, const struct model_file *g, struct err *e)
{
    (void)e;
    t->max_word_chars = WPM_MAX_WORD_CHARS;
    t->lowercase = true;
    (void)model_file_get_bool(g, "tokenizer.ggml.normalizer.lowercase", &t->lowercase);
    t->strip_accents = t->lowercase;
    (void)model_file_get_bool(g, "tokenizer.ggml.normalizer.strip_accents", &t->strip_accents);
    return 0;
}
