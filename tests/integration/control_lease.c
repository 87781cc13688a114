/* control_lease.c - election on three real nats-servers: members are stopped and killed, and the
 * leader of the lease's stream is killed, while all of them contend.
 *
 *   control_lease [SECONDS] [SEED]    default: 20 seconds, a random seed, which is printed
 *
 * Shown: a member never counts itself holder after one with a higher fence did; fences grow; and
 * the writes in the desired state are in the order of fences, also those of a member that was
 * stopped between asking for the lease and writing. */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include <nats/nats.h>

#include "base/thread/executor_queue.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_store.h"
#include "cluster/control/lease.h"
#include "support/nats_site.h"

enum { N_MEMBERS = 3, MAX_TERMS = 4096, MAX_WRITES = 65536, TTL_MS = 1500 };

struct term { /* one fence of one member */
    uint64_t fence;
    uint64_t first_true_ns; /* after the first lease_held that returned true */
    uint64_t last_true_ns;  /* before the last one */
    int member;
};

struct shared {
    _Atomic uint32_t n_terms, n_writes, n_refused, n_busy, n_claims;
    _Atomic int holder;            /* member that last counted itself holder */
    _Atomic int stop_before_write; /* this member stops itself; -1: none */
    _Atomic uint64_t n_asked[N_MEMBERS];
    struct term terms[MAX_TERMS];
    struct {
        uint64_t version, fence;
    } writes[MAX_WRITES];
};

static struct shared *shared;

static uint64_t boot_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what, const struct err *e)
{
    fprintf(stderr, "FAIL: %s: %s\n", what, e->msg);
    exit(1);
}

/* ---- a member ------------------------------------------------------------------------------- */

static void note_write(const struct desired *d)
{
    uint32_t i = atomic_fetch_add(&shared->n_writes, 1);
    if (i < MAX_WRITES) {
        shared->writes[i].version = d->version;
        shared->writes[i].fence = d->fence;
    }
}

static int change(void *ctx, struct desired *d, struct err *e)
{
    (void)ctx;
    (void)e;
    d->policy.placement.max_moves++;
    return 0;
}

static int claim(void *ctx, uint64_t fence, struct err *e)
{
    struct desired *d = NULL;
    int rc = desired_store_update(ctx, fence, change, NULL, &d, e);
    if (rc == 0) {
        note_write(d);
        atomic_fetch_add(&shared->n_claims, 1);
    } else if (rc == SHOAL_EBUSY) {
        atomic_fetch_add(&shared->n_busy, 1);
    }
    desired_destroy(d);
    return rc;
}

static struct term *term_of(struct term *mine, uint64_t fence, int member)
{
    if (mine && mine->fence == fence)
        return mine;
    uint32_t i = atomic_fetch_add(&shared->n_terms, 1);
    if (i >= MAX_TERMS)
        exit(1);
    shared->terms[i].member = member;
    shared->terms[i].fence = fence;
    return &shared->terms[i];
}

_Noreturn static void member(int index, const char *const *urls, size_t n_urls)
{
    char name[8];
    snprintf(name, sizeof(name), "m%d", index);
    struct bus_opts bo = {.cluster = "test",
                          .name = name,
                          .urls = urls,
                          .n_urls = n_urls,
                          .reconnect_ms = 50,
                          .ping_ms = 500};
    struct desired_store_opts so = {.retry_ms = 1000, .wait_ms = 500};
    struct lease_opts lo = {.name = name, .ttl_ms = TTL_MS, .claim = claim};
    struct executor_queue owner;
    struct desired_store *store = NULL;
    struct lease *lease;
    struct term *term = NULL;
    struct err e = {0};
    uint64_t fence;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (executor_queue_init(&owner, &e) < 0)
        die("executor", &e);
    if (bus_open(&so.bus, &bo, &owner.executor, NULL, NULL, &e) < 0 ||
        desired_store_open(&store, &so, NULL, NULL, NULL, &e) < 0)
        die("open", &e);
    lo.bus = so.bus;
    lo.claim_ctx = store;
    if (lease_open(&lease, &lo, &owner.executor, NULL, NULL, &e) < 0)
        die("lease", &e);
    for (uint64_t next_write = 0;; nats_site_pause(2)) {
        uint64_t before = boot_ns();
        bool held = lease_held(lease, &fence);
        uint64_t after = boot_ns();
        atomic_fetch_add(&shared->n_asked[index], 1);
        if (!held)
            continue;
        atomic_store(&shared->holder, index);
        bool first = !term || term->fence != fence;
        term = term_of(term, fence, index);
        if (first)
            term->first_true_ns = after;
        term->last_true_ns = before;
        if (before < next_write)
            continue;
        next_write = before + 100000000u;
        int me = index;
        if (atomic_compare_exchange_strong(&shared->stop_before_write, &me, -1))
            raise(SIGSTOP); /* between reading the lease and writing */
        struct desired *d = NULL;
        int rc = desired_store_update(store, fence, change, NULL, &d, &e);
        if (rc == 0)
            note_write(d);
        else if (rc == SHOAL_ECHANGED)
            atomic_fetch_add(&shared->n_refused, 1);
        else if (rc == SHOAL_EBUSY)
            atomic_fetch_add(&shared->n_busy, 1);
        else
            die("update", &e);
        desired_destroy(d);
    }
}

/* ---- the test ------------------------------------------------------------------------------- */

static pid_t pids[N_MEMBERS];
static struct nats_site site;

static void launch(const char *self, const char *shm, int i)
{
    char index[8];
    snprintf(index, sizeof(index), "%d", i);
    pids[i] = fork();
    if (pids[i])
        return;
    execl(self, self, "--member", shm, index, site.urls[0], site.urls[1], site.urls[2],
          (char *)NULL);
    _exit(127);
}

/* The server that leads the lease's stream, or any other. */
static unsigned leader(struct bus *b)
{
    jsStreamInfo *info = NULL;
    unsigned at = 0;
    jsCtx *js = NULL;
    natsConnection_JetStream(&js, bus_connection(b), NULL);
    if (js_GetStreamInfo(&info, js, "KV_shoal-test-lease", NULL, NULL) == NATS_OK &&
        info->Cluster && info->Cluster->Leader && info->Cluster->Leader[0] == 's')
        at = (unsigned)(info->Cluster->Leader[1] - '0') % site.n;
    jsStreamInfo_Destroy(info);
    jsCtx_Destroy(js);
    return at;
}

/* Waits for a holder newer than the terms so far. */
static void wait_for_terms(uint32_t n, const char *what)
{
    for (double end = nats_site_now() + 120; nats_site_now() < end; nats_site_pause(20))
        if (atomic_load(&shared->n_terms) >= n)
            return;
    fprintf(stderr, "FAIL: no new holder after: %s\n", what);
    exit(1);
}

/* The holder, stopped while it holds the lease. */
static int stop_before_write(void)
{
    for (double end = nats_site_now() + 120; nats_site_now() < end; nats_site_pause(5)) {
        int status, h = atomic_load(&shared->holder);
        if (atomic_load(&shared->stop_before_write) != -1)
            atomic_store(&shared->stop_before_write, h); /* the holder may have changed */
        for (int i = 0; i < N_MEMBERS; i++)
            if (waitpid(pids[i], &status, WNOHANG | WUNTRACED) == pids[i] && WIFSTOPPED(status))
                return i;
    }
    fprintf(stderr, "FAIL: nobody holds the lease\n");
    exit(1);
}

static int by_fence(const void *a, const void *b)
{
    uint64_t x = ((const struct term *)a)->fence, y = ((const struct term *)b)->fence;
    return x < y ? -1 : x > y;
}

static int by_version(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int judge(void)
{
    uint32_t n = atomic_load(&shared->n_terms), w = atomic_load(&shared->n_writes);
    int failed = 0;
    if (w > MAX_WRITES)
        w = MAX_WRITES;
    qsort(shared->terms, n, sizeof(shared->terms[0]), by_fence);
    qsort(shared->writes, w, sizeof(shared->writes[0]), by_version);
    for (uint32_t i = 0; i < n; i++) {
        const struct term *t = &shared->terms[i];
        printf("fence %llu: m%d for %.2f s\n", (unsigned long long)t->fence, t->member,
               (double)(t->last_true_ns - t->first_true_ns) * 1e-9 *
                   (t->last_true_ns > t->first_true_ns));
        for (uint32_t k = i + 1; k < n; k++) {
            const struct term *u = &shared->terms[k];
            if (u->fence == t->fence || t->last_true_ns > u->first_true_ns) {
                printf("FAIL: m%d held fence %llu while m%d held %llu\n", t->member,
                       (unsigned long long)t->fence, u->member, (unsigned long long)u->fence);
                failed++;
            }
        }
    }
    for (uint32_t i = 1; i < w; i++) {
        if (shared->writes[i].version == shared->writes[i - 1].version) {
            printf("FAIL: version %llu was written twice\n",
                   (unsigned long long)shared->writes[i].version);
            failed++;
        }
        if (shared->writes[i].fence < shared->writes[i - 1].fence) {
            printf("FAIL: version %llu has fence %llu, the one before had %llu\n",
                   (unsigned long long)shared->writes[i].version,
                   (unsigned long long)shared->writes[i].fence,
                   (unsigned long long)shared->writes[i - 1].fence);
            failed++;
        }
    }
    return failed;
}

/* Each step disturbs the holder or its server, then waits for a new holder where one must come. */
static void disturb(const char *self, const char *shm, struct bus *b, unsigned kind)
{
    nats_site_pause(300); /* let them work */
    uint32_t terms = atomic_load(&shared->n_terms);
    int h = atomic_load(&shared->holder);
    switch (kind % 4) {
    case 0:
        atomic_store(&shared->stop_before_write, h);
        h = stop_before_write();
        terms = atomic_load(&shared->n_terms);
        uint32_t refused = atomic_load(&shared->n_refused);
        printf("m%d stops between asking for the lease and writing\n", h);
        wait_for_terms(terms + 1, "SIGSTOP");
        kill(pids[h], SIGCONT);
        for (double end = nats_site_now() + 120; atomic_load(&shared->n_refused) == refused;) {
            if (nats_site_now() > end) {
                printf("FAIL: the write of the old holder m%d was not refused\n", h);
                exit(1);
            }
            nats_site_pause(20);
        }
        printf("m%d woke up and its write was refused\n", h);
        break;
    case 3: /* at a random point of its work */
        printf("stop m%d\n", h);
        kill(pids[h], SIGSTOP);
        wait_for_terms(terms + 1, "SIGSTOP");
        kill(pids[h], SIGCONT);
        break;
    case 1: /* the holder dies */
        printf("kill m%d\n", h);
        kill(pids[h], SIGKILL);
        waitpid(pids[h], NULL, 0);
        wait_for_terms(terms + 1, "SIGKILL");
        launch(self, shm, h);
        break;
    default: { /* the leader of the lease's stream dies; the holder may keep the lease or not */
        unsigned s = leader(b);
        printf("kill s%u, leader of the lease's stream\n", s);
        nats_site_kill(&site, s);
        uint64_t asked = atomic_load(&shared->n_asked[h]);
        double down = nats_site_now() + 3, end = down + 120;
        while (nats_site_now() < down || atomic_load(&shared->n_asked[h]) == asked) {
            if (nats_site_now() > end) {
                printf("FAIL: m%d stands still\n", h);
                exit(1);
            }
            nats_site_pause(50);
        }
        nats_site_restart(&site, s);
        break;
    }
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "--member") == 0) {
        int fd = open(argv[2], O_RDWR);
        const char *urls[] = {argv[4], argv[5], argv[6]};
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (fd < 0 || shared == MAP_FAILED)
            return 1;
        member(atoi(argv[3]), urls, 3);
    }
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 20;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
    char shm[100], self[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    printf("seed %u, %.0f s\n", seed, seconds);
    nats_site_begin(&site, 3);
    snprintf(shm, sizeof(shm), "%s/shared", site.dir);
    int fd = open(shm, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0)
        return 1;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    atomic_store(&shared->stop_before_write, -1);
    struct bus_opts bo = {
        .cluster = "test", .urls = site.urls, .n_urls = site.n, .reconnect_ms = 50, .ping_ms = 500};
    struct err e = {0};
    struct bus *b;
    if (bus_open(&b, &bo, NULL, NULL, NULL, &e) < 0)
        die("bus", &e);
    for (int i = 0; i < N_MEMBERS; i++)
        launch(self, shm, i);
    wait_for_terms(1, "the start");
    double begin = nats_site_now();
    unsigned steps = 0;
    for (; steps < 4 || nats_site_now() < begin + seconds; steps++)
        disturb(self, shm, b, steps < 4 ? steps : (unsigned)rand_r(&seed));
    for (int i = 0; i < N_MEMBERS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    bus_close(b);
    int failed = judge();
    printf("%u disturbances, %u terms, %u writes, %u refused to old holders, %u without an answer, "
           "%d failures\n",
           steps, atomic_load(&shared->n_terms), atomic_load(&shared->n_writes),
           atomic_load(&shared->n_refused), atomic_load(&shared->n_busy), failed);
    nats_site_end(&site);
    return failed != 0;
}
