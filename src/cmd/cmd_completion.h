/* cmd_completion.h - shoal completion and shoal manual.  They describe the tables of commands that
 * they are rows of, so the tables are handed to them.
 *
 * Thread: the main thread. */
#ifndef SHOAL_CMD_CMD_COMPLETION_H
#define SHOAL_CMD_CMD_COMPLETION_H

#include "cmd/cli/describe.h"

int cmd_completion(const struct command *all, describe_verbs verbs_of, int argc,
                   const char *const *argv);
int cmd_manual(const struct command *all, describe_verbs verbs_of, int argc,
               const char *const *argv);

#endif
