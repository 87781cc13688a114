/* tok_gguf.c - see tok_gguf.h. */
#include "text/tokenizer/tok_gguf.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "format/model_file.h"
#include "format/token_type.h"
#include "text/tokenizer/algorithm/tok_bpe.h"
#include "text/tokenizer/algorithm/tok_spm.h"
#include "text/tokenizer/algorithm/tok_wpm.h"
#include "text/tokenizer/tok_roles.h"

#define KEY "tokenizer.ggml."

struct loader {
    struct tokenizer *t;
    const struct model_file *m;
    struct tok_pretok *pretok; /* BPE; moves to its state */
    unsigned traits;           /* of pretok */
    bool chars;                /* pieces are characters with U+2581 for the space; else bytes */
    bool escaped;              /* U+2581 in pieces is a space */
    struct tok_alphabet alphabet;
};

/* ---- vocabulary ---- */

/* tokenizer.ggml.tokens, checked. */
static int find_tokens(const struct model_file_value **out, const struct model_file *file,
                       struct err *e)
{
    const struct model_file_value *kv = model_file_find(file, KEY "tokens");
    if (!kv || kv->type != MODEL_FILE_ARRAY || kv->elem_type != MODEL_FILE_STRING)
        return err_set(e, SHOAL_EFORMAT, KEY "tokens is missing or is not an array of strings");
    if (kv->n_elems == 0 || kv->n_elems > TOK_MAX_VOCAB)
        return err_set(e, SHOAL_EFORMAT, "a vocabulary cannot have %llu tokens",
                       (unsigned long long)kv->n_elems);
    *out = kv;
    return 0;
}

static int load_types(struct tokenizer *t, const struct model_file *file, struct err *e)
{
    const struct model_file_value *kv = model_file_find(file, KEY "token_type");
    if (!kv)
        return 0;
    if (kv->type != MODEL_FILE_ARRAY || kv->n_elems < t->v.n)
        return err_set(e, SHOAL_EFORMAT, KEY "token_type has fewer elements than there are tokens");
    for (uint32_t i = 0; i < t->v.n; i++) {
        int64_t v;
        if (!model_file_i64_at(kv, i, &v))
            return err_set(e, SHOAL_EFORMAT, KEY "token_type is not an array of integers");
        if (v >= TOKEN_TYPE_NORMAL && v <= TOKEN_TYPE_BYTE)
            t->v.type[i] = (uint8_t)v;
    }
    return 0;
}

/* Sets *id to the id under a key if it is valid; otherwise keeps *id if that is valid. */
static void get_id(const struct tokenizer *t, const struct model_file *file, const char *key,
                   int32_t *id)
{
    uint64_t v;
    if (*id >= 0 && (uint32_t)*id >= t->v.n)
        *id = TOKENIZER_NONE;
    if (model_file_get_u64(file, key, &v) && v < t->v.n)
        *id = (int32_t)v;
}

static void load_ids(struct tokenizer *t, const struct model_file *file)
{
    struct tokenizer_info *in = &t->info;
    bool spm = in->kind == TOKENIZER_KIND_SPM, wpm = in->kind == TOKENIZER_KIND_WPM;
    in->bos = spm ? 1 : wpm ? 101 : TOKENIZER_NONE;
    in->eos = spm ? 2 : TOKENIZER_NONE;
    in->unk = spm ? 0 : wpm ? 100 : TOKENIZER_NONE;
    in->sep = wpm ? 102 : TOKENIZER_NONE;
    in->pad = wpm ? 0 : TOKENIZER_NONE;
    in->mask = wpm ? 103 : TOKENIZER_NONE;
    in->eot = in->eom = in->nl = TOKENIZER_NONE;
    in->fim_pre = in->fim_suf = in->fim_mid = TOKENIZER_NONE;
    in->fim_pad = in->fim_rep = in->fim_sep = TOKENIZER_NONE;
    const struct {
        const char *key;
        int32_t *id;
    } keys[] = {
        {KEY "cls_token_id", wpm ? &in->bos : &in->nl}, /* nl is found later */
        {KEY "bos_token_id", &in->bos},
        {KEY "eos_token_id", &in->eos},
        {KEY "eot_token_id", &in->eot},
        {KEY "eom_token_id", &in->eom},
        {KEY "unknown_token_id", &in->unk},
        {KEY "seperator_token_id", &in->sep}, /* the format's own spelling */
        {KEY "padding_token_id", &in->pad},
        {KEY "mask_token_id", &in->mask},
        {KEY "prefix_token_id", &in->fim_pre}, /* old names of the next ones */
        {KEY "suffix_token_id", &in->fim_suf},
        {KEY "middle_token_id", &in->fim_mid},
        {KEY "fim_pre_token_id", &in->fim_pre},
        {KEY "fim_suf_token_id", &in->fim_suf},
        {KEY "fim_mid_token_id", &in->fim_mid},
        {KEY "fim_pad_token_id", &in->fim_pad},
        {KEY "fim_rep_token_id", &in->fim_rep},
        {KEY "fim_sep_token_id", &in->fim_sep},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        get_id(t, file, keys[i].key, keys[i].id);
    in->nl = TOKENIZER_NONE;
}

static bool is_special(const struct tok_vocab *v, uint32_t id)
{
    uint8_t type = v->type[id];
    return type == TOKEN_TYPE_CONTROL || type == TOKEN_TYPE_USER_DEFINED ||
           type == TOKEN_TYPE_UNKNOWN;
}

static bool plain_ascii(struct str w)
{
    for (size_t i = 0; i < w.n; i++)
        if (w.p[i] < '!' || w.p[i] > '~')
            return false;
    return w.n > 0;
}

/* Writes the piece of token id to out; returns its length.  *reachable: plain text may become it.
 */
static size_t make_piece(struct loader *l, uint32_t id, struct str w, char *out, bool *reachable)
{

    struct tok_vocab *v = &l->t->v;
    uint8_t type = v->type[id], byte;
    size_t n = w.n;
    *reachable = false;
    if (type == TOKEN_TYPE_BYTE && tok_vocab_byte_spelling(w.p, w.n, &byte)) {
        *out = (char)byte;
        if (v->byte_id[byte] < 0)
            v->byte_id[byte] = (int32_t)id;
        return 1;
    }
    if (is_special(v, id)) {
        memcpy(out, w.p, n);
        *reachable = type == TOKEN_TYPE_USER_DEFINED && plain_ascii(w);
        return n;
    }
    if (l->escaped) {
        n = tok_call_unescape(out, w.p, w.n);
        *reachable =
            !memchr(w.p, ' ', w.n); /* a plain space in the spelling: no text can match it */
        return n;
    }
    if (tok_alphabet_decode(out, &n, w.p, w.n, &l->alphabet)) {
        *reachable = true;
        return n;
    }
    memcpy(out, w.p, w.n);
    return w.n;
}

static int load_pieces(struct loader *l, const struct model_file_value *tokens, struct err *e)
{
    struct tokenizer *t = l->t;
    struct tok_vocab *v = &t->v;
    struct model_file_strings strings = model_file_strings(tokens);
    struct str w;
    size_t total = tokens->n_bytes - (size_t)v->n * sizeof(uint64_t); /* without lengths */
    int n_bytes = 0;
    if (total > UINT32_MAX)
        return err_set(e, SHOAL_ELIMIT, "the vocabulary has more than 4 GiB of text");
    v->bytes = mem_alloc(total + 1);
    if (!v->bytes)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", v->n);
    tok_alphabet_init(&l->alphabet);
    uint32_t at = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        bool reachable;
        /* a piece is never longer than its spelling */
        if (!model_file_strings_next(&strings, &w) || w.n > total - at)
            return err_set(e, SHOAL_EFORMAT, KEY "tokens changed while it was read");
        uint32_t n = (uint32_t)make_piece(l, i, w, v->bytes + at, &reachable);
        v->at[i] = at;
        if (n > t->info.max_piece_bytes)
            t->info.max_piece_bytes = n;
        if (reachable && n > 0) {
            if (n > v->max_len)
                v->max_len = n;
            v->attr[i] |= TOK_ATTR_PLAIN;
        }
        at += n;
    }
    v->at[v->n] = at;
    int rc = tok_vocab_index(v, e);
    if (rc < 0)
        return rc;
    for (int b = 0; b < 256; b++) { /* no <0x..> tokens: the byte itself may be a token */
        char c = (char)b;
        uint32_t id;
        if (v->byte_id[b] < 0 && tok_vocab_find(v, &c, 1, &id))
            v->byte_id[b] = (int32_t)id;
        n_bytes += v->byte_id[b] >= 0;
    }
    v->spells_all = t->info.kind != TOKENIZER_KIND_WPM && n_bytes == 256;
    return 0;
}

static int list_special(struct tokenizer *t, struct err *e)
{
    struct tok_special *sp = &t->special;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->v.n; i++)
        n += is_special(&t->v, i) && tok_vocab_text(&t->v, i).n > 0;
    sp->e = mem_zalloc_n(n, sizeof(*sp->e));
    if (!sp->e)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    for (uint32_t i = 0; i < t->v.n; i++) {
        struct str w = tok_vocab_text(&t->v, i);
        if (is_special(&t->v, i) && w.n > 0)
            sp->e[sp->n++] = (struct tok_special_entry){w.p, (uint32_t)w.n, i};
    }
    tok_special_index(sp);
    return 0;
}

/* Some models strip white space around special tokens; no key records this. */
static void set_strip(struct tokenizer *t, const struct model_file *file)
{
    struct str name = {"", 0}, arch = {"", 0};
    const char *mask = NULL;
    (void)model_file_get_str(file, "general.name", &name);
    (void)model_file_get_str(file, "general.architecture", &arch);
    bool phi3 = false;
    for (size_t i = 0; i + 4 <= name.n && !phi3; i++)
        phi3 = (strncasecmp(name.p + i, "phi3", 4) == 0) ||
               (i + 5 <= name.n && strncasecmp(name.p + i, "phi-3", 5) == 0);
    if (strncmp(t->info.pre, "jina-v2-", 8) == 0 || str_has(arch, "nomic-bert-moe") ||
        str_has(arch, "jina-bert-v3"))
        mask = "<mask>";
    else if (memmem(name.p, name.n, "modern-bert", 11))
        mask = "[MASK]";
    for (uint32_t k = 0; k < t->special.n; k++) {
        uint32_t id = t->special.e[k].id;
        struct str w = tok_vocab_text(&t->v, id);
        struct str text = {w.p, w.n};
        if (mask && str_is(text, mask))
            t->v.attr[id] |= TOK_ATTR_LSTRIP;
        if (!mask && phi3 && !str_is(text, "<unk>") && !str_is(text, "<s>") &&
            !str_is(text, "<|endoftext|>"))
            t->v.attr[id] |= TOK_ATTR_RSTRIP;
    }
}

struct in_order { /* all tokens of a file */
    struct model_file_strings strings;
    uint32_t id;
};

static bool next_spelling(void *ctx, uint32_t *id, struct str *text)
{
    struct in_order *o = ctx;
    *id = o->id++;
    return model_file_strings_next(&o->strings, text);
}

static int load_vocab(struct loader *l, struct err *e)
{
    struct tokenizer *t = l->t;
    const struct model_file *file = l->m;
    const struct model_file_value *tokens = NULL;
    int rc = find_tokens(&tokens, file, e);
    if (rc < 0)
        return rc;
    struct tok_vocab *v = &t->v;
    rc = tok_vocab_alloc(v, (uint32_t)tokens->n_elems, e);
    t->info.n_vocab = v->n;
    if (rc < 0)
        return rc;
    rc = load_types(t, file, e);
    if (rc < 0)
        return rc;
    if (l->chars && !model_file_find(file, KEY "token_type")) {
        struct model_file_strings strings = model_file_strings(tokens);
        struct str w;
        uint8_t byte;
        for (uint32_t i = 0; model_file_strings_next(&strings, &w); i++)
            if (tok_vocab_byte_spelling(w.p, w.n, &byte))
                v->type[i] = TOKEN_TYPE_BYTE;
    }
    load_ids(t, file);
    struct in_order order = {model_file_strings(tokens), 0};
    rc = tok_roles_find(&t->info, v, &(struct tok_roles_source){next_spelling, &order}, e);
    if (rc == 0)
        rc = load_pieces(l, tokens, e);
    if (rc == 0)
        rc = list_special(t, e);
    if (rc < 0)
        return rc;
    set_strip(t, file);
    bool b;
    if (model_file_get_bool(file, KEY "add_bos_token", &b))
        t->info.add_bos = b;
    if (model_file_get_bool(file, KEY "add_eos_token", &b))
        t->info.add_eos = b;
    if (model_file_get_bool(file, KEY "add_sep_token", &b))
        t->info.add_sep = b;
    if (model_file_get_bool(file, KEY "add_space_prefix", &b))
        t->info.add_space_prefix = b;
    return 0;
}

/* ---- algorithms ---- */

static int copy_strings(struct tokenizer *t, const struct model_file *file, struct str model,
                        struct err *e)
{
    struct str pre = {"", 0}, chat = {"", 0};
    (void)model_file_get_str(file, "tokenizer.ggml.pre", &pre);
    bool has_chat = model_file_get_str(file, "tokenizer.chat_template", &chat);
    t->strings = mem_zalloc(model.n + pre.n + chat.n + 3);
    if (!t->strings)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    char *p = t->strings;
    t->info.model = memcpy(p, model.p, model.n);
    p += model.n + 1;
    t->info.pre = pre.n ? memcpy(p, pre.p, pre.n) : p;
    p += pre.n + 1;
    if (has_chat) {
        t->info.chat_template = chat.n ? memcpy(p, chat.p, chat.n) : p;
        t->info.chat_template_bytes = chat.n;
    }
    return 0;
}

/* The kind by the model's name, and its defaults. */
static int choose_kind(struct loader *l, struct err *e)
{
    struct tokenizer_info *in = &l->t->info;
    const char *pre = in->pre;
    if (strcmp(in->model, "llama") == 0) {
        in->kind = TOKENIZER_KIND_SPM;
        in->add_bos = in->add_space_prefix = l->chars = l->escaped = true;
        return 0;
    }
    if (strcmp(in->model, "bert") == 0) {
        in->kind = TOKENIZER_KIND_WPM;
        in->add_bos = in->add_sep = l->escaped = true;
        return 0;
    }
    if (strcmp(in->model, "gemma4") == 0)
        pre = "gemma4";
    else if (strcmp(in->model, "gpt2") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "tokenizer model \"%.64s\" is not supported",
                       in->model);
    in->kind = TOKENIZER_KIND_BPE;
    int rc = tok_pretok_create(&l->pretok, *pre ? pre : "default", TOK_PRETOK_FAST, e);
    if (rc < 0)
        return rc;
    l->traits = tok_pretok_traits(l->pretok);
    in->add_bos = l->traits & TOK_PRETOK_ADD_BOS;
    in->add_sep = l->traits & TOK_PRETOK_ADD_SEP;
    l->chars = l->escaped = l->traits & TOK_PRETOK_CHARS;
    return 0;
}

static double score_of(const void *value, uint32_t id)
{
    double score = 0;
    (void)model_file_f64_at(value, id, &score); /* checked by make_spm */
    return score;
}

static int make_spm(struct loader *l, struct err *e)
{
    struct tokenizer *t = l->t;
    const struct model_file_value *value = model_file_find(l->m, KEY "scores");
    double score;
    if (!value || value->type != MODEL_FILE_ARRAY || value->n_elems < t->v.n)
        return err_set(e, SHOAL_EFORMAT, KEY "scores is missing or shorter than the vocabulary");
    for (uint32_t i = 0; i < t->v.n; i++)
        if (!model_file_f64_at(value, i, &score))
            return err_set(e, SHOAL_EFORMAT, KEY "scores is not an array of numbers");
    t->ops = &tok_spm_ops;
    t->info.nl = t->v.byte_id['\n'];
    return tok_spm_create(&t->state, &t->v, &t->special, score_of, value, t->info.add_space_prefix,
                          e);
}

static bool next_merge(void *ctx, struct str *left, struct str *right)
{
    struct str s;
    if (!model_file_strings_next(ctx, &s))
        return false;
    tok_bpe_split_merge(s, left, right);
    return true;
}

/* What a lone newline becomes. */
static int find_newline(struct tokenizer *t, struct err *e)
{
    struct tok_ids ids;
    tok_ids_init(&ids, 8);
    int rc = tokenizer_core_encode(t, &ids, NULL, "\n", 1, 0);
    if (rc == 0 && ids.n > 0)
        t->info.nl = ids.ids[0];
    tok_ids_fini(&ids);
    return rc < 0 ? err_set(e, rc, "tokenizer: a newline cannot be encoded") : 0;
}

static int make_bpe(struct loader *l, struct err *e)
{
    struct tokenizer *t = l->t;
    const struct model_file_value *value = model_file_find(l->m, KEY "merges");
    if (!value || value->type != MODEL_FILE_ARRAY || value->elem_type != MODEL_FILE_STRING)
        return err_set(e, SHOAL_EFORMAT, KEY "merges is missing or is not an array of strings");
    struct model_file_strings strings = model_file_strings(value);
    struct tok_bpe_merges src = {value->n_elems, value->n_bytes, next_merge, &strings};
    struct tok_bpe_opts o = {.v = &t->v,
                             .special = &t->special,
                             .pretok = l->pretok,
                             .chars = l->chars,
                             .escaped = l->escaped,
                             .ignore_merges = l->traits & TOK_PRETOK_IGNORE_MERGES,
                             .newline_runs = l->traits & TOK_PRETOK_NEWLINE_RUNS};
    l->pretok = NULL; /* moves, also when it fails */
    t->ops = &tok_bpe_ops;
    int rc = tok_bpe_create(&t->state, &o, &src, e);
    if (rc < 0)
        return rc;
    if (l->traits & TOK_PRETOK_FORCE_BOS)
        t->info.add_bos = true;
    return find_newline(t, e);
}

static int make_wpm(struct loader *l, struct err *e)
{
    struct tokenizer *t = l->t;
    struct tok_wpm_opts o = {.v = &t->v,
                             .special = &t->special,
                             .lowercase = true,
                             .max_word_chars = TOK_WPM_MAX_WORD_CHARS};
    (void)model_file_get_bool(l->m, KEY "normalizer.lowercase", &o.lowercase);
    o.strip_accents = o.lowercase;
    (void)model_file_get_bool(l->m, KEY "normalizer.strip_accents", &o.strip_accents);
    t->ops = &tok_wpm_ops;
    return tok_wpm_create(&t->state, &o, e);
}

static int load(struct loader *l, struct err *e)
{
    struct tokenizer *t = l->t;
    struct str model;
    if (!model_file_get_str(l->m, KEY "model", &model) || model.n == 0)
        return err_set(e, SHOAL_EFORMAT, "the file has no tokenizer (no tokenizer.ggml.model)");
    int rc = copy_strings(t, l->m, model, e);
    if (rc == 0)
        rc = choose_kind(l, e);
    if (rc == 0)
        rc = load_vocab(l, e);
    if (rc < 0)
        return rc;
    int32_t unk = t->info.unk;
    t->v.unk = unk >= 0 && (t->v.attr[unk] & TOK_ATTR_EOG) ? TOKENIZER_NONE : unk;
    t->trim_spans = true;
    rc = t->info.kind == TOKENIZER_KIND_SPM   ? make_spm(l, e)
         : t->info.kind == TOKENIZER_KIND_BPE ? make_bpe(l, e)
                                              : make_wpm(l, e);
    bool strips = t->info.add_space_prefix || t->info.kind == TOKENIZER_KIND_WPM;
    t->strip = strips ? TOKENIZER_STRIP_EACH : TOKENIZER_STRIP_NONE;
    tokenizer_core_templates(t);
    return rc;
}

int tok_gguf_load(struct tokenizer *t, const struct model_file *m, struct err *e)
{
    struct loader l = {.t = t, .m = m};
    int rc = load(&l, e);
    tok_pretok_destroy(l.pretok);
    return rc;
}
