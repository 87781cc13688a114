/* describe.h - the tables of commands and options as a page for man(1) and as completions for
 * shells.  What help shows and what the parser accepts is what is described: one table, no copy.
 *
 * A description is begun, then each command adds its page, then it is ended.  A command adds its
 * page when it is run with DESCRIBE_OPTION and the name of a form as its only argument, because
 * some commands put their page together at run time.
 *
 * Thread: the main thread.  Writes to stdout. */
#ifndef SHOAL_CMD_DESCRIBE_H
#define SHOAL_CMD_DESCRIBE_H

#include <stdbool.h>

struct command;
struct opts_page;

#define DESCRIBE_OPTION "--describe=" /* not in any help: only the program says it to itself */

enum describe_form { DESCRIBE_BASH, DESCRIBE_ZSH, DESCRIBE_FISH, DESCRIBE_MAN, DESCRIBE_N_FORMS };

/* "bash", "zsh", "fish", "man". */
const char *describe_form_name(enum describe_form form);
void describe_begin(enum describe_form form, const struct command *all,
                    const struct command *verbs);
void describe_end(enum describe_form form, const struct command *all, const struct command *verbs);
/* If the arguments ask for it: describes the page and returns true. */
bool describe_page(const struct opts_page *page, int argc, const char *const *argv);

#endif
