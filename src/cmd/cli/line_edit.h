/* line_edit.h - lines typed at a terminal: editing, and a history that is kept in a file.
 *
 * It uses libedit if that is installed (Debian: libedit2), with the keys of Emacs or those of
 * ~/.editrc.
 *
 * Thread:    the main thread.
 * Ownership: open gives, close takes back (NULL is fine) and writes the history; a line is borrowed
 *            until the next call.
 * Failure:   open returns NULL without libedit: the caller reads lines as they are. */
#ifndef SHOAL_CMD_CLI_LINE_EDIT_H
#define SHOAL_CMD_CLI_LINE_EDIT_H

#include <stdbool.h>
#include <stddef.h>

struct line_edit;

/* history: file name in the state folder. interrupt_fd: as in lines_next (base/file/lines.h). */
struct line_edit *line_edit_open(const char *history, int interrupt_fd);
void line_edit_close(struct line_edit *x);
/* An enum lines_got; the line is without its newline. */
int line_edit_next(struct line_edit *x, const char *prompt, const char **line, size_t *n);

#endif
