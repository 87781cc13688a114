/* cluster_start.h - becomes a member of a shoal: `shoal serve` with the configuration of a folder,
 * and a NATS server beside it if wanted.
 *
 * Thread: the main thread. */
#ifndef SHOAL_CMD_CLUSTER_CLUSTER_START_H
#define SHOAL_CMD_CLUSTER_CLUSTER_START_H

struct opts_page;

/* Replaces this process.  folder: with a shoal.yaml and certificates.  nats: folder of a NATS
 * server to start beside it (nats_keeper.h); NULL: FOLDER/nats, if there is one.  Returns only if
 * it fails: an exit code, after a message. */
int cluster_start(const struct opts_page *page, const char *folder, const char *nats);

#endif
