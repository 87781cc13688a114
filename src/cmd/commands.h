/* commands.h - the tables of commands, for running, help, the man page and shell completions.
 *
 * Thread: constant. */
#ifndef SHOAL_CMD_COMMANDS_H
#define SHOAL_CMD_COMMANDS_H

#include "cmd/cli/command.h"

extern const struct command commands_all[];

/* The command of that name, or NULL. */
const struct command *commands_find(const struct command *list, const char *name);
/* The command with the nearest name, or NULL if none is close. */
const char *commands_nearest(const struct command *list, const char *name);
/* Runs a command of commands_all: its function, or the verb that the first argument names. */
int commands_run(const struct command *c, int argc, const char *const *argv);

#endif
