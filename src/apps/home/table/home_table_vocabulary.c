/* home_table_vocabulary.c - all words that a table is written in; see home_table.h. */
#include <ctype.h>
#include <string.h>

#include "apps/home/site/home_near.h"
#include "apps/home/table/home_table_int.h"
#include "apps/home/table/home_words.h"

#define MAX_DEPTH 8u
#define MIN_MISSPELT 5u /* bytes: what is shorter is one slip from too many words */

/* Part of a word? Letters of other alphabets are. */
static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

static size_t next_word(const char **p)
{
    size_t n = 0;
    while (**p && !is_letter(**p))
        ++*p;
    while (is_letter((*p)[n]))
        n++;
    return n;
}

/* Counts the words of all texts, or adds them. */
static void visit(struct home_reader *r, const struct json_node *at, struct strmap *to, size_t *n,
                  uint32_t depth)
{
    struct json_node v;
    size_t len;
    if (depth > MAX_DEPTH || !at->v)
        return;
    if (cJSON_IsString(at->v)) {
        const char *p =
            to ? home_words_lower(&r->t->arena, at->v->valuestring) : at->v->valuestring;
        for (; r->d.rc == 0 && (len = next_word(&p)) > 0; p += len) {
            ++*n;
            const char *word = to ? arena_printf(&r->t->arena, "%.*s", (int)len, p) : "";
            if (to && strmap_put(to, word, strlen(word), 0) < 0)
                json_strict_no_memory(&r->d);
        }
        return;
    }
    for (v = json_strict_first(at); r->d.rc == 0 && v.v; v = json_strict_next(&v))
        visit(r, &v, to, n, depth + 1);
}

void home_table_read_vocabulary(struct home_reader *r, const struct json_node *root)
{
    size_t n = 0;
    visit(r, root, NULL, &n, 0);
    if (r->d.rc == 0 && strmap_init(&r->t->vocabulary, n) < 0)
        json_strict_no_memory(&r->d);
    visit(r, root, &r->t->vocabulary, &n, 0);
}

/* One part of a word, such as "twenty" of "twenty-one". */
static bool knows_part(const struct home_table *t, const char *word, size_t n)
{
    const struct strmap *m = &t->vocabulary;
    char text[HOME_NEAR_MAX_BYTES + 1];
    uint32_t at;
    const struct strmap *maps[] = {m, &t->numbers, &t->units, &t->duration_units, &t->date_names};
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
        if (strmap_get(maps[i], word, n, &at))
            return true;
    if (n < MIN_MISSPELT || n >= sizeof(text))
        return false;
    memcpy(text, word, n);
    text[n] = '\0';
    for (size_t i = 0; i < m->n_slots; i++) {
        const struct strmap_slot *s = &m->slots[i];
        if (s->key && s->len + 1 >= n && s->len <= n + 1 &&
            home_near_typed(text, s->key, 1) != HOME_NEAR_FAR)
            return true;
        if (s->key && home_table_ends_in(t, text, s->key))
            return true;
    }
    return false;
}

bool home_table_knows(const struct home_table *t, const char *word)
{
    const char *p = home_table_bare(t, word);
    for (size_t n; (n = next_word(&p)) > 0; p += n)
        if (!knows_part(t, p, n))
            return false;
    return true;
}
