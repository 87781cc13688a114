/* describe.h - a man page and shell completions from the tables of commands and options. They come
 * from the same table as the help and the parser.
 *
 * A description has a start, one page per command, and an end.  A command adds its
 * page when it is run with DESCRIBE_OPTION and the name of a form as its only argument, because
 * some commands build their page at run time.
 *
 * Thread: the main thread.  Writes to stdout. */
#ifndef SHOAL_CMD_CLI_DESCRIBE_H
#define SHOAL_CMD_CLI_DESCRIBE_H

#include <stdbool.h>

struct command;
struct opts_page;

#define DESCRIBE_OPTION "--describe=" /* internal; not shown in any help */

enum describe_form { DESCRIBE_BASH, DESCRIBE_ZSH, DESCRIBE_FISH, DESCRIBE_MAN, DESCRIBE_N_FORMS };

/* "bash", "zsh", "fish", "man". */
const char *describe_form_name(enum describe_form form);
/* The verbs of a command, or NULL. */
typedef const struct command *(*describe_verbs)(const char *name);
void describe_begin(enum describe_form form, const struct command *all, describe_verbs verbs_of);
void describe_end(enum describe_form form, const struct command *all, describe_verbs verbs_of);
/* Describes the page and returns true if the arguments request it. */
bool describe_page(const struct opts_page *page, int argc, const char *const *argv);

#endif
