/* tok_hf_post.c - post_processor and decoder of tokenizer.json: templates, and the text of each
 * token. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "text/tokenizer/hf/tok_hf_build.h"

/* ---- post_processor ---- */

static int put_item(struct tokenizer_template *tp, int32_t id, double type, struct err *e)
{
    if (tp->n == TOKENIZER_MAX_TEMPLATE)
        return err_set(e, SHOAL_ELIMIT, "post_processor: more than %d tokens",
                       TOKENIZER_MAX_TEMPLATE);
    tp->items[tp->n].id = id;
    tp->items[tp->n++].type = type >= 1 && type <= 255 ? (uint8_t)type : 0;
    return 0;
}

static double type_id(const cJSON *j)
{
    const cJSON *v = tok_hf_get(j, "type_id");
    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

/* The ids of one special token of a template. */
static int put_special(struct tok_hf_build *b, struct tokenizer_template *tp, const cJSON *table,
                       const cJSON *token, struct err *e)
{
    struct str name = tok_hf_get_str(token, "id");
    const cJSON *def = name.p ? cJSON_GetObjectItemCaseSensitive(table, name.p) : NULL;
    const cJSON *ids = tok_hf_get(def, "ids");
    int rc = 0;
    if (!ids || !ids->child) {
        int32_t id = name.p ? tok_hf_find(b, name) : TOKENIZER_NONE;
        if (id < 0)
            return err_set(e, SHOAL_EFORMAT, "post_processor: no token \"%.64s\"",
                           name.p ? name.p : "");
        return put_item(tp, id, type_id(token), e);
    }
    for (const cJSON *c = ids->child; c && rc == 0; c = c->next) {
        if (!cJSON_IsNumber(c) || !(c->valuedouble >= 0 && c->valuedouble < b->n))
            return err_set(e, SHOAL_EFORMAT, "post_processor: \"%.64s\" has an id out of range",
                           name.p);
        rc = put_item(tp, (int32_t)c->valuedouble, type_id(token), e);
    }
    return rc;
}

static int parse_template(struct tok_hf_build *b, struct tokenizer_template *tp, const cJSON *list,
                          const cJSON *table, struct err *e)
{
    int rc = 0;
    tp->n = 0;
    for (const cJSON *c = list ? list->child : NULL; c && rc == 0; c = c->next) {
        const cJSON *token = tok_hf_get(c, "SpecialToken"), *text = tok_hf_get(c, "Sequence");
        struct str which = tok_hf_get_str(text, "id");
        if (token)
            rc = put_special(b, tp, table, token, e);
        else if (str_is(which, "A") || str_is(which, "B"))
            rc = put_item(tp, str_is(which, "B") ? TOKENIZER_TEXT_B : TOKENIZER_TEXT_A,
                          type_id(text), e);
        else
            rc = err_set(e, SHOAL_EFORMAT, "post_processor: unknown piece in a template");
    }
    return rc;
}

/* ["[SEP]", 102] */
static int parse_pair(struct tok_hf_build *b, int32_t *id, const cJSON *j, const char *key,
                      struct err *e)
{
    const cJSON *v = tok_hf_get(j, key), *n = v && v->child ? v->child->next : NULL;
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= 0 && n->valuedouble < b->n))
        return err_set(e, SHOAL_EFORMAT, "post_processor: %s is not a token with its id", key);
    *id = (int32_t)n->valuedouble;
    return 0;
}

/* BERT: cls a sep b sep, where b is segment 1; RoBERTa: cls a sep sep b sep. */
static int set_classic(struct tok_hf_build *b, const cJSON *j, bool roberta, struct err *e)
{
    struct tokenizer *t = b->t;
    int32_t cls = 0, sep = 0;
    double second = roberta ? 0 : 1;
    int rc = parse_pair(b, &cls, j, "cls", e);
    if (rc == 0)
        rc = parse_pair(b, &sep, j, "sep", e);
    if (rc < 0)
        return rc;
    t->single.n = 0;
    (void)put_item(&t->single, cls, 0, e); /* always fits */
    (void)put_item(&t->single, TOKENIZER_TEXT_A, 0, e);
    (void)put_item(&t->single, sep, 0, e);
    t->pair = t->single;
    if (roberta)
        (void)put_item(&t->pair, sep, 0, e);
    (void)put_item(&t->pair, TOKENIZER_TEXT_B, second, e);
    return put_item(&t->pair, sep, second, e);
}

static int add_post(struct tok_hf_build *b, const cJSON *j, int depth, struct err *e)
{
    struct tokenizer *t = b->t;
    struct str type = tok_hf_get_str(j, "type");
    int rc = 0;
    if (str_is(type, "Sequence")) {
        const cJSON *list = tok_hf_get(j, "processors");
        if (depth == TOK_HF_MAX_DEPTH)
            return err_set(e, SHOAL_ELIMIT, "post_processor: sequences are nested too deeply");
        for (const cJSON *c = list ? list->child : NULL; c && rc == 0; c = c->next)
            rc = add_post(b, c, depth + 1, e);
        return rc;
    }
    if (str_is(type, "ByteLevel")) {
        t->trim_spans = tok_hf_get_bool(j, "trim_offsets", true);
        return 0;
    }
    if (str_is(type, "BertProcessing"))
        return set_classic(b, j, false, e);
    if (str_is(type, "RobertaProcessing")) {
        t->trim_spans = tok_hf_get_bool(j, "trim_offsets", true);
        return set_classic(b, j, true, e);
    }
    if (!str_is(type, "TemplateProcessing"))
        return err_set(e, SHOAL_EUNSUPPORTED, "post_processor \"%.64s\" is not supported",
                       type.p ? type.p : "(no type)");
    const cJSON *table = tok_hf_get(j, "special_tokens");
    rc = parse_template(b, &t->single, tok_hf_get(j, "single"), table, e);
    return rc == 0 ? parse_template(b, &t->pair, tok_hf_get(j, "pair"), table, e) : rc;
}

int tok_hf_parse_post_processor(struct tok_hf_build *b, struct err *e)
{
    const cJSON *j = tok_hf_get(b->json, "post_processor");
    struct tokenizer *t = b->t;
    t->single.n = t->pair.n = 0;
    (void)put_item(&t->single, TOKENIZER_TEXT_A, 0, e);
    (void)put_item(&t->pair, TOKENIZER_TEXT_A, 0, e);
    (void)put_item(&t->pair, TOKENIZER_TEXT_B, 1, e);
    return j ? add_post(b, j, 0, e) : 0;
}

/* ---- decoder ---- */

#define MAX_PIECES ((size_t)1 << 28) /* bytes of all of them */

enum decode_kind {
    DECODE_BYTE_LEVEL,
    DECODE_WORDPIECE,
    DECODE_REPLACE,
    DECODE_BYTES,
    DECODE_STRIP,
    DECODE_SPACED
};

struct decode_step {
    enum decode_kind kind;
    struct str a, b; /* prefix; what is replaced, and by what; what is stripped */
    bool cleanup;
    unsigned start, stop; /* how many may be stripped */
};

struct decoders {
    struct decode_step d[TOK_HF_MAX_DECODERS];
    unsigned n;
    bool fused; /* later steps see the whole text */
    struct tok_alphabet alphabet;
};

static unsigned get_count(const cJSON *j, const char *key)
{
    const cJSON *v = tok_hf_get(j, key);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < 1000
               ? (unsigned)v->valuedouble
               : 0;
}

static int parse_strip(struct tok_hf_build *b, struct decoders *x, struct decode_step *d,
                       const cJSON *j)
{
    d->kind = DECODE_STRIP;
    d->a = tok_hf_get_str(j, "content");
    d->start = get_count(j, "start");
    d->stop = get_count(j, "stop");
    if (!x->fused)
        return 0;
    b->strip_first |= d->start > 0 && str_is(d->a, " ");
    x->n--;
    return 0;
}

static int add_decoder(struct tok_hf_build *b, struct decoders *x, const cJSON *j, int depth,
                       struct err *e)
{
    struct str type = tok_hf_get_str(j, "type"), scheme;
    int rc = 0;
    if (str_is(type, "Sequence")) {
        const cJSON *list = tok_hf_get(j, "decoders");
        if (depth == TOK_HF_MAX_DEPTH)
            return err_set(e, SHOAL_ELIMIT, "decoder: sequences are nested too deeply");
        for (const cJSON *c = list ? list->child : NULL; c && rc == 0; c = c->next)
            rc = add_decoder(b, x, c, depth + 1, e);
        return rc;
    }
    if (str_is(type, "Fuse")) {
        x->fused = true;
        return 0;
    }
    if (x->n == TOK_HF_MAX_DECODERS)
        return err_set(e, SHOAL_ELIMIT, "decoder: more than %d steps", TOK_HF_MAX_DECODERS);
    struct decode_step *d = &x->d[x->n++];
    if (str_is(type, "ByteLevel")) {
        d->kind = DECODE_BYTE_LEVEL;
    } else if (str_is(type, "WordPiece")) {
        d->kind = DECODE_WORDPIECE;
        d->a = tok_hf_get_str(j, "prefix");
        d->cleanup = tok_hf_get_bool(j, "cleanup", true);
        b->strip_first = true;
    } else if (str_is(type, "Metaspace")) {
        d->kind = DECODE_REPLACE;
        d->a = tok_hf_get_str(j, "replacement");
        d->b = STR(" ");
        scheme = tok_hf_get_str(j, "prepend_scheme");
        b->strip_first =
            !str_is(scheme, "never") && (scheme.p || tok_hf_get_bool(j, "add_prefix_space", true));
    } else if (str_is(type, "BPEDecoder")) {
        d->kind = DECODE_REPLACE;
        d->a = tok_hf_get_str(j, "suffix");
        d->b = STR(" ");
    } else if (str_is(type, "ByteFallback")) {
        d->kind = DECODE_BYTES;
    } else if (str_is(type, "Replace") && tok_hf_get_str(tok_hf_get(j, "pattern"), "String").p) {
        d->kind = DECODE_REPLACE;
        d->a = tok_hf_get_str(tok_hf_get(j, "pattern"), "String");
        d->b = tok_hf_get_str(j, "content");
    } else if (str_is(type, "Strip")) {
        return parse_strip(b, x, d, j);
    } else {
        return err_set(e, SHOAL_EUNSUPPORTED, "decoder \"%.64s\" is not supported",
                       type.p ? type.p : "(no type)");
    }
    return 0;
}

static void replace(struct buf *out, struct str s, struct str a, struct str b)
{
    const char *p = s.p, *end = s.p + s.n, *hit;
    while (a.n > 0 && (hit = memmem(p, (size_t)(end - p), a.p, a.n))) {
        buf_put(out, p, (size_t)(hit - p));
        buf_put(out, b.p, b.n);
        p = hit + a.n;
    }
    buf_put(out, p, (size_t)(end - p));
}

/* Is it a space before punctuation, which clean-up removes? */
static bool is_stray_space(struct str s)
{
    static const char *const from[] = {" .",  " ?",  " !",   " ,",  " n't",
                                       " 'm", " 's", " 've", " 're"};
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
        if (s.n >= strlen(from[i]) && memcmp(s.p, from[i], strlen(from[i])) == 0)
            return true;
    return false;
}

static void decode_wordpiece(struct buf *out, const struct decode_step *d, struct str s)
{
    if (d->a.n > 0 && s.n >= d->a.n && memcmp(s.p, d->a.p, d->a.n) == 0) {
        buf_put(out, s.p + d->a.n, s.n - d->a.n);
        return;
    }
    buf_putc(out, ' ');
    buf_put(out, s.p, s.n);
    if (d->cleanup && is_stray_space((struct str){buf_str(out), out->len})) {
        buf_clear(out);
        buf_put(out, s.p, s.n);
    }
}

static void strip(struct buf *out, const struct decode_step *d, struct str s)
{
    for (unsigned i = 0; i < d->start && d->a.n > 0 && s.n >= d->a.n; i++) {
        if (memcmp(s.p, d->a.p, d->a.n) != 0)
            break;
        s.p += d->a.n;
        s.n -= d->a.n;
    }
    for (unsigned i = 0; i < d->stop && d->a.n > 0 && s.n >= d->a.n; i++) {
        if (memcmp(s.p + s.n - d->a.n, d->a.p, d->a.n) != 0)
            break;
        s.n -= d->a.n;
    }
    buf_put(out, s.p, s.n);
}

/* Runs one step over s; the result is in out. */
static void run_decoder(struct buf *out, const struct decoders *x, const struct decode_step *d,
                        struct str s, char *bytes)
{
    size_t n;
    uint8_t byte;
    buf_clear(out);
    switch (d->kind) {
    case DECODE_BYTE_LEVEL:
        if (tok_alphabet_decode(bytes, &n, s.p, s.n, &x->alphabet))
            buf_put(out, bytes, n);
        else
            buf_put(out, s.p, s.n);
        break;
    case DECODE_WORDPIECE:
        decode_wordpiece(out, d, s);
        break;
    case DECODE_REPLACE:
        replace(out, s, d->a, d->b);
        break;
    case DECODE_BYTES:
        if (tok_vocab_byte_spelling(s.p, s.n, &byte))
            buf_putc(out, (char)byte);
        else
            buf_put(out, s.p, s.n);
        break;
    case DECODE_STRIP:
        strip(out, d, s);
        break;
    case DECODE_SPACED:
        buf_putc(out, ' ');
        buf_put(out, s.p, s.n);
        break;
    }
}

static int decode_all(struct tok_hf_build *b, const struct decoders *x, struct buf *all,
                      char *bytes, struct err *e)
{
    struct tokenizer *t = b->t;
    struct buf turn[2];
    buf_init(&turn[0], MAX_PIECES / 16);
    buf_init(&turn[1], MAX_PIECES / 16);
    for (uint32_t i = 0; i < b->n; i++) {
        struct str s = b->raw[i].p ? b->raw[i] : STR("");
        for (unsigned k = 0; k < x->n; k++) {
            struct buf *out = &turn[k & 1];
            run_decoder(out, x, &x->d[k], s, bytes);
            s = (struct str){buf_str(out), out->len};
        }
        t->v.shown_at[i] = (uint32_t)all->len;
        if (s.n > t->info.max_piece_bytes)
            t->info.max_piece_bytes = (uint32_t)s.n;
        buf_put(all, s.p, s.n);
    }
    t->v.shown_at[b->n] = (uint32_t)all->len;
    int rc = all->rc < 0 ? all->rc : turn[0].rc < 0 ? turn[0].rc : turn[1].rc;
    buf_fini(&turn[0]);
    buf_fini(&turn[1]);
    return rc < 0 ? err_set(e, rc, "vocabulary of %u tokens: %s", b->n, err_text(rc)) : 0;
}

int tok_hf_make_pieces(struct tok_hf_build *b, struct err *e)
{
    const cJSON *j = tok_hf_get(b->json, "decoder");
    struct tokenizer *t = b->t;
    struct decoders x = {.n = 0};
    struct buf all;
    size_t longest = 0;
    int rc = 0;
    tok_alphabet_init(&x.alphabet);
    if (j) {
        rc = add_decoder(b, &x, j, 0, e);
    } else { /* without a decoder the reference puts spaces between tokens */
        x.d[x.n++].kind = DECODE_SPACED;
        b->strip_first = true;
    }
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->raw[i].n > longest)
            longest = b->raw[i].n;
    t->v.shown_at = mem_zalloc_n((size_t)b->n + 1, sizeof(*t->v.shown_at));
    char *bytes = mem_alloc(longest + 1);
    buf_init(&all, MAX_PIECES);
    if (!t->v.shown_at || !bytes)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", b->n);
    if (rc == 0)
        rc = decode_all(b, &x, &all, bytes, e);
    if (rc == 0) {
        t->v.shown_bytes = buf_take(&all, NULL);
        if (!t->v.shown_bytes)
            rc = err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", b->n);
    }
    mem_free(bytes);
    buf_fini(&all);
    return rc;
}
