/* worker_main.h - the inside of a worker process: one model, no network, the server at the other
 * end of a socket (workers.h).
 *
 * Thread:    the process's main thread. */
#ifndef SHOAL_CLUSTER_WORKER_WORKER_MAIN_H
#define SHOAL_CLUSTER_WORKER_WORKER_MAIN_H

/* Serves until the server closes the socket. Returns the exit code of the process, which must exit
 * at once: its threads still run, but nothing depends on them. */
int worker_main(int control_fd);

#endif
