/* audio_play.c - see audio_play.h. */
#include "audio/audio_play.h"

#include <dlfcn.h>

#include "base/mem.h"

/* Of ALSA's interface, which is not needed to build: pcm.h of alsa-lib. */
enum { PLAYBACK = 0, FORMAT_S16_LE = 2, ACCESS_INTERLEAVED = 3, LATENCY_US = 200000 };

struct audio_play {
    void *pcm;
    int (*open)(void **pcm, const char *name, int stream, int mode);
    int (*set_params)(void *pcm, int format, int access, unsigned channels, unsigned rate,
                      int resample, unsigned latency_us);
    long (*writei)(void *pcm, const void *frames, unsigned long n);
    int (*recover)(void *pcm, int error, int silent);
    int (*drain)(void *pcm);
    int (*close)(void *pcm);
    const char *(*text)(int error);
};

static int load(struct audio_play *p, struct err *e)
{
    const struct {
        const char *name;
        void **to;
    } names[] = {
        {"snd_pcm_open", (void **)&p->open},     {"snd_pcm_set_params", (void **)&p->set_params},
        {"snd_pcm_writei", (void **)&p->writei}, {"snd_pcm_recover", (void **)&p->recover},
        {"snd_pcm_drain", (void **)&p->drain},   {"snd_pcm_close", (void **)&p->close},
        {"snd_strerror", (void **)&p->text}};
    void *library = dlopen("libasound.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!library || !(*names[i].to = dlsym(library, names[i].name)))
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "playing sounds needs libasound: install the package libasound2");
    return 0;
}

int audio_play_open(struct audio_play **out, const char *device, uint32_t rate, struct err *e)
{
    struct audio_play *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a sound");
    int rc = load(p, e), error = 0;
    if (rc == 0 && (error = p->open(&p->pcm, device ? device : "default", PLAYBACK, 0)) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot open the sound device: %s", p->text(error));
    if (rc == 0 && (error = p->set_params(p->pcm, FORMAT_S16_LE, ACCESS_INTERLEAVED, 1, rate, 1,
                                          LATENCY_US)) < 0) {
        rc = err_set(e, SHOAL_EIO, "the sound device refuses %u samples a second: %s", rate,
                     p->text(error));
        p->close(p->pcm);
    }
    if (rc < 0) {
        mem_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

int audio_play_put(struct audio_play *p, const int16_t *samples, size_t n, struct err *e)
{
    while (n > 0) {
        long done = p->writei(p->pcm, samples, n);
        if (done < 0)
            done = p->recover(p->pcm, (int)done, 1);
        if (done < 0)
            return err_set(e, SHOAL_EIO, "cannot play the sound: %s", p->text((int)done));
        samples += done;
        n -= (size_t)done;
    }
    return 0;
}

void audio_play_close(struct audio_play *p)
{
    if (!p)
        return;
    p->drain(p->pcm);
    p->close(p->pcm);
    mem_free(p);
}
