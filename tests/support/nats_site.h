/* nats_site.h - real nats-server processes with JetStream in a temporary folder: one alone, or
 * three as a cluster.  They die with the test. */
#ifndef SHOAL_TESTS_NATS_SITE_H
#define SHOAL_TESTS_NATS_SITE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NATS_SITE_MAX 5

struct nats_site {
    char dir[64];
    unsigned n;
    unsigned port[NATS_SITE_MAX], route[NATS_SITE_MAX];
    pid_t pid[NATS_SITE_MAX]; /* 0: not running */
    char url[NATS_SITE_MAX][40];
    const char *urls[NATS_SITE_MAX];
};

static inline void nats_site_pause(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static inline double nats_site_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A port below the ephemeral range, so that a restarted server finds it free; not one that a script
 * has claimed (tests/integration/serve.js). */
static inline unsigned nats_site_free_port(void)
{
    static unsigned seed;
    if (seed == 0)
        seed = (unsigned)getpid() * 2654435761u ^ (unsigned)time(NULL);
    for (int tries = 0; tries < 1000; tries++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        unsigned port = 10000 + (unsigned)rand_r(&seed) % 10000;
        char claim[64];
        snprintf(claim, sizeof(claim), "/tmp/shoal-test-port-%u", port);
        a.sin_port = htons((uint16_t)port);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
        if (fd >= 0)
            close(fd);
        if (ok && access(claim, F_OK) < 0)
            return port;
    }
    fprintf(stderr, "no free port\n");
    exit(1);
}

static inline void nats_site_configure(struct nats_site *s, unsigned i)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%u.conf", s->dir, i);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    fprintf(f,
            "server_name: s%u\nlisten: 127.0.0.1:%u\nmax_payload: 8MB\n"
            "jetstream { store_dir: \"%s/%u\", max_mem: 64MB, max_file: 512MB }\n",
            i, s->port[i], s->dir, i);
    if (s->n > 1) {
        fprintf(f, "cluster { name: test, listen: 127.0.0.1:%u, routes: [", s->route[i]);
        for (unsigned k = 0; k < s->n; k++)
            fprintf(f, "%s\"nats://127.0.0.1:%u\"", k ? ", " : "", s->route[k]);
        fprintf(f, "] }\n");
    }
    fclose(f);
}

/* True if the server sends its greeting in time. */
static inline bool nats_site_greets(const struct nats_site *s, unsigned i, double limit_s)
{
    for (double end = nats_site_now() + limit_s; nats_site_now() < end; nats_site_pause(20)) {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)s->port[i]),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct timeval wait = {1, 0};
        char info[5] = "";
        if (s->pid[i] && waitpid(s->pid[i], NULL, WNOHANG) == s->pid[i])
            return false;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        bool ok = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && read(fd, info, 4) == 4 &&
                  memcmp(info, "INFO", 4) == 0;
        close(fd);
        if (ok)
            return true;
    }
    return false;
}

static inline void nats_site_launch(struct nats_site *s, unsigned i)
{
    char conf[128], log[128];
    snprintf(conf, sizeof(conf), "%s/%u.conf", s->dir, i);
    snprintf(log, sizeof(log), "%s/%u.log", s->dir, i);
    pid_t parent = getpid();
    s->pid[i] = fork();
    if (s->pid[i])
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
    execlp("nats-server", "nats-server", "-c", conf, (char *)NULL);
    perror("nats-server (tools/install-deps test installs it)");
    _exit(127);
}

/* Starts server i again, on its old port. */
static inline void nats_site_restart(struct nats_site *s, unsigned i)
{
    for (int tries = 0; tries < 50; tries++) {
        nats_site_launch(s, i);
        if (nats_site_greets(s, i, 30))
            return;
        s->pid[i] = 0;
        nats_site_pause(200);
    }
    fprintf(stderr, "nats-server %u does not start again: see %s\n", i, s->dir);
    exit(1);
}

static inline void nats_site_kill(struct nats_site *s, unsigned i)
{
    if (!s->pid[i])
        return;
    kill(s->pid[i], SIGKILL);
    kill(s->pid[i], SIGCONT);
    waitpid(s->pid[i], NULL, 0);
    s->pid[i] = 0;
}

static inline int nats_site_remove(const char *path, const struct stat *st, int flag, struct FTW *w)
{
    (void)st;
    (void)flag;
    (void)w;
    return remove(path);
}

/* A killed server loses its data. */
static inline void nats_site_wipe(struct nats_site *s, unsigned i)
{
    char path[80];
    snprintf(path, sizeof(path), "%s/%u", s->dir, i);
    nftw(path, nats_site_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void nats_site_end(struct nats_site *s)
{
    for (unsigned i = 0; i < s->n; i++)
        nats_site_kill(s, i);
    nftw(s->dir, nats_site_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* A port that was free may be taken by another test before the server binds it: then everything is
 * retried with other ports. */
static inline void nats_site_begin(struct nats_site *s, unsigned n)
{
    *s = (struct nats_site){.n = n};
    snprintf(s->dir, sizeof(s->dir), "/tmp/shoal-nats-XXXXXX");
    if (!mkdtemp(s->dir)) {
        perror("mkdtemp");
        exit(1);
    }
    for (int tries = 0; tries < 10; tries++) {
        bool ok = true;
        for (unsigned i = 0; i < n; i++) {
            s->port[i] = nats_site_free_port();
            s->route[i] = nats_site_free_port();
            snprintf(s->url[i], sizeof(s->url[i]), "nats://127.0.0.1:%u", s->port[i]);
            s->urls[i] = s->url[i];
        }
        for (unsigned i = 0; i < n; i++) {
            nats_site_configure(s, i);
            nats_site_launch(s, i);
        }
        for (unsigned i = 0; i < n; i++)
            if (!nats_site_greets(s, i, 60)) {
                s->pid[i] = 0;
                ok = false;
            }
        nats_site_pause(100); /* a server that did not get its port has exited by now */
        for (unsigned i = 0; i < n; i++)
            if (s->pid[i] && waitpid(s->pid[i], NULL, WNOHANG) == s->pid[i]) {
                s->pid[i] = 0;
                ok = false;
            }
        if (ok)
            return;
        for (unsigned i = 0; i < n; i++)
            nats_site_kill(s, i);
    }
    fprintf(stderr, "nats-server does not start: see %s/0.log\n", s->dir);
    exit(1);
}

#endif
