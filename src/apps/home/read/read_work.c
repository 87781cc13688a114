/* read_work.c - see read_work.h. */
#include "apps/home/read/read_work.h"

#include "apps/home/read/read_target.h"

const char *read_work_said(const struct read_work *r, struct read_plan_span span)
{
    return read_target_words(r->a, r->lines, span);
}

const char *read_work_at(const struct read_work *r, const struct read_plan_act *p)
{
    const char *at = read_work_said(r, p->at), *also = read_work_said(r, p->also_at);
    return at && also ? arena_printf(r->a, "%s %s", at, also) : at;
}

const struct home_words *read_work_words(const struct read_work *r, const char *text)
{
    struct home_words *w = arena_zalloc(r->a, sizeof(*w));
    static const struct home_words none;
    if (!w)
        return &none;
    struct home_words split = home_words_split(r->a, text ? text : "");
    *w = home_words_plain_all(r->a, &split);
    return w;
}

void read_work_say(struct read_work *r, enum home_say which, const char *text)
{
    if (!home_draft_reserve(r->a, r->draft))
        return;
    r->draft->lines[r->draft->n_lines++] = (struct home_draft_line){
        .say = home_template_fill(r->a, &r->t->say[which], home_act_text, (void *)(uintptr_t)text)};
}

struct home_act read_work_begin(const struct read_work *r, const struct home_action *action)
{
    struct home_act x = {.a = r->a,
                         .t = r->t,
                         .x = action,
                         .now = r->now,
                         .here = r->here,
                         .pairs = "",
                         .doubtful = r->p < r->t->plans.act_p};
    x.o = arena_zalloc(r->a, sizeof(*x.o));
    if (x.o)
        x.o->name = action->name;
    return x;
}

void read_work_add(struct read_work *r, struct home_act *x, struct home_draft_line line)
{
    if (!x->o || !home_draft_reserve(r->a, r->draft))
        return;
    r->draft->actions[r->draft->n_actions++] = x->o;
    if (!line.text && !line.say)
        line = home_act_said(r->a, &r->t->line_out_of_scope, r->text);
    line.action = r->draft->n_actions;
    r->draft->lines[r->draft->n_lines++] = line;
}

/* Asks about words that the action has no use for. */
void read_work_ask_about(struct read_work *r, const struct home_action *action, const char *text)
{
    struct home_act x = read_work_begin(r, action);
    if (!x.o)
        return;
    home_act_put_result(&x, "ask");
    home_act_put_text(&x, "rest", text);
    read_work_add(r, &x,
                  (struct home_draft_line){
                      .say = home_template_fill(r->a, &r->t->say[HOME_SAY_REST], home_act_text,
                                                (void *)(uintptr_t)text)});
}

/* Fills the first of the named slots that the action has; false: it has none of them. */
bool read_work_fill(const struct read_work *r, const struct home_action *action,
                    struct home_fill *s, const char *names, const char *text)
{
    struct home_words w = home_words_split(r->a, names);
    for (uint32_t i = 0; text && i < w.n; i++) {
        const struct home_slot *slot = home_table_slot(r->t, w.w[i]);
        if (!slot || !home_fill_has_slot(action, slot) || home_fill_get(s, home_fill_own(slot)))
            continue;
        home_fill_set(s, home_fill_own(slot), text);
        return true;
    }
    return false;
}
