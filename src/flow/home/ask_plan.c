/* ask_plan.c - see ask_plan.h. */
#include "flow/home/ask_plan.h"

#include <string.h>

bool ask_plan_reserve(struct arena *a, struct ask_plan *p)
{
    if (p->n_lines < p->cap && p->n_actions < p->cap)
        return true;
    uint32_t cap = p->cap ? p->cap * 2 : 8;
    struct ask_plan_action **actions = arena_zalloc_n(a, cap, sizeof(*actions));
    struct ask_plan_line *lines = arena_zalloc_n(a, cap, sizeof(*lines));
    if (!actions || !lines)
        return false;
    if (p->cap) {
        memcpy(actions, p->actions, p->n_actions * sizeof(*actions));
        memcpy(lines, p->lines, p->n_lines * sizeof(*lines));
    }
    p->actions = actions;
    p->lines = lines;
    p->cap = cap;
    return true;
}

uint32_t ask_plan_contexts(struct arena *a, const struct ask_plan *p, uint32_t together,
                           const char ***out)
{
    const char **c = arena_zalloc_n(a, (size_t)p->n_lines + 1, sizeof(*c));
    uint32_t n = 0, joined = 0;
    *out = c;
    for (uint32_t i = 0; c && i < p->n_lines; i++) {
        const struct ask_plan_line *line = &p->lines[i];
        if (line->joins && joined > 0 && joined < together) {
            c[n - 1] = arena_printf(a, "%s\n%s", c[n - 1], line->text);
            joined++;
        } else {
            c[n++] = line->text;
            joined = line->joins;
        }
    }
    return a->rc < 0 ? 0 : n;
}

void ask_plan_action_json(struct json_out *j, const struct ask_plan_action *o)
{
    json_out_object(j);
    json_out_key(j, "action");
    json_out_str(j, o->name);
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
