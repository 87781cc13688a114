/* microphone.c - see microphone.h. */
#include "audio/microphone.h"

#include <dlfcn.h>
#include <stdbool.h>

#include "audio/audio_read.h"
#include "base/mem.h"

/* Constants of ALSA's stable interface. */
#define CAPTURE 1
#define S16_LE 2
#define INTERLEAVED 3
#define LATENCY_US 60000u

struct microphone {
    void *pcm;
    int (*open)(void **pcm, const char *name, int stream, int mode);
    int (*set_params)(void *pcm, int format, int access, unsigned channels, unsigned rate,
                      int resample, unsigned latency);
    long (*readi)(void *pcm, void *to, unsigned long n);
    int (*recover)(void *pcm, int error, int silent);
    int (*close)(void *pcm);
    const char *(*strerror)(int error);
    int (*set_error_handler)(void (*fn)(const char *file, int line, const char *function, int error,
                                        const char *format, ...));
};

/* ALSA writes to stderr otherwise; our own message says what is wrong. */
static void be_quiet(const char *file, int line, const char *function, int error,
                     const char *format, ...)
{
    (void)file;
    (void)line;
    (void)function;
    (void)error;
    (void)format;
}

static bool load(struct microphone *m)
{
    const struct {
        const char *name;
        void **to;
    } names[] = {{"snd_pcm_open", (void **)&m->open},
                 {"snd_pcm_set_params", (void **)&m->set_params},
                 {"snd_pcm_readi", (void **)&m->readi},
                 {"snd_pcm_recover", (void **)&m->recover},
                 {"snd_pcm_close", (void **)&m->close},
                 {"snd_lib_error_set_handler", (void **)&m->set_error_handler},
                 {"snd_strerror", (void **)&m->strerror}};
    void *library = dlopen("libasound.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool ok = library != NULL;
    for (size_t i = 0; ok && i < sizeof(names) / sizeof(names[0]); i++)
        ok = (*names[i].to = dlsym(library, names[i].name)) != NULL;
    return ok;
}

int microphone_open(struct microphone **out, const char *device, struct err *e)
{
    struct microphone *m = mem_zalloc(sizeof(*m));
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a microphone");
    int rc = 0;
    if (!load(m)) {
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "a microphone needs ALSA: install the package libasound2, or send the sound "
                     "through a pipe (- as the device)");
    } else {
        m->set_error_handler(be_quiet);
        int failed = m->open(&m->pcm, device, CAPTURE, 0);
        if (failed < 0)
            m->pcm = NULL;
        else
            failed = m->set_params(m->pcm, S16_LE, INTERLEAVED, 1, AUDIO_RATE, 1, LATENCY_US);
        if (failed < 0)
            rc = err_set(e, SHOAL_EIO, "cannot use the microphone '%s': %s", device,
                         m->strerror(failed));
    }
    if (rc < 0) {
        microphone_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

void microphone_close(struct microphone *m)
{
    if (!m)
        return;
    if (m->pcm)
        m->close(m->pcm);
    mem_free(m);
}

int64_t microphone_read(struct microphone *m, int16_t *to, uint32_t n, struct err *e)
{
    long got = m->readi(m->pcm, to, n);
    if (got < 0 && m->recover(m->pcm, (int)got, 1) == 0) /* samples were lost: it goes on */
        got = m->readi(m->pcm, to, n);
    return got >= 0 ? got
                    : err_set(e, SHOAL_EIO, "the microphone failed: %s", m->strerror((int)got));
}
