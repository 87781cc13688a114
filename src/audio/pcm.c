/* pcm.c - see pcm.h. */
#include "audio/pcm.h"

#include <math.h>
#include <string.h>

#include "audio/audio_libs.h"
#include "audio/audio_read.h"
#include "base/mem.h"

#define BLOCK 2048u /* frames at a time */
#define MAX_FRAME_BYTES ((size_t)AUDIO_MAX_CHANNELS * 4u)

struct pcm {
    struct pcm_form form;
    size_t frame_bytes;
    const struct audio_libs *libs;
    SRC_STATE *resampler; /* NULL: the rate is right */
    uint8_t rest[MAX_FRAME_BYTES];
    size_t n_rest;
    uint64_t n_frames;
    float mono[BLOCK];
};

static int check(const struct pcm_form *f, struct err *e)
{
    if (f->rate < AUDIO_MIN_RATE || f->rate > AUDIO_MAX_RATE)
        return err_set(e, SHOAL_EINVAL, "%u samples a second, expected %d to %d", f->rate,
                       AUDIO_MIN_RATE, AUDIO_MAX_RATE);
    if (f->channels < 1 || f->channels > AUDIO_MAX_CHANNELS)
        return err_set(e, SHOAL_EINVAL, "%u channels, expected 1 to %d", f->channels,
                       AUDIO_MAX_CHANNELS);
    if (f->width < 1 || f->width > 4 || (f->is_float && f->width != 4))
        return err_set(e, SHOAL_EINVAL, "samples of %u bytes, expected 1 to 4%s", f->width,
                       f->is_float ? ", floats 4" : "");
    return 0;
}

int pcm_create(struct pcm **out, const struct pcm_form *form, struct err *e)
{
    int rc = check(form, e), failed = 0;
    struct pcm *p = rc == 0 ? mem_zalloc(sizeof(*p)) : NULL;
    *out = NULL;
    if (rc == 0 && !p)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for sound");
    if (rc < 0)
        return rc;
    p->form = *form;
    if (p->form.to_rate == 0)
        p->form.to_rate = AUDIO_RATE;
    p->frame_bytes = (size_t)form->channels * form->width;
    if (form->rate != p->form.to_rate && (rc = audio_libs_get(&p->libs, e)) == 0) {
        p->resampler = p->libs->src_new(SRC_SINC_FASTEST, 1, &failed);
        rc = p->resampler ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for sound");
    }
    if (rc < 0) {
        pcm_destroy(p);
        return rc;
    }
    *out = p;
    return 0;
}

void pcm_destroy(struct pcm *p)
{
    if (!p)
        return;
    if (p->resampler)
        p->libs->src_delete(p->resampler);
    mem_free(p);
}

static float sample(const struct pcm_form *f, const uint8_t *at)
{
    uint32_t bits = 0;
    float x;
    if (f->width == 1)
        return ((float)at[0] - 128.0f) / 128.0f;
    for (uint32_t i = 0; i < f->width; i++) /* to the upper bytes: the sign is that of 32 bits */
        bits |= (uint32_t)at[i] << (8 * (4 - f->width + i));
    if (!f->is_float)
        return (float)(int32_t)bits / 2147483648.0f;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static int to_mono(struct pcm *p, const uint8_t *at, uint32_t n, struct err *e)
{
    for (uint32_t i = 0; i < n; i++, at += p->frame_bytes) {
        float sum = 0;
        for (uint32_t c = 0; c < p->form.channels; c++)
            sum += sample(&p->form, at + c * p->form.width);
        if (!isfinite(sum))
            return err_set(e, SHOAL_EFORMAT,
                           "the sound has a value that is not a finite number at %.3f seconds",
                           (double)(p->n_frames + i) / p->form.rate);
        p->mono[i] = sum / (float)p->form.channels;
    }
    p->n_frames += n;
    return 0;
}

static void put(struct buf *out, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const float y = x[i] * 32768.0f;
        const int16_t s = (int16_t)(y >= 32767.0f    ? 32767
                                    : y <= -32768.0f ? -32768
                                                     : (int32_t)lrintf(y));
        buf_put(out, &s, sizeof(s));
    }
}

/* The block in the rate that is wanted. */
static int resample(struct pcm *p, uint32_t n, struct buf *out, struct err *e)
{
    float made[BLOCK];
    uint32_t at = 0;
    for (;;) {
        SRC_DATA d = {.data_in = p->mono + at,
                      .data_out = made,
                      .input_frames = (long)(n - at),
                      .output_frames = BLOCK,
                      .src_ratio = (double)p->form.to_rate / p->form.rate};
        const int failed = p->libs->src_process(p->resampler, &d);
        if (failed)
            return err_set(e, SHOAL_EFORMAT, "cannot resample the sound: %s",
                           p->libs->src_strerror(failed));
        put(out, made, (uint32_t)d.output_frames_gen);
        at += (uint32_t)d.input_frames_used;
        if (at == n && d.output_frames_gen < BLOCK)
            return 0;
    }
}

static int feed_frames(struct pcm *p, const uint8_t *at, size_t n_frames, struct buf *out,
                       struct err *e)
{
    int rc = 0;
    for (uint32_t n; rc == 0 && n_frames > 0; n_frames -= n, at += n * p->frame_bytes) {
        n = n_frames < BLOCK ? (uint32_t)n_frames : BLOCK;
        rc = to_mono(p, at, n, e);
        if (rc == 0 && p->resampler)
            rc = resample(p, n, out, e);
        else if (rc == 0)
            put(out, p->mono, n);
    }
    return rc == 0 && out->rc < 0 ? err_set(e, out->rc, "out of memory for sound") : rc;
}

int pcm_feed(struct pcm *p, const void *bytes, size_t n, struct buf *out, struct err *e)
{
    const uint8_t *at = bytes;
    int rc = 0;
    if (p->n_rest > 0) {
        const size_t more = p->frame_bytes - p->n_rest, take = n < more ? n : more;
        memcpy(p->rest + p->n_rest, at, take);
        p->n_rest += take;
        at += take;
        n -= take;
        if (p->n_rest < p->frame_bytes)
            return 0;
        p->n_rest = 0;
        rc = feed_frames(p, p->rest, 1, out, e);
    }
    const size_t whole = n / p->frame_bytes;
    if (rc == 0)
        rc = feed_frames(p, at, whole, out, e);
    p->n_rest = n - whole * p->frame_bytes;
    memcpy(p->rest, at + whole * p->frame_bytes, p->n_rest);
    return rc;
}
