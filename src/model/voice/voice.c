/* voice.c - reading a text and sounding it; see voice.h. */
#include "model/voice/voice.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/voice/voice_int.h"
#include "model/voice/voice_math.h"

#define STREAM_FRAMES 3u
#define MAX_FRAMES_OF_ID 400u /* of one phoneme: four seconds */

const struct voice_config *voice_config(const struct voice *v)
{
    return &v->c;
}

struct voice_sizes voice_sizes(const struct voice *v)
{
    return (struct voice_sizes){.weights = v->weights.data_bytes, .scratch = v->scratch_bytes};
}

const struct kern_ops *voice_kernels(const struct voice *v)
{
    return v->k;
}

struct crew_lane *voice_lane(const struct voice *v)
{
    return v->lane;
}

const struct weights *voice_weights(const struct voice *v)
{
    return &v->weights;
}

struct voice_trace voice_trace(const struct voice *v)
{
    return (struct voice_trace){v->stats, v->log_durations, v->durations, v->frames};
}

/* Frames of each phoneme, and their sum. */
static int count_frames(struct voice *v, const struct voice_say *say, struct err *e)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const double x = voice_exp((double)v->log_durations[i]) * (double)say->length;
        if (!isfinite(x))
            return err_set(e, SHOAL_ENOTFINITE, "the duration of a sound is not finite");
        const double frames = ceil(x);
        v->durations[i] = frames > MAX_FRAMES_OF_ID ? MAX_FRAMES_OF_ID : (uint32_t)frames;
        sum += v->durations[i];
    }
    v->n_frames = sum ? (uint32_t)sum : 1;
    if (sum == 0)
        v->durations[0] = 1;
    return v->n_frames <= VOICE_MAX_FRAMES
               ? 0
               : err_set(e, SHOAL_ELIMIT,
                         "the text has %u frames of sound, at most %u are said "
                         "at a time: cut it at the end of a sentence",
                         v->n_frames, VOICE_MAX_FRAMES);
}

static int reserve_frames(struct voice *v, struct err *e)
{
    const size_t need = (size_t)v->n_frames * v->c.dim;
    if (need <= v->frames_cap)
        return 0;
    mem_free(v->frames);
    v->frames = mem_aligned((need + 16) * sizeof(*v->frames));
    v->frames_cap = v->frames ? need : 0;
    return v->frames ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for %u frames", v->n_frames);
}

/* Every phoneme's distribution, once for each of its frames, with noise. */
static void draw_frames(struct voice *v, const struct voice_say *say)
{
    const uint32_t dim = v->c.dim;
    float *z = v->frames, *deviation = v->members[0].scores;
    uint64_t counter = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const float *mean = v->stats + (size_t)i * 2 * dim;
        v->k->softmax_exp(deviation, mean + dim, dim, 0.0f);
        for (uint32_t f = 0; f < v->durations[i]; f++, z += dim)
            for (uint32_t c = 0; c < dim; c++)
                z[c] = mean[c] + voice_normal(say->seed, STREAM_FRAMES, counter++) * deviation[c] *
                                     say->noise;
    }
}

static int check_ids(const struct voice *v, const uint16_t *ids, uint32_t n, struct err *e)
{
    if (n == 0 || n > VOICE_MAX_IDS)
        return err_set(e, SHOAL_ELIMIT, "the text has %u sounds, expected 1 to %u", n,
                       VOICE_MAX_IDS);
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] >= v->c.n_symbols)
            return err_set(e, SHOAL_EINVAL, "there is no sound %u, the voice has %u", ids[i],
                           v->c.n_symbols);
    return 0;
}

int voice_read(struct voice *v, const uint16_t *ids, uint32_t n, const struct voice_say *say,
               uint32_t *n_frames, struct err *e)
{
    int rc = check_ids(v, ids, n, e);
    *n_frames = 0;
    if (rc < 0)
        return rc;
    v->ids = ids;
    v->n = n;
    v->n_frames = 0;
    voice_text_run(v);
    voice_pace_run(v, say);
    rc = count_frames(v, say, e);
    if (rc == 0)
        rc = reserve_frames(v, e);
    if (rc < 0)
        return rc;
    draw_frames(v, say);
    voice_flow_run(v);
    for (size_t i = 0; i < (size_t)v->n_frames * v->c.dim; i++)
        if (!isfinite(v->frames[i]))
            return err_set(e, SHOAL_ENOTFINITE, "a frame of the sound is not finite");
    *n_frames = v->n_frames;
    return 0;
}

int voice_set_frames(struct voice *v, const float *frames, uint32_t n, struct err *e)
{
    v->n_frames = n;
    const int rc = reserve_frames(v, e);
    if (rc == 0)
        memcpy(v->frames, frames, (size_t)n * v->c.dim * sizeof(*frames));
    return rc;
}

void voice_sound(struct voice *v, uint32_t from, uint32_t to, float *out)
{
    if (from < to)
        voice_sound_run(v, from, to, out);
}
