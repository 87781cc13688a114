/* tok_hf_steps.c - normalizer and pre_tokenizer of tokenizer.json into steps. */
#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"
#include "text/tokenizer/hf/tok_hf_build.h"
#include "text/tokenizer/tok_charsmap.h"

#define MAX_TEXT 1024 /* of a replacement: a short text must not become a long one */

static int unknown(struct err *e, const char *what, const cJSON *j)
{
    struct str type = tok_hf_get_str(j, "type");
    return err_set(e, SHOAL_EUNSUPPORTED, "%s \"%.64s\" is not supported", what,
                   type.p ? type.p : "(no type)");
}

static int copy(char **out, size_t *n, struct str s, struct err *e)
{
    if (s.n > MAX_TEXT)
        return err_set(e, SHOAL_ELIMIT, "a replacement of %zu bytes is too long", s.n);
    *out = mem_strndup(s.p ? s.p : "", s.n);
    *n = s.n;
    return *out ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
}

/* {"String": "..."} or {"Regex": "..."}; of an old form just "...". */
static int parse_pattern(const cJSON *j, struct str *text, struct tok_regex **rx, struct err *e)
{
    const cJSON *pattern = tok_hf_get(j, "pattern");
    struct str regex = tok_hf_get_str(pattern, "Regex");
    *text = cJSON_IsString(pattern) ? tok_hf_str(pattern) : tok_hf_get_str(pattern, "String");
    if (regex.p) {
        char *translated;
        int rc = tok_regex_translate(&translated, regex.p, regex.n, e);
        if (rc < 0)
            return rc;
        rc = tok_regex_create(rx, translated, strlen(translated), false, e);
        mem_free(translated);
        return rc;
    }
    if (!text->p)
        return err_set(e, SHOAL_EFORMAT, "a pattern is neither String nor Regex");
    return 0;
}

/* ---- normalizers ---- */

static int decode_base64(uint8_t *out, size_t *n_out, struct str s)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < s.n && s.p[i] != '='; i++) {
        char c = s.p[i];
        int v = ascii_is_upper(c)   ? c - 'A'
                : ascii_is_lower(c) ? c - 'a' + 26
                : ascii_is_digit(c) ? c - '0' + 52
                : c == '+'          ? 62
                : c == '/'          ? 63
                                    : -1;
        if (v < 0)
            return SHOAL_EFORMAT;
        bits = bits << 6 | (uint32_t)v;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (uint8_t)(bits >> n_bits);
        }
    }
    *n_out = n;
    return 0;
}

static int parse_charsmap(struct tok_hf_norm *h, const cJSON *j, struct err *e)
{
    struct str s = tok_hf_get_str(j, "precompiled_charsmap");
    size_t n = 0;
    uint8_t *bytes = mem_alloc(s.n + 1);
    if (!bytes)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    int rc = s.p ? decode_base64(bytes, &n, s) : SHOAL_EFORMAT;
    rc = rc < 0 ? err_set(e, rc, "precompiled_charsmap is not base64")
                : tok_charsmap_create(&h->charsmap, bytes, n, e);
    mem_free(bytes);
    return rc;
}

static unsigned bert_opts(const cJSON *j)
{
    bool lower = tok_hf_get_bool(j, "lowercase", true);
    unsigned opts = lower ? TOK_HF_BERT_LOWERCASE : 0;
    if (tok_hf_get_bool(j, "clean_text", true))
        opts |= TOK_HF_BERT_CLEAN;
    if (tok_hf_get_bool(j, "handle_chinese_chars", true))
        opts |= TOK_HF_BERT_CJK;
    if (tok_hf_get_bool(j, "strip_accents", lower)) /* null: as lowercase */
        opts |= TOK_HF_BERT_STRIP_ACCENTS;
    return opts;
}

static int fill_norm(struct tok_hf_norm *h, const cJSON *j, struct err *e)
{
    struct str text;
    int rc = 0;
    switch (h->kind) {
    case TOK_HF_NORM_BERT:
        h->opts = bert_opts(j);
        break;
    case TOK_HF_NORM_STRIP:
        h->opts = (tok_hf_get_bool(j, "strip_left", true) ? TOK_HF_STRIP_LEFT : 0u) |
                  (tok_hf_get_bool(j, "strip_right", true) ? TOK_HF_STRIP_RIGHT : 0u);
        break;
    case TOK_HF_NORM_REPLACE:
        rc = parse_pattern(j, &text, &h->rx, e);
        if (rc == 0 && !h->rx)
            rc = copy(&h->text, &h->n_text, text, e);
        if (rc == 0)
            rc = copy(&h->content, &h->n_content, tok_hf_get_str(j, "content"), e);
        break;
    case TOK_HF_NORM_PREPEND:
        rc = copy(&h->text, &h->n_text, tok_hf_get_str(j, "prepend"), e);
        break;
    case TOK_HF_NORM_PRECOMPILED:
        rc = parse_charsmap(h, j, e);
        break;
    default:
        break;
    }
    return rc;
}

static int add_norm(struct tok_hf *hf, const cJSON *j, int depth, struct err *e)
{
    static const struct {
        const char *name;
        enum tok_hf_norm_kind kind;
    } known[] = {
        {"BertNormalizer", TOK_HF_NORM_BERT},
        {"NFC", TOK_HF_NORM_NFC},
        {"NFD", TOK_HF_NORM_NFD},
        {"NFKC", TOK_HF_NORM_NFKC},
        {"NFKD", TOK_HF_NORM_NFKD},
        {"Lowercase", TOK_HF_NORM_LOWERCASE},
        {"StripAccents", TOK_HF_NORM_STRIP_ACCENTS},
        {"Strip", TOK_HF_NORM_STRIP},
        {"Replace", TOK_HF_NORM_REPLACE},
        {"Prepend", TOK_HF_NORM_PREPEND},
        {"Nmt", TOK_HF_NORM_NMT},
        {"Precompiled", TOK_HF_NORM_PRECOMPILED},
    };
    struct str type = tok_hf_get_str(j, "type");
    int rc = 0;
    if (str_is(type, "Sequence")) {
        const cJSON *list = tok_hf_get(j, "normalizers");
        if (depth == TOK_HF_MAX_DEPTH)
            return err_set(e, SHOAL_ELIMIT, "normalizer: sequences are nested too deeply");
        for (const cJSON *c = list ? list->child : NULL; c && rc == 0; c = c->next)
            rc = add_norm(hf, c, depth + 1, e);
        return rc;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_is(type, known[i].name)) {
            if (hf->n_norm == TOK_HF_MAX_NORMS)
                return err_set(e, SHOAL_ELIMIT, "normalizer: more than %d steps", TOK_HF_MAX_NORMS);
            struct tok_hf_norm *h = &hf->norm[hf->n_norm++];
            h->kind = known[i].kind;
            return fill_norm(h, j, e);
        }
    return unknown(e, "normalizer", j);
}

int tok_hf_parse_normalizer(struct tok_hf_build *b, struct err *e)
{
    const cJSON *j = tok_hf_get(b->json, "normalizer");
    return j ? add_norm(b->hf, j, 0, e) : 0;
}

/* ---- pre-tokenizers ---- */

/* Expressions that a scanner does, as tokenizer.json files have them. */
#define CONTRACT "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define REST "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const struct {
    const char *regex;
    tok_split_fn scan;
    unsigned opts;
} scanners[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     tok_split_gpt2, 0},
    {CONTRACT "|" LEAD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" REST, tok_split_cl100k,
     TOK_SPLIT_CONTRACT | TOK_SPLIT_N3 | TOK_SPLIT_TAIL_NL},
    {CONTRACT "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" REST, tok_split_cl100k,
     TOK_SPLIT_CONTRACT | TOK_SPLIT_N1 | TOK_SPLIT_TAIL_NL},
    {LEAD UPPER "*" LOWER "+" CONTRACT "?|" LEAD UPPER "+" LOWER "*" CONTRACT
                "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" REST,
     tok_split_o200k, TOK_SPLIT_CONTRACT | TOK_SPLIT_N3 | TOK_SPLIT_TAIL_NL | TOK_SPLIT_TAIL_SLASH},
};

static int add_step(struct tok_hf *hf, struct tok_hf_pre **out, struct err *e)
{
    if (hf->n_pre == TOK_HF_MAX_PRES)
        return err_set(e, SHOAL_ELIMIT, "pre_tokenizer: more than %d steps", TOK_HF_MAX_PRES);
    *out = &hf->pre[hf->n_pre++];
    return 0;
}

static int parse_behavior(struct tok_hf_pre *h, const cJSON *j, struct err *e)
{
    static const char *const names[] = {[TOK_HF_REMOVED] = "Removed",
                                        [TOK_HF_ISOLATED] = "Isolated",
                                        [TOK_HF_PREVIOUS] = "MergedWithPrevious",
                                        [TOK_HF_NEXT] = "MergedWithNext",
                                        [TOK_HF_CONTIGUOUS] = "Contiguous"};
    struct str s = tok_hf_get_str(j, "behavior");
    h->behavior = TOK_HF_ISOLATED;
    if (!s.p)
        return 0;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_is(s, names[i])) {
            h->behavior = (enum tok_hf_behavior)i;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "pre_tokenizer: behavior \"%.32s\" is not supported",
                   s.p);
}

static int add_class(struct tok_hf *hf, const cJSON *j, enum tok_hf_class class, struct err *e)
{
    struct tok_hf_pre *h = NULL;
    int rc = add_step(hf, &h, e);
    if (rc < 0)
        return rc;
    h->kind = TOK_HF_PRE_CLASS;
    h->class = class;
    if (class == TOK_HF_CLASS_PUNCTUATION)
        return parse_behavior(h, j, e);
    h->behavior = class == TOK_HF_CLASS_SPACE                      ? TOK_HF_REMOVED
                  : tok_hf_get_bool(j, "individual_digits", false) ? TOK_HF_ISOLATED
                                                                   : TOK_HF_CONTIGUOUS;
    return 0;
}

static int add_split(struct tok_hf *hf, const cJSON *j, struct err *e)
{
    struct tok_hf_pre *h = NULL;
    struct str regex = tok_hf_get_str(tok_hf_get(j, "pattern"), "Regex"), text;
    int rc = add_step(hf, &h, e);
    if (rc == 0)
        rc = parse_behavior(h, j, e);
    if (rc < 0)
        return rc;
    h->invert = tok_hf_get_bool(j, "invert", false);
    h->kind = TOK_HF_PRE_SCAN;
    for (size_t i = 0; i < sizeof(scanners) / sizeof(scanners[0]); i++)
        if (str_is(regex, scanners[i].regex)) {
            h->scan = scanners[i].scan;
            h->opts = scanners[i].opts;
            return 0;
        }
    rc = parse_pattern(j, &text, &h->rx, e);
    if (rc < 0)
        return rc;
    h->kind = h->rx ? TOK_HF_PRE_REGEX : TOK_HF_PRE_TEXT;
    if (!h->rx && text.n == 0)
        return err_set(e, SHOAL_EFORMAT, "pre_tokenizer: Split at an empty text");
    return h->rx ? 0 : copy(&h->text, &h->n_text, text, e);
}

static int add_delimiter(struct tok_hf *hf, const cJSON *j, struct err *e)
{
    struct tok_hf_pre *h = NULL;
    struct str text = tok_hf_get_str(j, "delimiter");
    int rc = add_step(hf, &h, e);
    if (rc < 0)
        return rc;
    h->kind = TOK_HF_PRE_TEXT;
    h->behavior = TOK_HF_REMOVED;
    if (text.n == 0)
        return err_set(e, SHOAL_EFORMAT, "pre_tokenizer: CharDelimiterSplit without delimiter");
    return copy(&h->text, &h->n_text, text, e);
}

static int add_byte_level(struct tok_hf *hf, const cJSON *j, struct err *e)
{
    struct tok_hf_pre *h = NULL;
    int rc = 0;
    hf->byte_level = true;
    if (tok_hf_get_bool(j, "add_prefix_space", true)) {
        rc = add_step(hf, &h, e);
        if (rc < 0)
            return rc;
        h->kind = TOK_HF_PRE_PREFIX_SPACE;
    }
    if (!tok_hf_get_bool(j, "use_regex", true))
        return 0;
    rc = add_step(hf, &h, e);
    if (rc < 0)
        return rc;
    h->kind = TOK_HF_PRE_SCAN;
    h->behavior = TOK_HF_ISOLATED;
    h->scan = tok_split_gpt2;
    return 0;
}

static int add_metaspace(struct tok_hf *hf, const cJSON *j, struct err *e)
{
    struct tok_hf_pre *h = NULL;
    struct str with = tok_hf_get_str(j, "replacement"),
               scheme = tok_hf_get_str(j, "prepend_scheme");
    int rc = add_step(hf, &h, e);
    if (rc < 0)
        return rc;
    h->kind = TOK_HF_PRE_METASPACE;
    h->behavior = TOK_HF_NEXT;
    h->split = tok_hf_get_bool(j, "split", true);
    h->prepend = TOK_HF_PREPEND_ALWAYS;
    if (str_is(scheme, "first"))
        h->prepend = TOK_HF_PREPEND_FIRST;
    else if (str_is(scheme, "never") || !tok_hf_get_bool(j, "add_prefix_space", true))
        h->prepend = TOK_HF_PREPEND_NEVER;
    else if (scheme.p && !str_is(scheme, "always"))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "pre_tokenizer: prepend_scheme \"%.32s\" is not supported", scheme.p);
    if (with.p && with.n == 0)
        return err_set(e, SHOAL_EFORMAT, "pre_tokenizer: Metaspace without replacement");
    if (with.n > 4) /* as in the reference; a long one would multiply the text */
        return err_set(e, SHOAL_EFORMAT,
                       "pre_tokenizer: the replacement of Metaspace must be one character");
    return copy(&h->text, &h->n_text, with.p ? with : STR("\xe2\x96\x81"), e);
}

static int add_words(struct tok_hf *hf, enum tok_hf_pre_kind kind, struct err *e)
{
    struct tok_hf_pre *h = NULL;
    int rc = add_step(hf, &h, e);
    if (rc == 0)
        h->kind = kind;
    return rc;
}

static int add_pre(struct tok_hf *hf, const cJSON *j, int depth, struct err *e)
{
    struct str type = tok_hf_get_str(j, "type");
    int rc = 0;
    if (str_is(type, "Sequence")) {
        const cJSON *list = tok_hf_get(j, "pretokenizers");
        if (depth == TOK_HF_MAX_DEPTH)
            return err_set(e, SHOAL_ELIMIT, "pre_tokenizer: sequences are nested too deeply");
        for (const cJSON *c = list ? list->child : NULL; c && rc == 0; c = c->next)
            rc = add_pre(hf, c, depth + 1, e);
        return rc;
    }
    if (hf->byte_level)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "pre_tokenizer \"%.64s\" after ByteLevel is not supported",
                       type.p ? type.p : "(no type)");
    if (str_is(type, "BertPreTokenizer"))
        return add_words(hf, TOK_HF_PRE_BERT, e);
    if (str_is(type, "Whitespace"))
        return add_words(hf, TOK_HF_PRE_WORDS, e);
    if (str_is(type, "WhitespaceSplit"))
        return add_class(hf, j, TOK_HF_CLASS_SPACE, e);
    if (str_is(type, "Punctuation"))
        return add_class(hf, j, TOK_HF_CLASS_PUNCTUATION, e);
    if (str_is(type, "Digits"))
        return add_class(hf, j, TOK_HF_CLASS_NUMBER, e);
    if (str_is(type, "Split"))
        return add_split(hf, j, e);
    if (str_is(type, "CharDelimiterSplit"))
        return add_delimiter(hf, j, e);
    if (str_is(type, "ByteLevel"))
        return add_byte_level(hf, j, e);
    if (str_is(type, "Metaspace"))
        return add_metaspace(hf, j, e);
    return unknown(e, "pre_tokenizer", j);
}

int tok_hf_parse_pre_tokenizer(struct tok_hf_build *b, struct err *e)
{
    const cJSON *j = tok_hf_get(b->json, "pre_tokenizer");
    return j ? add_pre(b->hf, j, 0, e) : 0;
}
