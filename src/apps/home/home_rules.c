/* home_rules.c - see home_rules.h. */
#include "apps/home/home_rules.h"

#include <assert.h>
#include <string.h>

#include "apps/home/home_act.h"
#include "apps/home/home_recall.h"
#include "apps/home/home_speech.h"
#include "apps/home/home_switch.h"

#define MAX_TALK 60u /* words of a clause that the reply model can answer */
#define MAX_SETS 32u /* things that one clause may name */
#define MAX_NAME (2 * HOME_FILE_MAX_NAME_BYTES) /* bytes of a name in a clause */

/* The words themselves decide between on and off, lock and unlock: a wrong guess there is the worst
 * error. */
static const struct home_action *
settle(const struct home_table *t, const struct home_action *action, const struct home_words *plain)
{
    for (uint32_t i = 0; i < t->n_opposites; i++) {
        const struct home_opposite *o = &t->opposites[i];
        if (action != o->action[0] && action != o->action[1])
            continue;
        bool first = home_fill_has_word(plain, &o->words[0]),
             second = home_fill_has_word(plain, &o->words[1]);
        if (first && second)
            return o->both ? o->both : action;
        return first ? o->action[0] : second ? o->action[1] : action;
    }
    return action;
}

/* ---- the draft ------------------------------------------------------------------------------ */

static void add_line(struct arena *a, struct home_draft *p, struct home_draft_line line)
{
    if (home_draft_reserve(a, p))
        p->lines[p->n_lines++] = line;
}

static void say_too_long(struct arena *a, const struct home_table *t, struct home_draft *p)
{
    const char *text = home_template_fill(a, &t->say[HOME_SAY_LONG], home_act_text, NULL);
    add_line(a, p, (struct home_draft_line){.say = text});
}

struct decision { /* about one clause */
    struct arena *a;
    const struct home_table *t;
    struct home_draft *draft;
    const struct home_clause *c;
    const struct tm *now;
    const struct home_here *here;
    struct home_words w, plain;
    bool *covered; /* words that are written, played or named */
    bool asks;     /* ask for missing slots instead of using the defaults */
};

static bool is_question(const struct home_action *x)
{
    return x->answer.n > 0 || x->reason;
}

/* Words inside messages, titles and other names do not command anything. */
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

/* The effective speech act: the model's, unless it says command and the words say otherwise. */
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

static struct home_act begin_act(struct decision *d, const struct home_action *action)
{
    struct home_act x = {.a = d->a,
                         .t = d->t,
                         .x = action,
                         .now = d->now,
                         .here = d->here,
                         .pairs = "",
                         .clause = d->c};
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
        if (strcmp(f->key, g->key) != 0 || !f->text != !g->text || f->n_items != g->n_items ||
            (f->text ? strcmp(f->text, g->text) != 0 : f->number != g->number))
            return false;
        for (uint32_t k = 0; k < f->n_items; k++)
            if (strcmp(f->items[k], g->items[k]) != 0)
                return false;
    }
    return true;
}

static void add_action(struct decision *d, struct home_act *x, struct home_draft_line line)
{
    if (!x->o || !home_draft_reserve(d->a, d->draft))
        return;
    if (d->draft->n_actions > 0 && same_action(d->draft->actions[d->draft->n_actions - 1], x->o))
        return; /* "stop, stop everything" */
    d->draft->actions[d->draft->n_actions++] = x->o;
    if (!line.text && !line.say)
        line = home_act_said(d->a, &d->t->line_out_of_scope, d->c->text);
    line.action = d->draft->n_actions;
    d->draft->lines[d->draft->n_lines++] = line;
}

/* ---- stopping ------------------------------------------------------------------------------- */

/* "saw, lathe and press 2" */
static const char *names_of(const struct decision *d, const struct home_thing *const *things,
                            uint32_t n)
{
    const char *out = "";
    for (uint32_t i = 0; i < n; i++)
        out = arena_printf(d->a, "%s%s%s", out,
                           i == 0 ? ""
                           : i + 1 < n || !d->t->list_and
                               ? ", "
                               : arena_printf(d->a, " %s ", d->t->list_and),
                           things[i]->names.w[0]);
    return out;
}

/* The action that brings a thing to rest, as the words ask for it and as it can. */
static const struct home_action *way_of(const struct home_table *t, const struct home_thing *x,
                                        enum home_stop_way way)
{
    const struct home_action *halt =
        x->type == HOME_THING_MACHINE ? t->stop.machine : t->stop.device;
    bool power = way == HOME_STOP_POWER || (way == HOME_STOP_OFF && halt != t->stop.machine);
    if (power && home_file_able(x, t->stop.power->effect->ability))
        return t->stop.power;
    return home_file_able(x, halt->effect->ability) ? halt : t->stop.power;
}

/* One action on some things, which happens now. */
static void add_stop(struct decision *d, const struct home_action *action, const char *thing,
                     const char *room, const struct home_thing **things, uint32_t n)
{
    const struct home_slot *in = home_table_slot(d->t, "room");
    struct home_act x = begin_act(d, action);
    struct home_fill s = {0};
    home_fill_set(&s, home_fill_own(action->needs[0]), thing);
    if (room && in && home_fill_has_slot(action, in))
        home_fill_set(&s, home_fill_own(in), room);
    if (!x.o || !home_draft_reserve(d->a, d->draft))
        return;
    x.things = things;
    x.n_things = n;
    home_act_put_slots(&x, &s);
    home_act_put_id(&x);
    home_act_put_result(&x, "done");
    add_action(d, &x, home_act_plain_line(&x, HOME_SAY_DONE));
}

/* Those of the things that one action stops; everything: devices and machines together. */
static void stop_things(struct decision *d, const struct stop *what, const struct home_action *by)
{
    bool everything = what->what == STOP_EVERYTHING;
    const struct home_thing **list =
        arena_zalloc_n(d->a, (size_t)what->n_things + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < what->n_things; i++) {
        const struct home_action *way = way_of(d->t, what->things[i], what->way);
        if (everything && way == d->t->stop.machine)
            way = d->t->stop.device;
        if (way == by)
            list[n++] = what->things[i];
    }
    if (n == 0)
        return;
    if (what->several) {
        for (uint32_t i = 0; list && i < n; i++)
            add_stop(d, by, list[i]->names.w[0], NULL, &list[i], 1);
        return;
    }
    bool named = what->name && n == what->n_things && !everything;
    const char *thing = named ? what->name : names_of(d, list, n);
    const char *room = what->room;
    if (everything && by == d->t->stop.device) {
        thing = d->t->stop.everything;
        room = NULL;
    }
    add_stop(d, by, thing, room, list, n);
}

static void stop_all(struct decision *d, const struct stop *what)
{
    const struct home_table *t = d->t;
    bool closed = d->here->file && !d->here->file->open;
    if (what->what == STOP_EVERYTHING && what->n_things == 0 && !closed) {
        add_stop(d, t->stop.device, t->stop.everything, NULL, NULL, 0);
        return;
    }
    if (what->what == STOP_EVERYTHING && what->n_things == 0) {
        const char *text = home_template_fill(d->a, &t->say[HOME_SAY_NO_STOP], home_act_text, NULL);
        add_line(d->a, d->draft, (struct home_draft_line){.say = text});
        return;
    }
    stop_things(d, what, t->stop.device);
    if (what->what != STOP_EVERYTHING)
        stop_things(d, what, t->stop.machine);
    stop_things(d, what, t->stop.power);
}

void home_rules_stop(struct arena *a, const struct home_table *t, struct home_draft *draft,
                     const struct stop *what, const struct home_clause *clause,
                     const struct home_here *here, const struct tm *now)
{
    struct decision d = {.a = a, .t = t, .draft = draft, .c = clause, .now = now, .here = here};
    stop_all(&d, what);
}

/* A clause that stops something: the words decide, whatever the models made of it, unless it names
 * a thing that the home does not list. */
static bool stop(struct decision *d, const struct home_action *sure, enum home_speech speech,
                 const struct home_focus *focus)
{
    const struct stop_query q = {
        .t = d->t, .file = d->here->file, .focus = focus, .text = d->c->text, .clause = true};
    struct stop what;
    if (d->c->taken_back || !stop_read(d->a, &q, &what))
        return false;
    if (what.what != STOP_UNLISTED) {
        stop_all(d, &what);
        return true;
    }
    if (speech != HOME_SPEECH_COMMAND && speech != HOME_SPEECH_NONE)
        return false; /* "stop the pump, no, leave it" */
    const struct home_action *action = d->t->stop.machine;
    bool named = speech == HOME_SPEECH_COMMAND || what.urgent;
    for (uint32_t i = 0; i < d->c->n_entities; i++) {
        const struct home_slot *s = home_table_slot(d->t, d->c->entities[i].type);
        bool device = s && s == d->t->stop.device->needs[0];
        named = named || device || (s && s == d->t->stop.machine->needs[0]);
        action = device ? d->t->stop.device : d->t->stop.machine;
    }
    if (sure || !named)
        return false;
    struct home_act x = begin_act(d, action);
    struct home_fill s = {0};
    struct home_draft_line why;
    home_fill_set(&s, home_fill_own(action->needs[0]), what.name);
    if (!x.o || !home_draft_reserve(d->a, d->draft))
        return true;
    if (!home_act_link(&x, &s, &why)) {
        add_action(d, &x, why);
        return true;
    }
    home_act_put_slots(&x, &s);
    home_act_put_id(&x);
    home_act_put_result(&x, "done");
    add_action(d, &x, home_act_plain_line(&x, HOME_SAY_DONE));
    return true;
}

/* A slot whose text names a room, a thing or a person. */
static bool is_name(const struct home_slot *s)
{
    for (enum home_thing_type t = HOME_THING_ROOM; t < HOME_THING_COUNT; t++)
        if (t != HOME_THING_SCENE && strcmp(home_file_type_name(t), s->name) == 0)
            return true;
    return false;
}

/* A part of the text that the action cannot use; NULL: none. */
static const char *unused(const struct decision *d, const struct home_piece *pieces, uint32_t n)
{
    bool *in = arena_zalloc_n(d->a, (size_t)d->w.n + 1, sizeof(*in));
    for (uint32_t i = 0; in && i < n; i++) {
        if (!pieces[i].used && pieces[i].slot &&
            (pieces[i].slot->type != HOME_SLOT_TEXT || is_name(pieces[i].slot)))
            return pieces[i].text;
        for (uint32_t k = pieces[i].from; k < pieces[i].to; k++)
            in[k] = true;
    }
    for (uint32_t i = 0; in && i < d->plain.n; i++)
        if (!in[i] && d->plain.w[i][0] >= '0' && d->plain.w[i][0] <= '9')
            return d->w.w[i];
    return NULL;
}

/* Do the words from `at` on only say thanks? */
static bool is_tail(const struct decision *d, uint32_t at)
{
    for (uint32_t i = 0; i < d->t->tail.n; i++)
        if (home_words_phrase(&d->plain, at, d->t->tail.w[i]) == d->plain.n - at)
            return true;
    return false;
}

/* A part joined to the command that is in no piece: "... and water the plants"; NULL: none. */
static const char *left_over(const struct decision *d, const struct home_piece *pieces, uint32_t n)
{
    for (uint32_t i = 1; i + 1 < d->plain.n; i++) {
        uint32_t from = i + 1, to, known = 0;
        bool piece = d->covered[i];
        if (!(home_table_word(d->t, d->plain.w[i]) & HOME_WORD_JOIN))
            continue;
        while (from < d->plain.n && (home_table_word(d->t, d->plain.w[from]) & HOME_WORD_DROP))
            from++;
        for (to = from;
             to < d->plain.n && !(home_table_word(d->t, d->plain.w[to]) & HOME_WORD_JOIN); to++)
            known += strlen(d->plain.w[to]) <= 2 || home_table_word(d->t, d->plain.w[to]) != 0;
        for (uint32_t k = 0; k < n; k++)
            piece = piece || (pieces[k].from < to && pieces[k].to > i);
        if (!piece && from < to && known < to - from && !is_tail(d, from))
            return home_words_trim_end(d->a, home_words_join(d->a, &d->w, from, to),
                                       HOME_WORDS_CLOSING);
    }
    return NULL;
}

/* "Turn on the": an article with nothing after it. */
static bool breaks_off(const struct decision *d, uint32_t i)
{
    return i + 1 == d->plain.n && (home_table_word(d->t, d->plain.w[i]) & HOME_WORD_ARTICLE) &&
           !home_table_lists(&d->t->later.all, d->plain.w[i]) &&
           !home_table_lists(&d->t->stop.all, d->plain.w[i]);
}

/* Is there a word that may name a thing and that the action does not use? */
static bool names_more(const struct decision *d, const struct home_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < d->plain.n; i++) {
        bool in = strlen(d->plain.w[i]) <= 2 || home_table_word(d->t, d->plain.w[i]) != 0 ||
                  home_table_lists(&d->t->pronouns, d->plain.w[i]);
        for (uint32_t k = 0; k < n && !in; k++)
            in = pieces[k].used && i >= pieces[k].from && i < pieces[k].to;
        if (!in || breaks_off(d, i))
            return true;
    }
    return false;
}

/* "It", "them": the last thing mentioned. false: unknown. */
static bool refer(const struct decision *d, const struct home_action *action, struct home_fill *s,
                  const struct home_focus *focus, const char **pronoun)
{
    *pronoun = NULL;
    for (uint32_t i = 0; i < d->plain.n && !*pronoun; i++)
        if (!d->covered[i] && home_table_lists(&d->t->pronouns, d->plain.w[i]))
            *pronoun = d->plain.w[i];
    const struct home_slot *device = home_table_slot(d->t, "device"),
                           *machine = home_table_slot(d->t, "machine"),
                           *room = home_table_slot(d->t, "room");
    const struct home_slot *slot = device && home_fill_has_slot(action, device)     ? device
                                   : machine && home_fill_has_slot(action, machine) ? machine
                                                                                    : NULL;
    if (!*pronoun || !slot)
        return true;
    const char *given = home_fill_get(s, home_fill_own(slot));
    if (given && !home_table_lists(&d->t->pronouns, home_words_lower(d->a, given)))
        return true;
    const char *meant = !focus ? NULL : slot == device ? focus->device : focus->machine;
    if (given)
        home_fill_drop(s, home_fill_own(slot));
    if (!meant) {
        for (uint32_t i = 0; i < action->n_needs; i++)
            if (action->needs[i] == slot)
                return false;
        return true;
    }
    home_fill_set(s, home_fill_own(slot), meant);
    if (slot == device && room && home_fill_has_slot(action, room) && focus->room &&
        !home_fill_get(s, home_fill_own(room)))
        home_fill_set(s, home_fill_own(room), focus->room);
    return true;
}

static void ask_about(struct decision *d, const struct home_action *action, enum home_say which,
                      const char *key, const char *text)
{
    struct home_act x = begin_act(d, action);
    if (!x.o)
        return;
    home_act_put_result(&x, "ask");
    home_act_put_text(&x, key, text);
    add_action(
        d, &x,
        (struct home_draft_line){.say = home_template_fill(d->a, &d->t->say[which], home_act_text,
                                                           (void *)(uintptr_t)text)});
}

/* "By two degrees", "two degrees warmer". */
static bool is_change(const struct decision *d, const struct home_piece *p)
{
    return home_table_lists(&d->t->change_by, p->before) ||
           (p->to < d->plain.n && home_table_lists(&d->t->change_after, d->plain.w[p->to])) ||
           (p->to > p->from && home_table_lists(&d->t->change_after, d->plain.w[p->to - 1]));
}

/* 1: the value is a change, -1: it lowers, 0: it is a value. */
static double change_of(const struct decision *d, const struct home_action *action,
                        const struct home_piece *pieces, uint32_t n)
{
    if (!action->relative)
        return 0.0;
    for (uint32_t i = 0; i < n; i++)
        if (pieces[i].slot && pieces[i].slot->type == HOME_SLOT_VALUE && is_change(d, &pieces[i]))
            return home_fill_has_word(&d->plain, &d->t->change_down) ? -1.0 : 1.0;
    return 0.0;
}

/* "Evening" of "every evening" is not a thing, and "two hours" of "every two hours" not a duration,
 * whatever the model says. */
static void free_every(const struct decision *d, struct home_piece *pieces, uint32_t n)
{
    struct home_due_every e = home_due_every(d->a, d->t, &d->plain);
    const struct home_slot *date = NULL;
    for (uint32_t i = 0; e.words && i < d->t->n_slots && !date; i++)
        date = d->t->slot[i].type == HOME_SLOT_DATE ? &d->t->slot[i] : NULL;
    for (uint32_t i = 0; e.words && i < n; i++)
        if (pieces[i].slot && pieces[i].slot->type != HOME_SLOT_TIME && !pieces[i].slot->gather &&
            pieces[i].from < e.from + e.n && pieces[i].to > e.from) {
            pieces[i].slot = date; /* the first one; all of them would be several actions */
            date = NULL;
        }
}

/* Is a name longer than any that people give? */
static bool names_too_much(const struct home_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (pieces[i].slot && pieces[i].slot->type == HOME_SLOT_TEXT && pieces[i].slot->lower &&
            strlen(pieces[i].text) > MAX_NAME)
            return true;
    return false;
}

/* "Close the light" is "turn off the light", if its slot says so. */
static const struct home_action *
correct_set(const struct decision *d, const struct home_action *action, const struct home_fill *s)
{
    for (uint32_t i = 0; i < d->t->n_unless; i++) {
        const struct home_unless *u = &d->t->unless[i];
        const char *text =
            u->slot && u->action == action ? home_fill_get(s, home_fill_own(u->slot)) : NULL;
        const char *last = text ? strrchr(text, ' ') : NULL;
        if (text && home_table_lists(&u->words, home_words_plain(d->a, last ? last + 1 : text)))
            return u->instead;
    }
    return action;
}

static void carry_out(struct decision *d, const struct home_action *action,
                      const struct home_focus *focus)
{
    struct arena *a = d->a;
    const struct home_clause *c = d->c;
    struct home_piece *pieces = arena_zalloc_n(a, (size_t)c->n_entities + 3, sizeof(*pieces));
    struct home_fill *sets = arena_zalloc_n(a, (size_t)c->n_entities + 3, sizeof(*sets));
    const char *pronoun = NULL, *rest;
    if (!pieces || !sets)
        return;
    uint32_t n_pieces = home_fill_pieces(a, d->t, c, &d->w, pieces);
    if (d->here->file)
        n_pieces = home_fill_names(a, d->t, d->here->file, &d->w, pieces, n_pieces);
    if (d->here->file)
        n_pieces = home_fill_rooms(a, d->t, d->here->file, &d->w, pieces, n_pieces);
    n_pieces = home_fill_missed(a, d->t, action, &d->w, pieces, n_pieces);
    free_every(d, pieces, n_pieces);
    uint32_t n = home_fill_group(d->t, action, pieces, n_pieces, sets);
    if (n > MAX_SETS || names_too_much(pieces, n_pieces)) {
        say_too_long(a, d->t, d->draft);
        return;
    }
    home_fill_lend(action, sets, n);
    rest = is_question(action) ? NULL : unused(d, pieces, n_pieces);
    if (rest && d->t->say[HOME_SAY_REST].n > 0) {
        ask_about(d, action, HOME_SAY_REST, "rest", rest);
        return;
    }
    bool repeats = action->can_wait || action->rings != HOME_LATER_ACTION;
    if (c->again && !repeats && !is_question(action)) {
        ask_about(d, action, HOME_SAY_REST, "rest", c->again);
        return;
    }
    uint32_t last = d->plain.n - 1; /* a "there" without a known place; otherwise it was replaced */
    if (d->plain.n > 0 && !d->covered[last] && !is_question(action) &&
        home_table_lists(&d->t->places, d->plain.w[last])) {
        ask_about(d, action, HOME_SAY_PRONOUN, "rest", d->plain.w[last]);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!refer(d, action, &sets[i], focus, &pronoun) && d->t->say[HOME_SAY_PRONOUN].n > 0) {
            ask_about(d, action, HOME_SAY_PRONOUN, "rest", pronoun);
            continue;
        }
        struct home_act x = begin_act(d, correct_set(d, action, &sets[i]));
        if (!x.o || !home_draft_reserve(a, d->draft))
            return;
        x.sign = change_of(d, action, pieces, n_pieces);
        x.names_more = d->asks || names_more(d, pieces, n_pieces);
        struct home_draft_line l = home_act_make(&x, &sets[i], &d->plain, d->draft);
        add_action(d, &x, l);
    }
    const char *more = is_question(action) ? NULL : left_over(d, pieces, n_pieces);
    if (more && d->t->say[HOME_SAY_REST].n > 0)
        ask_about(d, action, HOME_SAY_REST, "rest", more);
}

/* The action that queries the state of a device; NULL: the table has none. */
static const struct home_action *state_question(const struct decision *d)
{
    const struct home_slot *device = home_table_slot(d->t, "device");
    for (uint32_t i = 0; i < d->t->n_actions; i++) {
        const struct home_action *x = &d->t->action[i];
        if (x->state.n > 0 && x->n_needs == 1 && x->needs[0] == device)
            return x;
    }
    return NULL;
}

/* Lists the known things in a state; s: the device and the room asked about.
 */
static void answer_states(struct decision *d, struct home_fill *s, const struct home_effect *state)
{
    const struct home_slot *device = home_table_slot(d->t, "device"),
                           *room = home_table_slot(d->t, "room");
    struct home_act x = begin_act(d, state_question(d));
    if (!x.o)
        return;
    if (home_fill_get(s, home_fill_own(device))) { /* "are the kitchen lights turned off?" */
        add_action(d, &x, home_act_make(&x, s, &d->plain, d->draft));
        return;
    }
    home_act_put_slots(&x, s);
    x.state = state->to;
    const char *where = room ? home_fill_get(s, home_fill_own(room)) : NULL;
    x.text =
        home_answer_list(d->a, d->t, d->here, where ? home_words_lower(d->a, where) : NULL, state);
    home_act_put_text(&x, "state", x.state);
    home_act_put_text(&x, "things", x.text);
    home_act_put_result(&x, "done");
    add_action(d, &x, home_act_plain_line(&x, *x.text ? HOME_SAY_STATES : HOME_SAY_NO_STATES));
}

/* The state that a question asks for; NULL: another question, or states are unknown. *at: the first
 * word after "what is". */
static const struct home_effect *asked_state(const struct decision *d, uint32_t *at)
{
    *at = home_table_phrase(&d->t->state_questions, &d->plain, 0);
    return *at > 0 && state_question(d) && d->here->states && d->here->file
               ? home_answer_asked(d->t, &d->plain)
               : NULL;
}

/* "What is on in the kitchen?": answers from states; false: another question. */
static bool list_states(struct decision *d, const struct home_action *action)
{
    const struct home_slot *device = home_table_slot(d->t, "device"),
                           *room = home_table_slot(d->t, "room");
    uint32_t at;
    const struct home_effect *state = asked_state(d, &at);
    if (!state || !action->effect)
        return false;
    struct home_piece *pieces = arena_zalloc_n(d->a, (size_t)d->c->n_entities + 1, sizeof(*pieces));
    uint32_t n = pieces ? home_fill_pieces(d->a, d->t, d->c, &d->w, pieces) : 0;
    if (n > 0)
        n = home_fill_names(d->a, d->t, d->here->file, &d->w, pieces, n);
    struct home_fill s = {0};
    for (uint32_t i = 0; i < n; i++)
        if (pieces[i].slot && (pieces[i].slot == device || pieces[i].slot == room) &&
            !home_fill_get(&s, home_fill_own(pieces[i].slot)))
            home_fill_set(&s, home_fill_own(pieces[i].slot), pieces[i].text);
    answer_states(d, &s, state);
    return true;
}

/* Is it a word for a kind of thing, or part of a name in the home? */
static bool names_thing(const struct decision *d, const char *word)
{
    const struct home_slot *device = home_table_slot(d->t, "device");
    size_t n = strlen(word);
    uint32_t found;
    if (home_file_has_word(d->here->file, word))
        return true;
    return device &&
           (strmap_get(&device->known, word, n, &found) ||
            (n > 2 && word[n - 1] == 's' && strmap_get(&device->known, word, n - 1, &found)));
}

/* "Which doors are open", "what is on?": the words are unambiguous, whatever the model says. false:
 * there are other words, or they name a thing and may not. */
static bool list_states_plainly(struct decision *d, bool may_name)
{
    const struct home_slot *device = home_table_slot(d->t, "device"),
                           *room = home_table_slot(d->t, "room");
    uint32_t at, from = 0, to = 0, n;
    const struct home_effect *state = asked_state(d, &at);
    struct home_fill s = {0};
    if (!state || !device || !room)
        return false;
    for (uint32_t i = at; i < d->plain.n; i += n) {
        const char *word = d->plain.w[i];
        n = home_fill_room_at(d->here->file, &d->plain, i);
        if (n > 0) {
            if (home_fill_get(&s, home_fill_own(room)))
                return false;
            home_fill_set(&s, home_fill_own(room), home_words_join(d->a, &d->plain, i, i + n));
            continue;
        }
        n = 1;
        if (strcmp(word, state->to) == 0 || home_table_lists(&d->t->state_words, word) ||
            (home_table_word(d->t, word) & HOME_WORD_ARTICLE) ||
            home_table_lists(&d->t->state_questions, word))
            continue;
        if (!may_name || !names_thing(d, word) || (to > 0 && to != i))
            return false;
        from = to > 0 ? from : i;
        to = i + 1;
    }
    if (to > 0)
        home_fill_set(&s, home_fill_own(device), home_words_join(d->a, &d->plain, from, to));
    answer_states(d, &s, state);
    return true;
}

static const char *joined(struct arena *a, const char *const *list, uint32_t n)
{
    struct home_words w = {arena_zalloc_n(a, (size_t)n + 1, sizeof(*w.w)), 0};
    for (; w.w && w.n < n; w.n++)
        w.w[w.n] = w.n + 1 < n ? arena_printf(a, "%s;", list[w.n]) : list[w.n];
    return home_words_join(a, &w, 0, w.n);
}

/* Lists or cancels scheduled entries; false: the clause is about something else. */
static bool recall(struct decision *d, const struct home_action *action, enum home_speech speech)
{
    const struct home_recall_query q = {
        .plain = &d->plain, .asks = speech == HOME_SPEECH_ASK, .action = action};
    if (!d->here->later || (speech != HOME_SPEECH_COMMAND && speech != HOME_SPEECH_ASK))
        return false;
    struct home_recall r = home_recall_find(d->a, d->t, d->here->later, &q);
    if (r.want == HOME_RECALL_NOTHING)
        return false;
    bool cancel = r.want == HOME_RECALL_CANCEL, unclear = cancel && r.n > 1 && !r.all;
    struct home_act x = begin_act(d, cancel ? d->t->later.cancel[r.kind] : d->t->later.list);
    if (!x.o)
        return true;
    x.text = r.n ? joined(d->a, r.names, r.n) : r.what;
    if (r.n > 0)
        x.o->fields[x.o->n_fields++] =
            (struct ask_plan_field){.key = unclear  ? "choices"
                                           : cancel ? "scheduled_ids"
                                                    : "scheduled",
                                    .items = cancel && !unclear ? r.ids : r.names,
                                    .n_items = r.n};
    home_act_put_result(&x, unclear ? "ask" : cancel && r.n == 0 ? "failed" : "done");
    add_action(d, &x,
               home_act_plain_line(&x, unclear    ? HOME_SAY_WHICH
                                       : r.n == 0 ? HOME_SAY_NOTHING
                                       : cancel   ? HOME_SAY_CANCELLED
                                                  : HOME_SAY_LISTED));
    return true;
}

/* Words that rule out the model's action; NULL: none do. */
static const struct home_action *correct(const struct decision *d, const struct home_action *action)
{
    for (uint32_t i = 0; action && i < d->t->n_unless; i++) {
        const struct home_unless *u = &d->t->unless[i];
        for (uint32_t k = 0; !u->slot && k < d->plain.n && action == u->action; k++)
            for (uint32_t p = 0; p < u->words.n; p++)
                if (!d->covered[k] && home_words_phrase(&d->plain, k, u->words.w[p]) > 0)
                    action = u->instead;
    }
    return action;
}

static bool says_any(const struct home_words *w, const struct home_list *phrases)
{
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t k = 0; k < phrases->n; k++)
            if (home_words_phrase(w, i, phrases->w[k]) > 0)
                return true;
    return false;
}

/* A word of its kind, as it is or in the plural. */
static bool says_kind(const struct decision *d, const struct home_thing *x)
{
    for (uint32_t i = 0; i < d->t->n_kinds; i++) {
        const struct home_kind *k = &d->t->kinds[i];
        for (uint32_t n = 0; strcmp(k->name, x->kind) == 0 && n < k->words.n; n++) {
            size_t len = strlen(k->words.w[n]);
            for (uint32_t w = 0; w < d->plain.n; w++)
                if (strncmp(d->plain.w[w], k->words.w[n], len) == 0 &&
                    (!d->plain.w[w][len] || strcmp(d->plain.w[w] + len, "s") == 0))
                    return true;
        }
    }
    return false;
}

struct spoken { /* the things that a clause refers to */
    bool room, kind, name;
};

static bool in_said_room(const struct decision *d, const struct home_thing *x)
{
    return x->room && says_any(&d->plain, &x->room->names);
}

/* One pass over the home per clause, however many things are then checked. */
static struct spoken spoken_of(const struct decision *d)
{
    const struct home_file *f = d->here->file;
    struct spoken s = {0};
    for (uint32_t i = 0; i < f->n_things; i++)
        s.room |= f->things[i].type == HOME_THING_ROOM && says_any(&d->plain, &f->things[i].names);
    for (uint32_t i = 0; i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        if (x->type == HOME_THING_ROOM)
            continue;
        s.kind = s.kind || says_kind(d, x);
        s.name = s.name || (says_any(&d->plain, &x->names) && (!s.room || in_said_room(d, x)));
    }
    return s;
}

/* Does the clause refer to this thing? By name if a thing there has that name, else by its kind; a
 * room alone means everything in it. */
static bool speaks_of(const struct decision *d, const struct spoken *s, const struct home_thing *x)
{
    if (s->room && !in_said_room(d, x))
        return false;
    if (s->name)
        return says_any(&d->plain, &x->names);
    return s->kind ? says_kind(d, x) : s->room;
}

/* "Turn off all lights but leave the hall light on": removes the things of this clause from the
 * several things of an earlier action; *spared counts them. */
static const struct ask_plan_action *spare(const struct decision *d, const struct spoken *s,
                                           const struct ask_plan_action *from, uint32_t *spared)
{
    struct ask_plan_action *o = arena_zalloc(d->a, sizeof(*o));
    if (o)
        *o = *from;
    for (uint32_t i = 0; o && i < o->n_fields; i++) {
        struct ask_plan_field *f = &o->fields[i];
        if (strcmp(f->key, "ids") != 0)
            continue;
        const char **left = arena_zalloc_n(d->a, (size_t)f->n_items + 1, sizeof(*left));
        uint32_t n = 0;
        for (uint32_t k = 0; left && k < f->n_items; k++) {
            const struct home_thing *x = home_file_thing(d->here->file, f->items[k]);
            if (!x || !speaks_of(d, s, x))
                left[n++] = f->items[k];
        }
        if (left && n > 0) {
            *spared += f->n_items - n;
            f->items = left;
            f->n_items = n;
        }
    }
    return o ? o : from;
}

static uint32_t spare_all(const struct decision *d)
{
    uint32_t spared = 0, held = 0;
    if (!d->here->file || d->draft->n_actions == 0)
        return 0;
    struct spoken s = spoken_of(d);
    for (uint32_t i = 0; i < d->draft->n_actions; i++)
        d->draft->actions[i] = spare(d, &s, d->draft->actions[i], &spared);
    for (uint32_t i = 0; i < d->draft->n_held; i++)
        d->draft->held[i].action = spare(d, &s, d->draft->held[i].action, &held);
    return spared;
}

/* Says which things stay as they are. */
static void say_kept(struct decision *d, const char *what)
{
    const char *text =
        home_template_fill(d->a, &d->t->say[HOME_SAY_KEPT], home_act_text, (void *)(uintptr_t)what);
    add_line(d->a, d->draft, (struct home_draft_line){.say = text});
}

/* The things that "but leave the hall light on" names, if the text has commanded something before;
 * NULL: none, or the clause only denies. */
static const char *kept(const struct decision *d)
{
    uint32_t at = 0;
    while (at < d->plain.n && (home_table_lists(&d->t->but, d->plain.w[at]) ||
                               (home_table_word(d->t, d->plain.w[at]) & HOME_WORD_POLITE)))
        at++;
    if (d->draft->n_actions == 0 || at == d->plain.n || d->t->say[HOME_SAY_KEPT].n == 0 ||
        !home_table_lists(&d->t->reword.kept, d->plain.w[at]))
        return NULL;
    struct home_words named = {arena_zalloc_n(d->a, d->plain.n, sizeof(*named.w)), 0};
    for (uint32_t i = at + 1; named.w && i < d->plain.n; i++)
        if (names_thing(d, d->plain.w[i]))
            named.w[named.n++] = d->plain.w[i];
    return named.n > 0 ? home_words_join(d->a, &named, 0, named.n) : NULL;
}

/* Does an action concern one of the things that the words name? */
static bool acts_on(const struct decision *d, const struct spoken *s,
                    const struct ask_plan_action *o)
{
    for (uint32_t i = 0; i < o->n_fields; i++) {
        const struct ask_plan_field *f = &o->fields[i];
        bool id = f->text && strcmp(f->key, "id") == 0, ids = strcmp(f->key, "ids") == 0;
        const struct home_thing *x = id ? home_file_thing(d->here->file, f->text) : NULL;
        if (x && speaks_of(d, s, x))
            return true;
        for (uint32_t k = 0; ids && k < f->n_items; k++) {
            x = home_file_thing(d->here->file, f->items[k]);
            if (x && speaks_of(d, s, x))
                return true;
        }
    }
    return false;
}

/* "Turn on the lamp but not the fan": the exception is a thing of the home that none of the actions
 * mean. */
static bool is_beside(const struct decision *d)
{
    if (!d->here->file)
        return false;
    struct spoken s = spoken_of(d);
    for (uint32_t i = 0; i < d->draft->n_actions; i++)
        if (acts_on(d, &s, d->draft->actions[i]))
            return false;
    return s.name || s.kind;
}

void home_rules_except(struct arena *a, const struct home_table *t, struct home_draft *draft,
                       const struct home_here *here, const char *what)
{
    struct decision d = {.a = a, .t = t, .draft = draft, .here = here};
    d.w = home_words_split(a, what);
    d.plain = home_words_plain_all(a, &d.w);
    if (draft->n_actions == 0)
        return;
    if (here->file && (spare_all(&d) > 0 || is_beside(&d))) {
        say_kept(&d, what);
        return;
    }
    const struct home_action *action = home_table_action(t, draft->actions[0]->name);
    const struct home_clause none = {.text = what};
    d.c = &none;
    draft->n_actions = draft->n_held = draft->n_lines = 0;
    if (action)
        ask_about(&d, action, HOME_SAY_REST, "rest", what);
}

/* Does the clause lack the first slot that the action needs? */
static bool misses_need(const struct decision *d, const struct home_action *action)
{
    for (uint32_t i = 0; action->n_needs > 0 && i < d->c->n_entities; i++)
        if (home_table_slot(d->t, d->c->entities[i].type) == action->needs[0])
            return false;
    return action->n_needs > 0;
}

/* Is the model's action impossible because the clause lacks what it needs? */
static bool is_lost(const struct decision *d, const struct home_action *action)
{
    const struct home_slot *device = home_table_slot(d->t, "device");
    if (!action)
        return true;
    return !is_question(action) && !(device && home_fill_has_slot(action, device)) &&
           misses_need(d, action);
}

/* "Extraction on", "turn on lamp 17", "switch off at 10 pm": the words show what the model missed.
 * true: *own is the clause according to the words. */
static bool says_switch(struct decision *d, const struct home_action *action,
                        enum home_speech speech, struct home_clause *own)
{
    const struct home_clause *c = d->c;
    bool command = speech == HOME_SPEECH_COMMAND, lost = command && is_lost(d, action);
    if (c->taken_back || (!command && (speech != HOME_SPEECH_NONE || !c->whole)))
        return false;
    struct home_switch s = home_switch_find(d->a, d->t, d->here->file, c, &d->plain);
    if (!s.action || (!s.of_home && !lost))
        return false;
    *own = *c;
    own->intent = s.action->name;
    own->intent_p = 1.0f;
    own->entities = s.entities;
    own->n_entities = s.n_entities;
    own->speech = HOME_SPEECH_COMMAND;
    d->c = own;
    d->asks = s.n_named == 0;
    return true;
}

enum home_speech home_rules_decide(struct arena *a, const struct home_table *t,
                                   struct home_draft *draft, const struct home_clause *c,
                                   const struct home_focus *focus, const struct home_here *here,
                                   const struct tm *now)
{
    static const struct home_here nowhere;
    struct decision d = {
        .a = a, .t = t, .draft = draft, .c = c, .now = now, .here = here ? here : &nowhere};
    d.w = home_words_split(a, c->text);
    d.plain = home_words_plain_all(a, &d.w);
    cover(&d);
    if (a->rc < 0)
        return HOME_SPEECH_NONE;
    if (c->corrected)
        return c->speech;
    bool sure = c->intent_p >= c->threshold && strcmp(c->intent, t->out_of_scope) != 0;
    const struct home_action *action = sure ? home_table_action(t, c->intent) : NULL;
    if (action && action->must.n > 0 && !home_fill_has_word(&d.plain, &action->must))
        action = NULL; /* "at 9:36" is not an alarm */
    enum home_speech speech = judge(&d);
    if (stop(&d, speech == HOME_SPEECH_COMMAND ? action : NULL, speech, focus))
        return HOME_SPEECH_COMMAND;
    struct home_clause own;
    if (says_switch(&d, action, speech, &own)) {
        carry_out(&d, home_table_action(t, own.intent), focus);
        return HOME_SPEECH_COMMAND;
    }
    if (recall(&d, correct(&d, action), speech))
        return speech;
    bool states = action && action->statement && speech == HOME_SPEECH_REPORT;
    if (speech == HOME_SPEECH_ASK && action && !is_question(action) && list_states(&d, action))
        return speech;
    if (c->whole && (speech == HOME_SPEECH_ASK || speech == HOME_SPEECH_NONE) &&
        (!action || !action->state.n || misses_need(&d, action)) &&
        list_states_plainly(&d, !action || !action->state.n))
        return HOME_SPEECH_ASK;
    if (speech != HOME_SPEECH_COMMAND && speech != HOME_SPEECH_NONE && !states &&
        (speech != HOME_SPEECH_ASK || (action && !is_question(action))) && t->say[speech].n > 0) {
        const char *what = speech == HOME_SPEECH_NEGATE ? kept(&d) : NULL;
        if (speech == HOME_SPEECH_NEGATE)
            (void)spare_all(&d);
        if (what) {
            say_kept(&d, what);
            return speech;
        }
        const char *text = home_template_fill(a, &t->say[speech], home_act_text, NULL);
        add_line(a, draft, (struct home_draft_line){.say = text});
        return speech;
    }
    if (action)
        action = correct(&d, settle(t, action, &d.plain));
    bool acts = action && (speech == HOME_SPEECH_COMMAND ||
                           (speech == HOME_SPEECH_ASK && is_question(action)));
    if (acts) {
        carry_out(&d, action, focus);
    } else if (d.plain.n > MAX_TALK && t->say[HOME_SAY_LONG].n > 0) {
        say_too_long(a, t, draft);
    } else {
        bool chat =
            sure && !home_table_action(t, c->intent) && home_table_lists(&t->chat_flows, c->flow);
        add_line(a, draft, home_act_said(a, chat ? &t->line_chat : &t->line_out_of_scope, c->text));
    }
    return speech;
}
