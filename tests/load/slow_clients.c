/* slow_clients.c - many clients in one process that stream and read a few bytes now and then.
 *
 *   slow_clients PORT N PATH BODY_FILE
 *
 * Opens N connections to 127.0.0.1:PORT with small receive buffers and posts the body on each.
 * Reads STEP bytes of each every TICK_MS and prints "begun" once every one has the head of its
 * answer. Then it follows the lines of its standard input:
 *   abort K    closes K of them in the middle of the answer
 *   finish     reads the others to their end, prints
 *              "done N whole M bytes B events LEAST MOST" and exits
 * An answer is whole when its status is 200 and its last event [DONE] ends the last chunk. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP 48
#define TICK_MS 50
#define RECEIVE_BYTES 4096 /* so that unread data waits in the server, not in this kernel */
#define TAIL 24

struct client {
    int fd; /* -1: over */
    size_t n_head, n_bytes;
    unsigned n_events;
    bool ok, ended;
    char tail[TAIL]; /* the last bytes received */
};

static const char end_of_answer[] = "data: [DONE]\n\n\r\n0\r\n\r\n";
static const char status_line[] = "HTTP/1.1 200 OK\r\n";

static void die(const char *what)
{
    fprintf(stderr, "slow_clients: %s: %s\n", what, strerror(errno));
    exit(1);
}

static char *make_request(const char *path, const char *file, size_t *n)
{
    char body[4096], *text = malloc(sizeof(body) + 512);
    FILE *f = fopen(file, "r");
    if (!f || !text)
        die(file);
    size_t got = fread(body, 1, sizeof(body), f);
    fclose(f);
    int head =
        snprintf(text, 512,
                 "POST %.200s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n",
                 path, got);
    memcpy(text + head, body, got);
    *n = (size_t)head + got;
    return text;
}

static void client_open(struct client *c, uint16_t port, const char *request, size_t n)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int bytes = RECEIVE_BYTES;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .ok = true};
    if (c->fd < 0)
        die("socket");
    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (connect(c->fd, (const struct sockaddr *)(const void *)&to, sizeof(to)) < 0)
        die("connect");
    if (send(c->fd, request, n, MSG_NOSIGNAL) != (ssize_t)n)
        die("send");
}

static void client_close(struct client *c)
{
    close(c->fd);
    c->fd = -1;
}

static void look_at(struct client *c, const char *p, size_t n)
{
    char both[TAIL + 4096];
    for (size_t i = 0; i < n && c->n_head < strlen(status_line); i++)
        if (p[i] != status_line[c->n_head++])
            c->ok = false;
    size_t kept = c->n_bytes < TAIL ? c->n_bytes : TAIL;
    memcpy(both, c->tail + TAIL - kept, kept);
    memcpy(both + kept, p, n);
    for (size_t i = kept; i < kept + n; i++) /* an event ends with two line feeds */
        c->n_events += i > 0 && both[i] == '\n' && both[i - 1] == '\n';
    size_t all = kept + n, keep = all < TAIL ? all : TAIL;
    memcpy(c->tail + TAIL - keep, both + all - keep, keep);
    c->n_bytes += n;
    size_t m = strlen(end_of_answer);
    c->ended = memcmp(c->tail + TAIL - m, end_of_answer, m) == 0;
}

/* Reads at most n bytes, if available. */
static void client_read(struct client *c, size_t n)
{
    char in[4096];
    if (c->fd < 0)
        return;
    ssize_t got = recv(c->fd, in, n < sizeof(in) ? n : sizeof(in), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        look_at(c, in, (size_t)got);
    if (got <= 0)
        c->ok = false; /* closed too early */
    if (got <= 0 || c->ended)
        client_close(c);
}

static bool has_input(int timeout_ms)
{
    struct pollfd p = {.fd = 0, .events = POLLIN};
    return poll(&p, 1, timeout_ms) > 0;
}

/* The rest of every answer, as fast as it arrives. */
static void finish(struct client *clients, struct pollfd *polls, size_t n)
{
    for (;;) {
        size_t open = 0;
        for (size_t i = 0; i < n; i++) {
            polls[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
            open += clients[i].fd >= 0;
        }
        if (open == 0)
            return;
        if (poll(polls, n, 60000) <= 0)
            die("nothing comes any more");
        for (size_t i = 0; i < n; i++)
            if (polls[i].revents)
                client_read(&clients[i], 4096);
    }
}

static void report(const struct client *clients, size_t n)
{
    size_t done = 0, whole = 0, bytes = 0;
    unsigned least = ~0u, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (clients[i].n_head == 0) /* aborted: see main */
            continue;
        done++;
        whole += clients[i].ok && clients[i].ended;
        bytes += clients[i].n_bytes;
        least = clients[i].n_events < least ? clients[i].n_events : least;
        most = clients[i].n_events > most ? clients[i].n_events : most;
    }
    printf("done %zu whole %zu bytes %zu events %u %u\n", done, whole, bytes, least, most);
}

/* Executes a line; false: it was the last. */
static bool follow(struct client *clients, struct pollfd *polls, size_t n)
{
    char line[64];
    if (!fgets(line, sizeof(line), stdin) || strcmp(line, "finish\n") == 0) {
        finish(clients, polls, n);
        report(clients, n);
        return false;
    }
    if (strncmp(line, "abort ", 6) != 0)
        die(line);
    unsigned long want = strtoul(line + 6, NULL, 10), gone = 0;
    for (size_t i = n; i-- > 0 && gone < want;) /* from the end: the last to start */
        if (clients[i].fd >= 0) {
            client_close(&clients[i]);
            clients[i].n_head = 0;
            gone++;
        }
    printf("aborted %lu\n", gone);
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    uint16_t port = (uint16_t)strtoul(argv[1], NULL, 10);
    size_t n = strtoul(argv[2], NULL, 10), n_request;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < n + 16) {
        fprintf(stderr, "slow_clients: only %lu files may be open\n",
                (unsigned long)files.rlim_cur);
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    char *request = make_request(argv[3], argv[4], &n_request);
    struct client *clients = calloc(n, sizeof(*clients));
    struct pollfd *polls = calloc(n, sizeof(*polls));
    if (!clients || !polls)
        die("clients");
    for (size_t i = 0; i < n; i++)
        client_open(&clients[i], port, request, n_request);
    printf("open %zu\n", n);
    bool begun = false, more = true;
    while (more) {
        size_t with_head = 0;
        for (size_t i = 0; i < n; i++) {
            client_read(&clients[i], STEP);
            with_head += clients[i].n_head > 0;
        }
        if (!begun && with_head == n)
            puts("begun");
        begun = begun || with_head == n;
        if (has_input(TICK_MS))
            more = follow(clients, polls, n);
    }
    free(polls);
    free(clients);
    free(request);
    return 0;
}
