/* term.h - terminal interaction: Ctrl-C as a file descriptor, progress on stderr.
 *
 * Thread:    the main thread.  term_catch_interrupt must run before threads are started, so that
 *            they inherit the blocked signal.
 * Ownership: caller's storage. */
#ifndef SHOAL_CMD_CLI_TERM_H
#define SHOAL_CMD_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on SIGINT does not end the program but makes the descriptor readable.  Returns -1 if
 * that fails, or if the program was started with SIGINT ignored, which is kept. */
int term_catch_interrupt(void);
/* Restores the usual meaning of Ctrl-C; -1 is fine. */
void term_release_interrupt(int fd);
/* True if Ctrl-C was pressed since the last call; false for -1. */
bool term_interrupted(int fd);

enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED };

/* What switches a descriptor's output to a style: "" if it is no terminal, a dumb one, or NO_COLOR
 * is set (no-color.org). */
const char *term_style(int fd, enum term_style s);

/* A bar that appears if something takes longer than half a second.  If stderr is not a terminal,
 * prints a line every ten seconds instead. */
struct term_progress {
    const char *what;
    uint64_t start_ns, shown_ns;
    bool tty, visible;
};

void term_progress_init(struct term_progress *p, const char *what);
/* part: 0..1; note: short text after the bar, or NULL. */
void term_progress_show(struct term_progress *p, double part, const char *note);
/* The text of a bar for a terminal of so many columns; never wider. */
void term_progress_line(char *out, size_t cap, unsigned n_columns, const char *what, double part,
                        const char *eta, const char *note);
/* Removes the bar. */
void term_progress_end(struct term_progress *p);

#endif
