/* log.h - one line per event to stderr, logfmt or JSON.
 *
 * kernels, model and wire never log: they return errors.  Prompts, answers and keys are never
 * logged.
 *
 * Thread:    any; a line is written with one write(). */
#ifndef SHOAL_BASE_LOG_H
#define SHOAL_BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

void log_setup(enum log_level max, enum log_format format);
/* The settings passed to log_setup. */
void log_settings(enum log_level *max, enum log_format *format);
/* mod is the module's name, the text is the event: "model loaded path=... ms=12". */
void log_event(enum log_level level, const char *mod, const char *fmt, ...) SHOAL_PRINTF(3, 4);

#define log_error(mod, ...) log_event(LOG_LEVEL_ERROR, mod, __VA_ARGS__)
#define log_warn(mod, ...) log_event(LOG_LEVEL_WARN, mod, __VA_ARGS__)
#define log_info(mod, ...) log_event(LOG_LEVEL_INFO, mod, __VA_ARGS__)
#define log_debug(mod, ...) log_event(LOG_LEVEL_DEBUG, mod, __VA_ARGS__)

#endif
