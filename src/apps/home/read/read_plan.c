/* read_plan.c - see read_plan.h. */
#include "apps/home/read/read_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

/* clang-format off */
static const char *const verbs[] = {
    "on", "off", "toggle", "open", "close", "lock", "unlock", "set", "up", "down", "start", "stop", "pause", "resume",
    "next", "previous", "mute", "unmute", "play", "dock", "find", "arm", "disarm", "scene", "call", "message", "announce",
    "add", "remove", "clear", "create", "timer", "alarm", "remind", "event", "undo", "repeat", "answer",
    "ask", "cancel", "none", "other", "chat", NULL};
static const char *const classes[] = {
    "light", "switch", "fan", "cover", "blind", "curtain", "shutter", "shade", "awning", "door", "garage", "gate",
    "window", "lock", "climate", "heating", "cooling", "media", "vacuum", "mower", "camera", "siren", "valve", "pump",
    "machine", "appliance", "sensor", "person", "everything", "motion", "smoke", "gas", "leak", "co", "sound",
    "vibration", "presence", "battery", "problem", NULL};
static const char *const quantities[] = {
    "brightness", "color", "temperature", "humidity", "position", "volume", "speed", "mode", "pressure", "power",
    "energy", "flow", "level", "charge", "current", "voltage", "weight", "co2", "air", "light_level", "noise",
    "distance", "rpm", "ph", "concentration", "time_left", "frequency", "torque", "angle", "dose", "count",
    "consumption", "history", "state", "place", NULL};
static const char *const states[] = {
    "is_on", "is_off", "is_open", "is_closed", "is_locked", "is_unlocked", "is_running", "is_stopped", "is_home",
    "is_away", "is_detected", "is_clear", "is_low", "is_ok", "is_charging", "is_wet", "is_dry", "is_hot", "is_cold",
    "is_connected", "is_disconnected", "is_armed", "is_disarmed", "is_playing", "is_paused", "is_full", "is_empty",
    "is_problem", "is_occupied", "is_plugged", "is_unplugged", NULL};
static const char *const counts[] = {"any", "all", "which", "count", NULL};
static const char *const timer_words[] = {
    "set_one", "cancel_one", "pause_one", "resume_one", "more", "less", "change", "ask_one", "snooze", NULL};
static const char *const none_words[] = {
    "talk", "negated", "reported", "question", "condition", "retracted", "unclear", NULL};
static const char *const other_words[] = {
    "weather", "time", "date", "maths", "knowledge", "convert", "news", "joke", "recipe", "music_info", "like", "email",
    "contact", "social", "transport", "traffic", "taxi", "ticket", "takeaway", "recommend", "stock", "game",
    "translate", "shop", "money", "travel", "health", "work", "car", "help", "about", "manual", "assistant", NULL};
static const char *const chat_words[] = {
    "greet", "bye", "thanks", "praise", "wrong", "dontcare", "confirm", "again", "explain", "sorry", "how_are_you", NULL};
static const char *const answer_words[] = {"yes", "no", NULL};
static const char *const asked_words[] = {"list", "event", "here_all", NULL};
/* clang-format on */

static const char *listed(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return *list;
    return NULL;
}

bool read_plan_acts(const struct read_plan_act *x)
{
    const bool talks = strcmp(x->verb, "ask") == 0 || strcmp(x->verb, "none") == 0 ||
                       strcmp(x->verb, "other") == 0 || strcmp(x->verb, "chat") == 0 ||
                       strcmp(x->verb, "cancel") == 0;
    return !talks && !(x->word && strcmp(x->word, "ask_one") == 0);
}

/* ---- reading -------------------------------------------------------------------------------- */

#define MAX_TOKENS 64u

struct token_list {
    char text[1024];
    const char *token[MAX_TOKENS + 1]; /* the last one is NULL */
    uint32_t n, at;
};

static bool split(struct token_list *r, const char *text)
{
    char *save = NULL;
    if ((size_t)snprintf(r->text, sizeof(r->text), "%s", text) >= sizeof(r->text))
        return false;
    for (char *p = strtok_r(r->text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        if (r->n == MAX_TOKENS)
            return false;
        r->token[r->n++] = p;
    }
    return r->n > 0;
}

/* "t3" of the letter t; false: it is something else. */
static bool pointer(const char *token, char letter, uint32_t *number)
{
    if (!token || token[0] != letter || !ascii_is_digit(token[1]))
        return false;
    char *end;
    const unsigned long n = strtoul(token + 1, &end, 10);
    *number = (uint32_t)n;
    return *end == '\0' && n < 1000;
}

static bool add_line(struct read_plan_lines *to, uint32_t number, uint32_t max)
{
    if (number == 0 || number > max || to->n == READ_PLAN_MAX_THINGS)
        return false;
    for (uint32_t i = 0; i < to->n; i++)
        if (to->at[i] == number - 1) /* said twice is one */
            return true;
    to->at[to->n++] = (uint8_t)(number - 1);
    return true;
}

static bool read_span(struct token_list *r, struct read_plan_span *out)
{
    uint32_t from, to;
    if (out->to > 0 || !pointer(r->token[r->at], 'w', &from) ||
        !pointer(r->token[r->at + 1], 'w', &to) || to < from || to >= READ_PLAN_MAX_WORDS)
        return false;
    *out = (struct read_plan_span){from, to + 1};
    r->at += 2;
    return true;
}

/* Where the span of a role goes; NULL: no such role. */
static struct read_plan_span *role_of(struct read_plan_act *x, const char *token)
{
    const struct {
        const char *name;
        struct read_plan_span *span;
    } roles[] = {{"at", &x->at},          {"in", &x->in},         {"for", &x->lasts},
                 {"until", &x->until},    {"every", &x->every},   {"what", &x->what},
                 {"list", &x->list},      {"name", &x->name},     {"dur", &x->duration},
                 {"to_value", &x->value}, {"by_value", &x->value}};
    if (strcmp(token, "item") == 0)
        return x->n_items < READ_PLAN_MAX_ITEMS ? &x->items[x->n_items++] : NULL;
    if (strcmp(token, "at") == 0 && x->at.to > 0) /* the day and the time are said apart */
        return &x->also_at;
    for (uint32_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
        if (strcmp(roles[i].name, token) == 0)
            return roles[i].span;
    return NULL;
}

/* Words that belong to one verb only. */
static const char *const *words_of(const char *verb)
{
    if (strcmp(verb, "timer") == 0 || strcmp(verb, "alarm") == 0 || strcmp(verb, "remind") == 0 ||
        strcmp(verb, "event") == 0)
        return timer_words;
    return strcmp(verb, "none") == 0     ? none_words
           : strcmp(verb, "other") == 0  ? other_words
           : strcmp(verb, "chat") == 0   ? chat_words
           : strcmp(verb, "answer") == 0 ? answer_words
           : strcmp(verb, "ask") == 0    ? asked_words
                                         : NULL;
}

static bool set_once(const char **to, const char *word)
{
    const bool free = !*to;
    *to = word;
    return free;
}

static bool has_target(const struct read_plan_act *x)
{
    return x->things.n > 0 || x->class || x->unknown.to > 0;
}

enum read_result { READ_OTHER, READ_WRONG, READ_RIGHT };

static enum read_result read_pointer(struct read_plan_act *x, const char *token, bool excepted)
{
    uint32_t n;
    bool right;
    if (pointer(token, 't', &n)) {
        right = add_line(excepted ? &x->except : &x->things, n, READ_PLAN_MAX_THINGS);
    } else if (pointer(token, 'a', &n)) {
        right = add_line(excepted ? &x->except_areas : &x->areas, n, READ_PLAN_MAX_AREAS);
    } else if (pointer(token, 'f', &n)) {
        right = add_line(&x->floors, n, READ_PLAN_MAX_FLOORS);
    } else if (pointer(token, 'q', &n)) {
        right = !x->own && n > 0 && n <= READ_PLAN_MAX_OWN;
        x->own = n;
    } else {
        return READ_OTHER;
    }
    return right ? READ_RIGHT : READ_WRONG;
}

static enum read_result read_amount(struct read_plan_act *x, const char *token)
{
    static const char *const names[] = {"", "to_value", "by_value", "bit", "lot", "same"};
    for (uint32_t i = READ_PLAN_TO; i <= READ_PLAN_SAME; i++)
        if (strcmp(names[i], token) == 0) {
            const bool first = x->amount == READ_PLAN_NO_AMOUNT;
            x->amount = (enum read_plan_amount)i;
            return first ? READ_RIGHT : READ_WRONG;
        }
    return READ_OTHER;
}

static bool read_flag(struct read_plan_act *x, const char *token)
{
    bool *const flag = strcmp(token, "all") == 0          ? &x->all
                       : strcmp(token, "all_of") == 0     ? &x->all
                       : strcmp(token, "one") == 0        ? &x->one
                       : strcmp(token, "it") == 0         ? &x->it
                       : strcmp(token, "here") == 0       ? &x->here
                       : strcmp(token, "everywhere") == 0 ? &x->everywhere
                                                          : NULL;
    if (!flag)
        return false;
    *flag = true;
    return true;
}

/* One token, or a role with its span. */
static bool read_token(struct token_list *r, struct read_plan_act *x, bool *excepted)
{
    const char *token = r->token[r->at++], *word;
    const char *const *own = words_of(x->verb);
    const bool asks = strcmp(x->verb, "ask") == 0;
    const enum read_result line = read_pointer(x, token, *excepted);
    if (line != READ_OTHER)
        return line == READ_RIGHT;
    if (strcmp(token, "unknown") == 0)
        return read_span(r, has_target(x) ? &x->elsewhere : &x->unknown);
    if (strcmp(token, "except") == 0)
        return *excepted = true;
    if (own && !x->word && (word = listed(own, token)))
        return set_once(&x->word, word);
    if (asks && !has_target(x) && (word = listed(counts, token)))
        return set_once(&x->which, word);
    if ((word = listed(classes, token)))
        return set_once(&x->class, word);
    if ((word = listed(quantities, token)))
        return set_once(&x->quantity, word);
    if ((word = listed(states, token)))
        return set_once(&x->state, word);
    if (read_flag(x, token))
        return true;
    const enum read_result amount = read_amount(x, token);
    if (amount == READ_WRONG || (amount == READ_RIGHT && x->amount >= READ_PLAN_BIT))
        return amount == READ_RIGHT;
    struct read_plan_span *span = role_of(x, token);
    return span && read_span(r, span);
}

static bool read_act(struct token_list *r, struct read_plan_act *x)
{
    bool excepted = false;
    x->verb = listed(verbs, r->token[r->at++]);
    while (x->verb && r->token[r->at] && strcmp(r->token[r->at], "sep") != 0)
        if (!read_token(r, x, &excepted))
            return false;
    return x->verb != NULL;
}

bool read_plan_of(struct read_plan *out, const char *text)
{
    struct token_list r = {.n = 0};
    *out = (struct read_plan){.n = 0};
    if (!split(&r, text))
        return false;
    for (;;) {
        if (out->n == READ_PLAN_MAX_ACTS || !r.token[r.at] || !read_act(&r, &out->acts[out->n++]))
            return false;
        if (!r.token[r.at])
            return true;
        r.at++; /* sep */
    }
}
