/* exit_code.h - exit codes of the shoal program. CMD_NOT_WELL: the query succeeded, but the answer
 * is negative: not ready, damaged, failed. */
#ifndef SHOAL_CMD_CLI_EXIT_CODE_H
#define SHOAL_CMD_CLI_EXIT_CODE_H

enum { CMD_OK = 0, CMD_FAILED = 1, CMD_USAGE = 2, CMD_NOT_WELL = 3, CMD_INTERRUPTED = 130 };

#endif
