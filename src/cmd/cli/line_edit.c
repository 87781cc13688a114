/* line_edit.c - see line_edit.h. */
#include "cmd/cli/line_edit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/file/lines.h"
#include "base/file/state_file.h"
#include "base/mem.h"

#define HISTORY_LINES 1000

/* ---- libedit: the few functions that are needed, as histedit.h declares them ---- */

struct editline;
struct history;
struct hist_event {
    int num;
    const char *str;
};

enum { EL_PROMPT = 0, EL_EDITOR = 2, EL_SIGNAL = 3, EL_HIST = 10, EL_GETCFN = 13, EL_CLIENTDATA };
enum { H_SETSIZE = 1, H_ENTER = 10, H_LOAD = 17, H_SAVE = 18, H_SETUNIQUE = 20 };

struct libedit {
    struct editline *(*init)(const char *program, FILE *in, FILE *out, FILE *err);
    void (*end)(struct editline *el);
    void (*reset)(struct editline *el);
    const char *(*gets)(struct editline *el, int *n);
    int (*set)(struct editline *el, int what, ...);
    int (*get)(struct editline *el, int what, ...);
    int (*source)(struct editline *el, const char *file);
    struct history *(*history_init)(void);
    void (*history_end)(struct history *h);
    int (*history)(struct history *h, struct hist_event *e, int what, ...);
};

struct line_edit {
    struct editline *el;
    struct history *history;
    int interrupt_fd;
    bool interrupted;
    const char *prompt;
    char path[PATH_MAX]; /* of the history; "": it is not kept */
    char *line;
};

/* The library of the system, opened when it is first needed, as in net/libcurl.c. */
static struct libedit lib;
static bool ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_library(void)
{
    static const struct {
        const char *name;
        void **to;
    } names[] = {{"el_init", (void **)&lib.init},
                 {"el_end", (void **)&lib.end},
                 {"el_reset", (void **)&lib.reset},
                 {"el_gets", (void **)&lib.gets},
                 {"el_set", (void **)&lib.set},
                 {"el_get", (void **)&lib.get},
                 {"el_source", (void **)&lib.source},
                 {"history_init", (void **)&lib.history_init},
                 {"history_end", (void **)&lib.history_end},
                 {"history", (void **)&lib.history}};
    void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    ready = library != NULL;
    for (size_t i = 0; ready && i < sizeof(names) / sizeof(names[0]); i++)
        ready = (*names[i].to = dlsym(library, names[i].name)) != NULL;
}

/* ---- callbacks ---- */

/* The struct that an editor belongs to. */
static struct line_edit *owner_of(struct editline *el)
{
    void *p = NULL;
    (void)lib.get(el, EL_CLIENTDATA, &p);
    return p;
}

static char *on_prompt(struct editline *el)
{
    return (char *)(uintptr_t)owner_of(el)->prompt;
}

/* One character, or 0 at the end and after Ctrl-C, which arrives as a descriptor. */
static int on_char(struct editline *el, wchar_t *out)
{
    struct line_edit *x = owner_of(el);
    mbstate_t state = {0};
    for (;;) {
        struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                {.fd = x->interrupt_fd, .events = POLLIN}};
        char byte;
        if (poll(fds, 2, -1) < 0 && errno == EINTR)
            continue;
        if (fds[1].revents) {
            x->interrupted = true;
            return 0;
        }
        if (read(STDIN_FILENO, &byte, 1) != 1)
            return 0;
        if (byte ==
            '\0') /* a Ctrl-D that was typed before the prompt: the terminal's mode changed */
            byte = '\004';
        size_t n = mbrtowc(out, &byte, 1, &state);
        if (n == (size_t)-2)
            continue; /* more bytes of it follow */
        if (n == (size_t)-1) {
            state = (mbstate_t){0};
            *out = L'?';
        }
        return 1;
    }
}

/* ---- lifetime ---- */

static void open_history(struct line_edit *x, const char *file)
{
    struct hist_event e;
    x->history = lib.history_init();
    if (!x->history)
        return;
    (void)lib.history(x->history, &e, H_SETSIZE, HISTORY_LINES);
    (void)lib.history(x->history, &e, H_SETUNIQUE, 1);
    (void)lib.set(x->el, EL_HIST, lib.history, x->history);
    if (!state_file_path(x->path, sizeof(x->path), file)) {
        x->path[0] = '\0';
        return;
    }
    state_file_folders(x->path);
    /* for the owner alone: libedit would create it for all */
    int fd = open(x->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    (void)lib.history(x->history, &e, H_LOAD, x->path); /* an empty one has nothing to load */
}

struct line_edit *line_edit_open(const char *history, int interrupt_fd)
{
    struct line_edit *x = mem_zalloc(sizeof(*x));
    pthread_once(&once, load_library);
    if (!x || !ready) {
        mem_free(x);
        return NULL;
    }
    x->interrupt_fd = interrupt_fd;
    x->prompt = "";
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    x->el = lib.init("shoal", stdin, stderr, stderr);
    if (!x->el) {
        line_edit_close(x);
        return NULL;
    }
    (void)lib.set(x->el, EL_CLIENTDATA, x);
    (void)lib.set(x->el, EL_EDITOR, "emacs");
    (void)lib.set(x->el, EL_SIGNAL, 0);
    (void)lib.set(x->el, EL_PROMPT, on_prompt);
    (void)lib.set(x->el, EL_GETCFN, on_char);
    open_history(x, history);
    (void)lib.source(x->el, NULL); /* ~/.editrc, if there is one */
    return x;
}

void line_edit_close(struct line_edit *x)
{
    struct hist_event e;
    if (!x)
        return;
    if (x->history && x->path[0])
        (void)lib.history(x->history, &e, H_SAVE, x->path);
    if (x->history)
        lib.history_end(x->history);
    if (x->el)
        lib.end(x->el);
    mem_free(x->line);
    mem_free(x);
}

int line_edit_next(struct line_edit *x, const char *prompt, const char **line, size_t *n)
{
    struct hist_event e;
    int count = 0;
    x->prompt = prompt;
    x->interrupted = false;
    const char *got = lib.gets(x->el, &count);
    if (x->interrupted) {
        lib.reset(x->el);
        return LINES_INTERRUPT;
    }
    if (!got || count <= 0)
        return LINES_END;
    mem_free(x->line);
    x->line = mem_strdup(got);
    if (!x->line)
        return LINES_END;
    *n = strlen(x->line);
    while (*n > 0 && (x->line[*n - 1] == '\n' || x->line[*n - 1] == '\r'))
        x->line[--*n] = '\0';
    if (*n > 0 && x->history)
        (void)lib.history(x->history, &e, H_ENTER, x->line);
    *line = x->line;
    return LINES_LINE;
}
