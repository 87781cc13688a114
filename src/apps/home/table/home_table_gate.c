/* home_table_gate.c - the parts of a home table that the gate decides by: which abilities are
 * numbers (quantities), the classes of risk (risk), and the usual limits (limits).
 *
 * A kind, ability or state that the table does not know is an error: a rule with a typing mistake
 * would otherwise never apply, and nobody would notice. */
#include "apps/home/table/home_table_int.h"

#include <string.h>

#define MAX_RULES 64u
#define MAX_UNITS 16u /* of one quantity */

static const char *const risks[] = {[HOME_RISK_HARMLESS] = "harmless",
                                    [HOME_RISK_DISTURBING] = "disturbing",
                                    [HOME_RISK_DANGEROUS] = "dangerous"};

const char *home_table_risk_name(enum home_risk r)
{
    return risks[r];
}

static void read_quantities(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node at = json_strict_get(root, "quantities"), v, u;
    if (!at.v)
        return;
    uint32_t n = json_strict_map(&r->d, &at, MAX_RULES);
    t->quantities = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->quantities));
    if (!t->quantities)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&at); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        if (!json_strict_object(&r->d, &v, "units", "words"))
            return;
        struct home_quantity *q = &t->quantities[t->n_quantities];
        struct json_node units = json_strict_get(&v, "units");
        uint32_t n_units = json_strict_array(&r->d, &units, MAX_UNITS);
        q->ability = home_table_copy_key(r, &v);
        q->words = home_table_get_list(r, &v, "words", HOME_TEXT_WORD);
        q->units = arena_zalloc_n(&t->arena, (size_t)n_units + 1, sizeof(*q->units));
        if (!q->units)
            json_strict_no_memory(&r->d);
        for (u = json_strict_first(&units); r->d.rc == 0 && u.v; u = json_strict_next(&u))
            q->units[q->n_units++] = home_table_unit_named(r, &u);
        if (r->d.rc == 0 && q->n_units == 0)
            json_strict_fail(&r->d, &units, "a quantity needs a unit");
        t->n_quantities++;
    }
}

static bool is_state(const struct home_table *t, const char *to)
{
    for (uint32_t i = 0; i < t->n_actions; i++)
        if (t->action[i].effect && t->action[i].effect->to &&
            strcmp(t->action[i].effect->to, to) == 0)
            return true;
    return false;
}

static struct home_rule read_rule(struct home_reader *r, const struct json_node *at)
{
    const struct home_table *t = r->t;
    struct home_rule x = {.actions = home_table_get_list(r, at, "actions", HOME_TEXT_NAME),
                          .kinds = home_table_get_list(r, at, "kinds", HOME_TEXT_NAME),
                          .abilities = home_table_get_list(r, at, "abilities", HOME_TEXT_NAME),
                          .to = home_table_get_list(r, at, "to", HOME_TEXT_TEXT)};
    for (uint32_t i = 0; r->d.rc == 0 && i < x.actions.n; i++)
        if (!home_table_action(t, x.actions.w[i]))
            json_strict_fail(&r->d, at, "unknown action \"%.64s\"", x.actions.w[i]);
    for (uint32_t i = 0; r->d.rc == 0 && i < x.kinds.n; i++)
        if (!home_table_kind(t, x.kinds.w[i]))
            json_strict_fail(&r->d, at, "unknown kind \"%.64s\"", x.kinds.w[i]);
    for (uint32_t i = 0; r->d.rc == 0 && i < x.abilities.n; i++)
        if (!home_table_ability(t, x.abilities.w[i]) && !home_table_quantity(t, x.abilities.w[i]))
            json_strict_fail(&r->d, at, "unknown ability \"%.64s\"", x.abilities.w[i]);
    for (uint32_t i = 0; r->d.rc == 0 && i < x.to.n; i++)
        if (!is_state(t, x.to.w[i]))
            json_strict_fail(&r->d, at, "no action sets the state \"%.64s\"", x.to.w[i]);
    return x;
}

static struct home_rules read_rules(struct home_reader *r, const struct json_node *list)
{
    struct home_rules out = {0};
    uint32_t n = json_strict_array(&r->d, list, MAX_RULES);
    struct home_rule *v = arena_zalloc_n(&r->t->arena, (size_t)n + 1, sizeof(*v));
    if (!v)
        json_strict_no_memory(&r->d);
    struct json_node at = json_strict_first(list);
    for (; r->d.rc == 0 && at.v && out.n < n; at = json_strict_next(&at))
        if (json_strict_object(&r->d, &at, "", "actions kinds abilities to"))
            v[out.n++] = read_rule(r, &at);
    out.v = v;
    return out;
}

static void read_risk(struct home_reader *r, const struct json_node *root)
{
    struct json_node at = json_strict_get(root, "risk");
    if (!at.v || !json_strict_object(&r->d, &at, "", "rest harmless disturbing dangerous"))
        return;
    struct json_node rest = json_strict_get(&at, "rest");
    r->t->rest = read_rules(r, &rest);
    for (enum home_risk k = HOME_RISK_HARMLESS; k < HOME_RISK_COUNT; k++) {
        struct home_risk_class *c = &r->t->risk[k];
        struct json_node class = json_strict_get(&at, risks[k]);
        if (!class.v || !json_strict_object(&r->d, &class, "rules", "confirm"))
            continue;
        struct json_node rules = json_strict_get(&class, "rules"),
                         confirm = json_strict_get(&class, "confirm");
        c->rules = read_rules(r, &rules);
        c->confirm = json_strict_bool(&r->d, &confirm, false);
    }
    /* a dangerous action without a confirmation question would never happen */
    if (r->d.rc == 0 && r->t->risk[HOME_RISK_DANGEROUS].confirm &&
        r->t->say[HOME_SAY_CONFIRM].n == 0)
        json_strict_fail(&r->d, &at, "confirm needs the line says.confirm");
}

static void read_limits(struct home_reader *r, const struct json_node *root)
{
    struct home_table *t = r->t;
    struct json_node list = json_strict_get(root, "limits"), v;
    uint32_t n = json_strict_array(&r->d, &list, HOME_TABLE_MAX_LIST);
    t->limits = arena_zalloc_n(&t->arena, (size_t)n + 1, sizeof(*t->limits));
    if (!t->limits)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        if (!json_strict_object(&r->d, &v, "unit min max", "kinds abilities"))
            return;
        struct home_limit *l = &t->limits[t->n_limits++];
        struct json_node unit = json_strict_get(&v, "unit"), min = json_strict_get(&v, "min"),
                         max = json_strict_get(&v, "max");
        l->when = read_rule(r, &v);
        l->unit = home_table_unit_named(r, &unit);
        l->min = json_strict_number(&r->d, &min, -1e12, 1e12, 0);
        l->max = json_strict_number(&r->d, &max, -1e12, 1e12, 0);
        if (l->min > l->max)
            json_strict_fail(&r->d, &v, "min is above max");
    }
}

void home_table_read_gate(struct home_reader *r, const struct json_node *root)
{
    void (*const parts[])(struct home_reader *,
                          const struct json_node *) = {read_quantities, read_risk, read_limits};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r->d.rc == 0; i++)
        parts[i](r, root);
}
