/* listen.c - see listen.h. */
#include "net/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024

bool listen_is_unix(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

static int fail(int fd, const char *address, struct err *e)
{
    bool used = errno == EADDRINUSE;
    int rc = err_set(e, used ? SHOAL_EBUSY : SHOAL_EIO, "cannot listen on %s: %s%s", address,
                     strerror(errno), used ? "; choose another address with --listen" : "");
    if (fd >= 0)
        close(fd);
    return rc;
}

/* A socket file without a listener was left behind by a dead process. */
static bool is_stale(const struct sockaddr_un *addr)
{
    struct stat st;
    if (stat(addr->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool stale = fd >= 0 &&
                 connect(fd, (const struct sockaddr *)(const void *)addr, sizeof(*addr)) < 0 &&
                 errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return stale;
}

int listen_unix(struct sockaddr_un *out, const char *address, struct err *e)
{
    const char *path = address + 5;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (path[0] == '\0' || strlen(path) >= sizeof(out->sun_path))
        return err_set(e, SHOAL_EINVAL, "%s: a path of 1 to %zu bytes must follow unix:", address,
                       sizeof(out->sun_path) - 1);
    memcpy(out->sun_path, path, strlen(path) + 1);
    return 0;
}

static int open_unix(int *out, const char *address, struct err *e)
{
    struct sockaddr_un addr;
    int rc = listen_unix(&addr, address, e);
    if (rc < 0)
        return rc;
    if (is_stale(&addr))
        unlink(addr.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&addr, sizeof(addr)) < 0 ||
        listen(fd, BACKLOG) < 0)
        return fail(fd, address, e);
    *out = fd;
    return 0;
}

int listen_split(const char *address, char *host, size_t cap, const char **port, struct err *e)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon[1] == '\0')
        return err_set(e, SHOAL_EINVAL, "%s has no port: write HOST:PORT or unix:PATH", address);
    const size_t digits = strspn(colon + 1, "0123456789");
    if (colon[1 + digits] != '\0' || digits > 5 || strtoul(colon + 1, NULL, 10) > 65535)
        return err_set(e, SHOAL_EINVAL, "%s: the port must be a number from 0 to 65535", address);
    size_t n = (size_t)(colon - address);
    const char *from = address;
    if (n >= 2 && from[0] == '[' && from[n - 1] == ']') {
        from++;
        n -= 2;
    }
    if (n >= cap)
        return err_set(e, SHOAL_EINVAL, "the host name of %s is too long", address);
    memcpy(host, from, n);
    host[n] = '\0';
    *port = colon + 1;
    return 0;
}

/* With SO_REUSEPORT, another process of this user could silently share the port. A socket without
 * that option can only be bound if no other socket listens there. */
static bool is_free(const struct addrinfo *a)
{
    int on = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    bool free = bind(fd, a->ai_addr, a->ai_addrlen) == 0;
    int why = errno;
    close(fd);
    errno = why;
    return free;
}

int listen_open(int *out, const char *address, enum listen_share share, struct err *e)
{
    char host[256];
    const char *port = "";
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *list = NULL;
    int on = 1;
    *out = -1;
    if (listen_is_unix(address))
        return open_unix(out, address, e);
    int rc = listen_split(address, host, sizeof(host), &port, e);
    if (rc < 0)
        return rc;
    int why = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
    if (why != 0)
        return err_set(e, SHOAL_EINVAL, "cannot listen on %s: %s", address, gai_strerror(why));
    int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (share != LISTEN_ALONE)
            setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    }
    if (fd < 0 || (share == LISTEN_FIRST && !is_free(list)) ||
        bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        rc = fail(fd, address, e);
    else
        *out = fd;
    freeaddrinfo(list);
    return rc;
}

void listen_address(int fd, char *out, size_t cap)
{
    struct sockaddr_storage ss;
    socklen_t n = sizeof(ss);
    char host[64] = "", port[16] = "";
    struct sockaddr *sa = (struct sockaddr *)(void *)&ss;
    out[0] = '\0';
    if (getsockname(fd, sa, &n) < 0)
        return;
    if (sa->sa_family == AF_UNIX)
        snprintf(out, cap, "unix:%s", ((struct sockaddr_un *)(void *)&ss)->sun_path);
    else if (getnameinfo(sa, n, host, sizeof(host), port, sizeof(port),
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(out, cap, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

void listen_name(int fd, bool tls, char *out, size_t cap)
{
    char address[200];
    listen_address(fd, address, sizeof(address));
    bool any = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
    if (listen_is_unix(address))
        snprintf(out, cap, "%s", address);
    else if (any)
        snprintf(out, cap, "http%s://localhost%s", tls ? "s" : "", strrchr(address, ':'));
    else
        snprintf(out, cap, "http%s://%s", tls ? "s" : "", address);
}
