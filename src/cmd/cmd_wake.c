/* cmd_wake.c - shoal wake: where a wake word is said in sounds. */
#include <stdio.h>

#include "audio/audio_read.h"
#include "cmd/cmd.h"
#include "voice/wake.h"
#include "wire/json_out.h"

cmd_fn cmd_wake;

#define BLOCK 16000u

static const struct opts_def defs[] = {
    {"word", 'w', OPTS_TEXT, "WORD", NULL, 0, 0,
     "the word: the included one, or the folder of another (training/voice/wake.py)"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "print one JSON object for each file, also where nothing was found"},
};

static const struct opts_page page = {
    .command = "wake",
    .arguments = "FILE...",
    .min_args = 1,
    .max_args = 4096,
    .summary = "Finds a wake word in sounds: what shoal listen --wake would hear.",
    .details = "Prints the second at which the word ends, for each time that it is said.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal wake kitchen.wav\n"
                "  shoal wake --word ./wake-computer --json *.flac\n",
};

struct work {
    const struct opts *o;
    struct wake *wake;
    struct wake_ear *ear;
    struct buf out;
};

static void put_word(struct work *w, struct json_out *j, const char *file, double at)
{
    if (opts_flag(w->o, "json"))
        json_out_num(j, at);
    else
        buf_printf(&w->out, "%s: %.2f\n", file, at);
}

static int hear(struct work *w, struct json_out *j, const char *file, struct err *e)
{
    static int16_t block[BLOCK];
    struct audio *a = NULL;
    uint64_t n_heard = 0;
    int64_t got = audio_open_file(&a, file, e);
    wake_ear_reset(w->ear);
    while (got >= 0 && (got = audio_read(a, block, BLOCK, e)) > 0)
        for (uint32_t from = 0, n = (uint32_t)got; from < n;) {
            const int64_t at = wake_ear_feed(w->ear, block + from, n - from);
            const uint32_t used = at < 0 ? n - from : (uint32_t)at;
            n_heard += used;
            from += used;
            if (at >= 0)
                put_word(w, j, file, (double)n_heard / AUDIO_RATE);
        }
    audio_close(a);
    return got < 0 ? (int)got : 0;
}

static int find_in(struct work *w, const char *file)
{
    const bool json = opts_flag(w->o, "json");
    struct err e = {0};
    buf_clear(&w->out);
    struct json_out j = json_out_make(&w->out);
    if (json) {
        json_out_object(&j);
        json_out_member_str(&j, "file", file);
        json_out_member_str(&j, "word", wake_word(w->wake));
        json_out_member_array(&j, "words");
    }
    if (hear(w, &j, file, &e) < 0)
        return cmd_fail(w->o->page, "%s: %s", file, e.msg);
    if (json) {
        json_out_array_end(&j);
        json_out_member_num(&j, "peak", (double)wake_ear_peak(w->ear));
        json_out_object_end(&j);
        buf_putc(&w->out, '\n');
    }
    return cmd_print(w->o->page, &w->out);
}

int cmd_wake(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct work w = {.o = &o};
    struct err e = {0};
    buf_init(&w.out, (size_t)16 << 20);
    if (wake_open_named(&w.wake, opts_text(&o, "word"), &e) < 0 ||
        wake_ear_create(&w.ear, w.wake, &e) < 0)
        rc = cmd_fail(&page, "%s", e.msg);
    for (uint32_t i = 0; rc == CMD_OK && i < o.n_args; i++)
        rc = find_in(&w, o.args[i]);
    wake_ear_destroy(w.ear);
    wake_close(w.wake);
    buf_fini(&w.out);
    opts_fini(&o);
    return rc;
}
