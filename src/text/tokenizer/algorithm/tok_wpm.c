/* tok_wpm.c - see tok_wpm.h. */
#include "text/tokenizer/algorithm/tok_wpm.h"

#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"

#define MAX_WORD (1 + TOK_WPM_MAX_WORD_CHARS * 4)

/* A word being read, and where its bytes come from. */
struct word {
    char p[MAX_WORD]; /* begins with the space */
    uint32_t from[MAX_WORD], to[MAX_WORD];
    size_t n, n_chars;
};

bool tok_wpm_is_cjk(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) ||
           (c >= 0x2b920 && c <= 0x2ceaf) || /* sic: the original has this gap */
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

bool tok_wpm_is_punctuation(uint32_t c, int cat)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    return cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO;
}

/* Pieces of a word that begins with a space, the longest first. */
static int emit_word(const struct tok_wpm_opts *o, struct tok_call *c, const char *p, size_t n,
                     size_t n_chars)
{
    const struct tok_vocab *v = o->v;
    size_t before = c->out->n, at = 0;
    while (n_chars <= o->max_word_chars && at < n) {
        uint32_t id;
        size_t len = n - at < v->max_len ? n - at : v->max_len;
        while (len > 0 && !tok_vocab_find(v, p + at, len, &id))
            len--;
        if (len == 0)
            break;
        size_t skip = at == 0; /* the space is not of the input */
        int rc = tok_call_emit(c, (int32_t)id, p + at + skip, len - skip);
        if (rc < 0)
            return rc;
        at += len;
    }
    if (at == n)
        return 0;
    c->out->n = before; /* one unmatched part makes the whole word unknown */
    return v->unk >= 0 ? tok_call_emit(c, v->unk, p + 1, n - 1) : 0;
}

/* Emits the word and empties it. */
static int end_word(const struct tok_wpm_opts *o, struct tok_call *c, struct word *w)
{
    size_t n = w->n, n_chars = w->n_chars;
    w->n = 1;
    w->n_chars = 0;
    if (n <= 1)
        return 0;
    struct tok_view view = c->view;
    c->view = (struct tok_view){w->p, w->from, w->to, 0};
    int rc = emit_word(o, c, w->p, n, n_chars);
    c->view = view;
    return rc;
}

/* A character of the word that comes from bytes [from, to) of the input. */
static int add_char(const struct tok_wpm_opts *o, struct tok_call *call, struct word *w, uint32_t c,
                    uint32_t from, uint32_t to)
{
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    bool alone = tok_wpm_is_punctuation(c, (int)cat) || tok_wpm_is_cjk(c);
    int rc = alone ? end_word(o, call, w) : 0;
    if (o->strip_accents && cat == UTF8PROC_CATEGORY_MN)
        return rc;
    if (o->lowercase)
        c = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    if (w->n_chars++ < TOK_WPM_MAX_WORD_CHARS) {
        unsigned len = utf8_encode(w->p + w->n, c);
        for (unsigned i = 0; i < len; i++, w->n++) {
            w->from[w->n] = from;
            w->to[w->n] = to;
        }
    }
    return rc == 0 && alone ? end_word(o, call, w) : rc;
}

static int encode_plain(void *ctx, struct tok_call *call, const char *text, size_t n)
{
    const struct tok_wpm_opts *o = ctx;
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    struct word w;
    int rc = 0;
    w.p[0] = ' ';
    w.from[0] = w.to[0] = 0;
    w.n = 1;
    w.n_chars = 0;
    while (p < end && rc == 0) {
        uint32_t c, from = tok_view_from(&call->view, (const char *)p);
        unsigned len = utf8_decode(p, end, &c);
        p += len ? len : 1;
        if (len == 0 || c == 0 || c == 0xfffd)
            continue;
        utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
        if ((c >= '\t' && c <= '\r') || c == 0x85 ||
            (cat >= UTF8PROC_CATEGORY_ZS && cat <= UTF8PROC_CATEGORY_ZP)) {
            rc = end_word(o, call, &w);
            continue;
        }
        if (cat >= UTF8PROC_CATEGORY_CC && cat <= UTF8PROC_CATEGORY_CO)
            continue;
        utf8proc_int32_t parts[32] = {(utf8proc_int32_t)c};
        utf8proc_ssize_t n_parts = 1;
        int boundary = 0;
        if (o->strip_accents && c >= 0x80)
            n_parts = utf8proc_decompose_char((utf8proc_int32_t)c, parts, 32, UTF8PROC_DECOMPOSE,
                                              &boundary);
        for (utf8proc_ssize_t i = 0; i < n_parts && i < 32 && rc == 0; i++)
            rc = add_char(o, call, &w, (uint32_t)parts[i], from, from + len);
    }
    return rc == 0 ? end_word(o, call, &w) : rc;
}

static int encode(const void *state, struct tok_call *c, const char *p, size_t n, unsigned flags)
{
    struct tok_wpm_opts o = *(const struct tok_wpm_opts *)state;
    return tok_special_split(o.special, o.v, c, p, n, flags, encode_plain, &o);
}

/* ---- words of a pipeline ---- */

_Static_assert(sizeof(struct tok_rewrite) <= TOKENIZER_WORK_BYTES, "working memory of a word");

static int word(const void *state, struct tok_call *c, void *work, const char *p, size_t n)
{
    struct tok_rewrite *r = work; /* the word with a space in front */
    struct tok_view view = c->view;
    size_t n_chars = 0;
    for (size_t i = 0; i < n; i++)
        n_chars += ((uint8_t)p[i] & 0xc0) != 0x80;
    r->n = 0;
    int rc = tok_rewrite_reserve(r, n + 1);
    if (rc < 0)
        return rc;
    tok_rewrite_add(r, " ", 1, 0, 0);
    for (size_t i = 0; i < n; i++)
        tok_rewrite_add(r, p + i, 1, tok_view_from(&view, p + i), tok_view_to(&view, p + i));
    c->view = tok_rewrite_view(r);
    rc = emit_word(state, c, r->p, r->n, n_chars);
    c->view = view;
    return rc;
}

static void word_end(void *work)
{
    tok_rewrite_fini(work);
}

int tok_wpm_create(void **out, const struct tok_wpm_opts *o, struct err *e)
{
    struct tok_wpm_opts *own = mem_alloc(sizeof(*own));
    *out = own;
    if (!own)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    *own = *o;
    return 0;
}

const struct tokenizer_ops tok_wpm_ops = {
    .encode = encode, .word = word, .word_end = word_end, .destroy = mem_free};
