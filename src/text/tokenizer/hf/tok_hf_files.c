/* tok_hf_files.c - tokenizers of folders without a tokenizer.json: vocab.txt (WordPiece),
 * vocab.json with merges.txt (byte-level BPE), spiece.model (SentencePiece), source.spm with
 * vocab.json (Marian).  Their steps are written as the tokenizer.json that they would have, and
 * read from there. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "text/tokenizer/algorithm/tok_bpe.h"
#include "text/tokenizer/algorithm/tok_wpm.h"
#include "text/tokenizer/hf/tok_hf_build.h"
#include "text/tokenizer/tok_charsmap.h"
#include "text/tokenizer/tok_spiece.h"

/* Parses the JSON text that was written into b->json. */
static int set_json(struct tok_hf_build *b, struct buf *text, struct err *e)
{
    b->made = text->rc == 0 ? cJSON_ParseWithLength(buf_str(text), text->len) : NULL;
    b->json = b->made;
    buf_fini(text);
    return b->made ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
}

static const char *truth(bool v)
{
    return v ? "true" : "false";
}

/* ---- special tokens that tokenizer_config.json names ---- */

static const char *const special_keys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                           "pad_token", "cls_token", "mask_token"};
#define N_SPECIAL_KEYS (sizeof(special_keys) / sizeof(special_keys[0]))

/* Adds the special tokens that the configuration names, or else the usual ones of such models, if
 * they are in the vocabulary. b->added has room for them. */
static void add_named(struct tok_hf_build *b, const char *const defaults[N_SPECIAL_KEYS])
{
    for (size_t i = 0; i < N_SPECIAL_KEYS; i++) {
        const cJSON *j = tok_hf_get(b->config, special_keys[i]);
        struct str s = cJSON_IsString(j) ? tok_hf_str(j) : tok_hf_get_str(j, "content");
        if (!s.p && defaults[i])
            s = (struct str){defaults[i], strlen(defaults[i])};
        int32_t id = tok_hf_find(b, s);
        bool there = id < 0;
        for (size_t k = 0; k < b->n_added && !there; k++)
            there = b->added[k].id == (uint32_t)id;
        if (there)
            continue;
        b->added[b->n_added++] =
            (struct tok_hf_added){.text = s,
                                  .id = (uint32_t)id,
                                  .lstrip = tok_hf_get_bool(j, "lstrip", false),
                                  .rstrip = tok_hf_get_bool(j, "rstrip", false),
                                  .special = true};
    }
}

/* ---- vocab.txt ---- */

/* The next line, without its end; false past the last. */
static bool next_line(struct str *rest, struct str *line)
{
    if (rest->n == 0)
        return false;
    const char *nl = memchr(rest->p, '\n', rest->n);
    size_t n = nl ? (size_t)(nl - rest->p) : rest->n, used = nl ? n + 1 : n;
    *line = (struct str){rest->p, n};
    if (n > 0 && line->p[n - 1] == '\r')
        line->n--;
    rest->p += used;
    rest->n -= used;
    return true;
}

static int read_lines(struct tok_hf_build *b, struct str text, struct err *e)
{
    struct str rest = text, line;
    uint64_t n = 0;
    uint32_t id = 0;
    while (next_line(&rest, &line))
        n++;
    if (n > TOK_MAX_VOCAB)
        return err_set(e, SHOAL_ELIMIT, "vocab.txt has %llu lines", (unsigned long long)n);
    int rc = tok_hf_build_reserve(b, n, (uint32_t)n, e);
    while (rc == 0 && next_line(&text, &line)) {
        rc = tok_hf_build_token(b, id++, line, 0);
        if (rc < 0)
            return err_set(e, rc, "vocab.txt with %u lines: %s", b->n, err_text(rc));
    }
    return rc;
}

static int32_t id_of(const struct tok_hf_build *b, const char *key, const char *otherwise)
{
    const cJSON *j = tok_hf_get(b->config, key);
    struct str s = cJSON_IsString(j) ? tok_hf_str(j) : tok_hf_get_str(j, "content");
    return tok_hf_find(b, s.p ? s : (struct str){otherwise, strlen(otherwise)});
}

int tok_hf_read_vocab_txt(struct tok_hf_build *b, struct str text, struct err *e)
{
    static const char *const of_bert[N_SPECIAL_KEYS] = {NULL,    NULL,    "[UNK]", "[SEP]",
                                                        "[PAD]", "[CLS]", "[MASK]"};
    /* MPNet has the pieces of BERT, but the special tokens and the template of RoBERTa */
    static const char *const of_mpnet[N_SPECIAL_KEYS] = {"<s>",   "</s>", "[UNK]", "</s>",
                                                         "<pad>", "<s>",  "<mask>"};
    const bool mpnet = str_has(tok_hf_get_str(b->config, "tokenizer_class"), "MPNet");
    struct tokenizer *t = b->t;
    struct buf json;
    const cJSON *strip = tok_hf_get(b->config, "strip_accents");
    int rc = read_lines(b, text, e);
    if (rc < 0)
        return rc;
    b->added = mem_zalloc_n(N_SPECIAL_KEYS, sizeof(*b->added));
    if (!b->added)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    add_named(b, mpnet ? of_mpnet : of_bert);
    t->info.model = "WordPiece";
    t->info.kind = TOKENIZER_KIND_WPM;
    b->max_word_chars = TOK_WPM_MAX_WORD_CHARS;
    b->unk = id_of(b, "unk_token", "[UNK]");
    b->prefix = STR("##");
    int32_t cls = id_of(b, "cls_token", mpnet ? "<s>" : "[CLS]");
    int32_t sep = id_of(b, "sep_token", mpnet ? "</s>" : "[SEP]");
    buf_init(&json, 4096);
    buf_printf(&json,
               "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":%s,"
               "\"handle_chinese_chars\":%s,\"strip_accents\":%s},"
               "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
               "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
               truth(tok_hf_get_bool(b->config, "do_lower_case", true)),
               truth(tok_hf_get_bool(b->config, "tokenize_chinese_chars", true)),
               cJSON_IsBool(strip) ? truth(cJSON_IsTrue(strip)) : "null");
    if (cls >= 0 && sep >= 0)
        buf_printf(&json,
                   ",\"post_processor\":{\"type\":\"%sProcessing\",\"cls\":[\"\",%d],"
                   "\"sep\":[\"\",%d]}",
                   mpnet ? "Roberta" : "Bert", cls, sep);
    buf_puts(&json, "}");
    return set_json(b, &json, e);
}

/* ---- vocab.json and merges.txt ---- */

static int read_merge_lines(struct tok_hf_build *b, struct str text, struct err *e)
{
    struct str rest = text, line;
    size_t n = 0;
    while (next_line(&rest, &line))
        n++;
    b->merges = mem_zalloc_n(n + 1, sizeof(*b->merges));
    if (!b->merges)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu merges", n);
    for (size_t i = 0; next_line(&text, &line); i++) {
        struct tok_hf_merge *m = &b->merges[b->n_merges];
        if (line.n == 0 || (i == 0 && line.n >= 8 && memcmp(line.p, "#version", 8) == 0))
            continue;
        tok_bpe_split_merge(line, &m->left, &m->right);
        b->n_merges++;
    }
    return 0;
}

#define QWEN2                                                                                      \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"        \
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|"             \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"      \
    "\"behavior\":\"Isolated\"},"                                                                  \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}"

int tok_hf_read_vocab_json(struct tok_hf_build *b, struct str vocab, struct str merges,
                           struct err *e)
{
    struct str class = tok_hf_get_str(b->config, "tokenizer_class");
    struct str model = tok_hf_get_str(b->model, "model_type"); /* older folders name no class */
    bool qwen2 = str_has(class, "Qwen2");
    bool roberta = str_has(class, "Roberta") || str_has(class, "Bart") ||
                   str_has(class, "Longformer") || str_is(model, "bart") ||
                   str_is(model, "roberta");
    const char *defaults[N_SPECIAL_KEYS] = {
        "<|endoftext|>", "<|endoftext|>", NULL, NULL, NULL, NULL, NULL};
    static const char *const of_roberta[N_SPECIAL_KEYS] = {"<s>",   "</s>", "<unk>", "</s>",
                                                           "<pad>", "<s>",  "<mask>"};
    struct tokenizer *t = b->t;
    struct buf json;
    if (str_has(class, "CLIP"))
        return err_set(e, SHOAL_EUNSUPPORTED, "tokenizer_class \"%.64s\" is not supported",
                       class.p);
    b->made_vocab = cJSON_ParseWithLength(vocab.p, vocab.n);
    if (!cJSON_IsObject(b->made_vocab))
        return err_set(e, SHOAL_EFORMAT, "vocab.json is not a JSON object");
    t->info.model = "BPE";
    t->info.kind = TOKENIZER_KIND_BPE;
    b->unk = TOKENIZER_NONE;
    int rc = read_merge_lines(b, merges, e);
    if (rc == 0)
        rc = tok_hf_read_vocab_object(
            b, b->made_vocab, tok_hf_get(b->config, "added_tokens_decoder"), N_SPECIAL_KEYS, e);
    if (rc < 0)
        return rc;
    add_named(b, roberta ? of_roberta : defaults);
    buf_init(&json, 8192);
    buf_puts(&json, "{\"decoder\":{\"type\":\"ByteLevel\"},");
    if (qwen2)
        buf_puts(&json, "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":" QWEN2 ",");
    else
        buf_printf(&json, "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":%s},",
                   truth(tok_hf_get_bool(b->config, "add_prefix_space", false)));
    int32_t cls = id_of(b, "cls_token", "<s>"), sep = id_of(b, "sep_token", "</s>");
    if (roberta && cls >= 0 && sep >= 0)
        buf_printf(&json,
                   "\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"\",%d],"
                   "\"sep\":[\"\",%d]}}",
                   cls, sep);
    else
        buf_puts(&json, "\"post_processor\":{\"type\":\"ByteLevel\"}}");
    return set_json(b, &json, e);
}

/* ---- spiece.model ---- */

/* <extra_id_0> and so on, which T5 counts down from the end of the vocabulary. */
static int name_extra(struct tok_hf_build *b, uint32_t first, uint32_t n, struct err *e)
{
    const size_t room = 24;
    b->names = mem_zalloc_n(n + 1, room);
    if (!b->names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    for (uint32_t i = 0; i < n; i++) {
        char *name = b->names + i * room;
        int len = snprintf(name, room, "<extra_id_%u>", n - 1 - i);
        b->added[b->n_added++] =
            (struct tok_hf_added){.text = {name, (size_t)len}, .id = first + i, .special = true};
    }
    return 0;
}

/* XLM-RoBERTa numbers the pieces <s>, <pad>, </s>, <unk>, then the others one higher than the file,
 * where <unk>, <s>, </s> are the first; <mask> is the last. */
static uint32_t piece_id(uint32_t i, bool xlmr)
{
    static const uint32_t first[3] = {3, 0, 2};
    return !xlmr ? i : i < 3 ? first[i] : i + 1;
}

/* Adds the two tokens that the file does not have. */
static int add_xlmr(struct tok_hf_build *b, uint32_t n_pieces)
{
    const struct str pad = {"<pad>", 5}, mask = {"<mask>", 6};
    b->added[b->n_added++] = (struct tok_hf_added){.text = pad, .id = 1, .special = true};
    b->added[b->n_added++] =
        (struct tok_hf_added){.text = mask, .id = n_pieces + 1, .special = true, .lstrip = true};
    b->raw[1] = pad;
    b->raw[n_pieces + 1] = mask;
    return 0;
}

static int take_pieces(struct tok_hf_build *b, const struct tok_spiece *m, uint32_t n_extra,
                       bool xlmr, struct err *e)
{
    uint32_t more = xlmr ? 2 : n_extra;
    int rc = tok_hf_build_reserve(b, (uint64_t)m->n_pieces + more, m->n_pieces + more, e);
    if (rc < 0)
        return rc;
    b->added = mem_zalloc_n((size_t)m->n_pieces + more + N_SPECIAL_KEYS, sizeof(*b->added));
    if (!b->added)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", b->n);
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const struct tok_spiece_piece *p = &m->pieces[i];
        bool control = p->type == TOK_SPIECE_CONTROL || p->type == TOK_SPIECE_UNKNOWN;
        uint32_t id = piece_id(i, xlmr);
        rc = tok_hf_build_token(b, id, p->text, p->score);
        if (rc < 0)
            return err_set(e, rc, "vocabulary of %u tokens: %s", b->n, err_text(rc));
        if (p->type == TOK_SPIECE_UNKNOWN)
            b->unk = (int32_t)id;
        if (p->type == TOK_SPIECE_UNUSED || p->type == TOK_SPIECE_UNKNOWN)
            b->in_model[id] = false;
        if ((control || p->type == TOK_SPIECE_USER_DEFINED) && p->text.n > 0)
            b->added[b->n_added++] = (struct tok_hf_added){
                .text = p->text, .id = id, .special = control, .normalized = !control};
    }
    return xlmr ? add_xlmr(b, m->n_pieces) : name_extra(b, m->n_pieces, n_extra, e);
}

static void add_norm(struct tok_hf_build *b, enum tok_hf_norm_kind kind)
{
    b->hf->norm[b->hf->n_norm++].kind = kind;
}

/* What ALBERT does to a text before SentencePiece.  (Quotes like `` and '' stay: they are marks of
 * TeX, which its tokenizer alone replaces.) */
static void add_albert_norms(struct tok_hf_build *b)
{
    if (!tok_hf_get_bool(b->config, "keep_accents", false)) {
        add_norm(b, TOK_HF_NORM_NFKD);
        add_norm(b, TOK_HF_NORM_STRIP_ACCENTS);
    }
    if (tok_hf_get_bool(b->config, "do_lower_case", true))
        add_norm(b, TOK_HF_NORM_LOWERCASE);
}

static int add_spiece_norm(struct tok_hf_build *b, const struct tok_spiece *m, struct err *e)
{
    if (str_has(tok_hf_get_str(b->config, "tokenizer_class"), "Albert"))
        add_albert_norms(b);
    struct tok_hf_norm *h = &b->hf->norm[b->hf->n_norm++];
    h->kind = TOK_HF_NORM_SPIECE;
    h->opts = (m->dummy_prefix ? TOK_HF_SPIECE_DUMMY_PREFIX : 0u) |
              (m->remove_extra ? TOK_HF_SPIECE_EXTRA_SPACES : 0u) |
              (m->escape ? TOK_HF_SPIECE_ESCAPE : 0u);
    return m->charsmap.n > 0 ? tok_charsmap_create(&h->charsmap, m->charsmap.p, m->charsmap.n, e)
                             : 0;
}

/* The template by the class of the tokenizer, since the file does not have one. */
static void put_spiece_template(struct tok_hf_build *b, struct buf *json,
                                const struct tok_spiece *m)
{
    struct str class = tok_hf_get_str(b->config, "tokenizer_class");
    int32_t cls = id_of(b, "cls_token", "[CLS]"), sep = id_of(b, "sep_token", "[SEP]");
    bool bos = tok_hf_get_bool(b->config, "add_bos_token", str_has(class, "Llama")) && m->bos >= 0;
    bool eos = tok_hf_get_bool(b->config, "add_eos_token", !str_has(class, "Llama")) && m->eos >= 0;
    bool xlmr = str_has(class, "XLMRoberta");
    if (xlmr || (cls >= 0 && sep >= 0)) {
        buf_printf(json,
                   ",\"post_processor\":{\"type\":\"%sProcessing\",\"cls\":[\"\",%d],"
                   "\"sep\":[\"\",%d],\"trim_offsets\":false}",
                   xlmr ? "Roberta" : "Bert", xlmr ? m->bos : cls, xlmr ? m->eos : sep);
        return;
    }
    buf_puts(json, ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":{");
    buf_printf(json, "\"bos\":{\"ids\":[%d]},\"eos\":{\"ids\":[%d]}}", m->bos, m->eos);
    for (int pair = 0; pair < 2; pair++) {
        buf_puts(json, pair ? ",\"pair\":[" : ",\"single\":[");
        for (int i = 0; i <= pair; i++) {
            if (bos)
                buf_printf(json, "%s{\"SpecialToken\":{\"id\":\"bos\"}}", i ? "," : "");
            buf_printf(json, "%s{\"Sequence\":{\"id\":\"%c\"}}", bos || i ? "," : "", 'A' + i);
            if (eos)
                buf_puts(json, ",{\"SpecialToken\":{\"id\":\"eos\"}}");
        }
        buf_puts(json, "]");
    }
    buf_puts(json, "}");
}

#define SPIECE_DECODER                                                                             \
    "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","                     \
    "\"pattern\":{\"String\":\"\\u2581\"},\"content\":\" \"},"                                     \
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}"

int tok_hf_read_spiece(struct tok_hf_build *b, const void *bytes, size_t n, struct err *e)
{
    static const char *const none[N_SPECIAL_KEYS] = {NULL};
    struct str class = tok_hf_get_str(b->config, "tokenizer_class");
    const cJSON *extra = tok_hf_get(b->config, "extra_ids");
    /* these number the pieces in their own way, which no file documents */
    static const char *const renumbered[] = {"Camembert", "Barthez",       "MBart", "Nllb",
                                             "PLBart",    "XLMProphetNet", "XGLM",  "M2M100",
                                             "BartPho",   "SeamlessM4T"};
    bool xlmr = str_has(class, "XLMRoberta");
    uint32_t n_extra = str_has(class, "T5") ? 100 : 0;
    struct tokenizer *t = b->t;
    struct tok_spiece m;
    struct buf json;
    if (cJSON_IsNumber(extra) && extra->valuedouble >= 0 && extra->valuedouble <= 10000)
        n_extra = (uint32_t)extra->valuedouble;
    for (size_t i = 0; i < sizeof(renumbered) / sizeof(renumbered[0]); i++)
        if (str_has(class, renumbered[i]))
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "tokenizer_class \"%.64s\" without a tokenizer.json is not supported",
                           class.p);
    b->unk = TOKENIZER_NONE;
    int rc = tok_spiece_read(&m, bytes, n, e);
    if (rc == 0 && xlmr && (m.n_pieces < 4 || m.unk != 0 || m.bos != 1 || m.eos != 2))
        rc = err_set(e, SHOAL_EFORMAT, "XLM-RoBERTa's model must begin with <unk>, <s>, </s>");
    if (rc == 0)
        rc = take_pieces(b, &m, n_extra, xlmr, e);
    if (rc == 0 && xlmr) {
        m.bos = 0;
        m.pad = 1;
        n_extra = 0;
    }
    if (rc == 0)
        rc = add_spiece_norm(b, &m, e);
    if (rc == 0) {
        t->info.model = m.bpe ? "SentencePiece BPE" : "Unigram";
        t->info.kind = m.bpe ? TOKENIZER_KIND_SPM : TOKENIZER_KIND_UNIGRAM;
        b->byte_fallback = m.byte_fallback;
        b->bos = m.bos;
        b->eos = m.eos;
        b->pad = m.pad;
        for (uint32_t i = 0; i < n_extra; i++)
            b->raw[m.n_pieces + i] = b->added[b->n_added - n_extra + i].text;
        add_named(b, none);
        buf_init(&json, 4096);
        buf_puts(&json, SPIECE_DECODER);
        if (m.dummy_prefix)
            buf_puts(&json, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
        buf_puts(&json, "]}");
        put_spiece_template(b, &json, &m);
        buf_puts(&json, "}");
        rc = set_json(b, &json, e);
    }
    tok_spiece_fini(&m);
    return rc;
}

/* ---- source.spm and vocab.json ---- */

static bool is_language(struct str s)
{
    return s.n > 4 && memcmp(s.p, ">>", 2) == 0 && memcmp(s.p + s.n - 2, "<<", 2) == 0;
}

/* vocab.json numbers the pieces of both languages; those of the source's model are found in texts,
 * others only where a run of unknown characters spells one.  A piece of that model without a number
 * is found as well, and becomes the unknown token: such pieces get the numbers behind all others.
 */
static int number_pieces(struct tok_hf_build *b, const struct tok_spiece *m, struct err *e)
{
    uint64_t n = 0, n_ids = 0;
    uint32_t id, n_more = 0;
    int rc = 0;
    for (const cJSON *c = b->made_vocab->child; c; c = c->next, n++) {
        if (!tok_hf_is_id(c, &id))
            return err_set(e, SHOAL_EFORMAT, "the id of \"%.64s\" is not a number in range",
                           c->string ? c->string : "");
        n_ids = id >= n_ids ? (uint64_t)id + 1 : n_ids;
    }
    if (n_ids + m->n_pieces > TOK_MAX_VOCAB)
        return err_set(e, SHOAL_ELIMIT, "a vocabulary of %llu tokens and %u pieces",
                       (unsigned long long)n_ids, m->n_pieces);
    rc = tok_hf_build_reserve(b, n + m->n_pieces, (uint32_t)n_ids + m->n_pieces, e);
    if (rc < 0)
        return rc;
    for (const cJSON *c = b->made_vocab->child; c && rc == 0; c = c->next)
        if (tok_hf_is_id(c, &id))
            rc = tok_hf_build_token(b, id, (struct str){c->string, strlen(c->string)}, -INFINITY);
    for (uint32_t i = 0; i < m->n_pieces && rc == 0; i++) {
        const struct tok_spiece_piece *p = &m->pieces[i];
        if (p->text.n == 0 || (p->type != TOK_SPIECE_NORMAL && p->type != TOK_SPIECE_USER_DEFINED))
            continue;
        int32_t known = tok_hf_find(b, p->text);
        id = known >= 0 ? (uint32_t)known : (uint32_t)n_ids + n_more++;
        b->raw[id] = p->text; /* cannot be found by name: it is no token */
        b->in_model[id] = true;
        b->scores[id] = p->score;
    }
    b->n = (uint32_t)n_ids + n_more;
    b->n_unnumbered = n_more;
    return rc < 0 ? err_set(e, rc, "a vocabulary of %u tokens: %s", b->n, err_text(rc)) : 0;
}

/* Special tokens, and languages to translate into (">>fra<<"), which are found where a text begins
 * with one. */
static int add_marian(struct tok_hf_build *b, struct err *e)
{
    static const char *const usual[N_SPECIAL_KEYS] = {NULL,    "</s>", "<unk>", NULL,
                                                      "<pad>", NULL,   NULL};
    size_t n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        n += b->raw[i].p && is_language(b->raw[i]);
    b->added = mem_zalloc_n(n + N_SPECIAL_KEYS, sizeof(*b->added));
    if (!b->added)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    add_named(b, usual);
    for (uint32_t i = 0; i < b->n; i++)
        if (b->raw[i].p && is_language(b->raw[i]))
            b->added[b->n_added++] =
                (struct tok_hf_added){.text = b->raw[i], .id = i, .first_only = true};
    b->unk = id_of(b, "unk_token", "<unk>");
    b->eos = id_of(b, "eos_token", "</s>");
    b->pad = id_of(b, "pad_token", "<pad>");
    return b->unk >= 0 && b->eos >= 0
               ? 0
               : err_set(e, SHOAL_EFORMAT, "there is no unknown token or no end token");
}

int tok_hf_read_marian(struct tok_hf_build *b, const void *bytes, size_t n, struct str vocab,
                       struct err *e)
{
    struct tokenizer *t = b->t;
    struct tok_spiece m;
    struct buf json;
    if (tok_hf_get_bool(b->config, "separate_vocabs", false))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "tokenizer_config.json: separate_vocabs is not supported: only one "
                       "vocabulary for both languages");
    int rc = tok_spiece_read(&m, bytes, n, e);
    if (rc < 0)
        return err_wrap(e, "source.spm");
    b->made_vocab = cJSON_ParseWithLength(vocab.p, vocab.n);
    if (m.bpe)
        rc = err_set(e, SHOAL_EUNSUPPORTED, "source.spm: a model of pairs is not supported");
    else if (!cJSON_IsObject(b->made_vocab))
        rc = err_set(e, SHOAL_EFORMAT, "vocab.json is not a JSON object");
    if (rc == 0)
        rc = number_pieces(b, &m, e);
    if (rc == 0)
        rc = add_marian(b, e);
    if (rc == 0)
        rc = add_spiece_norm(b, &m, e);
    if (rc == 0) {
        t->info.model = "Unigram";
        t->info.kind = TOKENIZER_KIND_UNIGRAM;
        b->strip_ends = true;
        buf_init(&json, 4096);
        buf_puts(&json, SPIECE_DECODER "]}");
        buf_printf(&json,
                   ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":{"
                   "\"eos\":{\"ids\":[%d]}},\"single\":[{\"Sequence\":{\"id\":\"A\"}},"
                   "{\"SpecialToken\":{\"id\":\"eos\"}}],\"pair\":[{\"Sequence\":{\"id\":\"A\"}},"
                   "{\"Sequence\":{\"id\":\"B\"}},{\"SpecialToken\":{\"id\":\"eos\"}}]}}",
                   b->eos);
        rc = set_json(b, &json, e);
    }
    tok_spiece_fini(&m);
    return rc;
}
