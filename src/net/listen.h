/* listen.h - listening sockets from addresses as a person writes them.
 *
 * Addresses: "127.0.0.1:8080", "[::1]:8080", ":8080" (every interface), "localhost:8080",
 * "unix:/run/shoal.sock".
 * Thread:    any.
 * Failure:   0 and the descriptor, or SHOAL_E* with the address in the text. */
#ifndef SHOAL_NET_LISTEN_H
#define SHOAL_NET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* shared: several sockets may listen on the same TCP port, one per loop; the kernel spreads. */
SHOAL_MUST_CHECK int listen_open(int *fd, const char *address, bool shared, struct err *e);
/* "http://127.0.0.1:8080" of a listening socket; port 0 is the one it got. */
void listen_name(int fd, bool tls, char *out, size_t cap);
bool listen_is_unix(const char *address);
struct sockaddr_un;
/* For clients too: the socket of "unix:PATH"; host (without brackets) and port of "HOST:PORT". */
SHOAL_MUST_CHECK int listen_unix(struct sockaddr_un *out, const char *address, struct err *e);
SHOAL_MUST_CHECK int listen_split(const char *address, char *host, size_t cap, const char **port,
                                  struct err *e);
/* The same address with the port that fd really has (for ":0"). */
void listen_address(int fd, char *out, size_t cap);

#endif
