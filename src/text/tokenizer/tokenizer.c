/* tokenizer.c - see tokenizer.h.  Creation, lookup and decoding; tokenizer_encode.c encodes. */
#include "text/tokenizer/tokenizer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "format/model_file.h"
#include "text/tokenizer/hf/tok_hf_load.h"
#include "text/tokenizer/tok_gguf.h"
#include "text/tokenizer/tokenizer_core.h"

int tokenizer_create(struct tokenizer **out, const struct model_file *m, struct err *e)
{
    struct tokenizer *t = mem_zalloc(sizeof(*t));
    *out = NULL;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    int rc = tok_hf_present(m) ? tok_hf_load(t, m, e) : tok_gguf_load(t, m, e);
    model_file_trim_metadata(m); /* everything needed was copied */
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
    if (t->state)
        t->ops->destroy(t->state);
    tok_vocab_fini(&t->v);
    mem_free(t->special.e);
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
    return tok_vocab_find(&t->v, p, n, &id) && id < t->v.n_tokens ? (int32_t)id : TOKENIZER_NONE;
}

struct str tokenizer_piece(const struct tokenizer *t, int32_t id, unsigned flags)
{
    const struct tok_vocab *v = &t->v;
    struct str none = {"", 0};
    if (id < 0 || (uint32_t)id >= v->n)
        return none;
    bool hidden = v->type[id] == TOKEN_TYPE_CONTROL || v->type[id] == TOKEN_TYPE_UNKNOWN;
    if (hidden && !(flags & TOKENIZER_RENDER_SPECIAL))
        return none;
    if (!v->shown_at)
        return tok_vocab_text(v, (uint32_t)id);
    return (struct str){v->shown_bytes + v->shown_at[id], v->shown_at[id + 1] - v->shown_at[id]};
}

/* Does encode put a space in front of the text that follows this token (NONE: of a whole text)? */
static bool space_follows(const struct tokenizer *t, int32_t prev)
{
    if (t->strip == TOKENIZER_STRIP_NONE)
        return false;
    if (prev < 0)
        return true;
    enum token_type type = tokenizer_token_type(t, prev);
    if (prev == t->info.unk || type == TOKEN_TYPE_UNKNOWN)
        return t->v
            .spells_all; /* then it was spelled out in the text; otherwise it is an ordinary word */
    return type == TOKEN_TYPE_CONTROL || type == TOKEN_TYPE_USER_DEFINED;
}

static struct str without_space(struct str w)
{
    if (w.n > 0 && *w.p == ' ')
        return (struct str){w.p + 1, w.n - 1};
    return w;
}

/* The piece of id at its place: without the space that encode added.  *strip: may it have one? */
static struct str next_piece(const struct tokenizer *t, int32_t id, unsigned flags, bool *strip)
{
    struct str w = tokenizer_piece(t, id, flags);
    bool here = *strip;
    if (t->strip == TOKENIZER_STRIP_FIRST) { /* only the first visible token */
        *strip &= w.n == 0;
        return here ? without_space(w) : w;
    }
    if (t->strip == TOKENIZER_STRIP_ENDS) {
        while (here && w.n > 0 && *w.p == ' ')
            w = without_space(w);
        *strip &= w.n == 0;
        return w;
    }
    *strip = space_follows(t, id);
    return here && !*strip ? without_space(w) : w;
}

void tokenizer_decode(const struct tokenizer *t, struct buf *out, const int32_t *ids, size_t n,
                      unsigned flags)
{
    bool strip = space_follows(t, TOKENIZER_NONE);
    size_t held = 0; /* spaces that may be the last of the text */
    for (size_t i = 0; i < n; i++) {
        struct str w = next_piece(t, ids[i], flags, &strip);
        size_t last = 0;
        while (t->strip == TOKENIZER_STRIP_ENDS && w.n > 0 && w.p[w.n - 1] == ' ') {
            w.n--;
            last++;
        }
        for (; w.n > 0 && held > 0; held--)
            buf_putc(out, ' ');
        buf_put(out, w.p, w.n);
        held += last;
    }
}

void tokenizer_stream_init(struct tok_stream *s, const struct tokenizer *t, int32_t prev,
                           unsigned flags)
{
    *s = (struct tok_stream){.t = t, .flags = flags, .strip_space = space_follows(t, prev)};
}

void tokenizer_stream_push(struct tok_stream *s, struct buf *out, int32_t id)
{
    struct str w = next_piece(s->t, id, s->flags, &s->strip_space);
    utf8_stream_push(&s->utf8, out, w.p, w.n);
}

void tokenizer_stream_flush(struct tok_stream *s, struct buf *out)
{
    utf8_stream_flush(&s->utf8, out);
}

size_t tokenizer_control_at(const struct tokenizer *t, const char *p, size_t n, bool *open)
{
    *open = false;
    size_t most = tok_special_control(&t->special, &t->v, p, n, open);
    size_t more = t->ops->control_at ? t->ops->control_at(t->state, p, n, open) : 0;
    return more > most ? more : most;
}
