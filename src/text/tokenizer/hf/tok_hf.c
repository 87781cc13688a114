/* tok_hf.c - see tok_hf.h.  One text through the pipeline, and added tokens. */
#include "text/tokenizer/hf/tok_hf.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "format/token_type.h"
#include "text/tokenizer/tok_charsmap.h"
#include "text/tokenizer/tokenizer_info.h"

void tok_hf_scratch_fini(struct tok_hf_scratch *x)
{
    tok_rewrite_fini(&x->clean);
    tok_rewrite_fini(&x->norm[0]);
    tok_rewrite_fini(&x->norm[1]);
    for (int i = 0; i < TOK_HF_MAX_PRES; i++)
        tok_rewrite_fini(&x->pre[i]);
    tok_regex_match_free(x->match);
    mem_free(x->work);
}

/* Bytes of invalid UTF-8 at p that become one U+FFFD: the longest prefix of a character, or one
 * byte. */
static size_t invalid_length(const uint8_t *p, const uint8_t *end)
{
    uint8_t lo = 0x80, hi = 0xbf;
    size_t want = *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : 4, n = 1;
    if (*p < 0xc2 || *p > 0xf4)
        return 1;
    if (*p == 0xe0)
        lo = 0xa0;
    else if (*p == 0xed)
        hi = 0x9f;
    else if (*p == 0xf0)
        lo = 0x90;
    else if (*p == 0xf4)
        hi = 0x8f;
    while (n < want && p + n < end && p[n] >= lo && p[n] <= hi) {
        lo = 0x80;
        hi = 0xbf;
        n++;
    }
    return n;
}

/* Makes the text valid UTF-8. */
static int clean(struct tok_hf_run *s, const char **p, size_t *n)
{
    struct tok_rewrite *r = &s->x.clean;
    size_t good = utf8_valid_prefix(*p, *n);
    const char *q = *p, *end = *p + *n;
    if (good == *n)
        return 0;
    int rc = tok_rewrite_reserve(r, *n * 3);
    if (rc < 0)
        return rc;
    while (q < end) {
        for (const char *stop = q + good; q < stop; q++)
            tok_rewrite_add(r, q, 1, (uint32_t)(q - *p), (uint32_t)(q - *p) + 1);
        if (q == end)
            break;
        size_t bad = invalid_length((const uint8_t *)q, (const uint8_t *)end);
        tok_rewrite_add(r, "\xef\xbf\xbd", 3, (uint32_t)(q - *p),
                        (uint32_t)(q - *p + (ptrdiff_t)bad));
        q += bad;
        good = utf8_valid_prefix(q, (size_t)(end - q));
    }
    s->call->view = tok_rewrite_view(r);
    *p = r->p;
    *n = r->n;
    return 0;
}

/* The character that ends at p (> start) of valid UTF-8. */
static const char *char_before(const char *start, const char *p, uint32_t *c)
{
    const char *q = p - 1;
    while (q > start && ((uint8_t)*q & 0xc0) == 0x80)
        q--;
    if (utf8_decode((const uint8_t *)q, (const uint8_t *)p, c) == 0)
        *c = 0xfffd;
    return q;
}

static size_t char_at(const char *p, const char *end, uint32_t *c)
{
    unsigned len = utf8_decode((const uint8_t *)p, (const uint8_t *)end, c);
    if (len == 0)
        *c = 0xfffd;
    return len ? len : 1;
}

/* Is this added token allowed at [from, to) of the text? Extends the range over the white space
 * that it strips. */
static bool takes(const struct tok_vocab *v, int32_t id, unsigned flags, const char *start,
                  const char *plain, const char *end, const char **from, const char **to)
{
    uint8_t attr = v->attr[id];
    uint32_t c;
    if (v->type[id] != TOKEN_TYPE_USER_DEFINED && !(flags & TOKENIZER_PARSE_SPECIAL))
        return false;
    if ((attr & TOK_ATTR_FIRST) && *from > start)
        return false;
    if (attr & TOK_ATTR_SINGLE_WORD) {
        if (*from > start && (char_before(start, *from, &c), tok_hf_is_word(c)))
            return false;
        if (*to < end && (char_at(*to, end, &c), tok_hf_is_word(c)))
            return false;
    }
    if (attr & TOK_ATTR_LSTRIP)
        while (*from > plain) {
            const char *q = char_before(plain, *from, &c);
            if (!tok_hf_is_space(c))
                break;
            *from = q;
        }
    if (attr & TOK_ATTR_RSTRIP)
        while (*to < end) {
            size_t len = char_at(*to, end, &c);
            if (!tok_hf_is_space(c))
                break;
            *to += len;
        }
    return true;
}

/* Does [from, to) of the view touch a range of input in which control tokens do not count? */
static bool touches_plain(const struct tok_call *c, const char *from, const char *to)
{
    const struct tokenizer_range *r = NULL;
    if (c->n_plain > 0)
        r = tok_call_plain(c, tok_view_from(&c->view, from));
    return r && r->from < tok_view_to(&c->view, to - 1);
}

typedef int (*plain_fn)(struct tok_hf_run *s, const char *p, size_t n, unsigned flags);

/* Emits the added tokens of a set and passes the text between them to fn. */
static int cut_added(struct tok_hf_run *s, const struct tok_special *set, const char *p, size_t n,
                     unsigned flags, plain_fn fn)
{
    const char *start = p, *plain = p, *end = p + n;
    int rc = 0;
    while (p < end && rc == 0) {
        uint32_t c;
        int32_t at = tok_special_may(set, *p) ? tok_special_at(set, NULL, p, (size_t)(end - p))
                                              : TOKENIZER_NONE;
        if (at < 0) {
            p += char_at(p, end, &c);
            continue;
        }
        const struct tok_special_entry *w = &set->e[at];
        const char *from = p, *to = p + w->n;
        unsigned may =
            touches_plain(s->call, from, to) ? flags & ~(unsigned)TOKENIZER_PARSE_SPECIAL : flags;
        p = to; /* even when it is not allowed, as in the reference */
        if (!takes(s->hf->v, (int32_t)w->id, may, start, plain, end, &from, &to))
            continue;
        if (from < plain)
            from = plain;
        if (from > plain)
            rc = fn(s, plain, (size_t)(from - plain), flags);
        if (rc == 0)
            rc = tok_call_emit(s->call, (int32_t)w->id, from, (size_t)(to - from));
        plain = to;
        p = to > p ? to : p;
    }
    if (rc == 0 && plain < end)
        rc = fn(s, plain, (size_t)(end - plain), flags);
    return rc;
}

static int encode_normal(struct tok_hf_run *s, const char *p, size_t n, unsigned flags)
{
    (void)flags;
    return tok_hf_pretokenize(s, p, n);
}

static int encode_raw(struct tok_hf_run *s, const char *p, size_t n, unsigned flags)
{
    const struct tok_hf *hf = s->hf;
    struct tok_view view = s->call->view;
    int rc = tok_hf_normalize(hf, &s->x, &s->call->view, &p, &n);
    if (rc == 0)
        rc = hf->normal.n > 0 ? cut_added(s, &hf->normal, p, n, flags, encode_normal)
                              : tok_hf_pretokenize(s, p, n);
    s->call->view = view;
    return rc;
}

static int encode(const void *state, struct tok_call *c, const char *p, size_t n, unsigned flags)
{
    struct tok_hf_run s = {.hf = state, .call = c};
    int rc = clean(&s, &p, &n);
    if (rc == 0)
        rc = cut_added(&s, &s.hf->raw, p, n, flags, encode_raw);
    if (s.hf->model->word_end)
        s.hf->model->word_end(s.word.bytes);
    tok_hf_scratch_fini(&s.x);
    return rc;
}

static size_t control_at(const void *state, const char *p, size_t n, bool *open)
{
    const struct tok_hf *hf = state;
    size_t raw = tok_special_control(&hf->raw, hf->v, p, n, open);
    size_t normal = tok_special_control(&hf->normal, hf->v, p, n, open);
    return raw > normal ? raw : normal;
}

static void destroy(void *state)
{
    struct tok_hf *hf = state;
    for (unsigned i = 0; i < hf->n_norm; i++) {
        tok_regex_destroy(hf->norm[i].rx);
        mem_free(hf->norm[i].text);
        mem_free(hf->norm[i].content);
        tok_charsmap_destroy(hf->norm[i].charsmap);
    }
    for (unsigned i = 0; i < hf->n_pre; i++) {
        tok_regex_destroy(hf->pre[i].rx);
        mem_free(hf->pre[i].text);
    }
    if (hf->model_state)
        hf->model->destroy(hf->model_state);
    mem_free(hf->raw.e);
    mem_free(hf->normal.e);
    mem_free(hf->added_bytes);
    mem_free(hf);
}

const struct tokenizer_ops tok_hf_ops = {
    .encode = encode, .control_at = control_at, .destroy = destroy};
