/* tok_vocab.c - the vocabulary out of GGUF metadata: pieces, types, special ids.
 *
 * Files are not tidy: token types are missing or wrong, end-of-turn tokens are not named by any
 * key.  What is missing is found by the well-known spellings of special tokens, in the order of the
 * table below, so that the result does not depend on chance. */
#include "text/tokenizer/tok_internal.h"

#include <string.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "format/model_file.h"

#define KEY "tokenizer.ggml."

enum role {
    ROLE_EOT,
    ROLE_EOM,
    ROLE_FIM_PRE,
    ROLE_FIM_SUF,
    ROLE_FIM_MID,
    ROLE_FIM_PAD,
    ROLE_FIM_REP,
    ROLE_FIM_SEP,
    N_ROLES,
    ROLE_NONE = N_ROLES,
};

/* Spellings of special tokens; within a role the first one that the vocabulary has is taken. */
static const struct spelling {
    const char *text;
    enum role role;
    bool eog;
} spellings[] = {
    {"<|eot_id|>", ROLE_EOT, true},
    {"<|im_end|>", ROLE_EOT, true},
    {"<|end|>", ROLE_EOT, true},
    {"<end_of_turn>", ROLE_EOT, true},
    {"<turn|>", ROLE_EOT, true},
    {"<end_of_utterance>", ROLE_EOT, true},
    {"<|endoftext|>", ROLE_EOT, true},
    {"<|end_of_text|>", ROLE_EOT, true},
    {"<EOT>", ROLE_EOT, true},
    {"_<EOT>", ROLE_EOT, true},
    {"[EOT]", ROLE_EOT, true},
    {"<\xef\xbd\x9c"
     "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
     ROLE_EOT, true},
    {"<|eom_id|>", ROLE_EOM, true},
    {"<|return|>", ROLE_NONE, true},
    {"<|call|>", ROLE_NONE, true},
    {"<|calls|>", ROLE_NONE, true},
    {"<|flush|>", ROLE_NONE, true},
    {"</s>", ROLE_NONE, true},
    {"<eos>", ROLE_NONE, true},
    {"[EOS]", ROLE_NONE, true},
    {"[e~[", ROLE_NONE, true},
    {"<|tool_response>", ROLE_NONE, true},
    {"<|fim_prefix|>", ROLE_FIM_PRE, false},
    {"<fim-prefix>", ROLE_FIM_PRE, false},
    {"<fim_prefix>", ROLE_FIM_PRE, false},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "begin\xef\xbd\x9c>",
     ROLE_FIM_PRE, false},
    {"<PRE>", ROLE_FIM_PRE, false},
    {"\xe2\x96\x81<PRE>", ROLE_FIM_PRE, false},
    {"<|code_prefix|>", ROLE_FIM_PRE, false},
    {"<|prefix|>", ROLE_FIM_PRE, false},
    {"<|fim_suffix|>", ROLE_FIM_SUF, false},
    {"<fim-suffix>", ROLE_FIM_SUF, false},
    {"<fim_suffix>", ROLE_FIM_SUF, false},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81hole\xef\xbd\x9c>",
     ROLE_FIM_SUF, false},
    {"<SUF>", ROLE_FIM_SUF, false},
    {"\xe2\x96\x81<SUF>", ROLE_FIM_SUF, false},
    {"<|code_suffix|>", ROLE_FIM_SUF, false},
    {"<|suffix|>", ROLE_FIM_SUF, false},
    {"<|fim_middle|>", ROLE_FIM_MID, false},
    {"<fim-middle>", ROLE_FIM_MID, false},
    {"<fim_middle>", ROLE_FIM_MID, false},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "end\xef\xbd\x9c>",
     ROLE_FIM_MID, false},
    {"<MID>", ROLE_FIM_MID, false},
    {"\xe2\x96\x81<MID>", ROLE_FIM_MID, false},
    {"<|code_middle|>", ROLE_FIM_MID, false},
    {"<|middle|>", ROLE_FIM_MID, false},
    {"<|fim_pad|>", ROLE_FIM_PAD, false},
    {"<fim-pad>", ROLE_FIM_PAD, false},
    {"<fim_pad>", ROLE_FIM_PAD, false},
    {"<PAD>", ROLE_FIM_PAD, false},
    {"[PAD]", ROLE_FIM_PAD, false},
    {"<|fim_repo|>", ROLE_FIM_REP, false},
    {"<|repo_name|>", ROLE_FIM_REP, false},
    {"<fim-repo>", ROLE_FIM_REP, false},
    {"<REPO>", ROLE_FIM_REP, false},
    {"<reponame>", ROLE_FIM_REP, false},
    {"<|file_sep|>", ROLE_FIM_SEP, false},
};
#define N_SPELLINGS (sizeof(spellings) / sizeof(spellings[0]))

/* tokenizer.ggml.tokens, checked. */
static int find_tokens(const struct model_file_value **out, const struct model_file *g,
                       struct err *e)
{
    const struct model_file_value *kv = model_file_find(g, KEY "tokens");
    if (!kv || kv->type != MODEL_FILE_ARRAY || kv->elem_type != MODEL_FILE_STRING)
        return err_set(e, SHOAL_EFORMAT, KEY "tokens is missing or is no array of strings");
    if (kv->n_elems == 0 || kv->n_elems > TOK_MAX_VOCAB)
        return err_set(e, SHOAL_EFORMAT, "a vocabulary of %llu tokens is not possible",
                       (unsigned long long)kv->n_elems);
    *out = kv;
    return 0;
}

static int load_types(struct tokenizer *t, const struct model_file *g, struct err *e)
{
    const struct model_file_value *kv = model_file_find(g, KEY "token_type");
    if (!kv)
        return 0;
    if (kv->type != MODEL_FILE_ARRAY || kv->n_elems < t->v.n)
        return err_set(e, SHOAL_EFORMAT, KEY "token_type has fewer elements than there are tokens");
    for (uint32_t i = 0; i < t->v.n; i++) {
        int64_t v;
        if (!model_file_i64_at(kv, i, &v))
            return err_set(e, SHOAL_EFORMAT, KEY "token_type is no array of integers");
        if (v >= TOKEN_TYPE_NORMAL && v <= TOKEN_TYPE_BYTE)
            t->v.type[i] = (uint8_t)v;
    }
    return 0;
}

/* The id under a key when it is one of the vocabulary; else what *id holds, if that is one. */
static void get_id(const struct tokenizer *t, const struct model_file *g, const char *key,
                   int32_t *id)
{
    uint64_t v;
    if (*id >= 0 && (uint32_t)*id >= t->v.n)
        *id = TOKENIZER_NONE;
    if (model_file_get_u64(g, key, &v) && v < t->v.n)
        *id = (int32_t)v;
}

static void load_ids(struct tokenizer *t, const struct model_file *g)
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
        {KEY "seperator_token_id", &in->sep}, /* so the format spells it */
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
        get_id(t, g, keys[i].key, keys[i].id);
    in->nl = TOKENIZER_NONE;
}

static void set_eog(struct tokenizer *t, int32_t id)
{
    if (id >= 0)
        t->v.attr[id] |= TOK_ATTR_EOG;
}

/* Finds special tokens by their spelling: at[k] is the token spelled spellings[k], or NONE. */
static int find_spellings(int32_t *at, const struct tok_spellings *src, struct err *e)
{
    struct strmap m;
    struct str w;
    uint32_t id, k;
    int rc = 0;
    for (k = 0; k < N_SPELLINGS; k++)
        at[k] = TOKENIZER_NONE;
    if (strmap_init(&m, N_SPELLINGS) < 0)
        return err_set(e, SHOAL_ENOMEM, "tokenizer");
    for (k = 0; k < N_SPELLINGS && rc >= 0; k++)
        rc = strmap_put(&m, spellings[k].text, strlen(spellings[k].text), k);
    while (rc >= 0 && src->next(src->ctx, &id, &w)) {
        if (w.n < 4 || !(*w.p == '<' || *w.p == '[' || *w.p == '_' || *w.p == '\xe2'))
            continue; /* no spelling begins otherwise */
        if (strmap_get(&m, w.p, w.n, &k) && (at[k] < 0 || (int32_t)id < at[k]))
            at[k] = (int32_t)id;
    }
    strmap_fini(&m);
    return rc < 0 ? err_set(e, SHOAL_ENOMEM, "tokenizer") : 0;
}

static bool has_spelling(const int32_t *at, const char *text, int32_t *id)
{
    for (size_t k = 0; k < N_SPELLINGS; k++)
        if (strcmp(spellings[k].text, text) == 0) {
            *id = at[k];
            return at[k] >= 0;
        }
    return false;
}

int tok_vocab_find_special(struct tokenizer *t, const struct tok_spellings *src, struct err *e)
{
    struct tokenizer_info *in = &t->info;
    int32_t *const role[N_ROLES] = {
        [ROLE_EOT] = &in->eot,         [ROLE_EOM] = &in->eom,         [ROLE_FIM_PRE] = &in->fim_pre,
        [ROLE_FIM_SUF] = &in->fim_suf, [ROLE_FIM_MID] = &in->fim_mid, [ROLE_FIM_PAD] = &in->fim_pad,
        [ROLE_FIM_REP] = &in->fim_rep, [ROLE_FIM_SEP] = &in->fim_sep,
    };
    int32_t at[N_SPELLINGS], id, other;
    int rc = find_spellings(at, src, e);
    if (rc < 0)
        return rc;
    for (size_t k = 0; k < N_SPELLINGS; k++) {
        const struct spelling *sp = &spellings[k];
        bool takes = sp->role != ROLE_NONE && *role[sp->role] < 0;
        if (at[k] < 0)
            continue;
        if (takes)
            *role[sp->role] = at[k];
        if (sp->eog)
            set_eog(t, at[k]);
        if (takes || sp->eog) /* some files say it is a word; plain text must not become it */
            t->v.type[at[k]] = TOKEN_TYPE_CONTROL;
    }
    /* Where replies consist of several messages, <|end|> ends only one of them. */
    if (has_spelling(at, "<|end|>", &id) &&
        ((has_spelling(at, "<|return|>", &other) && has_spelling(at, "<|call|>", &other)) ||
         (has_spelling(at, "<|flush|>", &other) && has_spelling(at, "<|calls|>", &other)))) {
        t->v.attr[id] &= (uint8_t)~TOK_ATTR_EOG;
        if (in->eot == id)
            in->eot = TOKENIZER_NONE;
    }
    /* In gemma 4, </s> is a tag of HTML. */
    if (has_spelling(at, "</s>", &id) && has_spelling(at, "<|tool_response>", &other)) {
        t->v.attr[id] &= (uint8_t)~TOK_ATTR_EOG;
        t->v.type[id] = TOKEN_TYPE_NORMAL;
    }
    set_eog(t, in->eos);
    set_eog(t, in->eot);
    set_eog(t, in->eom);
    set_eog(t, in->fim_pad);
    set_eog(t, in->fim_rep);
    set_eog(t, in->fim_sep);
    return 0;
}

static bool is_special(const struct tokenizer *t, uint32_t id)
{
    uint8_t type = t->v.type[id];
    return type == TOKEN_TYPE_CONTROL || type == TOKEN_TYPE_USER_DEFINED ||
           type == TOKEN_TYPE_UNKNOWN;
}

void tok_alphabet_init(struct tok_alphabet *a)
{
    int next = 256;
    for (int i = 0; i < 512; i++)
        a->byte_of[i] = -1;
    for (int b = 0; b < 256; b++) {
        bool prints = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        a->byte_of[prints ? b : next++] = (int16_t)b;
    }
}

bool tok_decode_bytes(char *out, size_t *n_out, const char *text, size_t n,
                      const struct tok_alphabet *a)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    char *o = out;
    while (p < end) {
        uint32_t cp;
        unsigned len = utf8_decode(p, end, &cp);
        if (len == 0 || cp >= 512 || a->byte_of[cp] < 0)
            return false;
        *o++ = (char)a->byte_of[cp];
        p += len;
    }
    *n_out = (size_t)(o - out);
    return true;
}

bool tok_is_byte_spelling(const char *p, size_t n, uint8_t *byte)
{
    unsigned v = 0;
    if (n != 6 || memcmp(p, "<0x", 3) != 0 || p[5] != '>')
        return false;
    for (int i = 3; i < 5; i++) {
        char c = p[i];
        unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                            : 16;
        if (d > 15)
            return false;
        v = v * 16 + d;
    }
    *byte = (uint8_t)v;
    return true;
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
static size_t make_piece(struct tokenizer *t, uint32_t id, struct str w, char *out,
                         const struct tok_alphabet *a, bool *reachable)
{
    bool escaped = t->chars || t->info.kind == TOKENIZER_KIND_WPM;
    uint8_t type = t->v.type[id], byte;
    size_t n = w.n;
    *reachable = false;
    if (type == TOKEN_TYPE_BYTE && tok_is_byte_spelling(w.p, w.n, &byte)) {
        *out = (char)byte;
        if (t->v.byte_id[byte] < 0)
            t->v.byte_id[byte] = (int32_t)id;
        return 1;
    }
    if (is_special(t, id)) {
        memcpy(out, w.p, n);
        *reachable = type == TOKEN_TYPE_USER_DEFINED && plain_ascii(w);
        return n;
    }
    if (escaped) {
        n = tok_unescape(out, w.p, w.n);
        *reachable =
            !memchr(w.p, ' ', w.n); /* a space in the file's own spelling: no text has it */
        return n;
    }
    if (tok_decode_bytes(out, &n, w.p, w.n, a)) {
        *reachable = true;
        return n;
    }
    memcpy(out, w.p, w.n);
    return w.n;
}

int tok_index_init(struct tok_index *x, uint32_t n)
{
    if (n > UINT32_MAX / 4 - 1)
        return SHOAL_ELIMIT;
    x->n_slots = 4 * n + 1; /* one is always free: it ends every search */
    x->n_bits = n > 0 ? 32u - (uint32_t)__builtin_clz(n) : 1;
    x->slots = mem_zalloc_n(x->n_slots, sizeof(*x->slots));
    return x->slots ? 0 : SHOAL_ENOMEM;
}

void tok_index_put(struct tok_index *x, uint64_t h, uint32_t k)
{
    uint32_t i = tok_index_first(x, h);
    while (x->slots[i] != 0)
        i = tok_index_after(x, i);
    x->slots[i] = (uint32_t)h << x->n_bits ^ (k + 1);
}

/* The table from text to token; of two tokens with one piece the first counts. */
int tok_vocab_index(struct tok_vocab *v, struct err *e)
{
    int rc = tok_index_init(&v->plain, v->n);
    if (rc < 0)
        return err_set(e, rc, "vocabulary of %u tokens", v->n);
    /* The table is larger than the caches: ask for the memory of tokens some time before they come.
     */
    enum { AHEAD = 16 };
    uint64_t hashes[AHEAD];
    for (uint32_t next = 0; next < v->n + AHEAD; next++) {
        uint32_t id = next - AHEAD, other;
        if (next >= AHEAD && (v->attr[id] & TOK_ATTR_PLAIN)) {
            uint64_t h = hashes[id % AHEAD];
            if (!tok_find_hashed(v, v->bytes + v->at[id], v->at[id + 1] - v->at[id], h, &other))
                tok_index_put(&v->plain, h, id);
        }
        if (next < v->n) {
            uint64_t h = tok_hash(v->bytes + v->at[next], v->at[next + 1] - v->at[next]);
            hashes[next % AHEAD] = h;
            tok_index_prefetch(&v->plain, h);
        }
    }
    return 0;
}

static int load_pieces(struct tokenizer *t, const struct model_file_value *tokens, struct err *e)
{
    struct tok_vocab *v = &t->v;
    struct tok_alphabet alphabet;
    struct model_file_strings strings = model_file_strings(tokens);
    struct str w;
    size_t total = tokens->n_bytes - (size_t)v->n * sizeof(uint64_t); /* without lengths */
    int n_bytes = 0;
    if (total > UINT32_MAX)
        return err_set(e, SHOAL_ELIMIT, "the vocabulary has more than 4 GiB of text");
    v->bytes = mem_alloc(total + 1);
    if (!v->bytes)
        return err_set(e, SHOAL_ENOMEM, "vocabulary of %u tokens", v->n);
    tok_alphabet_init(&alphabet);
    uint32_t at = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        bool reachable;
        /* no piece is longer than its spelling */
        if (!model_file_strings_next(&strings, &w) || w.n > total - at)
            return err_set(e, SHOAL_EFORMAT, KEY "tokens changed while it was read");
        uint32_t n = (uint32_t)make_piece(t, i, w, v->bytes + at, &alphabet, &reachable);
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
        if (v->byte_id[b] < 0 && tok_find(v, &c, 1, &id))
            v->byte_id[b] = (int32_t)id;
        n_bytes += v->byte_id[b] >= 0;
    }
    t->spells_all = t->info.kind != TOKENIZER_KIND_WPM && n_bytes == 256;
    return 0;
}

static int list_special(struct tokenizer *t, struct err *e)
{
    struct tok_special *sp = &t->special;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->v.n; i++)
        n += is_special(t, i) && tok_text(t, i).n > 0;
    sp->e = mem_zalloc_n(n, sizeof(*sp->e));
    if (!sp->e)
        return err_set(e, SHOAL_ENOMEM, "tokenizer");
    for (uint32_t i = 0; i < t->v.n; i++) {
        struct tok_piece w = tok_text(t, i);
        if (is_special(t, i) && w.n > 0)
            sp->e[sp->n++] = (struct tok_special_entry){w.p, (uint32_t)w.n, i};
    }
    tok_special_index(sp);
    return 0;
}

/* White space around special tokens, which some models take away and no key tells. */
static void set_strip(struct tokenizer *t, const struct model_file *g)
{
    struct str name = {"", 0}, arch = {"", 0};
    const char *mask = NULL;
    (void)model_file_get_str(g, "general.name", &name);
    (void)model_file_get_str(g, "general.architecture", &arch);
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
        struct tok_piece w = tok_text(t, id);
        struct str text = {w.p, w.n};
        if (mask && str_is(text, mask))
            t->v.attr[id] |= TOK_ATTR_LSTRIP;
        if (!mask && phi3 && !str_is(text, "<unk>") && !str_is(text, "<s>") &&
            !str_is(text, "<|endoftext|>"))
            t->v.attr[id] |= TOK_ATTR_RSTRIP;
    }
}

int tok_vocab_alloc(struct tokenizer *t, uint32_t n, struct err *e)
{
    struct tok_vocab *v = &t->v;
    v->n = t->info.n_vocab = n;
    v->at = mem_zalloc_n((size_t)n + 1, sizeof(*v->at));
    v->type = mem_zalloc(n);
    v->attr = mem_zalloc(n);
    t->whole = mem_zalloc_n(n, sizeof(*t->whole));
    if (!v->at || !v->type || !v->attr || !t->whole)
        return err_set(e, SHOAL_ENOMEM, "vocabulary of %u tokens", n);
    memset(v->type, TOKEN_TYPE_NORMAL, n);
    for (int b = 0; b < 256; b++)
        v->byte_id[b] = TOKENIZER_NONE;
    return 0;
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

int tok_vocab_load(struct tokenizer *t, const struct model_file *g, struct err *e)
{
    const struct model_file_value *tokens = NULL;
    int rc = find_tokens(&tokens, g, e);
    if (rc < 0)
        return rc;
    struct tok_vocab *v = &t->v;
    rc = tok_vocab_alloc(t, (uint32_t)tokens->n_elems, e);
    if (rc < 0)
        return rc;
    rc = load_types(t, g, e);
    if (rc < 0)
        return rc;
    if (t->chars && !model_file_find(g, KEY "token_type")) {
        struct model_file_strings strings = model_file_strings(tokens);
        struct str w;
        uint8_t byte;
        for (uint32_t i = 0; model_file_strings_next(&strings, &w); i++)
            if (tok_is_byte_spelling(w.p, w.n, &byte))
                v->type[i] = TOKEN_TYPE_BYTE;
    }
    load_ids(t, g);
    struct in_order order = {model_file_strings(tokens), 0};
    rc = tok_vocab_find_special(t, &(struct tok_spellings){next_spelling, &order}, e);
    if (rc == 0)
        rc = load_pieces(t, tokens, e);
    if (rc == 0)
        rc = list_special(t, e);
    if (rc < 0)
        return rc;
    set_strip(t, g);
    bool b;
    if (model_file_get_bool(g, KEY "add_bos_token", &b))
        t->info.add_bos = b;
    if (model_file_get_bool(g, KEY "add_eos_token", &b))
        t->info.add_eos = b;
    if (model_file_get_bool(g, KEY "add_sep_token", &b))
        t->info.add_sep = b;
    if (model_file_get_bool(g, KEY "add_space_prefix", &b))
        t->info.add_space_prefix = b;
    return 0;
}

void tok_vocab_fini(struct tokenizer *t)
{
    mem_free(t->v.bytes);
    mem_free(t->v.at);
    mem_free(t->v.type);
    mem_free(t->v.attr);
    mem_free(t->v.plain.slots);
    mem_free(t->special.e);
    mem_free(t->piece_bytes);
    mem_free(t->piece_at);
    mem_free((void *)t->whole);
}
