/* wake.c - see wake.h. */
#include "voice/wake.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "host/pack.h"
#include "score/recurrent.h"
#include "voice/log_mel.h"

#define SETTLES 20u /* frames after a start in which nothing is decided: no word is so short */

struct wake {
    struct recurrent *net;
    struct log_mel *mel;
    struct recurrent_info info;
};

struct wake_ear {
    const struct wake *wake;
    int16_t frame[LOG_MEL_FRAME];
    uint32_t n_frame; /* samples in it */
    float *bands;     /* [hop][LOG_MEL_BANDS]: what the next score needs */
    uint32_t n_bands; /* frames in it */
    uint32_t n_heard; /* frames, up to SETTLES */
    float *state;
    void *scratch;
    float peak;
};

static int check(const struct recurrent_info *i, struct err *e)
{
    if (i->channels == LOG_MEL_BANDS && i->n_outputs == 1 && i->stateful && i->has_threshold)
        return 0;
    return err_set(e, SHOAL_EFORMAT,
                   "a wake word has %u channels, one output with a threshold, and a state; this "
                   "one has %u, %u, %s and %s",
                   LOG_MEL_BANDS, i->channels, i->n_outputs,
                   i->has_threshold ? "a threshold" : "no threshold",
                   i->stateful ? "a state" : "none");
}

int wake_open(struct wake **out, const char *path, struct err *e)
{
    struct wake *w = mem_zalloc(sizeof(*w));
    *out = NULL;
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a wake word");
    int rc = recurrent_open(&w->net, path, NULL, e);
    if (rc == 0) {
        w->info = recurrent_info(w->net);
        rc = check(&w->info, e);
    }
    if (rc == 0)
        rc = log_mel_create(&w->mel, e);
    if (rc < 0) {
        wake_close(w);
        return rc;
    }
    *out = w;
    return 0;
}

static bool same_words(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        const char x = *a == '-' || *a == '_' ? ' ' : *a, y = *b == '-' || *b == '_' ? ' ' : *b;
        if (tolower((unsigned char)x) != tolower((unsigned char)y))
            return false;
    }
    return *a == *b;
}

/* A table of the pack whose file is as the manifest says. */
static const struct pack_table *verified(const struct pack *p, const char *name, int *rc,
                                         struct err *e)
{
    const struct pack_table *t = *rc == 0 ? pack_find_table(p, name) : NULL;
    if (*rc == 0 && !t)
        *rc = err_set(e, SHOAL_ENOTFOUND, "there is no wake word among the included models");
    if (*rc == 0)
        *rc = pack_verify_table(t, e);
    return t;
}

static int open_pack(struct wake **out, const char *word, struct err *e)
{
    struct pack *p = NULL;
    *out = NULL;
    int rc = pack_open(&p, NULL, e);
    const struct pack_table *config = verified(p, "wake", &rc, e);
    (void)verified(p, "wake-weights", &rc, e); /* beside the config */
    if (rc == 0)
        rc = wake_open(out, config->file.path, e);
    if (rc == 0 && word && !same_words(word, wake_word(*out))) {
        rc = err_set(e, SHOAL_ENOTFOUND,
                     "the included wake word is \"%s\", not \"%.60s\": give the folder of one "
                     "that training/voice/wake.py has made",
                     wake_word(*out), word);
        wake_close(*out);
        *out = NULL;
    }
    pack_close(p);
    return rc;
}

int wake_open_named(struct wake **out, const char *name, struct err *e)
{
    return name && strchr(name, '/') ? wake_open(out, name, e) : open_pack(out, name, e);
}

void wake_close(struct wake *w)
{
    if (!w)
        return;
    recurrent_close(w->net);
    log_mel_destroy(w->mel);
    mem_free(w);
}

const char *wake_word(const struct wake *w)
{
    return w->info.output_names[0];
}

int wake_ear_create(struct wake_ear **out, const struct wake *w, struct err *e)
{
    struct wake_ear *x = mem_zalloc(sizeof(*x));
    *out = NULL;
    if (x) {
        x->wake = w;
        x->bands = mem_zalloc_n(w->info.hop, LOG_MEL_BANDS * sizeof(float));
        x->state = mem_zalloc_n(recurrent_state_floats(w->net), sizeof(float));
        x->scratch = mem_aligned(recurrent_scratch_bytes(w->net));
    }
    if (!x || !x->bands || !x->state || !x->scratch) {
        wake_ear_destroy(x);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a wake word");
    }
    wake_ear_reset(x);
    *out = x;
    return 0;
}

void wake_ear_destroy(struct wake_ear *x)
{
    if (!x)
        return;
    mem_free(x->bands);
    mem_free(x->state);
    mem_free(x->scratch);
    mem_free(x);
}

void wake_ear_reset(struct wake_ear *x)
{
    x->n_frame = x->n_bands = x->n_heard = 0;
    x->peak = 0;
    recurrent_reset(x->wake->net, x->state);
}

/* A whole frame; true: the word ends here. */
static bool hear_frame(struct wake_ear *x)
{
    const struct wake *w = x->wake;
    float score = 0;
    log_mel_frame(w->mel, x->frame, x->bands + (size_t)x->n_bands++ * LOG_MEL_BANDS);
    memmove(x->frame, x->frame + LOG_MEL_HOP, (LOG_MEL_FRAME - LOG_MEL_HOP) * sizeof(*x->frame));
    x->n_frame = LOG_MEL_FRAME - LOG_MEL_HOP;
    x->n_heard += x->n_heard < SETTLES;
    if (x->n_bands < w->info.hop)
        return false;
    x->n_bands = 0;
    recurrent_step(w->net, x->state, x->bands, &score, x->scratch);
    if (x->n_heard < SETTLES)
        return false;
    x->peak = score > x->peak ? score : x->peak;
    return (double)score >= w->info.threshold;
}

int64_t wake_ear_feed(struct wake_ear *x, const int16_t *samples, uint32_t n)
{
    for (uint32_t at = 0; at < n;) {
        const uint32_t room = LOG_MEL_FRAME - x->n_frame, k = n - at < room ? n - at : room;
        memcpy(x->frame + x->n_frame, samples + at, k * sizeof(*samples));
        x->n_frame += k;
        at += k;
        if (x->n_frame == LOG_MEL_FRAME && hear_frame(x)) {
            wake_ear_reset(x);
            return at;
        }
    }
    return -1;
}

float wake_ear_peak(const struct wake_ear *x)
{
    return x->peak;
}

const char *wake_ear_word(const struct wake_ear *x)
{
    return wake_word(x->wake);
}
