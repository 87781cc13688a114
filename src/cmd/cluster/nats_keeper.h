/* nats_keeper.h - runs the NATS server of this machine beside `shoal serve`: a process of its own
 * starts nats-server, starts it again when it ends, and stops it when its parent ends, however that
 * ends.
 *
 * Thread: the main thread, before others are started. */
#ifndef SHOAL_CMD_CLUSTER_NATS_KEEPER_H
#define SHOAL_CMD_CLUSTER_NATS_KEEPER_H

#include <stdbool.h>

struct opts_page;

/* Whether it is the folder of a NATS server. */
bool nats_keeper_folder_ok(const char *folder);
/* Returns when the server has run for a moment.  CMD_OK, or an exit code after a message: it is not
 * installed, or ended at once. */
int nats_keeper_start(const struct opts_page *page, const char *folder);

#endif
