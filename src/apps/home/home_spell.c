/* home_spell.c - see home_spell.h. */
#include "apps/home/home_spell.h"

#include <string.h>

#include "apps/home/site/home_near.h"

#define LEAST_BYTES 4u

struct search {
    const char *word;
    const char *best;
    uint32_t d, second;
};

static void try_word(struct search *s, const char *known)
{
    if (strlen(known) < LEAST_BYTES || (s->best && strcmp(s->best, known) == 0))
        return;
    uint32_t d = home_near(s->word, known);
    if (d < s->d) {
        s->second = s->d;
        s->d = d;
        s->best = known;
    } else if (d < s->second) {
        s->second = d;
    }
}

static bool is_known(const struct home_table *t, const struct home_file *f, const char *word)
{
    uint32_t i;
    return home_table_word(t, word) || strmap_get(&t->spell, word, strlen(word), &i) ||
           strmap_get(&t->numbers, word, strlen(word), &i) || home_file_has_word(f, word);
}

/* The one nearest known word; NULL: none, or a tie. */
static const char *nearest(const struct home_table *t, const struct home_file *f, const char *word)
{
    struct search s = {.word = word, .d = HOME_NEAR_FAR, .second = HOME_NEAR_FAR};
    for (uint32_t i = 0; i < t->spell_words.n; i++)
        try_word(&s, t->spell_words.w[i]);
    for (uint32_t i = 0; f && i < f->words.n; i++)
        try_word(&s, f->words.w[i]);
    return s.d < s.second ? s.best : NULL;
}

/* "reminds" and "heated" are forms of known words, not typos. */
static bool is_form(struct arena *a, const struct home_table *t, const struct home_file *f,
                    const char *word)
{
    static const char *const endings[] = {"s", "es", "d", "ed", "ing", "er", "r", "ly"};
    size_t n = strlen(word);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t k = strlen(endings[i]);
        if (n > k + 2 && strcmp(word + n - k, endings[i]) == 0 &&
            is_known(t, f, arena_printf(a, "%.*s", (int)(n - k), word)))
            return true;
    }
    return false;
}

static bool is_plain(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    return n >= LEAST_BYTES && word[n] == '\0';
}

/* The word with the punctuation behind it. */
static const char *with_end(struct arena *a, const char *was, const char *word)
{
    size_t n = strlen(was);
    while (n > 0 && strchr(".,;:!?", was[n - 1]))
        n--;
    return arena_printf(a, "%s%s", word, was + n);
}

/* Phrases that are always a slip: "turn of" is "turn off". */
static bool fix_phrases(struct arena *a, const struct home_table *t, struct home_words *words)
{
    bool changed = false;
    struct home_words plain = home_words_plain_all(a, words);
    for (uint32_t i = 0; i < plain.n; i++)
        for (uint32_t k = 0; k < t->slips.n; k++) {
            const struct home_pair *p = &t->slips.p[k];
            uint32_t n = home_words_phrase(&plain, i, p->from);
            if (n == 0)
                continue;
            words->w[i] = with_end(a, words->w[i + n - 1], p->to);
            plain.w[i] = p->to;
            for (uint32_t m = i + n; m < words->n; m++) {
                words->w[m - n + 1] = words->w[m];
                plain.w[m - n + 1] = plain.w[m];
            }
            words->n -= n - 1;
            plain.n = words->n;
            changed = true;
        }
    for (uint32_t k = 0; plain.n > 1 && k < t->slips_last.n; k++)
        if (strcmp(plain.w[plain.n - 1], t->slips_last.p[k].from) == 0) {
            words->w[plain.n - 1] = with_end(a, words->w[plain.n - 1], t->slips_last.p[k].to);
            changed = true;
        }
    return changed;
}

bool home_spell_fix(struct arena *a, const struct home_table *t, const struct home_file *f,
                    struct home_words *words, home_spell_fn common, void *ctx)
{
    if (t->slips.n == 0)
        return false;
    bool changed = fix_phrases(a, t, words);
    for (uint32_t i = 0; a->rc == 0 && i < words->n; i++) {
        const char *plain = home_words_plain(a, words->w[i]);
        if (home_table_word(t, plain) & HOME_WORD_FREE_TEXT)
            break; /* the rest is a message to another person */
        bool name = i > 0 && words->w[i][0] >= 'A' && words->w[i][0] <= 'Z';
        if (name || !is_plain(plain) || is_known(t, f, plain) || is_form(a, t, f, plain) ||
            (common && common(ctx, plain)))
            continue;
        const char *word = nearest(t, f, plain);
        if (!word)
            continue;
        words->w[i] = with_end(a, words->w[i], word);
        changed = true;
    }
    return changed && a->rc == 0;
}
