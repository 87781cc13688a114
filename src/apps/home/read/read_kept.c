/* read_kept.c - see read_kept.h. */
#include "apps/home/read/read_kept.h"

#include <string.h>

/* "@light.desk @light.bed" of the things, for the state of the conversation. */
static const char *ids_of(const struct read_work *r, const struct read_target *x)
{
    const char *text = "";
    if (x->class)
        return NULL;
    for (uint32_t i = 0; i < x->n && i < READ_PLAN_MAX_THINGS; i++)
        text = arena_printf(r->a, "%s @%s", text, x->things[i]->id);
    return text;
}

/* The act without its words: "set @fv1 pressure". */
static const char *head_of(const struct read_work *r, const struct read_plan_act *p,
                           const struct read_target *x)
{
    const char *text = p->verb, *ids = x ? ids_of(r, x) : NULL;
    if (p->word)
        text = arena_printf(r->a, "%s %s", text, p->word);
    if (ids)
        text = arena_printf(r->a, "%s%s", text, ids);
    else if (p->class)
        text = arena_printf(r->a, "%s%s %s", text, p->all ? " all" : "", p->class);
    for (uint32_t i = 0; !ids && i < p->areas.n; i++)
        if (p->areas.at[i] < r->lines->n_areas)
            text = arena_printf(r->a, "%s @%s", text, r->lines->areas[p->areas.at[i]]->id);
    if (!ids && (p->here || p->everywhere))
        text = arena_printf(r->a, "%s %s", text, p->here ? "here" : "everywhere");
    if (p->quantity)
        text = arena_printf(r->a, "%s %s", text, p->quantity);
    if (p->own)
        text = arena_printf(r->a, "%s q%u", text, p->own);
    return p->state ? arena_printf(r->a, "%s %s", text, p->state) : text;
}

/* The words of the act, for a question back: "to_value 19 degrees". */
static const char *words_kept(const struct read_work *r, const struct read_plan_act *p)
{
    const struct {
        const char *role;
        struct read_plan_span span;
    } spans[] = {{p->amount == READ_PLAN_BY ? "by_value" : "to_value", p->value},
                 {"at", p->at},
                 {"in", p->in},
                 {"for", p->lasts},
                 {"until", p->until},
                 {"every", p->every},
                 {"what", p->what},
                 {"dur", p->duration},
                 {"name", p->name}};
    const char *text = "";
    for (uint32_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        const bool when = strcmp(spans[i].role, "at") == 0; /* both parts as one */
        const char *words = when ? read_work_at(r, p) : read_work_said(r, spans[i].span);
        if (words)
            text = arena_printf(r->a, "%s%s %s\n", text, spans[i].role, words);
    }
    return text;
}

/* What the conversation is about now. */
void read_kept_remember(struct read_work *r, const struct read_doing *d,
                        const struct ask_plan_action *o)
{
    const char *ask = o ? ask_plan_text_of(o, "ask") : NULL;
    const struct home_slot *slot = ask ? home_table_slot(r->t, ask) : NULL;
    r->last_out = head_of(r, d->p, d->target);
    r->kept_out = words_kept(r, d->p);
    r->pending_out = "";
    if (!ask)
        return;
    if (d->target && d->target->result == READ_TARGET_ONE_OF) {
        r->last_out = head_of(r, d->p, &(struct read_target){0});
        r->pending_out = arena_printf(r->a, "ask_which%s", ids_of(r, d->target));
    } else {
        /* which thing is meant is said by a new sentence */
        const bool thing = read_is(ask, "device") || read_is(ask, "room") ||
                           read_is(ask, "machine") || read_is(ask, "person") ||
                           read_is(ask, "scene") || read_is(ask, "sensor");
        r->pending_out = thing                                   ? ""
                         : !slot || slot->type == HOME_SLOT_TEXT ? "ask_text"
                         : slot->type == HOME_SLOT_VALUE         ? "ask_value"
                                                                 : "ask_time";
    }
}

/* The last plan again with what the text adds: the answer to a question back. */
bool read_kept_answered(struct read_work *r, const struct read_plan_act *p, struct read_plan *out)
{
    const char *text = "";
    struct home_words head = home_words_split(r->a, r->state->last ? r->state->last : "");
    for (uint32_t i = 0; i < head.n; i++) {
        if (head.w[i][0] != '@') {
            text = arena_printf(r->a, "%s %s", text, head.w[i]);
            continue;
        }
        for (uint32_t k = 0; k < r->lines->n_things; k++)
            if (read_is(r->lines->things[k].thing->id, head.w[i] + 1))
                text = arena_printf(r->a, "%s t%u", text, k + 1);
        for (uint32_t k = 0; k < r->lines->n_areas; k++)
            if (read_is(r->lines->areas[k]->id, head.w[i] + 1))
                text = arena_printf(r->a, "%s a%u", text, k + 1);
    }
    if (!read_plan_of(out, *text ? text + 1 : "") || out->n != 1)
        return false;
    struct read_plan_act *x = &out->acts[0];
    if (p->things.n > 0)
        x->things = p->things;
    if (p->value.to > 0) {
        x->value = p->value;
        x->amount =
            read_is(x->verb, "up") || read_is(x->verb, "down") ? READ_PLAN_BY : READ_PLAN_TO;
    }
    if (p->at.to > 0) {
        x->at = p->at;
        x->also_at = p->also_at;
    }
    if (p->what.to > 0 && read_is(x->verb, "set") && x->value.to == 0) { /* "warm white" */
        x->value = p->what;
        x->amount = READ_PLAN_TO;
    } else if (p->what.to > 0) {
        x->what = p->what;
    }
    if (p->duration.to > 0)
        x->duration = p->duration;
    return true;
}

/* Puts the words that the last plan had behind those of the text. */
void read_kept_words_back(struct read_work *r, struct read_plan_act *x)
{
    const struct {
        const char *role;
        struct read_plan_span *span;
    } spans[] = {{"to_value", &x->value}, {"by_value", &x->value}, {"at", &x->at},
                 {"in", &x->in},          {"for", &x->lasts},      {"until", &x->until},
                 {"every", &x->every},    {"what", &x->what},      {"dur", &x->duration},
                 {"name", &x->name}};
    for (const char *p = r->kept; p && *p; p = strchr(p, '\n') + 1) {
        const char *end = strchr(p, '\n'), *space = strchr(p, ' ');
        if (!end || !space || space > end)
            return;
        for (uint32_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
            if (strlen(spans[i].role) != (size_t)(space - p) ||
                strncmp(spans[i].role, p, (size_t)(space - p)) != 0 || spans[i].span->to > 0)
                continue;
            struct home_words old = home_words_split(
                r->a, arena_printf(r->a, "%.*s", (int)(end - space - 1), space + 1));
            struct home_words all = {
                arena_zalloc_n(r->a, (size_t)r->lines->words.n + old.n + 1, sizeof(*all.w)), 0};
            for (uint32_t k = 0; all.w && k < r->lines->words.n; k++)
                all.w[all.n++] = r->lines->words.w[k];
            *spans[i].span = (struct read_plan_span){all.n, all.n + old.n};
            for (uint32_t k = 0; all.w && k < old.n; k++)
                all.w[all.n++] = old.w[k];
            r->lines->words = all;
            if (spans[i].span == &x->value)
                x->amount = strncmp(p, "by", 2) == 0 ? READ_PLAN_BY : READ_PLAN_TO;
        }
    }
}
