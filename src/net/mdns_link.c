/* mdns_link.c - see mdns_link.h. */
#include "net/mdns_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define PORT 5353u
#define MS_NS UINT64_C(1000000)
#define MAX_TURNS 32 /* messages that are handled at once */
static const uint8_t group[4] = {224, 0, 0, 251};

static struct sockaddr_in group_address(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    memcpy(&a.sin_addr, group, sizeof(group));
    return a;
}

static int failed(struct err *e, const char *what)
{
    return err_set(e, SHOAL_EIO, "multicast DNS: %s: %s", what, strerror(errno));
}

/* Calls fn for the IPv4 address of every interface that is up; returns how often it succeeded. The
 * loopback interface counts: both sides may be on this machine. */
static int each_interface(int fd, int (*fn)(int fd, struct in_addr at, const struct buf *b),
                          const struct buf *b)
{
    struct ifaddrs *all = NULL;
    int n = 0;
    if (getifaddrs(&all) < 0)
        return 0;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        const bool usable = i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
                            (i->ifa_flags & IFF_UP) &&
                            (i->ifa_flags & (IFF_MULTICAST | IFF_LOOPBACK));
        if (!usable)
            continue;
        struct sockaddr_in a;
        memcpy(&a, i->ifa_addr, sizeof(a));
        n += fn(fd, a.sin_addr, b) == 0;
    }
    freeifaddrs(all);
    return n;
}

static int join_group(int fd, struct in_addr at, const struct buf *unused)
{
    (void)unused;
    struct ip_mreq m = {.imr_interface = at};
    memcpy(&m.imr_multiaddr, group, sizeof(group));
    const int rc = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
    return rc < 0 && errno == EADDRINUSE ? 0 : rc; /* two addresses of one interface */
}

int mdns_link_open(int *fd, struct err *e)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    const int on = 1;
    *fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return failed(e, "socket");
    if (setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(*fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
        setsockopt(*fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0 ||
        bind(*fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
        each_interface(*fd, join_group, NULL) == 0) {
        const int rc = failed(e, "port 5353");
        close(*fd);
        *fd = -1;
        return rc;
    }
    return 0;
}

/* The address of the interface on which it came. */
static bool local_address(struct msghdr *m, struct in_pktinfo *out)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            memcpy(out, CMSG_DATA(c), sizeof(*out));
            return true;
        }
    return false;
}

static void send_answer(int fd, const struct mdns_service *s, uint16_t id,
                        const struct sockaddr_in *from, const struct in_pktinfo *at)
{
    struct mdns_service mine = *s;
    const bool legacy = from->sin_port != htons(PORT);
    const struct sockaddr_in all = group_address();
    struct buf b;
    memcpy(mine.address, &at->ipi_spec_dst, sizeof(mine.address));
    buf_init(&b, MDNS_MAX_BYTES);
    /* an id of 0 is a question's, too: then the answer is one for all, sent to one */
    if (mdns_put_answer(&b, &mine, legacy ? id : 0) == 0) {
        const struct ip_mreqn way = {.imr_ifindex = at->ipi_ifindex};
        (void)!setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &way, sizeof(way));
        (void)!sendto(fd, b.data, b.len, 0, (const struct sockaddr *)(legacy ? from : &all),
                      sizeof(*from));
    }
    buf_fini(&b);
}

void mdns_link_answer(int fd, const struct mdns_service *s)
{
    uint8_t bytes[MDNS_MAX_BYTES];
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control;
    for (int i = 0; i < MAX_TURNS; i++) {
        struct sockaddr_in from = {0};
        struct iovec v = {bytes, sizeof(bytes)};
        struct msghdr m = {.msg_name = &from,
                           .msg_namelen = sizeof(from),
                           .msg_iov = &v,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
        struct in_pktinfo at;
        uint16_t id;
        const ssize_t n = recvmsg(fd, &m, 0);
        if (n < 0)
            return;
        if (mdns_read_question(bytes, (size_t)n, s->type, &id, NULL) == 0 && local_address(&m, &at))
            send_answer(fd, s, id, &from, &at);
    }
}

/* ---- looking ---- */

static int ask_on(int fd, struct in_addr at, const struct buf *question)
{
    const struct sockaddr_in all = group_address();
    if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &at, sizeof(at)) < 0)
        return -1;
    return sendto(fd, question->data, question->len, 0, (const struct sockaddr *)&all,
                  sizeof(all)) < 0
               ? -1
               : 0;
}

/* True: an answer is accepted. */
static bool hear(int fd, struct mdns_service *out, const char *type, uint64_t until_ns,
                 bool (*wanted)(void *ctx, const struct mdns_service *s), void *ctx)
{
    uint8_t bytes[MDNS_MAX_BYTES];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (uint64_t now = clock_ns(); now < until_ns; now = clock_ns()) {
        if (poll(&p, 1, (int)((until_ns - now) / MS_NS) + 1) <= 0)
            continue;
        const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
        if (n > 0 && mdns_read_answer(out, bytes, (size_t)n, type, NULL) == 0 && wanted(ctx, out))
            return true;
    }
    return false;
}

int mdns_link_find(struct mdns_service *out, const char *type, uint32_t ms,
                   bool (*wanted)(void *ctx, const struct mdns_service *s), void *ctx,
                   struct err *e)
{
    static const uint32_t waits_ms[] = {250, 750, UINT32_MAX};
    const uint64_t end = clock_ns() + ms * MS_NS;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct buf question;
    bool found = false;
    int rc = fd < 0 ? failed(e, "socket") : 0;
    buf_init(&question, MDNS_MAX_BYTES);
    if (rc == 0)
        rc = mdns_put_question(&question, type);
    for (size_t i = 0; rc == 0 && !found && i < 3; i++) {
        const uint64_t until = waits_ms[i] == UINT32_MAX ? end : clock_ns() + waits_ms[i] * MS_NS;
        if (each_interface(fd, ask_on, &question) == 0)
            rc = failed(e, "no interface");
        else
            found = hear(fd, out, type, until < end ? until : end, wanted, ctx);
    }
    buf_fini(&question);
    if (fd >= 0)
        close(fd);
    if (rc < 0 || found)
        return rc;
    return err_set(e, SHOAL_ENOTFOUND, "nobody on the local network answered");
}
