/* engine_files.h - detects changes to the files of a loaded model.
 *
 * Weights are mapped, and rows of the embedding are read from the model file while it runs. If one
 * of these files is truncated or overwritten, answers would mix both versions. So the files are
 * checked (one fstat each) when a task is submitted, after the step or batch that ends it, and
 * periodically while a generation runs. After a change every task of the engine ends with
 * SHOAL_ECHANGED, and new ones are refused: the model must be reloaded. Replacing a file by rename
 * is safe: the engine keeps the old one.
 *
 * Thread: any. */
#ifndef SHOAL_ENGINE_ENGINE_FILES_H
#define SHOAL_ENGINE_ENGINE_FILES_H

#include <stdint.h>

#include "base/err.h"

struct shoal_engine;

/* 0, or SHOAL_ECHANGED; e may be NULL. */
int engine_files_check(struct shoal_engine *en, struct err *e);
/* The same for a task that ends, on the engine's thread: once for all that end with the last step
 * or batch. The code that computes one clears `files_checked` after it. */
int engine_files_check_end(struct shoal_engine *en);
/* The same while tasks run: only every 100 ms, by the given time. */
int engine_files_check_at(struct shoal_engine *en, uint64_t now_ns);
/* Logs that a damaged cache of tiled weights was rebuilt. */
void engine_files_report(const struct shoal_engine *en, const char *path);

#endif
