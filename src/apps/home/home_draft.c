/* home_draft.c - see home_draft.h. */
#include "apps/home/home_draft.h"

#include <string.h>

/* Far below the context of any reply model, whatever its tokenizer: the answer must not fail after
 * the actions have happened. */
#define MAX_CONTEXT_BYTES 600u

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

/* Text that is too long for the reply model is said in plain words. */
static void say_long(struct arena *a, struct home_draft_context *c)
{
    size_t n = strlen(c->text), end = MAX_CONTEXT_BYTES;
    if (n <= MAX_CONTEXT_BYTES)
        return;
    if (*c->say) {
        c->text = NULL;
        return;
    }
    while (end > 1 && c->text[end] != ' ')
        end--;
    if (end == 1) /* one long word: between characters */
        for (end = MAX_CONTEXT_BYTES; end > 1 && ((unsigned char)c->text[end] & 0xc0) == 0x80;)
            end--;
    c->text = arena_printf(a, "%.*s", (int)end, c->text);
}

/* Does the line report a deed? Deeds may repeat: "on, off, and on again". */
static bool tells_deed(const struct home_draft *d, const struct home_draft_line *line)
{
    const struct ask_plan_action *o = line->action > 0 ? d->actions[line->action - 1] : NULL;
    for (uint32_t i = 0; o && i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, "result") == 0)
            return strcmp(o->fields[i].text, "done") == 0 ||
                   strcmp(o->fields[i].text, "scheduled") == 0;
    return false;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

/* Did an earlier line say the same? */
static bool is_said(const struct home_draft *d, uint32_t i)
{
    const struct home_draft_line *line = &d->lines[i];
    for (uint32_t k = 0; k < i && !tells_deed(d, line); k++)
        if (same_text(d->lines[k].text, line->text) &&
            (line->text || same_text(d->lines[k].say, line->say)))
            return true;
    return false;
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
        if (is_said(d, i))
            continue;
        if (!line->text) {
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
    for (uint32_t i = 0; i < n; i++)
        if (c[i].text)
            say_long(a, &c[i]);
    return a->rc < 0 ? 0 : n;
}
