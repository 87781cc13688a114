/* audio_read.c - see audio_read.h. */
#include "audio/audio_read.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audio/audio_libs.h"
#include "base/mem.h"

#define BLOCK 4096 /* frames */

struct audio {
    const struct audio_libs *libs;
    SNDFILE *file;
    SRC_STATE *resampler; /* NULL: the rate is right */
    struct audio_info info;
    /* where the bytes are */
    const uint8_t *bytes; /* NULL: fd */
    int fd;
    sf_count_t n_bytes, at;
    bool io_failed;
    /* what was read */
    uint64_t n_frames; /* so far, of the file */
    float *frames;     /* [BLOCK][channels] */
    float mono[BLOCK];
    size_t mono_at, n_mono; /* the part that was not resampled yet */
    bool ended;
};

/* ---- bytes for the library ------------------------------------------------------------------ */

static sf_count_t io_size(void *ctx)
{
    return ((struct audio *)ctx)->n_bytes;
}

static sf_count_t io_seek(sf_count_t offset, int whence, void *ctx)
{
    struct audio *a = ctx;
    const sf_count_t base = whence == SEEK_CUR ? a->at : whence == SEEK_END ? a->n_bytes : 0;
    if (offset < -base || offset > a->n_bytes - base) /* no overflow: both are within the file */
        return -1;
    return a->at = base + offset;
}

static sf_count_t io_read(void *to, sf_count_t n, void *ctx)
{
    struct audio *a = ctx;
    if (n > a->n_bytes - a->at)
        n = a->n_bytes - a->at;
    if (n <= 0)
        return 0;
    if (a->bytes) {
        memcpy(to, a->bytes + a->at, (size_t)n);
    } else if ((n = pread(a->fd, to, (size_t)n, a->at)) < 0) {
        a->io_failed = true;
        return 0;
    }
    a->at += n;
    return n;
}

static sf_count_t io_write(const void *from, sf_count_t n, void *ctx)
{
    (void)from;
    (void)n;
    (void)ctx;
    return 0;
}

static sf_count_t io_tell(void *ctx)
{
    return ((struct audio *)ctx)->at;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int check(const SF_INFO *info, struct err *e)
{
    if (info->channels < 1 || info->channels > AUDIO_MAX_CHANNELS)
        return err_set(e, SHOAL_ELIMIT, "the sound has %d channels, expected 1 to %d",
                       info->channels, AUDIO_MAX_CHANNELS);
    if (info->samplerate < AUDIO_MIN_RATE || info->samplerate > AUDIO_MAX_RATE)
        return err_set(e, SHOAL_ELIMIT, "the sound has %d samples a second, expected %d to %d",
                       info->samplerate, AUDIO_MIN_RATE, AUDIO_MAX_RATE);
    return 0;
}

static int open_sound(struct audio *a, struct err *e)
{
    static SF_VIRTUAL_IO io = {io_size, io_seek, io_read, io_write, io_tell};
    SF_INFO info = {0};
    int failed = 0;
    int rc = audio_libs_get(&a->libs, e);
    if (rc < 0)
        return rc;
    if (a->n_bytes == 0)
        return err_set(e, SHOAL_EFORMAT, "the file is empty");
    a->file = a->libs->open_virtual(&io, SFM_READ, &info, a);
    if (a->io_failed)
        return err_set(e, SHOAL_EIO, "cannot read: %s", strerror(errno));
    if (!a->file)
        return err_set(e, SHOAL_EFORMAT,
                       "this is not a sound that can be read (WAV, FLAC, Ogg Opus, Ogg Vorbis, "
                       "MP3, AIFF): %s",
                       a->libs->error_number(a->libs->error(NULL)));
    if ((rc = check(&info, e)) < 0)
        return rc;
    a->info.rate = (uint32_t)info.samplerate;
    a->info.channels = (uint32_t)info.channels;
    a->info.seconds =
        info.frames > 0 && info.frames < INT64_MAX ? (double)info.frames / info.samplerate : 0;
    a->frames = mem_alloc((size_t)BLOCK * a->info.channels * sizeof(*a->frames));
    if (a->info.rate != AUDIO_RATE)
        a->resampler = a->libs->src_new(SRC_SINC_MEDIUM_QUALITY, 1, &failed);
    if (!a->frames || (a->info.rate != AUDIO_RATE && !a->resampler))
        return err_set(e, SHOAL_ENOMEM, "out of memory for reading a sound");
    return 0;
}

static int open_with(struct audio **out, struct audio *a, struct err *e)
{
    int rc = open_sound(a, e);
    *out = rc == 0 ? a : NULL;
    if (rc < 0)
        audio_close(a);
    return rc;
}

int audio_open_memory(struct audio **out, const void *bytes, size_t n, struct err *e)
{
    struct audio *a = mem_zalloc(sizeof(*a));
    *out = NULL;
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "out of memory for reading a sound");
    a->fd = -1;
    a->bytes = bytes;
    a->n_bytes = (sf_count_t)n;
    return open_with(out, a, e);
}

int audio_open_file(struct audio **out, const char *path, struct err *e)
{
    struct stat st;
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        const int code = err_set(e, SHOAL_EIO, "cannot open %s: %m", path);
        if (fd >= 0)
            close(fd);
        return code;
    }
    struct audio *a = S_ISREG(st.st_mode) ? mem_zalloc(sizeof(*a)) : NULL;
    if (!a) {
        close(fd);
        return S_ISREG(st.st_mode) ? err_set(e, SHOAL_ENOMEM, "out of memory for reading a sound")
                                   : err_set(e, SHOAL_EINVAL, "%s is not a regular file", path);
    }
    a->fd = fd;
    a->n_bytes = st.st_size;
    const int rc = open_with(out, a, e);
    return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

void audio_close(struct audio *a)
{
    if (!a)
        return;
    if (a->file)
        a->libs->close(a->file);
    if (a->resampler)
        a->libs->src_delete(a->resampler);
    if (a->fd >= 0)
        close(a->fd);
    mem_free(a->frames);
    mem_free(a);
}

const struct audio_info *audio_info(const struct audio *a)
{
    return &a->info;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The next block of the file as one channel. */
static int next_block(struct audio *a, struct err *e)
{
    const uint32_t channels = a->info.channels;
    const sf_count_t n = a->libs->readf_float(a->file, a->frames, BLOCK);
    a->mono_at = 0;
    a->n_mono = n > 0 ? (size_t)n : 0;
    a->ended = a->n_mono == 0;
    if (a->io_failed)
        return err_set(e, SHOAL_EIO, "cannot read the sound: %s", strerror(errno));
    for (size_t i = 0; i < a->n_mono; i++) {
        float sum = 0;
        for (uint32_t c = 0; c < channels; c++)
            sum += a->frames[i * channels + c];
        if (!isfinite(sum))
            return err_set(e, SHOAL_EFORMAT,
                           "the sound has a value that is not a finite number at %.3f seconds",
                           (double)(a->n_frames + i) / a->info.rate);
        a->mono[i] = sum / (float)channels;
    }
    a->n_frames += a->n_mono;
    return 0;
}

static int16_t to_16_bits(float x)
{
    const float y = x * 32768.0f;
    return (int16_t)(y >= 32767.0f ? 32767 : y <= -32768.0f ? -32768 : lrintf(y));
}

/* Resamples what is there into out; returns how many. */
static int64_t resample(struct audio *a, float *out, size_t most, struct err *e)
{
    SRC_DATA d = {.data_in = a->mono + a->mono_at,
                  .data_out = out,
                  .input_frames = (long)a->n_mono,
                  .output_frames = (long)most,
                  .end_of_input = a->ended,
                  .src_ratio = (double)AUDIO_RATE / a->info.rate};
    const int failed = a->libs->src_process(a->resampler, &d);
    if (failed)
        return err_set(e, SHOAL_EFORMAT, "cannot resample the sound: %s",
                       a->libs->src_strerror(failed));
    a->mono_at += (size_t)d.input_frames_used;
    a->n_mono -= (size_t)d.input_frames_used;
    return d.output_frames_gen;
}

int64_t audio_read(struct audio *a, int16_t *to, size_t most, struct err *e)
{
    float block[BLOCK];
    size_t n = 0;
    while (n < most) {
        if (a->n_mono == 0 && !a->ended) {
            int rc = next_block(a, e);
            if (rc < 0)
                return rc;
        }
        const size_t want = most - n < BLOCK ? most - n : BLOCK;
        int64_t got = (int64_t)(a->n_mono < want ? a->n_mono : want);
        if (a->resampler) {
            if ((got = resample(a, block, want, e)) < 0)
                return got;
        } else {
            memcpy(block, a->mono + a->mono_at, (size_t)got * sizeof(*block));
            a->mono_at += (size_t)got;
            a->n_mono -= (size_t)got;
        }
        for (int64_t i = 0; i < got; i++)
            to[n++] = to_16_bits(block[i]);
        if (got == 0 && a->ended)
            break;
    }
    return (int64_t)n;
}
