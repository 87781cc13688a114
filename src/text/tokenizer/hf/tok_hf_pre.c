/* tok_hf_pre.c - the pre-tokenizers of tokenizer.json; the words go to the model. */
#include <string.h>

#include <utf8proc.h>

#include "base/utf8.h"
#include "text/tokenizer/algorithm/tok_wpm.h"
#include "text/tokenizer/hf/tok_hf.h"

static int cut(struct tok_hf_run *s, const char *p, size_t n, unsigned step);

static int encode_word(struct tok_hf_run *s, const char *p, size_t n)
{
    return s->hf->model->word(s->hf->model_state, s->call, s->word.bytes, p, n);
}

/* ---- cutting ---- */

/* Matches and the gaps between them, joined as the behavior says. */
struct pieces {
    struct tok_hf_run *s;
    const struct tok_hf_pre *h;
    unsigned step;
    const char *from, *to; /* not handed on yet */
    bool held, match;      /* held: from .. to is set; match: the last piece was a match */
};

static int flush(struct pieces *w)
{
    if (!w->held)
        return 0;
    w->held = false;
    return w->to > w->from ? cut(w->s, w->from, (size_t)(w->to - w->from), w->step + 1) : 0;
}

static int add_piece(struct pieces *w, const char *from, const char *to, bool match)
{
    bool join = false, was = w->match;
    if (to == from)
        return 0;
    match ^= w->h->invert;
    w->match = match;
    switch (w->h->behavior) {
    case TOK_HF_REMOVED:
        if (match)
            return 0;
        break;
    case TOK_HF_ISOLATED:
        break;
    case TOK_HF_PREVIOUS:
        join = w->held && match && !was;
        break;
    case TOK_HF_NEXT:
        join = w->held && !match && was;
        break;
    case TOK_HF_CONTIGUOUS:
        join = w->held && match == was;
        break;
    }
    if (join) {
        w->to = to;
        return 0;
    }
    int rc = flush(w);
    w->from = from;
    w->to = to;
    w->held = true;
    return rc;
}

static bool in_class(enum tok_hf_class class, uint32_t c)
{
    if (class == TOK_HF_CLASS_SPACE)
        return tok_hf_is_space(c);
    if (c < 0x80)
        return class == TOK_HF_CLASS_NUMBER ? c >= '0' && c <= '9' : tok_wpm_is_punctuation(c, 0);
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    if (class == TOK_HF_CLASS_PUNCTUATION)
        return tok_wpm_is_punctuation(c, (int)cat);
    return cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO;
}

static int cut_by_class(struct pieces *w, const char *p, const char *end)
{
    const char *plain = p;
    int rc = 0;
    while (p < end && rc == 0) {
        uint32_t c;
        size_t len = utf8_next(p, end, &c);
        if (in_class(w->h->class, c)) {
            rc = add_piece(w, plain, p, false);
            if (rc == 0)
                rc = add_piece(w, p, p + len, true);
            plain = p + len;
        }
        p += len;
    }
    return rc == 0 ? add_piece(w, plain, end, false) : rc;
}

static int cut_by_text(struct pieces *w, const char *p, const char *end)
{
    const struct tok_hf_pre *h = w->h;
    const char *hit;
    int rc = 0;
    while (rc == 0 && (hit = memmem(p, (size_t)(end - p), h->text, h->n_text))) {
        rc = add_piece(w, p, hit, false);
        if (rc == 0)
            rc = add_piece(w, hit, hit + h->n_text, true);
        p = hit + h->n_text;
    }
    return rc == 0 ? add_piece(w, p, end, false) : rc;
}

static int cut_by_regex(struct pieces *w, const char *p, const char *end)
{
    size_t n = (size_t)(end - p), at = 0, plain = 0;
    int rc = 0;
    while (at < n && rc == 0) {
        size_t from = n, to = n;
        int m = tok_regex_find(w->h->rx, &w->s->x.match, p, n, at, &from, &to);
        if (m < 0)
            return m;
        if (m == 0)
            break;
        if (to <= from || from < plain) { /* an empty match: continue after the next character */
            uint32_t c;
            at = (from > at ? from : at) + utf8_next(p + (from > at ? from : at), end, &c);
            continue;
        }
        rc = add_piece(w, p + plain, p + from, false);
        if (rc == 0)
            rc = add_piece(w, p + from, p + to, true);
        plain = at = to;
    }
    return rc == 0 ? add_piece(w, p + plain, end, false) : rc;
}

static int cut_by_scan(struct pieces *w, const char *p, const char *end)
{
    size_t state = 0;
    int rc = 0;
    while (p < end && rc == 0) {
        size_t len = w->h->scan((const uint8_t *)p, (const uint8_t *)end, w->h->opts, &state);
        rc = add_piece(w, p, p + len, true);
        p += len;
    }
    return rc;
}

/* Words between white space, punctuation characters alone (BERT) or in runs (\w+|[^\w\s]+). */
static int cut_words(struct tok_hf_run *s, const char *p, const char *end, unsigned step)
{
    bool bert = s->hf->pre[step].kind == TOK_HF_PRE_BERT;
    const char *word = p;
    int rc = 0, kind = 0; /* contents of the word: 0 nothing, 1 word characters, 2 others */
    while (p < end && rc == 0) {
        uint32_t c;
        size_t len = utf8_next(p, end, &c);
        int k = tok_hf_is_space(c)                              ? 0
                : bert && in_class(TOK_HF_CLASS_PUNCTUATION, c) ? 2
                : bert || tok_hf_is_word(c)                     ? 1
                                                                : 2;
        if (kind != 0 && (k != kind || (bert && k == 2)))
            rc = cut(s, word, (size_t)(p - word), step + 1);
        if (k != kind || (bert && k == 2))
            word = p;
        kind = k;
        p += len;
    }
    return rc == 0 && kind != 0 ? cut(s, word, (size_t)(end - word), step + 1) : rc;
}

/* Adds a leading space if there is none. */
static int cut_prefixed(struct tok_hf_run *s, const char *p, size_t n, unsigned step)
{
    struct tok_rewrite *r = &s->x.pre[step];
    struct tok_view view = s->call->view;
    if (*p == ' ')
        return cut(s, p, n, step + 1);
    r->n = 0;
    int rc = tok_rewrite_reserve(r, n + 1);
    if (rc < 0)
        return rc;
    tok_rewrite_add(r, " ", 1, tok_view_from(&view, p), tok_view_from(&view, p));
    for (size_t i = 0; i < n; i++)
        tok_rewrite_add(r, p + i, 1, tok_view_from(&view, p + i), tok_view_to(&view, p + i));
    s->call->view = tok_rewrite_view(r);
    rc = cut(s, r->p, r->n, step + 1);
    s->call->view = view;
    return rc;
}

static int cut_metaspace(struct tok_hf_run *s, const char *p, size_t n, unsigned step)
{
    const struct tok_hf_pre *h = &s->hf->pre[step];
    struct tok_rewrite *r = &s->x.pre[step];
    struct tok_view view = s->call->view;
    uint32_t c, first = tok_view_from(&view, p);
    size_t spaces = 1;
    for (size_t i = 0; i < n; i++)
        spaces += p[i] == ' ';
    r->n = 0;
    int rc = tok_rewrite_reserve(r, n + spaces * h->n_text);
    if (rc < 0)
        return rc;
    bool there = *p == ' ' || (n >= h->n_text && memcmp(p, h->text, h->n_text) == 0);
    if (!there &&
        (h->prepend == TOK_HF_PREPEND_ALWAYS || (h->prepend == TOK_HF_PREPEND_FIRST && first == 0)))
        tok_rewrite_add(r, h->text, h->n_text, first,
                        tok_view_to(&view, p + utf8_next(p, p + n, &c) - 1));
    for (size_t i = 0; i < n; i++)
        tok_rewrite_add(r, p[i] == ' ' ? h->text : p + i, p[i] == ' ' ? h->n_text : 1,
                        tok_view_from(&view, p + i), tok_view_to(&view, p + i));
    s->call->view = tok_rewrite_view(r);
    if (h->split) {
        struct pieces w = {.s = s, .h = h, .step = step};
        rc = cut_by_text(&w, r->p, r->p + r->n);
        if (rc == 0)
            rc = flush(&w);
    } else {
        rc = cut(s, r->p, r->n, step + 1);
    }
    s->call->view = view;
    return rc;
}

/* One piece through the steps from `step` on.  The depth is the number of steps. */
static int cut(struct tok_hf_run *s, const char *p, size_t n, unsigned step)
{
    const struct tok_hf *hf = s->hf;
    int rc = 0;
    if (step == hf->n_pre)
        return encode_word(s, p, n);
    struct pieces w = {.s = s, .h = &hf->pre[step], .step = step};
    switch (w.h->kind) {
    case TOK_HF_PRE_BERT:
    case TOK_HF_PRE_WORDS:
        return cut_words(s, p, p + n, step);
    case TOK_HF_PRE_PREFIX_SPACE:
        return cut_prefixed(s, p, n, step);
    case TOK_HF_PRE_METASPACE:
        return cut_metaspace(s, p, n, step);
    case TOK_HF_PRE_CLASS:
        rc = cut_by_class(&w, p, p + n);
        break;
    case TOK_HF_PRE_TEXT:
        rc = cut_by_text(&w, p, p + n);
        break;
    case TOK_HF_PRE_REGEX:
        rc = cut_by_regex(&w, p, p + n);
        break;
    case TOK_HF_PRE_SCAN:
        rc = cut_by_scan(&w, p, p + n);
        break;
    }
    return rc == 0 ? flush(&w) : rc;
}

int tok_hf_pretokenize(struct tok_hf_run *s, const char *p, size_t n)
{
    return n > 0 ? cut(s, p, n, 0) : 0;
}
