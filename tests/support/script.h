/* script.h - text of blocks that begin with "== ", for tests whose cases are files: commands with
 * their outputs, requests with their answers.
 *
 * Include it after cmocka.h. */
#ifndef SHOAL_TESTS_SCRIPT_H
#define SHOAL_TESTS_SCRIPT_H

#include <glob.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_read.h"

struct script_block {
    char head[1024]; /* without "== " */
    const char *body;
    size_t n;
};

/* The block at *at, which moves behind it.  False: there is none. */
static inline bool script_next(const char **at, struct script_block *b)
{
    const char *p = *at;
    if (strncmp(p, "== ", 3) != 0)
        return false;
    size_t n = strcspn(p, "\n");
    assert_true(n > 3 && n - 3 < sizeof(b->head));
    snprintf(b->head, sizeof(b->head), "%.*s", (int)(n - 3), p + 3);
    p += n + (p[n] == '\n');
    const char *end = p;
    if (strncmp(p, "== ", 3) != 0) {
        end = strstr(p, "\n== ");
        end = end ? end + 1 : p + strlen(p);
    }
    b->body = p;
    b->n = (size_t)(end - p);
    *at = end;
    return true;
}

static inline void script_write(const char *name, const char *p, size_t n)
{
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

/* A part of an output that differs from run to run, or from machine to machine: `what`, a regular
 * expression, between two others, which stay. */
struct script_differs {
    const char *before, *what, *after;
};

/* Replaces every such part by a T. */
static inline void script_hide(struct buf *b, const struct script_differs *differs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char pattern[512];
        struct buf out;
        regex_t re;
        regmatch_t m[3];
        const char *p = buf_str(b);
        buf_init(&out, 1 << 24);
        snprintf(pattern, sizeof(pattern), "(%s)%s(%s)", differs[i].before, differs[i].what,
                 differs[i].after);
        assert_int_equal(regcomp(&re, pattern, REG_EXTENDED), 0);
        while (regexec(&re, p, 3, m, 0) == 0) {
            buf_put(&out, p, (size_t)m[1].rm_eo);
            buf_putc(&out, 'T');
            p += m[2].rm_so; /* what is behind one may be in front of the next */
        }
        buf_puts(&out, p);
        regfree(&re);
        buf_fini(b);
        *b = out;
    }
}

static inline void script_replace(struct buf *b, const char *from, const char *to)
{
    struct buf out;
    buf_init(&out, 1 << 24);
    for (const char *p = buf_str(b), *at; *p; p = at) {
        at = strstr(p, from);
        buf_put(&out, p, at ? (size_t)(at - p) : strlen(p));
        if (!at)
            break;
        buf_puts(&out, to);
        at += strlen(from);
    }
    buf_fini(b);
    *b = out;
}

/* Runs every script of a pattern in an empty folder; with SHOAL_GOLDEN in the environment, writes
 * it with the outputs of now.  run: appends the script with these outputs to golden, unless that is
 * NULL; returns how many were wrong.  dir: the folder's name, for run. */
static inline void script_run_all(const char *pattern, char dir[64],
                                  size_t (*run)(const char *name, const char *text,
                                                struct buf *golden))
{
    char home[512], command[96];
    glob_t found;
    size_t n_wrong = 0;
    const bool write = getenv("SHOAL_GOLDEN") != NULL;
    assert_non_null(getcwd(home, sizeof(home)));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct buf text, golden;
        struct err e = {0};
        buf_init(&text, 1 << 24);
        buf_init(&golden, 1 << 24);
        if (file_read(found.gl_pathv[i], &text, &e) < 0)
            fail_msg("%s", e.msg);
        snprintf(dir, 64, "/tmp/shoal-script-XXXXXX");
        assert_non_null(mkdtemp(dir));
        assert_int_equal(chdir(dir), 0);
        n_wrong += run(strrchr(found.gl_pathv[i], '/') + 1, buf_str(&text), write ? &golden : NULL);
        assert_int_equal(chdir(home), 0);
        snprintf(command, sizeof(command), "rm -rf %s", dir);
        assert_int_equal(system(command), 0);
        if (write)
            script_write(found.gl_pathv[i], buf_str(&golden), golden.len);
        buf_fini(&text);
        buf_fini(&golden);
    }
    globfree(&found);
    assert_int_equal(n_wrong, 0);
}

#endif
