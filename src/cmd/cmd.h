/* cmd.h - what the commands of the shoal program share.
 *
 * A command gets the arguments after its name and returns the exit code of the program.  Data goes
 * to stdout, everything else to stderr.
 *
 * Thread: the main thread. */
#ifndef SHOAL_CMD_CMD_H
#define SHOAL_CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cmd/cli/exit_code.h"
#include "cmd/cli/opts.h"

/* A command.  The file that defines one declares it, and commands.c those in its tables: a new
 * command changes no header that all others include. */
typedef int cmd_fn(int argc, const char *const *argv);

/* Parses options and sets up logging.  false: exit with *exit_code; true: it is CMD_OK. */
bool cmd_begin(struct opts *o, const struct opts_page *page, int argc, const char *const *argv,
               int *exit_code);
/* A whole command: parses options and runs it with them.  Returns its exit code. */
int cmd_page(const struct opts_page *page, int argc, const char *const *argv,
             int (*run)(const struct opts *o));
/* Prints "shoal <command>: <message>" to stderr; returns CMD_FAILED. */
int cmd_fail(const struct opts_page *page, const char *fmt, ...) SHOAL_PRINTF(2, 3);
/* Writes all of b to stdout.  CMD_OK, or CMD_FAILED after a message. */
int cmd_print(const struct opts_page *page, const struct buf *b);
/* The same, and frees b. */
int cmd_print_end(const struct opts_page *page, struct buf *b);

/* Reads a command's input: the argument, the file of -f, or stdin if it is not a terminal or the
 * argument is "-".  Reports errors; returns CMD_OK or an exit code. */
int cmd_read_text(const struct opts *o, const char *argument, const char *file, struct buf *out);
/* Peak memory of this process so far. */
double cmd_peak_mib(void);
/* Parses numbers separated by commas, blanks or brackets and appends them to *ids (mem_free). */
SHOAL_MUST_CHECK int cmd_parse_ids(const char *text, size_t n_bytes, int32_t **ids, size_t *n_ids,
                                   struct err *e);

#endif
