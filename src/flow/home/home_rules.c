/* home_rules.c - see home_rules.h. */
#include "flow/home/home_rules.h"

#include <assert.h>
#include <string.h>

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
};

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
        if (last && slot && last->slot == slot &&
            (slot->gather || (slot->type != HOME_SLOT_TEXT && last->to == e->from)))
            last->to = e->to;
        else
            out[n++] = (struct piece){.slot = slot, .from = e->from, .to = e->to};
    }
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
static uint32_t group(const struct home_table *t, const struct home_action *x,
                      const struct piece *pieces, uint32_t n, struct slots *sets)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct place p = place_of(t, x, &pieces[i]);
        struct slots *cur = &sets[at];
        if (!p.slot)
            continue;
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
                          const struct home_words *plain)
{
    for (const struct home_default **p = x->defaults; *p; p++) {
        const struct home_default *d = *p;
        if (!default_holds(d, s, plain))
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
    const char *result, *reason, *ask, *answer;
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
        if (v.text)
            put_text(x, key, v.text);
        else
            put_number(x, key, v.number);
        if (v.unit)
            put_text(x, "unit", v.unit);
        return v.show;
    case HOME_SLOT_DURATION:
        v = home_values_duration(a, x->t, text);
        if (v.understood)
            put_number(x, arena_printf(a, "%s_s", key), v.number);
        else
            put_text(x, key, v.show);
        return v.show;
    case HOME_SLOT_TIME:
        v = home_values_clock(a, x->t, text);
        put_text(x, key, v.text);
        return v.show;
    case HOME_SLOT_DATE:
        text = home_values_date(a, x->t, text);
        put_text(x, key, text);
        return text;
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
        pair(x, w->show, put_slot(x, w->slot, w->key, text));
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

static const char *get_var(void *ctx, uint32_t var)
{
    const struct act *x = ctx;
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

static struct home_draft_line line(struct act *x, const struct home_template *t, bool joins)
{
    return (struct home_draft_line){home_template_fill(x->a, t, get_var, x), joins};
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
    return (struct home_draft_line){home_template_fill(a, t, get_said, (void *)(uintptr_t)s),
                                    false};
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
    return line(x, &x->x->answer, false);
}

static bool has_reason(const struct home_action *x, const struct slots *s)
{
    for (uint32_t i = 0; i < x->n_reason_if; i++)
        if (slot_get(s, own(x->reason_if[i])))
            return true;
    return x->answer.n == 0;
}

/* One set of slots to an action and its line; text NULL: the clause is out of scope. */
static struct home_draft_line act(struct act *x, struct slots *s, const struct home_words *plain)
{
    const struct home_action *action = x->x;
    fill_defaults(action, s, plain);
    put_slots(x, s);
    bool later = put_when(x, s);
    put_id(x);
    for (uint32_t i = 0; !x->ask && i < action->n_needs; i++)
        if (!slot_get(s, own(action->needs[i])))
            x->ask = action->needs[i]->name;
    if (x->ask && action->compute)
        return answer(x, s); /* nothing to compute */
    if (x->ask) {
        put_result(x, "ask");
        put_text(x, "ask", x->ask);
        return line(x, &x->t->line_ask, false);
    }
    if (!all_known(x)) {
        put_result(x, "unknown");
        return line(x, &x->t->line_act, true);
    }
    if (action->answer.n == 0 && !action->reason) {
        put_result(x, later ? "scheduled" : "done");
        return line(x, &x->t->line_act, true);
    }
    if (!has_reason(action, s))
        return answer(x, s);
    put_result(x, "failed");
    put_text(x, "reason", action->reason);
    x->reason = action->reason;
    return line(x, &x->t->line_failed, true);
}

/* ---- the draft ------------------------------------------------------------------------------ */

static void add_line(struct arena *a, struct home_draft *p, struct home_draft_line line)
{
    if (home_draft_reserve(a, p))
        p->lines[p->n_lines++] = line;
}

void home_rules_decide(struct arena *a, const struct home_table *t, struct home_draft *draft,
                       const struct home_clause *c, const struct tm *now)
{
    const struct home_action *action = home_table_action(t, c->intent);
    bool acts = home_table_lists(&t->act_flows, c->flow);
    bool sure = c->intent_p >= c->threshold || (action && acts && c->router_p >= t->min_confidence);
    if (!sure || !action) {
        bool chat = sure && strcmp(c->intent, t->out_of_scope) != 0 &&
                    home_table_lists(&t->chat_flows, c->flow);
        add_line(a, draft, said(a, chat ? &t->line_chat : &t->line_out_of_scope, c->text));
        return;
    }
    struct home_words w = home_words_split(a, c->text), plain = home_words_plain_all(a, &w);
    struct piece *pieces = arena_zalloc_n(a, (size_t)c->n_entities + 1, sizeof(*pieces));
    struct slots *sets = arena_zalloc_n(a, (size_t)c->n_entities + 1, sizeof(*sets));
    if (!pieces || !sets)
        return;
    action = settle(t, action, &plain);
    uint32_t n = group(t, action, pieces, merge(a, t, c, &w, pieces), sets);
    lend(action, sets, n);
    for (uint32_t i = 0; i < n; i++) {
        struct act x = {.a = a, .t = t, .x = action, .now = now, .pairs = ""};
        x.o = arena_zalloc(a, sizeof(*x.o));
        if (!x.o || !home_draft_reserve(a, draft))
            return;
        x.o->name = action->name;
        struct home_draft_line line = act(&x, &sets[i], &plain);
        draft->actions[draft->n_actions++] = x.o;
        draft->lines[draft->n_lines++] = line.text ? line : said(a, &t->line_out_of_scope, c->text);
    }
}
