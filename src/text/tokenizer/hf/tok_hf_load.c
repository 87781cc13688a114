/* tok_hf_load.c - see tok_hf_load.h: vocabulary, model, added tokens, special ids. */
#include "text/tokenizer/hf/tok_hf_load.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "format/model_file.h"
#include "format/token_type.h"
#include "text/tokenizer/algorithm/tok_bpe.h"
#include "text/tokenizer/algorithm/tok_spm.h"
#include "text/tokenizer/algorithm/tok_unigram.h"
#include "text/tokenizer/algorithm/tok_words.h"
#include "text/tokenizer/algorithm/tok_wpm.h"
#include "text/tokenizer/hf/tok_hf_build.h"
#include "text/tokenizer/tok_roles.h"

#define UNK_PENALTY 10.0 /* below the lowest score of all pieces */

/* ---- the tokenizer's vocabulary ---- */

/* The spelling under which the model looks for a token; returns its length.  *reachable: text can
 * become it.  Byte-level BPE sees characters of its alphabet only, so a token with any other
 * (Command R has U+200D beside its three bytes) never comes from plain text. */
static size_t spell(const struct tok_hf_build *b, uint32_t id, char *out,
                    const struct tok_alphabet *a, bool *reachable)
{
    struct str s = b->raw[id];
    size_t n;
    *reachable = true;
    if (!s.p)
        return 0;
    if (b->hf->byte_level && tok_alphabet_decode(out, &n, s.p, s.n, a))
        return n;
    *reachable = !b->hf->byte_level;
    if (b->t->info.kind == TOKENIZER_KIND_WPM && b->in_model[id]) {
        if (b->prefix.n > 0 && s.n > b->prefix.n && memcmp(s.p, b->prefix.p, b->prefix.n) == 0) {
            memcpy(out, s.p + b->prefix.n, s.n - b->prefix.n);
            return s.n - b->prefix.n;
        }
        *out++ = ' ';
        memcpy(out, s.p, s.n);
        return s.n + 1;
    }
    memcpy(out, s.p, s.n);
    return s.n;
}

static void set_types(struct tok_hf_build *b)
{
    struct tok_vocab *v = &b->t->v;
    uint8_t byte;
    for (uint32_t i = 0; i < b->n; i++) {
        if (!b->raw[i].p)
            v->type[i] = TOKEN_TYPE_UNUSED;
        else if (b->byte_fallback && tok_vocab_byte_spelling(b->raw[i].p, b->raw[i].n, &byte)) {
            v->type[i] = TOKEN_TYPE_BYTE;
            if (v->byte_id[byte] < 0)
                v->byte_id[byte] = (int32_t)i;
        }
    }
    for (size_t i = 0; i < b->n_added; i++) {
        const struct tok_hf_added *a = &b->added[i];
        v->type[a->id] = a->special ? TOKEN_TYPE_CONTROL : TOKEN_TYPE_USER_DEFINED;
        v->attr[a->id] =
            (uint8_t)((a->lstrip ? TOK_ATTR_LSTRIP : 0) | (a->rstrip ? TOK_ATTR_RSTRIP : 0) |
                      (a->single_word ? TOK_ATTR_SINGLE_WORD : 0) |
                      (a->first_only ? TOK_ATTR_FIRST : 0) |
                      (a->normalized ? TOK_ATTR_NORMALIZED : 0));
    }
}

static int make_vocab(struct tok_hf_build *b, struct err *e)
{
    struct tokenizer *t = b->t;
    struct tok_vocab *v = &t->v;
    struct tok_alphabet alphabet;
    size_t total = 1;
    int rc = tok_vocab_alloc(v, b->n, e);
    v->unk = b->unk;
    if (rc < 0)
        return rc;
    t->info.n_vocab = v->n_tokens = b->n - b->n_unnumbered;
    for (uint32_t i = 0; i < b->n; i++)
        if (!mem_add(&total, total, b->raw[i].n + 1) || total > UINT32_MAX)
            return err_set(e, SHOAL_ELIMIT, "the vocabulary has more than 4 GiB of text");
    v->bytes = mem_alloc(total);
    if (!v->bytes)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", b->n);
    tok_alphabet_init(&alphabet);
    set_types(b);
    uint32_t at = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        bool reachable;
        v->at[i] = at;
        uint32_t n = (uint32_t)spell(b, i, v->bytes + at, &alphabet, &reachable);
        /* the reference matches "<0x0A>" in a text too, but only in its Unigram model */
        bool byte =
            v->type[i] == TOKEN_TYPE_BYTE && (b->made || t->info.kind != TOKENIZER_KIND_UNIGRAM);
        bool plain = reachable && b->in_model[i] && v->type[i] != TOKEN_TYPE_CONTROL && !byte;
        if (plain && n > 0) {
            v->attr[i] |= TOK_ATTR_PLAIN;
            if (n > v->max_len)
                v->max_len = n;
        }
        at += n;
    }
    v->at[v->n] = at;
    return tok_vocab_index(v, e);
}

static bool next_merge(void *ctx, struct str *left, struct str *right)
{
    const struct tok_hf_merge **m = ctx;
    *left = (*m)->left;
    *right = (*m)->right;
    (*m)++;
    return true;
}

static int make_merges(struct tok_hf_build *b, struct err *e)
{
    const struct tok_hf_merge *m = b->merges;
    struct tok_bpe_merges src = {b->n_merges, 0, next_merge, &m};
    for (size_t i = 0; i < b->n_merges; i++)
        src.n_bytes += m[i].left.n + m[i].right.n;
    struct tok_bpe_opts o = {.v = &b->t->v,
                             .special = &b->t->special,
                             .chars = !b->hf->byte_level,
                             .ignore_merges = b->ignore_merges,
                             .fuse_unk = b->fuse_unk};
    return tok_bpe_create(&b->hf->model_state, &o, &src, e);
}

static double score_of(const void *scores, uint32_t id)
{
    return ((const double *)scores)[id];
}

static int make_model(struct tok_hf_build *b, struct err *e)
{
    struct tok_vocab *v = &b->t->v;
    struct tok_hf *hf = b->hf;
    switch (b->t->info.kind) {
    case TOKENIZER_KIND_BPE:
        hf->model = &tok_bpe_ops;
        return make_merges(b, e);
    case TOKENIZER_KIND_SPM:
        hf->model = &tok_spm_ops;
        return tok_spm_create(&hf->model_state, v, &b->t->special, score_of, b->scores, false, e);
    case TOKENIZER_KIND_WPM:
        hf->model = &tok_wpm_ops;
        return tok_wpm_create(&hf->model_state,
                              &(struct tok_wpm_opts){.v = v,
                                                     .special = &b->t->special,
                                                     .max_word_chars = b->max_word_chars},
                              e);
    case TOKENIZER_KIND_WORDS:
        hf->model = &tok_words_ops;
        hf->model_state = v;
        return 0;
    case TOKENIZER_KIND_UNIGRAM:
        break;
    }
    double lowest = INFINITY;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->in_model[i] && b->scores[i] < lowest && b->scores[i] > -INFINITY)
            lowest = b->scores[i];
    hf->model = &tok_unigram_ops;
    return tok_unigram_create(&hf->model_state, v, b->scores, lowest - UNK_PENALTY, e);
}

/* ---- added tokens ---- */

struct added_place { /* of its spellings among the copied bytes: as it is, and normalized */
    size_t raw, normal, n_normal;
};

static int copy_added(struct tok_hf_build *b, struct added_place *places, struct buf *all)
{
    struct tok_hf_scratch x = {0};
    int rc = 0;
    for (size_t i = 0; i < b->n_added && rc == 0; i++) {
        const struct tok_hf_added *a = &b->added[i];
        struct tok_view view = {.p = a->text.p};
        const char *p = a->text.p;
        size_t n = a->text.n;
        /* SentencePiece's own normalizer leaves its symbols as they are */
        bool own = b->hf->n_norm > 0 && b->hf->norm[0].kind == TOK_HF_NORM_SPIECE;
        if (a->normalized && !own && utf8_valid_prefix(p, n) == n)
            rc = tok_hf_normalize(b->hf, &x, &view, &p, &n);
        if (rc < 0)
            break;
        places[i] = (struct added_place){all->len, all->len + a->text.n, n};
        buf_put(all, a->text.p, a->text.n);
        buf_put(all, p, n);
        rc = all->rc;
    }
    tok_hf_scratch_fini(&x);
    return rc;
}

static void put_entry(struct tok_special *set, const char *p, size_t n, uint32_t id)
{
    set->e[set->n++] = (struct tok_special_entry){p, (uint32_t)n, id};
}

/* Sorts added tokens by the text in which they are searched. */
static int make_added(struct tok_hf_build *b, struct err *e)
{
    struct tok_hf *hf = b->hf;
    struct tok_special *const sets[3] = {&b->t->special, &hf->raw, &hf->normal};
    struct added_place *places = mem_zalloc_n(b->n_added + 1, sizeof(*places));
    struct buf all;
    int rc = places ? 0 : SHOAL_ENOMEM;
    buf_init(&all, (size_t)1 << 28);
    for (int i = 0; i < 3; i++) {
        sets[i]->e = mem_zalloc_n(b->n_added + 1, sizeof(*sets[i]->e));
        rc = sets[i]->e ? rc : SHOAL_ENOMEM;
    }
    if (rc == 0)
        rc = copy_added(b, places, &all);
    if (rc == 0) {
        hf->added_bytes = buf_take(&all, NULL);
        rc = hf->added_bytes ? 0 : SHOAL_ENOMEM;
    }
    for (size_t i = 0; i < b->n_added && rc == 0; i++) {
        const struct tok_hf_added *a = &b->added[i];
        const char *raw = hf->added_bytes + places[i].raw;
        put_entry(sets[0], raw, a->text.n, a->id);
        if (!a->normalized)
            put_entry(sets[1], raw, a->text.n, a->id);
        else if (places[i].n_normal > 0)
            put_entry(sets[2], hf->added_bytes + places[i].normal, places[i].n_normal, a->id);
    }
    for (int i = 0; i < 3; i++)
        tok_special_index(sets[i]);
    mem_free(places);
    buf_fini(&all);
    return rc < 0 ? err_set(e, rc, "%zu added tokens: %s", b->n_added, err_text(rc)) : 0;
}

/* ---- special ids and the rest of tokenizer_info ---- */

/* "eos_token": "</s>" or {"content": "</s>"} of tokenizer_config.json. */
static int32_t named(const struct tok_hf_build *b, const char *key)
{
    const cJSON *j = tok_hf_get(b->config, key);
    struct str s = cJSON_IsString(j) ? tok_hf_str(j) : tok_hf_get_str(j, "content");
    return tok_hf_find(b, s);
}

/* The ids of a number or an array; each ends a generation.  Returns the first. */
static int32_t end_ids(struct tok_hf_build *b, const cJSON *doc)
{
    const cJSON *j = tok_hf_get(doc, "eos_token_id");
    int32_t first = TOKENIZER_NONE;
    for (const cJSON *c = cJSON_IsArray(j) ? j->child : j; c;
         c = cJSON_IsArray(j) ? c->next : NULL) {
        uint32_t id;
        if (!tok_hf_is_id(c, &id) || id >= b->n)
            continue;
        b->t->v.attr[id] |= TOK_ATTR_EOG;
        if (first < 0)
            first = (int32_t)id;
    }
    return first;
}

static int32_t or_id(int32_t id, int32_t other)
{
    return id >= 0 ? id : other;
}

struct added_at {
    const struct tok_hf_build *b;
    size_t i;
};

static bool next_added(void *ctx, uint32_t *id, struct str *text)
{
    struct added_at *at = ctx;
    while (at->i < at->b->n_added && !at->b->added[at->i].special)
        at->i++;
    if (at->i == at->b->n_added)
        return false;
    *id = at->b->added[at->i].id;
    *text = at->b->added[at->i++].text;
    return true;
}

static int find_ids(struct tok_hf_build *b, struct err *e)
{
    struct tokenizer *t = b->t;
    struct tokenizer_info *in = &t->info;
    int32_t *const all[] = {&in->bos,     &in->eos,     &in->eot,     &in->eom,     &in->unk,
                            &in->sep,     &in->pad,     &in->mask,    &in->nl,      &in->fim_pre,
                            &in->fim_suf, &in->fim_mid, &in->fim_pad, &in->fim_rep, &in->fim_sep};
    uint32_t id;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        *all[i] = TOKENIZER_NONE;
    in->bos = or_id(or_id(named(b, "bos_token"), named(b, "cls_token")), b->bos);
    if (in->bos < 0 && tok_hf_is_id(tok_hf_get(b->model, "bos_token_id"), &id) && id < b->n)
        in->bos = (int32_t)id;
    in->sep = named(b, "sep_token");
    in->pad = or_id(named(b, "pad_token"), b->pad);
    in->mask = named(b, "mask_token");
    in->unk = or_id(b->unk, named(b, "unk_token"));
    int32_t generation = end_ids(b, b->generation), model = end_ids(b, b->model);
    in->eos = or_id(or_id(named(b, "eos_token"), b->eos), or_id(generation, model));
    if (in->eos >= 0)
        t->v.attr[in->eos] |= TOK_ATTR_EOG;
    if (in->kind == TOKENIZER_KIND_WPM) { /* a folder without tokenizer_config.json */
        in->bos = or_id(in->bos, tok_hf_find(b, STR("[CLS]")));
        in->sep = or_id(in->sep, tok_hf_find(b, STR("[SEP]")));
        in->pad = or_id(in->pad, tok_hf_find(b, STR("[PAD]")));
        in->mask = or_id(in->mask, tok_hf_find(b, STR("[MASK]")));
        return 0;
    }
    /* end-of-turn tokens by their spelling, as in GGUF files, but only among added tokens */
    struct added_at at = {b, 0};
    return tok_roles_find(in, &t->v, &(struct tok_roles_source){next_added, &at}, e);
}

/* Fills info from the templates. */
static void describe_template(struct tokenizer *t)
{
    struct tokenizer_info *in = &t->info;
    const struct tokenizer_template *tp = &t->single;
    int32_t first = tp->n > 0 ? tp->items[0].id : TOKENIZER_NONE;
    int32_t last = tp->n > 0 ? tp->items[tp->n - 1].id : TOKENIZER_NONE;
    if (first >= 0 && in->bos < 0)
        in->bos = first;
    in->add_bos = first >= 0 && first == in->bos;
    in->add_eos = last >= 0 && last == in->eos;
    in->add_sep = last >= 0 && last == in->sep;
}

/* Without a template, tokenizer_config.json may request BOS and EOS. */
static void add_by_config(struct tok_hf_build *b)
{
    struct tokenizer *t = b->t;
    for (unsigned i = 0; i < t->single.n; i++)
        if (t->single.items[i].id >= 0)
            return;
    t->info.add_bos = tok_hf_get_bool(b->config, "add_bos_token", false);
    t->info.add_eos = tok_hf_get_bool(b->config, "add_eos_token", false);
    if (t->info.add_bos || t->info.add_eos)
        tokenizer_core_templates(t);
}

static int copy_chat_template(struct tok_hf_build *b, const struct model_file *file, struct err *e)
{
    struct str s = {NULL, 0};
    const cJSON *j = tok_hf_get(b->config, "chat_template");
    if (!model_file_get_str(file, "tokenizer.chat_template", &s)) {
        s = tok_hf_str(j);
        for (const cJSON *c = cJSON_IsArray(j) ? j->child : NULL; c; c = c->next)
            if (str_is(tok_hf_get_str(c, "name"), "default"))
                s = tok_hf_get_str(c, "template");
    }
    if (!s.p)
        return 0;
    b->t->strings = mem_strndup(s.p, s.n);
    if (!b->t->strings)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the chat template");
    b->t->info.chat_template = b->t->strings;
    b->t->info.chat_template_bytes = s.n;
    return 0;
}

/* ---- loading ---- */

/* cJSON ends strings with a NUL.  So \\u0000 becomes a character that no text has, and tok_hf_text
 * turns it back.  Returns a copy of the document, or NULL when it has none of them. */
static char *hide_nul(struct str s, bool *failed)
{
    static const char nul[] = "\\u0000", hidden[] = "\\ufdd0";
    char *out = NULL;
    for (size_t at = 0; at < s.n;) {
        const char *hit = memmem(s.p + at, s.n - at, nul, 6);
        size_t back = 0;
        if (!hit)
            break;
        at = (size_t)(hit - s.p);
        while (back < at && s.p[at - 1 - back] == '\\')
            back++;
        if (back % 2 == 0 && !out) {
            out = mem_strndup(s.p, s.n);
            *failed = !out;
            if (!out)
                return NULL;
        }
        if (back % 2 == 0) /* otherwise it is a backslash followed by letters */
            memcpy(out + at, hidden, 6);
        at += 6;
    }
    return out;
}

/* The document under a key; *out stays NULL if there is none. *hides_nul: see hide_nul. */
static int read_doc(cJSON **out, const struct model_file *file, const char *key, bool *hides_nul,
                    struct err *e)
{
    struct str s;
    bool failed = false;
    *out = NULL;
    if (!model_file_get_str(file, key, &s) || s.n == 0)
        return 0;
    const char *end = NULL;
    char *copy = hide_nul(s, &failed);
    const char *text = copy ? copy : s.p;
    *hides_nul = copy != NULL;
    if (failed)
        return err_set(e, SHOAL_ENOMEM, "%s", key);
    *out = cJSON_ParseWithLengthOpts(text, s.n, &end, false);
    size_t at = end ? (size_t)(end - text) : 0;
    mem_free(copy);
    if (*out)
        return 0;
    return err_set(e, SHOAL_EFORMAT, "%s is not JSON: error at byte %zu of %zu", key, at, s.n);
}

static int finish(struct tok_hf_build *b, const struct model_file *file, struct err *e)
{
    struct tokenizer *t = b->t;
    struct tok_ids nl;
    int rc = tok_hf_add_added(b, e);
    if (rc == 0)
        rc = make_vocab(b, e);
    if (rc == 0)
        rc = make_model(b, e);
    if (rc == 0)
        rc = make_added(b, e);
    if (rc == 0)
        rc = find_ids(b, e);
    if (rc == 0)
        rc = tok_hf_parse_post_processor(b, e);
    if (rc == 0)
        rc = tok_hf_make_pieces(b, e);
    if (rc == 0)
        rc = copy_chat_template(b, file, e);
    if (rc < 0)
        return rc;
    describe_template(t);
    add_by_config(b);
    t->info.add_space_prefix = false;
    t->strip = b->strip_ends    ? TOKENIZER_STRIP_ENDS
               : b->strip_first ? TOKENIZER_STRIP_FIRST
                                : TOKENIZER_STRIP_NONE;
    tok_ids_init(&nl, 8);
    rc = tokenizer_core_encode(t, &nl, NULL, "\n", 1, 0);
    if (rc == 0 && nl.n > 0)
        t->info.nl = nl.ids[nl.n - 1];
    tok_ids_fini(&nl);
    return rc == SHOAL_ENOMEM ? err_set(e, rc, "tokenizer: %s", err_text(rc)) : 0;
}

static void build_fini(struct tok_hf_build *b)
{
    mem_free(b->raw);
    mem_free(b->in_model);
    mem_free(b->scores);
    strmap_fini(&b->ids);
    mem_free(b->added);
    mem_free(b->merges);
    mem_free(b->names);
    cJSON_Delete(b->made);
    cJSON_Delete(b->made_vocab);
}

/* Reads the first file that exists; *name is its name in errors. */
static int read_source(struct tok_hf_build *b, const struct model_file *file, const char **name,
                       struct err *e)
{
    const struct model_file_value *spiece = model_file_find(file, TOK_HF_KEY_SPIECE);
    const struct model_file_value *source = model_file_find(file, TOK_HF_KEY_SOURCE_SPM);
    struct str text, merges;
    if (b->json) {
        *name = "tokenizer.json";
        return 0;
    }
    if (spiece && spiece->type == MODEL_FILE_ARRAY && spiece->elem_type == MODEL_FILE_U8) {
        *name = "spiece.model";
        return tok_hf_read_spiece(b, spiece->data, spiece->n_bytes, e);
    }
    if (source && source->type == MODEL_FILE_ARRAY && source->elem_type == MODEL_FILE_U8) {
        *name = "source.spm with vocab.json";
        return model_file_get_str(file, TOK_HF_KEY_VOCAB_JSON, &text)
                   ? tok_hf_read_marian(b, source->data, source->n_bytes, text, e)
                   : err_set(e, SHOAL_EFORMAT, "vocab.json is missing");
    }
    if (model_file_get_str(file, TOK_HF_KEY_VOCAB_JSON, &text)) {
        *name = "vocab.json";
        return model_file_get_str(file, TOK_HF_KEY_MERGES, &merges)
                   ? tok_hf_read_vocab_json(b, text, merges, e)
                   : err_set(e, SHOAL_EFORMAT, "merges.txt is missing");
    }
    *name = "vocab.txt";
    if (model_file_get_str(file, TOK_HF_KEY_VOCAB_TXT, &text))
        return tok_hf_read_vocab_txt(b, text, e);
    return err_set(e, SHOAL_EFORMAT, "vocab.txt is not a string");
}

static int load(struct tok_hf_build *b, const struct model_file *file, struct err *e)
{
    const char *name = "";
    int rc = read_source(b, file, &name, e);
    if (rc == 0)
        rc = tok_hf_parse_normalizer(b, e);
    if (rc == 0)
        rc = tok_hf_parse_pre_tokenizer(b, e);
    if (rc == 0 && !b->made)
        rc = tok_hf_read_model(b, e);
    if (rc == 0)
        rc = finish(b, file, e);
    return rc < 0 ? err_wrap(e, "%s", name) : 0;
}

bool tok_hf_present(const struct model_file *file)
{
    return model_file_find(file, TOK_HF_KEY_JSON) || model_file_find(file, TOK_HF_KEY_SPIECE) ||
           model_file_find(file, TOK_HF_KEY_SOURCE_SPM) ||
           model_file_find(file, TOK_HF_KEY_VOCAB_JSON) ||
           model_file_find(file, TOK_HF_KEY_VOCAB_TXT);
}

int tok_hf_load(struct tokenizer *t, const struct model_file *file, struct err *e)
{
    struct tok_hf_build b = {.t = t,
                             .unk = TOKENIZER_NONE,
                             .bos = TOKENIZER_NONE,
                             .eos = TOKENIZER_NONE,
                             .pad = TOKENIZER_NONE};
    cJSON *docs[4] = {NULL};
    static const char *const keys[4] = {TOK_HF_KEY_JSON, TOK_HF_KEY_CONFIG, "huggingface.config",
                                        "huggingface.generation_config"};
    int rc = 0;
    t->info.pre = "";
    t->ops = &tok_hf_ops;
    t->state = b.hf = mem_zalloc(sizeof(*b.hf));
    if (!b.hf)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    b.hf->v = &t->v;
    bool hides_nul[4] = {false};
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = read_doc(&docs[i], file, keys[i], &hides_nul[i], e);
    b.hides_nul = hides_nul[0];
    b.json = docs[0];
    b.config = docs[1];
    b.model = docs[2];
    b.generation = docs[3];
    if (rc == 0)
        rc = load(&b, file, e);
    build_fini(&b);
    for (int i = 0; i < 4; i++)
        cJSON_Delete(docs[i]);
    return rc;
}
