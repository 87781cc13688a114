/* ask_plan.c - see ask_plan.h. */
#include "flow/ask_plan.h"

#include <string.h>

const struct ask_plan_field *ask_plan_field_of(const struct ask_plan_action *o, const char *key)
{
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0)
            return &o->fields[i];
    return NULL;
}

const char *ask_plan_text_of(const struct ask_plan_action *o, const char *key)
{
    const struct ask_plan_field *f = ask_plan_field_of(o, key);
    return f ? f->text : NULL;
}

void ask_plan_action_json(struct json_out *j, const struct ask_plan_action *o)
{
    json_out_object(j);
    json_out_member_str(j, "action", o->name);
    for (uint32_t i = 0; i < o->n_fields; i++) {
        const struct ask_plan_field *f = &o->fields[i];
        json_out_key(j, f->key);
        if (f->text) {
            json_out_str(j, f->text);
        } else if (f->n_items > 0) {
            json_out_array(j);
            for (uint32_t k = 0; k < f->n_items; k++)
                json_out_str(j, f->items[k]);
            json_out_array_end(j);
        } else {
            json_out_num(j, f->number);
        }
    }
    json_out_object_end(j);
}

static void put_actions(struct json_out *j, const struct ask_plan *p)
{
    json_out_member_array(j, "actions");
    for (uint32_t i = 0; i < p->n_actions; i++)
        ask_plan_action_json(j, p->actions[i]);
    json_out_array_end(j);
}

static void put_clause(struct json_out *j, const struct ask_plan_clause *c)
{
    json_out_object(j);
    json_out_member_str(j, "text", c->text);
    json_out_member_str(j, "act", c->act);
    json_out_member_float(j, "act_confidence", c->act_p);
    json_out_member_str(j, "intent", c->intent);
    json_out_member_float(j, "confidence", c->intent_p);
    json_out_member_str(j, "router", c->router);
    json_out_member_float(j, "router_confidence", c->router_p);
    json_out_member_array(j, "entities");
    for (uint32_t i = 0; i < c->n_entities; i++) {
        json_out_object(j);
        json_out_member_str(j, "type", c->entities[i].type);
        json_out_member_str(j, "text", c->entities[i].text);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

static void put_understood(struct json_out *j, const struct ask_plan *p)
{
    json_out_member_array(j, "clauses");
    for (uint32_t i = 0; i < p->n_clauses; i++)
        put_clause(j, &p->clauses[i]);
    json_out_array_end(j);
    json_out_member_array(j, "contexts");
    for (uint32_t i = 0; i < p->n_contexts; i++)
        json_out_str(j, p->contexts[i]);
    json_out_array_end(j);
}

static void put_steps(struct json_out *j, const struct ask_plan_answer *a)
{
    json_out_member_array(j, "steps");
    for (uint32_t i = 0; i < a->n_steps; i++) {
        const struct ask_plan_step *s = &a->steps[i];
        json_out_object(j);
        json_out_member_str(j, "step", s->name);
        if (s->model) {
            json_out_member_str(j, "model", s->model);
            json_out_member_uint(j, "tokens", s->tokens);
        }
        json_out_member_num(j, "start_ms", (double)s->start_ns / 1e6);
        json_out_member_num(j, "ms", (double)s->ns / 1e6);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_member_num(j, "total_ms", (double)a->total_ns / 1e6);
}

void ask_plan_json(struct json_out *j, const struct ask_plan *plan)
{
    put_actions(j, plan);
    put_understood(j, plan);
}

void ask_plan_answer_json(struct json_out *j, const struct ask_plan_answer *a, bool explain)
{
    put_actions(j, a->plan);
    json_out_member_strn(j, "reply", a->reply, a->reply_bytes);
    if (!explain)
        return;
    put_understood(j, a->plan);
    put_steps(j, a);
}

void ask_plan_explain(struct buf *b, const struct ask_plan *p)
{
    for (uint32_t i = 0; i < p->n_clauses; i++) {
        const struct ask_plan_clause *c = &p->clauses[i];
        buf_printf(b, "\n\"%s\"\n  act     %s %.2f\n  intent  %s %.2f\n  router  %s %.2f (%s)\n",
                   c->text, c->act, (double)c->act_p, c->intent, (double)c->intent_p, c->router,
                   (double)c->router_p, c->flow);
        for (uint32_t k = 0; k < c->n_entities; k++)
            buf_printf(b, "  %s  %s\n", c->entities[k].type, c->entities[k].text);
    }
    for (uint32_t i = 0; i < p->n_contexts; i++)
        buf_printf(b, "%scontext \"%s\"\n", i ? "" : "\n", p->contexts[i]);
}

/* ---- copying ---- */

struct copying {
    struct arena *arena;
    ask_plan_editor edit; /* NULL: texts stay as they are */
    void *ctx;
    bool failed; /* an edit */
};

static const char *copy_text(struct copying *c, const char *s)
{
    const char *edited = s && c->edit ? c->edit(c->ctx, s) : s;
    c->failed |= s && !edited;
    return edited ? arena_copy(c->arena, edited, strlen(edited) + 1) : NULL;
}

static const char *const *copy_texts(struct copying *c, const char *const *from, uint32_t n)
{
    const char **to = arena_zalloc_n(c->arena, n, sizeof(*to));
    for (uint32_t i = 0; to && i < n; i++)
        to[i] = copy_text(c, from[i]);
    return to;
}

static void copy_fields(struct copying *c, struct ask_plan_action *to,
                        const struct ask_plan_action *from)
{
    to->name = copy_text(c, from->name);
    to->n_fields = from->n_fields;
    for (uint32_t i = 0; i < from->n_fields; i++) {
        const struct ask_plan_field *f = &from->fields[i];
        to->fields[i] = (struct ask_plan_field){.key = copy_text(c, f->key),
                                                .text = copy_text(c, f->text),
                                                .number = f->number,
                                                .items = copy_texts(c, f->items, f->n_items),
                                                .n_items = f->n_items};
    }
}

static void copy_action(struct copying *c, struct ask_plan_action *to,
                        const struct ask_plan_action *from)
{
    copy_fields(c, to, from);
    to->due_s = from->due_s;
    to->due_counted = from->due_counted;
    to->due_told = from->due_told;
    to->again = from->again;
    to->again.words = copy_text(c, from->again.words);
}

struct ask_plan_action *ask_plan_action_copy(const struct ask_plan_action *o, struct arena *a)
{
    struct copying c = {.arena = a};
    struct ask_plan_action *to = arena_zalloc(a, sizeof(*to));
    if (to)
        copy_fields(&c, to, o);
    return a->rc < 0 ? NULL : to;
}

static void copy_clause(struct copying *c, struct ask_plan_clause *to,
                        const struct ask_plan_clause *from)
{
    struct ask_plan_entity *entities =
        arena_zalloc_n(c->arena, from->n_entities, sizeof(*entities));
    for (uint32_t i = 0; entities && i < from->n_entities; i++)
        entities[i] = (struct ask_plan_entity){copy_text(c, from->entities[i].type),
                                               copy_text(c, from->entities[i].text)};
    *to = (struct ask_plan_clause){.text = copy_text(c, from->text),
                                   .intent = copy_text(c, from->intent),
                                   .router = copy_text(c, from->router),
                                   .flow = copy_text(c, from->flow),
                                   .intent_p = from->intent_p,
                                   .router_p = from->router_p,
                                   .act = copy_text(c, from->act),
                                   .act_p = from->act_p,
                                   .entities = entities,
                                   .n_entities = from->n_entities};
}

static const struct ask_plan *copy_plan(struct copying *c, const struct ask_plan *plan)
{
    struct ask_plan *to = arena_zalloc(c->arena, sizeof(*to));
    struct ask_plan_action *actions = arena_zalloc_n(c->arena, plan->n_actions, sizeof(*actions));
    const struct ask_plan_action **pointers =
        arena_zalloc_n(c->arena, plan->n_actions, sizeof(*pointers));
    struct ask_plan_clause *clauses = arena_zalloc_n(c->arena, plan->n_clauses, sizeof(*clauses));
    for (uint32_t i = 0; c->arena->rc == 0 && i < plan->n_actions; i++) {
        copy_action(c, &actions[i], plan->actions[i]);
        pointers[i] = &actions[i];
    }
    for (uint32_t i = 0; c->arena->rc == 0 && i < plan->n_clauses; i++)
        copy_clause(c, &clauses[i], &plan->clauses[i]);
    if (c->arena->rc < 0)
        return NULL;
    *to = (struct ask_plan){.actions = pointers,
                            .n_actions = plan->n_actions,
                            .clauses = clauses,
                            .n_clauses = plan->n_clauses,
                            .contexts = copy_texts(c, plan->contexts, plan->n_contexts),
                            .n_contexts = plan->n_contexts,
                            .open = plan->open};
    return c->arena->rc < 0 || c->failed ? NULL : to;
}

const struct ask_plan *ask_plan_copy(const struct ask_plan *plan, struct arena *a)
{
    struct copying c = {.arena = a};
    return copy_plan(&c, plan);
}

const struct ask_plan *ask_plan_edit(const struct ask_plan *plan, struct arena *a,
                                     ask_plan_editor edit, void *ctx)
{
    struct copying c = {.arena = a, .edit = edit, .ctx = ctx};
    return copy_plan(&c, plan);
}
