/* home_table_find.c - looks up words, slots and actions of a table; see home_table.h. */
#include <string.h>

#include "apps/home/table/home_table.h"
#include "apps/home/table/home_words.h"

bool home_table_is_clock(const char *s)
{
    return strlen(s) == 5 && s[0] >= '0' && s[0] <= '2' && s[1] >= '0' && s[1] <= '9' &&
           (s[0] < '2' || s[1] < '4') && s[2] == ':' && s[3] >= '0' && s[3] <= '5' && s[4] >= '0' &&
           s[4] <= '9';
}

const struct home_slot *home_table_slot(const struct home_table *t, const char *name)
{
    uint32_t i;
    return strmap_get(&t->slots, name, strlen(name), &i) ? &t->slot[i] : NULL;
}

const struct home_action *home_table_action(const struct home_table *t, const char *name)
{
    uint32_t i;
    return strmap_get(&t->actions, name, strlen(name), &i) ? &t->action[i] : NULL;
}

const struct home_unit *home_table_unit(const struct home_table *t, const char *name)
{
    char low[64];
    size_t n = 0;
    uint32_t at;
    for (uint32_t i = 0; i < t->n_units; i++)
        if (strcmp(t->unit[i].name, name) == 0)
            return &t->unit[i];
    for (; n < sizeof(low) && name[n]; n++)
        low[n] = name[n] >= 'A' && name[n] <= 'Z' ? (char)(name[n] - 'A' + 'a') : name[n];
    return n < sizeof(low) && strmap_get(&t->units, low, n, &at) ? &t->unit[at] : NULL;
}

const struct home_quantity *home_table_quantity(const struct home_table *t, const char *ability)
{
    for (uint32_t i = 0; i < t->n_quantities; i++)
        if (strcmp(t->quantities[i].ability, ability) == 0)
            return &t->quantities[i];
    return NULL;
}

/* ---- the kind that a name suggests ---------------------------------------------------------- */

#define MIN_COMPOUND 4u /* bytes of the last part of a joined word */
#define IN_WORD(c) ((c) && (c) != ' ' && (c) != '_' && (c) != '.' && (c) != '-')

/* Does the word of n bytes at s match, or is it the word with an ending of a plural? */
static bool is_word(const struct home_table *t, const char *s, size_t n, const char *word, size_t w)
{
    if (n < w || strncmp(s, word, w) != 0)
        return false;
    bool same = n == w;
    for (uint32_t i = 0; i < t->n_slots && !same; i++)
        for (uint32_t k = 0; k < t->slot[i].known_endings.n && !same; k++) {
            const char *end = t->slot[i].known_endings.w[k];
            same = strlen(end) == n - w && strncmp(s + w, end, n - w) == 0;
        }
    return same;
}

bool home_table_ends_in(const struct home_table *t, const char *word, const char *end)
{
    const size_t n = strlen(word), m = strlen(end);
    return t->compounds && m >= MIN_COMPOUND && n > m && strcmp(word + n - m, end) == 0;
}

const char *home_table_bare(const struct home_table *t, const char *word)
{
    for (uint32_t i = 0; i < t->elisions.n; i++) {
        const size_t n = strlen(t->elisions.w[i]);
        if (strncmp(word, t->elisions.w[i], n) == 0 && word[n])
            return word + n;
    }
    return word;
}

/* Where the phrase that begins at s ends; NULL: another one is there. */
static const char *phrase_end(const struct home_table *t, const char *s, const char *phrase)
{
    for (;;) {
        size_t n = 0, w = strcspn(phrase, " ");
        while (IN_WORD(s[n]))
            n++;
        if (!is_word(t, s, n, phrase, w))
            return NULL;
        if (!phrase[w])
            return s + n;
        phrase += w + 1;
        s += n;
        while (*s && !IN_WORD(*s))
            s++;
    }
}

const struct home_kind *home_table_kind_named(const struct home_table *t, const char *name)
{
    const struct home_kind *found = NULL;
    const char *best = name; /* the end of the best match so far */
    size_t longest = 0;
    for (const char *s = name; *s; s++) {
        const bool inside = s > name && IN_WORD(s[-1]);
        if (!IN_WORD(*s) || (inside && !t->compounds))
            continue;
        for (uint32_t i = 0; i < t->n_kinds; i++) {
            const struct home_kind *k = &t->kinds[i];
            for (uint32_t p = 0; !k->as_named && p < k->words.n + k->named.n; p++) {
                const char *phrase = p < k->words.n ? k->words.w[p] : k->named.w[p - k->words.n];
                const char *end =
                    inside && strlen(phrase) < MIN_COMPOUND ? NULL : phrase_end(t, s, phrase);
                size_t n = end ? (size_t)(end - s) : 0;
                /* of equals the special case, which comes later in the table */
                if (end && (end > best || (end == best && n >= longest))) {
                    best = end;
                    longest = n;
                    found = k;
                }
            }
        }
    }
    return found;
}

uint32_t home_table_phrase(const struct home_list *l, const struct home_words *w, uint32_t i)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t n = home_words_phrase(w, i, l->w[k]);
        most = n > most ? n : most;
    }
    return most;
}

bool home_table_lists(const struct home_list *l, const char *word)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->w[i], word) == 0)
            return true;
    return false;
}
