/* command.h - one command of the program, as the tables in commands.h list it. */
#ifndef SHOAL_CMD_CLI_COMMAND_H
#define SHOAL_CMD_CLI_COMMAND_H

struct command {
    const char *name;                              /* NULL ends a table */
    int (*run)(int argc, const char *const *argv); /* NULL: it has verbs, see commands.h */
    const char *summary;                           /* one line for the list */
    const char *heading;                           /* above it in the list, or NULL */
};

#endif
