/* commands.h - the tables of commands: what the program runs, lists in its help and describes to
 * man(1) and to shells.
 *
 * Thread: constant. */
#ifndef SHOAL_CMD_COMMANDS_H
#define SHOAL_CMD_COMMANDS_H

#include "cmd/command.h"

/* Verbs: those of "shoal model". */
extern const struct command commands_all[];
extern const struct command commands_verbs[];

/* The one of that name, or NULL. */
const struct command *commands_find(const struct command *list, const char *name);
/* The one with the nearest name, or NULL if none is near. */
const char *commands_nearest(const struct command *list, const char *name);

#endif
