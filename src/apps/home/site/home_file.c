/* home_file.c - see home_file.h. */
#include "apps/home/site/home_file.h"

#include <string.h>

#include "apps/home/site/home_near.h"
#include "base/mem.h"
#include "apps/home/table/home_words.h"

#define MAX_WORDS 4096u /* of all names */

static const char *const types[] = {
    [HOME_THING_ROOM] = "room",       [HOME_THING_DEVICE] = "device",
    [HOME_THING_MACHINE] = "machine", [HOME_THING_SENSOR] = "sensor",
    [HOME_THING_PERSON] = "person",   [HOME_THING_SCENE] = "scene"};
static const char *const plurals[] = {
    [HOME_THING_ROOM] = "rooms",       [HOME_THING_DEVICE] = "devices",
    [HOME_THING_MACHINE] = "machines", [HOME_THING_SENSOR] = "sensors",
    [HOME_THING_PERSON] = "people",    [HOME_THING_SCENE] = "scenes"};

struct home_file *home_file_ref(struct home_file *f)
{
    if (f)
        atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void home_file_unref(struct home_file *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (struct home_file *next; f; f = next) {
        next = f->next;
        strmap_fini(&f->word_set);
        strmap_fini(&f->ids);
        arena_fini(&f->arena);
        mem_free(f);
    }
}

const char *home_file_type_name(enum home_thing_type type)
{
    return types[type];
}

const char *home_file_list_name(enum home_thing_type type)
{
    return plurals[type];
}

const struct home_thing *home_file_thing(const struct home_file *f, const char *id)
{
    uint32_t i;
    return strmap_get(&f->ids, id, strlen(id), &i) ? &f->things[i] : NULL;
}

/* ---- in other languages -----------------------------------------------------------------------
 */

struct home_file *home_file_in(struct home_file *f, const char *language)
{
    struct home_file *x = f;
    while (x && strcmp(x->language, language) != 0)
        x = x->next;
    return x ? x : f;
}

int home_file_collect_words(struct home_file *f)
{
    const char **w = arena_zalloc_n(&f->arena, MAX_WORDS, sizeof(*w));
    uint32_t n = 0;
    int rc = w ? strmap_init(&f->word_set, MAX_WORDS) : SHOAL_ENOMEM;
    for (uint32_t i = 0; rc >= 0 && i < f->n_things; i++)
        for (uint32_t k = 0; rc >= 0 && k < f->things[i].names.n; k++) {
            struct home_words words = home_words_split(&f->arena, f->things[i].names.w[k]);
            for (uint32_t m = 0; rc >= 0 && m < words.n && n < MAX_WORDS; m++) {
                rc = strmap_put(&f->word_set, words.w[m], strlen(words.w[m]), n);
                if (rc == 0)
                    w[n++] = words.w[m];
            }
        }
    f->words = (struct home_list){w, n};
    return rc < 0 ? rc : 0;
}

/* The same thing of a copy of the things. */
static const struct home_thing *moved(const struct home_file *to, const struct home_file *from,
                                      const struct home_thing *x)
{
    return x ? &to->things[x - from->things] : NULL;
}

static const struct home_thing_set *move_sets(struct home_file *to, const struct home_file *from,
                                              const struct home_thing_set *sets, uint32_t n)
{
    struct home_thing_set *list = arena_zalloc_n(&to->arena, (size_t)n + 1, sizeof(*list));
    for (uint32_t i = 0; list && i < n; i++) {
        list[i] = sets[i];
        list[i].thing = moved(to, from, sets[i].thing);
    }
    return list;
}

/* Its kinds stay those that its names say in the language of the file, so that it is as dangerous
 * in every language. */
static const struct home_kind *kind_in(const struct home_table *t, const struct home_kind *k)
{
    return k ? home_table_kind(t, k->name) : NULL;
}

static void rename_thing(struct home_thing *x, const char *language)
{
    for (uint32_t i = 0; i < x->n_tongues; i++)
        if (strcmp(x->tongues[i].language, language) == 0) {
            x->name = x->tongues[i].written.w[0];
            x->names = x->tongues[i].names;
        }
}

static int copy_things(struct home_file *to, const struct home_file *from,
                       const struct home_table *t)
{
    for (uint32_t i = 0; to->things && i < from->n_things; i++) {
        struct home_thing *x = &to->things[i];
        *x = from->things[i];
        rename_thing(x, t->language);
        x->is = kind_in(t, x->is);
        x->also = kind_in(t, x->also);
        x->room = moved(to, from, x->room);
        x->sets = move_sets(to, from, x->sets, x->n_sets);
        if (strmap_put(&to->ids, x->id, strlen(x->id), i) < 0)
            return SHOAL_ENOMEM;
    }
    to->n_things = from->n_things;
    to->starts = move_sets(to, from, from->starts, from->n_starts);
    to->n_starts = from->n_starts;
    return to->arena.rc < 0 ? to->arena.rc : home_file_collect_words(to);
}

int home_file_add(struct home_file *f, const struct home_table *t)
{
    struct home_file *to = mem_zalloc(sizeof(*to));
    if (!to)
        return SHOAL_ENOMEM;
    atomic_init(&to->refs, 1);
    arena_init(&to->arena, HOME_FILE_ARENA_BYTES);
    to->name = f->name;
    to->language = t->language;
    to->has_place = f->has_place;
    memcpy(to->place, f->place, sizeof(to->place));
    to->open = f->open;
    to->things = arena_zalloc_n(&to->arena, (size_t)f->n_things + 1, sizeof(*to->things));
    to->next = f->next;
    f->next = to; /* also if it fails: the caller drops the file */
    const int rc = strmap_init(&to->ids, 64);
    return rc < 0 ? rc : copy_things(to, f, t);
}

bool home_file_able(const struct home_thing *x, const char *ability)
{
    return home_table_lists(&x->abilities, ability);
}

bool home_file_is(const struct home_thing *x, const struct home_list *kinds)
{
    bool is = home_table_lists(kinds, x->kind);
    for (const struct home_kind *k = x->is; k && !is; k = k->is)
        is = home_table_lists(kinds, k->name);
    return is;
}

bool home_file_has_word(const struct home_file *f, const char *word)
{
    uint32_t at;
    return f && strmap_get(&f->word_set, word, strlen(word), &at);
}

bool home_file_near_word(const struct home_file *f, const char *word)
{
    for (uint32_t i = 0; f && i < f->words.n; i++)
        if (home_near(word, f->words.w[i]) != HOME_NEAR_FAR)
            return true;
    return false;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_str(struct json_out *j, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    json_out_key(j, key);
    json_out_str(j, text);
}

static void put_list(struct json_out *j, const char *key, const struct home_list *l, uint32_t from)
{
    if (l->n <= from)
        return;
    json_out_key(j, key);
    json_out_array(j);
    for (uint32_t i = from; i < l->n; i++)
        json_out_str(j, l->w[i]);
    json_out_array_end(j);
}

static void put_limits(struct json_out *j, const struct home_thing *x)
{
    if (x->n_limits == 0)
        return;
    json_out_key(j, "limits");
    json_out_object(j);
    for (uint32_t i = 0; i < x->n_limits; i++) {
        const struct home_thing_limit *l = &x->limits[i];
        json_out_key(j, l->ability);
        json_out_object(j);
        json_out_key(j, "min");
        json_out_num(j, l->min);
        json_out_key(j, "max");
        json_out_num(j, l->max);
        put_str(j, "unit", l->unit);
        json_out_object_end(j);
    }
    json_out_object_end(j);
}

static void put_sets(struct json_out *j, const char *key, const struct home_thing_set *sets,
                     uint32_t n)
{
    if (n == 0)
        return;
    json_out_key(j, key);
    json_out_array(j);
    for (uint32_t i = 0; i < n; i++) {
        const struct home_thing_set *s = &sets[i];
        json_out_object(j);
        put_str(j, "id", s->thing->id);
        put_str(j, "ability", s->ability);
        json_out_key(j, "to");
        if (s->text)
            json_out_str(j, s->text);
        else
            json_out_num(j, s->number);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_tongues(struct json_out *j, const struct home_thing *x)
{
    if (x->n_tongues == 0)
        return;
    json_out_key(j, "names");
    json_out_object(j);
    for (uint32_t i = 0; i < x->n_tongues; i++)
        put_list(j, x->tongues[i].language, &x->tongues[i].written, 0);
    json_out_object_end(j);
}

static void put_thing(struct json_out *j, const struct home_thing *x)
{
    json_out_object(j);
    put_str(j, "id", x->id);
    put_str(j, "name", x->name);
    put_list(j, "aliases", &x->names, 1);
    put_tongues(j, x);
    put_str(j, "kind", x->kind);
    put_str(j, "room", x->room ? x->room->id : NULL);
    put_str(j, "floor", x->floor);
    put_str(j, "unit", x->unit);
    put_list(j, "abilities", &x->abilities, 0);
    put_limits(j, x);
    put_str(j, "risk", x->has_risk ? home_table_risk_name(x->risk) : NULL);
    put_sets(j, "sets", x->sets, x->n_sets);
    json_out_object_end(j);
}

void home_file_json(struct json_out *j, const struct home_file *f)
{
    put_str(j, "name", f->name);
    if (f->open) {
        json_out_key(j, "open");
        json_out_bool(j, true);
    }
    if (f->has_place) {
        json_out_key(j, "location");
        json_out_object(j);
        json_out_member_num(j, "latitude", f->place[0]);
        json_out_member_num(j, "longitude", f->place[1]);
        json_out_object_end(j);
    }
    for (enum home_thing_type t = 0; t < HOME_THING_COUNT; t++) {
        json_out_key(j, plurals[t]);
        json_out_array(j);
        for (uint32_t i = 0; i < f->n_things; i++)
            if (f->things[i].type == t)
                put_thing(j, &f->things[i]);
        json_out_array_end(j);
    }
    put_sets(j, "starts", f->starts, f->n_starts);
}
