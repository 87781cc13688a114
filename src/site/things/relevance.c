/* relevance.c - see relevance.h. */
#include "site/things/relevance.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "things/alarm.h"

#define MAX_WORDS 64u
#define MIN_STEM 4u   /* letters that two forms of a word share, at least */
#define MAX_ENDING 3u /* letters in which they may differ */
#define NEAR 5u       /* words between what is measured and how it is wrong */
#define WHAT 0.4      /* the share of naming what is measured */
#define HOW 0.3       /* ... and near it, how it is wrong */
#define MORE 0.3      /* ... and the machine, another sensor that shows it, or what to do */

/* A word in a text. */
struct word {
    const char *p;
    size_t n;
};

/* ---- words ---- */

/* Letters and what is beyond ASCII; a lone digit or letter is no word. */
static bool in_word(char c)
{
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* The next word from *at on; false: none. */
static bool next_word(const char **at, const char *end, struct word *out)
{
    const char *p = *at;
    for (;;) {
        while (p < end && !in_word(*p))
            p++;
        out->p = p;
        while (p < end && in_word(*p))
            p++;
        out->n = (size_t)(p - out->p);
        if (out->n != 1)
            break;
    }
    *at = p;
    return out->n > 0;
}

/* Forms of one word: they begin alike and differ in a short ending. */
static bool same_word(struct word a, struct word b)
{
    size_t n = 0;
    while (n < a.n && n < b.n && tolower((unsigned char)a.p[n]) == tolower((unsigned char)b.p[n]))
        n++;
    if (n == a.n && n == b.n)
        return true;
    return n >= MIN_STEM && a.n - n <= MAX_ENDING && b.n - n <= MAX_ENDING;
}

/* Words that say nothing about what is measured. */
static bool is_empty(struct word w)
{
    static const char *const words[] = {"the",    "of",    "and",  "in",    "on",   "at",     "to",
                                        "for",    "from",  "a",    "an",    "is",   "its",    "by",
                                        "sensor", "value", "unit", "total", "mean", "average"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == w.n && strncasecmp(words[i], w.p, w.n) == 0)
            return true;
    return false;
}

/* Adds the words of a text to n others; returns how many there are then. */
static uint32_t take_words(const char *text, struct word out[MAX_WORDS], uint32_t n, size_t bytes,
                           bool all)
{
    const char *at = text, *end = text + bytes;
    struct word w;
    while (n < MAX_WORDS && next_word(&at, end, &w))
        if (all || !is_empty(w))
            out[n++] = w;
    return n;
}

static bool is_one_of(struct word w, const struct word *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (same_word(w, words[i]))
            return true;
    return false;
}

static uint32_t count(const struct word *words, uint32_t n, const struct word *text,
                      uint32_t n_text)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++)
        found += is_one_of(words[i], text, n_text);
    return found;
}

/* ---- the alarm ---- */

const char *relevance_words(const struct alarm_event *e)
{
    const struct alarm_channel *c = &e->channels[0];
    double than = isfinite(e->limit) && e->kind == ALARM_LIMIT ? e->limit : c->before;
    switch (e->kind) {
    case ALARM_NOISE:
        return "unstable fluctuating erratic noise";
    case ALARM_STUCK:
        return "stuck frozen constant sensor";
    case ALARM_LOST:
        return "lost signal sensor cable connection";
    case ALARM_CYCLE:
        return "continuous continuously constantly stop switch cycle";
    case ALARM_PATTERN:
        return "unusual wear worn";
    case ALARM_LIMIT:
    case ALARM_RATE:
    case ALARM_RANGE:
    case ALARM_SPIKE:
    case ALARM_SHIFT:
    case ALARM_DRIFT:
    case ALARM_N_KINDS:
        break;
    }
    return c->value > than   ? "high excessive increased rise above exceed over"
           : c->value < than ? "low decreased drop fall below loss under"
                             : "";
}

/* Words with which a manual says what is behind it, or what to do. */
static const char remedies[] =
    "check replace inspect repair adjust clean lubricate grease tighten "
    "stop worn wear leak clogged fault cause maintenance shutdown refill";

struct subject {
    struct word what[MAX_WORDS], how[MAX_WORDS], more[MAX_WORDS];
    uint32_t n_what, n_how, n_more;
};

static void describe(struct subject *s, const struct alarm_event *e)
{
    const char *title = e->channels[0].title, *how = relevance_words(e);
    s->n_what = take_words(title, s->what, 0, strlen(title), false);
    if (s->n_what == 0) /* "sensor 3" is all there is */
        s->n_what = take_words(title, s->what, 0, strlen(title), true);
    s->n_how = take_words(how, s->how, 0, strlen(how), true);
    s->n_more = take_words(remedies, s->more, 0, strlen(remedies), true);
    s->n_more = take_words(e->machine_title, s->more, s->n_more, strlen(e->machine_title), false);
    for (uint32_t i = 1; i < e->n_channels; i++)
        s->n_more = take_words(e->channels[i].title, s->more, s->n_more,
                               strlen(e->channels[i].title), false);
}

/* Whether a word for how it is wrong is near one for what is measured: "high vibration". */
static bool says_how(const struct subject *s, const struct word *text, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!is_one_of(text[i], s->what, s->n_what))
            continue;
        uint32_t from = i > NEAR ? i - NEAR : 0, to = i + NEAR < n ? i + NEAR : n - 1;
        for (uint32_t k = from; k <= to; k++)
            if (k != i && is_one_of(text[k], s->how, s->n_how))
                return true;
    }
    return false;
}

/* Of one sentence, whose heading is in front of it. */
static double rate(const struct subject *s, const struct word *text, uint32_t n)
{
    uint32_t what = count(s->what, s->n_what, text, n);
    return what == 0 ? 0 : WHAT * what / s->n_what + HOW * says_how(s, text, n);
}

double relevance_of(const struct alarm_event *e, const char *heading, const char *passage)
{
    struct word text[MAX_WORDS];
    struct subject s;
    double best = 0;
    bool more = false;
    if (e->n_channels == 0)
        return 0;
    describe(&s, e);
    uint32_t n_heading = heading ? take_words(heading, text, 0, strlen(heading), true) : 0;
    n_heading = n_heading < MAX_WORDS / 2 ? n_heading : MAX_WORDS / 2;
    for (const char *p = passage; *p;) {
        size_t bytes = strcspn(p, ".!?\n");
        uint32_t n = take_words(p, text, n_heading, bytes, true);
        best = fmax(best, rate(&s, text, n));
        more = more || count(s.more, s.n_more, text, n) > 0;
        p += bytes + (p[bytes] != '\0');
    }
    return best > 0 && more ? best + MORE : best;
}
