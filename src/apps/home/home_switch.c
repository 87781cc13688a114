/* home_switch.c - see home_switch.h. */
#include "apps/home/home_switch.h"

#include <string.h>

/* The action of "on" or "off"; NULL: another word. */
static const struct home_action *action_of(const struct home_table *t, const char *word)
{
    if (!(home_table_word(t, word) & HOME_WORD_REPEAT_LAST))
        return NULL;
    for (uint32_t i = 0; i < t->n_opposites; i++)
        for (int k = 0; k < 2; k++)
            if (home_table_lists(&t->opposites[i].words[k], word))
                return t->opposites[i].action[k];
    return NULL;
}

/* May these words alone switch it? "Alarm off" has other meanings. */
static bool may_switch(const struct home_thing *x)
{
    return x->type == HOME_THING_DEVICE && home_file_able(x, "power") &&
           !home_file_able(x, "alarm");
}

/* Are the words from..to-1 one of the names? */
static bool are_name(const struct home_list *names, const struct home_words *plain, uint32_t from,
                     uint32_t to)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (home_words_phrase(plain, from, names->w[i]) == to - from)
            return true;
    return false;
}

/* Do the words from..to-1 name a device, after the name of its room or without?  *device: its
 * first word. */
static bool names_device(const struct home_file *f, const struct home_words *plain, uint32_t from,
                         uint32_t to, uint32_t *device)
{
    if (from >= to || to - from > HOME_FILE_MAX_NAME_BYTES) /* words of a room and a device */
        return false;
    for (uint32_t i = 0; f && i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        for (*device = from; may_switch(x) && *device < to; ++*device)
            if (are_name(&x->names, plain, *device, to) &&
                (*device == from || (x->room && are_name(&x->room->names, plain, from, *device))))
                return true;
    }
    return false;
}

/* "lights in the paint booth": do the words from..to-1 name a device, and then its room?  *end is
 * after the device, *room the first word of the room. */
static bool names_room_behind(const struct home_table *t, const struct home_file *f,
                              const struct home_words *plain, uint32_t from, uint32_t to,
                              uint32_t *end, uint32_t *room)
{
    for (*end = from + 1; *end < to && !home_table_lists(&t->front, plain->w[*end]);)
        ++*end;
    for (*room = *end + 1; *room < to && (home_table_word(t, plain->w[*room]) & HOME_WORD_ARTICLE);)
        ++*room;
    if (*room >= to || to - from > HOME_FILE_MAX_NAME_BYTES)
        return false;
    for (uint32_t i = 0; f && i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        if (may_switch(x) && x->room && are_name(&x->names, plain, from, *end) &&
            are_name(&x->room->names, plain, *room, to))
            return true;
    }
    return false;
}

/* Is every word from `from` on part of a time, or a word before one? */
static bool says_only_when(const struct home_table *t, const struct home_clause *c,
                           const struct home_words *plain, uint32_t from)
{
    uint32_t at = from;
    for (uint32_t i = 0; i < c->n_entities; i++) {
        const struct home_entity *e = &c->entities[i];
        const struct home_slot *s = home_table_slot(t, e->type);
        if (e->to <= from)
            continue;
        if (!s || s->type < HOME_SLOT_DURATION || e->from < at)
            return false;
        while (at < e->from && home_table_lists(&t->front, plain->w[at]))
            at++;
        if (at < e->from)
            return false;
        at = e->to;
    }
    return at > from && at == plain->n;
}

/* The position of a final "on" or "off", or one followed only by a time: "fan off in five minutes";
 * 0: none. */
static uint32_t last_switch(const struct home_table *t, const struct home_clause *c,
                            const struct home_words *plain, uint32_t from)
{
    for (uint32_t i = from + 1; i < plain->n; i++)
        if (action_of(t, plain->w[i]) && (i + 1 == plain->n || says_only_when(t, c, plain, i + 1)))
            return i;
    return 0;
}

/* Are the words from..to-1 one device, as the model sees it? */
static bool is_device(const struct home_clause *c, uint32_t from, uint32_t to)
{
    return c->n_entities == 1 && strcmp(c->entities[0].type, "device") == 0 &&
           c->entities[0].from <= from && c->entities[0].to == to;
}

struct home_switch home_switch_find(struct arena *a, const struct home_table *t,
                                    const struct home_file *file, const struct home_clause *c,
                                    const struct home_words *plain)
{
    struct home_switch s = {0};
    uint32_t from = 0, to = plain->n, n = 0, device;
    bool verb = to > 0 && (home_table_word(t, plain->w[0]) & HOME_WORD_REPEAT_VERB);
    from += verb;
    if (from >= to)
        return s;
    const struct home_action *first = verb ? action_of(t, plain->w[from]) : NULL, *last = NULL;
    if (first && says_only_when(t, c, plain, from + 1)) {
        s.action = first;
        s.entities = c->entities;
        s.n_entities = c->n_entities;
        return s;
    }
    uint32_t at = first ? 0 : last_switch(t, c, plain, from);
    if (at > 0) {
        last = action_of(t, plain->w[at]);
        to = at;
    }
    from += first != NULL;
    while (from < to && (home_table_word(t, plain->w[from]) & HOME_WORD_ARTICLE))
        from++;
    if (first && is_device(c, from, to)) {
        s.action = first;
        s.entities = c->entities;
        s.n_entities = c->n_entities;
        s.n_named = 1;
    }
    struct home_entity *e = arena_zalloc_n(a, (size_t)c->n_entities + 2, sizeof(*e));
    uint32_t end, room;
    if ((!first && !last) || !e)
        return s;
    if (names_device(file, plain, from, to, &device)) {
        if (device > from)
            e[n++] = (struct home_entity){.type = "room", .from = from, .to = device};
        e[n++] = (struct home_entity){.type = "device", .from = device, .to = to};
    } else if (names_room_behind(t, file, plain, from, to, &end, &room)) {
        e[n++] = (struct home_entity){.type = "device", .from = from, .to = end};
        e[n++] = (struct home_entity){.type = "room", .from = room, .to = to};
    } else {
        return s;
    }
    for (uint32_t i = 0; at > 0 && i < c->n_entities; i++) /* when */
        if (c->entities[i].from > at)
            e[n++] = c->entities[i];
    s.entities = e;
    s.n_entities = n;
    s.action = first ? first : last;
    s.of_home = true;
    s.n_named = 1;
    return s;
}
