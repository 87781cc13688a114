/* cmd_transcribe.c - shoal transcribe: writes down what is said in sound files. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audio/audio_read.h"
#include "audio/transcript.h"
#include "audio/windows.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/home_phrases.h"
#include "cmd/local/local_pipe.h"
#include "cmd/local/model_opts.h"
#include "wire/json_out.h"

cmd_fn cmd_transcribe;

static const struct opts_def defs[] = {
    {"output", 'o', OPTS_CHOICE, "text|srt|vtt", "text", 0, 0, "form of the result"},
    {"phrases", 0, OPTS_TEXT, "TEXT", NULL, 0, 0,
     "names and words that are likely to be said, separated by commas"},
    {"home", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "home file: the names of its rooms, devices and people are likely to be said"},
    {"language", 0, OPTS_TEXT, "CODE", NULL, 0, 0,
     "language that is spoken, such as de; without it the model hears which one"},
    {"translate", 0, OPTS_FLAG, NULL, NULL, 0, 0, "write it in English"},
    {"no-vad", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "hear all of the sound, whether somebody speaks or not"},
    {"words", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "with the time of each word: in --json, and as captions of one word"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object per file"},
};

static const struct opts_page page = {
    .command = "transcribe",
    .arguments = "FILE...",
    .min_args = 1,
    .max_args = UINT32_MAX,
    .summary = "Writes down what is said in sound files.",
    .details = "WAV, FLAC, Ogg Opus, Ogg Vorbis, MP3 or AIFF, of any rate and number of channels.\n"
               "A long sound is cut at pauses; memory does not depend on its length.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_hear_group},
    .examples = "  shoal transcribe meeting.mp3\n"
                "  shoal transcribe -o srt talk.wav > talk.srt\n"
                "  shoal transcribe --json *.flac > heard.jsonl\n",
};

struct work {
    const struct opts *o;
    struct local local;
    struct local_pipe pipe;
    struct buf phrases;
    char language[32];       /* as shoal_infer_opts.labels; "": as it is heard */
    struct transcript heard; /* of the current file */
    struct term_progress bar;
    int16_t *sound; /* [2 * WINDOWS_MOST], what no window has yet */
    uint32_t n_sound;
    uint64_t n_put;      /* samples of the current file that are in windows */
    double file_seconds; /* 0: not known */
    int interrupt_fd;
    int exit_code;
};

struct span { /* of a window, in seconds; in its request's arena */
    double start, end;
};

static int take(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct work *w = ctx;
    const struct span *at = row;
    char note[48];
    transcript_add_result(&w->heard, at->start, at->end, r);
    snprintf(note, sizeof(note), "%.0f s", at->end);
    term_progress_show(&w->bar, w->file_seconds > 0 ? at->end / w->file_seconds : 0.0, note);
    return w->heard.text.rc < 0 ? err_set(e, w->heard.text.rc, "transcript") : 0;
}

/* The first n samples become a request. */
static int put_window(struct work *w, uint32_t n, struct err *e)
{
    struct request *r = flow_take_request(&w->local.owner);
    struct request_input *input = r ? arena_zalloc(&r->arena, sizeof(*input)) : NULL;
    struct span *at = input ? arena_zalloc(&r->arena, sizeof(*at)) : NULL;
    int16_t *samples = at ? arena_zalloc_n(&r->arena, n, sizeof(*samples)) : NULL;
    if (!samples) {
        if (r)
            flow_give_request(&w->local.owner, r);
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u samples", n);
    }
    memcpy(samples, w->sound, n * sizeof(*samples));
    at->start = (double)w->n_put / AUDIO_RATE;
    at->end = (double)(w->n_put + n) / AUDIO_RATE;
    *input = (struct request_input){.samples = samples, .n_samples = n};
    r->kind = REQUEST_INFER;
    r->model = opts_text(w->o, "model");
    r->received_ns = clock_ns();
    r->infer = (struct request_infer){.kind = SHOAL_KIND_TRANSCRIBE,
                                      .inputs = input,
                                      .n_inputs = 1,
                                      .raw = opts_flag(w->o, "no-vad"),
                                      .words = opts_flag(w->o, "words"),
                                      .labels = w->language[0] ? w->language : NULL,
                                      .prompt = w->phrases.len ? buf_str(&w->phrases) : NULL};
    r->input_bytes = n * sizeof(int16_t);
    w->n_put += n;
    w->n_sound -= n;
    memmove(w->sound, w->sound + n, w->n_sound * sizeof(*w->sound));
    return local_pipe_put(&w->pipe, r, at, e);
}

static int put_sound(struct work *w, struct audio *a, struct err *e)
{
    bool last = false;
    while (!last) {
        int64_t got =
            audio_read(a, w->sound + w->n_sound, 2 * (size_t)WINDOWS_MOST - w->n_sound, e);
        if (got < 0)
            return (int)got;
        w->n_sound += (uint32_t)got;
        last = got == 0;
        for (uint32_t n; (n = windows_cut(w->sound, w->n_sound, last)) > 0;) {
            int rc = put_window(w, n, e);
            if (rc < 0)
                return rc;
        }
    }
    return w->n_put > 0 ? 0 : err_set(e, SHOAL_EFORMAT, "there is no sound in it");
}

static int print(struct work *w, const char *file)
{
    struct buf out;
    buf_init(&out, (size_t)1 << 28);
    if (opts_flag(w->o, "json")) {
        struct json_out j = json_out_make(&out);
        json_out_object(&j);
        json_out_member_str(&j, "file", file);
        json_out_member_str(&j, "model", opts_text(w->o, "model"));
        if (w->heard.language[0])
            json_out_member_str(&j, "language", w->heard.language);
        transcript_json(&w->heard, &j);
        json_out_object_end(&j);
        buf_putc(&out, '\n');
    } else {
        const char *form = opts_text(w->o, "output");
        transcript_put(&w->heard, &out,
                       strcmp(form, "srt") == 0   ? TRANSCRIPT_SRT
                       : strcmp(form, "vtt") == 0 ? TRANSCRIPT_VTT
                                                  : TRANSCRIPT_TEXT);
    }
    const int rc = out.rc < 0 ? cmd_fail(w->o->page, "out of memory") : cmd_print(w->o->page, &out);
    buf_fini(&out);
    return rc;
}

static int hear_file(struct work *w, const char *file, struct err *e)
{
    struct audio *a;
    int rc = audio_open_file(&a, file, e);
    if (rc < 0)
        return rc;
    w->n_put = w->n_sound = 0;
    w->file_seconds = audio_info(a)->seconds;
    transcript_clear(&w->heard);
    term_progress_init(&w->bar, file);
    rc = put_sound(w, a, e);
    if (rc < 0)
        rc = err_wrap(e, "%s", file);
    else
        rc = local_pipe_drain(&w->pipe, e);
    term_progress_end(&w->bar);
    audio_close(a);
    if (rc == 0)
        w->exit_code = print(w, file);
    return rc;
}

static int hear_files(struct work *w)
{
    struct err e = {0};
    int rc = 0;
    transcript_init(&w->heard);
    w->sound = mem_alloc(2 * WINDOWS_MOST * sizeof(*w->sound));
    if (!w->sound)
        return cmd_fail(w->o->page, "out of memory");
    local_pipe_init(&w->pipe, &w->local, w->interrupt_fd, take, w);
    for (size_t i = 0; rc == 0 && w->exit_code == CMD_OK && i < w->o->n_args; i++)
        rc = hear_file(w, w->o->args[i], &e);
    local_pipe_fini(&w->pipe);
    return w->exit_code != CMD_OK   ? w->exit_code
           : rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
           : rc < 0                 ? cmd_fail(w->o->page, "%s", e.msg)
                                    : CMD_OK;
}

int cmd_transcribe(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct work w = {.o = &o, .exit_code = CMD_OK, .interrupt_fd = term_catch_interrupt()};
    snprintf(w.language, sizeof(w.language), "%.20s%s",
             opts_text(&o, "language") ? opts_text(&o, "language") : "",
             opts_flag(&o, "translate") ? ">en" : "");
    struct shoal_engine *engine = NULL;
    struct model_name name;
    struct err e = {0};
    rc = model_opts_specialist_open(&o, w.interrupt_fd, &engine, &name);
    if (rc == CMD_OK && (local_open(&w.local, &e) < 0 ||
                         local_lend(&w.local, opts_text(&o, "model"), NULL, engine, &e) < 0))
        rc = cmd_fail(o.page, "%s", e.msg);
    buf_init(&w.phrases, (size_t)1 << 20);
    if (rc == CMD_OK &&
        home_phrases_put(&w.phrases, opts_text(&o, "home"), opts_text(&o, "phrases"), &e) < 0)
        rc = cmd_fail(o.page, "%s", e.msg);
    if (rc == CMD_OK)
        rc = hear_files(&w);
    buf_fini(&w.phrases);
    transcript_fini(&w.heard);
    mem_free(w.sound);
    local_close(&w.local);
    shoal_engine_close(engine);
    model_name_fini(&name);
    term_release_interrupt(w.interrupt_fd);
    opts_fini(&o);
    return rc;
}
