/* quantize_report.h - shared by `model convert` and `model quantize`: choosing an encoding,
 * progress, and the report.
 *
 * Thread: the main thread. */
#ifndef SHOAL_CMD_MODEL_QUANTIZE_REPORT_H
#define SHOAL_CMD_MODEL_QUANTIZE_REPORT_H

#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "format/convert/quantize.h"
#include "wire/json_out.h"

/* Reads --type; CMD_OK, or CMD_USAGE after a message. */
int quantize_report_kind(const struct opts *o, enum quantize_kind *kind);

struct quantize_report_watch {
    struct term_progress bar;
    int interrupt_fd;
};
/* For quantize_opts.progress, with a watch as its context. */
bool quantize_report_progress(void *ctx, const struct quantize_progress *p);

/* Sizes and types; with tensors, also every tensor. */
void quantize_report_text(struct buf *b, const struct quantize_result *r, bool tensors);
/* The same as members of the open object. */
void quantize_report_json(struct json_out *j, const struct quantize_result *r);

#endif
