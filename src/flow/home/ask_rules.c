/* ask_rules.c - see ask_rules.h. */
#include "flow/home/ask_rules.h"

#include <math.h>
#include <string.h>

#include "flow/home/ask_text.h"

#define CLOSING ".,;:!?)"

/* ---- what there is to do -------------------------------------------------------------------- */

static const struct verb {
    const char *name;
    const char *slots;  /* in the order of a context line */
    const char *needed; /* of those: what must be there */
    const char *reason; /* of queries: why there is no answer without a source; "": answered here */
} actions[] = {
    {"turn_on", "device room duration", "device", NULL},
    {"turn_off", "device room duration", "device", NULL},
    {"set_brightness", "device room value", "device value", NULL},
    {"set_color", "device room color", "device color", NULL},
    {"set_temperature", "device room value", "value", NULL},
    {"open", "device room value", "device", NULL},
    {"close", "device room value", "device", NULL},
    {"lock", "device room", "device", NULL},
    {"unlock", "device room", "device", NULL},
    {"start", "device room duration", "device", NULL},
    {"stop", "device room", "device", NULL},
    {"set_volume", "device room value", "value", NULL},
    {"mute", "device room", "device", NULL},
    {"set_mode", "device room mode", "device mode", NULL},
    {"activate_scene", "room scene", "scene", NULL},
    {"arm_alarm", "mode", "", NULL},
    {"disarm_alarm", "", "", NULL},
    {"set_timer", "duration name", "duration", NULL},
    {"cancel_timer", "duration", "", NULL},
    {"set_alarm", "time date", "time", NULL},
    {"cancel_alarm", "time", "", NULL},
    {"set_reminder", "task time date", "task", NULL},
    {"add_to_list", "item list", "item list", NULL},
    {"remove_from_list", "item list", "item list", NULL},
    {"play_media", "room media artist", "media", NULL},
    {"pause_media", "room", "", NULL},
    {"next_track", "", "", NULL},
    {"start_machine", "machine", "machine", NULL},
    {"stop_machine", "machine", "machine", NULL},
    {"set_machine", "machine sensor value", "machine value", NULL},
    {"report_fault", "machine", "machine", NULL},
    {"add_event", "event date time", "event date", NULL},
    {"send_message", "person message", "person message", NULL},
    {"call", "person", "person", NULL},
    {"announce", "room message", "message", NULL},
    {"find", "item", "item", NULL},
    {"get_state", "device room", "device", "no device is connected"},
    {"get_sensor", "sensor room", "sensor", "no sensor is connected"},
    {"machine_status", "machine", "machine", "no sensor is connected"},
    {"explain_alarm", "machine", "", "no sensor is connected"},
    {"get_weather", "place date", "", "no weather service is connected"},
    {"get_time", "place", "", "I only know the local time"},
    {"get_date", "", "", ""},
    {"query_timer", "", "", ""},
    {"query_list", "list", "list", ""},
    {"query_calendar", "date", "", ""},
    {"calculate", "expr", "expr", ""},
};

static const char can_wait[] =
    "turn_on turn_off set_brightness set_color set_temperature open close lock unlock start stop "
    "set_volume mute set_mode activate_scene arm_alarm disarm_alarm play_media pause_media "
    "start_machine stop_machine set_machine announce send_message call";

static const char known_devices[] =
    "light lamp spotlight strip chandelier fan heater tv television radio speaker machine maker "
    "kettle dishwasher oven purifier humidifier dehumidifier router printer projector computer "
    "monitor dryer blanket boiler pump sprinkler fountain outlet plug camera doorbell conditioner "
    "ac conditioning hood stereo console charger tree tub sauna microwave toaster cooker freezer "
    "fridge ventilation floor screen diffuser heating thermostat radiator heat control blind "
    "curtain shade shutter door gate window skylight awning drape garage roof lock safe shed "
    "entrance cabinet vacuum cleaner mower washer irrigation robot mop soundbar music headphone "
    "alarm intercom sound volume appliance switch bulb everything";

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

/* The i-th word of a list; NULL behind the last. */
static const char *nth(struct arena *a, const char *list, uint32_t i)
{
    for (const char *p = list; *p; i--) {
        size_t n = strcspn(p, " ");
        if (i == 0)
            return arena_printf(a, "%.*s", (int)n, p);
        p += n + (p[n] == ' ');
    }
    return NULL;
}

static bool has_word(struct arena *a, const struct ask_words *w, const char *list)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (ask_one_of(ask_plain(a, w->w[i]), list))
            return true;
    return false;
}

/* The words themselves settle on and off, lock and unlock: a wrong guess there would be the worst
 * one. */
static const char *settle(struct arena *a, const char *intent, const struct ask_words *w)
{
    static const struct {
        const char *yes, *no, *yes_words, *no_words;
    } pairs[] = {{"turn_on", "turn_off", "on", "off"},
                 {"lock", "unlock", "lock", "unlock"},
                 {"open", "close", "open", "close shut"},
                 {"start_machine", "stop_machine", "start", "stop"},
                 {"start", "stop", "start", "stop"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        bool is_no = strcmp(intent, pairs[i].no) == 0;
        if (!is_no && strcmp(intent, pairs[i].yes) != 0)
            continue;
        bool yes = has_word(a, w, pairs[i].yes_words), no = has_word(a, w, pairs[i].no_words);
        if (no && (is_no || !yes || i == 0))
            return pairs[i].no;
        return yes && !no ? pairs[i].yes : intent;
    }
    return intent;
}

/* ---- slots ---------------------------------------------------------------------------------- */

struct slots { /* of one action; a slot is a type with its text, an item several */
    struct {
        const char *type, *text;
    } s[ASK_MAX_FIELDS];
    uint32_t n;
    const char *items[ASK_MAX_ITEMS];
    uint32_t n_items;
};

static const char *slot_get(const struct slots *s, const char *type)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->s[i].type, type) == 0)
            return s->s[i].text;
    return NULL;
}

static void slot_set(struct slots *s, const char *type, const char *text)
{
    if (s->n == ASK_MAX_FIELDS)
        return; /* more than there are types of slots */
    s->s[s->n].type = type;
    s->s[s->n++].text = text;
    if (strcmp(type, "item") == 0) {
        s->items[0] = text;
        s->n_items = 1;
    }
}

static void slot_drop(struct slots *s, const char *type)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->s[i].type, type) == 0) {
            memmove(&s->s[i], &s->s[i + 1], (s->n - i - 1) * sizeof(s->s[0]));
            s->n--;
            return;
        }
}

struct piece { /* an entity with its words */
    const char *type, *text, *before;
    uint32_t from, to;
};

/* Pieces of one value that touch are one; the parts of a task or message are one from the first to
 * the last. */
static uint32_t merge(struct arena *a, const struct ask_clause *c, const struct ask_words *w,
                      struct piece *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_entities; i++) {
        const struct ask_entity *e = &c->entities[i];
        if (e->from >= e->to || e->to > w->n)
            continue;
        struct piece *last = n ? &out[n - 1] : NULL;
        if (last && strcmp(last->type, e->type) == 0 &&
            ((ask_one_of(e->type, "value duration time date") && last->to == e->from) ||
             ask_one_of(e->type, "task message")))
            last->to = e->to;
        else
            out[n++] = (struct piece){.type = e->type, .from = e->from, .to = e->to};
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i].text = ask_trim_end(a, ask_join(a, w, out[i].from, out[i].to), CLOSING);
        out[i].before = out[i].from ? ask_plain(a, w->w[out[i].from - 1]) : "";
    }
    return n;
}

/* Which slot of the verb a piece fills; NULL: none. */
static const char *slot_of(const struct verb *v, const struct piece *p)
{
    bool waits = ask_one_of(v->name, can_wait), after = ask_one_of(p->before, "in after");
    bool timer = strcmp(v->name, "set_timer") == 0;
    const char *t = timer && ask_one_of(p->type, "item task event media device") ? "name" : p->type;
    bool duration = strcmp(t, "duration") == 0, own = ask_one_of(t, v->slots);
    if (strcmp(v->name, "play_media") == 0 && ask_one_of(t, "device list"))
        return NULL;
    if (duration && waits && after)
        return "in";
    if (own)
        return t;
    if (!ask_one_of(t, "time date duration") || !waits)
        return NULL;
    return duration ? "for" : t;
}

/* Pieces to the slot sets of one or more actions: a slot that comes again opens another set. */
static uint32_t group(const struct verb *v, const struct piece *pieces, uint32_t n,
                      struct slots *sets)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *t = slot_of(v, &pieces[i]);
        struct slots *cur = &sets[at];
        if (!t)
            continue;
        if (strcmp(t, "item") == 0 && slot_get(cur, "item") && !slot_get(cur, "list")) {
            if (cur->n_items < ASK_MAX_ITEMS)
                cur->items[cur->n_items++] = pieces[i].text;
            continue;
        }
        if (slot_get(cur, t))
            cur = &sets[++at];
        slot_set(cur, t, pieces[i].text);
    }
    return at + 1;
}

/* What a set lacks and must have, the nearest other one says. */
static void lend(struct arena *a, const struct verb *v, struct slots *sets, uint32_t n)
{
    const char *need;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; (need = nth(a, v->needed, k)) != NULL; k++) {
            if (slot_get(&sets[i], need))
                continue;
            const struct slots *from = NULL;
            for (uint32_t j = i + 1; !from && j < n; j++)
                from = slot_get(&sets[j], need) ? &sets[j] : NULL;
            for (uint32_t j = i; !from && j > 0; j--)
                from = slot_get(&sets[j - 1], need) ? &sets[j - 1] : NULL;
            if (!from)
                continue;
            slot_set(&sets[i], need, slot_get(from, need));
            if (strcmp(need, "item") == 0) {
                memcpy(sets[i].items, from->items, sizeof(from->items));
                sets[i].n_items = from->n_items;
            }
        }
}

static const char *sensor_of(struct arena *a, const struct ask_words *w)
{
    static const struct {
        const char *sensor, *words;
    } table[] = {{"temperature", "temperature warm cold hot degrees cool freezing"},
                 {"humidity", "humid humidity damp"},
                 {"light level", "bright light dark"},
                 {"noise", "loud noise noisy quiet"},
                 {"air quality", "air"},
                 {"power", "power electricity"},
                 {"energy use", "energy"},
                 {"pressure", "pressure"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (has_word(a, w, table[i].words))
            return table[i].sensor;
    return NULL;
}

static void fill_defaults(struct arena *a, const char *name, struct slots *s,
                          const struct ask_words *w)
{
    bool device = slot_get(s, "device") != NULL;
    if (ask_one_of(name, "turn_on turn_off set_brightness set_color") && !device) {
        slot_set(s, "device", has_word(a, w, "everything") ? "everything" : "lights");
    } else if (strcmp(name, "set_temperature") == 0 && !device && !slot_get(s, "room")) {
        slot_set(s, "device", "heating");
    } else if (strcmp(name, "start") == 0 && !device) {
        if (has_word(a, w, "mow"))
            slot_set(s, "device", "robot mower");
        else if (has_word(a, w, "vacuum clean mop hoover"))
            slot_set(s, "device", "vacuum");
    } else if (strcmp(name, "mute") == 0 && !device) {
        slot_set(s, "device", "sound");
    } else if (ask_one_of(name, "add_to_list remove_from_list query_list") &&
               !slot_get(s, "list")) {
        slot_set(s, "list", "shopping");
    } else if (strcmp(name, "play_media") == 0 && !slot_get(s, "media")) {
        const char *artist = slot_get(s, "artist");
        slot_drop(s, "artist");
        slot_set(s, "media", artist ? artist : "music");
    } else if (strcmp(name, "add_event") == 0 && !slot_get(s, "date") && slot_get(s, "time")) {
        slot_set(s, "date", "today");
    } else if (strcmp(name, "get_sensor") == 0 && !slot_get(s, "sensor")) {
        const char *sensor = sensor_of(a, w);
        if (sensor)
            slot_set(s, "sensor", sensor);
    }
}

/* ---- an action and its line ----------------------------------------------------------------- */

struct act { /* under way: the object and the pairs of its context line */
    struct arena *a;
    struct ask_action *o;
    const char *pairs; /* "; key: value" ... */
};

static struct ask_field *field(struct act *x, const char *key)
{
    struct ask_action *o = x->o;
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0)
            return &o->fields[i];
    if (o->n_fields == ASK_MAX_FIELDS)
        return &o->fields[ASK_MAX_FIELDS - 1];
    o->fields[o->n_fields].key = key;
    return &o->fields[o->n_fields++];
}

static void put_text(struct act *x, const char *key, const char *text)
{
    *field(x, key) = (struct ask_field){.key = key, .text = text};
}

static void put_number(struct act *x, const char *key, double number)
{
    *field(x, key) = (struct ask_field){.key = key, .number = number};
}

static const char *get_text(const struct act *x, const char *key)
{
    for (uint32_t i = 0; i < x->o->n_fields; i++)
        if (strcmp(x->o->fields[i].key, key) == 0)
            return x->o->fields[i].text;
    return NULL;
}

static void pair(struct act *x, const char *key, const char *show)
{
    x->pairs = arena_printf(x->a, "%s; %s: %s", x->pairs, key, show);
}

/* ";" separates pairs, so it may not be in one; white space becomes one space. */
static const char *tidy(struct arena *a, const char *text)
{
    char *s = arena_copy(a, text, strlen(text) + 1);
    for (char *p = s; p && *p; p++)
        if (*p == ';')
            *p = ',';
    struct ask_words w = ask_words(a, s ? s : "");
    return ask_join(a, &w, 0, w.n);
}

static const char *without_articles(struct arena *a, const char *text)
{
    struct ask_words w = ask_words(a, text);
    uint32_t from = 0;
    while (from + 1 < w.n &&
           ask_one_of(ask_lower(a, w.w[from]), "the my our all every both a an some"))
        from++;
    return ask_join(a, &w, from, w.n);
}

static const char *for_you(struct arena *a, const char *text)
{
    static const char *const from[] = {"my", "me", "i", "mine", "i'm", "i've", "am", "our"};
    static const char *const to[] = {"your",   "you",    "you", "yours",
                                     "you're", "you've", "are", "your"};
    struct ask_words w = ask_words(a, text);
    for (uint32_t i = 0; i < w.n; i++)
        for (size_t k = 0; k < sizeof(from) / sizeof(from[0]); k++)
            if (strcmp(ask_lower(a, w.w[i]), from[k]) == 0) {
                w.w[i] = to[k];
                break;
            }
    return ask_join(a, &w, 0, w.n);
}

static const char *normal_name(struct arena *a, const char *slot, const char *text)
{
    if (ask_one_of(slot, "device room color mode scene list sensor name expr"))
        text = ask_lower(a, text);
    if (ask_one_of(slot, "device room item machine sensor list scene event"))
        text = without_articles(a, text);
    return text;
}

/* Puts a slot into the object; returns how the line shows it.  seconds: key for a duration. */
static const char *put_slot(struct act *x, const char *slot, const char *raw, const char *seconds,
                            const char *said)
{
    struct arena *a = x->a;
    const char *text = tidy(a, raw);
    if (strcmp(slot, "value") == 0) {
        struct ask_value v = ask_value(a, text, x->o->name);
        if (v.text)
            put_text(x, "value", v.text);
        else
            put_number(x, "value", v.number);
        if (v.unit)
            put_text(x, "unit", v.unit);
        return v.show;
    }
    if (strcmp(slot, "duration") == 0) {
        struct ask_value v = ask_duration(a, text);
        if (v.understood)
            put_number(x, seconds, v.number);
        else
            put_text(x, said, v.show);
        return v.show;
    }
    if (strcmp(slot, "time") == 0) {
        struct ask_value v = ask_clock(a, text);
        put_text(x, "time", v.text);
        return v.show;
    }
    if (strcmp(slot, "date") == 0)
        text = ask_date(a, text);
    else if (strcmp(slot, "task") != 0)
        text = normal_name(a, slot, text);
    put_text(x, slot, text);
    return strcmp(slot, "task") == 0 ? for_you(a, text) : text;
}

static void put_items(struct act *x, const struct slots *s)
{
    const char **list = arena_zalloc_n(x->a, s->n_items, sizeof(*list));
    const char *show = "";
    if (!list)
        return;
    for (uint32_t i = 0; i < s->n_items; i++) {
        list[i] = normal_name(x->a, "item", tidy(x->a, s->items[i]));
        show = arena_printf(x->a, "%s%s%s", show,
                            i == 0                ? ""
                            : i + 1 == s->n_items ? " and "
                                                  : ", ",
                            list[i]);
    }
    if (s->n_items == 1)
        put_text(x, "item", list[0]);
    else
        *field(x, "item") = (struct ask_field){.key = "item", .items = list, .n_items = s->n_items};
    pair(x, "item", show);
}

/* When it shall happen; true: later. */
static bool put_when(struct act *x, const struct slots *s, const char *own)
{
    bool later = false;
    const char *t;
    if ((t = slot_get(s, "for")) != NULL)
        pair(x, "duration", put_slot(x, "duration", t, "duration_s", "duration"));
    if ((t = slot_get(s, "time")) != NULL && !ask_one_of("time", own)) {
        pair(x, "at", put_slot(x, "time", t, NULL, NULL));
        later = true;
    }
    if ((t = slot_get(s, "in")) != NULL) {
        pair(x, "in", put_slot(x, "duration", t, "in_s", "in"));
        later = true;
    }
    if ((t = slot_get(s, "date")) != NULL && !ask_one_of("date", own)) {
        pair(x, "date", put_slot(x, "date", t, NULL, NULL));
        later = true;
    }
    return later;
}

static void put_id(struct act *x)
{
    const char *device = get_text(x, "device"), *room = get_text(x, "room");
    if (!device)
        return;
    const char *name = room ? arena_printf(x->a, "%s %s", room, device) : device;
    char *id = arena_bytes(x->a, strlen(name) + 1), *p = id;
    if (!id)
        return;
    for (; *name; name++) {
        bool good = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9');
        if (good)
            *p++ = *name;
        else if (p > id && p[-1] != '_')
            *p++ = '_';
    }
    if (p > id && p[-1] == '_')
        p--;
    *p = '\0';
    put_text(x, "id", id);
}

/* "2", "b", "k-12": a number of a thing, not its kind. */
static bool is_code(const char *w)
{
    const char *p = w;
    bool letter = *p >= 'a' && *p <= 'z';
    p += letter;
    if (letter && !*p)
        return true;
    p += *p == '-';
    size_t n = strspn(p, "0123456789");
    return n > 0 && p[n] == '\0';
}

static bool known_device(struct arena *a, const char *device)
{
    struct ask_words w = ask_words(a, ask_lower(a, device));
    while (w.n > 0 && is_code(w.w[w.n - 1]))
        w.n--;
    if (w.n == 0)
        return false;
    const char *s = w.w[w.n - 1];
    size_t n = strlen(s);
    return ask_one_of(s, known_devices) ||
           (n > 1 && s[n - 1] == 's' &&
            ask_one_of(arena_printf(a, "%.*s", (int)n - 1, s), known_devices)) ||
           (n > 2 && strcmp(s + n - 2, "es") == 0 &&
            ask_one_of(arena_printf(a, "%.*s", (int)n - 2, s), known_devices));
}

static const char *finish(struct act *x, const char *result)
{
    put_text(x, "result", result);
    return arena_printf(x->a, "act: %s%s; result: %s", x->o->name, x->pairs, result);
}

/* A query that needs no source; NULL: out of scope. */
static const char *answer(struct act *x, const struct slots *s, const struct tm *now)
{
    const char *name = x->o->name, *show;
    char text[64];
    double result;
    if (strcmp(name, "calculate") == 0) {
        bool ok = ask_calculate(x->a, slot_get(s, "expr"), &show, &result);
        put_text(x, "result", ok ? "done" : "unknown");
        if (!ok)
            return NULL;
        put_number(x, "answer", result);
        return arena_printf(x->a, "result: %s%s", show, x->pairs);
    }
    put_text(x, "result", "done");
    if (strcmp(name, "get_date") == 0) {
        strftime(text, sizeof(text), "%A, %e %B %Y", now);
        struct ask_words w = ask_words(x->a, text); /* %e pads with a space */
        return arena_printf(x->a, "date: %s", ask_join(x->a, &w, 0, w.n));
    }
    if (strcmp(name, "get_time") == 0) {
        strftime(text, sizeof(text), "%H:%M", now);
        return arena_printf(x->a, "time: %s", text);
    }
    if (strcmp(name, "query_timer") == 0)
        return "timer: none";
    if (strcmp(name, "query_list") == 0)
        return arena_printf(x->a, "list: %s; items: none", get_text(x, "list"));
    const char *date = get_text(x, "date");
    return arena_printf(x->a, "event: none; date: %s", date ? date : "today");
}

/* One slot set to an action and its context line; NULL: the clause is out of scope. */
static const char *act(struct act *x, const struct verb *v, struct slots *s,
                       const struct ask_words *w, const struct tm *now)
{
    const char *slot, *missing = NULL;
    fill_defaults(x->a, v->name, s, w);
    for (uint32_t i = 0; (slot = nth(x->a, v->slots, i)) != NULL; i++) {
        const char *text = slot_get(s, slot);
        if (text && strcmp(slot, "item") == 0)
            put_items(x, s);
        else if (text)
            pair(x, slot, put_slot(x, slot, text, "duration_s", "duration"));
    }
    bool later = put_when(x, s, v->slots);
    put_id(x);
    for (uint32_t i = 0; !missing && (slot = nth(x->a, v->needed, i)) != NULL; i++)
        missing = slot_get(s, slot) ? NULL : slot;
    if (missing && strcmp(v->name, "calculate") == 0) {
        put_text(x, "result", "unknown");
        return NULL;
    }
    if (missing) {
        put_text(x, "result", "ask");
        put_text(x, "ask", missing);
        return arena_printf(x->a, "ask: %s; act: %s%s", missing, v->name, x->pairs);
    }
    const char *device = get_text(x, "device");
    if (device && !known_device(x->a, device))
        return finish(x, "unknown");
    if (!v->reason)
        return finish(x, later ? "scheduled" : "done");
    if (!*v->reason || (strcmp(v->name, "get_time") == 0 && !slot_get(s, "place")))
        return answer(x, s, now);
    pair(x, "reason", v->reason);
    const char *line = finish(x, "failed");
    put_text(x, "reason", v->reason);
    return line;
}

/* ---- the plan ------------------------------------------------------------------------------- */

static bool plan_room(struct arena *a, struct ask_plan *p)
{
    if (p->n_lines < p->cap)
        return true;
    uint32_t cap = p->cap ? p->cap * 2 : 8;
    struct ask_action **acts = arena_zalloc_n(a, cap, sizeof(*acts));
    const char **lines = arena_zalloc_n(a, cap, sizeof(*lines));
    if (!acts || !lines)
        return false;
    if (p->cap) {
        memcpy(acts, p->actions, p->n_actions * sizeof(*acts));
        memcpy(lines, p->lines, p->n_lines * sizeof(*lines));
    }
    p->actions = acts;
    p->lines = lines;
    p->cap = cap;
    return true;
}

static void add_line(struct arena *a, struct ask_plan *p, const char *line)
{
    if (plan_room(a, p))
        p->lines[p->n_lines++] = line;
}

void ask_decide(struct arena *a, struct ask_plan *plan, const struct ask_clause *c,
                const struct tm *now)
{
    struct ask_words w = ask_words(a, c->text);
    const struct verb *v = find_verb(c->intent);
    bool sure = c->intent_p >= c->threshold ||
                (v && ask_one_of(c->flow, "act machine") && c->router_p >= 0.5f);
    bool oos = strcmp(c->intent, "oos") == 0 || !sure;
    if (oos || !v) {
        bool chat = !oos && strcmp(c->flow, "chat") == 0;
        add_line(a, plan, arena_printf(a, "%s: %s", chat ? "chat" : "oos", tidy(a, c->text)));
        return;
    }
    v = find_verb(settle(a, c->intent, &w));
    struct piece *pieces = arena_zalloc_n(a, (size_t)c->n_entities + 1, sizeof(*pieces));
    struct slots *sets = arena_zalloc_n(a, (size_t)c->n_entities + 1, sizeof(*sets));
    if (!pieces || !sets)
        return;
    uint32_t n = group(v, pieces, merge(a, c, &w, pieces), sets);
    lend(a, v, sets, n);
    for (uint32_t i = 0; i < n; i++) {
        struct act x = {.a = a, .o = arena_zalloc(a, sizeof(*x.o)), .pairs = ""};
        if (!x.o || !plan_room(a, plan))
            return;
        x.o->name = v->name;
        const char *line = act(&x, v, &sets[i], &w, now);
        plan->actions[plan->n_actions++] = x.o;
        plan->lines[plan->n_lines++] = line ? line : arena_printf(a, "oos: %s", tidy(a, c->text));
    }
}

uint32_t ask_contexts(struct arena *a, const struct ask_plan *plan, const char ***out)
{
    const char **c = arena_zalloc_n(a, (size_t)plan->n_lines + 1, sizeof(*c));
    uint32_t n = 0, together = 0;
    *out = c;
    for (uint32_t i = 0; c && i < plan->n_lines; i++) {
        bool action = strncmp(plan->lines[i], "act:", 4) == 0;
        if (action && together > 0 && together < 3) {
            c[n - 1] = arena_printf(a, "%s\n%s", c[n - 1], plan->lines[i]);
            together++;
        } else {
            c[n++] = plan->lines[i];
            together = action;
        }
    }
    return a->rc < 0 ? 0 : n;
}

void ask_action_json(struct json_out *j, const struct ask_action *o)
{
    json_out_object(j);
    json_out_key(j, "action");
    json_out_str(j, o->name);
    for (uint32_t i = 0; i < o->n_fields; i++) {
        const struct ask_field *f = &o->fields[i];
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
