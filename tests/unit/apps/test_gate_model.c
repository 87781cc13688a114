/* test_gate_model.c - the gate against a model: 100,000 random plans over random homes. Whatever
 * the plan, nothing reaches the sink that passes a limit, or that is dangerous and nobody
 * confirmed.
 *
 * The model is written without the gate and its data: its own conversions, limits and dangers, as
 * docs/ASK.md says them. Where a plan leaves no doubt, it also says what must reach the sink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/home/gate/gate_plan.h"
#include "apps/home/site/home_file_read.h"

#define N_HOMES 1000u
#define N_PLANS 100u /* over one home */
#define MAX_THINGS 8u
#define MAX_SETS 4u
#define COUNT(x) (sizeof(x) / sizeof((x)[0]))

/* ---- chance --------------------------------------------------------------------------------- */

static uint64_t seed = 20261117;

static uint32_t below(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % n);
}

static bool one_in(uint32_t n)
{
    return below(n) == 0;
}

#define ANY(list) ((list)[below(COUNT(list))])

/* ---- the model: units ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    char class;
    double factor, offset;
} units[] = {
    {"bar", 'p', 1, 0},          {"psi", 'p', 0.068947572932, 0},
    {"kPa", 'p', 0.01, 0},       {"mbar", 'p', 0.001, 0},
    {"celsius", 't', 1, 0},      {"fahrenheit", 't', 5.0 / 9.0, -160.0 / 9.0},
    {"kelvin", 't', 1, -273.15}, {"percent", 's', 1, 0},
    {"fraction", 's', 100, 0},   {"rpm", 'r', 1, 0},
    {"rps", 'r', 60, 0},         {"W", 'w', 1, 0},
    {"kW", 'w', 1000, 0},        {"l/min", 'f', 1, 0},
    {"minute", 'm', 1, 0},       {"hour", 'm', 60, 0},
    {"parsec", 'x', 1, 0}, /* the table knows neither */
    {"abv", 'y', 1, 0},
};

static char class_of(const char *unit)
{
    for (size_t i = 0; unit && i < COUNT(units); i++)
        if (strcmp(units[i].name, unit) == 0)
            return units[i].class;
    return 0;
}

/* In bar, degrees Celsius, percent, rpm, ... */
static double base_of(double n, const char *unit, bool change)
{
    for (size_t i = 0; unit && i < COUNT(units); i++)
        if (strcmp(units[i].name, unit) == 0)
            return n * units[i].factor + (change ? 0.0 : units[i].offset);
    return n;
}

static bool near(double x, double y)
{
    return fabs(x - y) <= 1e-6 * (1.0 + fabs(y));
}

/* ---- the model: homes ----------------------------------------------------------------------- */

struct m_limit {
    const char *ability, *unit;
    double min, max;
};

struct m_thing {
    char id[16];
    bool machine;
    const char *kind;
    int risk; /* -1: the file says none */
    struct m_limit limits[3];
    uint32_t n_limits;
};

struct m_state { /* present values, one for each limit */
    bool known;
    double number;
    const char *unit;
};

struct m_home {
    struct m_thing things[MAX_THINGS];
    struct m_state states[MAX_THINGS][3];
    uint32_t n;
    struct { /* one scene */
        uint32_t thing;
        const char *ability, *text;
        double number;
    } sets[MAX_SETS];
    uint32_t n_sets;
    int scene_risk;
};

static const struct {
    const char *name, *abilities;
} kinds[] = {
    {"light", " power brightness color "},
    {"switch", " power "},
    {"cover", " open position run "},
    {"door", " open lock "},
    {"window", " open position lock "},
    {"lock", " lock "},
    {"climate", " power temperature mode "},
    {"heater", " power temperature mode run "},
    {"cooler", " power temperature mode "},
    {"media", " power volume sound mode run "},
    {"vacuum", " power run mode "},
    {"appliance", " power run mode open "},
    {"alarm", " alarm power "},
    {"camera", " power "},
    {"valve", " open position power run "},
    {"machine", " run power setting temperature mode open "},
    {"oven", " power temperature mode run "},
    {"boiler", " power temperature mode run "},
    {"fridge", " power temperature mode "},
    {"freezer", " power temperature mode "},
    {"cooker", " power run mode open "},
    {"mower", " power run mode "},
};

static bool able(const struct m_thing *x, const char *ability)
{
    char word[32];
    snprintf(word, sizeof(word), " %s ", ability);
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].name, x->kind) == 0)
            return strstr(kinds[i].abilities, word) != NULL;
    return false;
}

static bool one_of(const char *s, const char *list)
{
    char word[32];
    snprintf(word, sizeof(word), " %s ", s);
    return strstr(list, word) != NULL;
}

static bool machine_like(const struct m_thing *x)
{
    return x->machine || strcmp(x->kind, "machine") == 0;
}

/* A limit that a file may have: its unit is often, but not always, one that fits the name. */
static struct m_limit make_limit(const struct m_thing *x)
{
    static const struct m_limit usual[] = {{"pressure", "bar", 0, 2},
                                           {"pressure", "psi", 5, 40},
                                           {"pressure", "kPa", 0, 350},
                                           {"speed", "rpm", 100, 1500},
                                           {"temperature", "celsius", 2, 30},
                                           {"flow", "l/min", 0, 80},
                                           {"load", "kW", 0.5, 3},
                                           {"feed", "abv", 1, 9},
                                           {"level", "percent", 5, 95},
                                           {"temperature", "fahrenheit", 34, 90},
                                           {"dose", "minute", 1, 30},
                                           {"pressure", NULL, 0, 6}};
    static const struct m_limit of_devices[] = {{"temperature", "celsius", 12, 26},
                                                {"temperature", "fahrenheit", 55, 80},
                                                {"brightness", "percent", 10, 80},
                                                {"volume", "percent", 0, 40}};
    if (able(x, "setting"))
        return ANY(usual);
    for (uint32_t i = 0; i < 20; i++) {
        struct m_limit l = ANY(of_devices);
        if (able(x, l.ability))
            return l;
    }
    return (struct m_limit){0};
}

static void make_thing(struct m_home *h)
{
    struct m_thing *x = &h->things[h->n];
    *x = (struct m_thing){.kind = ANY(kinds).name, .machine = one_in(3), .risk = -1};
    if (one_in(3))
        x->kind = "machine";
    snprintf(x->id, sizeof(x->id), "t%u", h->n);
    if (one_in(4))
        x->risk = (int)below(3);
    for (uint32_t k = below(4); k > 0; k--) {
        struct m_limit l = make_limit(x);
        bool twice = !l.ability;
        for (uint32_t i = 0; i < x->n_limits && !twice; i++)
            twice = strcmp(x->limits[i].ability, l.ability) == 0;
        if (!twice)
            x->limits[x->n_limits++] = l;
    }
    for (uint32_t i = 0; i < x->n_limits; i++) {
        const struct m_limit *l = &x->limits[i];
        struct m_state *s = &h->states[h->n][i];
        *s = (struct m_state){.known = one_in(2),
                              .number = l->min + (l->max - l->min) * below(101) / 100.0};
        if (l->unit && one_in(2))
            s->unit = l->unit;
        else if (class_of(l->unit) == 'p') { /* reported in another unit */
            s->number = base_of(s->number, l->unit, false) * 1000.0;
            s->unit = "mbar";
        }
    }
    h->n++;
}

static void make_set(struct m_home *h)
{
    static const char *const sets[][2] = {
        {"power", "on"},      {"power", "off"},      {"lock", "unlocked"}, {"lock", "locked"},
        {"lock", "ajar"},     {"open", "open"},      {"open", "closed"},   {"run", "running"},
        {"run", "stopped"},   {"alarm", "disarmed"}, {"mode", "eco"},      {"temperature", NULL},
        {"brightness", NULL}, {"volume", NULL},      {"position", NULL},   {"open", NULL},
        {"lock", NULL}};
    uint32_t t = below(h->n), k = below(COUNT(sets));
    if (!able(&h->things[t], sets[k][0]))
        return; /* the file would be refused */
    h->sets[h->n_sets].thing = t;
    h->sets[h->n_sets].ability = sets[k][0];
    h->sets[h->n_sets].text = sets[k][1];
    h->sets[h->n_sets].number = (double)below(130);
    h->n_sets++;
}

static void put_home(const struct m_home *h, char *out, size_t n)
{
    static const char *const risks[] = {"harmless", "disturbing", "dangerous"};
    size_t at = 0;
#define PUT(...) at += (size_t)snprintf(out + at, n - at, __VA_ARGS__)
    for (int machines = 0; machines < 2; machines++) {
        PUT("%s:\n", machines ? "machines" : "devices");
        PUT("  - {id: unused%d, kind: light}\n", machines);
        for (uint32_t i = 0; i < h->n; i++) {
            const struct m_thing *x = &h->things[i];
            if (x->machine != (machines == 1))
                continue;
            PUT("  - {id: %s, kind: %s", x->id, x->kind);
            if (x->risk >= 0)
                PUT(", risk: %s", risks[x->risk]);
            for (uint32_t k = 0; k < x->n_limits; k++) {
                const struct m_limit *l = &x->limits[k];
                PUT("%s%s: {min: %g, max: %g", k ? ", " : ", limits: {", l->ability, l->min,
                    l->max);
                if (l->unit)
                    PUT(", unit: %s", l->unit);
                PUT("}");
            }
            PUT("%s}\n", x->n_limits ? "}" : "");
        }
    }
    PUT("scenes:\n  - {id: scene");
    if (h->scene_risk >= 0)
        PUT(", risk: %s", risks[h->scene_risk]);
    PUT(", sets: [");
    for (uint32_t i = 0; i < h->n_sets; i++) {
        PUT("%s{id: %s, ability: %s, to: ", i ? ", " : "", h->things[h->sets[i].thing].id,
            h->sets[i].ability);
        if (h->sets[i].text)
            PUT("\"%s\"}", h->sets[i].text);
        else
            PUT("%g}", h->sets[i].number);
    }
    PUT("]}\n");
#undef PUT
    assert_true(at < n);
}

static void make_home(struct m_home *h)
{
    *h = (struct m_home){.scene_risk = one_in(4) ? (int)below(3) : -1};
    for (uint32_t n = 1 + below(MAX_THINGS); n > 0; n--)
        make_thing(h);
    for (uint32_t n = below(MAX_SETS + 1); n > 0; n--)
        make_set(h);
}

/* ---- the model: rules ----------------------------------------------------------------------- */

/* At rest nothing is dangerous. */
static bool rests(const struct m_thing *x, const char *ability, const char *text)
{
    return text && ((strcmp(ability, "run") == 0 && strcmp(text, "stopped") == 0) ||
                    (strcmp(ability, "power") == 0 && strcmp(text, "off") == 0 && machine_like(x)));
}

static bool dangerous(const struct m_thing *x, const struct home_deed *d)
{
    bool hot = one_of(x->kind, " heater oven boiler cooker mower ");
    const char *text = d->text ? d->text : "";
    if (rests(x, d->ability, d->text))
        return false;
    if (x->risk == 2 || strcmp(text, "unlocked") == 0 || strcmp(text, "disarmed") == 0)
        return true;
    if (one_of(d->ability, " open position ") &&
        (machine_like(x) || one_of(x->kind, " door window lock valve ")))
        return strcmp(text, "open") == 0 || (!d->text && d->number != 0.0);
    if (strcmp(d->ability, "mode") == 0 || strcmp(d->ability, "temperature") == 0)
        return hot;
    if (strcmp(text, "on") == 0 || strcmp(text, "running") == 0)
        return hot || machine_like(x) || strcmp(x->kind, "valve") == 0;
    return strcmp(text, "off") == 0 && strcmp(d->ability, "power") == 0 &&
           one_of(x->kind, " alarm camera cooler fridge freezer ");
}

static const struct m_limit *limit_of(const struct m_thing *x, const char *ability)
{
    for (uint32_t i = 0; i < x->n_limits; i++)
        if (strcmp(x->limits[i].ability, ability) == 0)
            return &x->limits[i];
    return NULL;
}

/* The usual limits of a thing without its own, in base units; false: none. */
static bool usual_range(const struct m_thing *x, const char *ability, char class, double *min,
                        double *max)
{
    static const struct {
        const char *kinds;
        double min, max;
    } warm[] = {{" oven ", 30, 280},
                {" fridge ", 1, 10},
                {" freezer ", -30, -10},
                {" cooler ", -30, 10},
                {" boiler ", 5, 95}};
    bool temperature = strcmp(ability, "temperature") == 0;
    for (size_t i = 0; class == 't' && temperature && i < COUNT(warm); i++)
        if (one_of(x->kind, warm[i].kinds)) {
            *min = warm[i].min;
            *max = warm[i].max;
            return true;
        }
    *min = class == 't' ? (machine_like(x) ? -40 : 5) : 0;
    *max = class == 't'   ? (machine_like(x) ? 400 : 35)
           : class == 'p' ? (strcmp(x->kind, "boiler") == 0 ? 10 : 20)
           : class == 's' ? 100
                          : 30000;
    return (class == 't' && (temperature || machine_like(x))) ||
           (class == 's' && (machine_like(x) || one_of(ability, " brightness position volume "))) ||
           (class == 'p' && (machine_like(x) || strcmp(x->kind, "boiler") == 0)) ||
           (class == 'r' && machine_like(x));
}

/* ---- plans ---------------------------------------------------------------------------------- */

struct plan {
    struct ask_plan_action o;
    char text[3][24];
    const char *ids[3];
    bool confirmed;
    const struct m_thing *thing; /* the only one; NULL: several, a scene, or none */
    bool scene;
};

static void put_text(struct plan *p, const char *key, const char *text)
{
    p->o.fields[p->o.n_fields++] = (struct ask_plan_field){.key = key, .text = text};
}

static void put_number(struct plan *p, const char *key, double number)
{
    p->o.fields[p->o.n_fields++] = (struct ask_plan_field){.key = key, .number = number};
}

/* A number near one of the thing's limits, said in some unit; or any number. */
static double make_number(const struct m_thing *x, const char **unit)
{
    static const double nudges[] = {0, 0, 1e-4, -1e-4, 0.1, -0.1, 3, -3, 100};
    *unit = one_in(3) ? NULL : ANY(units).name;
    if (x->n_limits == 0 || one_in(4))
        return (below(2) ? 1.0 : -1.0) * pow(10.0, (double)below(8) - 2.0) * below(100) / 10.0;
    const struct m_limit *l = &x->limits[below(x->n_limits)];
    double n = (below(2) ? l->max : l->min) + ANY(nudges);
    if (*unit && one_in(8))
        return n;
    if (*unit) { /* the same in a unit that fits */
        const char *u = ANY(units).name;
        for (uint32_t i = 0; i < 30 && class_of(u) != class_of(l->unit); i++)
            u = ANY(units).name;
        if (class_of(u) == class_of(l->unit)) {
            double one = base_of(1, u, false) - base_of(0, u, false);
            *unit = u;
            return (base_of(n, l->unit, false) - base_of(0, u, false)) / one;
        }
    }
    return n;
}

/* A change that may lead beyond a limit, or just not. */
static double make_change(const struct m_thing *x, const char **unit)
{
    static const double parts[] = {0.1, 0.2, 0.5, 0.9, 1, 1.01, 3, 1000};
    if (x->n_limits == 0 || one_in(6))
        return make_number(x, unit);
    const struct m_limit *l = &x->limits[below(x->n_limits)];
    *unit = one_in(2) ? l->unit : NULL;
    return (l->max - l->min) * ANY(parts) * (below(2) ? 1.0 : -1.0);
}

static void make_setting(struct plan *p, const struct m_thing *x)
{
    static const char *const actions[] = {
        "set_machine",    "set_machine", "set_machine", "set_temperature",
        "set_brightness", "set_volume",  "open"};
    static const char *const names[] = {"pressure", "speed",    "temperature",   "flow",
                                        "feed",     "nonsense", "head pressure", "level",
                                        "lock",     "power",    "setting"};
    const char *unit;
    p->o.name = ANY(actions);
    bool change = strcmp(p->o.name, "open") != 0 && one_in(3);
    double n = change ? make_change(x, &unit) : make_number(x, &unit);
    if (strcmp(p->o.name, "set_machine") == 0 && !one_in(4))
        put_text(p, "sensor",
                 x->n_limits > 0 && !one_in(4) ? x->limits[below(x->n_limits)].ability
                                               : ANY(names));
    if (one_in(20))
        put_text(p, "value", "high");
    else
        put_number(p, change ? "change" : "value", n);
    if (unit)
        put_text(p, "unit", unit);
}

static void make_plan(struct plan *p, const struct m_home *h)
{
    static const char *const states[] = {"turn_on",       "turn_off",     "lock",  "unlock",
                                         "open",          "close",        "start", "stop",
                                         "start_machine", "stop_machine", "mute",  "arm_alarm",
                                         "disarm_alarm",  "set_color",    "fly"};
    *p = (struct plan){.confirmed = one_in(2)};
    const struct m_thing *x = &h->things[below(h->n)];
    if (h->n_sets > 0 && one_in(6)) {
        p->o.name = "activate_scene";
        p->scene = true;
        put_text(p, "id", "scene");
        return;
    }
    if (one_in(3))
        p->o.name = ANY(states);
    else
        make_setting(p, x);
    if (strcmp(p->o.name, "set_color") == 0)
        put_text(p, "color", "red");
    if (one_in(8)) {
        uint32_t n = 1 + below(3);
        for (uint32_t i = 0; i < n; i++)
            p->ids[i] = one_in(20) ? "gone" : h->things[below(h->n)].id;
        p->o.fields[p->o.n_fields++] =
            (struct ask_plan_field){.key = "ids", .items = p->ids, .n_items = n};
        return;
    }
    if (one_in(50)) {
        put_text(p, "id", "gone");
        return;
    }
    put_text(p, "id", x->id);
    p->thing = x;
}

/* ---- what reached the sink ------------------------------------------------------------------ */

struct sink {
    struct home_sink sink;
    struct home_deed sent[64];
    uint32_t n;
};

static void carry(struct home_sink *s, const struct home_deed *d, home_sink_done_fn done, void *ctx)
{
    struct sink *x = (struct sink *)(void *)s;
    assert_true(x->n < COUNT(x->sent));
    x->sent[x->n++] = *d;
    done(ctx, HOME_SINK_DONE, NULL);
}

static void on_done(void *ctx, enum home_sink_result result, const char *reason)
{
    (void)result;
    (void)reason;
    (*(uint32_t *)ctx)++;
}

static const char *shown(const struct plan *p, const struct home_deed *d)
{
    static char out[800];
    size_t at = (size_t)snprintf(out, sizeof(out), "%s", p->o.name);
    for (uint32_t i = 0; i < p->o.n_fields; i++) {
        const struct ask_plan_field *f = &p->o.fields[i];
        at += (size_t)snprintf(out + at, sizeof(out) - at, " %s=%s%.10g", f->key,
                               f->text ? f->text : "", f->number);
    }
    if (d)
        snprintf(out + at, sizeof(out) - at, "%s: %s.%s=%s%s%.10g %s",
                 p->confirmed ? ", confirmed" : "", d->id, d->ability, d->text ? d->text : "",
                 d->change ? " by " : " ", d->number, d->unit ? d->unit : "-");
    return out;
}

static const struct m_thing *thing_of(const struct m_home *h, const char *id)
{
    for (uint32_t i = 0; i < h->n; i++)
        if (strcmp(h->things[i].id, id) == 0)
            return &h->things[i];
    return NULL;
}

static const struct m_state *state_of(const struct m_home *h, const struct m_thing *x,
                                      const struct m_limit *l)
{
    const struct m_state *s = &h->states[x - h->things][l - x->limits];
    return s->known ? s : NULL;
}

/* The value that the plan asks for, in base units of the class. */
static bool wanted(const struct plan *p, double *out, bool *change)
{
    const struct ask_plan_field *v = ask_plan_field_of(&p->o, "value"),
                                *by = ask_plan_field_of(&p->o, "change");
    const struct ask_plan_field *f = by ? by : v;
    *change = by != NULL;
    if (!f || f->text)
        return false;
    *out = f->number;
    return true;
}

/* Nothing that is sent may be beyond a limit. */
static void check_number(const struct m_home *h, const struct plan *p, const struct m_thing *x,
                         const struct home_deed *d)
{
    const struct m_limit *l = limit_of(x, d->ability);
    const struct m_state *s = l ? state_of(h, x, l) : NULL;
    const char *own = l && l->unit ? l->unit : d->unit, *said = ask_plan_text_of(&p->o, "unit");
    bool change;
    double n, min, max;
    assert_true(isfinite(d->number));
    if (l && l->unit && (!d->unit || strcmp(d->unit, l->unit) != 0))
        fail_msg("not in the thing's own unit: %s", shown(p, d));
    if (l && !l->unit && class_of(d->unit) != 'p') /* "pressure" is in bar then */
        fail_msg("not in the usual unit: %s", shown(p, d));
    bool known = true;
    if (l) {
        min = l->min;
        max = l->max;
        n = d->number;
    } else {
        known = usual_range(x, d->ability, class_of(d->unit), &min, &max);
        n = base_of(d->number, d->unit, d->change);
    }
    if (!known && !p->confirmed)
        fail_msg("no limits, and nobody confirmed it: %s", shown(p, d));
    if (known && !d->change &&
        (n > max + 1e-9 * (1 + fabs(max)) || n < min - 1e-9 * (1 + fabs(min))))
        fail_msg("beyond the limits: %s", shown(p, d));
    if (known && d->change && fabs(n) > (max - min) * (1 + 1e-9))
        fail_msg("a change by more than the range: %s", shown(p, d));
    if (d->change && s)
        fail_msg("a change though the present value is known: %s", shown(p, d));
    if (d->change && (l || machine_like(x)) && !p->confirmed)
        fail_msg("a change from an unknown value, and nobody confirmed it: %s", shown(p, d));
    if (p->scene || !wanted(p, &n, &change))
        return;
    if (said && class_of(said) != class_of(own))
        fail_msg("another quantity than what was said: %s", shown(p, d));
    double want = base_of(n, said ? said : own, change), have = base_of(d->number, own, d->change);
    if (change && !d->change)
        want += s ? base_of(s->number, s->unit ? s->unit : own, false) : NAN;
    if (!near(have, want))
        fail_msg("not what was said (%.10g): %s", want, shown(p, d));
}

static void check_sent(const struct m_home *h, const struct plan *p, const struct home_deed *d,
                       bool whole)
{
    const struct m_thing *x = thing_of(h, d->id);
    if (!x)
        fail_msg("there is no such thing: %s", shown(p, d));
    if (dangerous(x, d) && !p->confirmed)
        fail_msg("dangerous, and nobody confirmed it: %s", shown(p, d));
    if (whole && p->scene && h->scene_risk == 2 && !p->confirmed)
        fail_msg("a dangerous scene, and nobody confirmed it: %s", shown(p, d));
    if (d->text &&
        !one_of(d->text, " on off locked unlocked open closed running stopped muted armed "
                         "disarmed eco red "))
        fail_msg("no state: %s", shown(p, d));
    if (!d->text && one_of(d->ability, " open lock power run alarm sound "))
        fail_msg("a number, but it has only states: %s", shown(p, d));
    if (!d->text)
        check_number(h, p, x, d);
}

/* ---- what must reach it --------------------------------------------------------------------- */

static const struct {
    const char *action, *ability, *text;
} effects[] = {{"turn_on", "power", "on"},
               {"turn_off", "power", "off"},
               {"lock", "lock", "locked"},
               {"unlock", "lock", "unlocked"},
               {"open", "open", "open"},
               {"close", "open", "closed"},
               {"start", "run", "running"},
               {"stop", "run", "stopped"},
               {"start_machine", "run", "running"},
               {"stop_machine", "run", "stopped"},
               {"mute", "sound", "muted"},
               {"arm_alarm", "alarm", "armed"},
               {"disarm_alarm", "alarm", "disarmed"}};

enum clear { UNCLEAR, MUST, MUST_NOT };

/* Plans that leave no doubt. */
static enum clear verdict_of(const struct plan *p)
{
    const struct m_thing *x = p->thing;
    const char *name = ask_plan_text_of(&p->o, "sensor"), *unit = ask_plan_text_of(&p->o, "unit");
    const struct ask_plan_field *v = ask_plan_field_of(&p->o, "value");
    if (!x)
        return UNCLEAR;
    for (size_t i = 0; i < COUNT(effects); i++) {
        const struct home_deed d = {.ability = effects[i].ability, .text = effects[i].text};
        if (strcmp(effects[i].action, p->o.name) == 0 && !v)
            return able(x, d.ability) && (p->confirmed || !dangerous(x, &d)) ? MUST : MUST_NOT;
    }
    if (strcmp(p->o.name, "open") == 0 && !v->text && (!unit || strcmp(unit, "percent") == 0)) {
        const struct home_deed d = {.ability = "position", .number = v->number};
        return able(x, d.ability) && v->number >= 0 && v->number <= 100 &&
                       (p->confirmed || !dangerous(x, &d))
                   ? MUST
                   : MUST_NOT;
    }
    const struct m_limit *l = name ? limit_of(x, name) : NULL;
    if (strcmp(p->o.name, "set_machine") != 0 || !l || !l->unit || !v || v->text ||
        strcmp(x->kind, "machine") != 0)
        return UNCLEAR;
    if (unit && class_of(unit) != class_of(l->unit))
        return MUST_NOT;
    double n = base_of(v->number, unit ? unit : l->unit, false),
           min = base_of(l->min, l->unit, false), max = base_of(l->max, l->unit, false),
           slack = 1e-6 * (1 + fabs(max));
    if (n > max + slack || n < min - slack)
        return MUST_NOT;
    if (n > max - slack || n < min + slack)
        return UNCLEAR; /* rounding decides */
    return x->risk < 2 || p->confirmed ? MUST : MUST_NOT;
}

/* ---- the test ------------------------------------------------------------------------------- */

struct tally {
    uint32_t plans, sent, must, must_not, changes, confirmed;
};

static void run_plan(const struct gate *g, const struct m_home *h, const struct plan *p,
                     struct arena *a, struct tally *t)
{
    static const struct home_sink_ops ops = {carry};
    struct sink s = {.sink = {&ops}};
    struct home_deed *deeds;
    uint32_t n_done = 0, n = gate_plan_deeds(a, g, &p->o, &deeds);
    bool whole = one_in(2); /* or somebody forgets to look at the whole action */
    struct gate_verdict v = gate_plan_check(a, g, &p->o, p->confirmed);
    for (uint32_t i = 0; i < n && (!whole || v.answer == GATE_PASS); i++) {
        struct gate_verdict one = gate_carry(g, &s.sink, &deeds[i], p->confirmed, on_done, &n_done);
        if (whole && one.answer != GATE_PASS)
            fail_msg("the whole passes, a part does not: %s", shown(p, &deeds[i]));
    }
    assert_int_equal(n_done, s.n);
    for (uint32_t i = 0; i < s.n; i++) {
        check_sent(h, p, &s.sent[i], whole);
        t->changes += ask_plan_field_of(&p->o, "change") != NULL;
        t->confirmed += p->confirmed;
    }
    enum clear clear = verdict_of(p);
    if (clear == MUST && s.n != 1)
        fail_msg("it must be sent, but is not (answer %d, why %d): %s", v.answer, v.why,
                 shown(p, NULL));
    if (clear == MUST_NOT && s.n > 0)
        fail_msg("it must not be sent: %s", shown(p, &s.sent[0]));
    t->plans++;
    t->sent += s.n;
    t->must += clear == MUST;
    t->must_not += clear == MUST_NOT;
}

static void report_states(struct home_states *s, const struct m_home *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        for (uint32_t k = 0; k < h->things[i].n_limits; k++) {
            const struct m_state *m = &h->states[i][k];
            if (m->known)
                home_states_set(s, h->things[i].id,
                                &(struct home_state){.ability = h->things[i].limits[k].ability,
                                                     .number = m->number,
                                                     .unit = m->unit});
        }
}

static void test_random_plans(void **state)
{
    struct home_table *table;
    struct tally t = {0};
    struct arena a;
    struct err e = {0};
    (void)state;
    arena_init(&a, (size_t)16 << 20);
    assert_int_equal(home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e), 0);
    for (uint32_t i = 0; i < N_HOMES; i++) {
        char text[8192];
        struct m_home h;
        struct home_file *f;
        struct home_states *s;
        make_home(&h);
        put_home(&h, text, sizeof(text));
        if (home_file_read_text(&f, table, text, strlen(text), "random", &e) < 0)
            fail_msg("%s\n%s", e.msg, text);
        assert_int_equal(home_states_create(&s, NULL, &e), 0);
        report_states(s, &h);
        const struct gate g = {table, f, s};
        for (uint32_t k = 0; k < N_PLANS; k++) {
            struct plan p;
            make_plan(&p, &h);
            run_plan(&g, &h, &p, &a, &t);
            arena_reset(&a, (size_t)16 << 20);
        }
        home_states_destroy(s);
        home_file_unref(f);
    }
    print_message(
        "%u plans, %u deeds sent (%u confirmed, %u by changes); certain: %u, certain not: %u\n",
        t.plans, t.sent, t.confirmed, t.changes, t.must, t.must_not);
    assert_int_equal(t.plans, N_HOMES * N_PLANS);
    /* the plans are not all alike */
    assert_true(t.sent > 15000 && t.must > 5000 && t.must_not > 10000 && t.changes > 1000);
    home_table_close(table);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
