/* plugin_host.h - the inside of a plug-in's process: `shoal plugin PATH`, which deed_plugin.h
 * starts.
 *
 * Thread:    the process's main thread. */
#ifndef SHOAL_SITE_DEEDS_PLUGIN_HOST_H
#define SHOAL_SITE_DEEDS_PLUGIN_HOST_H

#include <stddef.h>

#define PLUGIN_HOST_COMMAND                                                                        \
    "plugin"             /* argv[1] of the process; PATH and the memory limit follow               \
                          */
#define PLUGIN_HOST_FD 3 /* the socket to the server */

/* Answers questions until the server closes the socket. memory_bytes: of the process's address
 * space; 0: no limit. Returns the exit code of the process, which must exit at once: threads of the
 * plug-in may still run. */
int plugin_host_main(int fd, const char *path, size_t memory_bytes);

#endif
