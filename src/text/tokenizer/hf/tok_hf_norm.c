/* tok_hf_norm.c - the normalizers of tokenizer.json, each keeping the ranges of the input.
 *
 * As in the reference, a character that replaces another one keeps its range, and an inserted one
 * gets the range of its left neighbour. */
#include <string.h>

#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer/algorithm/tok_wpm.h"
#include "text/tokenizer/hf/tok_hf.h"
#include "text/tokenizer/tok_charsmap.h"

struct norm_step { /* one step: reads [p, end) of view, writes out */
    const struct tok_hf_norm *h;
    struct tok_hf_scratch *x;
    const struct tok_view *view;
    const char *p, *end;
    struct tok_rewrite *out;
    size_t max_bytes; /* limit of out */
};

/* A chain of normalizers may not make a text longer than this.  The longest growth of Unicode's
 * forms is 11 times; a hostile file could ask for any. */
static size_t max_bytes(size_t n)
{
    const size_t small = (size_t)64 << 20;
    size_t most = n < TOK_MAX_TEXT / 16 ? n * 16 + 65536 : TOK_MAX_TEXT;
    size_t large = n < TOK_MAX_TEXT / 4 ? n * 4 : TOK_MAX_TEXT;
    if (large < small)
        large = small;
    return most < large ? most : large;
}

/* Makes room for n more bytes of output. */
static int reserve(struct norm_step *j, size_t n)
{
    if (j->out->n > j->max_bytes || n > j->max_bytes - j->out->n)
        return SHOAL_ELIMIT;
    return tok_rewrite_reserve(j->out, n);
}

bool tok_hf_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* \w as in Rust's regexes: alphabetic, marks, decimal digits, connectors, joiners. */
bool tok_hf_is_word(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               c == '_';
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    if (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_NL)
        return true; /* L*, M*, Nd, Nl are neighbours */
    return cat == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d ||
           (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

static int put_char(struct norm_step *j, uint32_t c, uint32_t from, uint32_t to)
{
    char text[4];
    unsigned n = utf8_encode(text, c);
    if (j->out->cap - j->out->n < 4) {
        int rc = reserve(j, 4);
        if (rc < 0)
            return rc;
    }
    tok_rewrite_add(j->out, text, n, from, to);
    return 0;
}

static int put_text(struct norm_step *j, const char *p, size_t n, uint32_t from, uint32_t to)
{
    int rc = reserve(j, n);
    if (rc == 0)
        tok_rewrite_add(j->out, p, n, from, to);
    return rc;
}

/* Copies bytes of the input. */
static int put_same(struct norm_step *j, const char *p, size_t n)
{
    int rc = reserve(j, n);
    for (size_t i = 0; i < n && rc == 0; i++)
        tok_rewrite_add(j->out, p + i, 1, tok_view_from(j->view, p + i),
                        tok_view_to(j->view, p + i));
    return rc;
}

static int put_lower(struct norm_step *j, uint32_t c, uint32_t from, uint32_t to)
{
    if (c < 0x80)
        return put_char(j, c >= 'A' && c <= 'Z' ? c + 32 : c, from, to);
    if (c != 0x130)
        return put_char(j, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c), from, to);
    int rc = put_char(j, 'i', from, to); /* the one character whose lower case is two */
    return rc < 0 ? rc : put_char(j, 0x307, from, to);
}

/* ---- BertNormalizer ---- */

static bool bert_removes(uint32_t c)
{
    if (c < 0x80)
        return c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r');
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    return c == 0xfffd || (cat >= UTF8PROC_CATEGORY_CC && cat <= UTF8PROC_CATEGORY_CO);
}

static int bert_char(struct norm_step *j, uint32_t c, uint32_t from, uint32_t to)
{
    unsigned opts = j->h->opts;
    utf8proc_int32_t parts[32] = {(utf8proc_int32_t)c};
    utf8proc_ssize_t n = 1;
    int boundary = 0, rc = 0;
    if ((opts & TOK_HF_BERT_STRIP_ACCENTS) && c >= 0xc0)
        n = utf8proc_decompose_char((utf8proc_int32_t)c, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
    for (utf8proc_ssize_t i = 0; i < n && i < 32 && rc == 0; i++) {
        c = (uint32_t)parts[i];
        if ((opts & TOK_HF_BERT_STRIP_ACCENTS) && c >= 0x300 &&
            utf8proc_category(parts[i]) == UTF8PROC_CATEGORY_MN)
            continue;
        rc = opts & TOK_HF_BERT_LOWERCASE ? put_lower(j, c, from, to) : put_char(j, c, from, to);
    }
    return rc;
}

static int run_bert(struct norm_step *j)
{
    unsigned opts = j->h->opts;
    int rc = tok_rewrite_reserve(j->out, (size_t)(j->end - j->p) + 4);
    for (const char *q = j->p; q < j->end && rc == 0;) {
        uint32_t c, from = tok_view_from(j->view, q);
        if (*q >= ' ' && *q < 0x7f && j->out->n < j->out->cap) { /* the common case */
            char low =
                (opts & TOK_HF_BERT_LOWERCASE) && *q >= 'A' && *q <= 'Z' ? (char)(*q + 32) : *q;
            tok_rewrite_add(j->out, &low, 1, from, tok_view_to(j->view, q));
            q++;
            continue;
        }
        unsigned len = utf8_next(q, j->end, &c);
        uint32_t to = tok_view_to(j->view, q + len - 1);
        q += len;
        if (opts & TOK_HF_BERT_CLEAN) {
            if (bert_removes(c))
                continue;
            if (tok_hf_is_space(c))
                c = ' ';
        }
        bool cjk = c >= 0x3400 && (opts & TOK_HF_BERT_CJK) && tok_wpm_is_cjk(c);
        if (cjk)
            rc = put_char(j, ' ', from, to);
        if (rc == 0)
            rc = bert_char(j, c, from, to);
        if (rc == 0 && cjk)
            rc = put_char(j, ' ', from, to);
    }
    return rc;
}

/* ---- Unicode's normal forms ---- */

struct unit {
    utf8proc_int32_t c;
    uint32_t from, to;
    int class;
};

/* The composition of two characters, or -1. */
static utf8proc_int32_t composed(utf8proc_int32_t a, utf8proc_int32_t b)
{
    utf8proc_int32_t two[3] = {a, b, 0};
    if (b < 0x300)
        return -1;
    utf8proc_ssize_t n = utf8proc_normalize_utf32(two, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return n == 1 ? two[0] : -1;
}

/* Composes in place; returns the new length. */
static size_t compose(struct unit *u, size_t n)
{
    size_t out = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        bool open =
            starter != SIZE_MAX &&
            (out == starter + 1 || (u[out - 1].class != 0 && u[out - 1].class < u[i].class));
        utf8proc_int32_t c = open ? composed(u[starter].c, u[i].c) : -1;
        if (c >= 0) {
            u[starter].c = c;
            continue;
        }
        if (u[i].class == 0)
            starter = out;
        u[out++] = u[i];
    }
    return out;
}

/* Sorts marks by their class, stably.  Their ranges stay in the order of the text, as in the
 * reference. */
static void reorder(struct unit *u, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        utf8proc_int32_t c = u[i].c;
        int class = u[i].class;
        size_t k = i;
        if (class == 0)
            continue;
        for (; k > 0 && u[k - 1].class > class; k--) {
            u[k].c = u[k - 1].c;
            u[k].class = u[k - 1].class;
        }
        u[k].c = c;
        u[k].class = class;
    }
}

/* Is a text without characters from `limit` on already in this form? */
static uint32_t stable_below(enum tok_hf_norm_kind kind)
{
    return kind == TOK_HF_NORM_NFC ? 0x300 : kind == TOK_HF_NORM_NFD ? 0xc0 : 0xa0;
}

static size_t stable_prefix(const char *p, const char *end, uint32_t limit)
{
    const char *q = p, *last = p;
    uint32_t c;
    while (q < end) {
        unsigned len = utf8_next(q, end, &c);
        if (c >= limit)
            return (size_t)(last - p); /* the character before may compose with it */
        last = q;
        q += len;
    }
    return (size_t)(end - p);
}

/* work with room for n bytes; its content is lost. */
static int reserve_work(struct tok_hf_scratch *x, size_t n)
{
    if (n <= x->cap_work)
        return 0;
    void *bigger = mem_alloc(n + n / 2);
    if (!bigger)
        return SHOAL_ENOMEM;
    mem_free(x->work);
    x->work = bigger;
    x->cap_work = n + n / 2;
    return 0;
}

/* Marks are sorted by insertion, so their number is limited: no real text has this many. */
#define MAX_MARKS 1000

/* Normalizes a stretch of text whose first character does not compose with the one before it. */
static int put_form(struct norm_step *j, const char *q, const char *end)
{
    enum tok_hf_norm_kind kind = j->h->kind;
    bool compat = kind == TOK_HF_NORM_NFKC || kind == TOK_HF_NORM_NFKD;
    utf8proc_option_t how = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0);
    size_t n = 0, row = 0;
    int boundary = 0;
    /* no character decomposes to more than 18, or 6 a byte */
    int rc = reserve_work(j->x, ((size_t)(end - q) * 6 + 32) * sizeof(struct unit));
    struct unit *u = j->x->work;
    while (q < end && rc == 0) {
        utf8proc_int32_t parts[32];
        uint32_t c, from = tok_view_from(j->view, q);
        unsigned len = utf8_next(q, end, &c);
        uint32_t to = tok_view_to(j->view, q + len - 1);
        utf8proc_ssize_t k =
            utf8proc_decompose_char((utf8proc_int32_t)c, parts, 32, how, &boundary);
        if (k < 0 || k > (utf8proc_ssize_t)len * 6) { /* no character */
            parts[0] = (utf8proc_int32_t)c;
            k = 1;
        }
        for (utf8proc_ssize_t i = 0; i < k; i++) {
            const utf8proc_property_t *prop = utf8proc_get_property(parts[i]);
            u[n++] = (struct unit){parts[i], from, to, (int)prop->combining_class};
            if (u[n - 1].class == 0 || n - row > MAX_MARKS) {
                reorder(u + row, n - 1 - row);
                row = n - 1;
            }
        }
        q += len;
    }
    if (rc < 0)
        return rc;
    reorder(u + row, n - row);
    if (kind == TOK_HF_NORM_NFC || kind == TOK_HF_NORM_NFKC)
        n = compose(u, n);
    rc = tok_rewrite_reserve(j->out, n * 4);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put_char(j, (uint32_t)u[i].c, u[i].from, u[i].to);
    return rc;
}

static int run_form(struct norm_step *j)
{
    uint32_t limit = stable_below(j->h->kind), c;
    const char *q = j->p;
    int rc = 0;
    while (q < j->end && rc == 0) {
        size_t same = stable_prefix(q, j->end, limit);
        rc = put_same(j, q, same);
        q += same;
        if (q == j->end || rc < 0)
            break;
        const char *stop = q + utf8_next(q, j->end, &c);
        while (stop < j->end && (*stop & 0x80)) /* nothing composes across an ASCII character */
            stop++;
        rc = put_form(j, q, stop);
        q = stop;
    }
    return rc;
}

/* ---- character by character ---- */

static bool is_mark(uint32_t c)
{
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    return cat >= UTF8PROC_CATEGORY_MN && cat <= UTF8PROC_CATEGORY_ME;
}

/* The result of SentencePiece's NMT rules for a character; 0: removed. */
static uint32_t nmt_char(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
        c == 0x9f)
        return 0;
    if (c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
        (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff ||
        c == 0xfffd)
        return ' ';
    return c;
}

static int run_chars(struct norm_step *j)
{
    enum tok_hf_norm_kind kind = j->h->kind;
    int rc = tok_rewrite_reserve(j->out, (size_t)(j->end - j->p) + 4);
    for (const char *q = j->p; q < j->end && rc == 0;) {
        uint32_t c, from = tok_view_from(j->view, q);
        unsigned len = utf8_next(q, j->end, &c);
        uint32_t to = tok_view_to(j->view, q + len - 1);
        q += len;
        if (kind == TOK_HF_NORM_LOWERCASE) {
            rc = put_lower(j, c, from, to);
        } else if (kind == TOK_HF_NORM_STRIP_ACCENTS) {
            if (c < 0x300 || !is_mark(c))
                rc = put_char(j, c, from, to);
        } else {
            uint32_t d = nmt_char(c);
            if (d != 0 || c == 0)
                rc = put_char(j, d, from, to);
        }
    }
    return rc;
}

static int run_strip(struct norm_step *j)
{
    const char *p = j->p, *end = j->end;
    uint32_t c;
    if (j->h->opts & TOK_HF_STRIP_LEFT)
        while (p < end) {
            unsigned len = utf8_next(p, end, &c);
            if (!tok_hf_is_space(c))
                break;
            p += len;
        }
    if (j->h->opts & TOK_HF_STRIP_RIGHT)
        while (p < end) {
            const char *q = end - 1;
            while (q > p && ((uint8_t)*q & 0xc0) == 0x80)
                q--;
            utf8_next(q, end, &c);
            if (!tok_hf_is_space(c))
                break;
            end = q;
        }
    return put_same(j, p, (size_t)(end - p));
}

static int run_replace(struct norm_step *j)
{
    const struct tok_hf_norm *h = j->h;
    size_t n = (size_t)(j->end - j->p), at = 0;
    int rc = 0;
    while (at < n && rc == 0) {
        size_t from = n, to = n;
        if (h->rx) {
            int m = tok_regex_find(h->rx, &j->x->match, j->p, n, at, &from, &to);
            if (m < 0)
                return m;
        } else {
            const char *hit = memmem(j->p + at, n - at, h->text, h->n_text);
            if (hit) {
                from = (size_t)(hit - j->p);
                to = from + h->n_text;
            }
        }
        if (from < at) /* a match with lookbehind */
            from = at;
        rc = put_same(j, j->p + at, from - at);
        if (rc < 0 || from == n)
            break;
        if (to <= from) { /* an empty match is ignored */
            uint32_t c;
            to = from + utf8_next(j->p + from, j->end, &c);
            rc = put_same(j, j->p + from, to - from);
        } else {
            const char *last = j->p + to - 1; /* its range is that of the last replaced character */
            while (last > j->p + from && ((uint8_t)*last & 0xc0) == 0x80)
                last--;
            rc = put_text(j, h->content, h->n_content, tok_view_from(j->view, last),
                          tok_view_to(j->view, j->p + to - 1));
        }
        at = to;
    }
    return rc;
}

static int run_prepend(struct norm_step *j)
{
    uint32_t c;
    if (j->p == j->end)
        return 0;
    unsigned len = utf8_next(j->p, j->end, &c);
    int rc = put_text(j, j->h->text, j->h->n_text, tok_view_from(j->view, j->p),
                      tok_view_to(j->view, j->p + len - 1));
    return rc < 0 ? rc : put_same(j, j->p, (size_t)(j->end - j->p));
}

/* ---- SentencePiece's tables ---- */

/* One grapheme, as in the reference: mapped as a whole when the table has it or a prefix of it,
 * else character by character. */
static int put_mapped(struct norm_step *j, const char *p, const char *end)
{
    const char *to;
    size_t n_to, used;
    int rc = 0;
    if (end - p < 6 && tok_charsmap_first(j->h->charsmap, p, (size_t)(end - p), &to, &n_to)) {
        uint32_t c;
        unsigned len = utf8_next(p, end, &c);
        return put_text(j, to, n_to, tok_view_from(j->view, p), tok_view_to(j->view, p + len - 1));
    }
    while (p < end && rc == 0) {
        uint32_t c;
        used = utf8_next(p, end, &c);
        rc = tok_charsmap_first(j->h->charsmap, p, used, &to, &n_to)
                 ? put_text(j, to, n_to, tok_view_from(j->view, p),
                            tok_view_to(j->view, p + used - 1))
                 : put_same(j, p, used);
        p += used;
    }
    return rc;
}

static int run_precompiled(struct norm_step *j)
{
    const char *p = j->p, *q = p;
    uint32_t c, before = 0;
    utf8proc_int32_t state = 0;
    int rc = 0;
    while (q < j->end && rc == 0) {
        unsigned len = utf8_next(q, j->end, &c);
        if (q > j->p && utf8proc_grapheme_break_stateful((utf8proc_int32_t)before,
                                                         (utf8proc_int32_t)c, &state)) {
            rc = put_mapped(j, p, q);
            p = q;
        }
        before = c;
        q += len;
    }
    return rc == 0 && p < q ? put_mapped(j, p, q) : rc;
}

/* Maps the text at q by the table; returns how many bytes were read. */
static size_t tok_spiece_next(const struct norm_step *j, const char *q, const char **to,
                              size_t *n_to)
{
    size_t used;
    uint32_t c;
    if (j->h->charsmap &&
        tok_charsmap_longest(j->h->charsmap, q, (size_t)(j->end - q), &used, to, n_to))
        return used;
    *to = q;
    return *n_to = utf8_next(q, j->end, &c);
}

static bool ends_with(const struct tok_rewrite *r, const char *p, size_t n)
{
    return r->n >= n && memcmp(r->p + r->n - n, p, n) == 0;
}

/* SentencePiece's own normalizer: replacements by the longest key, then white space. */
static int run_spiece(struct norm_step *j)
{
    bool extra = j->h->opts & TOK_HF_SPIECE_EXTRA_SPACES,
         escape = j->h->opts & TOK_HF_SPIECE_ESCAPE;
    const char *space = escape ? "\xe2\x96\x81" : " ", *to;
    size_t n_space = escape ? 3 : 1, n_to, used;
    bool after_space = extra, begun = false;
    int rc = 0;
    for (const char *q = j->p; q < j->end && rc == 0; q += used) {
        used = tok_spiece_next(j, q, &to, &n_to);
        uint32_t from = tok_view_from(j->view, q), end = tok_view_to(j->view, q + used - 1);
        if (!begun && extra && n_to == 1 && *to == ' ')
            continue; /* leading spaces are dropped */
        if (!begun && (j->h->opts & TOK_HF_SPIECE_DUMMY_PREFIX))
            rc = put_text(j, space, n_space, from, end);
        begun = true;
        while (after_space && n_to > 0 && *to == ' ') {
            to++;
            n_to--;
        }
        for (size_t i = 0; i < n_to && rc == 0; i++)
            rc = to[i] == ' ' ? put_text(j, space, n_space, from, end)
                              : put_text(j, to + i, 1, from, end);
        if (n_to > 0)
            after_space = extra && to[n_to - 1] == ' ';
    }
    while (extra && ends_with(j->out, space, n_space))
        j->out->n -= n_space;
    return rc;
}

/* ---- the chain ---- */

static bool is_ascii(const char *p, const char *end)
{
    for (; p < end; p++)
        if (*p & 0x80)
            return false;
    return true;
}

/* Does the step leave this text unchanged?  A quick check: most steps change few texts. */
static bool is_idle(const struct tok_hf_norm *h, const char *p, const char *end)
{
    switch (h->kind) {
    case TOK_HF_NORM_NFC:
    case TOK_HF_NORM_NFD:
    case TOK_HF_NORM_NFKC:
    case TOK_HF_NORM_NFKD:
        return stable_prefix(p, end, stable_below(h->kind)) == (size_t)(end - p);
    case TOK_HF_NORM_STRIP_ACCENTS:
        return is_ascii(p, end);
    case TOK_HF_NORM_REPLACE:
        return !h->rx && (h->n_text == 0 || !memmem(p, (size_t)(end - p), h->text, h->n_text));
    default:
        return false;
    }
}

static int run_step(struct norm_step *j)
{
    switch (j->h->kind) {
    case TOK_HF_NORM_BERT:
        return run_bert(j);
    case TOK_HF_NORM_NFC:
    case TOK_HF_NORM_NFD:
    case TOK_HF_NORM_NFKC:
    case TOK_HF_NORM_NFKD:
        return run_form(j);
    case TOK_HF_NORM_LOWERCASE:
    case TOK_HF_NORM_STRIP_ACCENTS:
    case TOK_HF_NORM_NMT:
        return run_chars(j);
    case TOK_HF_NORM_STRIP:
        return run_strip(j);
    case TOK_HF_NORM_REPLACE:
        return run_replace(j);
    case TOK_HF_NORM_PREPEND:
        return run_prepend(j);
    case TOK_HF_NORM_PRECOMPILED:
        return run_precompiled(j);
    case TOK_HF_NORM_SPIECE:
        return run_spiece(j);
    }
    return SHOAL_EINTERNAL;
}

int tok_hf_normalize(const struct tok_hf *hf, struct tok_hf_scratch *x, struct tok_view *view,
                     const char **p, size_t *n)
{
    unsigned turn = 0;
    size_t max = max_bytes(*n);
    for (unsigned i = 0; i<hf->n_norm && * n> 0; i++) {
        struct tok_rewrite *out = &x->norm[turn];
        struct norm_step j = {&hf->norm[i], x, view, *p, *p + *n, out, max};
        if (is_idle(j.h, j.p, j.end))
            continue;
        out->n = 0;
        int rc = run_step(&j);
        if (rc < 0)
            return rc;
        if (out->n > max)
            return SHOAL_ELIMIT;
        *view = tok_rewrite_view(out);
        *p = out->n > 0 ? out->p : "";
        *n = out->n;
        turn = 1 - turn;
    }
    return 0;
}
