/* read_acts.c - see read_acts.h. */
#include "apps/home/read/read_acts.h"

#include <string.h>

#include "apps/home/home_help.h"
#include "apps/home/home_values.h"
#include "apps/home/read/read_ask.h"
#include "apps/home/read/read_class.h"
#include "apps/home/read/read_cover.h"
#include "apps/home/read/read_kept.h"
#include "apps/home/read/read_later.h"
#include "apps/home/read/read_make.h"
#include "apps/home/read/read_switch.h"
#include "apps/home/read/read_together.h"
#include "apps/home/read/read_value.h"

static void change_list(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    const struct home_slot *item = home_table_slot(r->t, "item");
    struct read_doing d = {.p = p};
    (void)x;
    if (!action)
        return;
    for (uint32_t i = 0; i < p->n_items && item; i++) {
        const char *text = read_work_said(r, p->items[i]);
        if (!text || d.s.n_items == ASK_PLAN_MAX_ITEMS)
            continue;
        if (d.s.n_items == 0)
            home_fill_set(&d.s, home_fill_own(item), text);
        else
            d.s.items[d.s.n_items++] = text;
    }
    (void)read_work_fill(r, action, &d.s, "list",
                         read_work_said(r, p->list.to ? p->list : p->name));
    read_make_action(r, action, &d);
}

static void tell(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    struct read_doing d = {.p = p, .target = x};
    if (!action)
        return;
    (void)read_work_fill(r, action, &d.s, "message", read_work_said(r, p->what));
    read_make_aim(r, action, &d);
}

static void announce(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    struct read_doing d = {.p = p};
    if (!action)
        return;
    (void)read_work_fill(r, action, &d.s, "message", read_work_said(r, p->what));
    (void)read_work_fill(r, action, &d.s, "room", x->room);
    read_make_action(r, action, &d);
}

/* The one thing that the text names and that can be switched on; NULL: none, or several. */
static const struct home_thing *named_switch(const struct read_work *r)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    const struct home_action *on = home_table_verb(r->t, "on");
    const struct home_thing *found = NULL;
    for (uint32_t i = 0; i < r->lines->n_things; i++) {
        const struct home_thing *x = r->lines->things[i].thing;
        bool named = false;
        for (uint32_t k = 0; k < plain.n && !named; k++)
            named = home_table_phrase(&x->names, &plain, k) > 0;
        if (named && read_switch_can(x, on) && found)
            return NULL;
        found = named && read_switch_can(x, on) ? x : found;
    }
    return found;
}

static void play(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    const struct home_action *action = home_table_verb(r->t, p->verb);
    const struct home_thing *one =
        read_is(p->verb, "play") && p->what.to == 0 ? named_switch(r) : NULL;
    struct read_doing d = {.p = p};
    if (!action)
        return;
    if (one) { /* "turn on the radio" plays nothing that has a name: the radio itself is meant */
        struct read_target radio = {
            .result = READ_TARGET_THINGS, .things = &one, .n = 1, .device = one->names.w[0]};
        radio.room = one->room ? one->room->names.w[0] : NULL;
        read_switch(r, p, "on", &radio);
        return;
    }
    (void)read_work_fill(r, action, &d.s, "media", read_work_said(r, p->what));
    (void)read_work_fill(r, action, &d.s, "room", x->room);
    if (x->result == READ_TARGET_UNKNOWN) {
        d.target = x;
        read_make_not_here(r, action, &d);
        return;
    }
    read_make_action(r, action, &d);
}

static void talk_back(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    (void)x;
    static const struct {
        const char *word;
        enum home_say say;
    } rows[] = {{"negated", HOME_SAY_NEGATE},    {"reported", HOME_SAY_REPORT},
                {"question", HOME_SAY_ASK},      {"condition", HOME_SAY_SUPPOSE},
                {"retracted", HOME_SAY_RETRACT}, {"unclear", HOME_SAY_UNSURE}};
    for (uint32_t i = 0; read_is(p->verb, "none") && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (read_is(p->word, rows[i].word)) {
            read_work_say(r, rows[i].say, NULL);
            return;
        }
    const bool chat = read_is(p->verb, "chat");
    const struct home_draft_line line =
        home_act_said(r->a, chat ? &r->t->line_chat : &r->t->line_out_of_scope, r->text);
    if (home_draft_reserve(r->a, r->draft))
        r->draft->lines[r->draft->n_lines++] = line;
}

/* The longest end of the text that is a sum: "what is 7 times 8". */
static const char *sum_in(const struct read_work *r)
{
    const char *show;
    double result;
    for (uint32_t i = 0; i < r->lines->words.n; i++) {
        const char *text =
            read_target_words(r->a, r->lines, (struct read_plan_span){i, r->lines->words.n});
        if (text && home_values_calculate(r->a, r->t, text, &show, &result))
            return text;
    }
    return NULL;
}

#define MIN_STEM 5u /* bytes of a part of a word; what is shorter is a whole word */

static bool says_stem(const struct read_work *r, const struct read_plan_act *p,
                      const struct home_list *stems)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    for (uint32_t i = 0; stems && i < plain.n; i++)
        for (uint32_t k = 0; !read_cover_explains(p, i) && k < stems->n; k++)
            if (strcmp(plain.w[i], stems->w[k]) == 0 ||
                (strlen(stems->w[k]) >= MIN_STEM && strstr(plain.w[i], stems->w[k])))
                return true;
    return false;
}

static void other(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    /* "how long until six" is not answered by the time */
    const bool more = p->word && says_stem(r, p, home_table_never(r->t, p->word));
    const struct home_action *action = p->word && !more ? home_table_verb(r->t, p->word) : NULL;
    struct read_doing d = {.p = p};
    const char *help = read_is(p->word, "help") ? home_help_text(r->a, r->t, r->here, r->simulated)
                       : read_is(p->word, "about") ? home_help_about(r->a, r->t)
                                                   : "";
    if (*help) {
        if (home_draft_reserve(r->a, r->draft))
            r->draft->lines[r->draft->n_lines++] = (struct home_draft_line){.say = help};
        return;
    }
    const char *sum = action && action->compute ? sum_in(r) : NULL;
    if (!action || (action->compute && !sum)) {
        talk_back(r, p, x);
        return;
    }
    (void)read_work_fill(r, action, &d.s, "expr", sum);
    read_make_action(r, action, &d);
}

/* What a list holds is answered by the list itself. */
static void ask(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    struct read_plan_act list = *p;
    list.verb = p->all && p->name.to == 0 && p->n_items == 0 ? "lists" : "list";
    if (read_is(p->word, "list"))
        change_list(r, &list, x);
    else
        read_ask(r, p, x);
}

/* The other of two states; NULL: not known. */
static const char *toggled(const struct read_work *r, const struct read_target *x)
{
    struct home_state s;
    if (x->n == 0 || !r->here->states ||
        !home_states_get(r->here->states, r->a, x->things[0]->id, "power", &s) || !s.text)
        return "on";
    return strcmp(s.text, "on") == 0 ? "off" : "on";
}

static void toggle(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    read_switch(r, p, toggled(r, x), x);
}

static void switch_things(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    read_switch(r, p, p->verb, x);
}

static void undone(struct read_work *r, const struct read_plan_act *p, struct read_target *x)
{
    (void)x;
    read_work_say(r, read_is(p->verb, "cancel") ? HOME_SAY_RETRACT : HOME_SAY_UNSURE, NULL);
    r->pending_out = "";
}

/* ---- plans ---------------------------------------------------------------------------------- */

typedef void act_fn(struct read_work *r, const struct read_plan_act *p, struct read_target *x);

static const struct {
    const char *verb;
    act_fn *make;
} verbs[] = {
    {"on", switch_things},
    {"off", switch_things},
    {"open", switch_things},
    {"close", switch_things},
    {"lock", switch_things},
    {"unlock", switch_things},
    {"start", switch_things},
    {"stop", switch_things},
    {"mute", switch_things},
    {"unmute", switch_things},
    {"dock", switch_things},
    {"arm", switch_things},
    {"disarm", switch_things},
    {"find", switch_things},
    {"scene", switch_things},
    {"toggle", toggle},
    {"set", read_value},
    {"up", read_value},
    {"down", read_value},
    {"timer", read_later},
    {"alarm", read_later},
    {"remind", read_later},
    {"event", read_later},
    {"add", change_list},
    {"remove", change_list},
    {"clear", change_list},
    {"create", change_list},
    {"call", tell},
    {"message", tell},
    {"announce", announce},
    {"ask", ask},
    {"none", talk_back},
    {"chat", talk_back},
    {"other", other},
    {"cancel", undone},
    {"undo", undone},
    {"repeat", undone},
    {"answer", undone}, /* no question was open */
};

static act_fn *maker(const struct read_work *r, const char *verb)
{
    for (uint32_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (read_is(verb, verbs[i].verb))
            return verbs[i].make;
    return home_table_verb(r->t, verb) ? play : NULL;
}

static const char *const opposites[][2] = {
    {"on", "off"},     {"open", "close"}, {"lock", "unlock"},
    {"start", "stop"}, {"up", "down"},    {"mute", "unmute"},
    {"arm", "disarm"}, {"add", "remove"}, {"set_one", "cancel_one"}};

/* NULL: none. */
static const char *opposite_of(const char *word)
{
    for (uint32_t i = 0; word && i < sizeof(opposites) / sizeof(opposites[0]); i++)
        for (uint32_t k = 0; k < 2; k++)
            if (strcmp(opposites[i][k], word) == 0)
                return opposites[i][1 - k];
    return NULL;
}

/* Does the text say the opposite of the verb? "Zu" alone does not open. */
static bool is_opposite(const struct read_work *r, const struct read_plan_act *p)
{
    const char *opposite = opposite_of(p->verb);
    return opposite && says_stem(r, p, home_table_against(r->t, p->verb)) &&
           !says_stem(r, p, home_table_against(r->t, opposite));
}

/* Is it a question about things that the text has no word of? */
static bool is_guessed(const struct read_work *r, const struct read_plan_act *p)
{
    for (uint32_t i = 0; i < p->things.n; i++)
        if (p->things.at[i] < r->lines->n_things && r->lines->things[p->things.at[i]].said)
            return false;
    return p->things.n > 0 && read_is(p->verb, "ask") && !read_ask_is_live(r, p);
}

/* Do the words of the text allow the verb and the rooms? To unlock is not guessed. */
static bool may_mean(const struct read_work *r, const struct read_plan_act *p)
{
    const struct home_list *needs = home_table_evidence(r->t, p->verb);
    static const struct read_plan_act nothing; /* what is copied counts, too */
    if (says_stem(r, &nothing, home_table_never(r->t, p->verb)) ||
        (p->state && says_stem(r, &nothing, home_table_never(r->t, p->state))) || is_guessed(r, p))
        return false;
    for (uint32_t i = 0; i < p->areas.n; i++) /* a room that nobody named */
        if (p->areas.at[i] < r->lines->n_areas && !r->lines->area_said[p->areas.at[i]])
            return false;
    return !is_opposite(r, p) && (!needs || says_stem(r, p, needs));
}

/* Is the word for the class here only the name of one thing? "Speakers", where nothing else is
 * called so. */
static bool is_name_of(const struct read_work *r, const struct read_plan_act *act, uint32_t at)
{
    const struct home_class *c = home_table_class(r->t, act->class);
    const struct read_lines_thing *l = &r->lines->things[at];
    const struct home_file *f = r->here->file;
    const struct home_list name = {l->thing->names.w, 1};
    if (!c || act->all || l->class != c || !home_table_lists(&c->words, name.w[0]))
        return false;
    for (uint32_t i = 0; f && i < f->n_things; i++)
        if (&f->things[i] != l->thing && (f->things[i].type == HOME_THING_DEVICE) &&
            read_lines_class(r->a, r->t, &f->things[i]) == c &&
            (read_lines_called(r->a, r->t, &f->things[i], &name) ||
             read_lines_called(r->a, r->t, &f->things[i], &c->words)))
            return false;
    return f != NULL;
}

/* "Turn off all the lights here": the class, in the speaker's room. */
static void aim_here(const struct read_work *r, struct read_plan_act *act)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    if (!act->class || act->things.n > 0 || act->areas.n > 0 || act->floors.n > 0)
        return;
    for (uint32_t i = 0; i < plain.n && !act->here; i++)
        act->here = home_table_phrase(&r->t->plans.here, &plain, i) > 0;
}

/* "Mute the tv": the one thing that the text names, if the reader took none. */
static void aim_at_named(const struct read_work *r, struct read_plan_act *act)
{
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < r->lines->n_things; i++)
        if (r->lines->things[i].exact) {
            n++;
            at = i;
        }
    if (n != 1 || act->things.n > 0 || (act->class && !is_name_of(r, act, at)) ||
        act->areas.n > 0 || act->floors.n > 0 || act->it || act->here || act->unknown.to > 0 ||
        act->elsewhere.to > 0)
        return;
    act->class = NULL;
    act->things.at[act->things.n++] = (uint8_t)at;
}

/* The one room that the text names; NULL: none, or several. */
static const struct home_thing *room_said(const struct read_work *r)
{
    const struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    const struct home_thing *said = NULL;
    for (uint32_t i = 0; i < r->lines->n_areas; i++)
        for (uint32_t k = 0; k < plain.n; k++)
            if (home_table_phrase(&r->lines->areas[i]->names, &plain, k) > 0) {
                if (said && said != r->lines->areas[i])
                    return NULL;
                said = r->lines->areas[i];
            }
    return said;
}

/* "Room 201, tv off": of things with one name, those in the room that was said. */
static void aim_at_room(const struct read_work *r, struct read_plan_act *act)
{
    const struct home_thing *room = act->things.n > 1 ? room_said(r) : NULL;
    struct read_plan_lines in = {.n = 0};
    for (uint32_t i = 0; room && i < act->things.n; i++) {
        const struct home_thing *x = r->lines->things[act->things.at[i]].thing,
                                *first = r->lines->things[act->things.at[0]].thing;
        if (strcmp(x->names.w[0], first->names.w[0]) != 0)
            return;
        if (x->room == room)
            in.at[in.n++] = act->things.at[i];
    }
    if (in.n > 0)
        act->things = in;
}

/* "Turn off the evacuation alarm": a thing of the home, no entry of the schedule. */
static void aim_at_alarm(const struct read_work *r, struct read_plan_act *act)
{
    struct read_plan_act off = {.verb = "off"};
    if (!read_is(act->verb, "alarm") || !read_is(act->word, "cancel_one"))
        return;
    aim_at_named(r, &off);
    const struct home_thing *x = off.things.n ? r->lines->things[off.things.at[0]].thing : NULL;
    if (x && !home_table_lists(&r->t->later.words[HOME_LATER_ALARM], x->names.w[0]) &&
        home_file_able(x, "alarm"))
        *act = off;
}

static void one_act(struct read_work *r, const struct read_plan_act *p, bool alone)
{
    struct read_plan_act act = *p;
    act_fn *make;
    enum read_class fit = read_class_check(r, &act, alone);
    const float sure = r->p;
    /* only offered, and only what ends something: "on" may be a place, too */
    if (read_is(act.verb, "on") && is_opposite(r, &act)) {
        act.verb = opposite_of(act.verb);
        fit = fit == READ_CLASS_FITS ? READ_CLASS_MENDED : fit;
    }
    if (fit == READ_CLASS_WRONG || !may_mean(r, &act)) {
        read_work_say(r, HOME_SAY_UNSURE, NULL);
        return;
    }
    aim_at_alarm(r, &act);
    make = maker(r, act.verb);
    if ((make == switch_things || (make == read_value && act.class)) && alone)
        aim_at_named(r, &act);
    aim_here(r, &act);
    aim_at_room(r, &act);
    if (fit == READ_CLASS_MENDED)
        r->p = 0.0f;
    if (read_is(p->verb, "stop") && p->things.n == 0 && !p->class && !p->it && !p->unknown.to) {
        act.class = "everything";
        r->p = 0.0f; /* who means it so has been obeyed before the text was read */
    }
    struct read_target x = read_target_of(r->a, r->t, r->here->file, r->lines, r->state, &act);
    if (make)
        make(r, &act, &x);
    else
        read_work_say(r, HOME_SAY_UNSURE, NULL);
    r->p = sure;
}

/* "Turn off the lights and the tv": what the class means, and the things. */
static void both_acts(struct read_work *r, const struct read_plan_act *p)
{
    struct read_plan_act of_class = *p, of_things = *p;
    of_class.things.n = 0;
    of_things.class = NULL;
    one_act(r, &of_class, false);
    one_act(r, &of_things, false);
}

/* "Undo that", "again": the last act of the conversation, or its opposite. */
static bool done_before(struct read_work *r, const struct read_plan_act *p, struct read_plan *out)
{
    static const struct read_plan_act nothing;
    const bool undo = read_is(p->verb, "undo");
    if ((!undo && !read_is(p->verb, "repeat")) || !read_kept_answered(r, &nothing, out))
        return false;
    struct read_plan_act *x = &out->acts[0];
    if (!read_plan_acts(x))
        return false;
    if (!undo) {
        read_kept_words_back(r, x);
        return true;
    }
    const char **turned = x->word ? &x->word : &x->verb;
    const char *opposite = opposite_of(*turned);
    if (opposite)
        *turned = opposite;
    return opposite != NULL;
}

void read_acts(struct read_work *r, const struct read_plan *plan)
{
    struct read_plan whole = *plan;
    read_together(r->a, r->t, r->lines, &whole);
    for (uint32_t i = 0; i < whole.n && r->a->rc == 0; i++) {
        const struct read_plan_act *p = &whole.acts[i];
        struct read_plan then;
        if (read_is(p->verb, "answer") && !p->word && r->state->pending &&
            read_kept_answered(r, p, &then)) {
            read_kept_words_back(r, &then.acts[0]);
            p = &then.acts[0];
        } else if (done_before(r, p, &then)) {
            p = &then.acts[0];
        }
        if (read_class_is_beside(r, p))
            both_acts(r, p);
        else
            one_act(r, p, whole.n == 1);
    }
}
