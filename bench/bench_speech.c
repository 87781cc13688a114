/* bench_speech.c - the voice of the pack for bench/speech.js: reads lines "FILE<tab>TEXT", writes
 * the sound to the file (WAV) and answers each with one line of JSON: milliseconds to the first
 * sound and to the last, processor milliseconds, seconds of sound.  "words<tab>TEXT": only the
 * words that are said.  Usage: bench_speech MODEL THREADS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "audio/audio_write.h"
#include "base/clock.h"
#include "shoal/shoal.h"
#include "text/speech/speech_text.h"

static double cpu_ms(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
}

static void stop(const char *why)
{
    fprintf(stderr, "bench_speech: %s\n", why);
    exit(1);
}

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
            stop(e.msg);
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
        stop(file);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct shoal_result *r = shoal_task_result(t->tasks[i]);
        if (audio_out_put(a, r->samples, r->n_samples, &e) < 0)
            stop(e.msg);
    }
    audio_out_take(a, &bytes);
    if (fwrite(buf_str(&bytes), 1, bytes.len, f) != bytes.len || fclose(f) != 0)
        stop(file);
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
    const double cpu = cpu_ms();
    double first = 0;
    buf_init(&words, 1 << 20);
    speech_text_normal(text, strlen(text), &words);
    for (size_t at = 0, n; (n = speech_text_cut(buf_str(&words) + at, words.len - at)) > 0; at += n)
        submit(engine, &t, buf_str(&words) + at, n);
    for (uint32_t i = 0; i < t.n; i++) {
        if (shoal_task_wait(t.tasks[i]) < 0)
            stop(shoal_task_result(t.tasks[i])->message);
        if (i == 0)
            first = (double)(clock_ns() - start) / 1e6;
        n_samples += shoal_task_result(t.tasks[i])->n_samples;
        rate = shoal_task_result(t.tasks[i])->sample_rate;
    }
    const double ms = (double)(clock_ns() - start) / 1e6, used = cpu_ms() - cpu;
    save(file, &t, n_samples, rate);
    printf("{\"first_ms\":%.3f,\"ms\":%.3f,\"cpu_ms\":%.3f,\"seconds\":%.3f}\n", first, ms, used,
           (double)n_samples / rate);
    fflush(stdout);
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
    fflush(stdout);
    buf_fini(&words);
}

int main(int argc, char **argv)
{
    struct shoal_engine_opts o = {.size = sizeof(o)};
    struct shoal_engine *engine;
    struct shoal_error e;
    char line[4096];
    if (argc != 3) {
        fprintf(stderr, "usage: bench_speech MODEL THREADS\n");
        return 2;
    }
    o.n_threads = (uint32_t)atoi(argv[2]);
    if (shoal_engine_open(&engine, argv[1], &o, &e) < 0)
        stop(e.msg);
    while (fgets(line, sizeof(line), stdin)) {
        char *tab = strchr(line, '\t');
        line[strcspn(line, "\n")] = '\0';
        if (!tab)
            stop("a line has no tab");
        *tab = '\0';
        if (strcmp(line, "words") == 0)
            write_out(tab + 1);
        else
            say(engine, line, tab + 1);
    }
    shoal_engine_close(engine);
    return 0;
}
