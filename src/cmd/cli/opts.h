/* opts.h - one table per command describes its options; the same table parses and prints help.
 *
 * Forms: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, options and arguments in any order, "--"
 * ends the options, a lone "-" is an argument.
 *
 * Thread:    belongs to its caller.
 * Ownership: values borrow argv and the tables.  opts_fini frees the lists.
 * Failure:   usage errors are printed to stderr with the option and the expected value. */
#ifndef SHOAL_CMD_CLI_OPTS_H
#define SHOAL_CMD_CLI_OPTS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opts_type {
    OPTS_FLAG, /* no value */
    OPTS_UINT,
    OPTS_REAL,
    OPTS_TEXT,
    OPTS_LIST,   /* text, may be given several times */
    OPTS_CHOICE, /* one of the words in `value`, "f16|q8" */
};

struct opts_def {
    const char *name; /* without the dashes */
    char letter;      /* short form, or 0 */
    enum opts_type type;
    const char *value;    /* name of the value in the help: "N" */
    const char *fallback; /* default value as text; NULL: none */
    double min, max;      /* range of a number; both 0: any */
    const char *help;
};

/* A heading of the help page and its options. */
struct opts_group {
    const char *title;
    const struct opts_def *defs;
    size_t n_defs;
};
#define OPTS_GROUP_INIT(title, defs)                                                               \
    {                                                                                              \
        (title), (defs), sizeof(defs) / sizeof((defs)[0])                                          \
    }
/* One of a page's groups; those of others are named by their address. */
#define OPTS_GROUP(title, defs) &(const struct opts_group)OPTS_GROUP_INIT(title, defs)

/* Options that every command has. */
extern const struct opts_group opts_common;

#define OPTS_MAX_GROUPS 8u
#define OPTS_MAX_DEFS 64u
#define OPTS_MAX_LIST 64u

struct opts_page {
    const char *command;   /* "generate", "model show" */
    const char *arguments; /* "[PROMPT]", or "" */
    uint32_t min_args, max_args;
    const char *summary;                              /* one sentence */
    const char *details;                              /* paragraphs below the usage, or NULL */
    const struct opts_group *groups[OPTS_MAX_GROUPS]; /* ends at the first NULL */
    const char *examples;                             /* indented lines */
};

struct opts_value {
    bool given;
    bool flag;
    uint64_t u;
    double d;
    const char *s;
    const char **list;
    size_t n_list;
};

struct opts {
    const struct opts_page *page;
    const struct opts_def *defs[OPTS_MAX_DEFS];
    struct opts_value values[OPTS_MAX_DEFS];
    size_t n_defs;
    const char **args; /* arguments that are not options */
    size_t n_args;
};

enum opts_outcome { OPTS_RUN, OPTS_HELP_SHOWN, OPTS_USAGE };

/* argv: the arguments after the command's name.  Always call opts_fini, whatever the outcome. */
enum opts_outcome opts_parse(struct opts *o, const struct opts_page *page, int argc,
                             const char *const *argv);
void opts_fini(struct opts *o);

/* The name must be in the table; otherwise the caller has a bug. */
bool opts_given(const struct opts *o, const char *name);
bool opts_flag(const struct opts *o, const char *name);
uint64_t opts_uint(const struct opts *o, const char *name);
uint32_t opts_u32(const struct opts *o, const char *name);
double opts_real(const struct opts *o, const char *name);
const char *opts_text(const struct opts *o, const char *name); /* NULL: not given, no default */
size_t opts_list(const struct opts *o, const char *name, const char *const **list);

/* Prints "shoal <command>: <message>" to stderr. */
void opts_complain(const struct opts_page *page, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* The same, and a hint at the help; returns exit code 2. */
int opts_usage(const struct opts_page *page, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
