/* chunk.c - see chunk.h. */
#include "store/chunk.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/room.h"

#define MAX_TOKENS 160u
#define MAX_CHUNKS 1000000u
#define MAX_WORD_BYTES 256u /* a longer run without spaces is cut */

struct word {
    uint32_t at, bytes; /* in the section */
    uint32_t tokens;
    bool ends; /* a sentence or a paragraph */
};

struct cutter {
    const struct doc *doc;
    const struct doc_section *section;
    const struct chunk_opts *o;
    uint32_t max_tokens;
    struct word *words;
    size_t n_words, cap_words;
    struct chunk *list;
    uint32_t n, cap;
};

uint32_t chunk_guess(const char *word, size_t n)
{
    uint32_t letters = 0, digits = 0, others = 0;
    for (size_t i = 0; i < n; i++) {
        char c = word[i];
        if (ascii_is_letter(c))
            letters++;
        else if (ascii_is_digit(c))
            digits++;
        else if ((c & 0xc0) != 0x80)
            others++;
    }
    return (letters + 3) / 4 + (digits + 1) / 2 + others;
}

/* ---- words ---- */

static bool ends_sentence(const char *text, size_t n, size_t end)
{
    char last = text[end - 1];
    if (last == '"' || last == ')' || last == '\'')
        last = end >= 2 ? text[end - 2] : last;
    if (last == '.' || last == '!' || last == '?')
        return true;
    size_t newlines = 0;
    for (size_t i = end; i < n && ascii_is_space(text[i]); i++)
        newlines += text[i] == '\n';
    return newlines >= 2 || end == n;
}

/* False: out of memory. */
static bool add_word(struct cutter *c, const char *text, size_t n, size_t at, size_t bytes)
{
    if (!room_make(&c->words, &c->cap_words, c->n_words, sizeof(*c->words), 1024))
        return false;
    uint32_t tokens =
        c->o->count ? c->o->count(c->o->ctx, text + at, bytes) : chunk_guess(text + at, bytes);
    c->words[c->n_words++] = (struct word){.at = (uint32_t)at,
                                           .bytes = (uint32_t)bytes,
                                           .tokens = tokens ? tokens : 1,
                                           .ends = ends_sentence(text, n, at + bytes)};
    return true;
}

static bool split(struct cutter *c, const char *text, size_t n)
{
    c->n_words = 0;
    for (size_t i = 0; i < n;) {
        if (ascii_is_space(text[i])) {
            i++;
            continue;
        }
        size_t k = i;
        while (k < n && !ascii_is_space(text[k]) && k - i < MAX_WORD_BYTES)
            k++;
        if (k < n && !ascii_is_space(text[k])) /* cut: at a whole character */
            while (k > i + 1 && ((unsigned char)text[k] & 0xc0) == 0x80)
                k--;
        if (!add_word(c, text, n, i, k - i))
            return false;
        i = k;
    }
    return true;
}

/* ---- passages ---- */

/* Words [from, *to) fit; *to moves back to the end of a sentence in the last third. */
static uint32_t fill(const struct cutter *c, size_t from, size_t *to)
{
    uint32_t tokens = 0, at_end = 0;
    size_t k = from, end = 0;
    for (; k < c->n_words; k++) {
        uint32_t more = c->words[k].tokens;
        if (tokens + more > c->max_tokens && k > from)
            break;
        tokens += more;
        if (c->words[k].ends) {
            end = k + 1;
            at_end = tokens;
        }
    }
    if (k < c->n_words && end > from && at_end * 3 >= c->max_tokens * 2) {
        *to = end;
        return at_end;
    }
    *to = k;
    return tokens;
}

/* Where the passage after [from, to) begins: up to `overlap` tokens before its end, if possible at
 * the beginning of a sentence. */
static size_t step_back(const struct cutter *c, size_t from, size_t to)
{
    uint32_t tokens = 0;
    size_t k = to, sentence = 0;
    while (k > from + 1 && tokens + c->words[k - 1].tokens <= c->o->overlap) {
        k--;
        tokens += c->words[k].tokens;
        if (c->words[k - 1].ends)
            sentence = k;
    }
    return sentence > from ? sentence : k;
}

static int add_chunk(struct cutter *c, size_t from, size_t to, uint32_t tokens, struct err *e)
{
    const char *base = buf_str(&c->doc->text);
    const struct doc_section *s = c->section;
    const struct word *first = &c->words[from], *last = &c->words[to - 1];
    if (c->n == (c->o->max_chunks ? c->o->max_chunks : MAX_CHUNKS))
        return err_set(e, SHOAL_ELIMIT, "the document has more than %u passages: split it", c->n);
    if (!room_make32(&c->list, &c->cap, c->n, sizeof(*c->list), 64))
        return err_set(e, SHOAL_ENOMEM, "out of memory for passages");
    c->list[c->n++] = (struct chunk){.heading = base + s->heading_at,
                                     .heading_bytes = s->heading_bytes,
                                     .ref = base + s->ref_at,
                                     .ref_bytes = s->ref_bytes,
                                     .text = base + s->text_at + first->at,
                                     .text_bytes = last->at + last->bytes - first->at,
                                     .page = s->page,
                                     .n_tokens = tokens};
    return 0;
}

static int cut_section(struct cutter *c, struct err *e)
{
    int rc = 0;
    if (!split(c, buf_str(&c->doc->text) + c->section->text_at, c->section->text_bytes))
        return err_set(e, SHOAL_ENOMEM, "out of memory for passages");
    for (size_t from = 0, to; from < c->n_words && rc == 0;) {
        uint32_t tokens = fill(c, from, &to);
        rc = add_chunk(c, from, to, tokens, e);
        if (to == c->n_words)
            break;
        from = step_back(c, from, to);
    }
    return rc;
}

int chunk_cut(struct chunk **out, uint32_t *n, const struct doc *d, const struct chunk_opts *o,
              struct err *e)
{
    struct cutter c = {.doc = d, .o = o, .max_tokens = o->max_tokens ? o->max_tokens : MAX_TOKENS};
    int rc = 0;
    *out = NULL;
    *n = 0;
    if (o->overlap * 2 >= c.max_tokens)
        return err_set(e, SHOAL_EINVAL, "an overlap of %u tokens is not less than half of %u",
                       o->overlap, c.max_tokens);
    for (uint32_t i = 0; i < d->n_sections && rc == 0; i++) {
        c.section = &d->sections[i];
        rc = cut_section(&c, e);
    }
    mem_free(c.words);
    if (rc < 0) {
        mem_free(c.list);
        return rc;
    }
    *out = c.list;
    *n = c.n;
    return 0;
}
