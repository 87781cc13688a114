/* bench_voice.c - the recognizer of the pack for bench/voice.js: reads lines with names of files
 * and answers each with one line of JSON: milliseconds, processor milliseconds, text.
 * DRAFT: how the texts may begin, as a turn that is heard again says.
 * Usage: bench_voice MODEL THREADS, or bench_voice raw FILE: writes 16-bit samples to stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/audio_read.h"
#include "base/clock.h"
#include "line_answers.h"
#include "wire/json_out.h"

#define MOST (30u * AUDIO_RATE)

static int16_t sound[MOST];

static uint32_t load(const char *path)
{
    struct err e = {0};
    struct audio *a;
    int64_t n = audio_open_file(&a, path, &e);
    if (n == 0)
        n = audio_read(a, sound, MOST, &e);
    audio_close(a);
    if (n > 0)
        return (uint32_t)n;
    fprintf(stderr, "bench_voice: %s: %s\n", path, n < 0 ? e.msg : "no sound");
    exit(1);
}

static void hear(struct shoal_engine *engine, char *path)
{
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = SHOAL_KIND_TRANSCRIBE,
                                 .samples = sound,
                                 .n_samples = load(path),
                                 .document = getenv("DRAFT")};
    struct shoal_task *t;
    struct shoal_error e;
    struct buf out;
    o.document_bytes = o.document ? strlen(o.document) : 0;
    const uint64_t start = clock_ns();
    const double cpu = line_answers_cpu_ms();
    if (shoal_infer_submit(engine, &o, &t, &e) < 0)
        line_answers_stop(e.msg);
    if (shoal_task_wait(t) < 0)
        line_answers_stop(shoal_task_result(t)->message);
    const double ms = (double)(clock_ns() - start) / 1e6, used = line_answers_cpu_ms() - cpu;
    const struct shoal_result *r = shoal_task_result(t);
    buf_init(&out, 1 << 20);
    struct json_out j = json_out_make(&out);
    json_out_object(&j);
    json_out_member_num(&j, "ms", ms);
    json_out_member_num(&j, "cpu_ms", used);
    json_out_member_num(&j, "seconds", (double)o.n_samples / AUDIO_RATE);
    json_out_member_strn(&j, "text", r->text, r->text_bytes);
    json_out_object_end(&j);
    printf("%s\n", buf_str(&out));
    buf_fini(&out);
    shoal_task_free(t);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_voice MODEL THREADS | raw FILE\n");
        return 2;
    }
    if (strcmp(argv[1], "raw") == 0) {
        const uint32_t n = load(argv[2]);
        return fwrite(sound, sizeof(*sound), n, stdout) == n ? 0 : 1;
    }
    line_answers_run(argv[1], argv[2], hear);
    return 0;
}
