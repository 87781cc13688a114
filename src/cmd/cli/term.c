/* term.c - see term.h. */
#include "cmd/cli/term.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"

#define BAR_WIDTH 30
#define FIRST_SHOWN_NS 500000000u
#define TTY_EVERY_NS 100000000u
#define LINE_EVERY_NS 10000000000u

int term_catch_interrupt(void)
{
    struct sigaction now;
    sigset_t set;
    if (sigaction(SIGINT, NULL, &now) < 0 || now.sa_handler == SIG_IGN)
        return -1;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    return fd;
}

void term_release_interrupt(int fd)
{
    sigset_t set;
    if (fd < 0)
        return;
    close(fd);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool term_interrupted(int fd)
{
    struct signalfd_siginfo info;
    bool hit = false;
    while (fd >= 0 && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        hit = true;
    return hit;
}

const char *term_style(int fd, enum term_style s)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[31m"};
    const char *off = getenv("NO_COLOR"), *term = getenv("TERM");
    bool on = isatty(fd) && !(off && off[0]) && term && term[0] && strcmp(term, "dumb") != 0;
    return on ? codes[s] : "";
}

void term_progress_init(struct term_progress *p, const char *what)
{
    *p = (struct term_progress){
        .what = what, .start_ns = clock_ns(), .tty = isatty(STDERR_FILENO) != 0};
    p->shown_ns = p->tty ? p->start_ns + FIRST_SHOWN_NS - TTY_EVERY_NS : p->start_ns;
}

static unsigned columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* Ends a text after n characters. */
static void cut(char *text, unsigned n)
{
    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) == 0x80)
            continue; /* inside a character */
        if (n-- == 0) {
            *text = '\0';
            return;
        }
    }
}

void term_progress_line(char *out, size_t cap, unsigned n_columns, const char *what, double part,
                        const char *eta, const char *note)
{
    char bar[BAR_WIDTH + 1];
    const unsigned room = n_columns / 3;
    const unsigned width = room >= BAR_WIDTH ? BAR_WIDTH : room >= 8 ? room - 4 : 0;
    memset(bar, '.', width);
    memset(bar, '#', (size_t)(part * width + 0.5));
    bar[width] = '\0';
    snprintf(out, cap, "%s%s%s%s %3.0f %%%s%s%s", what, width ? " [" : "", bar, width ? "]" : "",
             part * 100, eta, note ? ", " : "", note ? note : "");
    cut(out, n_columns > 1 ? n_columns - 1 : 1); /* a line that wraps could not be replaced */
}

void term_progress_show(struct term_progress *p, double part, const char *note)
{
    uint64_t now = clock_ns();
    if (now < p->shown_ns || now - p->shown_ns < (p->tty ? TTY_EVERY_NS : LINE_EVERY_NS))
        return;
    p->shown_ns = now;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    double spent = (double)(now - p->start_ns) / 1e9;
    char eta[32] = "";
    if (part > 0.01)
        snprintf(eta, sizeof(eta), ", %.0f s left", spent / part * (1 - part));
    if (!p->tty) {
        fprintf(stderr, "%s: %.0f %%%s%s%s\n", p->what, part * 100, eta, note ? ", " : "",
                note ? note : "");
        return;
    }
    char line[1024];
    term_progress_line(line, sizeof(line), columns(), p->what, part, eta, note);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    p->visible = true;
}

void term_progress_end(struct term_progress *p)
{
    if (p->visible)
        fputs("\r\033[K", stderr);
    p->visible = false;
}
