/* plan_pb.c - see plan_pb.h. */
#include "cluster/messages/plan_pb.h"

#include "wire/pb.h"

typedef Shoal__Node__V1__Plan pb_plan;
typedef Shoal__Node__V1__PlanAction pb_action;
typedef Shoal__Node__V1__PlanField pb_field;
typedef Shoal__Node__V1__PlanClause pb_clause;
typedef Shoal__Node__V1__PlanEntity pb_entity;
typedef Shoal__Node__V1__PlanStep pb_step;

#define MAX_LIST 4096u /* limit of every list in a plan */

/* ---- writing ---- */

static void put_field(pb_field *m, const struct ask_plan_field *f)
{
    shoal__node__v1__plan_field__init(m);
    m->key = pb_text(f->key);
    if (f->n_items > 0) {
        m->items = (char **)(uintptr_t)f->items;
        m->n_items = f->n_items;
    } else if (f->text) {
        m->value_case = SHOAL__NODE__V1__PLAN_FIELD__VALUE_TEXT;
        m->text = pb_text(f->text);
    } else {
        m->value_case = SHOAL__NODE__V1__PLAN_FIELD__VALUE_NUMBER;
        m->number = f->number;
    }
}

static void put_actions(struct arena *a, pb_plan *m, const struct ask_plan *plan)
{
    pb_action *list = pb_list(a, plan->n_actions, sizeof(*list), (void ***)(void *)&m->actions);
    for (uint32_t i = 0; list && i < plan->n_actions; i++) {
        const struct ask_plan_action *from = plan->actions[i];
        shoal__node__v1__plan_action__init(&list[i]);
        list[i].name = pb_text(from->name);
        pb_field *fields =
            pb_list(a, from->n_fields, sizeof(*fields), (void ***)(void *)&list[i].fields);
        for (uint32_t k = 0; fields && k < from->n_fields; k++)
            put_field(&fields[k], &from->fields[k]);
        list[i].n_fields = fields ? from->n_fields : 0;
    }
    m->n_actions = list ? plan->n_actions : 0;
}

static void put_clauses(struct arena *a, pb_plan *m, const struct ask_plan *plan)
{
    pb_clause *list = pb_list(a, plan->n_clauses, sizeof(*list), (void ***)(void *)&m->clauses);
    for (uint32_t i = 0; list && i < plan->n_clauses; i++) {
        const struct ask_plan_clause *from = &plan->clauses[i];
        shoal__node__v1__plan_clause__init(&list[i]);
        list[i].text = pb_text(from->text);
        list[i].intent = pb_text(from->intent);
        list[i].router = pb_text(from->router);
        list[i].flow = pb_text(from->flow);
        list[i].intent_p = from->intent_p;
        list[i].router_p = from->router_p;
        list[i].act = pb_text(from->act);
        list[i].act_p = from->act_p;
        pb_entity *entities =
            pb_list(a, from->n_entities, sizeof(*entities), (void ***)(void *)&list[i].entities);
        for (uint32_t k = 0; entities && k < from->n_entities; k++) {
            shoal__node__v1__plan_entity__init(&entities[k]);
            entities[k].type = pb_text(from->entities[k].type);
            entities[k].text = pb_text(from->entities[k].text);
        }
        list[i].n_entities = entities ? from->n_entities : 0;
    }
    m->n_clauses = list ? plan->n_clauses : 0;
}

pb_plan *plan_pb_of(struct arena *a, const struct ask_plan *plan)
{
    pb_plan *m = arena_zalloc(a, sizeof(*m));
    if (!m)
        return NULL;
    shoal__node__v1__plan__init(m);
    put_actions(a, m, plan);
    put_clauses(a, m, plan);
    m->contexts = (char **)(uintptr_t)plan->contexts;
    m->n_contexts = plan->n_contexts;
    return a->rc < 0 ? NULL : m;
}

pb_step **plan_pb_steps(struct arena *a, const struct ask_plan_step *steps, uint32_t n,
                        size_t *n_out)
{
    pb_step **pointers = NULL;
    pb_step *list = pb_list(a, n, sizeof(*list), (void ***)(void *)&pointers);
    for (uint32_t i = 0; list && i < n; i++) {
        shoal__node__v1__plan_step__init(&list[i]);
        list[i].name = pb_text(steps[i].name);
        list[i].model = pb_text(steps[i].model);
        list[i].start_ns = steps[i].start_ns;
        list[i].ns = steps[i].ns;
        list[i].tokens = steps[i].tokens;
    }
    *n_out = list ? n : 0;
    return pointers;
}

/* ---- reading ---- */

static int read_action(struct ask_plan_action *out, const pb_action *m)
{
    if (m->n_fields > ASK_PLAN_MAX_FIELDS)
        return SHOAL_EFORMAT;
    out->name = m->name;
    out->n_fields = (uint32_t)m->n_fields;
    for (size_t i = 0; i < m->n_fields; i++) {
        const pb_field *f = m->fields[i];
        struct ask_plan_field *to = &out->fields[i];
        if (f->n_items > ASK_PLAN_MAX_LIST)
            return SHOAL_EFORMAT;
        to->key = f->key;
        to->items = (const char *const *)f->items;
        to->n_items = (uint32_t)f->n_items;
        if (f->value_case == SHOAL__NODE__V1__PLAN_FIELD__VALUE_TEXT)
            to->text = f->text;
        else if (f->value_case == SHOAL__NODE__V1__PLAN_FIELD__VALUE_NUMBER)
            to->number = f->number;
        else if (f->n_items == 0)
            return SHOAL_EFORMAT;
    }
    return 0;
}

static int read_clause(struct ask_plan_clause *out, struct arena *a, const pb_clause *m)
{
    struct ask_plan_entity *entities = arena_zalloc_n(a, m->n_entities, sizeof(*entities));
    if (!entities || m->n_entities > MAX_LIST)
        return entities ? SHOAL_EFORMAT : a->rc;
    for (size_t i = 0; i < m->n_entities; i++)
        entities[i] = (struct ask_plan_entity){m->entities[i]->type, m->entities[i]->text};
    *out = (struct ask_plan_clause){.text = m->text,
                                    .intent = m->intent,
                                    .act = m->act,
                                    .act_p = m->act_p,
                                    .router = m->router,
                                    .flow = m->flow,
                                    .intent_p = m->intent_p,
                                    .router_p = m->router_p,
                                    .entities = entities,
                                    .n_entities = (uint32_t)m->n_entities};
    return 0;
}

int plan_pb_read(const struct ask_plan **out, struct arena *a, const pb_plan *m)
{
    if (m->n_actions > MAX_LIST || m->n_clauses > MAX_LIST || m->n_contexts > MAX_LIST)
        return SHOAL_EFORMAT;
    struct ask_plan_action *actions = arena_zalloc_n(a, m->n_actions, sizeof(*actions));
    const struct ask_plan_action **pointers = arena_zalloc_n(a, m->n_actions, sizeof(*pointers));
    struct ask_plan_clause *clauses = arena_zalloc_n(a, m->n_clauses, sizeof(*clauses));
    int rc = a->rc;
    for (size_t i = 0; i < m->n_actions && rc == 0; i++) {
        rc = read_action(&actions[i], m->actions[i]);
        pointers[i] = &actions[i];
    }
    for (size_t i = 0; i < m->n_clauses && rc == 0; i++)
        rc = read_clause(&clauses[i], a, m->clauses[i]);
    if (rc < 0)
        return rc;
    const struct ask_plan plan = {.actions = pointers,
                                  .n_actions = (uint32_t)m->n_actions,
                                  .clauses = clauses,
                                  .n_clauses = (uint32_t)m->n_clauses,
                                  .contexts = (const char *const *)m->contexts,
                                  .n_contexts = (uint32_t)m->n_contexts};
    *out = ask_plan_copy(&plan, a); /* its texts still point into the message */
    return *out ? 0 : a->rc;
}

const struct ask_plan_step *plan_pb_read_steps(struct arena *a, pb_step **steps, size_t n)
{
    struct ask_plan_step *list = arena_zalloc_n(a, n, sizeof(*list));
    for (size_t i = 0; list && i < n; i++)
        list[i] = (struct ask_plan_step){.name = steps[i]->name,
                                         .model = steps[i]->model[0] ? steps[i]->model : NULL,
                                         .start_ns = steps[i]->start_ns,
                                         .ns = steps[i]->ns,
                                         .tokens = steps[i]->tokens};
    return list;
}
