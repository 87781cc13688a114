/* heads_words.c - tags of words to spans of the text; see heads.h. */
#include <math.h>
#include <string.h>

#include <utf8proc.h>

#include "base/mem.h"
#include "model/encoder.h"
#include "model/heads_int.h"
#include "base/utf8.h"

/* ---- words ---------------------------------------------------------------------------------- */

/* Code point at p < end; an invalid byte counts as itself, one byte long. */
static unsigned code_at(const char *text, size_t at, size_t n, uint32_t *cp)
{
    const uint8_t *p = (const uint8_t *)text;
    unsigned len = utf8_decode(p + at, p + n, cp);
    if (len == 0)
        *cp = 0xfffd;
    return len ? len : 1;
}

/* White space as in Python's str.split(), which the training data was split with. */
static bool is_space(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Characters that BERT's tokenizers make words of their own: punctuation, ASCII symbols,
 * ideographs. */
static bool stands_alone(uint32_t c)
{
    if (c < 0x80)
        return c > 32 && c < 127 && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
               !(c >= 'A' && c <= 'Z');
    if ((c >= 0x3400 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff) ||
        (c >= 0x20000 && c <= 0x2fa1f))
        return true;
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    return cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO;
}

/* Splits at white space; a word's first token is the first one that starts inside it. */
static uint32_t whole_words(const char *text, size_t n_text, const uint32_t *start,
                            const uint32_t *end, uint32_t n_tokens, struct heads_word *words)
{
    uint32_t n = 0, token = 0, cp;
    for (size_t at = 0; at < n_text;) {
        size_t from = at;
        unsigned len = code_at(text, at, n_text, &cp);
        at += len;
        if (is_space(cp))
            continue;
        while (at < n_text) {
            len = code_at(text, at, n_text, &cp);
            if (is_space(cp))
                break;
            at += len;
        }
        while (token < n_tokens && (start[token] == end[token] || start[token] < from))
            token++;
        if (token < n_tokens && start[token] < at)
            words[n++] = (struct heads_word){token, (uint32_t)from, (uint32_t)at};
    }
    return n;
}

/* True if the piece at `start` continues the word that ended before it. */
static bool goes_on(const char *text, size_t n_text, uint32_t start, const struct heads_word *prev)
{
    uint32_t cp, last = 0;
    if (start != prev->end)
        return false;
    for (size_t at = prev->start; at < prev->end;)
        at += code_at(text, at, n_text, &last);
    (void)code_at(text, start, n_text, &cp);
    return !stands_alone(cp) && !stands_alone(last) && !is_space(cp);
}

static uint32_t plain_words(const char *text, size_t n_text, const uint32_t *start,
                            const uint32_t *end, uint32_t n_tokens, struct heads_word *words)
{
    uint32_t n = 0, cp;
    for (uint32_t i = 0; i < n_tokens; i++) {
        uint32_t from = start[i];
        if (end[i] <= from || end[i] > n_text)
            continue;
        if (n > 0 && goes_on(text, n_text, from, &words[n - 1])) {
            words[n - 1].end = end[i];
            continue;
        }
        for (; from < end[i]; from += code_at(text, from, n_text, &cp)) {
            (void)code_at(text, from, n_text, &cp); /* byte-level pieces start with their space */
            if (!is_space(cp))
                break;
        }
        if (from < end[i] && (n == 0 || from >= words[n - 1].end))
            words[n++] = (struct heads_word){i, from, end[i]};
    }
    return n;
}

uint32_t heads_words(const struct heads *h, const char *text, size_t n_text, const uint32_t *start,
                     const uint32_t *end, uint32_t n_tokens, struct heads_word *words)
{
    return h->info.whole_words ? whole_words(text, n_text, start, end, n_tokens, words)
                               : plain_words(text, n_text, start, end, n_tokens, words);
}

static uint8_t case_of(const char *p, size_t n)
{
    size_t letters = 0, capitals = 0;
    bool first = false;
    for (size_t i = 0; i < n; i++) {
        bool capital = p[i] >= 'A' && p[i] <= 'Z';
        if (!capital && !(p[i] >= 'a' && p[i] <= 'z'))
            continue;
        first |= capital && letters == 0;
        letters++;
        capitals += capital;
    }
    return capitals == 0 ? 0 : capitals == 1 && first ? 1 : 2;
}

void heads_cases(const char *text, const struct heads_word *words, uint32_t n_words,
                 const uint32_t *start, const uint32_t *end, uint32_t n_tokens, uint8_t *types)
{
    for (uint32_t w = 0; w < n_words; w++) {
        uint8_t type = case_of(text + words[w].start, words[w].end - words[w].start);
        for (uint32_t t = words[w].token; t < n_tokens && start[t] < words[w].end; t++)
            if (start[t] < end[t])
                types[t] = type;
    }
}

/* ---- tags ----------------------------------------------------------------------------------- */

struct heads_work {
    uint32_t max_words, most; /* most: number of labels of the largest set */
    float *logits;            /* [max_words][most] */
    float *score, *next;      /* [most] */
    uint16_t *back;           /* [max_words][most] */
    const float **inputs;     /* [max_words] */
};

int heads_work_create(struct heads_work **out, const struct heads *h, uint32_t max_words,
                      struct err *e)
{
    const struct heads_head *head = &h->head[HEADS_TAG];
    uint32_t most = 1;
    size_t cells;
    *out = NULL;
    for (uint32_t i = 0; i < head->n_sets; i++)
        most = head->sets[i].count > most ? head->sets[i].count : most;
    struct heads_work *w = mem_zalloc(sizeof(*w));
    if (w && mem_mul(&cells, max_words, most)) {
        *w = (struct heads_work){.max_words = max_words, .most = most};
        w->logits = mem_aligned((cells + 16) * sizeof(float));
        w->score = mem_aligned((size_t)(most + 16) * sizeof(float));
        w->next = mem_aligned((size_t)(most + 16) * sizeof(float));
        w->back = mem_zalloc_n(cells, sizeof(uint16_t));
        w->inputs = mem_zalloc_n(max_words, sizeof(*w->inputs));
        if (w->logits && w->score && w->next && w->back && w->inputs) {
            *out = w;
            return 0;
        }
    }
    heads_work_destroy(w);
    return err_set(e, SHOAL_ENOMEM, "out of memory to tag %u words", max_words);
}

void heads_work_destroy(struct heads_work *w)
{
    if (!w)
        return;
    mem_free(w->logits);
    mem_free(w->score);
    mem_free(w->next);
    mem_free(w->back);
    mem_free(w->inputs);
    mem_free(w);
}

float *heads_work_logits(struct heads_work *w)
{
    return w->logits;
}

void heads_word_logits(const struct heads *h, struct encoder *d, uint32_t seq,
                       const struct heads_set *set, const struct heads_word *words,
                       uint32_t n_words, struct heads_work *w)
{
    (void)h;
    for (uint32_t i = 0; i < n_words; i++)
        w->inputs[i] = encoder_hidden(d, seq, words[i].token);
    encoder_top(d, ENCODER_TOP_TAG_OUTPUT, w->inputs, n_words, set->first, set->first + set->count,
                w->logits, set->count);
}

/* Viterbi over log-probabilities; a row of the table is the tag that a transition starts from. */
static void best_path(const struct heads_set *set, uint32_t n_words, struct heads_work *w,
                      uint16_t *tags)
{
    const uint32_t n = set->count;
    for (uint32_t j = 0; j < n; j++)
        w->score[j] = w->logits[j] + set->transitions[(size_t)n * n + j];
    for (uint32_t t = 1; t < n_words; t++) {
        uint16_t *back = w->back + (size_t)t * n;
        for (uint32_t j = 0; j < n; j++) {
            w->next[j] = w->score[0] + set->transitions[j];
            back[j] = 0;
        }
        for (uint32_t i = 1; i < n; i++) {
            const float *row = set->transitions + (size_t)i * n;
            const float from = w->score[i];
            for (uint32_t j = 0; j < n; j++)
                if (from + row[j] > w->next[j]) {
                    w->next[j] = from + row[j];
                    back[j] = (uint16_t)i;
                }
        }
        for (uint32_t j = 0; j < n; j++)
            w->score[j] = w->next[j] + w->logits[(size_t)t * n + j];
    }
    uint32_t best = 0;
    for (uint32_t j = 1; j < n; j++)
        best = w->score[j] > w->score[best] ? j : best;
    for (uint32_t t = n_words; t-- > 0;) {
        tags[t] = (uint16_t)best;
        best = w->back[(size_t)t * n + best];
    }
}

void heads_tags(const struct kern_ops *k, const struct heads_set *set, uint32_t n_words,
                struct heads_work *w, uint16_t *tags, float *scores)
{
    const uint32_t n = set->count;
    for (uint32_t t = 0; t < n_words; t++) { /* logits to log-probabilities */
        float *l = w->logits + (size_t)t * n, max = k->max(l, n);
        float log_sum = max + logf(k->softmax_exp(w->next, l, n, max));
        tags[t] = (uint16_t)k->argmax(l, n);
        for (uint32_t j = 0; j < n; j++)
            l[j] -= log_sum;
    }
    if (set->transitions && n_words > 0)
        best_path(set, n_words, w, tags);
    for (uint32_t t = 0; t < n_words; t++)
        scores[t] = expf(w->logits[(size_t)t * n + tags[t]]);
}

/* ---- spans ---------------------------------------------------------------------------------- */

struct tag { /* "B-city" is {'B', "city"}, "city" is {'I', "city"}, "O" is {'O', ""} */
    char place;
    const char *type;
};

static struct tag tag_of(const char *label)
{
    if (strcmp(label, "O") == 0)
        return (struct tag){'O', ""};
    if (label[0] && label[1] == '-' && strchr("BIESLUM", label[0])) {
        char place = label[0] == 'L'   ? 'E'
                     : label[0] == 'U' ? 'S'
                     : label[0] == 'M' ? 'I'
                                       : label[0];
        return (struct tag){place, label + 2};
    }
    return (struct tag){'I', label};
}

static bool closes(char c)
{
    return strchr(".,;:!?)", c) != NULL && c != '\0';
}

struct counting { /* counts characters up to a byte; queries must ascend */
    const char *text;
    size_t n, at;
    uint32_t chars;
};

static uint32_t chars_before(struct counting *c, uint32_t byte)
{
    uint32_t cp;
    while (c->at < byte && c->at < c->n) {
        c->at += code_at(c->text, c->at, c->n, &cp);
        c->chars++;
    }
    return c->chars;
}

static void finish_span(const struct heads *h, struct heads_span *s, const char *text,
                        const struct heads_word *words, struct counting *c)
{
    s->start = words[s->first_word].start;
    s->end = words[s->first_word + s->n_words - 1].end;
    s->score /= (float)s->n_words;
    while (h->info.whole_words && s->end > s->start + 1 && closes(text[s->end - 1]))
        s->end--;
    s->start_char = chars_before(c, s->start);
    s->end_char = chars_before(c, s->end);
}

uint32_t heads_spans(const struct heads *h, const struct heads_set *set, const char *text,
                     size_t n_text, const struct heads_word *words, uint32_t n_words,
                     const uint16_t *tags, const float *scores, struct heads_span *spans)
{
    struct counting c = {.text = text, .n = n_text};
    uint32_t n = 0;
    bool open = false;
    for (uint32_t i = 0; i <= n_words; i++) {
        struct tag t = i < n_words ? tag_of(set->labels[tags[i]]) : (struct tag){'O', ""};
        if (open && (t.place == 'O' || t.place == 'B' || t.place == 'S' ||
                     strcmp(t.type, spans[n - 1].label) != 0)) {
            finish_span(h, &spans[n - 1], text, words, &c);
            open = false;
        }
        if (t.place == 'O')
            continue;
        if (!open)
            spans[n++] = (struct heads_span){.label = t.type, .first_word = i};
        spans[n - 1].n_words++;
        spans[n - 1].score += scores[i];
        open = t.place != 'E' && t.place != 'S';
        if (!open)
            finish_span(h, &spans[n - 1], text, words, &c);
    }
    return n;
}
