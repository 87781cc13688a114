/* cmd.c - see cmd.h. */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/file/file_read.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cli/describe.h"
#include "cmd/cli/term.h"

#define MAX_INPUT_BYTES ((size_t)1 << 30)

static void setup_log(const struct opts *o)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    const char *level = opts_text(o, "log-level");
    size_t i = 0;
    while (i < 3 && strcmp(levels[i], level) != 0)
        i++;
    log_setup((enum log_level)i, strcmp(opts_text(o, "log-format"), "json") == 0
                                     ? LOG_FORMAT_JSON
                                     : LOG_FORMAT_LOGFMT);
}

bool cmd_begin(struct opts *o, const struct opts_page *page, int argc, const char *const *argv,
               int *exit_code)
{
    *exit_code = CMD_OK;
    if (describe_page(page, argc, argv))
        return false;
    enum opts_outcome outcome = opts_parse(o, page, argc, argv);
    if (outcome != OPTS_RUN) {
        *exit_code = outcome == OPTS_USAGE ? CMD_USAGE : CMD_OK;
        opts_fini(o);
        return false;
    }
    setup_log(o);
    return true;
}

int cmd_page(const struct opts_page *page, int argc, const char *const *argv,
             int (*run)(const struct opts *o))
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    rc = run(&o);
    opts_fini(&o);
    return rc;
}

int cmd_fail(const struct opts_page *page, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    opts_complain(page, fmt, ap);
    va_end(ap);
    return CMD_FAILED;
}

int cmd_print(const struct opts_page *page, const struct buf *b)
{
    if (b->rc < 0)
        return cmd_fail(page, "%s", err_text(b->rc));
    if (fwrite(buf_str(b), 1, b->len, stdout) != b->len || fflush(stdout) != 0)
        return cmd_fail(page, "cannot write: %s", strerror(errno));
    return CMD_OK;
}

int cmd_print_end(const struct opts_page *page, struct buf *b)
{
    int rc = cmd_print(page, b);
    buf_fini(b);
    return rc;
}

int cmd_read_text(const struct opts *o, const char *argument, const char *file, struct buf *out)
{
    struct err e = {0};
    buf_init(out, MAX_INPUT_BYTES);
    if (argument && file)
        return opts_usage(o->page, "give either a text or a file, not both");
    if (argument && strcmp(argument, "-") != 0) {
        buf_puts(out, argument);
        return out->rc < 0 ? cmd_fail(o->page, "%s", err_text(out->rc)) : CMD_OK;
    }
    if (!file && !argument && isatty(STDIN_FILENO))
        return opts_usage(o->page, "no input: pass a text, use -f FILE, or pipe it to stdin");
    if (file_read(file ? file : "-", out, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return CMD_OK;
}

double cmd_peak_mib(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss / 1024.0 : 0.0;
}

int cmd_parse_ids(const char *text, size_t n_bytes, int32_t **ids, size_t *n_ids, struct err *e)
{
    const char *end = text + n_bytes;
    size_t cap = *n_ids;
    for (const char *p = text; p < end;) {
        if (strchr(" ,[]\t\r\n", *p)) {
            p++;
            continue;
        }
        const char *start = p;
        int64_t v = 0;
        while (p < end && ascii_is_digit(*p) && v <= INT32_MAX)
            v = v * 10 + (*p++ - '0');
        if (p == start || v > INT32_MAX || (p < end && !strchr(" ,[]\t\r\n", *p))) {
            int n = (int)strcspn(start, " ,[]\t\r\n");
            return err_set(e, SHOAL_EINVAL, "%.*s is not a token id", n < 40 ? n : 40, start);
        }
        if (*n_ids == cap) {
            cap = cap < 64 ? 64 : cap * 2;
            int32_t *grown = mem_realloc(*ids, cap * sizeof(**ids));
            if (!grown)
                return err_set(e, SHOAL_ENOMEM, "out of memory for %zu token ids", cap);
            *ids = grown;
        }
        (*ids)[(*n_ids)++] = (int32_t)v;
    }
    return 0;
}
