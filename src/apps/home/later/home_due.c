/* home_due.c - see home_due.h. */
#include "apps/home/later/home_due.h"

#include <stdlib.h>
#include <string.h>

#include "apps/home/home_values.h"
#include "apps/home/later/sun.h"

#define DAY_S 86400
#define MAX_CLOCK 4u  /* words: "half past six pm" */
#define MAX_PERIOD 5u /* words: "two and a half hours" */

struct day {
    struct tm tm;       /* calendar date */
    bool given, today;  /* given explicitly; it is today */
    bool weekday;       /* it repeats weekly */
    const char *part;   /* "HH:MM" of the part of the day; NULL: none */
    const char *unread; /* unknown words; NULL: none */
};

/* It cannot be done then; text: what is not possible. */
static struct home_due denied(struct arena *a, const struct home_table *t, enum home_part why,
                              const char *text)
{
    return (struct home_due){.why = home_table_part(a, t, why, text, NULL)};
}

static int number_of(const char *digits)
{
    return (int)strtol(digits, NULL, 10);
}

/* Noon, so that no daylight-saving change moves the date. */
static struct tm days_later(const struct tm *now, int days)
{
    struct tm d = *now;
    d.tm_mday += days;
    d.tm_hour = 12;
    d.tm_min = d.tm_sec = 0;
    d.tm_isdst = -1;
    (void)mktime(&d);
    return d;
}

static const struct home_pair *phrase_at(const struct home_pairs *p, const struct home_words *w,
                                         uint32_t at, uint32_t *n)
{
    const struct home_pair *best = NULL;
    *n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t len = home_words_phrase(w, at, p->p[i].from);
        if (len > *n) {
            *n = len;
            best = &p->p[i];
        }
    }
    return best;
}

/* The next date with that day of a month; month -1: any month. */
static bool next_date(const struct tm *now, int month, int day, struct tm *out)
{
    for (int ahead = 0; ahead <= (month < 0 ? 12 : 24); ahead++) {
        struct tm d = *now;
        d.tm_mon += ahead;
        d.tm_mday = day;
        d.tm_hour = 12;
        d.tm_min = d.tm_sec = 0;
        d.tm_isdst = -1;
        int wanted = (now->tm_mon + ahead) % 12;
        if (mktime(&d) == (time_t)-1 || d.tm_mon != wanted || (month >= 0 && d.tm_mon != month))
            continue;
        bool past = d.tm_year == now->tm_year && d.tm_yday < now->tm_yday;
        if (!past) {
            *out = d;
            return true;
        }
    }
    return false;
}

static void read_date(struct arena *a, const struct home_table *t, const char *text,
                      const struct tm *now, struct day *out)
{
    struct home_words w = home_words_split(a, home_words_lower(a, text));
    int month = -1, number = -1;
    for (uint32_t i = 0, n; i < w.n; i += n) {
        uint32_t name;
        const struct home_pair *p = phrase_at(&t->later.days, &w, i, &n);
        if (p) {
            out->tm = days_later(now, (int)p->number);
            out->given = true;
            out->today = p->number == 0;
            const struct home_pair *part = phrase_at(&t->later.parts, &w, i, &name);
            if (part && name == n) /* "tonight" is a day and a part of it */
                out->part = part->to;
            continue;
        }
        if ((p = phrase_at(&t->later.parts, &w, i, &n))) {
            out->part = p->to;
            continue;
        }
        n = 1;
        if (strmap_get(&t->date_names, w.w[i], strlen(w.w[i]), &name) && name < 7) {
            int ahead = ((int)name + 1 - now->tm_wday + 7) % 7;
            out->tm = days_later(now, ahead);
            out->given = out->weekday = true;
            out->today = ahead == 0;
        } else if (strmap_get(&t->date_names, w.w[i], strlen(w.w[i]), &name)) {
            month = (int)name - 7;
        } else if (w.w[i][0] >= '0' && w.w[i][0] <= '9' && strlen(w.w[i]) <= 2) {
            number = number_of(w.w[i]);
        } else if (!home_table_lists(&t->later.skip, w.w[i])) {
            out->unread = text;
        }
    }
    if (number > 0 && !out->given) {
        out->given = next_date(now, month, number, &out->tm);
        out->today = out->tm.tm_yday == now->tm_yday && out->tm.tm_year == now->tm_year;
    }
    if (!out->given && !out->part)
        out->unread = text;
}

enum home_due_date home_due_date(struct arena *a, const struct home_table *t, const char *text,
                                 const struct tm *now)
{
    struct day day = {.today = true};
    struct home_words w = home_words_split(a, home_words_lower(a, text));
    for (uint32_t i = 0; i < w.n; i++)
        if (home_table_phrase(&t->later.past, &w, i) > 0)
            return HOME_DUE_PAST;
    read_date(a, t, home_values_date(a, t, text).text, now, &day);
    return day.unread ? HOME_DUE_UNREAD : HOME_DUE_READ;
}

static int64_t at_clock(const struct tm *day, int hour, int minute)
{
    struct tm d = *day;
    d.tm_hour = hour;
    d.tm_min = minute;
    d.tm_sec = 0;
    d.tm_isdst = -1;
    return (int64_t)mktime(&d);
}

/* The intended hour on a day; -1: it has passed. */
static int hour_meant(const struct home_due_said *s, const struct day *day, int hour, int minute,
                      time_t now)
{
    bool both = s->either && hour >= 1 && hour <= 12;
    int first = both && !s->morning ? hour % 12 : hour, second = both ? hour % 12 + 12 : -1;
    if (both && day->part)
        return number_of(day->part) >= 12 ? second : hour % 12;
    if (s->morning)
        second = -1;
    if (!day->today)
        return both && second > 0 && hour <= 5 ? second : hour;
    if (at_clock(&day->tm, first, minute) > (int64_t)now)
        return first;
    return second > 0 && at_clock(&day->tm, second, minute) > (int64_t)now ? second : -1;
}

/* "sunset" and the like; SUN_NONE: not such a time. */
static enum sun_event sun_of(struct arena *a, const struct home_table *t, const char *time)
{
    struct home_words w = home_words_split(a, home_words_lower(a, time));
    for (uint32_t i = 0, n; i < w.n; i++) {
        const struct home_pair *p = phrase_at(&t->later.sun, &w, i, &n);
        if (p)
            return (enum sun_event)p->number;
    }
    return SUN_NONE;
}

uint32_t home_due_clock_at(struct arena *a, const struct home_table *t, const struct home_words *w,
                           uint32_t at)
{
    uint32_t most = w->n - at < MAX_CLOCK ? w->n - at : MAX_CLOCK, n;
    for (n = most; n > 0; n--) {
        struct home_value v = home_values_clock(a, t, home_words_join(a, w, at, at + n));
        if (v.understood && !v.wrong)
            return n;
    }
    n = at < w->n && home_table_lists(&t->articles, w->w[at]); /* "at the sunset" */
    return n < most && phrase_at(&t->later.sun, w, at + n, &most) ? n + most : 0;
}

/* Once, at sunrise or sunset of a day, or of the next day if it has passed. */
static struct home_due by_sun(struct arena *a, const struct home_table *t,
                              const struct home_due_said *s, struct day *day, enum sun_event event,
                              time_t now)
{
    int64_t at;
    if (!s->place)
        return denied(a, t, HOME_PART_NO_PLACE, s->time);
    if (!sun_time(&day->tm, s->place[0], s->place[1], event, &at))
        return denied(a, t, HOME_PART_NO_SUN, s->time);
    if (at <= (int64_t)now && day->given && !day->weekday)
        return denied(a, t, HOME_PART_OVER, NULL);
    if (at <= (int64_t)now) {
        day->tm = days_later(&day->tm, day->weekday ? 7 : 1);
        (void)sun_time(&day->tm, s->place[0], s->place[1], event, &at);
    }
    return (struct home_due){.at_s = at};
}

static struct home_due on_day(struct arena *a, const struct home_table *t,
                              const struct home_due_said *s, struct day *day, time_t now)
{
    const char *clock = s->time ? s->time : day->part;
    enum sun_event sun = s->time ? sun_of(a, t, s->time) : SUN_NONE;
    uint32_t n;
    if (sun != SUN_NONE)
        return by_sun(a, t, s, day, sun, now);
    if (s->time && !home_table_is_clock(clock)) {
        struct home_words w = home_words_split(a, clock);
        const struct home_pair *p = phrase_at(&t->later.parts, &w, 0, &n);
        if (!p || n != w.n)
            return denied(a, t, HOME_PART_NOT_KNOWN, clock);
        clock = p->to;
    }
    if (!clock)
        return (struct home_due){.missing_time = true};
    int hour = number_of(clock), minute = number_of(clock + 3);
    int meant = hour_meant(s, day, hour, minute, now);
    if (meant < 0 && day->given && !day->weekday)
        return denied(a, t, HOME_PART_OVER, NULL);
    if (meant < 0) { /* the next such day; at night, seven is the first seven after midnight */
        day->tm = days_later(&day->tm, day->weekday ? 7 : 1);
        day->today = false;
        bool both = s->either && !s->morning && hour <= 12 && !day->weekday;
        meant = both ? hour % 12 : hour_meant(s, day, hour, minute, now);
    }
    return (struct home_due){.at_s = at_clock(&day->tm, meant, minute)};
}

/* More weekdays after the first: "every monday and thursday". */
static uint32_t more_days(const struct home_table *t, const struct home_words *w, uint32_t at,
                          uint32_t *days)
{
    uint32_t to = at, name;
    for (uint32_t i = at; i < w->n; i++) {
        const char *word = w->w[i];
        if (home_table_lists(&t->join, word))
            continue;
        if (!strmap_get(&t->date_names, word, strlen(word), &name) || name >= 7)
            break;
        *days |= 1u << name;
        to = i + 1;
    }
    return to;
}

/* "two hours" of "every two hours": the seconds and the words; 0: not a duration. */
static int64_t period_at(struct arena *a, const struct home_table *t, const struct home_words *w,
                         uint32_t at, uint32_t *n)
{
    double best = 0.0;
    uint32_t most = w->n - at < MAX_PERIOD ? w->n - at : MAX_PERIOD;
    *n = 0;
    for (uint32_t k = 1; k <= most; k++) { /* as long as more words make it longer */
        const bool other = k > 1 && home_table_lists(&t->later.other, w->w[at]);
        const char *text = home_words_join(a, w, at + other, at + k);
        text = other ? arena_printf(a, "2 %s", text) : text; /* "every other day" */
        struct home_value v = home_values_duration(a, t, text);
        if (!v.understood && k == 1) /* "every hour" */
            v = home_values_duration(a, t, arena_printf(a, "1 %s", text));
        if (v.understood && v.number > best && v.number <= (double)HOME_DUE_MAX_S) {
            best = v.number;
            *n = k;
        }
    }
    return (int64_t)best;
}

static struct home_due_every every_at(struct arena *a, const struct home_table *t,
                                      const struct home_words *w, uint32_t at)
{
    struct home_due_every e = {.from = at};
    const struct home_pair *p = phrase_at(&t->later.every, w, at, &e.n);
    uint32_t n = 0;
    bool each = home_table_lists(&t->later.each, w->w[at]);
    if ((!p || p->number == 0) && each && at + 1 < w->n)
        e.period_s = period_at(a, t, w, at + 1, &n);
    if (e.period_s > 0)
        e.n = n + 1;
    else if (p)
        e.days = (uint32_t)p->number;
    if (e.n == 0)
        return e;
    bool weekday = e.days != 0 && (e.days & (e.days - 1)) == 0;
    if (weekday)
        e.n = more_days(t, w, at + e.n, &e.days) - at;
    e.words = home_words_join(a, w, at, at + e.n);
    return e;
}

struct home_due_every home_due_every(struct arena *a, const struct home_table *t,
                                     const struct home_words *w)
{
    struct home_due_every best = {0};
    for (uint32_t i = 0; i < w->n; i++) {
        struct home_due_every e = every_at(a, t, w, i);
        if (e.words && e.n > best.n)
            best = e;
    }
    return best;
}

int64_t home_due_next(const struct ask_plan_again *g, int64_t after_s)
{
    struct tm from;
    time_t after = (time_t)after_s;
    localtime_r(&after, &from);
    if (g->period_s > 0 && after_s < g->first_s)
        return g->first_s;
    if (g->period_s > 0)
        return g->first_s + ((after_s - g->first_s) / g->period_s + 1) * g->period_s;
    for (int ahead = 0; g->days != 0 && ahead <= 366; ahead++) {
        struct tm day = days_later(&from, ahead);
        int64_t at;
        if (!(g->days >> ((day.tm_wday + 6) % 7) & 1))
            continue;
        if (g->sun == SUN_NONE)
            at = at_clock(&day, (int)g->minute / 60, (int)g->minute % 60);
        else if (!sun_time(&day, g->latitude, g->longitude, (enum sun_event)g->sun, &at))
            continue;
        if (at > after_s)
            return at;
    }
    return 0;
}

/* "Every two hours": from now on. */
static struct home_due periodic(struct arena *a, const struct home_table *t,
                                const struct home_due_said *s, time_t now)
{
    struct ask_plan_again g = {
        .period_s = s->period_s, .first_s = (int64_t)now + s->period_s, .words = s->every};
    if (s->period_s < HOME_DUE_MIN_PERIOD_S)
        return denied(a, t, HOME_PART_OFTEN, NULL);
    if (s->time)
        return denied(a, t, HOME_PART_BEGIN, s->every);
    return (struct home_due){.at_s = g.first_s, .again = g};
}

/* "Every weekday at 7": the first time, and how it repeats. */
static struct home_due again_of(struct arena *a, const struct home_table *t,
                                const struct home_due_said *s, const struct tm *today, time_t now)
{
    struct day day = {.tm = days_later(today, 0)};
    struct ask_plan_again g = {.days = s->days, .words = s->every};
    if (s->period_s > 0 && s->in_s < 0)
        return periodic(a, t, s, now);
    if (s->days == 0 || s->in_s >= 0)
        return denied(a, t, HOME_PART_REPEAT, s->every);
    if (s->date)
        read_date(a, t, s->date, today, &day); /* "every evening": the part of the day counts */
    const char *clock = s->time ? s->time : day.part;
    g.sun = s->time ? sun_of(a, t, s->time) : SUN_NONE;
    if (g.sun != SUN_NONE && !s->place)
        return denied(a, t, HOME_PART_NO_PLACE, s->time);
    if (!clock)
        return (struct home_due){.missing_time = true};
    if (g.sun != SUN_NONE) {
        g.latitude = s->place[0];
        g.longitude = s->place[1];
    } else if (!home_table_is_clock(clock)) {
        return denied(a, t, HOME_PART_NOT_KNOWN, clock);
    } else {
        day.today = false;
        int minute = number_of(clock + 3),
            hour = hour_meant(s, &day, number_of(clock), minute, now);
        g.minute = (uint32_t)(60 * hour + minute);
    }
    struct home_due due = {.at_s = home_due_next(&g, (int64_t)now), .again = g};
    if (due.at_s == 0)
        due.why = home_table_part(a, t, HOME_PART_NO_SUN_THERE, s->time ? s->time : clock, NULL);
    return due;
}

struct home_due home_due_of(struct arena *a, const struct home_table *t,
                            const struct home_due_said *s, time_t now)
{
    struct tm tm;
    struct day day = {.today = true};
    struct home_due due;
    localtime_r(&now, &tm);
    day.tm = days_later(&tm, 0);
    if (s->every)
        return again_of(a, t, s, &tm, now);
    bool whole_days = s->in_s >= DAY_S && (int64_t)s->in_s % DAY_S == 0;
    if (s->in_s > (double)HOME_DUE_MAX_S)
        return denied(a, t, HOME_PART_FAR, NULL);
    if (s->in_s >= 0 && !(whole_days && s->time))
        return (struct home_due){.at_s = (int64_t)now + (int64_t)s->in_s, .counted = true};
    if (s->in_s >= 0) { /* "in 2 days at 7" */
        day.tm = days_later(&tm, (int)((int64_t)s->in_s / DAY_S));
        day.given = true;
        day.today = false;
    }
    if (s->date)
        read_date(a, t, s->date, &tm, &day);
    if (day.unread)
        return denied(a, t, HOME_PART_NOT_KNOWN, day.unread);
    if (!s->time && !s->date && s->in_s < 0)
        return (struct home_due){.missing_time = true};
    due = on_day(a, t, s, &day, now);
    if (due.at_s > (int64_t)now + HOME_DUE_MAX_S)
        return denied(a, t, HOME_PART_FAR, NULL);
    return due;
}

/* ---- in words ------------------------------------------------------------------------------- */

/* The table's word for a day this far ahead; NULL: none. */
static const char *day_word(const struct home_table *t, int ahead)
{
    for (uint32_t i = 0; i < t->later.days.n; i++)
        if ((int)t->later.days.p[i].number == ahead)
            return t->later.days.p[i].from;
    return NULL;
}

static bool same_day(const struct tm *a, const struct tm *b)
{
    return a->tm_yday == b->tm_yday && a->tm_year == b->tm_year;
}

const char *home_due_words(struct arena *a, const struct home_table *t, int64_t at_s, time_t now)
{
    struct tm at, today;
    time_t due = (time_t)at_s;
    localtime_r(&due, &at);
    localtime_r(&now, &today);
    struct tm next = days_later(&today, 1);
    int64_t ahead = at_s - (int64_t)now;
    const char *day = same_day(&at, &today)  ? day_word(t, 0)
                      : same_day(&at, &next) ? day_word(t, 1)
                                             : NULL;
    if (!day && ahead > 0 && ahead < 6 * (int64_t)DAY_S && t->weekdays.n == 7)
        day = t->weekdays.w[(at.tm_wday + 6) % 7];
    if (!day)
        day = arena_printf(a, "%d %s %d", at.tm_mday,
                           t->months.n == 12 ? t->months.w[at.tm_mon] : "", at.tm_year + 1900);
    return arena_printf(a, "%s, %02d:%02d", day, at.tm_hour, at.tm_min);
}

const char *home_due_left(struct arena *a, const struct home_table *t, int64_t left_s)
{
    static const int64_t sizes[] = {DAY_S, 3600, 60, 1};
    const char *out = "";
    uint32_t parts = 0;
    left_s = left_s < 0 ? 0 : left_s;
    for (uint32_t i = 0; i < 4 && parts < 2 && t->duration_unit; i++) {
        const struct home_duration_unit *u = t->duration_unit;
        while (u->seconds > 0 && (int64_t)u->seconds != sizes[i])
            u++;
        int64_t n = left_s / sizes[i];
        bool last = i == 3 && parts == 0;
        if (u->seconds == 0 || (n == 0 && !last))
            continue;
        left_s %= sizes[i];
        out = arena_printf(a, "%s%s%lld %s", out, *out ? " " : "", (long long)n,
                           n == 1 ? u->one : u->many);
        parts++;
    }
    return out;
}
