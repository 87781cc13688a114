/* home_rules.c - see home_rules.h. */
#include "flow/home/home_rules.h"

#include <assert.h>
#include <string.h>

#include "flow/home/home_risk.h"
#include "flow/home/home_speech.h"
#include "flow/home/home_values.h"
#include "flow/home/home_words.h"

/* A slot of its action, or a row of "when" of an action that has no such slot. */
struct place {
    const struct home_slot *slot;
    const struct home_when *when; /* NULL: the action's own slot */
};

static bool same_place(struct place a, struct place b)
{
    return a.when == b.when && (a.when || a.slot == b.slot);
}

static struct place own(const struct home_slot *s)
{
    return (struct place){s, NULL};
}

#define MAX_PLACES (HOME_MAX_SLOTS + HOME_MAX_WHEN)

struct slots { /* of one action: places with their texts, a list with several */
    struct {
        struct place place;
        const char *text;
    } s[MAX_PLACES];
    uint32_t n;
    const char *items[ASK_PLAN_MAX_ITEMS];
    uint32_t n_items;
};

static const char *slot_get(const struct slots *s, struct place p)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (same_place(s->s[i].place, p))
            return s->s[i].text;
    return NULL;
}

/* The place is free: there are no more places than an action has slots and rows of "when". */
static void slot_set(struct slots *s, struct place p, const char *text)
{
    assert(s->n < MAX_PLACES);
    s->s[s->n].place = p;
    s->s[s->n++].text = text;
    if (p.slot->until) {
        s->items[0] = text;
        s->n_items = 1;
    }
}

static void slot_drop(struct slots *s, struct place p)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (same_place(s->s[i].place, p)) {
            memmove(&s->s[i], &s->s[i + 1], (s->n - i - 1) * sizeof(s->s[0]));
            s->n--;
            return;
        }
}

/* ---- from entities to slots ----------------------------------------------------------------- */

static bool has_word(const struct home_words *plain, const struct home_list *list)
{
    for (uint32_t i = 0; i < plain->n; i++)
        if (home_table_lists(list, plain->w[i]))
            return true;
    return false;
}

/* The words themselves decide between on and off, lock and unlock: a wrong guess there would be the
 * worst one. */
static const struct home_action *
settle(const struct home_table *t, const struct home_action *action, const struct home_words *plain)
{
    for (uint32_t i = 0; i < t->n_opposites; i++) {
        const struct home_opposite *o = &t->opposites[i];
        if (action != o->action[0] && action != o->action[1])
            continue;
        bool first = has_word(plain, &o->words[0]), second = has_word(plain, &o->words[1]);
        if (first && second)
            return o->both ? o->both : action;
        return first ? o->action[0] : second ? o->action[1] : action;
    }
    return action;
}

struct piece {                    /* an entity with its words */
    const struct home_slot *slot; /* NULL: the table knows no such type */
    const char *text, *before;
    uint32_t from, to;
    bool used;
};

/* A value goes on with "and a half", a message with "and ...", whatever the tagger says.  Pieces
 * that are inside of another one then are left out; returns how many stay. */
static uint32_t complete(struct arena *a, const struct home_table *t, const struct home_words *w,
                         struct piece *out, uint32_t n)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct piece p = out[i];
        if (kept > 0 && p.from < out[kept - 1].to) {
            out[kept - 1].to = p.to > out[kept - 1].to ? p.to : out[kept - 1].to;
            continue;
        }
        uint32_t next = i + 1 < n ? out[i + 1].from : w->n;
        bool number =
            p.slot && (p.slot->type == HOME_SLOT_VALUE || p.slot->type == HOME_SLOT_DURATION);
        for (uint32_t k = 0; number && k < t->and_a_half.n; k++)
            p.to += home_words_phrase(&plain, p.to, t->and_a_half.w[k]);
        bool gather = p.slot && p.slot->gather && p.to < next &&
                      (home_table_word(t, plain.w[p.to]) & HOME_WORD_JOIN) && i + 1 == n;
        p.to = gather ? next : p.to;
        out[kept++] = p;
    }
    return kept;
}

/* Pieces of one value that touch are one; those of a slot that gathers are one from the first to
 * the last. */
static uint32_t merge(struct arena *a, const struct home_table *t, const struct home_clause *c,
                      const struct home_words *w, struct piece *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_entities; i++) {
        const struct home_entity *e = &c->entities[i];
        const struct home_slot *slot = home_table_slot(t, e->type);
        if (e->from >= e->to || e->to > w->n)
            continue;
        struct piece *last = n ? &out[n - 1] : NULL;
        /* "utility" "closet" side by side are one room, but "milk" "eggs" are two items */
        if (last && slot && last->slot == slot &&
            (slot->gather ||
             (!slot->until && last->to == e->from && !home_words_end_in(w->w[last->to - 1], ",;"))))
            last->to = e->to;
        else
            out[n++] = (struct piece){.slot = slot, .from = e->from, .to = e->to};
    }
    n = complete(a, t, w, out, n);
    for (uint32_t i = 0; i < n; i++) {
        out[i].text = home_words_trim_end(a, home_words_join(a, w, out[i].from, out[i].to),
                                          HOME_WORDS_CLOSING);
        out[i].before = out[i].from ? home_words_plain(a, w->w[out[i].from - 1]) : "";
    }
    return n;
}

static bool has_slot(const struct home_action *x, const struct home_slot *s)
{
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->slots[i] == s)
            return true;
    return false;
}

/* The place that a piece fills; slot NULL: none. */
static struct place place_of(const struct home_table *t, const struct home_action *x,
                             const struct piece *p)
{
    const struct home_slot *s = p->slot;
    for (uint32_t i = 0; i < x->n_accepts; i++)
        if (x->accepts[i].entity == s)
            s = x->accepts[i].slot;
    for (uint32_t i = 0; x->can_wait && i < t->n_when; i++)
        if (t->when[i].slot == s && home_table_lists(&t->when[i].after, p->before))
            return (struct place){s, &t->when[i]};
    if (s && has_slot(x, s))
        return own(s);
    for (uint32_t i = 0; x->can_wait && i < t->n_when; i++)
        if (t->when[i].slot == s && t->when[i].after.n == 0)
            return (struct place){s, &t->when[i]};
    return (struct place){0};
}

/* Pieces to the slots of one or more actions: a slot that comes again begins another action. */
static uint32_t group(const struct home_table *t, const struct home_action *x, struct piece *pieces,
                      uint32_t n, struct slots *sets)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct place p = place_of(t, x, &pieces[i]);
        struct slots *cur = &sets[at];
        if (!p.slot)
            continue;
        pieces[i].used = true;
        if (p.slot->until && slot_get(cur, p) && !slot_get(cur, own(p.slot->until))) {
            if (cur->n_items < ASK_PLAN_MAX_ITEMS)
                cur->items[cur->n_items++] = pieces[i].text;
            continue;
        }
        if (slot_get(cur, p))
            cur = &sets[++at];
        slot_set(cur, p, pieces[i].text);
    }
    return at + 1;
}

/* What a set needs and lacks comes from the next ones, else from the ones before, nearest first. */
static void lend(const struct home_action *x, struct slots *sets, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < x->n_needs; k++) {
            struct place need = own(x->needs[k]);
            const struct slots *from = NULL;
            if (slot_get(&sets[i], need))
                continue;
            for (uint32_t j = i + 1; !from && j < n; j++)
                from = slot_get(&sets[j], need) ? &sets[j] : NULL;
            for (uint32_t j = i; !from && j > 0; j--)
                from = slot_get(&sets[j - 1], need) ? &sets[j - 1] : NULL;
            if (!from)
                continue;
            slot_set(&sets[i], need, slot_get(from, need));
            if (need.slot->until) {
                memcpy(sets[i].items, from->items, sizeof(from->items));
                sets[i].n_items = from->n_items;
            }
        }
}

static bool default_holds(const struct home_default *d, const struct slots *s,
                          const struct home_words *plain)
{
    if (slot_get(s, own(d->slot)) || (d->from && !slot_get(s, own(d->from))) ||
        (d->words.n > 0 && !has_word(plain, &d->words)))
        return false;
    for (const struct home_slot **p = d->with; *p; p++)
        if (!slot_get(s, own(*p)))
            return false;
    for (const struct home_slot **p = d->without; *p; p++)
        if (slot_get(s, own(*p)))
            return false;
    return true;
}

static void fill_defaults(const struct home_action *x, struct slots *s,
                          const struct home_words *plain, bool names_more)
{
    for (const struct home_default **p = x->defaults; *p; p++) {
        const struct home_default *d = *p;
        if (!default_holds(d, s, plain) || (d->alone && names_more))
            continue;
        const char *text = d->from ? slot_get(s, own(d->from)) : d->value;
        if (d->from)
            slot_drop(s, own(d->from));
        slot_set(s, own(d->slot), text);
    }
}

/* ---- an action and its line ----------------------------------------------------------------- */

struct act { /* one action being made */
    struct arena *a;
    const struct home_table *t;
    const struct home_action *x;
    struct ask_plan_action *o;
    const struct tm *now;
    const char *pairs;                 /* "; key: value" ... */
    const char *shows[HOME_MAX_SLOTS]; /* of the action's slots; NULL: missing */
    const char *result, *reason, *ask, *answer, *when;
    const char *wrong; /* a value that cannot be */
    bool names_more;   /* the clause has words that nothing explains */
    double sign;       /* of a change: -1, +1; 0: the value is set */
    const struct home_clause *clause;
};

static struct ask_plan_field *field(struct act *x, const char *key)
{
    struct ask_plan_action *o = x->o;
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0)
            return &o->fields[i];
    assert(o->n_fields < ASK_PLAN_MAX_FIELDS); /* the table bounds slots and rows of "when" */
    o->fields[o->n_fields].key = key;
    return &o->fields[o->n_fields++];
}

static void put_text(struct act *x, const char *key, const char *text)
{
    *field(x, key) = (struct ask_plan_field){.key = key, .text = text};
}

static void put_number(struct act *x, const char *key, double number)
{
    *field(x, key) = (struct ask_plan_field){.key = key, .number = number};
}

static const char *get_text(const struct act *x, const char *key)
{
    for (uint32_t i = 0; i < x->o->n_fields; i++)
        if (strcmp(x->o->fields[i].key, key) == 0)
            return x->o->fields[i].text;
    return NULL;
}

static void pair(struct act *x, const char *key, const char *show)
{
    x->pairs = arena_printf(x->a, "%s; %s: %s", x->pairs, key, show);
}

/* ";" separates pairs, so it may not be in one; white space becomes one space. */
static const char *tidy(struct arena *a, const char *text)
{
    char *s = arena_copy(a, text, strlen(text) + 1);
    for (char *p = s; p && *p; p++)
        if (*p == ';')
            *p = ',';
    struct home_words w = home_words_split(a, s ? s : "");
    return home_words_join(a, &w, 0, w.n);
}

static const char *without_articles(const struct act *x, const char *text)
{
    struct home_words w = home_words_split(x->a, text);
    uint32_t from = 0;
    while (from + 1 < w.n &&
           (home_table_word(x->t, home_words_lower(x->a, w.w[from])) & HOME_WORD_ARTICLE))
        from++;
    return home_words_join(x->a, &w, from, w.n);
}

static const char *to_you(const struct act *x, const char *text)
{
    struct home_words w = home_words_split(x->a, text);
    for (uint32_t i = 0; i < w.n; i++) {
        const char *low = home_words_lower(x->a, w.w[i]);
        for (uint32_t k = 0; k < x->t->you.n; k++)
            if (strcmp(low, x->t->you.p[k].from) == 0) {
                w.w[i] = x->t->you.p[k].to;
                break;
            }
    }
    return home_words_join(x->a, &w, 0, w.n);
}

static const char *normal_text(const struct act *x, const struct home_slot *slot, const char *text)
{
    if (slot->lower)
        text = home_words_lower(x->a, text);
    if (slot->strip_articles)
        text = without_articles(x, text);
    return text;
}

/* Puts a slot into the object under a key; returns how the line shows it. */
static const char *put_slot(struct act *x, const struct home_slot *slot, const char *key,
                            const char *raw)
{
    struct arena *a = x->a;
    const char *text = tidy(a, raw);
    struct home_value v;
    switch (slot->type) {
    case HOME_SLOT_VALUE:
        v = home_values_amount(a, x->t, text, x->x);
        x->wrong = v.wrong ? v.show : x->wrong;
        if (v.text)
            put_text(x, key, v.text);
        if (v.text && !x->x->amounts) /* "half" of a temperature */
            x->ask = slot->name;
        if (v.text)
            return v.show;
        if (x->sign != 0.0)
            put_number(x, "change", x->sign * v.number);
        else
            put_number(x, key, v.number);
        if (v.unit)
            put_text(x, "unit", v.unit);
        return x->sign != 0.0 ? arena_printf(a, "%s%s", x->sign < 0.0 ? "minus " : "plus ", v.show)
                              : v.show;
    case HOME_SLOT_DURATION:
        v = home_values_duration(a, x->t, text);
        if (v.understood)
            put_number(x, arena_printf(a, "%s_s", key), v.number);
        else
            put_text(x, key, v.show);
        x->wrong = v.wrong ? v.show : x->wrong;
        return v.show;
    case HOME_SLOT_TIME:
        v = home_values_clock(a, x->t, text);
        put_text(x, key, v.text);
        x->wrong = v.wrong ? v.show : x->wrong;
        return v.show;
    case HOME_SLOT_DATE:
        v = home_values_date(a, x->t, text);
        put_text(x, key, v.text);
        x->wrong = v.wrong ? v.show : x->wrong;
        return v.show;
    case HOME_SLOT_TEXT:
        break;
    }
    text = normal_text(x, slot, text);
    put_text(x, key, text);
    return slot->to_you ? to_you(x, text) : text;
}

static const char *put_items(struct act *x, const struct home_slot *slot, const struct slots *s)
{
    const char **list = arena_zalloc_n(x->a, s->n_items, sizeof(*list));
    const char *show = "", *key = slot->name;
    if (!list)
        return "";
    for (uint32_t i = 0; i < s->n_items; i++) {
        bool last = i + 1 == s->n_items;
        list[i] = normal_text(x, slot, tidy(x->a, s->items[i]));
        if (i == 0)
            show = list[0];
        else if (last)
            show = arena_printf(x->a, "%s %s %s", show, x->t->list_and, list[i]);
        else
            show = arena_printf(x->a, "%s, %s", show, list[i]);
    }
    if (s->n_items == 1)
        put_text(x, key, list[0]);
    else
        *field(x, key) = (struct ask_plan_field){.key = key, .items = list, .n_items = s->n_items};
    return show;
}

static void put_slots(struct act *x, const struct slots *s)
{
    for (uint32_t i = 0; i < x->x->n_slots; i++) {
        const struct home_slot *slot = x->x->slots[i];
        const char *text = slot_get(s, own(slot));
        if (!text)
            continue;
        x->shows[i] = slot->until ? put_items(x, slot, s) : put_slot(x, slot, slot->name, text);
        pair(x, slot->name, x->shows[i]);
    }
}

/* When it shall happen, or how long; true: later. */
static bool put_when(struct act *x, const struct slots *s)
{
    bool later = false;
    for (uint32_t i = 0; i < x->t->n_when; i++) {
        const struct home_when *w = &x->t->when[i];
        const char *text = slot_get(s, (struct place){w->slot, w});
        if (!text)
            continue;
        const char *show = put_slot(x, w->slot, w->key, text);
        pair(x, w->show, show);
        x->when = arena_printf(x->a, "%s %s%s%s", x->when ? x->when : "",
                               w->slot->type == HOME_SLOT_DATE ? "" : w->show,
                               w->slot->type == HOME_SLOT_DATE ? "" : " ", show);
        later |= w->later;
    }
    return later;
}

/* "kitchen_lights": lower-case letters and digits, everything else is one "_". */
static void put_id(struct act *x)
{
    const struct home_table *t = x->t;
    const char *name = "";
    if (t->n_id == 0 || !get_text(x, t->id[t->n_id - 1]->name))
        return;
    for (uint32_t i = 0; i < t->n_id; i++) {
        const char *part = get_text(x, t->id[i]->name);
        if (part)
            name = arena_printf(x->a, "%s%s%s", name, *name ? " " : "", part);
    }
    char *id = arena_bytes(x->a, strlen(name) + 1), *p = id;
    if (!id)
        return;
    for (; *name; name++) {
        bool good = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9');
        if (good)
            *p++ = *name;
        else if (p > id && p[-1] != '_')
            *p++ = '_';
    }
    if (p > id && p[-1] == '_')
        p--;
    *p = '\0';
    put_text(x, "id", id);
}

/* "2", "b", "k-12": the number of a thing, not its kind. */
static bool is_code(const char *w)
{
    const char *p = w;
    bool letter = *p >= 'a' && *p <= 'z';
    p += letter;
    if (letter && !*p)
        return true;
    p += *p == '-';
    size_t n = strspn(p, "0123456789");
    return n > 0 && p[n] == '\0';
}

/* Is the last word of a text, codes aside, one that the slot knows? */
static bool is_known(const struct act *x, const struct home_slot *slot, const char *text)
{
    struct home_words w = home_words_split(x->a, home_words_lower(x->a, text));
    uint32_t found;
    while (w.n > 0 && is_code(w.w[w.n - 1]))
        w.n--;
    if (w.n == 0)
        return false;
    const char *s = w.w[w.n - 1];
    size_t n = strlen(s);
    if (strmap_get(&slot->known, s, n, &found))
        return true;
    for (uint32_t i = 0; i < slot->known_endings.n; i++) {
        const char *end = slot->known_endings.w[i];
        size_t len = strlen(end);
        if (n > len && strcmp(s + n - len, end) == 0 &&
            strmap_get(&slot->known, s, n - len, &found))
            return true;
    }
    return false;
}

static bool all_known(const struct act *x)
{
    for (uint32_t i = 0; i < x->x->n_slots; i++) {
        const struct home_slot *slot = x->x->slots[i];
        const char *text = slot->known.n_used ? get_text(x, slot->name) : NULL;
        if (text && !is_known(x, slot, text))
            return false;
    }
    return true;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static const char *get_var(void *ctx, uint32_t var);

/* What the action does: "unlock the front door". */
static const char *in_words(struct act *x)
{
    const struct home_template *t =
        x->sign != 0.0 && x->x->change.n > 0 ? &x->x->change : &x->x->say;
    if (t->n == 0)
        return x->x->name;
    const char *text = home_template_fill(x->a, t, get_var, x);
    struct home_words w = home_words_split(x->a, text); /* slots that are missing leave spaces */
    return home_words_join(x->a, &w, 0, w.n);
}

/* A line of "says"; "": the table has none. */
static const char *say(struct act *x, enum home_say which)
{
    return home_template_fill(x->a, &x->t->say[which], get_var, x);
}

static const char *get_var(void *ctx, uint32_t var)
{
    struct act *x = ctx;
    const struct tm *now = x->now;
    switch (var) {
    case HOME_VAR_ACTION:
        return x->x->name;
    case HOME_VAR_SLOTS:
        return x->pairs;
    case HOME_VAR_RESULT:
        return x->result;
    case HOME_VAR_REASON:
        return x->reason;
    case HOME_VAR_ASK:
        return x->ask;
    case HOME_VAR_ANSWER:
        return x->answer;
    case HOME_VAR_DO:
        return in_words(x);
    case HOME_VAR_WHEN:
        return x->when;
    case HOME_VAR_WEEKDAY: /* the table begins with Monday */
        return x->t->weekdays.w[(uint32_t)(now->tm_wday + 6) % 7];
    case HOME_VAR_MONTH:
        return x->t->months.w[(uint32_t)now->tm_mon % 12];
    case HOME_VAR_DAY:
        return arena_printf(x->a, "%d", now->tm_mday);
    case HOME_VAR_YEAR:
        return arena_printf(x->a, "%d", now->tm_year + 1900);
    case HOME_VAR_HOUR:
        return arena_printf(x->a, "%02d", now->tm_hour);
    case HOME_VAR_MINUTE:
        return arena_printf(x->a, "%02d", now->tm_min);
    default:
        return x->shows[var - HOME_VAR_SLOT];
    }
}

static struct home_draft_line line(struct act *x, const struct home_template *t, bool joins,
                                   enum home_say which)
{
    return (struct home_draft_line){home_template_fill(x->a, t, get_var, x), say(x, which), joins};
}

/* Said by the program itself; without such a line in the table, by the model. */
static struct home_draft_line plain_line(struct act *x, enum home_say which)
{
    if (x->t->say[which].n > 0)
        return (struct home_draft_line){.say = say(x, which)};
    return line(x, &x->t->line_failed, true, which);
}

static void put_result(struct act *x, const char *result)
{
    x->result = result;
    put_text(x, "result", result);
}

static const char *get_said(void *ctx, uint32_t var)
{
    (void)var; /* {text} is the only name */
    return ctx;
}

/* What was said itself, for a clause that is chat or out of scope. */
static struct home_draft_line said(struct arena *a, const struct home_template *t, const char *text)
{
    const char *s = tidy(a, text);
    return (struct home_draft_line){.text =
                                        home_template_fill(a, t, get_said, (void *)(uintptr_t)s)};
}

/* A question that needs no source; text NULL: it is out of scope. */
static struct home_draft_line answer(struct act *x, const struct slots *s)
{
    if (x->x->compute) {
        double result = 0.0;
        const char *expr = slot_get(s, own(x->x->compute));
        bool ok = expr && home_values_calculate(x->a, x->t, expr, &x->answer, &result);
        put_result(x, ok ? "done" : "unknown");
        if (!ok)
            return (struct home_draft_line){0};
        put_number(x, "answer", result);
    } else {
        put_result(x, "done");
    }
    return (struct home_draft_line){.text = home_template_fill(x->a, &x->x->answer, get_var, x)};
}

static bool has_reason(const struct home_action *x, const struct slots *s)
{
    for (uint32_t i = 0; i < x->n_reason_if; i++)
        if (slot_get(s, own(x->reason_if[i])))
            return true;
    return x->answer.n == 0;
}

/* What an action acts on, for risk and limits. */
static const char *thing_of(struct act *x)
{
    const char *out = "";
    for (uint32_t i = 0; i < x->x->n_slots; i++) {
        const struct home_slot *s = x->x->slots[i];
        const char *text = s->type == HOME_SLOT_TEXT && !s->gather ? get_text(x, s->name) : NULL;
        if (text)
            out = arena_printf(x->a, "%s %s", out, home_words_lower(x->a, text));
    }
    return out;
}

/* A number outside the limits, or a time that cannot be: why; NULL: all is well. */
static const char *refusal(struct act *x, const char *thing)
{
    if (x->wrong)
        return arena_printf(x->a, "there is no \"%s\"", x->wrong);
    for (uint32_t i = 0; i < x->o->n_fields; i++) {
        const struct ask_plan_field *f = &x->o->fields[i];
        if (f->text || f->n_items || strcmp(f->key, "value") != 0)
            continue;
        const char *unit = get_text(x, "unit");
        const struct home_limit *l = home_risk_limit(x->a, x->t, x->x, thing, unit, f->number);
        if (l && f->number > l->max)
            return arena_printf(x->a, "the maximum is %g%s%s", l->max, unit ? " " : "",
                                unit ? unit : "");
        if (l)
            return arena_printf(x->a, "the minimum is %g%s%s", l->min, unit ? " " : "",
                                unit ? unit : "");
    }
    return NULL;
}

static void drop_field(struct act *x, const char *key)
{
    struct ask_plan_action *o = x->o;
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0) {
            memmove(&o->fields[i], &o->fields[i + 1], (--o->n_fields - i) * sizeof(o->fields[0]));
            return;
        }
}

/* Dangerous actions wait for a yes: the draft keeps what they are then. */
static struct home_draft_line hold(struct act *x, struct home_draft *draft, enum home_risk risk,
                                   struct home_draft_line then)
{
    struct ask_plan_action *sure = arena_zalloc(x->a, sizeof(*sure));
    if (!sure)
        return then;
    *sure = *x->o;
    draft->held[draft->n_held++] = (struct home_draft_held){sure, then.text, then.say};
    drop_field(x, "result");
    put_text(x, "risk", home_table_risk_name(risk));
    put_result(x, "confirm");
    return plain_line(x, HOME_SAY_CONFIRM);
}

/* One set of slots to an action and its line; text and say NULL: the clause is out of scope. */
static struct home_draft_line act(struct act *x, struct slots *s, const struct home_words *plain,
                                  struct home_draft *draft)
{
    const struct home_action *action = x->x;
    fill_defaults(action, s, plain, x->names_more);
    put_slots(x, s);
    bool later = put_when(x, s);
    put_id(x);
    const char *thing = thing_of(x);
    enum home_risk risk = home_risk_of(x->a, x->t, action, thing);
    if (x->clause->intent_p < x->t->risk[risk].threshold) {
        put_result(x, "unsure");
        return plain_line(x, HOME_SAY_UNSURE);
    }
    for (uint32_t i = 0; !x->ask && i < action->n_needs; i++)
        if (!slot_get(s, own(action->needs[i])))
            x->ask = action->needs[i]->name;
    if (x->ask && action->compute)
        return answer(x, s); /* nothing to compute */
    if (x->ask) {
        put_result(x, "ask");
        put_text(x, "ask", x->ask);
        return line(x, &x->t->line_ask, false, HOME_SAY_MISSING);
    }
    if (!all_known(x)) {
        put_result(x, "unknown");
        return line(x, &x->t->line_act, true, HOME_SAY_UNKNOWN);
    }
    x->reason = refusal(x, thing);
    if (x->reason) {
        put_result(x, "refused");
        put_text(x, "reason", x->reason);
        return plain_line(x, HOME_SAY_LIMIT);
    }
    if (action->answer.n == 0 && !action->reason) {
        put_result(x, later ? "scheduled" : "done");
        enum home_say which = later ? HOME_SAY_SCHEDULED : HOME_SAY_DONE;
        /* the reply model has no words for a change */
        struct home_draft_line done =
            x->sign != 0.0 ? plain_line(x, which) : line(x, &x->t->line_act, true, which);
        return x->t->risk[risk].confirm ? hold(x, draft, risk, done) : done;
    }
    if (!has_reason(action, s))
        return answer(x, s);
    put_result(x, "failed");
    put_text(x, "reason", action->reason);
    x->reason = action->reason;
    return line(x, &x->t->line_failed, true, HOME_SAY_FAILED);
}

/* ---- the draft ------------------------------------------------------------------------------ */

static void add_line(struct arena *a, struct home_draft *p, struct home_draft_line line)
{
    if (home_draft_reserve(a, p))
        p->lines[p->n_lines++] = line;
}

struct decision { /* about one clause */
    struct arena *a;
    const struct home_table *t;
    struct home_draft *draft;
    const struct home_clause *c;
    const struct tm *now;
    struct home_words w, plain;
    bool *covered; /* words of what is written, played or named */
};

static bool is_question(const struct home_action *x)
{
    return x->answer.n > 0 || x->reason;
}

/* Words inside messages, titles and other names are not about what shall happen. */
static void cover(struct decision *d)
{
    d->covered = arena_zalloc_n(d->a, (size_t)d->w.n + 1, sizeof(*d->covered));
    uint32_t gathered = UINT32_MAX;
    for (uint32_t i = 0; d->covered && i < d->c->n_entities; i++) {
        const struct home_entity *e = &d->c->entities[i];
        const struct home_slot *s = home_table_slot(d->t, e->type);
        if (!s || s->type != HOME_SLOT_TEXT || s->lower)
            continue;
        if (s->gather && gathered == UINT32_MAX)
            gathered = e->from;
        for (uint32_t k = s->gather ? gathered : e->from; k < e->to && k < d->w.n; k++)
            d->covered[k] = true;
    }
}

/* The speech act that counts: the model's, unless it says command and the words say otherwise. */
static enum home_speech judge(const struct decision *d)
{
    const struct home_clause *c = d->c;
    if (c->speech != HOME_SPEECH_COMMAND)
        return c->speech;
    if (c->taken_back || home_speech_takes_back(d->t, &d->plain) == d->plain.n)
        return HOME_SPEECH_RETRACT;
    if (c->speech_p < d->t->speech_confidence)
        return HOME_SPEECH_NONE;
    return home_speech_cue(d->t, &d->plain, d->covered);
}

static struct act begin_act(struct decision *d, const struct home_action *action)
{
    struct act x = {.a = d->a, .t = d->t, .x = action, .now = d->now, .pairs = "", .clause = d->c};
    x.o = arena_zalloc(d->a, sizeof(*x.o));
    if (x.o)
        x.o->name = action->name;
    return x;
}

static bool same_action(const struct ask_plan_action *a, const struct ask_plan_action *b)
{
    if (strcmp(a->name, b->name) != 0 || a->n_fields != b->n_fields)
        return false;
    for (uint32_t i = 0; i < a->n_fields; i++) {
        const struct ask_plan_field *f = &a->fields[i], *g = &b->fields[i];
        if (strcmp(f->key, g->key) != 0 || !f->text != !g->text || f->n_items || g->n_items ||
            (f->text ? strcmp(f->text, g->text) != 0 : f->number != g->number))
            return false;
    }
    return true;
}

static void add_action(struct decision *d, struct act *x, struct home_draft_line line)
{
    if (!x->o || !home_draft_reserve(d->a, d->draft))
        return;
    if (d->draft->n_actions > 0 && same_action(d->draft->actions[d->draft->n_actions - 1], x->o))
        return; /* "stop, stop everything" */
    d->draft->actions[d->draft->n_actions++] = x->o;
    d->draft->lines[d->draft->n_lines++] =
        line.text || line.say ? line : said(d->a, &d->t->line_out_of_scope, d->c->text);
}

/* Stopping needs no confidence: one thing, or everything. */
static bool stop(struct decision *d, const struct home_action *sure, enum home_speech speech,
                 const struct home_focus *focus)
{
    struct home_stopped what;
    if (d->c->taken_back || !home_speech_stops(d->t, &d->plain, &what))
        return false;
    const struct home_action *action = d->t->stop.device;
    const char *it = NULL;
    if (what.it && focus && (focus->device || focus->machine)) {
        action = focus->device ? d->t->stop.device : d->t->stop.machine;
        it = focus->device ? focus->device : focus->machine;
    } else if (what.it) {
        what.everything = true;
    }
    if (!what.everything && speech != HOME_SPEECH_COMMAND && speech != HOME_SPEECH_NONE)
        return false; /* "stop the pump, no, leave it" */
    if (!what.everything && !it) {
        bool named = speech == HOME_SPEECH_COMMAND;
        for (uint32_t i = 0; i < d->c->n_entities; i++) {
            const struct home_slot *s = home_table_slot(d->t, d->c->entities[i].type);
            bool device = s && s == d->t->stop.device->needs[0];
            named = named || device || (s && s == d->t->stop.machine->needs[0]);
            action = device ? d->t->stop.device : d->t->stop.machine;
        }
        if (sure || !named)
            return false;
        if (d->c->n_entities == 0)
            action = d->t->stop.machine;
    }
    const struct home_slot *slot = action->needs[0];
    const char *thing =
        what.everything
            ? d->t->stop.everything
            : home_words_trim_end(d->a, home_words_join(d->a, &d->w, what.from, what.to),
                                  HOME_WORDS_CLOSING);
    struct act x = begin_act(d, action);
    struct slots s = {0};
    slot_set(&s, own(slot), thing);
    if (x.o && home_draft_reserve(d->a, d->draft)) {
        put_slots(&x, &s);
        put_id(&x);
        put_result(&x, "done");
        add_action(d, &x, line(&x, &d->t->line_act, true, HOME_SAY_DONE));
    }
    return true;
}

/* What the text holds and the action has no use for; NULL: nothing. */
static const char *unused(const struct decision *d, const struct piece *pieces, uint32_t n)
{
    bool *in = arena_zalloc_n(d->a, (size_t)d->w.n + 1, sizeof(*in));
    for (uint32_t i = 0; in && i < n; i++) {
        if (!pieces[i].used && pieces[i].slot && pieces[i].slot->type != HOME_SLOT_TEXT)
            return pieces[i].text;
        for (uint32_t k = pieces[i].from; k < pieces[i].to; k++)
            in[k] = true;
    }
    for (uint32_t i = 0; in && i < d->plain.n; i++)
        if (!in[i] && d->plain.w[i][0] >= '0' && d->plain.w[i][0] <= '9')
            return d->w.w[i];
    return NULL;
}

/* Is there a word that may be the name of a thing, and that no piece has? */
static bool names_more(const struct decision *d, const struct piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < d->plain.n; i++) {
        bool in = strlen(d->plain.w[i]) <= 2 || home_table_word(d->t, d->plain.w[i]) != 0 ||
                  home_table_lists(&d->t->pronouns, d->plain.w[i]);
        for (uint32_t k = 0; k < n && !in; k++)
            in = i >= pieces[k].from && i < pieces[k].to;
        if (!in)
            return true;
    }
    return false;
}

/* "It", "them": what was spoken of last.  false: nobody knows. */
static bool refer(const struct decision *d, const struct home_action *action, struct slots *s,
                  const struct home_focus *focus, const char **pronoun)
{
    *pronoun = NULL;
    for (uint32_t i = 0; i < d->plain.n && !*pronoun; i++)
        if (!d->covered[i] && home_table_lists(&d->t->pronouns, d->plain.w[i]))
            *pronoun = d->plain.w[i];
    const struct home_slot *device = home_table_slot(d->t, "device"),
                           *machine = home_table_slot(d->t, "machine"),
                           *room = home_table_slot(d->t, "room");
    const struct home_slot *slot = device && has_slot(action, device)     ? device
                                   : machine && has_slot(action, machine) ? machine
                                                                          : NULL;
    if (!*pronoun || !slot)
        return true;
    const char *given = slot_get(s, own(slot));
    if (given && !home_table_lists(&d->t->pronouns, home_words_lower(d->a, given)))
        return true;
    const char *meant = !focus ? NULL : slot == device ? focus->device : focus->machine;
    if (given)
        slot_drop(s, own(slot));
    if (!meant) {
        for (uint32_t i = 0; i < action->n_needs; i++)
            if (action->needs[i] == slot)
                return false;
        return true;
    }
    slot_set(s, own(slot), meant);
    if (slot == device && room && has_slot(action, room) && focus->room && !slot_get(s, own(room)))
        slot_set(s, own(room), focus->room);
    return true;
}

static void ask_about(struct decision *d, const struct home_action *action, enum home_say which,
                      const char *key, const char *text)
{
    struct act x = begin_act(d, action);
    if (!x.o)
        return;
    put_result(&x, "ask");
    put_text(&x, key, text);
    add_action(d, &x,
               (struct home_draft_line){.say = home_template_fill(d->a, &d->t->say[which], get_said,
                                                                  (void *)(uintptr_t)text)});
}

/* "by", "lower": the value is a change. */
static double change_of(const struct decision *d, const struct home_action *action,
                        const struct piece *pieces, uint32_t n)
{
    if (!action->relative)
        return 0.0;
    for (uint32_t i = 0; i < n; i++)
        if (pieces[i].slot && pieces[i].slot->type == HOME_SLOT_VALUE &&
            home_table_lists(&d->t->change_by, pieces[i].before))
            return has_word(&d->plain, &d->t->change_down) ? -1.0 : 1.0;
    return 0.0;
}

static void carry_out(struct decision *d, const struct home_action *action,
                      const struct home_focus *focus)
{
    struct arena *a = d->a;
    const struct home_clause *c = d->c;
    struct piece *pieces = arena_zalloc_n(a, (size_t)c->n_entities + 1, sizeof(*pieces));
    struct slots *sets = arena_zalloc_n(a, (size_t)c->n_entities + 1, sizeof(*sets));
    const char *pronoun = NULL, *rest;
    if (!pieces || !sets)
        return;
    uint32_t n_pieces = merge(a, d->t, c, &d->w, pieces);
    uint32_t n = group(d->t, action, pieces, n_pieces, sets);
    lend(action, sets, n);
    rest = is_question(action) ? NULL : unused(d, pieces, n_pieces);
    if (rest && d->t->say[HOME_SAY_REST].n > 0) {
        ask_about(d, action, HOME_SAY_REST, "rest", rest);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!refer(d, action, &sets[i], focus, &pronoun) && d->t->say[HOME_SAY_PRONOUN].n > 0) {
            ask_about(d, action, HOME_SAY_PRONOUN, "rest", pronoun);
            continue;
        }
        struct act x = begin_act(d, action);
        if (!x.o || !home_draft_reserve(a, d->draft))
            return;
        x.sign = change_of(d, action, pieces, n_pieces);
        x.names_more = names_more(d, pieces, n_pieces);
        struct home_draft_line l = act(&x, &sets[i], &d->plain, d->draft);
        add_action(d, &x, l);
    }
}

/* Words that make the model's action impossible; NULL: it is another one, or none. */
static const struct home_action *correct(const struct decision *d, const struct home_action *action)
{
    for (uint32_t i = 0; action && i < d->t->n_unless; i++) {
        const struct home_unless *u = &d->t->unless[i];
        for (uint32_t k = 0; k < d->plain.n && action == u->action; k++)
            for (uint32_t p = 0; p < u->words.n; p++)
                if (!d->covered[k] && home_words_phrase(&d->plain, k, u->words.w[p]) > 0)
                    action = u->instead;
    }
    return action;
}

enum home_speech home_rules_decide(struct arena *a, const struct home_table *t,
                                   struct home_draft *draft, const struct home_clause *c,
                                   const struct home_focus *focus, const struct tm *now)
{
    struct decision d = {.a = a, .t = t, .draft = draft, .c = c, .now = now};
    d.w = home_words_split(a, c->text);
    d.plain = home_words_plain_all(a, &d.w);
    cover(&d);
    if (a->rc < 0)
        return HOME_SPEECH_NONE;
    bool sure = c->intent_p >= c->threshold && strcmp(c->intent, t->out_of_scope) != 0;
    const struct home_action *action = sure ? home_table_action(t, c->intent) : NULL;
    if (action && action->must.n > 0 && !has_word(&d.plain, &action->must))
        action = NULL; /* "at 9:36" is no alarm */
    enum home_speech speech = judge(&d);
    if (stop(&d, speech == HOME_SPEECH_COMMAND ? action : NULL, speech, focus))
        return HOME_SPEECH_COMMAND;
    bool states = action && action->statement && speech == HOME_SPEECH_REPORT;
    if (speech != HOME_SPEECH_COMMAND && speech != HOME_SPEECH_NONE && !states &&
        (speech != HOME_SPEECH_ASK || (action && !is_question(action))) && t->say[speech].n > 0) {
        const char *text = home_template_fill(a, &t->say[speech], get_said, NULL);
        add_line(a, draft, (struct home_draft_line){.say = text});
        return speech;
    }
    if (action)
        action = correct(&d, settle(t, action, &d.plain));
    if (action &&
        (speech == HOME_SPEECH_COMMAND || (speech == HOME_SPEECH_ASK && is_question(action)))) {
        carry_out(&d, action, focus);
    } else {
        bool chat =
            sure && !home_table_action(t, c->intent) && home_table_lists(&t->chat_flows, c->flow);
        add_line(a, draft, said(a, chat ? &t->line_chat : &t->line_out_of_scope, c->text));
    }
    return speech;
}
