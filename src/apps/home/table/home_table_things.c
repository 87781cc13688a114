/* home_table_things.c - the parts of a home table about things: the effect of each action
 * (effects) and the kinds of things (kinds). */
#include "apps/home/table/home_table_int.h"

#include <string.h>

static void read_effects(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node list = json_strict_get(root, "effects"), v;
    (void)json_strict_array(&r->d, &list, HOME_TABLE_MAX_ACTIONS);
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        if (!json_strict_object(&r->d, &v, "action ability", "to slot partly named_by"))
            return;
        struct json_node name = json_strict_get(&v, "action");
        const struct home_action *x = home_table_action_named(r, &name);
        struct home_effect *f = arena_zalloc(&t->arena, sizeof(*f));
        if (!f)
            json_strict_no_memory(&r->d);
        if (r->d.rc < 0)
            return;
        f->ability = home_table_get_text(r, &v, "ability", HOME_TEXT_NAME);
        f->to = home_table_get_text(r, &v, "to", HOME_TEXT_TEXT);
        f->slot = home_table_get_slot(r, &v, "slot");
        f->named_by = home_table_get_slot(r, &v, "named_by");
        f->partly = home_table_get_text(r, &v, "partly", HOME_TEXT_NAME);
        if (r->d.rc == 0 && f->partly && (!f->to || !f->slot))
            json_strict_fail(&r->d, &v, "\"partly\" needs \"to\" and \"slot\"");
        if (r->d.rc == 0 && !f->partly && !f->to == !f->slot)
            json_strict_fail(&r->d, &v, "an effect has either \"to\" or \"slot\"");
        if (r->d.rc == 0 && x->effect)
            json_strict_fail(&r->d, &name, "this action has an effect already");
        t->action[x - t->action].effect = f;
    }
}

/* The abilities of a kind: its own, or those of the kind that it is a special case of. */
static void read_general(struct home_reader *r, const struct json_node *at, struct home_kind *k)
{
    struct json_node is = json_strict_get(at, "is"), abilities = json_strict_get(at, "abilities");
    if (is.v) { /* kinds that come before it */
        const char *name = json_strict_text(&r->d, &is, HOME_TABLE_MAX_WORD_BYTES);
        k->is = r->d.rc == 0 ? home_table_kind(r->t, name) : NULL;
        if (!k->is || k->is == k)
            json_strict_fail(&r->d, &is, "unknown kind \"%.64s\"", name);
    } else if (!abilities.v) {
        json_strict_fail(&r->d, at, "\"abilities\" is missing");
    }
    if (r->d.rc == 0)
        k->abilities =
            abilities.v ? home_table_read_list(r, &abilities, HOME_TEXT_NAME) : k->is->abilities;
}

static void read_kinds(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "kinds"), v;
    if (!at.v)
        return;
    uint32_t n = json_strict_map(&r->d, &at, HOME_TABLE_MAX_LIST);
    t->kinds = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->kinds));
    if (!t->kinds)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&at); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        struct home_kind *k = &t->kinds[t->n_kinds++];
        if (!json_strict_object(&r->d, &v, "", "words named abilities is as_named"))
            return;
        struct json_node named = json_strict_get(&v, "as_named");
        k->name = home_table_copy_key(r, &v);
        k->words = home_table_get_list(r, &v, "words", HOME_TEXT_PHRASE);
        k->named = home_table_get_list(r, &v, "named", HOME_TEXT_PHRASE);
        k->as_named = json_strict_bool(&r->d, &named, false);
        read_general(r, &v, k);
    }
}

void home_table_read_things(struct home_reader *r, const struct json_node *root)
{
    read_effects(r, root);
    if (r->d.rc == 0)
        read_kinds(r, root);
}

const struct home_kind *home_table_kind(const struct home_table *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_kinds; i++)
        if (strcmp(t->kinds[i].name, name) == 0)
            return &t->kinds[i];
    return NULL;
}

bool home_table_kind_is(const struct home_kind *k, const char *name)
{
    while (k && strcmp(k->name, name) != 0)
        k = k->is;
    return k != NULL;
}

bool home_table_ability(const struct home_table *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_actions; i++)
        if (t->action[i].effect &&
            (strcmp(t->action[i].effect->ability, name) == 0 ||
             (t->action[i].effect->partly && strcmp(t->action[i].effect->partly, name) == 0)))
            return true;
    return false;
}
