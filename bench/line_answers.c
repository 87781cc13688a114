/* line_answers.c - see line_answers.h. */
#include "line_answers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

void line_answers_stop(const char *why)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
    exit(1);
}

double line_answers_cpu_ms(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
}

void line_answers_run(const char *model, const char *threads,
                      void (*answer)(struct shoal_engine *engine, char *line))
{
    struct shoal_engine_opts o = {.size = sizeof(o), .n_threads = (uint32_t)atoi(threads)};
    struct shoal_engine *engine;
    struct shoal_error e;
    char line[4096];
    if (shoal_engine_open(&engine, model, &o, &e) < 0)
        line_answers_stop(e.msg);
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        answer(engine, line);
        fflush(stdout);
    }
    shoal_engine_close(engine);
}
