/* tok_encode.c - from text to ids: special tokens in texts, what stands around them, pairs, and
 * where in the input each token comes from.  See tokenizer.h. */
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/tok_hf.h"
#include "text/tokenizer/tok_internal.h"

/* ---- working memory ---- */

void tok_scratch_fini(struct tok_scratch *s)
{
    mem_free(s->start);
    mem_free(s->heap);
    tok_rewrite_fini(&s->text);
    pretok_scratch_fini(&s->pre);
}

void tok_rewrite_fini(struct tok_rewrite *r)
{
    mem_free(r->from);
    *r = (struct tok_rewrite){0};
}

int tok_rewrite_reserve(struct tok_rewrite *r, size_t n)
{
    size_t want, bytes;
    if (!mem_add(&want, r->n, n) || !mem_add(&want, want, want / 2 + 64))
        return SHOAL_ENOMEM;
    if (r->n + n <= r->cap)
        return 0;
    if (!mem_mul(&bytes, want, 2 * sizeof(uint32_t) + 1))
        return SHOAL_ENOMEM;
    uint32_t *from = mem_alloc(bytes);
    if (!from)
        return SHOAL_ENOMEM;
    uint32_t *to = from + want;
    char *p = (char *)(to + want);
    if (r->n > 0) {
        memcpy(from, r->from, r->n * sizeof(*from));
        memcpy(to, r->to, r->n * sizeof(*to));
        memcpy(p, r->p, r->n);
    }
    mem_free(r->from);
    *r = (struct tok_rewrite){p, from, to, r->n, want};
    return 0;
}

/* The ways back cost more than the text; nobody may have asked for them. */
int tok_unescape_view(struct tok_scratch *s, const char *p, size_t n, bool prefix)
{
    struct tok_rewrite *r = &s->text;
    r->n = 0;
    int rc = tok_rewrite_reserve(r, n + 1);
    if (rc < 0)
        return rc;
    if (!s->spans) {
        if (prefix)
            r->p[r->n++] = ' ';
        r->n += tok_unescape(r->p + r->n, p, n);
        return 0;
    }
    uint32_t at = tok_view_from(&s->view, p);
    if (prefix)
        tok_rewrite_add(r, " ", 1, at, at);
    for (const char *end = p + n; p < end;) {
        bool escaped = end - p >= 3 && memcmp(p, "\xe2\x96\x81", 3) == 0;
        size_t len = escaped ? 3 : 1;
        tok_rewrite_add(r, escaped ? " " : p, 1, tok_view_from(&s->view, p),
                        tok_view_to(&s->view, p + len - 1));
        p += len;
    }
    s->view = tok_rewrite_view(r);
    return 0;
}

static bool continues(const struct tok_spans *sp, uint32_t at)
{
    return at < sp->n_input && (sp->input[at] & 0xc0) == 0x80;
}

int tok_emit_span(struct tok_scratch *s, const char *p, size_t n)
{
    struct tok_spans *sp = s->spans;
    size_t i = s->out->n - 1, bytes;
    if (i >= sp->cap) {
        size_t cap = s->out->cap; /* at least i + 1 */
        uint32_t *start = mem_mul(&bytes, cap, 2 * sizeof(*start)) ? mem_alloc(bytes) : NULL;
        if (!start)
            return SHOAL_ENOMEM;
        if (i > 0) {
            memcpy(start, sp->start, i * sizeof(*start));
            memcpy(start + cap, sp->end, i * sizeof(*start));
        }
        mem_free(sp->start);
        *sp = (struct tok_spans){start, start + cap, cap, sp->input, sp->n_input};
    }
    uint32_t from = tok_view_from(&s->view, p);
    uint32_t to = n > 0 ? tok_view_to(&s->view, p + n - 1) : from;
    for (int k = 0; k < 3 && from > 0 && continues(sp, from); k++)
        from--;
    for (int k = 0; k < 3 && continues(sp, to); k++)
        to++;
    sp->start[i] = from;
    sp->end[i] = to > from ? to : from;
    return 0;
}

/* ---- one text ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int encode_plain(struct tok_scratch *s, const char *p, size_t n, bool after_special)
{
    struct tok_view view = s->view;
    int rc = SHOAL_EINTERNAL;
    if (n == 0)
        return 0;
    switch (s->t->info.kind) {
    case TOKENIZER_KIND_SPM:
        rc = spm_encode(s, p, n, s->t->info.add_space_prefix && after_special);
        break;
    case TOKENIZER_KIND_BPE:
        rc = bpe_encode(s, p, n);
        break;
    case TOKENIZER_KIND_WPM:
        rc = wpm_encode(s, p, n);
        break;
    case TOKENIZER_KIND_UNIGRAM: /* only with a pipeline, which does not come here */
    case TOKENIZER_KIND_WORDS:
        break;
    }
    s->view = view;
    return rc;
}

/* Special tokens apart, the text between them to its kind. */
static int encode_text(struct tok_scratch *s, const char *p, size_t n, unsigned flags)
{
    const struct tokenizer *t = s->t;
    const uint8_t *type = flags & TOKENIZER_PARSE_SPECIAL ? NULL : t->v.type;
    const char *plain = p, *end = p + n;
    bool after_special = true;
    while (p < end) {
        int32_t at = TOKENIZER_NONE;
        if (tok_special_may(&t->special, *p))
            at = tok_special_at(&t->special, type, p, (size_t)(end - p));
        if (at < 0) {
            p++;
            continue;
        }
        int32_t id = (int32_t)t->special.e[at].id;
        const char *stop = p;
        if (t->v.attr[id] & TOK_ATTR_LSTRIP)
            while (stop > plain && is_space(stop[-1]))
                stop--;
        size_t len = tok_text(t, (uint32_t)id).n;
        int rc = encode_plain(s, plain, (size_t)(stop - plain), after_special);
        if (rc == 0)
            rc = tok_emit(s, id, p, len);
        if (rc < 0)
            return rc;
        p += len;
        if (t->v.attr[id] & TOK_ATTR_RSTRIP)
            while (p < end && is_space(*p))
                p++;
        plain = p;
        after_special = true;
    }
    return encode_plain(s, plain, (size_t)(end - plain), after_special);
}

/* Spaces are part of tokens in many vocabularies, but not of what somebody wants to mark. */
static void trim_spans(struct tok_scratch *s, size_t from)
{
    const struct tok_spans *sp = s->spans;
    for (size_t i = from; i < s->out->n; i++) {
        while (sp->start[i] < sp->end[i] && sp->input[sp->start[i]] == ' ')
            sp->start[i]++;
        while (sp->start[i] < sp->end[i] && sp->input[sp->end[i] - 1] == ' ')
            sp->end[i]--;
    }
}

/* The tokens of one text; spans may be NULL. */
static int encode_one(const struct tokenizer *t, struct tok_ids *out, struct tok_spans *spans,
                      const char *text, size_t n, unsigned flags)
{
    struct tok_scratch s = {.t = t, .out = out, .spans = spans, .view = {.p = text}};
    size_t before = out->n;
    if (n > TOK_MAX_TEXT)
        return SHOAL_ELIMIT;
    if (spans) {
        spans->input = text;
        spans->n_input = n;
    }
    int rc = t->hf ? hf_encode(&s, text, n, flags) : encode_text(&s, text, n, flags);
    if (rc == 0 && spans && t->trim_spans)
        trim_spans(&s, before);
    tok_scratch_fini(&s);
    return rc;
}

static int failed(struct err *e, int rc, size_t n)
{
    return err_set(e, rc, "cannot tokenize a text of %zu bytes: %s", n,
                   rc == SHOAL_ELIMIT ? "more tokens than allowed" : err_text(rc));
}

int tokenizer_encode(const struct tokenizer *t, struct tok_ids *out, const char *text, size_t n,
                     unsigned flags, struct err *e)
{
    const struct tok_template *tp = &t->single;
    size_t before = out->n;
    int rc = 0;
    if (!(flags & TOKENIZER_ADD_SPECIAL))
        rc = encode_one(t, out, NULL, text, n, flags);
    else
        for (unsigned i = 0; i < tp->n && rc == 0; i++)
            rc = tp->items[i].id == TOK_TEMPLATE_A ? encode_one(t, out, NULL, text, n, flags)
                                                   : tok_ids_push(out, tp->items[i].id);
    if (rc < 0) {
        out->n = before;
        return failed(e, rc, n);
    }
    return 0;
}

/* ---- pairs and ranges ---- */

static void add_item(struct tok_template *tp, bool wanted, int32_t id, uint8_t type)
{
    if (!wanted || tp->n == TOK_MAX_TEMPLATE)
        return;
    tp->items[tp->n].id = id;
    tp->items[tp->n++].type = type;
}

/* One text: bos, text, eos, sep as info says.  Two, as the models were trained: BERT writes
 * CLS a SEP b SEP and counts b as segment 1; RoBERTa and its kin <s> a </s></s> b </s>; where no
 * such custom is known, one after the other with what ends each text between them. */
void tok_templates_from_info(struct tokenizer *t)
{
    struct tokenizer_info *in = &t->info;
    bool wpm = in->kind == TOKENIZER_KIND_WPM;
    in->add_bos &= in->bos >= 0;
    in->add_eos &= in->eos >= 0;
    in->add_sep &= in->sep >= 0;
    t->single.n = t->pair.n = 0;
    add_item(&t->single, in->add_bos, in->bos, 0);
    add_item(&t->single, true, TOK_TEMPLATE_A, 0);
    add_item(&t->single, in->add_eos, in->eos, 0);
    add_item(&t->single, in->add_sep && wpm, in->sep, 0);
    t->pair = t->single;
    add_item(&t->pair, in->add_sep && !wpm, in->sep, 0);
    add_item(&t->pair, true, TOK_TEMPLATE_B, wpm);
    add_item(&t->pair, in->add_eos, in->eos, wpm);
    add_item(&t->pair, in->add_sep && wpm, in->sep, 1);
}

void tok_encoding_init(struct tok_encoding *x)
{
    *x = (struct tok_encoding){0};
}

void tok_encoding_fini(struct tok_encoding *x)
{
    mem_free(x->ids);
    *x = (struct tok_encoding){0};
}

static int encoding_reserve(struct tok_encoding *x, size_t n)
{
    size_t bytes;
    x->n = 0;
    if (n <= x->cap)
        return 0;
    if (!mem_mul(&bytes, n, 3 * sizeof(uint32_t) + 2))
        return SHOAL_ENOMEM;
    int32_t *ids = mem_alloc(bytes);
    if (!ids)
        return SHOAL_ENOMEM;
    mem_free(x->ids);
    x->ids = ids;
    x->start = (uint32_t *)(ids + n);
    x->end = x->start + n;
    x->types = (uint8_t *)(x->end + n);
    x->inputs = x->types + n;
    x->cap = n;
    return 0;
}

/* How many tokens of each text stay when there is room for `room` of both. */
static void shorten(size_t keep[2], size_t room, bool pair, bool second)
{
    size_t shorter = keep[0] <= keep[1] ? 0 : 1, longer = 1 - shorter;
    if (keep[0] + keep[1] <= room)
        return;
    if (!pair) {
        keep[0] = room;
    } else if (second) {
        keep[0] = keep[0] < room ? keep[0] : room;
        keep[1] = room - keep[0];
    } else if (keep[shorter] <= room / 2) {
        keep[longer] = room - keep[shorter];
    } else {
        keep[shorter] = room / 2;
        keep[longer] = room - room / 2;
    }
}

static void put_text(struct tok_encoding *x, const struct tok_ids *ids, const struct tok_spans *sp,
                     size_t n, uint8_t input, uint8_t type)
{
    if (n == 0)
        return;
    memcpy(x->ids + x->n, ids->ids, n * sizeof(*x->ids));
    memcpy(x->start + x->n, sp->start, n * sizeof(*x->start));
    memcpy(x->end + x->n, sp->end, n * sizeof(*x->end));
    memset(x->inputs + x->n, input, n);
    memset(x->types + x->n, type, n);
    x->n += n;
}

/* Both texts between what the template has around them. */
static int assemble(const struct tok_template *tp, struct tok_encoding *x,
                    const struct tok_ids ids[2], const struct tok_spans spans[2], size_t max_tokens,
                    bool pair, bool second)
{
    size_t keep[2] = {ids[0].n, ids[1].n}, added = 0;
    for (unsigned i = 0; i < tp->n; i++)
        added += tp->items[i].id >= 0;
    if (max_tokens > 0)
        shorten(keep, max_tokens > added ? max_tokens - added : 0, pair, second);
    int rc = encoding_reserve(x, keep[0] + keep[1] + added);
    if (rc < 0)
        return rc;
    x->cut = keep[0] < ids[0].n || keep[1] < ids[1].n;
    for (unsigned i = 0; i < tp->n; i++) {
        int32_t id = tp->items[i].id;
        uint8_t type = tp->items[i].type;
        if (id < 0) {
            unsigned k = id == TOK_TEMPLATE_B;
            put_text(x, &ids[k], &spans[k], keep[k], (uint8_t)k, type);
            keep[k] = 0; /* a text stands once, whatever the file says */
            continue;
        }
        x->ids[x->n] = id;
        x->start[x->n] = x->end[x->n] = 0;
        x->inputs[x->n] = TOK_INPUT_NONE;
        x->types[x->n++] = type;
    }
    return 0;
}

int tokenizer_encode_pair(const struct tokenizer *t, struct tok_encoding *x, const char *a,
                          size_t na, const char *b, size_t nb, size_t max_tokens, unsigned flags,
                          struct err *e)
{
    static const struct tok_template bare = {.items = {{TOK_TEMPLATE_A, 0}, {TOK_TEMPLATE_B, 1}},
                                             .n = 2};
    const struct tok_template *tp = b ? &t->pair : &t->single;
    struct tok_ids ids[2];
    struct tok_spans spans[2] = {{0}, {0}};
    tok_ids_init(&ids[0], TOK_MAX_TEXT);
    tok_ids_init(&ids[1], TOK_MAX_TEXT);
    if (!(flags & TOKENIZER_ADD_SPECIAL))
        tp = &bare;
    int rc = encode_one(t, &ids[0], &spans[0], a, na, flags);
    if (rc == 0 && b)
        rc = encode_one(t, &ids[1], &spans[1], b, nb, flags);
    if (rc == 0)
        rc = assemble(tp, x, ids, spans, max_tokens, b != NULL, flags & TOKENIZER_CUT_SECOND);
    for (int i = 0; i < 2; i++) {
        tok_ids_fini(&ids[i]);
        mem_free(spans[i].start);
    }
    return rc < 0 ? failed(e, rc, b ? na + nb : na) : 0;
}
