/* read_when.c - see read_when.h. */
#include "apps/home/read/read_when.h"

#include "apps/home/home_values.h"

/* A slot of the action, or a row of "when", by its type. */
static bool fill_when(const struct read_work *r, const struct home_action *action,
                      struct home_fill *s, enum home_slot_type type, bool later, const char *text)
{
    for (uint32_t i = 0; i < action->n_slots; i++)
        if (action->slots[i]->type == type && (!later || type != HOME_SLOT_DURATION)) {
            home_fill_set(s, home_fill_own(action->slots[i]), text);
            return true;
        }
    for (uint32_t i = 0; action->can_wait && i < r->t->n_when; i++) {
        const struct home_when *w = &r->t->when[i];
        if (w->slot->type == type && w->later == later) {
            home_fill_set(s, (struct home_place){w->slot, w}, text);
            return true;
        }
    }
    return false;
}

/* "tomorrow at 7" is a time and a date; words in front of either say nothing. */
static bool fill_at(const struct read_work *r, const struct home_action *action,
                    struct home_fill *s, const char *text)
{
    struct home_words w = home_words_split(r->a, text);
    struct home_words low = home_words_plain_all(r->a, &w);
    uint32_t at = 0, n = 0;
    for (uint32_t i = 0; i < low.n && n == 0; i++)
        if ((n = home_due_clock_at(r->a, r->t, &low, i)) > 0)
            at = i;
    if (n > 0) { /* "half past seven in the evening" */
        const uint32_t am = home_table_phrase(&r->t->time_am, &low, at + n),
                       pm = home_table_phrase(&r->t->time_pm, &low, at + n);
        n += am > pm ? am : pm;
    }
    const char *date = "";
    for (uint32_t i = 0; i < low.n; i++) {
        const bool clock = i >= at && i < at + n;
        const bool front = *date == '\0' && (home_table_lists(&r->t->front, low.w[i]) ||
                                             home_table_lists(&r->t->date_articles, low.w[i]));
        const bool behind = i + 1 == low.n && home_table_lists(&r->t->front, low.w[i]);
        if (!clock && !front && !behind &&
            !(i + 1 == at && home_table_lists(&r->t->front, low.w[i])))
            date = arena_printf(r->a, "%s%s%s", date, *date ? " " : "", w.w[i]);
    }
    bool ok = true;
    if (n == 0 && low.n == 1 && *low.w[0] >= '0' && *low.w[0] <= '9') { /* "25:00" */
        n = 1;
        date = "";
    }
    if (n > 0)
        ok = fill_when(r, action, s, HOME_SLOT_TIME, true, home_words_join(r->a, &w, at, at + n));
    if (n > 0 && *date && (action->can_wait || action->rings != HOME_LATER_ACTION) &&
        home_due_date(r->a, r->t, date, r->now) == HOME_DUE_UNREAD)
        return false; /* "eight hundred am": half of a time is no time */
    if (*date)
        ok = fill_when(r, action, s, HOME_SLOT_DATE, true,
                       home_words_trim_end(r->a, date, HOME_WORDS_CLOSING)) &&
             ok;
    return ok && (n > 0 || *date);
}

/* "until 7": how long that is. */
static const char *time_until(const struct read_work *r, const char *text)
{
    struct home_words w = home_words_split(r->a, text);
    struct home_words low = home_words_plain_all(r->a, &w);
    struct home_due_said due = {.in_s = -1.0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < low.n && n == 0; i++)
        if ((n = home_due_clock_at(r->a, r->t, &low, i)) > 0) {
            struct home_value v =
                home_values_clock(r->a, r->t, home_words_join(r->a, &low, i, i + n));
            due.time = v.text;
            due.either = v.either;
        }
    struct tm tm = *r->now;
    const time_t now = mktime(&tm);
    const struct home_due at = home_due_of(r->a, r->t, &due, now);
    return n > 0 && at.at_s > now ? home_due_left(r->a, r->t, at.at_s - now) : NULL;
}

/* The times of an act; NULL: all of them have a place, else the words that have none. */
const char *read_when_fill(const struct read_work *r, const struct home_action *action,
                           struct home_fill *s, const struct read_plan_act *p)
{
    const char *text, *left;
    if ((text = read_work_at(r, p)) && !fill_at(r, action, s, text))
        return text;
    if ((text = read_work_said(r, p->in)) &&
        !fill_when(r, action, s, HOME_SLOT_DURATION, true, text))
        return text;
    if ((text = read_work_said(r, p->lasts)) &&
        !fill_when(r, action, s, HOME_SLOT_DURATION, false, text))
        return text;
    if ((text = read_work_said(r, p->until)) &&
        (!(left = time_until(r, text)) ||
         !fill_when(r, action, s, HOME_SLOT_DURATION, false, left)))
        return text;
    if ((text = read_work_said(r, p->every)) &&
        (!home_due_every(r->a, r->t, read_work_words(r, text)).words ||
         (!action->can_wait && action->rings == HOME_LATER_ACTION)))
        return text;
    return NULL;
}
