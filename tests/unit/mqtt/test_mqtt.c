/* test_mqtt.c - when the client acknowledges messages, seen from the broker's side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mqtt/mqtt.h"

#define WAIT_MS 30000
#define QUIET_MS 200 /* a client that acknowledges too early does so within microseconds */

enum { CONNECT = 1, PUBACK = 4, PUBREC = 5, PUBCOMP = 7, SUBSCRIBE = 8 };

/* ---- a broker of one connection: the test writes and reads the packets itself ---- */

static int listen_any(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void read_exactly(int fd, uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct pollfd q = {fd, POLLIN, 0};
        assert_int_equal(poll(&q, 1, WAIT_MS), 1);
        ssize_t got = read(fd, p + at, n - at);
        assert_true(got > 0);
        at += (size_t)got;
    }
}

/* Reads the next packet; returns its type, and in *mid the packet id if it comes first. */
static int read_packet(int fd, uint16_t *mid)
{
    uint8_t head[2], body[127];
    read_exactly(fd, head, 2);
    assert_true(head[1] < 128);
    read_exactly(fd, body, head[1]);
    if (mid && head[1] >= 2)
        *mid = (uint16_t)(body[0] << 8 | body[1]);
    return head[0] >> 4;
}

static void send_bytes(int fd, const void *p, size_t n)
{
    assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* The connection of a client that has subscribed to "t".  A client probes the port first. */
static int accept_client(int listener)
{
    uint16_t mid = 0;
    for (;;) {
        struct pollfd q = {listener, POLLIN, 0};
        uint8_t first;
        assert_int_equal(poll(&q, 1, WAIT_MS), 1);
        int fd = accept(listener, NULL, NULL);
        assert_true(fd >= 0);
        q.fd = fd;
        assert_int_equal(poll(&q, 1, WAIT_MS), 1);
        if (recv(fd, &first, 1, MSG_PEEK) <= 0) {
            close(fd);
            continue;
        }
        assert_int_equal(read_packet(fd, NULL), CONNECT);
        send_bytes(fd, "\x20\x03\x00\x00\x00", 5);
        assert_int_equal(read_packet(fd, &mid), SUBSCRIBE);
        const uint8_t suback[] = {0x90, 4, (uint8_t)(mid >> 8), (uint8_t)mid, 0, 2};
        send_bytes(fd, suback, sizeof(suback));
        return fd;
    }
}

static bool is_quiet(int fd)
{
    struct pollfd q = {fd, POLLIN, 0};
    return poll(&q, 1, QUIET_MS) == 0;
}

/* ---- a slow handler ---- */

static struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_entered, n_left;
    bool open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_message(void *ctx, const struct mqtt_message *x)
{
    struct gate *g = ctx;
    assert_string_equal(x->topic, "t");
    pthread_mutex_lock(&g->lock);
    g->n_entered++;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    g->n_left++;
    pthread_mutex_unlock(&g->lock);
}

static void wait_entered(int n)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.n_entered < n)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void let_go(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

struct pair {
    int listener, fd;
    struct mqtt *client;
};

static void open_pair(struct pair *p, uint8_t qos)
{
    struct mqtt_opts o = {.host = "127.0.0.1", .client_id = "test", .session_s = 60};
    struct err e = {0};
    gate.n_entered = gate.n_left = 0;
    gate.open = false;
    p->listener = listen_any(&o.port);
    assert_int_equal(mqtt_open(&p->client, &o, &e), 0);
    assert_int_equal(
        mqtt_subscribe(p->client, "t", qos, MQTT_RETAINED_NEVER, on_message, &gate, &e), 0);
    assert_int_equal(mqtt_start(p->client, &e), 0);
    p->fd = accept_client(p->listener);
}

static void close_pair(struct pair *p)
{
    mqtt_close(p->client);
    close(p->fd);
    close(p->listener);
}

/* If a process is killed in a handler, it must get the message again. */
static void test_acknowledged_after_its_handler(void **state)
{
    struct pair p;
    uint16_t mid = 0;
    (void)state;
    open_pair(&p, 1);
    send_bytes(p.fd, "\x32\x07\x00\x01t\x00\x07\x00x", 9);
    wait_entered(1);
    assert_true(is_quiet(p.fd));
    let_go();
    assert_int_equal(read_packet(p.fd, &mid), PUBACK);
    assert_int_equal(mid, 7);
    assert_int_equal(gate.n_left, 1);
    /* the gate is open now, so the next one is acknowledged at once */
    send_bytes(p.fd, "\x32\x07\x00\x01t\x00\x08\x00y", 9);
    assert_int_equal(read_packet(p.fd, &mid), PUBACK);
    assert_int_equal(mid, 8);
    assert_int_equal(gate.n_left, 2);
    close_pair(&p);
}

static void test_qos2_completes_after_its_handler(void **state)
{
    struct pair p;
    uint16_t mid = 0;
    (void)state;
    open_pair(&p, 2);
    send_bytes(p.fd, "\x34\x07\x00\x01t\x00\x09\x00x", 9);
    assert_int_equal(read_packet(p.fd, &mid), PUBREC);
    assert_int_equal(gate.n_entered, 0);
    send_bytes(p.fd, "\x62\x02\x00\x09", 4);
    wait_entered(1);
    assert_true(is_quiet(p.fd));
    let_go();
    assert_int_equal(read_packet(p.fd, &mid), PUBCOMP);
    assert_int_equal(mid, 9);
    assert_int_equal(gate.n_left, 1);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acknowledged_after_its_handler),
        cmocka_unit_test(test_qos2_completes_after_its_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
