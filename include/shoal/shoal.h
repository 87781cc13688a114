/* shoal.h - the C library of Shoal: include this one.
 *
 * engine   one loaded model with its memory and its own thread.  shoal_engine_open reserves all
 *          the memory it will ever use, and refuses a model that does not fit.
 * task     one generation (prompt tokens in, token events out) or one inference of a specialist
 *          (text or numbers in, one result out).  Tasks of one engine run together, ordered by
 *          priority and deadline; prompts advance in chunks, so a long one does not stall the
 *          others; tasks with a common prefix share its memory.
 * session  a conversation: keeps its tokens, so that each turn costs only what is new.
 * ask      the built-in flow over several models: a command in, actions and a reply out.
 * flow     a flow of your own, from a YAML file: a text in, the results of its steps out.
 *
 * Example: a whole program, cc first.c -o first $(pkg-config --cflags --libs shoal)
 *
 *     #include <shoal/shoal.h>
 *     #include <stdio.h>
 *
 *     static void show(void *ctx, const struct shoal_event *event)
 *     {
 *         fwrite(event->text, 1, event->text_bytes, (FILE *)ctx);
 *     }
 *
 *     int main(void)
 *     {
 *         struct shoal_engine *engine;
 *         struct shoal_error err;
 *         static const int32_t prompt[] = {1}; // of the model's own tokens: shoal_tokenize
 *         int rc = shoal_engine_open(&engine, "model.gguf", NULL, &err);
 *         if (rc == 0) {
 *             struct shoal_task *task;
 *             struct shoal_task_opts opts = {.size = sizeof(opts), .tokens = prompt, .n_tokens = 1,
 *                                            .max_tokens = 24, .event = show, .event_ctx = stdout};
 *             rc = shoal_task_submit(engine, &opts, &task, &err);
 *             if (rc == 0)
 *                 shoal_task_wait(task);
 *             shoal_task_free(rc == 0 ? task : NULL);
 *             shoal_engine_close(engine);
 *         }
 *         if (rc < 0)
 *             fprintf(stderr, "%s\n", err.msg);
 *         return rc < 0;
 *     }
 *
 * Errors:      functions return 0 or a negative SHOAL_E* (shoal_errors.h) and put a text into the
 *              caller's shoal_error, which may be NULL.
 * Versions:    shoal_version.h; structs that may grow carry their size (shoal_base.h).
 * Lifetimes:   each header says who owns what. A returned const pointer is borrowed from the object
 *              that the function was called on; a pointer set through an out parameter belongs to
 *              the caller.
 * Determinism: (model, tokens so far, sampling with its seed) is the whole state of a generation.
 *              A task submitted with the prompt and the tokens that another one produced continues
 *              exactly as that one would have, on any machine. */
#ifndef SHOAL_SHOAL_H
#define SHOAL_SHOAL_H

#include "shoal/shoal_ask.h"
#include "shoal/shoal_base.h"
#include "shoal/shoal_engine.h"
#include "shoal/shoal_flow.h"
#include "shoal/shoal_infer.h"
#include "shoal/shoal_task.h"

#endif
