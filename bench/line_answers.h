/* line_answers.h - a benchmark's program that opens a model and answers each line of stdin with a
 * line. */
#ifndef SHOAL_BENCH_LINE_ANSWERS_H
#define SHOAL_BENCH_LINE_ANSWERS_H

#include "shoal/shoal.h"

/* Ends the program with a message. */
_Noreturn void line_answers_stop(const char *why);
/* Processor time of this process so far. */
double line_answers_cpu_ms(void);
/* Opens the model with that many threads and calls answer for each line, without its end. */
void line_answers_run(const char *model, const char *threads,
                      void (*answer)(struct shoal_engine *engine, char *line));

#endif
