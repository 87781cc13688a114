/* home_table_later.c - the part "later" of a home table: timers, alarms, reminders, and the words
 * that list and cancel scheduled entries. */
#include <string.h>

#include "apps/home/table/home_table_int.h"

static const char *const kind_names[HOME_LATER_COUNT] = {"action", "timer", "alarm", "reminder"};

const char *home_table_later_name(enum home_later_kind k)
{
    return kind_names[k];
}

bool home_table_later_kind(const char *name, enum home_later_kind *out)
{
    for (uint32_t k = 0; k < HOME_LATER_COUNT; k++)
        if (strcmp(kind_names[k], name) == 0) {
            *out = (enum home_later_kind)k;
            return true;
        }
    return false;
}

static void read_actions(struct home_reader *r, const struct json_node *at, const char *key,
                         const struct home_action *out[HOME_LATER_COUNT])
{
    struct json_node map = json_strict_get(at, key);
    if (!json_strict_object(&r->d, &map, "", "action timer alarm reminder"))
        return;
    for (uint32_t k = 0; k < HOME_LATER_COUNT; k++) {
        struct json_node v = json_strict_get(&map, kind_names[k]);
        if (v.v)
            out[k] = home_table_action_named(r, &v);
    }
}

static void read_clocks(struct home_reader *r, const struct json_node *at)
{
    r->t->later.parts = home_table_get_texts(r, at, "parts");
    for (uint32_t i = 0; r->d.rc == 0 && i < r->t->later.parts.n; i++)
        if (!home_table_is_clock(r->t->later.parts.p[i].to))
            json_strict_fail(&r->d, at, "parts: \"%s\" is not a time like 07:30",
                             r->t->later.parts.p[i].to);
}

/* The lists of a user, which are actions, too. */
static void read_lists(struct home_reader *r, const struct json_node *root)
{
    struct home_lists_table *l = &r->t->lists;
    struct json_node at = json_strict_get(root, "lists");
    if (!at.v || !json_strict_object(&r->d, &at, "add remove clear create ask all usual", ""))
        return;
    const struct {
        const char *key;
        const struct home_action **to;
    } actions[] = {{"add", &l->add},       {"remove", &l->remove}, {"clear", &l->clear},
                   {"create", &l->create}, {"ask", &l->ask},       {"all", &l->all}};
    l->usual = home_table_get_text(r, &at, "usual", HOME_TEXT_TEXT);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        struct json_node v = json_strict_get(&at, actions[i].key);
        *actions[i].to = home_table_action_named(r, &v);
    }
}

static void read_help(struct home_reader *r, const struct json_node *root)
{
    struct home_help_table *h = &r->t->help;
    struct json_node at = json_strict_get(root, "help");
    const struct {
        const char *key;
        struct home_template *to;
    } parts[] = {{"things", &h->things}, {"simulated", &h->simulated}, {"later", &h->later},
                 {"lists", &h->lists},   {"live", &h->live},           {"always", &h->always},
                 {"about", &h->about}};
    if (!at.v ||
        !json_strict_object(&r->d, &at, "", "things simulated later lists live always about"))
        return;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct json_node v = json_strict_get(&at, parts[i].key);
        if (v.v)
            *parts[i].to = home_table_read_template(r, &v, HOME_TABLE_VAR(TEXT), NULL);
    }
}

void home_table_read_later(struct home_reader *r, const struct json_node *root)
{
    struct home_later_table *l = &r->t->later;
    struct json_node at = json_strict_get(root, "later");
    read_lists(r, root);
    read_help(r, root);
    if (!at.v || !json_strict_object(&r->d, &at, "set cancel list words cancel_words",
                                     "all skip each other days past parts every sun pause "
                                     "resume change"))
        return;
    const struct home_action *set[HOME_LATER_COUNT] = {NULL};
    read_actions(r, &at, "set", set);
    read_actions(r, &at, "cancel", l->cancel);
    for (uint32_t k = 0; r->d.rc == 0 && k < HOME_LATER_COUNT; k++) {
        for (uint32_t i = 0; set[k] && i < r->t->n_actions; i++)
            if (&r->t->action[i] == set[k])
                r->t->action[i].rings = (enum home_later_kind)k;
        if (!l->cancel[k])
            json_strict_fail(&r->d, &at, "cancel: \"%s\" is missing", kind_names[k]);
    }
    static const char *const turns[] = {"pause", "resume", "change"}; /* enum home_later_turn */
    for (uint32_t i = 0; i < HOME_LATER_TURNS; i++) {
        struct json_node v = json_strict_get(&at, turns[i]);
        l->turn[i] = v.v ? home_table_action_named(r, &v) : NULL;
    }
    struct json_node list = json_strict_get(&at, "list"), words = json_strict_get(&at, "words");
    l->list = home_table_action_named(r, &list);
    if (r->d.rc == 0 && json_strict_object(&r->d, &words, "action timer alarm reminder", ""))
        for (uint32_t k = 0; k < HOME_LATER_COUNT; k++)
            l->words[k] = home_table_get_list(r, &words, kind_names[k], HOME_TEXT_PHRASE);
    l->cancel_words = home_table_get_list(r, &at, "cancel_words", HOME_TEXT_PHRASE);
    l->all = home_table_get_list(r, &at, "all", HOME_TEXT_WORD);
    l->skip = home_table_get_list(r, &at, "skip", HOME_TEXT_WORD);
    l->each = home_table_get_list(r, &at, "each", HOME_TEXT_WORD);
    l->other = home_table_get_list(r, &at, "other", HOME_TEXT_WORD);
    l->past = home_table_get_list(r, &at, "past", HOME_TEXT_PHRASE);
    l->days = home_table_get_numbers(r, &at, "days", 0, 366);
    l->every = home_table_get_numbers(r, &at, "every", 0, 127);
    l->sun = home_table_get_numbers(r, &at, "sun", 1, 2);
    read_clocks(r, &at);
}
