/* ear.c - see ear.h. */
#include "voice/ear.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define MS(ms) ((ms)*EAR_RATE / 1000u)
#define FRAME MS(20u)
#define PRE_ROLL MS(600u)
#define AGAIN MS(320u)   /* between two hearings while there is sound */
#define SETTLED MS(140u) /* of quiet: the words are heard before the turn is over */
#define PAUSE_COMPLETE MS(260u)
#define PAUSE_UNFINISHED MS(900u)
#define COVERED MS(60u)   /* of sound behind the speech: then all of its words were heard */
#define LOUD 2.5f         /* times the background */
#define LEAST_LOUD 30.0f  /* of 32768 */
#define FLOOR_RISE 1.01f  /* of the background, by frame: doubles in 1.4 seconds */
#define FLOOR_FIRST 60.0f /* at most: somebody may speak from the first moment */
#define FULL_SCALE 32700

void ear_init(struct ear *x)
{
    *x = (struct ear){0};
}

void ear_fini(struct ear *x)
{
    mem_free(x->sound);
    *x = (struct ear){0};
}

static float loudness(const int16_t *s, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (float)s[i] * (float)s[i];
    return sqrtf(sum / (float)n);
}

/* The background falls at once and rises slowly: speech does not become background. */
static void measure(struct ear *x)
{
    for (; x->n_framed + FRAME <= x->n; x->n_framed += FRAME) {
        const float rms = loudness(x->sound + x->n_framed, FRAME);
        x->floor = x->floor == 0 ? FLOOR_FIRST : x->floor * FLOOR_RISE;
        x->floor = rms < x->floor ? rms : x->floor;
        x->floor = x->floor < 1.0f ? 1.0f : x->floor;
        x->peak = rms > x->peak ? rms : x->peak;
        if (rms > LEAST_LOUD && rms > LOUD * x->floor)
            x->loud_to = x->n_framed + FRAME;
    }
}

static bool has_speech(const struct ear *x)
{
    return x->last.speech_to > x->last.speech_from;
}

/* Forgets the first n samples. */
static void forget(struct ear *x, uint32_t n)
{
    n = n < x->n ? n : x->n;
    n -= n % FRAME; /* frames stay where they are */
    if (x->n > n)
        memmove(x->sound, x->sound + n, (x->n - n) * sizeof(*x->sound));
    x->before += n;
    x->n -= n;
    x->n_framed = x->n_framed > n ? x->n_framed - n : 0;
    x->loud_to = x->loud_to > n ? x->loud_to - n : 0;
    x->asked = x->asked > n ? x->asked - n : 0;
    x->last.n = x->last.n > n ? x->last.n - n : 0;
}

static int reserve(struct ear *x, uint32_t n)
{
    if (n <= x->cap)
        return 0;
    uint32_t cap = x->cap ? x->cap : 2 * EAR_RATE;
    while (cap < n)
        cap *= 2;
    int16_t *more = mem_realloc(x->sound, cap * sizeof(*more));
    if (!more)
        return SHOAL_ENOMEM;
    x->sound = more;
    x->cap = cap;
    return 0;
}

int64_t ear_feed(struct ear *x, const int16_t *samples, uint32_t n)
{
    if (!has_speech(x) && !x->hears && x->n > PRE_ROLL && x->loud_to <= x->asked) {
        forget(x, x->n - PRE_ROLL); /* quiet for a while: hours of it cost nothing */
        x->asked = x->n;
    }
    const uint32_t room = EAR_MOST - x->n, take = n < room ? n : room;
    if (reserve(x, x->n + take) < 0)
        return SHOAL_ENOMEM;
    memcpy(x->sound + x->n, samples, take * sizeof(*samples));
    for (uint32_t i = 0; i < take; i++)
        x->n_clipped += samples[i] > FULL_SCALE || samples[i] < -FULL_SCALE;
    x->n += take;
    measure(x);
    return take;
}

void ear_finish(struct ear *x)
{
    x->finished = true;
}

/* Nothing was loud since the last hearing, which ended a little behind the speech. */
static bool is_covered(const struct ear *x)
{
    return x->last.n > 0 && x->loud_to <= x->last.n &&
           (x->last.n == x->n || x->last.speech_to + COVERED <= x->last.n);
}

/* Samples of silence behind the speech, as far as is known. */
static uint32_t silence(const struct ear *x)
{
    const uint32_t to = x->loud_to <= x->last.n ? x->n : x->last.n;
    return to > x->last.speech_to ? to - x->last.speech_to : 0;
}

static bool is_over(const struct ear *x)
{
    if (x->finished)
        return is_covered(x);
    if (!has_speech(x))
        return false;
    const uint32_t pause = x->last.unfinished ? PAUSE_UNFINISHED : PAUSE_COMPLETE;
    return (is_covered(x) && silence(x) >= pause) || (x->n == EAR_MOST && x->last.n == x->n);
}

static bool wants_hearing(const struct ear *x)
{
    const uint32_t fresh = x->n - x->asked;
    if (x->finished || x->n == EAR_MOST)
        return x->last.n < x->n;
    if (!has_speech(x))
        return x->loud_to > x->asked && fresh >= AGAIN;
    if (x->loud_to > x->asked && x->n - x->loud_to >= SETTLED)
        return true; /* a pause began: perhaps the last one */
    return fresh >= AGAIN && !(is_covered(x) && x->loud_to <= x->asked);
}

enum ear_next ear_next(const struct ear *x)
{
    if (x->hears)
        return EAR_WAIT;
    if (is_over(x) || (x->finished && x->n == 0))
        return EAR_TURN;
    return wants_hearing(x) ? EAR_HEAR : EAR_WAIT;
}

uint32_t ear_begin(struct ear *x)
{
    x->hears = true;
    x->asked = x->n;
    return x->n;
}

void ear_heard(struct ear *x, const struct ear_heard *h)
{
    x->hears = false;
    x->last = *h;
    if (h->speech_to > h->speech_from || x->finished)
        return;
    if (h->n > PRE_ROLL) /* noise */
        forget(x, h->n - PRE_ROLL);
}

void ear_missed(struct ear *x)
{
    x->hears = false;
}

void ear_next_turn(struct ear *x)
{
    const bool full = x->last.speech_to >= x->last.n;
    forget(x, x->finished ? x->n : full ? x->last.n : x->last.speech_to);
    if (x->finished)
        x->n = x->n_framed = 0; /* the rest of a frame */
    x->last = (struct ear_heard){0};
    x->asked = 0;
    x->peak = 0;
    x->n_clipped = 0;
    x->finished = false;
}

void ear_drop(struct ear *x)
{
    x->hears = false;
    x->before += x->n;
    x->n = x->n_framed = x->loud_to = 0;
    ear_next_turn(x);
}
