/* bench_speech.c - the voice of the pack for bench/speech.js: reads lines "FILE<tab>TEXT", writes
 * the sound to the file (WAV) and answers each with one line of JSON: milliseconds to the first
 * sound and to the last, processor milliseconds, seconds of sound.  "words<tab>TEXT": only the
 * words that are said.  Usage: bench_speech MODEL THREADS. */
#include <stdio.h>
#include <string.h>

#include "audio/audio_write.h"
#include "base/clock.h"
#include "line_answers.h"
#include "text/speech/speech_text.h"

/* All parts of a text are submitted at once, as the server does. */
struct talk {
    struct shoal_task *tasks[256];
    uint32_t n;
};

static void submit(struct shoal_engine *engine, struct talk *t, const char *text, size_t n)
{
    struct shoal_error e;
    for (uint64_t part = 1; part <= SHOAL_SPEAK_PARTS && t->n < 256; part++) {
        struct shoal_infer_opts o = {.size = sizeof(o),
                                     .kind = SHOAL_KIND_SPEAK,
                                     .text = text,
                                     .text_bytes = n,
                                     .part = part};
        if (shoal_infer_submit(engine, &o, &t->tasks[t->n++], &e) < 0)
            line_answers_stop(e.msg);
    }
}

static void save(const char *file, const struct talk *t, uint64_t n_samples, uint32_t rate)
{
    struct audio_out *a;
    struct buf bytes;
    struct err e = {0};
    FILE *f = fopen(file, "wb");
    buf_init(&bytes, (size_t)1 << 30);
    if (!f || audio_out_create(&a, AUDIO_FORM_WAV, rate, n_samples, &e) < 0)
        line_answers_stop(file);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct shoal_result *r = shoal_task_result(t->tasks[i]);
        if (audio_out_put(a, r->samples, r->n_samples, &e) < 0)
            line_answers_stop(e.msg);
    }
    audio_out_take(a, &bytes);
    if (fwrite(buf_str(&bytes), 1, bytes.len, f) != bytes.len || fclose(f) != 0)
        line_answers_stop(file);
    audio_out_destroy(a);
    buf_fini(&bytes);
}

static void say(struct shoal_engine *engine, const char *file, const char *text)
{
    struct talk t = {.n = 0};
    struct buf words;
    uint64_t n_samples = 0;
    uint32_t rate = 1;
    const uint64_t start = clock_ns();
    const double cpu = line_answers_cpu_ms();
    double first = 0;
    buf_init(&words, 1 << 20);
    speech_text_normal(text, strlen(text), &words);
    for (size_t at = 0, n; (n = speech_text_cut(buf_str(&words) + at, words.len - at)) > 0; at += n)
        submit(engine, &t, buf_str(&words) + at, n);
    for (uint32_t i = 0; i < t.n; i++) {
        if (shoal_task_wait(t.tasks[i]) < 0)
            line_answers_stop(shoal_task_result(t.tasks[i])->message);
        if (i == 0)
            first = (double)(clock_ns() - start) / 1e6;
        n_samples += shoal_task_result(t.tasks[i])->n_samples;
        rate = shoal_task_result(t.tasks[i])->sample_rate;
    }
    const double ms = (double)(clock_ns() - start) / 1e6, used = line_answers_cpu_ms() - cpu;
    save(file, &t, n_samples, rate);
    printf("{\"first_ms\":%.3f,\"ms\":%.3f,\"cpu_ms\":%.3f,\"seconds\":%.3f}\n", first, ms, used,
           (double)n_samples / rate);
    for (uint32_t i = 0; i < t.n; i++)
        shoal_task_free(t.tasks[i]);
    buf_fini(&words);
}

static void write_out(const char *text)
{
    struct buf words;
    buf_init(&words, 1 << 20);
    speech_text_normal(text, strlen(text), &words);
    printf("{\"words\":\"%s\"}\n", buf_str(&words));
    buf_fini(&words);
}

static void answer(struct shoal_engine *engine, char *line)
{
    char *tab = strchr(line, '\t');
    if (!tab)
        line_answers_stop("a line has no tab");
    *tab = '\0';
    if (strcmp(line, "words") == 0)
        write_out(tab + 1);
    else
        say(engine, line, tab + 1);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_speech MODEL THREADS\n");
        return 2;
    }
    line_answers_run(argv[1], argv[2], answer);
    return 0;
}
