/* tok_hf_read.c - vocabulary, merges and model of tokenizer.json, as it spells them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/algorithm/tok_bpe.h"
#include "text/tokenizer/algorithm/tok_wpm.h"
#include "text/tokenizer/hf/tok_hf_build.h"

/* ---- JSON ---- */

struct str tok_hf_str(const cJSON *j)
{
    if (!cJSON_IsString(j))
        return (struct str){NULL, 0};
    return (struct str){j->valuestring, strlen(j->valuestring)};
}

/* A string of the vocabulary, in which U+FDD0 may stand for a NUL (see hide_nul). Call it once: it
 * modifies the string. */
static struct str tok_hf_text(const struct tok_hf_build *b, char *s)
{
    if (!s || !b->hides_nul)
        return (struct str){s, s ? strlen(s) : 0};
    char *out = s;
    for (const char *p = s; *p; p++, out++) {
        bool hidden = p[0] == '\xef' && p[1] == '\xb7' && p[2] == '\x90';
        *out = hidden ? 0 : *p;
        p += hidden ? 2 : 0;
    }
    return (struct str){s, (size_t)(out - s)};
}

const cJSON *tok_hf_get(const cJSON *object, const char *key)
{
    const cJSON *j = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
    return cJSON_IsNull(j) ? NULL : j;
}

struct str tok_hf_get_str(const cJSON *object, const char *key)
{
    return tok_hf_str(tok_hf_get(object, key));
}

bool tok_hf_get_bool(const cJSON *object, const char *key, bool otherwise)
{
    const cJSON *j = tok_hf_get(object, key);
    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : otherwise;
}

int32_t tok_hf_find(const struct tok_hf_build *b, struct str s)
{
    uint32_t id;
    return s.p && strmap_get(&b->ids, s.p, s.n, &id) ? (int32_t)id : TOKENIZER_NONE;
}

/* ---- vocabulary ---- */

bool tok_hf_is_id(const cJSON *j, uint32_t *id)
{
    if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0 && j->valuedouble < TOK_MAX_VOCAB) ||
        floor(j->valuedouble) != j->valuedouble)
        return false;
    *id = (uint32_t)j->valuedouble;
    return true;
}

int tok_hf_build_reserve(struct tok_hf_build *b, uint64_t n_tokens, uint32_t n_ids, struct err *e)
{
    /* a few tokens with huge ids would make a small file take much memory */
    if (n_ids == 0 || n_ids > TOK_MAX_VOCAB || n_ids > n_tokens * 8 + 65536)
        return err_set(e, SHOAL_EFORMAT, "a vocabulary of %llu tokens cannot have ids up to %u",
                       (unsigned long long)n_tokens, n_ids);
    b->n = n_ids;
    b->raw = mem_zalloc_n(n_ids, sizeof(*b->raw));
    b->in_model = mem_zalloc_n(n_ids, sizeof(*b->in_model));
    b->scores = mem_zalloc_n(n_ids, sizeof(*b->scores));
    if (!b->raw || !b->in_model || !b->scores || strmap_init(&b->ids, n_tokens) < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", n_ids);
    return 0;
}

int tok_hf_build_token(struct tok_hf_build *b, uint32_t id, struct str s, double score)
{
    if (id >= b->n)
        return SHOAL_EFORMAT;
    if (!b->raw[id].p)
        b->raw[id] = s;
    b->in_model[id] = true;
    b->scores[id] = score;
    int rc = strmap_put(&b->ids, s.p, s.n, id);
    return rc < 0 ? rc : 0;
}

/* Added tokens of a list: of tokenizer.json, or by id of tokenizer_config.json. */
static int read_added(struct tok_hf_build *b, const cJSON *list, size_t more, uint64_t *n_ids,
                      struct err *e)
{
    size_t n = 0;
    for (const cJSON *c = list ? list->child : NULL; c; c = c->next)
        n++;
    b->added = mem_zalloc_n(n + more + 1, sizeof(*b->added));
    if (!b->added)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu added tokens", n);
    for (const cJSON *c = list ? list->child : NULL; c; c = c->next) {
        struct tok_hf_added *a = &b->added[b->n_added];
        const cJSON *id = tok_hf_get(c, "id");
        a->text = tok_hf_get_str(c, "content");
        char *end = NULL;
        unsigned long key = c->string ? strtoul(c->string, &end, 10) : 0;
        bool known = tok_hf_is_id(id, &a->id);
        if (!known && end && *end == 0 && end != c->string && key < TOK_MAX_VOCAB) {
            a->id = (uint32_t)key; /* added_tokens_decoder has the ids as keys */
            known = true;
        }
        if (!a->text.p || a->text.n == 0 || !known)
            return err_set(e, SHOAL_EFORMAT, "added_tokens: token %zu has no content or no id",
                           b->n_added);
        a->single_word = tok_hf_get_bool(c, "single_word", false);
        a->lstrip = tok_hf_get_bool(c, "lstrip", false);
        a->rstrip = tok_hf_get_bool(c, "rstrip", false);
        a->special = tok_hf_get_bool(c, "special", false);
        a->normalized = tok_hf_get_bool(c, "normalized", !a->special);
        if (a->id >= *n_ids)
            *n_ids = (uint64_t)a->id + 1;
        b->n_added++;
    }
    return 0;
}

int tok_hf_read_vocab_object(struct tok_hf_build *b, const cJSON *vocab, const cJSON *added,
                             size_t more, struct err *e)
{
    uint64_t n = 0, n_ids = 0;
    uint32_t id = 0;
    int rc = 0;
    for (const cJSON *c = vocab->child; c; c = c->next, n++) {
        if (!tok_hf_is_id(c, &id))
            return err_set(e, SHOAL_EFORMAT, "model: the id of \"%.64s\" is not a number in range",
                           c->string ? c->string : "");
        if (id >= n_ids)
            n_ids = (uint64_t)id + 1;
    }
    rc = read_added(b, added, more, &n_ids, e);
    if (rc == 0)
        rc = tok_hf_build_reserve(b, n + b->n_added, (uint32_t)n_ids, e);
    for (const cJSON *c = vocab->child; c && rc == 0; c = c->next) {
        (void)tok_hf_is_id(c, &id);
        rc = tok_hf_build_token(b, id, tok_hf_text(b, c->string), 0);
        if (rc < 0)
            return err_set(e, rc, "vocabulary of %u tokens: %s", b->n, err_text(rc));
    }
    return rc;
}

/* [["piece", score], ...] */
static int read_vocab_list(struct tok_hf_build *b, const cJSON *vocab, struct err *e)
{
    uint64_t n = 0, n_ids;
    for (const cJSON *c = vocab->child; c; c = c->next)
        n++;
    n_ids = n;
    int rc = read_added(b, tok_hf_get(b->json, "added_tokens"), 0, &n_ids, e);
    if (rc == 0)
        rc = n_ids > TOK_MAX_VOCAB ? err_set(e, SHOAL_ELIMIT, "a vocabulary of %llu tokens",
                                             (unsigned long long)n_ids)
                                   : tok_hf_build_reserve(b, n_ids, (uint32_t)n_ids, e);
    uint32_t id = 0;
    for (const cJSON *c = vocab->child; c && rc == 0; c = c->next, id++) {
        const cJSON *score = c->child ? c->child->next : NULL;
        struct str s = tok_hf_text(b, cJSON_GetStringValue(c->child));
        if (!s.p || !cJSON_IsNumber(score))
            return err_set(e, SHOAL_EFORMAT, "model: piece %u is not a text with a score", id);
        rc = tok_hf_build_token(b, id, s, score->valuedouble);
        if (rc < 0)
            return err_set(e, rc, "vocabulary of %u tokens: %s", b->n, err_text(rc));
    }
    return rc;
}

int tok_hf_add_added(struct tok_hf_build *b, struct err *e)
{
    for (size_t i = 0; i < b->n_added; i++) {
        const struct tok_hf_added *a = &b->added[i];
        if (!b->raw[a->id].p)
            b->raw[a->id] = a->text;
        if (strmap_put(&b->ids, a->text.p, a->text.n, a->id) < 0)
            return err_set(e, SHOAL_ENOMEM, "out of memory for %zu added tokens", b->n_added);
    }
    return 0;
}

/* ---- model ---- */

static int read_merges(struct tok_hf_build *b, const cJSON *list, struct err *e)
{
    size_t n = 0;
    for (const cJSON *c = list ? list->child : NULL; c; c = c->next)
        n++;
    b->merges = mem_zalloc_n(n + 1, sizeof(*b->merges));
    if (!b->merges)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu merges", n);
    for (const cJSON *c = list ? list->child : NULL; c; c = c->next) {
        struct tok_hf_merge *m = &b->merges[b->n_merges];
        if (cJSON_IsString(c)) {
            tok_bpe_split_merge(tok_hf_text(b, c->valuestring), &m->left, &m->right);
        } else if (cJSON_IsArray(c) && c->child && c->child->next) {
            m->left = tok_hf_text(b, cJSON_GetStringValue(c->child));
            m->right = tok_hf_text(b, cJSON_GetStringValue(c->child->next));
        }
        if (!m->left.p || !m->right.p)
            return err_set(e, SHOAL_EFORMAT, "model: merge %zu is not a pair of texts",
                           b->n_merges);
        b->n_merges++;
    }
    return 0;
}

static int refuse_text(const cJSON *model, const char *key, struct err *e)
{
    struct str s = tok_hf_get_str(model, key);
    return s.n > 0
               ? err_set(e, SHOAL_EUNSUPPORTED, "model: %s \"%.32s\" is not supported", key, s.p)
               : 0;
}

static int read_bpe(struct tok_hf_build *b, const cJSON *model, struct err *e)
{
    struct tokenizer *t = b->t;
    const cJSON *dropout = tok_hf_get(model, "dropout");
    int rc = 0;
    t->info.kind = TOKENIZER_KIND_BPE;
    b->fuse_unk = tok_hf_get_bool(model, "fuse_unk", false);
    b->ignore_merges = tok_hf_get_bool(model, "ignore_merges", false);
    b->byte_fallback = tok_hf_get_bool(model, "byte_fallback", false);
    if (cJSON_IsNumber(dropout) && dropout->valuedouble != 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "model: dropout %g is not supported: it is for training",
                       dropout->valuedouble);
    if ((rc = refuse_text(model, "continuing_subword_prefix", e)) < 0 ||
        (rc = refuse_text(model, "end_of_word_suffix", e)) < 0)
        return rc;
    rc = read_merges(b, tok_hf_get(model, "merges"), e);
    return rc < 0 ? rc
                  : tok_hf_read_vocab_object(b, tok_hf_get(model, "vocab"),
                                             tok_hf_get(b->json, "added_tokens"), 0, e);
}

static int read_wordpiece(struct tok_hf_build *b, const cJSON *model, struct err *e)
{
    const cJSON *longest = tok_hf_get(model, "max_input_chars_per_word");
    b->t->info.kind = TOKENIZER_KIND_WPM;
    b->max_word_chars = TOK_WPM_MAX_WORD_CHARS;
    if (cJSON_IsNumber(longest) && longest->valuedouble >= 0 && longest->valuedouble < 1e9)
        b->max_word_chars = (uint32_t)longest->valuedouble;
    b->prefix = tok_hf_get_str(model, "continuing_subword_prefix");
    if (!b->prefix.p)
        b->prefix = STR("##");
    return tok_hf_read_vocab_object(b, tok_hf_get(model, "vocab"),
                                    tok_hf_get(b->json, "added_tokens"), 0, e);
}

static int read_unigram(struct tok_hf_build *b, const cJSON *model, struct err *e)
{
    const cJSON *unk = tok_hf_get(model, "unk_id");
    uint32_t id;
    b->t->info.kind = TOKENIZER_KIND_UNIGRAM;
    b->byte_fallback = tok_hf_get_bool(model, "byte_fallback", false);
    int rc = read_vocab_list(b, tok_hf_get(model, "vocab"), e);
    if (rc == 0 && unk) {
        if (!tok_hf_is_id(unk, &id) || id >= b->n)
            return err_set(e, SHOAL_EFORMAT, "model: unk_id is out of range");
        b->unk = (int32_t)id;
    }
    return rc;
}

/* The kind of model; old files do not say. */
static const char *model_type(const cJSON *model)
{
    static const char *const known[] = {"BPE", "WordPiece", "Unigram", "WordLevel"};
    struct str type = tok_hf_get_str(model, "type");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_is(type, known[i]))
            return known[i];
    if (type.p)
        return NULL;
    return tok_hf_get(model, "merges")                      ? "BPE"
           : cJSON_IsArray(tok_hf_get(model, "vocab"))      ? "Unigram"
           : tok_hf_get(model, "continuing_subword_prefix") ? "WordPiece"
                                                            : "WordLevel";
}

int tok_hf_read_model(struct tok_hf_build *b, struct err *e)
{
    struct tokenizer *t = b->t;
    const cJSON *model = tok_hf_get(b->json, "model"), *vocab = tok_hf_get(model, "vocab");
    const char *type = model_type(model);
    struct str unk;
    int rc;
    if (!type)
        return err_set(e, SHOAL_EUNSUPPORTED, "model \"%.64s\" is not supported",
                       tok_hf_get_str(model, "type").p);
    if (strcmp(type, "Unigram") == 0 ? !cJSON_IsArray(vocab) : !cJSON_IsObject(vocab))
        return err_set(e, SHOAL_EFORMAT, "model: %s without a vocab", type);
    t->info.model = type;
    b->unk = TOKENIZER_NONE;
    if (b->hf->byte_level && strcmp(type, "BPE") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "pre_tokenizer ByteLevel with a model %s is not supported", type);
    if (strcmp(type, "BPE") == 0) {
        rc = read_bpe(b, model, e);
    } else if (strcmp(type, "WordPiece") == 0) {
        rc = read_wordpiece(b, model, e);
    } else if (strcmp(type, "Unigram") == 0) {
        rc = read_unigram(b, model, e);
    } else {
        t->info.kind = TOKENIZER_KIND_WORDS;
        rc = tok_hf_read_vocab_object(b, vocab, tok_hf_get(b->json, "added_tokens"), 0, e);
    }
    if (rc < 0)
        return rc;
    rc = tok_hf_add_added(b, e); /* one of them may be the unknown token */
    unk = tok_hf_get_str(model, "unk_token");
    if (unk.p && t->info.kind != TOKENIZER_KIND_UNIGRAM)
        b->unk = tok_hf_find(b, unk);
    return rc;
}
