/* cmd_satellite.c - shoal satellite: a microphone and a loudspeaker for a Shoal or a Home
 * Assistant. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audio/audio_play.h"
#include "audio/audio_write.h"
#include "audio/microphone.h"
#include "audio/pcm.h"
#include "audio/wav_head.h"
#include "base/thread/thread.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "net/listen.h"
#include "voice/satellite.h"
#include "voice/wake.h"
#include "wire/wyoming.h"

cmd_fn cmd_satellite;

#define BLOCK 640u /* samples of the microphone at a time */
#define MAX_IN_BYTES (WYOMING_MAX_HEADER + WYOMING_MAX_DATA + WYOMING_MAX_PAYLOAD)

static const struct opts_def defs[] = {
    {"server", 's', OPTS_TEXT, "ADDRESS", NULL, 0, 0,
     "where a server speaks Wyoming: tcp://HOST:PORT"},
    {"listen", 0, OPTS_TEXT, "ADDRESS", NULL, 0, 0,
     "wait there for Home Assistant instead: tcp://0.0.0.0:10700"},
    {"device", 'd', OPTS_TEXT, "NAME", "default", 0, 0,
     "microphone, by its name in ALSA; -: sound from stdin, a WAV file or 16-bit samples of one "
     "channel, 16,000 a second"},
    {"speaker", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "loudspeaker, by its name in ALSA"},
    {"output", 'o', OPTS_TEXT, "FILE.wav", NULL, 0, 0,
     "write each reply to this file instead of playing it; the last one remains"},
    {"wake", 'w', OPTS_TEXT, "WORD", NULL, 0, 0,
     "wait for this word before each turn: the included one, or the folder of another"},
    {"name", 0, OPTS_TEXT, "NAME", "satellite", 0, 0, "its name, and that of its conversation"},
    {"room", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "the room that it is in"},
};

static const struct opts_page page = {
    .command = "satellite",
    .arguments = "",
    .summary = "Is the microphone and the loudspeaker of a Shoal or a Home Assistant elsewhere.",
    .details = "A turn ends by its silence; what was said is carried out there, and the reply is "
               "played here.\nSound is sent, and written nowhere.  The protocol is Wyoming, which "
               "has neither keys nor encryption.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal satellite --server tcp://home.lan:10300 --wake \"hey shoal\"\n"
                "  shoal satellite --server tcp://home.lan:10300 -d - -o reply.wav < command.wav\n"
                "  shoal satellite --listen tcp://0.0.0.0:10700 --wake \"hey shoal\"\n",
};

struct work {
    const struct opts *o;
    struct satellite satellite;
    struct wake *wake;
    struct wake_ear *ear;
    int fd;        /* the connection; -1: none */
    int listen_fd; /* of a server; -1: a client */
    int sound_fd;  /* samples; -1: they have ended */
    struct buf in, out, samples;
    bool is_pipe; /* it waits while a turn is being answered; a microphone does not */
    struct pcm *pcm;
    struct microphone *microphone;
    int pipe_to; /* of the microphone's thread */
    pthread_t thread;
    bool has_thread;
    struct audio_play *play;
    struct audio_out *file;
    int interrupt_fd, exit_code;
    struct err e;
};

/* ---- the connection ---- */

static void lose(struct work *w, const char *why)
{
    close(w->fd);
    w->fd = -1;
    buf_clear(&w->in);
    if (w->listen_fd < 0)
        w->exit_code = cmd_fail(w->o->page, "the connection is lost: %s", why);
    else
        satellite_event(&w->satellite, &(struct wyoming_event){.type = "pause-satellite"});
}

static void on_send(void *ctx, const char *type, const char *data, size_t n, const void *payload,
                    size_t n_payload)
{
    struct work *w = ctx;
    buf_clear(&w->out);
    wyoming_put(&w->out, type, data, n, payload, n_payload);
    for (size_t at = 0; w->fd >= 0 && at < w->out.len;) {
        const ssize_t done = send(w->fd, buf_str(&w->out) + at, w->out.len - at, MSG_NOSIGNAL);
        if (done < 0 && errno != EINTR)
            lose(w, strerror(errno));
        else if (done > 0)
            at += (size_t)done;
    }
}

static void read_events(struct work *w)
{
    char bytes[65536];
    struct err e = {0};
    const ssize_t got = recv(w->fd, bytes, sizeof(bytes), 0);
    if (got <= 0) {
        if (got == 0 || errno != EINTR)
            lose(w, got < 0 ? strerror(errno) : "the other side has closed it");
        return;
    }
    buf_put(&w->in, bytes, (size_t)got);
    while (w->fd >= 0 && w->exit_code == CMD_OK) {
        struct wyoming_event ev;
        size_t want;
        const int64_t took = wyoming_next(&ev, buf_str(&w->in), w->in.len, &want, &e);
        if (took == 0)
            return;
        if (took < 0) {
            lose(w, e.msg);
            return;
        }
        satellite_event(&w->satellite, &ev);
        wyoming_free(&ev);
        if (w->in.len >= (size_t)took) { /* it may have been lost meanwhile */
            w->in.len -= (size_t)took;
            memmove(w->in.data, w->in.data + took, w->in.len);
        }
    }
}

static const char *plain(const char *address)
{
    return strncmp(address, "tcp://", 6) == 0 ? address + 6 : address;
}

static int connect_to(struct work *w, const char *address, struct err *e)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    const struct timeval patience = {.tv_sec = 10};
    const char *port = NULL;
    char host[256];
    int why = ECONNREFUSED, rc = listen_split(plain(address), host, sizeof(host), &port, e);
    if (rc < 0)
        return rc;
    rc = getaddrinfo(host, port, &hints, &list);
    if (rc != 0)
        return err_set(e, SHOAL_EIO, "cannot find %.200s: %s", host, gai_strerror(rc));
    for (const struct addrinfo *a = list; a && w->fd < 0; a = a->ai_next) {
        w->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (w->fd >= 0 && connect(w->fd, a->ai_addr, a->ai_addrlen) == 0)
            break;
        why = errno;
        if (w->fd >= 0)
            close(w->fd);
        w->fd = -1;
    }
    freeaddrinfo(list);
    if (w->fd < 0)
        return err_set(e, SHOAL_EIO, "cannot connect to %.200s: %s", address, strerror(why));
    (void)setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return 0;
}

/* The last one that comes is served: after a restart the former is not known to be gone. */
static void accept_one(struct work *w)
{
    const int fd = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    const struct timeval patience = {.tv_sec = 10};
    if (fd < 0)
        return;
    if (w->fd >= 0)
        lose(w, "");
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    w->fd = fd;
}

/* ---- the loudspeaker ---- */

static void sound_failed(const char *msg)
{
    fprintf(stderr, "shoal satellite: %s\n", msg);
}

static void on_sound_begin(void *ctx, uint32_t rate)
{
    struct work *w = ctx;
    struct err e = {0};
    const int rc = opts_text(w->o, "output")
                       ? audio_out_create(&w->file, AUDIO_FORM_WAV, rate, 0, &e)
                       : audio_play_open(&w->play, opts_text(w->o, "speaker"), rate, &e);
    if (rc < 0)
        sound_failed(e.msg);
}

static void on_sound(void *ctx, const int16_t *samples, size_t n)
{
    struct work *w = ctx;
    struct err e = {0};
    const int rc = w->file   ? audio_out_put(w->file, samples, n, &e)
                   : w->play ? audio_play_put(w->play, samples, n, &e)
                             : 0;
    if (rc < 0)
        sound_failed(e.msg);
}

static void write_file(struct work *w)
{
    const char *path = opts_text(w->o, "output");
    struct err e = {0};
    struct buf bytes;
    buf_init(&bytes, (size_t)256 << 20);
    int rc = audio_out_end(w->file, &e);
    if (rc == 0)
        audio_out_take(w->file, &bytes);
    FILE *f = rc == 0 && bytes.rc == 0 ? fopen(path, "wbe") : NULL;
    if (!f || fwrite(buf_str(&bytes), 1, bytes.len, f) != bytes.len)
        sound_failed("cannot write the reply to the file of -o");
    if (f)
        fclose(f);
    buf_fini(&bytes);
}

static void on_sound_end(void *ctx)
{
    struct work *w = ctx;
    if (w->file)
        write_file(w);
    audio_out_destroy(w->file);
    audio_play_close(w->play);
    w->file = NULL;
    w->play = NULL;
}

static void on_note(void *ctx, const char *what, const char *text)
{
    (void)ctx;
    printf("%s: %s\n", what, text);
    fflush(stdout);
}

/* ---- the microphone ---- */

static void *read_microphone(void *arg)
{
    struct work *w = arg;
    int16_t block[BLOCK];
    for (;;) {
        const int64_t n = microphone_read(w->microphone, block, BLOCK, &w->e);
        const ssize_t bytes = n > 0 ? (ssize_t)((size_t)n * sizeof(*block)) : 0;
        if (n < 0 || write(w->pipe_to, block, (size_t)bytes) != bytes)
            break;
    }
    close(w->pipe_to);
    return NULL;
}

static int open_microphone(struct work *w, struct err *e)
{
    int ends[2];
    int rc = microphone_open(&w->microphone, opts_text(w->o, "device"), e);
    if (rc < 0)
        return rc;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, SHOAL_EIO, "cannot make a pipe: %s", strerror(errno));
    w->sound_fd = ends[0];
    w->pipe_to = ends[1];
    rc = thread_create(&w->thread, "microphone", read_microphone, w, e);
    w->has_thread = rc == 0;
    if (rc < 0)
        close(w->pipe_to);
    return rc;
}

/* The first bytes of stdin tell whether it is a WAV file; what follows its head is kept. */
static int open_stdin(struct work *w, struct err *e)
{
    struct pcm_form form = {.rate = SATELLITE_RATE, .channels = 1, .width = 2};
    char head[WAV_HEAD_MOST];
    size_t n = 0, skip = 0;
    int rc = 0;
    while (rc == 0 && n < sizeof(head)) {
        const ssize_t got = read(STDIN_FILENO, head + n, sizeof(head) - n);
        if (got < 0 && errno == EINTR)
            continue;
        n += got > 0 ? (size_t)got : 0;
        const bool is_wav = n >= 4 && memcmp(head, "RIFF", 4) == 0;
        if (got <= 0 || (n >= 4 && !is_wav))
            break;
        rc = is_wav ? wav_head(head, n, &form, &skip, e) : 0;
    }
    if (rc >= 0)
        rc = pcm_create(&w->pcm, &form, e);
    if (rc == 0)
        rc = pcm_feed(w->pcm, head + skip, n - skip, &w->samples, e);
    w->sound_fd = STDIN_FILENO;
    w->is_pipe = true;
    return rc;
}

static void hear_samples(struct work *w)
{
    if (w->samples.len > 0)
        satellite_hear(&w->satellite, (const int16_t *)(const void *)buf_str(&w->samples),
                       (uint32_t)(w->samples.len / sizeof(int16_t)));
    buf_clear(&w->samples);
}

static void read_sound(struct work *w)
{
    char bytes[2 * BLOCK];
    struct err e = {0};
    const ssize_t got = read(w->sound_fd, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR)
        return;
    if (got <= 0) {
        w->sound_fd = -1;
        if (w->has_thread && w->e.msg[0])
            w->exit_code = cmd_fail(w->o->page, "%s", w->e.msg);
        satellite_end(&w->satellite);
        return;
    }
    if (!w->pcm)
        buf_put(&w->samples, bytes, (size_t)got);
    else if (pcm_feed(w->pcm, bytes, (size_t)got, &w->samples, &e) < 0)
        w->exit_code = cmd_fail(w->o->page, "%s", e.msg);
    hear_samples(w);
}

/* ---- */

static bool wants_sound(const struct work *w)
{
    const enum satellite_state s = w->satellite.state;
    return w->sound_fd >= 0 && !(w->is_pipe && (s == SATELLITE_THINKS || s == SATELLITE_SPEAKS ||
                                                s == SATELLITE_PAUSED));
}

static void work_on(struct work *w)
{
    if (wants_sound(w)) /* what came with the head */
        hear_samples(w);
    while (w->exit_code == CMD_OK && (satellite_works(&w->satellite) || w->listen_fd >= 0)) {
        struct pollfd p[] = {{.fd = w->fd, .events = POLLIN},
                             {.fd = wants_sound(w) ? w->sound_fd : -1, .events = POLLIN},
                             {.fd = w->listen_fd, .events = POLLIN},
                             {.fd = w->interrupt_fd, .events = POLLIN}};
        if (poll(p, 4, -1) < 0 && errno != EINTR)
            break;
        if (p[3].revents && term_interrupted(w->interrupt_fd))
            break; /* as usual for what has no end */
        if (p[0].revents)
            read_events(w);
        if (p[1].revents && w->sound_fd >= 0)
            read_sound(w);
        if (p[2].revents)
            accept_one(w);
    }
}

static int open_wake(struct work *w, struct err *e)
{
    const char *word = opts_text(w->o, "wake");
    if (!word)
        return 0;
    int rc = wake_open_named(&w->wake, word, e);
    return rc < 0 ? rc : wake_ear_create(&w->ear, w->wake, e);
}

static int open_link(struct work *w, struct err *e)
{
    const char *server = opts_text(w->o, "server"), *address = opts_text(w->o, "listen");
    char name[256];
    if (!server == !address)
        return err_set(e, SHOAL_EINVAL, "either --server or --listen is needed");
    if (server)
        return connect_to(w, server, e);
    int rc = listen_open(&w->listen_fd, plain(address), LISTEN_ALONE, e);
    if (rc < 0)
        return rc;
    listen_address(w->listen_fd, name, sizeof(name));
    printf("listening on tcp://%s\n", name);
    fflush(stdout);
    return 0;
}

static int run(struct work *w, struct err *e)
{
    static const struct satellite_ops ops = {on_send, on_sound_begin, on_sound, on_sound_end,
                                             on_note};
    int rc = open_wake(w, e);
    const struct satellite_opts so = {.name = opts_text(w->o, "name"),
                                      .room = opts_text(w->o, "room"),
                                      .serves = opts_text(w->o, "listen") != NULL,
                                      .wake = w->ear};
    satellite_init(&w->satellite, &so, &ops, w);
    if (rc == 0)
        rc = strcmp(opts_text(w->o, "device"), "-") == 0 ? open_stdin(w, e) : open_microphone(w, e);
    if (rc == 0)
        rc = open_link(w, e);
    if (rc == 0)
        work_on(w);
    satellite_fini(&w->satellite);
    return rc;
}

static void close_all(struct work *w)
{
    if (w->fd >= 0)
        close(w->fd);
    if (w->listen_fd >= 0)
        close(w->listen_fd);
    if (w->has_thread) { /* its next write fails */
        close(w->sound_fd);
        pthread_join(w->thread, NULL);
    }
    microphone_close(w->microphone);
    pcm_destroy(w->pcm);
    on_sound_end(w);
    wake_ear_destroy(w->ear);
    wake_close(w->wake);
    buf_fini(&w->in);
    buf_fini(&w->out);
    buf_fini(&w->samples);
}

int cmd_satellite(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct work w = {.o = &o, .exit_code = CMD_OK, .interrupt_fd = term_catch_interrupt()};
    struct err e = {0};
    w.fd = w.listen_fd = w.sound_fd = -1;
    buf_init(&w.in, MAX_IN_BYTES + 65536);
    buf_init(&w.out, MAX_IN_BYTES);
    buf_init(&w.samples, (size_t)4 << 20);
    if (run(&w, &e) < 0)
        w.exit_code = cmd_fail(&page, "%s", e.msg);
    close_all(&w);
    term_release_interrupt(w.interrupt_fd);
    opts_fini(&o);
    return w.exit_code;
}
