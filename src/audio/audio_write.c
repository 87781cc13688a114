/* audio_write.c - see audio_write.h. */
#include "audio/audio_write.h"

#include <string.h>

#include "audio/audio_libs.h"
#include "base/mem.h"

#define MOST_BYTES ((size_t)1 << 31)
#define OPUS_RATE 24000u /* Opus knows a few rates only; this one is above those of voices */
#define BLOCK 4096u

struct audio_out {
    enum audio_form form;
    uint32_t rate;
    struct buf bytes;     /* not taken yet */
    sf_count_t taken, at; /* bytes that were taken; where the library writes next */
    /* with a library */
    const struct audio_libs *libs;
    SNDFILE *file;
    SRC_STATE *resampler; /* NULL: the rate is right */
};

static const struct {
    const char *name, *type;
    int format;    /* of libsndfile; 0: ours */
    uint32_t rate; /* 0: any */
} forms[] = {
    [AUDIO_FORM_WAV] = {"wav", "audio/wav", 0, 0},
    [AUDIO_FORM_PCM] = {"pcm", "audio/pcm", 0, 0},
    [AUDIO_FORM_FLAC] = {"flac", "audio/flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 0},
    [AUDIO_FORM_OPUS] = {"opus", "audio/ogg", SF_FORMAT_OGG | SF_FORMAT_OPUS, OPUS_RATE},
    [AUDIO_FORM_MP3] = {"mp3", "audio/mpeg", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 0},
};

bool audio_form_named(const char *name, enum audio_form *out)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strcmp(forms[i].name, name) == 0) {
            *out = (enum audio_form)i;
            return true;
        }
    return false;
}

static SF_INFO info_of(enum audio_form form, uint32_t rate)
{
    return (SF_INFO){.samplerate = (int)(forms[form].rate ? forms[form].rate : rate),
                     .channels = 1,
                     .format = forms[form].format};
}

int audio_form_check(enum audio_form form, uint32_t rate, struct err *e)
{
    const struct audio_libs *libs;
    if (!forms[form].format)
        return 0;
    int rc = audio_libs_get(&libs, e);
    if (rc < 0)
        return rc;
    const SF_INFO info = info_of(form, rate);
    return libs->format_check(&info)
               ? 0
               : err_set(e, SHOAL_EUNSUPPORTED, "the libsndfile of this system cannot write %s",
                         forms[form].name);
}

/* ---- bytes from the library --------------------------------------------------------------------
 */

static sf_count_t io_size(void *ctx)
{
    const struct audio_out *a = ctx;
    return a->taken + (sf_count_t)a->bytes.len;
}

static sf_count_t io_seek(sf_count_t offset, int whence, void *ctx)
{
    struct audio_out *a = ctx;
    const sf_count_t base = whence == SEEK_CUR ? a->at : whence == SEEK_END ? io_size(a) : 0;
    if (base + offset < 0 || base + offset > io_size(a))
        return -1;
    return a->at = base + offset;
}

static sf_count_t io_read(void *to, sf_count_t n, void *ctx)
{
    (void)to;
    (void)n;
    (void)ctx;
    return 0;
}

/* Changes of what was taken already are dropped. */
static sf_count_t io_write(const void *from, sf_count_t n, void *ctx)
{
    struct audio_out *a = ctx;
    for (sf_count_t i = 0; i < n;) {
        const sf_count_t at = a->at + i - a->taken, len = (sf_count_t)a->bytes.len;
        const char *p = (const char *)from + i;
        sf_count_t now = n - i;
        if (at < 0) {
            now = now < -at ? now : -at;
        } else if (at < len) {
            now = now < len - at ? now : len - at;
            memcpy(a->bytes.data + at, p, (size_t)now);
        } else {
            buf_put(&a->bytes, p, (size_t)now);
        }
        i += now;
    }
    a->at += n;
    return a->bytes.rc < 0 ? 0 : n;
}

static sf_count_t io_tell(void *ctx)
{
    return ((const struct audio_out *)ctx)->at;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

static void put_u32(struct buf *b, uint32_t x)
{
    buf_put(b, &x, sizeof(x)); /* little-endian, as the machines are that we run on */
}

/* A length that is not known is the largest one: readers go on to the end. */
static void put_wav_header(struct audio_out *a, uint64_t n_samples)
{
    const uint64_t bytes = n_samples * 2;
    const uint32_t length =
        n_samples == 0 || bytes > UINT32_MAX - 36 ? UINT32_MAX - 36 : (uint32_t)bytes;
    struct buf *b = &a->bytes;
    buf_puts(b, "RIFF");
    put_u32(b, length + 36);
    buf_puts(b, "WAVEfmt ");
    put_u32(b, 16);
    put_u32(b, 1 | 1u << 16); /* samples as they are, one channel */
    put_u32(b, a->rate);
    put_u32(b, a->rate * 2);
    put_u32(b, 2 | 16u << 16); /* bytes and bits of a sample */
    buf_puts(b, "data");
    put_u32(b, length);
}

static int open_library(struct audio_out *a, struct err *e)
{
    static SF_VIRTUAL_IO io = {io_size, io_seek, io_read, io_write, io_tell};
    SF_INFO info = info_of(a->form, a->rate);
    int rc = audio_form_check(a->form, a->rate, e), error = 0;
    if (rc == 0)
        rc = audio_libs_get(&a->libs, e);
    if (rc < 0)
        return rc;
    a->file = a->libs->open_virtual(&io, SFM_WRITE, &info, a);
    if (!a->file)
        return err_set(e, SHOAL_EUNSUPPORTED, "the libsndfile of this system cannot write %s",
                       forms[a->form].name);
    if ((uint32_t)info.samplerate != a->rate &&
        !(a->resampler = a->libs->src_new(SRC_SINC_FASTEST, 1, &error)))
        return err_set(e, SHOAL_ENOMEM, "resampler: %s", a->libs->src_strerror(error));
    return 0;
}

int audio_out_create(struct audio_out **out, enum audio_form form, uint32_t rate,
                     uint64_t n_samples, struct err *e)
{
    struct audio_out *a = mem_zalloc(sizeof(*a));
    *out = NULL;
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a sound");
    a->form = form;
    a->rate = rate;
    buf_init(&a->bytes, MOST_BYTES);
    if (form == AUDIO_FORM_WAV)
        put_wav_header(a, n_samples);
    const int rc = forms[form].format ? open_library(a, e) : 0;
    if (rc < 0) {
        audio_out_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

void audio_out_destroy(struct audio_out *a)
{
    if (!a)
        return;
    if (a->resampler)
        a->libs->src_delete(a->resampler);
    if (a->file)
        a->libs->close(a->file);
    buf_fini(&a->bytes);
    mem_free(a);
}

static int write_samples(struct audio_out *a, const int16_t *samples, size_t n, struct err *e)
{
    if (!a->file)
        buf_put(&a->bytes, samples, n * sizeof(*samples));
    else if (a->libs->writef_short(a->file, samples, (sf_count_t)n) != (sf_count_t)n)
        return err_set(e, SHOAL_EIO, "cannot write %s", forms[a->form].name);
    return a->bytes.rc < 0 ? err_set(e, a->bytes.rc, "out of memory for a sound") : 0;
}

/* At most BLOCK samples through the resampler; last: the rest of what it holds, too. */
static int resample(struct audio_out *a, const int16_t *samples, size_t n, bool last, struct err *e)
{
    float in[BLOCK], out[BLOCK];
    int16_t rounded[BLOCK];
    SRC_DATA d = {.data_in = in,
                  .data_out = out,
                  .input_frames = (long)n,
                  .output_frames = BLOCK,
                  .end_of_input = last,
                  .src_ratio = (double)forms[a->form].rate / a->rate};
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        in[i] = (float)samples[i] / 32768.0f;
    do {
        const int error = a->libs->src_process(a->resampler, &d);
        if (error)
            return err_set(e, SHOAL_EIO, "resampler: %s", a->libs->src_strerror(error));
        for (long i = 0; i < d.output_frames_gen; i++) {
            const float x = out[i] * 32768.0f;
            rounded[i] = x > 32767.0f ? 32767 : x < -32768.0f ? -32768 : (int16_t)x;
        }
        rc = write_samples(a, rounded, (size_t)d.output_frames_gen, e);
        d.data_in += d.input_frames_used;
        d.input_frames -= d.input_frames_used;
    } while (rc == 0 && (d.input_frames > 0 || (last && d.output_frames_gen > 0)));
    return rc;
}

int audio_out_put(struct audio_out *a, const int16_t *samples, size_t n, struct err *e)
{
    int rc = 0;
    if (!a->resampler)
        return write_samples(a, samples, n, e);
    for (size_t at = 0; rc == 0 && at < n; at += BLOCK / 2) /* the output is longer */
        rc = resample(a, samples + at, n - at < BLOCK / 2 ? n - at : BLOCK / 2, false, e);
    return rc;
}

int audio_out_end(struct audio_out *a, struct err *e)
{
    int rc = a->resampler ? resample(a, NULL, 0, true, e) : 0;
    if (a->file) {
        const int failed = a->libs->close(a->file);
        a->file = NULL;
        if (rc == 0 && failed)
            rc = err_set(e, SHOAL_EIO, "cannot write %s", forms[a->form].name);
    }
    return rc == 0 && a->bytes.rc < 0 ? err_set(e, a->bytes.rc, "out of memory for a sound") : rc;
}

void audio_out_take(struct audio_out *a, struct buf *to)
{
    if (a->form == AUDIO_FORM_MP3 && a->file) /* players trust the lengths in its first frame */
        return;
    buf_put(to, buf_str(&a->bytes), a->bytes.len);
    a->taken += (sf_count_t)a->bytes.len;
    buf_clear(&a->bytes);
}
