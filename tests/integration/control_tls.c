/* control_tls.c - three nats-servers as 'shoal cluster init' sets them up, and members with
 * certificates of 'shoal ca': what each role may do, and who is not let in.
 *
 *   control_tls SHOAL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_store.h"
#include "cluster/control/event_log.h"
#include "support/nats_site.h"

enum { N = 3 };

static const char *shoal;
static struct nats_site site;

/* Runs the program; its output goes to DIR/out.  Returns its exit code. */
static int run(const char *const *args)
{
    char out[100];
    int status = 0;
    snprintf(out, sizeof(out), "%s/out", site.dir);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execv(shoal, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define RUN(...) run((const char *const[]){shoal, __VA_ARGS__, NULL})

static bool port_free(unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_ANY)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
    close(fd);
    return ok;
}

static void launch(unsigned i)
{
    char dir[128];
    snprintf(dir, sizeof(dir), "%s/ca/members/nats-%u", site.dir, i + 1);
    site.pid[i] = fork();
    if (site.pid[i])
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(dir) < 0)
        _exit(1);
    int fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
    execlp("nats-server", "nats-server", "-c", "nats.conf", (char *)NULL);
    _exit(127);
}

/* Ports below the ephemeral range; retried with others if one is taken. */
static bool try_start(unsigned base)
{
    char ca[100], port[16], route[16];
    for (unsigned i = 0; i < 2 * N; i++)
        if (!port_free(base + i))
            return false;
    snprintf(ca, sizeof(ca), "%s/ca", site.dir);
    snprintf(port, sizeof(port), "%u", base);
    snprintf(route, sizeof(route), "%u", base + N);
    if (RUN("cluster", "init", "--dir", ca, "--name", "home", "--servers", "3", "--port", port,
            "--route-port", route, "--force") != 0)
        fail_msg("shoal cluster init: see %s/out", site.dir);
    for (unsigned i = 0; i < N; i++) {
        site.port[i] = base + i;
        snprintf(site.url[i], sizeof(site.url[i]), "tls://127.0.0.1:%u", base + i);
        site.urls[i] = site.url[i];
        launch(i);
    }
    bool ok = true;
    for (unsigned i = 0; i < N; i++)
        ok = nats_site_greets(&site, i, 60) && ok;
    for (unsigned i = 0; i < N && !ok; i++)
        nats_site_kill(&site, i);
    return ok;
}

static int start(void **state)
{
    (void)state;
    char ca[100], other[100];
    site.n = N;
    snprintf(site.dir, sizeof(site.dir), "/tmp/shoal-nats-XXXXXX");
    assert_non_null(mkdtemp(site.dir));
    snprintf(ca, sizeof(ca), "%s/ca", site.dir);
    snprintf(other, sizeof(other), "%s/other", site.dir);
    unsigned base = 20000 + (unsigned)getpid() % 1000 * 10;
    for (int tries = 0; !try_start(base); tries++, base += 10)
        assert_true(tries < 50);
    assert_int_equal(RUN("ca", "issue", "n1", "--dir", ca, "--role", "node"), 0);
    assert_int_equal(RUN("ca", "issue", "gw", "--dir", ca, "--role", "gateway"), 0);
    assert_int_equal(RUN("ca", "issue", "boss", "--dir", ca, "--role", "node,controller"), 0);
    assert_int_equal(RUN("ca", "init", "--dir", other), 0);
    assert_int_equal(RUN("ca", "issue", "spy", "--dir", other, "--role", "admin"), 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    nats_site_end(&site);
    return 0;
}

/* ---- members -------------------------------------------------------------------------------- */

struct member {
    struct executor_queue queue;
    struct bus *bus;
    struct desired_store *store;
    unsigned n_beats, n_events;
};

static void on_beat(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct member *m = ctx;
    (void)bytes;
    (void)n;
    assert_string_equal(subject, "shoal.home.hb.n1");
    m->n_beats++;
}

static void on_event(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct member *m = ctx;
    (void)subject;
    (void)bytes;
    (void)n;
    m->n_events++;
}

/* ca: folder of the CA; name: "" for no certificate. */
static void open_bus(struct member *m, const char *ca, const char *name, const char *const *urls,
                     size_t n)
{
    char cert[200], key[200], root[200];
    struct err e = {0};
    *m = (struct member){0};
    snprintf(cert, sizeof(cert), "%s/%s/members/%s/cert.pem", site.dir, ca, name);
    snprintf(key, sizeof(key), "%s/%s/members/%s/key.pem", site.dir, ca, name);
    snprintf(root, sizeof(root), "%s/%s/members/%s/ca.pem", site.dir, ca, name);
    struct bus_opts o = {.cluster = "home",
                         .name = name,
                         .urls = urls,
                         .n_urls = n,
                         .ca_file = name[0] ? root : NULL,
                         .cert_file = name[0] ? cert : NULL,
                         .key_file = name[0] ? key : NULL};
    assert_int_equal(executor_queue_init(&m->queue, &e), 0);
    if (bus_open(&m->bus, &o, &m->queue.executor, NULL, NULL, &e) < 0)
        fail_msg("%s", e.msg);
}

static void open_member(struct member *m, const char *name)
{
    struct err e = {0};
    open_bus(m, "ca", name, site.urls, N);
    if (bus_wait(m->bus, 60000, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    struct desired_store_opts so = {.bus = m->bus, .retry_ms = 60000, .wait_ms = 2000};
    assert_int_equal(desired_store_open(&m->store, &so, NULL, NULL, NULL, &e), 0);
}

static void close_member(struct member *m)
{
    desired_store_close(m->store);
    bus_close(m->bus);
    while (executor_queue_run(&m->queue))
        ;
    executor_queue_fini(&m->queue);
}

static int touch(void *ctx, struct desired *d, struct err *e)
{
    (void)ctx;
    (void)e;
    return desired_set_drained(d, "n9", true);
}

/* sure: a majority confirms it, which takes the right to write. */
static uint64_t version(struct member *m, bool sure)
{
    struct desired *d = NULL;
    struct err e = {0}, unsure = {0};
    if (desired_store_load(m->store, &d, sure ? &unsure : NULL, &e) < 0 || unsure.code)
        fail_msg("%s%s", e.msg, unsure.msg);
    uint64_t v = d->version;
    desired_destroy(d);
    return v;
}

static bool count_event(void *ctx, const struct event_log_entry *entry)
{
    assert_string_equal(entry->sender, "n1");
    ++*(unsigned *)ctx;
    return true;
}

static void test_roles(void **state)
{
    (void)state;
    struct member boss, n1, gw, admin;
    struct err e = {0};
    open_member(&boss, "boss"); /* a node that may become the controller */
    open_member(&n1, "n1");
    open_member(&gw, "gw");
    open_member(&admin, "admin");
    int rc;
    do /* until the members were asked whether they know of a state */
        rc = desired_store_update(boss.store, 5, touch, NULL, NULL, &e);
    while (rc == SHOAL_ENOTFOUND && usleep(50000) == 0);
    if (rc < 0)
        fail_msg("%s", e.msg);
    uint64_t v = version(&boss, true);
    assert_int_equal(desired_store_update(n1.store, 0, touch, NULL, NULL, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "needs another role"));
    assert_int_equal(desired_store_update(gw.store, 0, touch, NULL, NULL, &e), SHOAL_EIO);
    assert_int_equal(version(&n1, false), v); /* all may read, and nothing has been written */
    assert_int_equal(version(&gw, false), v);
    if (desired_store_update(admin.store, 0, touch, NULL, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(version(&admin, true), v + 1);

    /* Heartbeats go to gateways, and to nodes, which fetch models from each other. */
    assert_int_equal(bus_subscribe(gw.bus, "hb.*", on_beat, &gw, NULL, &e), 0);
    assert_int_equal(bus_subscribe(n1.bus, "hb.*", on_beat, &n1, NULL, &e), 0);
    for (double end = nats_site_now() + 60;
         (gw.n_beats < 3 || n1.n_beats < 3) && nats_site_now() < end;) {
        (void)!bus_publish(n1.bus, "hb.n1", "alive", 5, NULL);
        executor_queue_turn(&gw.queue, 100);
        executor_queue_turn(&n1.queue, 10);
    }
    assert_true(gw.n_beats >= 3);
    assert_true(n1.n_beats >= 3);

    /* Events go to gateways, not to nodes. */
    assert_int_equal(bus_subscribe(gw.bus, "event.*", on_event, &gw, NULL, &e), 0);
    assert_int_equal(bus_subscribe(n1.bus, "event.*", on_event, &n1, NULL, &e), 0);
    for (double end = nats_site_now() + 60; gw.n_events < 3 && nats_site_now() < end;) {
        (void)!bus_publish(n1.bus, "event.n1", "", 0, NULL);
        executor_queue_turn(&gw.queue, 100);
        executor_queue_turn(&n1.queue, 10);
    }
    assert_true(gw.n_events >= 3);
    assert_int_equal(n1.n_events, 0);

    /* Events of a node are stored, and a gateway reads them. */
    struct event_log_opts lo = {.bus = n1.bus, .name = "n1", .flush_ms = 60000};
    struct event_log *l;
    unsigned n_events = 0;
    uint64_t next;
    uint32_t bad = 0;
    assert_int_equal(event_log_open(&l, &lo, &e), 0);
    event_log_add(l, &(struct event_log_entry){.kind = EVENT_LOG_MODEL_LOADED, .model = "reply"});
    event_log_close(l);
    if (event_log_read(gw.bus, 0, 10, count_event, &n_events, &next, &bad, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(n_events, 1);
    close_member(&admin);
    close_member(&gw);
    close_member(&n1);
    close_member(&boss);
}

static void test_who_is_not_let_in(void **state)
{
    (void)state;
    struct err e = {0};
    struct member m;
    char elsewhere[64];
    const char *url = elsewhere;
    open_bus(&m, "other", "spy", site.urls, N); /* neither side trusts the other */
    assert_int_equal(bus_wait(m.bus, 1500, &e), SHOAL_EIO);
    close_member(&m);
    open_bus(&m, "ca", "", site.urls, N); /* no certificate */
    assert_int_equal(bus_wait(m.bus, 1500, &e), SHOAL_EIO);
    close_member(&m);
    open_bus(&m, "ca", "nats-1", site.urls, N); /* a server's certificate has no user */
    assert_int_equal(bus_wait(m.bus, 1500, &e), SHOAL_EIO);
    close_member(&m);
    snprintf(elsewhere, sizeof(elsewhere), "tls://localhost:%u", site.port[0]);
    open_bus(&m, "ca", "n1", &url, 1); /* the server's certificate is not for this name */
    assert_int_equal(bus_wait(m.bus, 1500, &e), SHOAL_EIO);
    close_member(&m);
    open_bus(&m, "ca", "n1", site.urls, N); /* and not for any other reason */
    assert_int_equal(bus_wait(m.bus, 60000, &e), 0);
    close_member(&m);
}

/* Copies the files of a member into the folder of another one. */
static void copy_files(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof(command), "mkdir -p '%s/%s' && cp '%s/%s'/*.pem '%s/%s/'", site.dir,
             to, site.dir, from, site.dir, to);
    assert_int_equal(system(command), 0);
}

/* A member with a rejected certificate gets in after its files are replaced. */
static void test_new_certificates_are_used(void **state)
{
    (void)state;
    struct member m;
    struct err e = {0};
    copy_files("other/members/spy", "copy/members/n1");
    open_bus(&m, "copy", "n1", site.urls, N);
    assert_int_equal(bus_wait(m.bus, 1500, &e), SHOAL_EIO);
    copy_files("ca/members/n1", "copy/members/n1");
    if (bus_wait(m.bus, 60000, &e) < 0)
        fail_msg("%s", e.msg);
    close_member(&m);
}

static bool out_has(const char *text)
{
    char path[100], all[8192];
    snprintf(path, sizeof(path), "%s/out", site.dir);
    FILE *f = fopen(path, "r");
    size_t n = fread(all, 1, sizeof(all) - 1, f);
    fclose(f);
    all[n] = '\0';
    return strstr(all, text) != NULL;
}

static void test_commands(void **state)
{
    (void)state;
    char admin[128];
    snprintf(admin, sizeof(admin), "%s/ca/members/admin", site.dir);
    assert_int_equal(RUN("cluster", "desired", "--cluster", "home", "--certs", admin, "--nats",
                         site.urls[0], "--nats", site.urls[1], "--timeout", "60"),
                     0);
    assert_true(out_has("drained: n9"));
    assert_int_equal(RUN("cluster", "desired", "--cluster", "home", "--certs", admin, "--nats",
                         site.urls[2], "--json", "--timeout", "60"),
                     0);
    assert_true(out_has("\"drained\":[\"n9\"]"));
    assert_int_equal(RUN("cluster", "events", "--cluster", "home", "--certs", admin, "--nats",
                         site.urls[1], "--timeout", "60"),
                     0);
    assert_true(out_has("model-loaded"));
    assert_int_equal(
        RUN("cluster", "desired", "--cluster", "home", "--nats", site.urls[0], "--timeout", "1"),
        1);
    assert_true(out_has("no NATS server can be reached"));
    assert_int_equal(RUN("cluster", "desired", "--nats", "http://x", "--timeout", "1"), 1);
    assert_true(out_has("nats://HOST:PORT"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_who_is_not_let_in),
        cmocka_unit_test(test_new_certificates_are_used),
        cmocka_unit_test(test_commands),
    };
    if (argc != 2)
        return 2;
    shoal = argv[1];
    return cmocka_run_group_tests(tests, start, stop);
}
