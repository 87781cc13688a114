/* speaker.c - see speaker.h. */
#include "engine/native/speaker.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/batcher.h"
#include "engine/cache_dir.h"
#include "engine/task.h"
#include "format/model_file.h"
#include "model/voice/voice.h"
#include "text/speech/phonemes.h"
#include "text/speech/speech_text.h"

#define MAX_TEXT                                                                                   \
    ((size_t)64 << 10) /* of normalized text and of phonemes: far more than can be said */
#define MAX_JOBS 16u
#define COST_OF_ID 6u /* frames that a phoneme has, about */

struct speaking {
    const struct model_file *file; /* borrowed from the engine */
    struct voice *voice;
    struct sounds *sounds;
    struct phonemes symbols;
    /* the engine's thread only: what was read last */
    uint16_t ids[VOICE_MAX_IDS];
    uint32_t n_ids, n_frames;
    struct voice_say say;
    float *samples; /* [SOUND_FRAMES * hop] */
};

#define SOUND_FRAMES 128u /* sounded at a time: between them a task may give up */

struct input { /* of a job */
    uint32_t n_ids;
    struct voice_say say;
    float volume;
    uint32_t part;
    int16_t *samples;
    uint16_t ids[]; /* [n_ids] */
};

/* Frame at which a part begins. */
static uint32_t part_begins(uint32_t part)
{
    static const uint32_t starts[SHOAL_SPEAK_PARTS] = {0, 24, 96, 288};
    return part < SHOAL_SPEAK_PARTS ? starts[part] : UINT32_MAX;
}

/* ---- preparing ------------------------------------------------------------------------------ */

static int check(const struct speaking *s, const struct shoal_infer_opts *o, struct err *e)
{
    const char *voice = voice_config(s->voice)->name;
    if (o->labels && strcmp(o->labels, voice) != 0)
        return err_set(e, SHOAL_EINVAL, "there is no voice '%.40s'; the model has: %s", o->labels,
                       voice);
    if (!(o->speed >= 0.0f && o->speed <= 4.0f) || (o->speed > 0.0f && o->speed < 0.25f))
        return err_set(e, SHOAL_EINVAL, "the speed must be between 0.25 and 4");
    if (!(o->volume >= 0.0f && o->volume <= 4.0f))
        return err_set(e, SHOAL_EINVAL, "the volume must be between 0 and 4");
    if (o->part > SHOAL_SPEAK_PARTS)
        return err_set(e, SHOAL_EINVAL, "a sound has %u parts, there is no part %llu",
                       SHOAL_SPEAK_PARTS, (unsigned long long)o->part);
    return 0;
}

static int make_input(const struct speaking *s, struct job *j, const struct buf *phonemes,
                      struct err *e)
{
    uint16_t ids[VOICE_MAX_IDS];
    const uint32_t n =
        phonemes_ids(&s->symbols, buf_str(phonemes), phonemes->len, ids, VOICE_MAX_IDS);
    const struct voice_config *c = voice_config(s->voice);
    if (n > VOICE_MAX_IDS)
        return err_set(e, SHOAL_ELIMIT,
                       "the text has %u sounds, at most %u are said at a time: cut it at the end "
                       "of a sentence",
                       n, VOICE_MAX_IDS);
    struct input *in = mem_zalloc(sizeof(*in) + n * sizeof(*in->ids));
    if (!in)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    j->input = in;
    memcpy(in->ids, ids, n * sizeof(*ids));
    in->n_ids = phonemes->len ? n : 0; /* nothing to say has no sound */
    in->say = (struct voice_say){.length = c->length / (j->o.speed > 0 ? j->o.speed : 1),
                                 .noise = c->noise,
                                 .duration_noise = c->duration_noise,
                                 .seed = j->o.seed};
    in->volume = j->o.volume > 0 ? j->o.volume : 1;
    in->part = (uint32_t)j->o.part;
    j->cost = n * COST_OF_ID;
    j->result.n_tokens = in->n_ids;
    j->result.sample_rate = c->rate;
    return 0;
}

static int prepare(const void *self, struct job *j, struct err *e)
{
    const struct speaking *s = self;
    struct buf text, phonemes;
    int rc = check(s, &j->o, e);
    if (rc < 0)
        return rc;
    buf_init(&text, MAX_TEXT);
    buf_init(&phonemes, MAX_TEXT);
    speech_text_normal(j->o.text, j->o.text_bytes, &text);
    phonemes_of_text(s->sounds, buf_str(&text), text.len, &phonemes);
    rc = text.rc < 0 ? text.rc : phonemes.rc;
    if (rc == SHOAL_ELIMIT)
        rc = err_set(e, rc,
                     "the text has %zu bytes, too many to say at a time: cut it at the end "
                     "of a sentence",
                     j->o.text_bytes);
    else if (rc < 0)
        rc = err_set(e, rc, "out of memory for a task");
    else
        rc = make_input(s, j, &phonemes, e);
    buf_fini(&text);
    buf_fini(&phonemes);
    return rc;
}

static void drop(struct job *j)
{
    struct input *in = j->input;
    if (!in)
        return;
    mem_free(in->samples);
    mem_free(in);
}

/* ---- speaking ----------------------------------------------------------------------------------
 */

static bool is_the_last_text(const struct speaking *s, const struct input *in)
{
    return s->n_frames > 0 && s->n_ids == in->n_ids && s->say.seed == in->say.seed &&
           s->say.length == in->say.length &&
           memcmp(s->ids, in->ids, in->n_ids * sizeof(*s->ids)) == 0;
}

static int read_text(struct speaking *s, const struct input *in, struct err *e)
{
    if (is_the_last_text(s, in))
        return 0;
    s->n_frames = 0;
    memcpy(s->ids, in->ids, in->n_ids * sizeof(*s->ids));
    s->n_ids = in->n_ids;
    s->say = in->say;
    return voice_read(s->voice, s->ids, s->n_ids, &s->say, &s->n_frames, e);
}

static void round_samples(int16_t *to, const float *from, uint32_t n, float volume)
{
    for (uint32_t i = 0; i < n; i++) {
        const float x = rintf(from[i] * volume * 32767.0f);
        to[i] = x > 32767.0f ? 32767 : x < -32768.0f ? -32768 : (int16_t)x;
    }
}

static int speak(struct speaking *s, struct job *j)
{
    struct input *in = j->input;
    struct err e = {0};
    int rc = in->n_ids ? read_text(s, in, &e) : 0;
    if (rc < 0 || in->n_ids == 0)
        return rc;
    const uint32_t hop = voice_config(s->voice)->hop;
    uint32_t from = in->part ? part_begins(in->part - 1) : 0;
    uint32_t to = in->part ? part_begins(in->part) : s->n_frames;
    to = to < s->n_frames ? to : s->n_frames;
    from = from < to ? from : to;
    in->samples = mem_alloc(((size_t)(to - from) * hop + 1) * sizeof(*in->samples));
    if (!in->samples)
        return SHOAL_ENOMEM;
    for (uint32_t at = from; at < to; at += SOUND_FRAMES) {
        const uint32_t n = to - at < SOUND_FRAMES ? to - at : SOUND_FRAMES;
        if ((rc = task_gave_up(j->task, clock_ns())) < 0)
            return rc;
        voice_sound(s->voice, at, at + n, s->samples);
        round_samples(in->samples + (size_t)(at - from) * hop, s->samples, n * hop, in->volume);
    }
    j->result.samples = in->samples;
    j->result.n_samples = (to - from) * hop;
    return 0;
}

static void run(void *self, struct job *const *jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int rc = task_gave_up(jobs[i]->task, clock_ns());
        if (rc == 0)
            rc = speak(self, jobs[i]);
        if (rc < 0)
            job_fail(jobs[i], rc, err_text(rc));
        batcher_finish(jobs[i]);
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static void info(const void *self, struct shoal_engine_info *out)
{
    const struct speaking *s = self;
    const struct voice_config *c = voice_config(s->voice);
    const struct voice_sizes sizes = voice_sizes(s->voice);
    out->arch = "vits";
    out->kernels = voice_kernels(s->voice)->name;
    out->n_vocab = c->n_symbols;
    out->n_ctx = out->n_ctx_train = VOICE_MAX_IDS;
    out->n_layers = c->n_layers;
    out->dim = c->dim;
    out->n_threads = crew_lane_size(voice_lane(s->voice));
    out->n_params = model_file_n_params(s->file);
    out->file_bytes = s->file->n_bytes;
    out->weights_bytes = sizes.weights;
    out->scratch_bytes = sizes.scratch;
}

/* Its voices: a file has one. */
static const char *voice_name(const void *self, enum shoal_kind kind, const char *set, uint32_t i)
{
    const struct speaking *s = self;
    (void)kind;
    (void)set;
    return i == 0 ? voice_config(s->voice)->name : NULL;
}

static void close_(void *self)
{
    struct speaking *s = self;
    voice_destroy(s->voice);
    sounds_destroy(s->sounds);
    mem_free(s->samples);
    mem_free(s);
}

static const struct specialist_ops ops = {
    .engine = "native",
    .prepare = prepare,
    .run = run,
    .drop = drop,
    .label = voice_name,
    .info = info,
    .close = close_,
};

static int load(struct speaking *s, const char *path, struct crew *crew,
                const struct shoal_engine_opts *o, struct err *e)
{
    char dir[PATH_MAX];
    struct voice_opts vo = {.crew = crew,
                            .n_threads = o->n_threads,
                            .cache_dir = cache_dir_wanted(o->cache_dir, dir, sizeof(dir)),
                            .progress = o->progress,
                            .progress_ctx = o->progress_ctx};
    struct str sounds;
    if (o->kernels && !(vo.kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    if (!model_file_get_str(s->file, "shoal.sounds", &sounds))
        return err_set(e, SHOAL_EFORMAT,
                       "the voice has no sounds of words (metadata key shoal.sounds)");
    int rc = sounds_create(&s->sounds, sounds.p, sounds.n, e);
    if (rc == 0)
        rc = phonemes_read(&s->symbols, s->file, e);
    if (rc == 0)
        rc = voice_create(&s->voice, s->file, path, &vo, e);
    if (rc == 0 && s->symbols.n > voice_config(s->voice)->n_symbols)
        rc = err_set(e, SHOAL_EFORMAT, "vits.symbols has %u symbols, the voice knows %u",
                     s->symbols.n, voice_config(s->voice)->n_symbols);
    if (rc == 0) {
        s->samples =
            mem_aligned((size_t)SOUND_FRAMES * voice_config(s->voice)->hop * sizeof(*s->samples));
        rc = s->samples ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a voice");
    }
    return rc;
}

int speaker_open(struct specialist *sp, const struct model_file *file, const char *path,
                 struct crew *crew, const struct shoal_engine_opts *o, struct err *e)
{
    struct speaking *s = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a voice");
    s->file = file;
    int rc = load(s, path, crew, o, e);
    if (rc < 0) {
        close_(s);
        return err_wrap(e, "%s", path);
    }
    *sp = (struct specialist){.ops = &ops,
                              .self = s,
                              .kinds = SHOAL_KIND_SPEAK,
                              .max_jobs = MAX_JOBS,
                              .lane = voice_lane(s->voice),
                              .weights = voice_weights(s->voice),
                              .max_cost = VOICE_MAX_IDS * COST_OF_ID};
    return 0;
}
