/* listener.c - see listener.h. */
#include "voice/listener.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "voice/ear.h"
#include "voice/hearing.h"
#include "voice/unfinished.h"
#include "voice/wake.h"

#define MAX_TEXT_BYTES ((size_t)64 << 10)
#define MAX_MISSES 3u         /* hearings of a turn that may fail */
#define AWAKE (8u * EAR_RATE) /* samples behind the wake word in which a turn must begin */

struct listener {
    struct flow_owner *owner;
    const struct listener_ops *ops;
    void *ctx;
    struct ear ear;
    struct buf waiting; /* samples that the turn has no room for */
    bool ends;          /* finish was called; what waits is part of the turn */
    bool was_full;
    struct hearing *hearing; /* or NULL */
    uint32_t n_heard_of;     /* samples that it hears */
    uint32_t cut;            /* the turn ends here, though more was said; 0: it does not */
    struct buf text;         /* of the last hearing */
    char language[8];        /* of the text */
    float confidence;
    uint32_t n_hearings, n_misses;
    bool started;          /* the client knows that somebody speaks */
    struct wake_ear *wake; /* NULL: it is always awake */
    bool sleeps;
    uint64_t woken_at; /* samples of the stream */
    bool goes_on;      /* go_on is at work: callbacks inside it do not start it again */
};

int listener_create(struct listener **out, struct flow_owner *o, const struct listener_ops *ops,
                    void *ctx, struct err *e)
{
    struct listener *l = mem_zalloc(sizeof(*l));
    *out = l;
    if (!l)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a listener");
    l->owner = o;
    l->ops = ops;
    l->ctx = ctx;
    ear_init(&l->ear);
    buf_init(&l->text, MAX_TEXT_BYTES);
    buf_init(&l->waiting, (LISTENER_MOST + EAR_MOST) * sizeof(int16_t));
    return 0;
}

void listener_destroy(struct listener *l)
{
    if (!l)
        return;
    if (l->hearing)
        hearing_cancel(l->hearing);
    ear_fini(&l->ear);
    wake_ear_destroy(l->wake);
    buf_fini(&l->text);
    buf_fini(&l->waiting);
    mem_free(l);
}

void listener_await(struct listener *l, struct wake_ear *wake)
{
    l->wake = wake;
    l->sleeps = true;
}

/* ---- the wake word ---- */

/* Nothing is heard until the word is said again.  What the ear has heard of the time behind the
 * turn may hold it. */
static void fall_asleep(struct listener *l)
{
    struct ear *x = &l->ear;
    struct buf *w = &l->waiting;
    const size_t n = x->n * sizeof(*x->sound);
    if (n > 0 && buf_room(w, n)) {
        memmove(w->data + n, w->data, w->len);
        memcpy(w->data, x->sound, n);
        buf_used(w, n);
        x->before -= x->n; /* ear_drop counts them as heard */
    }
    ear_drop(x);
    l->sleeps = true;
    wake_ear_reset(l->wake);
}

/* Looks for the word in what waits; returns how many samples were looked at. */
static uint32_t sleep_through(struct listener *l)
{
    const uint32_t n = (uint32_t)(l->waiting.len / sizeof(int16_t));
    const int64_t at = wake_ear_feed(l->wake, (const int16_t *)(const void *)l->waiting.data, n);
    const uint32_t used = at < 0 ? n : (uint32_t)at;
    l->ear.before += used;
    if (at < 0)
        return used;
    l->sleeps = false;
    l->woken_at = l->ear.before;
    if (l->ops->woken)
        l->ops->woken(l->ctx);
    return used;
}

/* Whether the word was said by mistake. */
static bool was_awake_long(const struct listener *l)
{
    return l->wake && !l->sleeps && !l->started && !l->hearing && !l->ear.finished &&
           l->ear.before + l->ear.n > l->woken_at + AWAKE;
}

static void next_turn(struct listener *l)
{
    ear_next_turn(&l->ear);
    buf_clear(&l->text);
    l->confidence = 0;
    l->n_hearings = l->n_misses = l->cut = 0;
    l->started = false;
}

static void tell_started(struct listener *l, const struct ear_heard *h)
{
    if (l->started || !h->words || h->speech_to <= h->speech_from)
        return;
    l->started = true;
    if (l->ops->started)
        l->ops->started(l->ctx, (double)(l->ear.before + h->speech_from) / EAR_RATE);
}

static void give_turn(struct listener *l)
{
    const struct ear *x = &l->ear;
    const struct listener_turn t = {
        .text = buf_str(&l->text),
        .text_bytes = l->text.len,
        .language = l->language,
        .confidence = l->confidence,
        .start_s = (double)(x->before + x->last.speech_from) / EAR_RATE,
        .end_s = (double)(x->before + x->last.speech_to) / EAR_RATE,
        .samples = x->sound,
        .n_samples = x->n,
        .n_hearings = l->n_hearings,
        .last = x->finished,
        .over_ns = clock_ns(),
        .clipped = x->n ? (float)x->n_clipped / (float)x->n : 0,
    };
    log_info("voice", "a turn of %.1f s, %u hearings; neither sound nor words are kept",
             (double)x->n / EAR_RATE, l->n_hearings);
    const bool is_turn = t.text_bytes > 0 || x->finished; /* a cough is none */
    if (is_turn)
        l->ops->turn(l->ctx, &t);
    next_turn(l);
    if (l->wake && is_turn)
        fall_asleep(l);
}

/* The words up to a pause that was found afterwards are a turn; what follows is the next one. */
static void give_part(struct listener *l)
{
    const bool finished = l->ear.finished;
    l->cut = 0;
    l->ear.finished = false;
    give_turn(l);
    l->ear.finished = finished;
}

static void take_words(struct listener *l, const struct hearing_words *w)
{
    const bool same =
        w->text_bytes == l->text.len && memcmp(w->text, buf_str(&l->text), w->text_bytes) == 0;
    const struct ear_heard h = {.n = l->n_heard_of,
                                .speech_from = w->speech_from,
                                .speech_to = w->speech_to,
                                .words = w->text_bytes > 0,
                                .unfinished = unfinished(w->text, w->text_bytes)};
    buf_clear(&l->text);
    buf_put(&l->text, w->text, w->text_bytes);
    snprintf(l->language, sizeof(l->language), "%s", w->parts ? w->parts->language : "");
    l->confidence = w->confidence;
    l->n_misses = 0;
    tell_started(l, &h);
    ear_heard(&l->ear, &h);
    if (l->cut) {
        give_part(l);
        return;
    }
    l->cut = w->pause;
    if (!same && w->text_bytes > 0 && l->ops->partial)
        l->ops->partial(l->ctx, w->text, w->text_bytes);
}

static void go_on(struct listener *l);

static void on_heard(void *ctx, const struct hearing_words *w)
{
    struct listener *l = ctx;
    l->hearing = NULL;
    if (!w->failure) {
        take_words(l, w);
    } else if (++l->n_misses < MAX_MISSES && w->failure->kind != FAILURE_NOT_FOUND &&
               w->failure->kind != FAILURE_INVALID) {
        ear_missed(&l->ear);
    } else {
        ear_drop(&l->ear);
        next_turn(l);
        l->ops->failed(l->ctx, w->failure);
    }
    go_on(l);
}

static void hear(struct listener *l)
{
    struct request *r = l->ops->request(l->ctx);
    struct failure f;
    l->n_heard_of = ear_begin(&l->ear);
    if (l->cut && l->cut < l->n_heard_of)
        l->n_heard_of = l->cut;
    l->n_hearings++;
    if (r &&
        hearing_window(r, l->ear.sound, l->n_heard_of,
                       l->ops->phrases ? l->ops->phrases(l->ctx) : NULL, buf_str(&l->text)) == 0) {
        hearing_start(&l->hearing, l->owner, r, on_heard, l);
        return;
    }
    if (r)
        flow_give_request(l->owner, r);
    failure_of(&f, SHOAL_ENOMEM, "out of memory for a sound");
    l->n_misses = MAX_MISSES;
    on_heard(l, &(struct hearing_words){.failure = &f, .text = ""});
}

/* Gives the ear what waits, or looks for the wake word in it; false: nothing was taken. */
static bool refill(struct listener *l)
{
    struct buf *w = &l->waiting;
    const uint32_t n = (uint32_t)(w->len / sizeof(int16_t));
    const int64_t took = n == 0      ? 0
                         : l->sleeps ? sleep_through(l)
                                     : ear_feed(&l->ear, (const int16_t *)(const void *)w->data, n);
    if (took > 0) {
        w->len -= (size_t)took * sizeof(int16_t);
        memmove(w->data, w->data + (size_t)took * sizeof(int16_t), w->len);
    }
    if (l->ends && w->len == 0) {
        l->ends = false;
        ear_finish(&l->ear);
        return true;
    }
    return took > 0;
}

static void tell_room(struct listener *l)
{
    const bool full = listener_full(l), room = l->was_full && !full;
    l->was_full = full;
    if (room && l->ops->room)
        l->ops->room(l->ctx);
}

static void go_on(struct listener *l)
{
    if (l->goes_on)
        return;
    l->goes_on = true;
    for (bool more = true; more;) {
        const enum ear_next next = ear_next(&l->ear);
        if (was_awake_long(l)) {
            next_turn(l);
            fall_asleep(l);
            if (l->ops->asleep)
                l->ops->asleep(l->ctx);
            continue;
        }
        if (next == EAR_HEAR || (l->cut && !l->ear.hears))
            hear(l);
        else if (next == EAR_TURN)
            give_turn(l);
        else
            more = refill(l);
    }
    l->goes_on = false;
    tell_room(l);
}

int listener_feed(struct listener *l, const int16_t *samples, uint32_t n)
{
    int64_t took = 0;
    if (l->waiting.len == 0 && !l->ends && !l->sleeps)
        took = ear_feed(&l->ear, samples, n);
    if (took >= 0 && took < n)
        buf_put(&l->waiting, samples + took, (n - (size_t)took) * sizeof(*samples));
    int rc = took < 0 ? (int)took : l->waiting.rc == SHOAL_ELIMIT ? SHOAL_EBUSY : l->waiting.rc;
    l->waiting.rc = 0;
    l->was_full = l->was_full || listener_full(l);
    go_on(l);
    return rc;
}

/* Words that are being heard are not the last ones: the whole turn is heard instead. */
static void drop_partial(struct listener *l)
{
    if (!l->hearing || l->waiting.len > 0 || l->cut || l->ear.loud_to <= l->n_heard_of)
        return;
    hearing_cancel(l->hearing);
    l->hearing = NULL;
    ear_missed(&l->ear);
}

void listener_finish(struct listener *l)
{
    l->ends = true;
    drop_partial(l);
    go_on(l);
}

bool listener_full(const struct listener *l)
{
    return l->waiting.len > LISTENER_MOST / 2 * sizeof(int16_t);
}

bool listener_works(const struct listener *l)
{
    return l->hearing || l->ear.finished || l->ends || l->waiting.len > 0;
}
