/* term.h - the person at the terminal: Ctrl-C as a file descriptor, progress on stderr.
 *
 * Thread:    the main thread.  term_catch_interrupt must run before threads are started, so that
 *            they inherit the blocked signal.
 * Ownership: caller's storage. */
#ifndef SHOAL_CMD_TERM_H
#define SHOAL_CMD_TERM_H

#include <stdbool.h>
#include <stdint.h>

/* From now on SIGINT does not end the program but makes the descriptor readable.  -1 when that
 * cannot be, or when the program was started with SIGINT ignored: then it stays so. */
int term_catch_interrupt(void);
/* Gives Ctrl-C its usual meaning back; -1 is fine. */
void term_release_interrupt(int fd);
/* Was there one since the last call?  false for -1. */
bool term_interrupted(int fd);

/* A bar that appears when something takes longer than half a second.  Where stderr is no terminal,
 * a line every ten seconds instead. */
struct term_progress {
    const char *what;
    uint64_t start_ns, shown_ns;
    bool tty, visible;
};

void term_progress_init(struct term_progress *p, const char *what);
/* part: 0..1; note: short text behind the bar, or NULL. */
void term_progress_show(struct term_progress *p, double part, const char *note);
/* Takes the bar away. */
void term_progress_end(struct term_progress *p);

/* "12.3 MiB" into out, which is returned. */
const char *term_bytes(char out[32], double bytes);

#endif
