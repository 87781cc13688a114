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

uint32_t home_table_word(const struct home_table *t, const char *word)
{
    uint32_t i;
    return strmap_get(&t->words, word, strlen(word), &i) ? t->word_bits[i] : 0;
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
