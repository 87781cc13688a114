/* cmd_say.c - shoal say: a text as speech. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audio/audio_play.h"
#include "audio/audio_write.h"
#include "base/clock.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/local_pipe.h"
#include "cmd/local/model_opts.h"
#include "text/speech/speech_text.h"

cmd_fn cmd_say;

#define MAX_NORMAL ((size_t)64 << 20)

static const struct opts_def defs[] = {
    {"output", 'o', OPTS_TEXT, "FILE", NULL, 0, 0,
     "write the sound to this file, by its ending: wav, pcm, flac, opus or mp3; -: to stdout"},
    {"voice", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "a voice of the model; default: its first"},
    {"rate", 'r', OPTS_REAL, "X", "1", 0.25, 4, "how fast: 2 is twice as fast"},
    {"volume", 0, OPTS_REAL, "X", "1", 0.01, 4, "how loud: 2 is twice the amplitude"},
    {"seed", 0, OPTS_UINT, "N", "0", 0, UINT32_MAX, "another number, a slightly other tone"},
    {"device", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "sound device of ALSA, if nothing is written"},
    {"text", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print the words that would be said instead"},
};

static const struct opts_page page = {
    .command = "say",
    .arguments = "[TEXT]",
    .max_args = 1,
    .summary = "Says a text.",
    .details =
        "Without TEXT it is read from stdin. Numbers, units, times, dates, money, "
        "abbreviations and\naddresses are said as words. The sound is played by ALSA; with -o, "
        "or if stdout is a file or a\npipe, it is written.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_speak_group},
    .examples = "  shoal say \"The kitchen lights are on.\"\n"
                "  shoal say -o reply.wav \"It is 21.5 \xc2\xb0"
                "C at 7:05 p.m.\"\n"
                "  shoal say -r 1.3 < news.txt | aplay\n",
};

struct work {
    const struct opts *o;
    struct local local;
    struct local_pipe pipe;
    struct audio_play *play; /* or: */
    struct audio_out *out;
    enum audio_form form;
    int fd;
    bool whole; /* the bytes are written at the end */
    uint64_t n_samples;
    int interrupt_fd;
};

static int write_all(struct work *w, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        const ssize_t done = write(w->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_set(e, SHOAL_EIO, "cannot write the sound: %s", strerror(errno));
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int write_taken(struct work *w, struct err *e)
{
    struct buf bytes;
    buf_init(&bytes, SIZE_MAX / 2);
    audio_out_take(w->out, &bytes);
    int rc = bytes.rc < 0 ? err_set(e, bytes.rc, "out of memory for the sound")
                          : write_all(w, buf_str(&bytes), bytes.len, e);
    buf_fini(&bytes);
    return rc;
}

/* The first sound shows the rate of the voice. */
static int begin_sound(struct work *w, uint32_t rate, struct err *e)
{
    if (w->out || w->play)
        return 0;
    return w->fd < 0 ? audio_play_open(&w->play, opts_text(w->o, "device"), rate, e)
                     : audio_out_create(&w->out, w->form, rate, 0, e);
}

static int take(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct work *w = ctx;
    (void)row;
    int rc = begin_sound(w, r->sample_rate, e);
    w->n_samples += r->n_samples;
    if (rc == 0 && w->play)
        return audio_play_put(w->play, r->samples, r->n_samples, e);
    if (rc == 0)
        rc = audio_out_put(w->out, r->samples, r->n_samples, e);
    return rc < 0 || w->whole ? rc : write_taken(w, e);
}

/* A regular file gets the length that its header lacks. */
static int finish_wav(struct work *w, struct err *e)
{
    const uint64_t bytes = w->n_samples * 2;
    const uint32_t data = bytes > UINT32_MAX - 36 ? UINT32_MAX - 36 : (uint32_t)bytes;
    const uint32_t riff = data + 36;
    struct stat st;
    if (fstat(w->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)(bytes + 44))
        return 0;
    if (pwrite(w->fd, &riff, 4, 4) != 4 || pwrite(w->fd, &data, 4, 40) != 4)
        return err_set(e, SHOAL_EIO, "cannot write the sound: %s", strerror(errno));
    return 0;
}

static int end_sound(struct work *w, struct err *e)
{
    if (w->n_samples == 0)
        return err_set(e, SHOAL_EINVAL, "there is nothing to say in the text");
    if (!w->out)
        return 0;
    int rc = audio_out_end(w->out, e);
    if (rc == 0)
        rc = write_taken(w, e);
    return rc == 0 && w->form == AUDIO_FORM_WAV ? finish_wav(w, e) : rc;
}

static int put_piece(struct work *w, const char *text, size_t n, uint32_t part, struct err *e)
{
    struct request *r = flow_take_request(&w->local.owner);
    struct request_input *input = r ? arena_zalloc(&r->arena, sizeof(*input)) : NULL;
    if (!input) {
        if (r)
            flow_give_request(&w->local.owner, r);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a text");
    }
    *input =
        (struct request_input){.text = request_copy(r, text, n), .text_bytes = n, .part = part};
    r->kind = REQUEST_INFER;
    r->model = opts_text(w->o, "model");
    r->received_ns = clock_ns();
    r->infer = (struct request_infer){.kind = SHOAL_KIND_SPEAK,
                                      .inputs = input,
                                      .n_inputs = 1,
                                      .speed = (float)opts_real(w->o, "rate"),
                                      .volume = (float)opts_real(w->o, "volume"),
                                      .seed = opts_uint(w->o, "seed")};
    r->input_bytes = n;
    return local_pipe_put(&w->pipe, r, NULL, e);
}

static int say(struct work *w, const struct buf *words, struct err *e)
{
    int rc = 0;
    size_t at = 0;
    local_pipe_init(&w->pipe, &w->local, w->interrupt_fd, take, w);
    for (size_t n; rc == 0 && (n = speech_text_cut(buf_str(words) + at, words->len - at)) > 0;
         at += n)
        for (uint32_t part = w->whole ? 0 : 1;
             rc == 0 && part <= (w->whole ? 0 : SHOAL_SPEAK_PARTS); part++)
            rc = put_piece(w, buf_str(words) + at, n, part, e);
    if (rc == 0)
        rc = local_pipe_drain(&w->pipe, e);
    local_pipe_fini(&w->pipe);
    return rc < 0 ? rc : end_sound(w, e);
}

/* Where the sound goes, and its form. */
static int open_output(struct work *w, struct err *e)
{
    const char *path = opts_text(w->o, "output");
    const char *ending = path ? strrchr(path, '.') : NULL;
    w->fd = -1;
    w->form = AUDIO_FORM_WAV;
    if (!path && isatty(STDOUT_FILENO))
        return 0;
    if (!path || strcmp(path, "-") == 0) {
        w->fd = STDOUT_FILENO;
        return 0;
    }
    if (!ending || !audio_form_named(ending + 1, &w->form))
        return err_set(e, SHOAL_EINVAL, "%s: the name must end in .wav, .pcm, .flac, .opus or .mp3",
                       path);
    int rc = audio_form_check(w->form, 22050, e);
    if (rc < 0)
        return rc;
    w->fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
    w->whole = true;
    return w->fd < 0 ? err_set(e, SHOAL_EIO, "%s: %s", path, strerror(errno)) : 0;
}

static int check_voice(const struct work *w, const struct shoal_engine *engine, struct err *e)
{
    const char *voice = opts_text(w->o, "voice"), *has;
    for (uint32_t i = 0; voice && (has = shoal_label(engine, SHOAL_KIND_SPEAK, NULL, i)); i++)
        if (strcmp(has, voice) == 0)
            return 0;
    has = shoal_label(engine, SHOAL_KIND_SPEAK, NULL, 0);
    return voice ? err_set(e, SHOAL_EINVAL, "there is no voice '%s'; the model has: %s", voice,
                           has ? has : "none")
                 : 0;
}

/* Opens the voice and says the words. */
static int speak(struct work *w, const struct buf *words)
{
    struct shoal_engine *engine = NULL;
    struct model_name name;
    struct err e = {0};
    int rc = model_opts_specialist_open(w->o, w->interrupt_fd, &engine, &name);
    if (rc == CMD_OK && (check_voice(w, engine, &e) < 0 || local_open(&w->local, &e) < 0 ||
                         local_lend(&w->local, opts_text(w->o, "model"), NULL, engine, &e) < 0 ||
                         open_output(w, &e) < 0))
        rc = cmd_fail(w->o->page, "%s", e.msg);
    if (rc == CMD_OK && say(w, words, &e) < 0)
        rc = e.code == SHOAL_ECANCELLED ? CMD_INTERRUPTED : cmd_fail(w->o->page, "%s", e.msg);
    audio_out_destroy(w->out);
    audio_play_close(w->play);
    if (w->fd > STDOUT_FILENO && close(w->fd) < 0 && rc == CMD_OK)
        rc = cmd_fail(w->o->page, "cannot write the sound: %s", strerror(errno));
    local_close(&w->local);
    shoal_engine_close(engine);
    model_name_fini(&name);
    return rc;
}

int cmd_say(int argc, const char *const *argv)
{
    struct buf text, words;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    buf_init(&text, (size_t)16 << 20);
    buf_init(&words, MAX_NORMAL);
    rc = cmd_read_text(&o, o.n_args ? o.args[0] : NULL, NULL, &text);
    if (rc == CMD_OK) {
        speech_text_normal(buf_str(&text), text.len, &words);
        if (words.rc < 0)
            rc = cmd_fail(o.page, "out of memory for the text");
    }
    if (rc == CMD_OK && opts_flag(&o, "text")) {
        buf_putc(&words, '\n');
        rc = cmd_print(o.page, &words);
    } else if (rc == CMD_OK) {
        struct work w = {.o = &o, .fd = -1, .interrupt_fd = term_catch_interrupt()};
        rc = speak(&w, &words);
        term_release_interrupt(w.interrupt_fd);
    }
    buf_fini(&text);
    buf_fini(&words);
    opts_fini(&o);
    return rc;
}
