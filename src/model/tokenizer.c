/* tokenizer.c - see tokenizer.h.  Creation, special tokens in texts, decoding; the kinds are in
 * tok_spm.c, tok_bpe.c and tok_wpm.c. */
#include "model/tokenizer.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/gguf.h"
#include "model/tok_internal.h"

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

void tok_scratch_fini(struct tok_scratch *s)
{
    mem_free(s->start);
    mem_free(s->heap);
    mem_free(s->text);
    pretok_scratch_fini(&s->pre);
}

int tok_scratch_text(struct tok_scratch *s, size_t n)
{
    if (n <= s->cap_text)
        return 0;
    char *bigger = mem_realloc(s->text, n);
    if (!bigger)
        return SHOAL_ENOMEM;
    s->text = bigger;
    s->cap_text = n;
    return 0;
}

/* ---- creation ---- */

static int copy_strings(struct tokenizer *t, const struct gguf *g, struct gguf_str model,
                        struct err *e)
{
    struct gguf_str pre = {"", 0}, chat = {"", 0};
    (void)gguf_get_str(g, "tokenizer.ggml.pre", &pre);
    bool has_chat = gguf_get_str(g, "tokenizer.chat_template", &chat);
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

static int load(struct tokenizer *t, const struct gguf *g, struct err *e)
{
    struct gguf_str model;
    if (!gguf_get_str(g, "tokenizer.ggml.model", &model) || model.n == 0)
        return err_set(e, SHOAL_EFORMAT, "the file has no tokenizer (no tokenizer.ggml.model)");
    int rc = copy_strings(t, g, model, e);
    if (rc == 0)
        rc = choose_kind(t, e);
    if (rc == 0)
        rc = tok_vocab_load(t, g, e);
    if (rc < 0)
        return rc;
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
    }
    t->info.add_bos &= t->info.bos >= 0;
    t->info.add_eos &= t->info.eos >= 0;
    t->info.add_sep &= t->info.sep >= 0;
    return rc;
}

int tokenizer_create(struct tokenizer **out, const struct gguf *g, struct err *e)
{
    struct tokenizer *t = mem_zalloc(sizeof(*t));
    *out = NULL;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "tokenizer");
    int rc = load(t, g, e);
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
    static const char *const names[] = {"spm", "bpe", "wpm"};
    return names[kind];
}

/* ---- encoding ---- */

/* The longest special token at p, or NONE.  The list is sorted, so each byte narrows a range. */
static int32_t special_at(const struct tokenizer *t, const char *p, size_t n, unsigned flags)
{
    const struct tok_special *sp = &t->special;
    uint32_t lo = sp->first[(uint8_t)*p], hi = sp->first[(uint8_t)*p + 1];
    int32_t found = TOKENIZER_NONE;
    for (size_t k = 1; lo < hi; k++) {
        /* entries in [lo, hi) agree with p in their first k bytes; the shortest stands first */
        for (; lo < hi && tok_text(t, sp->ids[lo]).n == k; lo++) {
            uint32_t id = sp->ids[lo];
            bool always = t->v.type[id] == TOKENIZER_TYPE_USER_DEFINED;
            bool again = found >= 0 && tok_text(t, (uint32_t)found).n == k;
            if ((always || (flags & TOKENIZER_PARSE_SPECIAL)) && !again)
                found = (int32_t)id;
        }
        if (k == n)
            break;
        uint32_t end = hi;
        for (uint32_t size = hi - lo; size > 0;) { /* first with byte k >= p[k] */
            uint32_t half = size / 2;
            if ((uint8_t)tok_text(t, sp->ids[lo + half]).p[k] < (uint8_t)p[k]) {
                lo += half + 1;
                size -= half + 1;
            } else {
                size = half;
            }
        }
        hi = lo;
        for (uint32_t size = end - lo; size > 0;) { /* first with byte k > p[k] */
            uint32_t half = size / 2;
            if ((uint8_t)tok_text(t, sp->ids[hi + half]).p[k] <= (uint8_t)p[k]) {
                hi += half + 1;
                size -= half + 1;
            } else {
                size = half;
            }
        }
    }
    return found;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int encode_plain(struct tok_scratch *s, const char *p, size_t n, bool after_special)
{
    if (n == 0)
        return 0;
    switch (s->t->info.kind) {
    case TOKENIZER_KIND_SPM:
        return spm_encode(s, p, n, s->t->info.add_space_prefix && after_special);
    case TOKENIZER_KIND_BPE:
        return bpe_encode(s, p, n);
    case TOKENIZER_KIND_WPM:
        return wpm_encode(s, p, n);
    }
    return SHOAL_EINTERNAL;
}

/* Special tokens apart, the text between them to its kind. */
static int encode_text(struct tok_scratch *s, const char *p, size_t n, unsigned flags)
{
    const struct tokenizer *t = s->t;
    const char *plain = p, *end = p + n;
    bool after_special = true;
    while (p < end) {
        int32_t id = TOKENIZER_NONE;
        if (t->special.first[(uint8_t)*p] < t->special.first[(uint8_t)*p + 1])
            id = special_at(t, p, (size_t)(end - p), flags);
        if (id < 0) {
            p++;
            continue;
        }
        const char *stop = p;
        if (t->v.attr[id] & TOK_ATTR_LSTRIP)
            while (stop > plain && is_space(stop[-1]))
                stop--;
        int rc = encode_plain(s, plain, (size_t)(stop - plain), after_special);
        if (rc == 0)
            rc = tok_ids_push(s->out, id);
        if (rc < 0)
            return rc;
        p += tok_text(t, (uint32_t)id).n;
        if (t->v.attr[id] & TOK_ATTR_RSTRIP)
            while (p < end && is_space(*p))
                p++;
        plain = p;
        after_special = true;
    }
    return encode_plain(s, plain, (size_t)(end - plain), after_special);
}

int tokenizer_encode(const struct tokenizer *t, struct tok_ids *out, const char *text, size_t n,
                     unsigned flags, struct err *e)
{
    const struct tokenizer_info *in = &t->info;
    struct tok_scratch s = {.t = t, .out = out};
    size_t before = out->n;
    bool add = flags & TOKENIZER_ADD_SPECIAL;
    int rc = n > TOK_MAX_TEXT ? SHOAL_ELIMIT : 0;
    if (rc == 0 && add && in->add_bos)
        rc = tok_ids_push(out, in->bos);
    if (rc == 0)
        rc = encode_text(&s, text, n, flags);
    if (rc == 0 && add && in->add_eos)
        rc = tok_ids_push(out, in->eos);
    if (rc == 0 && add && in->add_sep && in->kind == TOKENIZER_KIND_WPM)
        rc = tok_ids_push(out, in->sep);
    tok_scratch_fini(&s);
    if (rc < 0) {
        out->n = before;
        return err_set(e, rc, "cannot tokenize a text of %zu bytes: %s", n,
                       rc == SHOAL_ELIMIT ? "more tokens than allowed" : err_text(rc));
    }
    return 0;
}

/* ---- decoding ---- */

enum tokenizer_type tokenizer_type(const struct tokenizer *t, int32_t id)
{
    if (id < 0 || (uint32_t)id >= t->v.n)
        return TOKENIZER_TYPE_UNKNOWN;
    return t->v.type[id];
}

bool tokenizer_is_eog(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->v.n && (t->v.attr[id] & TOK_ATTR_EOG);
}

int32_t tokenizer_find(const struct tokenizer *t, const char *p, size_t n)
{
    uint32_t lo = 0, hi = t->special.n, id;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        struct tok_piece w = tok_text(t, t->special.ids[mid]);
        int c = memcmp(w.p, p, w.n < n ? w.n : n);
        if (c == 0 && w.n == n)
            return (int32_t)t->special.ids[mid];
        if (c < 0 || (c == 0 && w.n < n))
            lo = mid + 1;
        else
            hi = mid;
    }
    return tok_find(&t->v, p, n, &id) ? (int32_t)id : TOKENIZER_NONE;
}

struct tok_piece tokenizer_piece(const struct tokenizer *t, int32_t id, unsigned flags)
{
    struct tok_piece none = {"", 0};
    if (id < 0 || (uint32_t)id >= t->v.n)
        return none;
    bool hidden =
        t->v.type[id] == TOKENIZER_TYPE_CONTROL || t->v.type[id] == TOKENIZER_TYPE_UNKNOWN;
    return hidden && !(flags & TOKENIZER_RENDER_SPECIAL) ? none : tok_text(t, (uint32_t)id);
}

/* Does encode put a space in front of the text that follows this token (NONE: of a whole text)? */
static bool space_follows(const struct tokenizer *t, int32_t prev)
{
    if (!t->info.add_space_prefix && t->info.kind != TOKENIZER_KIND_WPM)
        return false;
    if (prev < 0)
        return true;
    enum tokenizer_type type = tokenizer_type(t, prev);
    if (prev == t->info.unk || type == TOKENIZER_TYPE_UNKNOWN)
        return t
            ->spells_all; /* then it came from its name in the text; else from an unknown word */
    return type == TOKENIZER_TYPE_CONTROL || type == TOKENIZER_TYPE_USER_DEFINED;
}

/* The piece of id at its place: with the added space taken away. */
static struct tok_piece next_piece(const struct tokenizer *t, int32_t id, unsigned flags,
                                   bool *strip)
{
    struct tok_piece w = tokenizer_piece(t, id, flags);
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
