/* home_fill.c - see home_fill.h. */
#include "apps/home/home_fill.h"

#include <assert.h>
#include <string.h>

static bool same_place(struct home_place a, struct home_place b)
{
    return a.when == b.when && (a.when || a.slot == b.slot);
}

struct home_place home_fill_own(const struct home_slot *s)
{
    return (struct home_place){s, NULL};
}

const char *home_fill_get(const struct home_fill *s, struct home_place p)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (same_place(s->s[i].place, p))
            return s->s[i].text;
    return NULL;
}

/* The slot is free: there are no more places than an action has slots and rows of "when". */
void home_fill_set(struct home_fill *s, struct home_place p, const char *text)
{
    assert(s->n < HOME_FILL_MAX_PLACES);
    s->s[s->n].place = p;
    s->s[s->n++].text = text;
    if (p.slot->until) {
        s->items[0] = text;
        s->n_items = 1;
    }
}

void home_fill_drop(struct home_fill *s, struct home_place p)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (same_place(s->s[i].place, p)) {
            memmove(&s->s[i], &s->s[i + 1], (s->n - i - 1) * sizeof(s->s[0]));
            s->n--;
            return;
        }
}

/* ---- from entities to slots ----------------------------------------------------------------- */

bool home_fill_has_word(const struct home_words *plain, const struct home_list *list)
{
    for (uint32_t i = 0; i < plain->n; i++)
        if (home_table_lists(list, plain->w[i]))
            return true;
    return false;
}

/* The last piece that is part of the message at i, whatever it speaks of: "tell Tom to buy milk and
 * eggs".  A time at the end is that of the sending, and a room that of an announcement. */
static uint32_t message_end(const struct home_piece *out, uint32_t i, uint32_t n)
{
    bool person = false;
    uint32_t last = i;
    for (uint32_t k = 0; k < i; k++)
        person |= out[k].slot && strcmp(out[k].slot->name, "person") == 0;
    for (uint32_t k = i + 1; k < n; k++) {
        const struct home_slot *s = out[k].slot;
        bool when = s && s->type >= HOME_SLOT_DURATION;
        bool room = s && strcmp(s->name, "room") == 0;
        if (!when && (!room || person))
            last = k;
    }
    return last;
}

/* A value continues with "and a half", a message with "and ...", whatever the tagger says. Drops
 * pieces that are then inside another one; returns how many stay. */
static uint32_t complete(struct arena *a, const struct home_table *t, const struct home_words *w,
                         struct home_piece *out, uint32_t n)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct home_piece p = out[i];
        if (kept > 0 && p.from < out[kept - 1].to) {
            out[kept - 1].to = p.to > out[kept - 1].to ? p.to : out[kept - 1].to;
            continue;
        }
        bool number =
            p.slot && (p.slot->type == HOME_SLOT_VALUE || p.slot->type == HOME_SLOT_DURATION);
        for (uint32_t k = 0; number && k < t->and_a_half.n; k++)
            p.to += home_words_phrase(&plain, p.to, t->and_a_half.w[k]);
        /* "half past seven" "in the evening" is one time */
        for (uint32_t k = 0; p.slot && p.slot->type == HOME_SLOT_TIME && k < t->time_am.n; k++)
            p.to += home_words_phrase(&plain, p.to, t->time_am.w[k]);
        for (uint32_t k = 0; p.slot && p.slot->type == HOME_SLOT_TIME && k < t->time_pm.n; k++)
            p.to += home_words_phrase(&plain, p.to, t->time_pm.w[k]);
        bool message = p.slot && p.slot->gather && strcmp(p.slot->name, "message") == 0;
        uint32_t last = message ? message_end(out, i, n) : i;
        p.to = last > i ? out[last].to : p.to;
        bool gather = p.slot && p.slot->gather && p.to < w->n && last + 1 == n &&
                      (message || (home_table_word(t, plain.w[p.to]) & HOME_WORD_JOIN));
        p.to = gather ? w->n : p.to;
        out[kept++] = p;
    }
    return kept;
}

static bool is_number(const struct home_table *t, const char *word)
{
    uint32_t number;
    return (word[0] >= '0' && word[0] <= '9') ||
           strmap_get(&t->numbers, word, strlen(word), &number);
}

/* "The bedroom 2 degrees cooler": a number before a unit is a value, not part of a name.  There is
 * room for one more piece; returns how many there are then. */
static uint32_t part_value(struct arena *a, const struct home_table *t, const struct home_words *w,
                           struct home_piece *out, uint32_t n)
{
    struct home_words plain = home_words_plain_all(a, w);
    const struct home_slot *value = home_table_slot(t, "value");
    uint32_t unit;
    for (uint32_t i = 0; value && a->rc == 0 && i < n; i++) {
        struct home_piece *p = &out[i];
        if (!p->slot || p->slot->type != HOME_SLOT_TEXT || p->slot->gather || p->to >= plain.n ||
            p->to - p->from < 2 || !is_number(t, plain.w[p->to - 1]) ||
            !strmap_get(&t->units, plain.w[p->to], strlen(plain.w[p->to]), &unit))
            continue;
        p->to--;
        if (i + 1 < n && out[i + 1].slot == value && out[i + 1].from == p->to + 1) {
            out[i + 1].from--;
            return n;
        }
        memmove(&out[i + 2], &out[i + 1], (n - i - 1) * sizeof(*out));
        out[i + 1] = (struct home_piece){.slot = value, .from = p->to, .to = p->to + 2};
        return n + 1;
    }
    return n;
}

/* Joins adjacent pieces of one value; those of a slot that gathers become one from the first to the
 * last. */
uint32_t home_fill_pieces(struct arena *a, const struct home_table *t, const struct home_clause *c,
                          const struct home_words *w, struct home_piece *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_entities; i++) {
        const struct home_entity *e = &c->entities[i];
        const struct home_slot *slot = home_table_slot(t, e->type);
        if (e->from >= e->to || e->to > w->n)
            continue;
        struct home_piece *last = n ? &out[n - 1] : NULL;
        bool of = last && slot && slot->type == HOME_SLOT_DURATION && last->to + 1 == e->from &&
                  home_table_lists(&t->date_drop, w->w[last->to]); /* "3 quarters" of "an hour" */
        /* "utility" "closet" side by side are one room, but "milk" "eggs" are two items */
        if (last && slot && last->slot == slot &&
            (slot->gather || of ||
             (!slot->until && last->to == e->from && !home_words_end_in(w->w[last->to - 1], ",;"))))
            last->to = e->to;
        else
            out[n++] = (struct home_piece){.slot = slot, .from = e->from, .to = e->to};
    }
    n = complete(a, t, w, out, n);
    n = part_value(a, t, w, out, n);
    for (uint32_t i = 0; i < n; i++) {
        out[i].text = home_words_trim_end(a, home_words_join(a, w, out[i].from, out[i].to),
                                          HOME_WORDS_CLOSING);
        out[i].before = out[i].from ? home_words_plain(a, w->w[out[i].from - 1]) : "";
    }
    return n;
}

/* The longest multi-word name of a thing of the home at word i; NULL: none. */
static const struct home_thing *name_at(const struct home_file *f, const struct home_words *plain,
                                        uint32_t i, uint32_t *n)
{
    const struct home_thing *best = NULL;
    *n = 1;
    for (uint32_t k = 0; k < f->n_things; k++)
        for (uint32_t m = 0; m < f->things[k].names.n; m++) {
            uint32_t len = home_words_phrase(plain, i, f->things[k].names.w[m]);
            if (len > *n) {
                *n = len;
                best = &f->things[k];
            }
        }
    return best;
}

/* May a piece be part of a thing's name? Text that is written, played or listed may not. */
static bool may_name(const struct home_piece *p)
{
    static const char *const names[] = {"device", "machine", "room", "sensor", "place", "event"};
    if (!p->slot || p->slot->type != HOME_SLOT_TEXT)
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(p->slot->name, names[i]) == 0)
            return true;
    return false;
}

uint32_t home_fill_names(struct arena *a, const struct home_table *t, const struct home_file *f,
                         const struct home_words *w, struct home_piece *pieces, uint32_t n)
{
    struct home_words plain = home_words_plain_all(a, w);
    for (uint32_t i = 0, len; a->rc == 0 && i < plain.n; i += len) {
        const struct home_thing *x = name_at(f, &plain, i, &len);
        uint32_t first = n, last = n;
        for (uint32_t k = 0; x && k < n; k++)
            if (pieces[k].from < i + len && pieces[k].to > i) {
                first = first == n ? k : first;
                last = k;
            }
        bool whole =
            first == last && first < n && pieces[first].from <= i && pieces[first].to >= i + len;
        bool fits =
            x && first < n && !whole && pieces[first].from >= i && pieces[last].to <= i + len;
        for (uint32_t k = first; fits && k <= last; k++)
            fits = may_name(&pieces[k]);
        const struct home_slot *slot = x ? home_table_slot(t, home_file_type_name(x->type)) : NULL;
        if (!fits || !slot ||
            (x->type != HOME_THING_ROOM && x->type != HOME_THING_DEVICE &&
             x->type != HOME_THING_MACHINE))
            continue;
        bool thing = pieces[first].slot && (strcmp(pieces[first].slot->name, "device") == 0 ||
                                            strcmp(pieces[first].slot->name, "machine") == 0);
        pieces[first].slot = thing && x->type != HOME_THING_ROOM ? pieces[first].slot : slot;
        pieces[first].from = i;
        pieces[first].to = i + len;
        pieces[first].text =
            home_words_trim_end(a, home_words_join(a, w, i, i + len), HOME_WORDS_CLOSING);
        pieces[first].before = i ? plain.w[i - 1] : "";
        memmove(&pieces[first + 1], &pieces[last + 1], (n - last - 1) * sizeof(*pieces));
        n -= last - first;
    }
    return n;
}

/* Is it the name of a room, and of nothing else that the home or the table knows? */
static bool only_room(const struct home_file *f, const struct home_slot *device, const char *name)
{
    uint32_t found;
    bool room = false;
    for (uint32_t i = 0; i < f->n_things; i++)
        if (home_table_lists(&f->things[i].names, name)) {
            if (f->things[i].type != HOME_THING_ROOM)
                return false;
            room = true;
        }
    return room && !strmap_get(&device->known, name, strlen(name), &found);
}

uint32_t home_fill_room_at(const struct home_file *f, const struct home_words *plain, uint32_t i)
{
    uint32_t best = 0;
    for (uint32_t k = 0; k < f->n_things; k++) {
        uint32_t n = f->things[k].type == HOME_THING_ROOM
                         ? home_table_phrase(&f->things[k].names, plain, i)
                         : 0;
        best = n > best ? n : best;
    }
    return best;
}

static struct home_piece piece_of(struct arena *a, const struct home_slot *slot,
                                  const struct home_words *w, const struct home_words *plain,
                                  uint32_t from, uint32_t to)
{
    return (struct home_piece){
        .slot = slot,
        .from = from,
        .to = to,
        .text = home_words_trim_end(a, home_words_join(a, w, from, to), HOME_WORDS_CLOSING),
        .before = from ? plain->w[from - 1] : ""};
}

uint32_t home_fill_rooms(struct arena *a, const struct home_table *t, const struct home_file *f,
                         const struct home_words *w, struct home_piece *pieces, uint32_t n)
{
    const struct home_slot *room = home_table_slot(t, "room"),
                           *device = home_table_slot(t, "device");
    struct home_words plain = home_words_plain_all(a, w);
    if (!room || !device || a->rc < 0)
        return n;
    bool named = false;
    for (uint32_t i = 0; i < n; i++) { /* "office on" */
        if (pieces[i].slot == device && only_room(f, device, home_words_lower(a, pieces[i].text)))
            pieces[i].slot = room;
        named |= pieces[i].slot == room;
    }
    for (uint32_t i = 0, len; !named && i < plain.n; i += len ? len : 1) {
        uint32_t at = 0;
        len = home_fill_room_at(f, &plain, i);
        while (at < n && pieces[at].to <= i)
            at++;
        if (len == 0 || (at < n && pieces[at].from < i + len))
            continue;
        bool before = at < n && pieces[at].slot == device && pieces[at].from == i + len;
        bool alone = i + len + 1 == plain.n &&
                     (home_table_word(t, plain.w[i + len]) & HOME_WORD_REPEAT_LAST) && n == 0;
        if (!before && !alone)
            continue;
        memmove(&pieces[at + 1], &pieces[at], (n - at) * sizeof(*pieces));
        pieces[at] = piece_of(a, room, w, &plain, i, i + len);
        return n + 1;
    }
    return n;
}

bool home_fill_has_slot(const struct home_action *x, const struct home_slot *s)
{
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->slots[i] == s)
            return true;
    return false;
}

/* "Play some reggae": finds the title that the tagger missed. */
static uint32_t add_title(struct arena *a, const struct home_table *t, const struct home_words *w,
                          const struct home_words *plain, struct home_piece *pieces, uint32_t n)
{
    const struct home_slot *media = home_table_slot(t, "media");
    uint32_t from = 0, to, at = 0;
    for (uint32_t i = 0; i < n; i++)
        if (pieces[i].slot && pieces[i].slot->type == HOME_SLOT_TEXT && !pieces[i].slot->lower)
            return n;
    while (from < plain->n &&
           (home_table_word(t, plain->w[from]) != 0 || strlen(plain->w[from]) <= 2))
        from++; /* the verb, "some" */
    while (at < n && pieces[at].from < from)
        at++;
    uint32_t end = at < n ? pieces[at].from : plain->n;
    for (to = from; to < end && !home_table_lists(&t->front, plain->w[to]); to++)
        if (home_table_lists(&t->pronouns, plain->w[to]))
            return n;
    if (to <= from)
        return n;
    memmove(&pieces[at + 1], &pieces[at], (n - at) * sizeof(*pieces));
    pieces[at] = piece_of(a, media, w, plain, from, to);
    return n + 1;
}

/* "Tell Paula to send more towels": if the tagger sees no message, everything after the name is
 * one. */
static uint32_t add_message(struct arena *a, const struct home_table *t, const struct home_words *w,
                            const struct home_words *plain, struct home_piece *pieces, uint32_t n)
{
    const struct home_slot *message = home_table_slot(t, "message");
    uint32_t from = n > 0 ? pieces[0].to : 0, known = 0;
    if (n == 0 || pieces[0].slot != home_table_slot(t, "person"))
        return n;
    for (uint32_t i = 1; i < n; i++)
        if (pieces[i].slot == message ||
            (pieces[i].slot && pieces[i].slot->type >= HOME_SLOT_DURATION))
            return n;
    while (from < plain->n && (home_table_word(t, plain->w[from]) & HOME_WORD_POLITE))
        from++; /* "to" */
    for (uint32_t i = from; i < plain->n; i++)
        known += home_table_word(t, plain->w[i]) != 0;
    if (known == plain->n - from) /* "a message" */
        return n;
    pieces[1] = piece_of(a, message, w, plain, from, plain->n);
    return 2;
}

uint32_t home_fill_missed(struct arena *a, const struct home_table *t, const struct home_action *x,
                          const struct home_words *w, struct home_piece *pieces, uint32_t n)
{
    const struct home_slot *media = home_table_slot(t, "media"),
                           *message = home_table_slot(t, "message");
    struct home_words plain = home_words_plain_all(a, w);
    if (a->rc == 0 && media && home_fill_has_slot(x, media))
        n = add_title(a, t, w, &plain, pieces, n);
    if (a->rc == 0 && message && home_fill_has_slot(x, message))
        n = add_message(a, t, w, &plain, pieces, n);
    return n;
}

static bool needs_value(const struct home_action *x)
{
    for (uint32_t i = 0; i < x->n_needs; i++)
        if (x->needs[i]->type == HOME_SLOT_VALUE)
            return true;
    return false;
}

/* "Open the blinds at 7": a bare number after a word for times, where no value is needed or one is
 * already known. */
static const struct home_when *as_time(const struct home_table *t, const struct home_action *x,
                                       const struct home_piece *p, const struct home_fill *cur)
{
    uint32_t number;
    if (!p->slot || p->slot->type != HOME_SLOT_VALUE || !x->can_wait ||
        (needs_value(x) && !home_fill_get(cur, home_fill_own(p->slot))) ||
        (p->text[strspn(p->text, "0123456789:")] &&
         !strmap_get(&t->numbers, p->text, strlen(p->text), &number)))
        return NULL;
    for (uint32_t i = 0; i < t->n_when; i++)
        if (t->when[i].slot->type == HOME_SLOT_TIME && strcmp(t->when[i].show, p->before) == 0)
            return &t->when[i];
    return NULL;
}

/* The place that a piece fills; slot NULL: none. */
static struct home_place place_of(const struct home_table *t, const struct home_action *x,
                                  const struct home_piece *p, const struct home_fill *cur)
{
    const struct home_slot *s = p->slot;
    const struct home_when *time = as_time(t, x, p, cur);
    if (time)
        s = time->slot;
    for (uint32_t i = 0; i < x->n_accepts; i++)
        if (x->accepts[i].entity == s)
            s = x->accepts[i].slot;
    for (uint32_t i = 0; x->can_wait && i < t->n_when; i++)
        if (t->when[i].slot == s && home_table_lists(&t->when[i].after, p->before))
            return (struct home_place){s, &t->when[i]};
    if (s && home_fill_has_slot(x, s))
        return home_fill_own(s);
    for (uint32_t i = 0; x->can_wait && i < t->n_when; i++)
        if (t->when[i].slot == s && t->when[i].after.n == 0)
            return (struct home_place){s, &t->when[i]};
    return (struct home_place){0};
}

/* Distributes pieces over the slots of one or more actions: a repeated slot begins another
 * action. */
uint32_t home_fill_group(const struct home_table *t, const struct home_action *x,
                         struct home_piece *pieces, uint32_t n, struct home_fill *sets)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct home_fill *cur = &sets[at];
        struct home_place p = place_of(t, x, &pieces[i], cur);
        if (!p.slot)
            continue;
        pieces[i].used = true;
        if (p.slot->until && home_fill_get(cur, p) &&
            !home_fill_get(cur, home_fill_own(p.slot->until))) {
            if (cur->n_items < ASK_PLAN_MAX_ITEMS)
                cur->items[cur->n_items++] = pieces[i].text;
            continue;
        }
        if (home_fill_get(cur, p))
            cur = &sets[++at];
        home_fill_set(cur, p, pieces[i].text);
    }
    return at + 1;
}

/* Fills the missing slots of a set from the next sets, else from the previous ones, nearest
 * first. */
void home_fill_lend(const struct home_action *x, struct home_fill *sets, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < x->n_needs; k++) {
            struct home_place need = home_fill_own(x->needs[k]);
            const struct home_fill *from = NULL;
            if (home_fill_get(&sets[i], need))
                continue;
            for (uint32_t j = i + 1; !from && j < n; j++)
                from = home_fill_get(&sets[j], need) ? &sets[j] : NULL;
            for (uint32_t j = i; !from && j > 0; j--)
                from = home_fill_get(&sets[j - 1], need) ? &sets[j - 1] : NULL;
            if (!from)
                continue;
            home_fill_set(&sets[i], need, home_fill_get(from, need));
            if (need.slot->until) {
                memcpy(sets[i].items, from->items, sizeof(from->items));
                sets[i].n_items = from->n_items;
            }
        }
}

static bool default_holds(const struct home_default *d, const struct home_fill *s,
                          const struct home_words *plain)
{
    if (home_fill_get(s, home_fill_own(d->slot)) ||
        (d->from && !home_fill_get(s, home_fill_own(d->from))) ||
        (d->words.n > 0 && !home_fill_has_word(plain, &d->words)))
        return false;
    for (const struct home_slot **p = d->with; *p; p++)
        if (!home_fill_get(s, home_fill_own(*p)))
            return false;
    for (const struct home_slot **p = d->without; *p; p++)
        if (home_fill_get(s, home_fill_own(*p)))
            return false;
    return true;
}

void home_fill_defaults(const struct home_action *x, struct home_fill *s,
                        const struct home_words *plain, bool names_more)
{
    for (const struct home_default **p = x->defaults; *p; p++) {
        const struct home_default *d = *p;
        if (!default_holds(d, s, plain) || (d->alone && names_more))
            continue;
        const char *text = d->from ? home_fill_get(s, home_fill_own(d->from)) : d->value;
        if (d->from)
            home_fill_drop(s, home_fill_own(d->from));
        home_fill_set(s, home_fill_own(d->slot), text);
    }
}
