/* tokenizer.c - see tokenizer.h.  Creation, special tokens in texts, decoding; the kinds are in
 * tok_spm.c, tok_bpe.c and tok_wpm.c. */
#include "text/tokenizer/tokenizer.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "format/model_file.h"
#include "text/tokenizer/tok_hf.h"
#include "text/tokenizer/tok_unigram.h"

void tok_ids_init(struct tok_ids *a, size_t max_ids)
{
    *a = (struct tok_ids){.max = max_ids};
}

void tok_ids_fini(struct tok_ids *a)
{
    mem_free(a->ids);
    *a = (struct tok_ids){0};
}

static int ids_grow(struct tok_ids *a)
{
    size_t cap = a->cap ? a->cap + a->cap / 2 : 64, bytes;
    if (a->n >= a->max)
        return SHOAL_ELIMIT;
    if (cap > a->max)
        cap = a->max;
    int32_t *bigger = mem_mul(&bytes, cap, sizeof(*bigger)) ? mem_realloc(a->ids, bytes) : NULL;
    if (!bigger)
        return SHOAL_ENOMEM;
    a->ids = bigger;
    a->cap = cap;
    return 0;
}

int tok_ids_push(struct tok_ids *a, int32_t id)
{
    if (a->n == a->cap) {
        int rc = ids_grow(a);
        if (rc < 0)
            return rc;
    }
    a->ids[a->n++] = id;
    return 0;
}

/* ---- creation ---- */

static int copy_strings(struct tokenizer *t, const struct model_file *g, struct str model,
                        struct err *e)
{
    struct str pre = {"", 0}, chat = {"", 0};
    (void)model_file_get_str(g, "tokenizer.ggml.pre", &pre);
    bool has_chat = model_file_get_str(g, "tokenizer.chat_template", &chat);
    t->strings = mem_zalloc(model.n + pre.n + chat.n + 3);
    if (!t->strings)
        return err_set(e, SHOAL_ENOMEM, "tokenizer");
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
static int choose_kind(struct tokenizer *t, struct err *e)
{
    struct tokenizer_info *in = &t->info;
    const char *pre = in->pre;
    if (strcmp(in->model, "llama") == 0) {
        in->kind = TOKENIZER_KIND_SPM;
        in->add_bos = in->add_space_prefix = t->chars = true;
        return 0;
    }
    if (strcmp(in->model, "bert") == 0) {
        in->kind = TOKENIZER_KIND_WPM;
        in->add_bos = in->add_sep = true;
        return 0;
    }
    if (strcmp(in->model, "gemma4") == 0)
        pre = "gemma4";
    else if (strcmp(in->model, "gpt2") != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "tokenizer model \"%.64s\" is not supported",
                       in->model);
    in->kind = TOKENIZER_KIND_BPE;
    int rc = pretok_create(&t->pretok, *pre ? pre : "default", PRETOK_FAST, e);
    if (rc < 0)
        return rc;
    unsigned traits = pretok_traits(t->pretok);
    in->add_bos = traits & PRETOK_ADD_BOS;
    in->add_sep = traits & PRETOK_ADD_SEP;
    t->ignore_merges = traits & PRETOK_IGNORE_MERGES;
    t->chars = traits & PRETOK_CHARS;
    t->newline_runs = traits & PRETOK_NEWLINE_RUNS;
    return 0;
}

/* What a lone newline becomes, where no byte token says it. */
static int find_newline(struct tokenizer *t, struct err *e)
{
    struct tok_ids ids;
    tok_ids_init(&ids, 8);
    int rc = tokenizer_encode(t, &ids, "\n", 1, 0, e);
    if (rc == 0 && ids.n > 0)
        t->info.nl = ids.ids[0];
    tok_ids_fini(&ids);
    return rc;
}

static int load(struct tokenizer *t, const struct model_file *g, struct err *e)
{
    struct str model;
    if (hf_present(g))
        return hf_load(t, g, e);
    if (!model_file_get_str(g, "tokenizer.ggml.model", &model) || model.n == 0)
        return err_set(e, SHOAL_EFORMAT, "the file has no tokenizer (no tokenizer.ggml.model)");
    int rc = copy_strings(t, g, model, e);
    if (rc == 0)
        rc = choose_kind(t, e);
    if (rc == 0)
        rc = tok_vocab_load(t, g, e);
    if (rc < 0)
        return rc;
    t->trim_spans = true;
    t->model_unk = tokenizer_is_eog(t, t->info.unk) ? TOKENIZER_NONE : t->info.unk;
    switch (t->info.kind) {
    case TOKENIZER_KIND_SPM:
        rc = spm_load(t, g, e);
        break;
    case TOKENIZER_KIND_BPE:
        rc = bpe_load(t, g, e);
        if (rc == 0 && (pretok_traits(t->pretok) & PRETOK_FORCE_BOS))
            t->info.add_bos = true;
        if (rc == 0)
            rc = find_newline(t, e);
        break;
    case TOKENIZER_KIND_WPM:
        rc = wpm_load(t, g, e);
        break;
    case TOKENIZER_KIND_UNIGRAM: /* not in GGUF */
    case TOKENIZER_KIND_WORDS:
        break;
    }
    tok_templates_from_info(t);
    return rc;
}

int tokenizer_create(struct tokenizer **out, const struct model_file *g, struct err *e)
{
    struct tokenizer *t = mem_zalloc(sizeof(*t));
    *out = NULL;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "tokenizer");
    int rc = load(t, g, e);
    model_file_trim_metadata(g); /* what was needed of it is copied */
    if (rc == 0) {
        *out = t;
        t = NULL;
    }
    tokenizer_destroy(t);
    return rc;
}

void tokenizer_destroy(struct tokenizer *t)
{
    if (!t)
        return;
    bpe_fini(t);
    tok_vocab_fini(t);
    unigram_destroy(t->unigram);
    tok_hf_destroy(t->hf);
    mem_free(t->prio);
    mem_free(t->strings);
    mem_free(t);
}

const struct tokenizer_info *tokenizer_info(const struct tokenizer *t)
{
    return &t->info;
}

const char *tokenizer_kind_name(enum tokenizer_kind kind)
{
    static const char *const names[] = {"spm", "bpe", "wpm", "unigram", "words"};
    return names[kind];
}

/* ---- decoding ---- */

enum token_type tokenizer_token_type(const struct tokenizer *t, int32_t id)
{
    if (id < 0 || (uint32_t)id >= t->v.n)
        return TOKEN_TYPE_UNKNOWN;
    return t->v.type[id];
}

bool tokenizer_is_eog(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->v.n && (t->v.attr[id] & TOK_ATTR_EOG);
}

int32_t tokenizer_find(const struct tokenizer *t, const char *p, size_t n)
{
    uint32_t id;
    int32_t special = tok_special_find(&t->special, p, n);
    if (special >= 0)
        return special;
    return tok_find(&t->v, p, n, &id) ? (int32_t)id : TOKENIZER_NONE;
}

struct tok_piece tokenizer_piece(const struct tokenizer *t, int32_t id, unsigned flags)
{
    struct tok_piece none = {"", 0};
    if (id < 0 || (uint32_t)id >= t->v.n)
        return none;
    bool hidden = t->v.type[id] == TOKEN_TYPE_CONTROL || t->v.type[id] == TOKEN_TYPE_UNKNOWN;
    if (hidden && !(flags & TOKENIZER_RENDER_SPECIAL))
        return none;
    if (!t->piece_at)
        return tok_text(t, (uint32_t)id);
    return (struct tok_piece){t->piece_bytes + t->piece_at[id],
                              t->piece_at[id + 1] - t->piece_at[id]};
}

/* Does encode put a space in front of the text that follows this token (NONE: of a whole text)? */
static bool space_follows(const struct tokenizer *t, int32_t prev)
{
    if (t->hf ? !t->hf->strip_first
              : !t->info.add_space_prefix && t->info.kind != TOKENIZER_KIND_WPM)
        return false;
    if (prev < 0)
        return true;
    enum token_type type = tokenizer_token_type(t, prev);
    if (prev == t->info.unk || type == TOKEN_TYPE_UNKNOWN)
        return t
            ->spells_all; /* then it came from its name in the text; else from an unknown word */
    return type == TOKEN_TYPE_CONTROL || type == TOKEN_TYPE_USER_DEFINED;
}

/* The piece of id at its place: with the added space taken away. */
static struct tok_piece next_piece(const struct tokenizer *t, int32_t id, unsigned flags,
                                   bool *strip)
{
    struct tok_piece w = tokenizer_piece(t, id, flags);
    if (t->hf) { /* its decoders look at the first visible token only */
        if (*strip && w.n > 0 && *w.p == ' ') {
            w.p++;
            w.n--;
        }
        *strip &= w.n == 0 && tokenizer_piece(t, id, flags).n == 0;
        return w;
    }
    bool plain = !space_follows(t, id);
    if (*strip && plain && w.n > 0 && *w.p == ' ') {
        w.p++;
        w.n--;
    }
    *strip = space_follows(t, id);
    return w;
}

void tokenizer_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n,
                      unsigned flags)
{
    bool strip = space_follows(t, TOKENIZER_NONE);
    for (size_t i = 0; i < n; i++) {
        struct tok_piece w = next_piece(t, ids[i], flags, &strip);
        buf_put(out, w.p, w.n);
    }
}

void tok_stream_init(struct tok_stream *s, const struct tokenizer *t, int32_t prev, unsigned flags)
{
    *s = (struct tok_stream){.t = t, .flags = flags, .strip_space = space_follows(t, prev)};
}

void tok_stream_push(struct tok_stream *s, struct buf *out, int32_t id)
{
    struct tok_piece w = next_piece(s->t, id, s->flags, &s->strip_space);
    utf8_stream_push(&s->utf8, out, w.p, w.n);
}

void tok_stream_flush(struct tok_stream *s, struct buf *out)
{
    utf8_stream_flush(&s->utf8, out);
}
