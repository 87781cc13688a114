/* home_table_plans.c - the part of a home table about plans (plans): classes of things, quantities,
 * and the actions that verbs mean. */
#include "apps/home/table/home_table_int.h"

#include <string.h>

static void read_classes(struct home_reader *r, const struct json_node *at)
{
    struct home_plans *p = &r->t->plans;
    struct json_node list = json_strict_get(at, "classes"), v;
    uint32_t n = json_strict_map(&r->d, &list, HOME_TABLE_MAX_LIST);
    p->classes = arena_zalloc_n(&r->t->arena, (size_t)n + 1, sizeof(*p->classes));
    if (!p->classes)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        struct home_class *c = &p->classes[p->n_classes++];
        if (!json_strict_object(&r->d, &v, "many", "kinds words means but"))
            return;
        c->name = home_table_copy_key(r, &v);
        c->kinds = home_table_get_list(r, &v, "kinds", HOME_TEXT_NAME);
        c->words = home_table_get_list(r, &v, "words", HOME_TEXT_PHRASE);
        c->means = home_table_get_list(r, &v, "means", HOME_TEXT_NAME);
        c->many = home_table_get_text(r, &v, "many", HOME_TEXT_TEXT);
    }
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        const char *but = home_table_get_text(r, &v, "but", HOME_TEXT_NAME);
        struct home_class *c =
            (struct home_class *)(uintptr_t)home_table_class(r->t, home_table_copy_key(r, &v));
        if (but && c && !(c->but = home_table_class(r->t, but)))
            json_strict_fail(&r->d, &v, "\"but\" must be another class");
    }
}

static void read_quantities(struct home_reader *r, const struct json_node *at)
{
    struct home_plans *p = &r->t->plans;
    struct json_node list = json_strict_get(at, "quantities"), v;
    uint32_t n = json_strict_map(&r->d, &list, HOME_TABLE_MAX_LIST);
    p->quantities = arena_zalloc_n(&r->t->arena, (size_t)n + 1, sizeof(*p->quantities));
    if (!p->quantities)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        struct home_plan_quantity *q = &p->quantities[p->n_quantities++];
        if (!json_strict_object(&r->d, &v, "words", "units of action step leap"))
            return;
        struct json_node action = json_strict_get(&v, "action");
        q->name = home_table_copy_key(r, &v);
        q->words = home_table_get_list(r, &v, "words", HOME_TEXT_PHRASE);
        q->units = home_table_get_list(r, &v, "units", HOME_TEXT_TEXT);
        q->implied = home_table_get_list(r, &v, "of", HOME_TEXT_NAME);
        q->set = action.v ? home_table_action_named(r, &action) : NULL;
        q->step = home_table_get_text(r, &v, "step", HOME_TEXT_TEXT);
        q->leap = home_table_get_text(r, &v, "leap", HOME_TEXT_TEXT);
    }
}

/* A map of lists: "senses", "evidence". */
static struct home_lists_of read_lists_of(struct home_reader *r, const struct json_node *at,
                                          const char *key)
{
    struct json_node list = json_strict_get(at, key), v;
    struct home_lists_of out = {0};
    if (!list.v)
        return out;
    uint32_t n = json_strict_map(&r->d, &list, HOME_TABLE_MAX_LIST);
    out.p = arena_zalloc_n(&r->t->arena, (size_t)n + 1, sizeof(*out.p));
    if (!out.p)
        json_strict_no_memory(&r->d);
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v)) {
        struct home_list_of *x = &out.p[out.n++];
        x->name = home_table_copy_key(r, &v);
        x->list = home_table_get_list(r, &list, x->name, HOME_TEXT_PHRASE);
    }
    return out;
}

/* Each verb must have its action. */
static void check_verbs(struct home_reader *r, const struct json_node *at)
{
    struct json_node list = json_strict_get(at, "verbs"), v;
    for (v = json_strict_first(&list); r->d.rc == 0 && v.v; v = json_strict_next(&v))
        (void)home_table_action_named(r, &v);
}

void home_table_read_plans(struct home_reader *r, const struct json_node *root)
{
    struct home_plans *p = &r->t->plans;
    struct json_node at = json_strict_get(root, "plans");
    if (!json_strict_object(&r->d, &at, "classes quantities verbs states",
                            "act ask heard overheard senses called evidence against never here"))
        return;
    struct json_node act = json_strict_get(&at, "act"), ask = json_strict_get(&at, "ask");
    struct json_node heard = json_strict_get(&at, "heard"),
                     overheard = json_strict_get(&at, "overheard");
    p->heard = (float)json_strict_number(&r->d, &heard, 0, 1, 0.7);
    p->overheard = (float)json_strict_number(&r->d, &overheard, 0, 1, 0.5);
    p->act_p = (float)json_strict_number(&r->d, &act, 0, 1, 0.95);
    p->ask_p = (float)json_strict_number(&r->d, &ask, 0, 1, 0.35);
    read_classes(r, &at);
    if (r->d.rc == 0)
        read_quantities(r, &at);
    p->verbs = home_table_get_pairs(r, &at, "verbs", HOME_TEXT_WORD, 0, 0);
    p->states = home_table_get_pairs(r, &at, "states", HOME_TEXT_WORD, 0, 0);
    p->called = home_table_get_pairs(r, &at, "called", HOME_TEXT_TEXT, 0, 0);
    check_verbs(r, &at);
    if (r->d.rc == 0)
        p->senses = read_lists_of(r, &at, "senses");
    if (r->d.rc == 0)
        p->evidence = read_lists_of(r, &at, "evidence");
    if (r->d.rc == 0)
        p->against = read_lists_of(r, &at, "against");
    if (r->d.rc == 0)
        p->never = read_lists_of(r, &at, "never");
    if (r->d.rc == 0)
        p->here = home_table_get_list(r, &at, "here", HOME_TEXT_PHRASE);
}

const struct home_class *home_table_class(const struct home_table *t, const char *name)
{
    for (uint32_t i = 0; i < t->plans.n_classes; i++)
        if (strcmp(t->plans.classes[i].name, name) == 0)
            return &t->plans.classes[i];
    return NULL;
}

const struct home_plan_quantity *home_table_plan_quantity(const struct home_table *t,
                                                          const char *name)
{
    for (uint32_t i = 0; i < t->plans.n_quantities; i++)
        if (strcmp(t->plans.quantities[i].name, name) == 0)
            return &t->plans.quantities[i];
    return NULL;
}

static const char *paired(const struct home_pairs *list, const char *word)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->p[i].from, word) == 0)
            return list->p[i].to;
    return NULL;
}

const struct home_action *home_table_verb(const struct home_table *t, const char *verb)
{
    const char *name = paired(&t->plans.verbs, verb);
    return name ? home_table_action(t, name) : NULL;
}

const char *home_table_called(const struct home_table *t, const char *name)
{
    const char *word = name ? paired(&t->plans.called, name) : NULL;
    return word ? word : name;
}

const char *home_table_state(const struct home_table *t, const char *state)
{
    return paired(&t->plans.states, state);
}

static const struct home_list *list_of(const struct home_lists_of *l, const char *name)
{
    for (uint32_t i = 0; name && i < l->n; i++)
        if (strcmp(l->p[i].name, name) == 0)
            return &l->p[i].list;
    return NULL;
}

const struct home_list *home_table_senses(const struct home_table *t, const char *state)
{
    return list_of(&t->plans.senses, state);
}

const struct home_list *home_table_evidence(const struct home_table *t, const char *verb)
{
    return list_of(&t->plans.evidence, verb);
}

const struct home_list *home_table_against(const struct home_table *t, const char *verb)
{
    return list_of(&t->plans.against, verb);
}

const struct home_list *home_table_never(const struct home_table *t, const char *word)
{
    return list_of(&t->plans.never, word);
}
