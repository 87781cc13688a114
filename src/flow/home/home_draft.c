/* home_draft.c - see home_draft.h. */
#include "flow/home/home_draft.h"

#include <string.h>

bool home_draft_reserve(struct arena *a, struct home_draft *d)
{
    if (d->n_lines < d->cap && d->n_actions < d->cap && d->n_held < d->cap)
        return true;
    uint32_t cap = d->cap ? d->cap * 2 : 8;
    const struct ask_plan_action **actions = arena_zalloc_n(a, cap, sizeof(*actions));
    struct home_draft_line *lines = arena_zalloc_n(a, cap, sizeof(*lines));
    struct home_draft_held *held = arena_zalloc_n(a, cap, sizeof(*held));
    if (!actions || !lines || !held)
        return false;
    if (d->cap) {
        memcpy(actions, d->actions, d->n_actions * sizeof(*actions));
        memcpy(lines, d->lines, d->n_lines * sizeof(*lines));
        memcpy(held, d->held, d->n_held * sizeof(*held));
    }
    d->held = held;
    d->actions = actions;
    d->lines = lines;
    d->cap = cap;
    return true;
}

uint32_t home_draft_contexts(struct arena *a, const struct home_draft *d, uint32_t together,
                             struct home_draft_context **out)
{
    struct home_draft_context *c = arena_zalloc_n(a, (size_t)d->n_lines + 1, sizeof(*c));
    uint32_t n = 0, joined = 0;
    *out = c;
    for (uint32_t i = 0; c && i < d->n_lines; i++) {
        const struct home_draft_line *line = &d->lines[i];
        const char *say = line->say ? line->say : "";
        if (!line->text) {
            if (n == 0 || c[n - 1].text || strcmp(c[n - 1].say, say) != 0)
                c[n++] = (struct home_draft_context){NULL, say};
            joined = 0;
        } else if (line->joins && joined > 0 && joined < together) {
            c[n - 1].text = arena_printf(a, "%s\n%s", c[n - 1].text, line->text);
            c[n - 1].say = *c[n - 1].say && *say ? arena_printf(a, "%s %s", c[n - 1].say, say) : "";
            joined++;
        } else {
            c[n++] = (struct home_draft_context){line->text, say};
            joined = line->joins;
        }
    }
    return a->rc < 0 ? 0 : n;
}
