/* bench_http_times.c - the time of each of many HTTP requests on one connection.  For bench/flow.js
 * and bench/cluster.js, whose servers need the cores: a client on the same machine has to be
 * cheap, so that the measured time is the server's.
 *
 * Usage: bench_http_times PORT PATH WARMUP BODIES
 * POSTs each line of the file BODIES to 127.0.0.1:PORT, one after the other, and prints
 * {"n", "p50_ms", "p99_ms", "max_ms"} of those after the first WARMUP.  Every answer must have
 * status 200. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define BYTES ((size_t)64 << 10) /* limit of a request, and of an answer */

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_http_times: %s: %s\n", what, why);
    exit(1);
}

static int open_connection(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)(void *)&to, sizeof(to)) < 0)
        stop("cannot connect", strerror(errno));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* Reads until the whole answer is there. */
static void read_answer(int fd, char *in)
{
    size_t n = 0, whole = 0;
    while (whole == 0 || n < whole) {
        ssize_t got = read(fd, in + n, BYTES - 1 - n);
        if (got <= 0)
            stop("the server closed the connection", got < 0 ? strerror(errno) : "no answer");
        n += (size_t)got;
        in[n] = 0;
        const char *body = strstr(in, "\r\n\r\n");
        const char *length = strcasestr(in, "\r\ncontent-length:");
        if (whole == 0 && body && (!length || length > body))
            stop("an answer without a length", in);
        if (whole == 0 && body)
            whole = (size_t)(body + 4 - in) + strtoul(length + 17, NULL, 10);
    }
    if (strncmp(in, "HTTP/1.1 200 ", 13) != 0)
        stop("not answered", in);
}

static double one_request(int fd, const char *port, const char *path, const char *body)
{
    static char out[BYTES], in[BYTES];
    int n = snprintf(out, sizeof(out),
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     path, port, strlen(body), body);
    const uint64_t began = clock_ns();
    if (n < 0 || (size_t)n >= sizeof(out) || write(fd, out, (size_t)n) != n)
        stop("cannot send", strerror(errno));
    read_answer(fd, in);
    return (double)(clock_ns() - began) / 1e6;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    size_t n = 0, n_lines = 0, cap = 0, room = 0;
    double *times = NULL;
    char *line = NULL;
    if (argc != 5)
        stop("usage", "bench_http_times PORT PATH WARMUP BODIES");
    const size_t warmup = strtoul(argv[3], NULL, 10);
    FILE *f = fopen(argv[4], "r");
    if (!f)
        stop(argv[4], strerror(errno));
    int fd = open_connection(argv[1]);
    for (ssize_t len; (len = getline(&line, &cap, f)) > 0;) {
        line[len - (line[len - 1] == '\n')] = 0;
        const double ms = one_request(fd, argv[1], argv[2], line);
        if (n_lines++ < warmup)
            continue;
        if (n == room && !(times = realloc(times, (room = 2 * room + 1024) * sizeof(*times))))
            stop("out of memory", "times");
        times[n++] = ms;
    }
    if (n == 0)
        stop(argv[4], "no lines behind the warm-up");
    qsort(times, n, sizeof(*times), by_size);
    printf("{\"n\": %zu, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f}\n", n, times[n / 2],
           times[(size_t)(0.99 * (double)(n - 1))], times[n - 1]);
    free(times);
    free(line);
    fclose(f);
    close(fd);
    return 0;
}
