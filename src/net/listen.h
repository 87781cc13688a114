/* listen.h - listening sockets from textual addresses.
 *
 * Addresses: "127.0.0.1:8080", "[::1]:8080", ":8080" (every interface), "localhost:8080",
 * "unix:/run/shoal.sock".
 *
 * Thread:    any.
 * Failure:   0 and the descriptor, or SHOAL_E* with the address in the text. */
#ifndef SHOAL_NET_LISTEN_H
#define SHOAL_NET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Several sockets of a process may listen on the same TCP port, one per loop; the kernel
 * distributes connections. LISTEN_FIRST fails if another process already listens there. */
enum listen_share { LISTEN_ALONE, LISTEN_FIRST, LISTEN_MORE };
SHOAL_MUST_CHECK int listen_open(int *fd, const char *address, enum listen_share share,
                                 struct err *e);
/* "http://127.0.0.1:8080" of a listening socket; port 0 becomes the assigned port. */
void listen_name(int fd, bool tls, char *out, size_t cap);
bool listen_is_unix(const char *address);
struct sockaddr_un;
/* Also for clients: parse "unix:PATH" to a socket address; "HOST:PORT" to host (without brackets)
 * and port. */
SHOAL_MUST_CHECK int listen_unix(struct sockaddr_un *out, const char *address, struct err *e);
SHOAL_MUST_CHECK int listen_split(const char *address, char *host, size_t cap, const char **port,
                                  struct err *e);
/* The address with the port that was assigned to fd (for ":0"). */
void listen_address(int fd, char *out, size_t cap);

#endif
