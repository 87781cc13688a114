/* home_draft.c - see home_draft.h. */
#include "flow/home/home_draft.h"

#include <string.h>

bool home_draft_reserve(struct arena *a, struct home_draft *d)
{
    if (d->n_lines < d->cap && d->n_actions < d->cap)
        return true;
    uint32_t cap = d->cap ? d->cap * 2 : 8;
    const struct ask_plan_action **actions = arena_zalloc_n(a, cap, sizeof(*actions));
    struct home_draft_line *lines = arena_zalloc_n(a, cap, sizeof(*lines));
    if (!actions || !lines)
        return false;
    if (d->cap) {
        memcpy(actions, d->actions, d->n_actions * sizeof(*actions));
        memcpy(lines, d->lines, d->n_lines * sizeof(*lines));
    }
    d->actions = actions;
    d->lines = lines;
    d->cap = cap;
    return true;
}

uint32_t home_draft_contexts(struct arena *a, const struct home_draft *d, uint32_t together,
                             const char ***out)
{
    const char **c = arena_zalloc_n(a, (size_t)d->n_lines + 1, sizeof(*c));
    uint32_t n = 0, joined = 0;
    *out = c;
    for (uint32_t i = 0; c && i < d->n_lines; i++) {
        const struct home_draft_line *line = &d->lines[i];
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
