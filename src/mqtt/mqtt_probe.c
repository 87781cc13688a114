/* mqtt_probe.c - see mqtt_probe.h. */
#include "mqtt/mqtt_probe.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* Waits for the connection; 0, or an errno. */
static int wait_connected(int fd, uint64_t until_ns, int wake_fd, const _Atomic bool *stop)
{
    int error = 0;
    socklen_t n = sizeof(error);
    for (;;) {
        struct pollfd p[2] = {{fd, POLLOUT, 0}, {wake_fd, POLLIN, 0}};
        uint64_t now = clock_ns();
        if (atomic_load(stop))
            return ECANCELED;
        if (now >= until_ns)
            return ETIMEDOUT;
        uint64_t ms = (until_ns - now) / 1000000u + 1;
        /* While another thread's wake-up is unread, poll would return at once: look again soon. */
        int k = poll(p, 2, (int)ms);
        if (k < 0 && errno != EINTR)
            return errno;
        if (k > 0 && p[0].revents)
            return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 ? errno : error;
        if (k > 0 && p[1].revents)
            poll(p, 1, 20);
    }
}

static int try_address(const struct addrinfo *a, uint64_t until_ns, int wake_fd,
                       const _Atomic bool *stop)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int why = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (why == EINPROGRESS)
        why = wait_connected(fd, until_ns, wake_fd, stop);
    close(fd);
    return why;
}

int mqtt_probe(const char *host, uint16_t port, uint32_t wait_ms, int wake_fd,
               const _Atomic bool *stop, struct err *e)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    int why = ECONNREFUSED, rc = getaddrinfo(host, service, &hints, &list);
    if (rc != 0)
        return err_set(e, SHOAL_EIO, "cannot resolve %s: %s", host, gai_strerror(rc));
    uint64_t until = clock_ns() + wait_ms * 1000000ull;
    for (const struct addrinfo *a = list; a && why != 0 && why != ECANCELED; a = a->ai_next)
        why = try_address(a, until, wake_fd, stop);
    freeaddrinfo(list);
    if (why == ECANCELED)
        return err_set(e, SHOAL_ECANCELLED, "stopped");
    return why ? err_set(e, SHOAL_EIO, "%s", strerror(why)) : 0;
}
