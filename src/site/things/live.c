/* live.c - see live.h. */
#include "site/things/live.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "site/things/plant.h"

#define MAX_ALARMS 64u

struct question {
    struct arena *a;
    const char *what, *where;
    struct home_live_reading *reading;
    struct home_live_alarm *alarm;
    uint32_t n; /* sensors that fit */
    bool found;
};

/* Does the text have the word, whatever its case, delimited by anything but letters and digits? */
static bool has_word(const char *text, const char *word, size_t n)
{
    for (size_t i = 0; text[i]; i++) {
        if (i > 0 && isalnum((unsigned char)text[i - 1]))
            continue;
        if (strncasecmp(text + i, word, n) == 0 && !isalnum((unsigned char)text[i + n]))
            return true;
    }
    return false;
}

/* Are all words of `said` words of one of the texts? "motor 3" is "motor3", too. */
static bool fits(const char *said, const char *const *texts, size_t n_texts)
{
    size_t joined = 0;
    char run[64];
    for (const char *p = said; *p && joined + 1 < sizeof(run); p++)
        if (*p != ' ')
            run[joined++] = *p;
    for (size_t k = 0; joined > 0 && k < n_texts; k++)
        if (has_word(texts[k], run, joined))
            return true;
    for (const char *p = said; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        bool found = false;
        for (size_t k = 0; k < n_texts && !found; k++)
            found = has_word(texts[k], p, n);
        if (!found)
            return false;
        p += n;
    }
    return true;
}

static void find_reading(void *ctx, struct things *t)
{
    struct question *q = ctx;
    for (uint32_t i = 0; i < things_count(t); i++) {
        struct things_view v;
        things_view(t, i, &v);
        const char *const texts[] = {v.name, v.title, v.machine, v.machine_title};
        size_t n = sizeof(texts) / sizeof(texts[0]);
        if (!fits(q->what, texts, n) || !fits(q->where, texts, n) || q->n++ > 0)
            continue;
        q->found = !isnan(v.value);
        bool named = !*v.machine_title || strstr(v.title, v.machine_title);
        q->reading->title = named ? arena_printf(q->a, "%s", v.title)
                                  : arena_printf(q->a, "%s, %s", v.machine_title, v.title);
        q->reading->value = v.value;
        q->reading->unit = arena_printf(q->a, "%s", v.unit);
    }
}

static bool reading(struct home_live *h, struct arena *a, const char *what, const char *where,
                    struct home_live_reading *out)
{
    struct live_answers *l = (struct live_answers *)(void *)h;
    struct question q = {.a = a, .what = what, .where = where, .reading = out};
    plant_look(l->plant, find_reading, &q);
    return q.n == 1 && q.found && a->rc == 0;
}

/* A machine or sensor with these words; NULL: none. */
static const char *title_of(const struct things *t, const char *where)
{
    for (uint32_t i = 0; i < things_count(t); i++) {
        struct things_view v;
        things_view(t, i, &v);
        const char *const machine[] = {v.machine, v.machine_title}, *const own[] = {v.name,
                                                                                    v.title};
        if (*v.machine && fits(where, machine, 2))
            return v.machine_title;
        if (fits(where, own, 2))
            return v.title;
    }
    return NULL;
}

static bool is_of(const struct alarm_event *e, const char *where)
{
    const char *const machine[] = {e->machine, e->machine_title};
    if (fits(where, machine, 2))
        return true;
    for (uint32_t i = 0; i < e->n_channels; i++) {
        const char *const own[] = {e->channels[i].sensor, e->channels[i].title};
        if (fits(where, own, 2))
            return true;
    }
    return false;
}

static void find_alarm(void *ctx, struct things *t)
{
    struct question *q = ctx;
    const char *title = *q->where ? title_of(t, q->where) : "";
    struct alarm_event *list = arena_zalloc_n(q->a, MAX_ALARMS, sizeof(*list));
    if (!title || !list)
        return;
    uint32_t n = things_alarms(t, list, MAX_ALARMS, 0, !*q->where);
    q->found = true;
    q->alarm->title = arena_printf(q->a, "%s", title);
    for (uint32_t i = 0; i < n && i < MAX_ALARMS && !q->alarm->text; i++)
        if (!*q->where || is_of(&list[i], q->where)) {
            q->alarm->text = arena_printf(q->a, "%s", list[i].text);
            q->alarm->over = list[i].cleared_ms != 0;
        }
}

static bool alarm(struct home_live *h, struct arena *a, const char *where,
                  struct home_live_alarm *out)
{
    struct live_answers *l = (struct live_answers *)(void *)h;
    struct question q = {.a = a, .where = where, .alarm = out};
    *out = (struct home_live_alarm){0};
    plant_look(l->plant, find_alarm, &q);
    return q.found && a->rc == 0;
}

void live_init(struct live_answers *l, struct plant *plant)
{
    static const struct home_live_ops ops = {reading, alarm};
    *l = (struct live_answers){.home.ops = &ops, .plant = plant};
}
