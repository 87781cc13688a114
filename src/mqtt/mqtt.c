/* mqtt.c - see mqtt.h.
 *
 * libmosquitto is used without threads of its own and without its select(), which cannot watch a
 * descriptor above 1023: the thread polls the socket and an eventfd, with which others wake it. */
#include "mqtt/mqtt.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "mqtt/mqtt_code.h"
#include "mqtt/mqtt_probe.h"
#include "mqtt/mqtt_seen.h"
#include "mqtt/mqtt_topic.h"
#include "mqtt/spool.h"

#define MAX_WINDOW 64u /* publishes that wait for their acknowledgement */
#define PROBE_MS 5000u /* for the broker to accept a connection */
#define CONNACK_NS 10000000000ull
#define TURN_MS 500
#define MAX_PASSWORD 4096u

/* A message to publish, as bytes of mqtt_code.h. */
struct out {
    struct out *next;
    uint64_t number; /* on disk; 0: in memory only */
    int mid;         /* set once it was passed to libmosquitto */
    uint8_t qos;
    bool retain;
    uint64_t topic_hash;
    size_t n;
    char bytes[];
};

struct handler {
    struct handler *next;
    mqtt_message_fn fn;
    void *ctx;
};

struct sub {
    struct sub *next;
    char *filter;
    uint32_t id; /* subscription identifier: a hash of the filter, the same in every process */
    uint8_t qos;
    enum mqtt_retained retained;
    struct handler *handlers;
    int mid;        /* message id of the last SUBSCRIBE */
    bool placed;    /* on this connection */
    bool confirmed; /* the broker has answered, positively or not */
};

struct mqtt {
    struct mosquitto *client;
    char *host, *status_topic, *client_id;
    uint16_t port;
    uint32_t keepalive_s, session_s, reconnect_ms, reconnect_max_ms;
    size_t max_payload, max_queue_bytes;
    bool has_lib, has_thread;
    int wake_fd;
    pthread_t thread;
    mqtt_link_fn on_link;
    void *link_ctx;
    _Atomic bool up; /* relaxed: a hint; the lists are under the lock */
    _Atomic bool stop;
    _Atomic uint64_t stop_at_ns; /* deadline for waiting messages */

    pthread_mutex_t lock; /* all below */
    struct spool *spool;
    struct out *first, **last; /* not passed to libmosquitto yet */
    size_t n_queued, queued_bytes;
    struct sub *subs;
    struct mqtt_status status;

    /* the thread's */
    struct out *sent; /* passed to libmosquitto, not acknowledged */
    uint32_t n_sent;
    struct mqtt_seen *seen;
    bool lost;        /* the connection ended */
    bool refused;     /* refused by CONNACK */
    uint32_t wait_ms; /* until the next attempt */
    uint64_t random;
};

static uint32_t sub_id(const char *filter)
{
    return (uint32_t)(hash_bytes(filter, strlen(filter), 3) & 0xfffffff) | 1u; /* 1 to 2^28-1 */
}

bool mqtt_is_up(const struct mqtt *m)
{
    return atomic_load_explicit(&m->up, memory_order_relaxed);
}

static void wake(struct mqtt *m)
{
    uint64_t one = 1;
    (void)!write(m->wake_fd, &one, sizeof(one));
}

/* ---- publishing ---- */

static struct out *out_create(const struct mqtt_message *x, const void *bytes, size_t n)
{
    struct out *o = mem_alloc(sizeof(*o) + n);
    if (!o)
        return NULL;
    *o = (struct out){.qos = x->qos, .retain = x->retain, .n = n};
    o->topic_hash = hash_bytes(x->topic, strlen(x->topic), 4);
    memcpy(o->bytes, bytes, n);
    return o;
}

static void append(struct mqtt *m, struct out *o)
{
    o->next = NULL;
    *m->last = o;
    m->last = &o->next;
    m->n_queued++;
    m->queued_bytes += o->n;
}

/* It left the lists for good.  Under the lock. */
static void out_end(struct mqtt *m, struct out *o)
{
    if (o->number)
        spool_done(m->spool, o->number);
    m->n_queued--;
    m->queued_bytes -= o->n;
    mem_free(o);
}

/* A retained message replaces an earlier one of its topic that has not been sent yet. */
static void supersede(struct mqtt *m, const struct out *by)
{
    for (struct out **at = &m->first; *at;) {
        struct out *o = *at;
        if (!o->retain || o->topic_hash != by->topic_hash || o == by) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        if (m->last == &o->next)
            m->last = at;
        out_end(m, o);
    }
}

static int check_publish(const struct mqtt *m, const struct mqtt_message *x, struct err *e)
{
    if (!mqtt_topic_is_name(x->topic))
        return err_set(e, SHOAL_EINVAL, "'%.100s' is not a topic to publish to", x->topic);
    if (x->qos > 2 || x->n_correlation > UINT16_MAX || x->n_properties > MQTT_MAX_PROPERTIES ||
        (x->durable && x->qos == 0))
        return err_set(e, SHOAL_EINVAL, "a message with wrong properties for %.100s", x->topic);
    if (x->qos == 0 && !mqtt_is_up(m))
        return err_set(e, SHOAL_EBUSY, "the MQTT broker is not connected");
    return 0;
}

int mqtt_publish(struct mqtt *m, const struct mqtt_message *x, struct err *e)
{
    struct buf b;
    struct out *o = NULL;
    buf_init(&b, SPOOL_MAX_RECORD);
    mqtt_code_put(&b, x);
    int rc = check_publish(m, x, e);
    if (rc == 0 && b.rc < 0)
        rc = err_set(e, b.rc, "a message for %.100s", x->topic);
    if (rc == 0 && !(o = out_create(x, buf_str(&b), b.len)))
        rc = err_set(e, SHOAL_ENOMEM, "a message for %.100s", x->topic);
    pthread_mutex_lock(&m->lock);
    if (rc == 0 && (o->n > m->max_queue_bytes || m->queued_bytes > m->max_queue_bytes - o->n))
        rc = err_set(e, SHOAL_ELIMIT, "%zu bytes wait for the MQTT broker: no room for more",
                     m->queued_bytes);
    if (rc == 0 && x->durable && m->spool) {
        struct err why = {0};
        if (spool_put(m->spool, o->bytes, o->n, &o->number, &why) < 0) /* still in memory */
            log_warn("mqtt", "a message could not be stored on disk: %s", why.msg);
    }
    if (rc == 0) {
        append(m, o);
        if (x->retain)
            supersede(m, o);
        o = NULL;
    } else {
        m->status.n_refused++;
    }
    pthread_mutex_unlock(&m->lock);
    mem_free(o);
    buf_fini(&b);
    if (rc == 0)
        wake(m);
    return rc;
}

/* ---- subscribing ---- */

static struct sub *find_sub(struct mqtt *m, const char *filter)
{
    struct sub *s = m->subs;
    while (s && strcmp(s->filter, filter) != 0)
        s = s->next;
    return s;
}

static void sub_free(struct sub *s)
{
    while (s && s->handlers) {
        struct handler *h = s->handlers;
        s->handlers = h->next;
        mem_free(h);
    }
    if (s)
        mem_free(s->filter);
    mem_free(s);
}

int mqtt_subscribe(struct mqtt *m, const char *filter, uint8_t qos, enum mqtt_retained retained,
                   mqtt_message_fn fn, void *ctx, struct err *e)
{
    if (!mqtt_topic_is_filter(filter) || qos > 2)
        return err_set(e, SHOAL_EINVAL, "'%.100s' is not an MQTT topic filter", filter);
    struct handler *h = mem_zalloc(sizeof(*h));
    struct sub *fresh = mem_zalloc(sizeof(*fresh));
    if (fresh)
        fresh->filter = mem_strdup(filter);
    if (!h || !fresh || !fresh->filter) {
        mem_free(h);
        sub_free(fresh);
        return err_set(e, SHOAL_ENOMEM, "subscription to %.100s", filter);
    }
    h->fn = fn;
    h->ctx = ctx;
    pthread_mutex_lock(&m->lock);
    struct sub *s = find_sub(m, filter);
    if (!s) {
        s = fresh;
        fresh = NULL;
        s->id = sub_id(filter);
        s->retained = retained;
        s->next = m->subs;
        m->subs = s;
    } else if (retained == MQTT_RETAINED_ALWAYS) {
        s->retained = retained;
    }
    if (qos > s->qos)
        s->qos = qos;
    struct handler **at = &s->handlers;
    while (*at)
        at = &(*at)->next;
    *at = h;
    s->placed = s->confirmed = false;
    pthread_mutex_unlock(&m->lock);
    sub_free(fresh);
    wake(m);
    return 0;
}

/* Sends missing subscriptions on this connection. */
static void place_subs(struct mqtt *m)
{
    pthread_mutex_lock(&m->lock);
    for (struct sub *s = m->subs; s && !m->lost; s = s->next) {
        mosquitto_property *p = NULL;
        int options = s->retained == MQTT_RETAINED_NEVER ? MQTT_SUB_OPT_SEND_RETAIN_NEVER
                                                         : MQTT_SUB_OPT_SEND_RETAIN_ALWAYS;
        if (s->placed)
            continue;
        if (mosquitto_property_add_varint(&p, MQTT_PROP_SUBSCRIPTION_IDENTIFIER, s->id) ==
                MOSQ_ERR_SUCCESS &&
            mosquitto_subscribe_v5(m->client, &s->mid, s->filter, s->qos, options, p) ==
                MOSQ_ERR_SUCCESS)
            s->placed = true;
        else
            m->lost = true; /* retried with the next connection */
        mosquitto_property_free_all(&p);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- libmosquitto's callbacks, all on the thread ---- */

static void set_error(struct mqtt *m, const char *why)
{
    pthread_mutex_lock(&m->lock);
    bool again = strcmp(m->status.error, why) == 0;
    snprintf(m->status.error, sizeof(m->status.error), "%s", why);
    pthread_mutex_unlock(&m->lock);
    if (!again)
        log_warn("mqtt", "no connection to %s:%u: %s", m->host, m->port, why);
}

static void tell_status(struct mqtt *m, const char *text)
{
    if (m->status_topic)
        (void)!mosquitto_publish_v5(m->client, NULL, m->status_topic, (int)strlen(text), text, 1,
                                    true, NULL);
}

static void on_connect(struct mosquitto *c, void *ctx, int rc, int flags,
                       const mosquitto_property *props)
{
    struct mqtt *m = ctx;
    (void)c;
    (void)flags;
    (void)props;
    if (rc != 0) {
        m->refused = true;
        set_error(m, mosquitto_reason_string(rc));
        return;
    }
    mqtt_seen_connected(m->seen, clock_ns());
    m->wait_ms = m->reconnect_ms;
    pthread_mutex_lock(&m->lock);
    m->status.n_connects++;
    m->status.link = MQTT_UP;
    m->status.error[0] = '\0';
    for (struct sub *s = m->subs; s; s = s->next)
        s->placed = s->confirmed = false;
    pthread_mutex_unlock(&m->lock);
    atomic_store_explicit(&m->up, true, memory_order_relaxed);
    log_info("mqtt", "connected broker=%s:%u client=%s", m->host, m->port, m->client_id);
    place_subs(m);
    tell_status(m, "online"); /* readers may send requests: we are subscribed by then */
    if (m->on_link)
        m->on_link(m->link_ctx, true);
}

static void on_disconnect(struct mosquitto *c, void *ctx, int rc, const mosquitto_property *props)
{
    struct mqtt *m = ctx;
    (void)c;
    (void)props;
    m->lost = true;
    if (rc != 0 && mqtt_is_up(m))
        set_error(m, rc > 127 ? mosquitto_reason_string(rc) : mosquitto_strerror(rc));
}

static void on_subscribe(struct mosquitto *c, void *ctx, int mid, int n, const int *granted,
                         const mosquitto_property *props)
{
    struct mqtt *m = ctx;
    (void)c;
    (void)props;
    pthread_mutex_lock(&m->lock);
    for (struct sub *s = m->subs; s; s = s->next) {
        if (!s->placed || s->mid != mid)
            continue;
        s->confirmed = true;
        if (n > 0 && granted[0] >= 128)
            log_error("mqtt", "the broker refuses the subscription to '%s': %s", s->filter,
                      mosquitto_reason_string(granted[0]));
    }
    pthread_mutex_unlock(&m->lock);
}

static void on_publish(struct mosquitto *c, void *ctx, int mid, int reason,
                       const mosquitto_property *props)
{
    struct mqtt *m = ctx;
    (void)c;
    (void)props;
    struct out **at = &m->sent;
    while (*at && (*at)->mid != mid)
        at = &(*at)->next;
    if (!*at)
        return; /* QoS 0, or the status */
    struct out *o = *at;
    struct mqtt_property room[MQTT_MAX_PROPERTIES];
    struct mqtt_message x;
    *at = o->next;
    m->n_sent--;
    if (reason >= 128)
        log_error("mqtt", "the broker refuses a message to '%s': %s",
                  mqtt_code_get(&x, room, o->bytes, o->n) == 0 ? x.topic : "?",
                  mosquitto_reason_string(reason));
    pthread_mutex_lock(&m->lock);
    if (reason >= 128)
        m->status.n_rejected++;
    else
        m->status.n_sent++;
    out_end(m, o);
    pthread_mutex_unlock(&m->lock);
}

static bool came_before(struct mqtt *m, const struct mosquitto_message *from,
                        const struct mqtt_code_received *r, const struct mqtt_message *x)
{
    const char *id = mqtt_message_get(x, "id");
    uint64_t key = hash_bytes(from->topic, strlen(from->topic), 5);
    if (from->qos == 0 || from->retain)
        return false;
    if (id) {
        key = hash_bytes(id, strlen(id), key ^ 1);
    } else {
        key = hash_bytes(from->payload ? from->payload : "", (size_t)from->payloadlen, key);
        key = hash_bytes(r->correlation ? r->correlation : "", r->n_correlation, key);
    }
    for (size_t i = 0; i < r->n_subscriptions; i++) /* copies for two filters are no repetition */
        key = hash_bytes(&r->subscriptions[i], sizeof(r->subscriptions[i]), key);
    return mqtt_seen_add(m->seen, key, id != NULL, clock_ns());
}

/* Calls the handlers of a subscription, without the lock: they may publish and subscribe.  Neither
 * subscriptions nor handlers are removed while the client is open. */
static void call_handlers(struct mqtt *m, const struct sub *s, const struct mqtt_message *x)
{
    pthread_mutex_lock(&m->lock);
    const struct handler *h = s->handlers;
    while (h) {
        pthread_mutex_unlock(&m->lock);
        h->fn(h->ctx, x);
        pthread_mutex_lock(&m->lock);
        h = h->next;
    }
    pthread_mutex_unlock(&m->lock);
}

/* The subscriptions that the broker names; if it names none, those whose filter covers the
 * topic. */
static bool wanted_by(const struct sub *s, const struct mqtt_code_received *r, const char *topic)
{
    bool named = r->n_subscriptions == 0;
    for (size_t i = 0; i < r->n_subscriptions; i++)
        named |= r->subscriptions[i] == s->id;
    return named && mqtt_topic_matches(mqtt_topic_unshared(s->filter), topic, NULL, NULL);
}

static void on_message(struct mosquitto *c, void *ctx, const struct mosquitto_message *from,
                       const mosquitto_property *props)
{
    struct mqtt *m = ctx;
    struct mqtt_code_received r;
    (void)c;
    bool large = (size_t)from->payloadlen > m->max_payload;
    mqtt_code_read(&r, props);
    const struct mqtt_message x = {.topic = from->topic,
                                   .payload = from->payload ? from->payload : "",
                                   .n = (size_t)from->payloadlen,
                                   .qos = (uint8_t)from->qos,
                                   .retain = from->retain,
                                   .response_topic = r.response_topic,
                                   .content_type = r.content_type,
                                   .correlation = r.correlation,
                                   .n_correlation = r.n_correlation,
                                   .expiry_s = r.expiry_s,
                                   .properties = r.properties,
                                   .n_properties = r.n_properties};
    bool again = !large && came_before(m, from, &r, &x);
    pthread_mutex_lock(&m->lock);
    m->status.n_received++;
    m->status.n_again += again;
    const struct sub *s = m->subs; /* new ones come in front */
    pthread_mutex_unlock(&m->lock);
    for (; s && !again && !large; s = s->next)
        if (wanted_by(s, &r, from->topic))
            call_handlers(m, s, &x);
    if (large)
        log_warn("mqtt", "a message of %d bytes on '%s' is dropped: at most %zu are allowed",
                 from->payloadlen, from->topic, m->max_payload);
    mqtt_code_fini(&r);
}

/* ---- the thread ---- */

/* Gives libmosquitto one message; false: not now. */
static bool submit(struct mqtt *m, struct out *o)
{
    struct mqtt_property room[MQTT_MAX_PROPERTIES];
    struct mqtt_message x;
    mosquitto_property *p = NULL;
    char id[40] = "";
    int rc = MOSQ_ERR_INVAL;
    if (o->number)
        snprintf(id, sizeof(id), "%016llx-%llu", (unsigned long long)spool_salt(m->spool),
                 (unsigned long long)o->number);
    if (mqtt_code_get(&x, room, o->bytes, o->n) == 0 &&
        mqtt_code_properties(&p, &x, mqtt_message_get(&x, "id") ? "" : id) == 0)
        rc = mosquitto_publish_v5(m->client, &o->mid, x.topic, (int)x.n, x.payload, x.qos, x.retain,
                                  p);
    mosquitto_property_free_all(&p);
    if (rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_CONN_LOST) {
        m->lost = true;
        return false;
    }
    if (rc == MOSQ_ERR_SUCCESS && o->qos > 0) { /* until it is acknowledged */
        o->next = m->sent;
        m->sent = o;
        m->n_sent++;
        return true;
    }
    if (rc != MOSQ_ERR_SUCCESS)
        log_error("mqtt", "a message cannot be sent: %s", mosquitto_strerror(rc));
    pthread_mutex_lock(&m->lock);
    if (rc == MOSQ_ERR_SUCCESS)
        m->status.n_sent++;
    else
        m->status.n_rejected++;
    out_end(m, o);
    pthread_mutex_unlock(&m->lock);
    return true;
}

static void submit_all(struct mqtt *m)
{
    while (!m->lost && m->n_sent < MAX_WINDOW) {
        pthread_mutex_lock(&m->lock);
        struct out *o = m->first;
        if (o) {
            m->first = o->next;
            if (!m->first)
                m->last = &m->first;
        }
        pthread_mutex_unlock(&m->lock);
        if (!o)
            return;
        if (submit(m, o))
            continue;
        pthread_mutex_lock(&m->lock); /* back to its place */
        o->next = m->first;
        m->first = o;
        if (!o->next)
            m->last = &o->next;
        pthread_mutex_unlock(&m->lock);
    }
}

static void drain_wake(struct mqtt *m)
{
    uint64_t n;
    (void)!read(m->wake_fd, &n, sizeof(n));
}

static int connect_now(struct mqtt *m)
{
    mosquitto_property *p = NULL;
    struct err e = {0};
    if (mqtt_probe(m->host, m->port, PROBE_MS, m->wake_fd, &m->stop, &e) < 0) {
        set_error(m, e.msg);
        return -1;
    }
    int rc = mosquitto_property_add_int32(&p, MQTT_PROP_SESSION_EXPIRY_INTERVAL, m->session_s);
    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_connect_bind_v5(m->client, m->host, m->port, (int)m->keepalive_s, NULL, p);
    mosquitto_property_free_all(&p);
    if (rc != MOSQ_ERR_SUCCESS)
        set_error(m, rc == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(rc));
    return rc == MOSQ_ERR_SUCCESS ? 0 : -1;
}

/* One turn of an open connection. */
static void turn(struct mqtt *m)
{
    int fd = mosquitto_socket(m->client), rc = MOSQ_ERR_SUCCESS;
    if (fd < 0) {
        m->lost = true;
        return;
    }
    short events = (short)(POLLIN | (mosquitto_want_write(m->client) ? POLLOUT : 0));
    struct pollfd p[2] = {{fd, events, 0}, {m->wake_fd, POLLIN, 0}};
    if (poll(p, 2, TURN_MS) < 0 && errno != EINTR) {
        m->lost = true;
        return;
    }
    if (p[1].revents)
        drain_wake(m);
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
        rc = mosquitto_loop_read(m->client, 1);
    if (rc == MOSQ_ERR_SUCCESS && mosquitto_want_write(m->client))
        rc = mosquitto_loop_write(m->client, 1);
    if (rc == MOSQ_ERR_SUCCESS)
        rc = mosquitto_loop_misc(m->client);
    if (rc != MOSQ_ERR_SUCCESS) {
        if (!m->refused)
            set_error(m, rc == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(rc));
        m->lost = true;
    }
}

static bool has_work(struct mqtt *m)
{
    pthread_mutex_lock(&m->lock);
    bool work = m->n_queued > 0;
    pthread_mutex_unlock(&m->lock);
    return work;
}

/* Runs until the connection is lost, or the client must stop and has nothing left to send. */
static void run_connection(struct mqtt *m)
{
    uint64_t give_up_ns = clock_ns() + CONNACK_NS;
    m->lost = m->refused = false;
    while (!m->lost && !m->refused) {
        bool stop = atomic_load(&m->stop);
        if (stop && (!mqtt_is_up(m) || !has_work(m) || clock_ns() > atomic_load(&m->stop_at_ns)))
            break;
        if (mqtt_is_up(m)) {
            place_subs(m);
            submit_all(m);
        } else if (clock_ns() > give_up_ns) {
            set_error(m, "the broker does not answer");
            break;
        }
        if (!m->lost)
            turn(m);
    }
    if (!m->lost) {
        if (atomic_load(&m->stop) && mqtt_is_up(m))
            tell_status(m, "offline");
        mosquitto_disconnect_v5(m->client, 0, NULL);
        for (int i = 0; i < 20 && mosquitto_want_write(m->client); i++)
            if (mosquitto_loop_write(m->client, 1) != MOSQ_ERR_SUCCESS)
                break;
    }
    bool was_up = atomic_exchange(&m->up, false);
    pthread_mutex_lock(&m->lock);
    if (was_up) {
        m->status.n_losses++;
        m->status.link = MQTT_AWAY;
    }
    pthread_mutex_unlock(&m->lock);
    if (was_up && m->on_link)
        m->on_link(m->link_ctx, false);
}

/* Waits for the next attempt: up to twice wait_ms, which doubles. */
static void back_off(struct mqtt *m)
{
    m->random = hash_mix(m->random + 1);
    uint64_t until = clock_ns() + (m->wait_ms + m->random % (m->wait_ms + 1)) * 1000000ull;
    m->wait_ms = m->wait_ms < m->reconnect_max_ms / 2 ? 2 * m->wait_ms : m->reconnect_max_ms;
    while (!atomic_load(&m->stop)) {
        uint64_t now = clock_ns();
        struct pollfd p = {m->wake_fd, POLLIN, 0};
        if (now >= until)
            return;
        if (poll(&p, 1, (int)((until - now) / 1000000u) + 1) > 0)
            drain_wake(m);
    }
}

static void *run(void *arg)
{
    struct mqtt *m = arg;
    while (!atomic_load(&m->stop)) {
        if (connect_now(m) == 0)
            run_connection(m);
        if (!atomic_load(&m->stop))
            back_off(m);
    }
    return NULL;
}

/* ---- opening and closing ---- */

/* A message that an earlier process could not deliver. */
static int take_kept(void *ctx, uint64_t number, const void *bytes, size_t n)
{
    struct mqtt *m = ctx;
    struct mqtt_property room[MQTT_MAX_PROPERTIES];
    struct mqtt_message x;
    int rc = mqtt_code_get(&x, room, bytes, n);
    if (rc < 0)
        return rc;
    struct out *o = out_create(&x, bytes, n);
    if (!o)
        return SHOAL_ENOMEM;
    o->number = number;
    append(m, o);
    return 0;
}

static int open_spool(struct mqtt *m, const struct mqtt_opts *o, struct err *e)
{
    const struct spool_opts so = {o->spool_path, o->spool_bytes};
    struct spool_stats st;
    if (!o->spool_path)
        return 0;
    int rc = spool_open(&m->spool, &so, take_kept, m, e);
    if (rc < 0)
        return rc;
    spool_get_stats(m->spool, &st);
    if (st.dropped_bytes > 0)
        log_warn("mqtt", "the last %zu bytes of %s are damaged and were dropped", st.dropped_bytes,
                 o->spool_path);
    if (st.n_live > 0)
        log_info("mqtt", "messages of an earlier run to send: %zu", st.n_live);
    return 0;
}

static int set_password(struct mqtt *m, const struct mqtt_opts *o, struct err *e)
{
    struct buf b;
    int rc = 0;
    buf_init(&b, MAX_PASSWORD);
    if (o->password_file)
        rc = file_read(o->password_file, &b, e);
    while (b.len > 0 && (b.data[b.len - 1] == '\n' || b.data[b.len - 1] == '\r'))
        b.data[--b.len] = '\0';
    if (rc == 0 && (o->user || o->password_file) &&
        mosquitto_username_pw_set(m->client, o->user, o->password_file ? buf_str(&b) : NULL) !=
            MOSQ_ERR_SUCCESS)
        rc = err_set(e, SHOAL_EINVAL, "'%s' is not a user name for MQTT", o->user ? o->user : "");
    if (b.data)
        memset(b.data, 0, b.cap);
    buf_fini(&b);
    return rc;
}

static int check_file(const char *path, struct err *e)
{
    if (!path || access(path, R_OK) == 0)
        return 0;
    return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
}

static int set_tls(struct mqtt *m, const struct mqtt_opts *o, struct err *e)
{
    int rc = check_file(o->ca, e);
    if (!o->tls)
        return 0;
    if (rc == 0)
        rc = check_file(o->cert, e);
    if (rc == 0)
        rc = check_file(o->key, e);
    if (rc < 0)
        return rc;
    if (!o->cert != !o->key)
        return err_set(e, SHOAL_EINVAL, "a client certificate needs both cert and key");
    if (mosquitto_tls_set(m->client, o->ca, o->ca ? NULL : "/etc/ssl/certs", o->cert, o->key,
                          NULL) != MOSQ_ERR_SUCCESS ||
        mosquitto_tls_opts_set(m->client, 1, NULL, NULL) != MOSQ_ERR_SUCCESS)
        return err_set(e, SHOAL_EIO, "cannot use the certificates for MQTT");
    return 0;
}

static int set_client(struct mqtt *m, const struct mqtt_opts *o, struct err *e)
{
    m->client = mosquitto_new(o->client_id, false, m);
    if (!m->client)
        return err_set(e, SHOAL_EINVAL, "'%s' is not a client id for MQTT", o->client_id);
    /* libmosquitto acknowledges a message before it calls the handler. If it believes that another
     * thread writes, it only queues the acknowledgement, and turn() sends it after the handler:
     * after a crash in between, the broker sends the message again. */
    mosquitto_threaded_set(m->client, true);
    mosquitto_int_option(m->client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_int_option(m->client, MOSQ_OPT_RECEIVE_MAXIMUM, 256);
    mosquitto_int_option(m->client, MOSQ_OPT_SEND_MAXIMUM, (int)MAX_WINDOW);
    mosquitto_int_option(m->client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_connect_v5_callback_set(m->client, on_connect);
    mosquitto_disconnect_v5_callback_set(m->client, on_disconnect);
    mosquitto_message_v5_callback_set(m->client, on_message);
    mosquitto_publish_v5_callback_set(m->client, on_publish);
    mosquitto_subscribe_v5_callback_set(m->client, on_subscribe);
    if (m->status_topic && (!mqtt_topic_is_name(m->status_topic) ||
                            mosquitto_will_set_v5(m->client, m->status_topic, 7, "offline", 1, true,
                                                  NULL) != MOSQ_ERR_SUCCESS))
        return err_set(e, SHOAL_EINVAL, "'%s' is not a topic to publish to", m->status_topic);
    int rc = set_password(m, o, e);
    return rc < 0 ? rc : set_tls(m, o, e);
}

int mqtt_open(struct mqtt **out, const struct mqtt_opts *o, struct err *e)
{
    struct mqtt *m = mem_zalloc(sizeof(*m));
    int rc = 0;
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "MQTT client");
    pthread_mutex_init(&m->lock, NULL);
    m->last = &m->first;
    m->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    m->host = mem_strdup(o->host);
    m->client_id = mem_strdup(o->client_id);
    m->status_topic = o->status_topic ? mem_strdup(o->status_topic) : NULL;
    m->seen = mem_zalloc(sizeof(*m->seen));
    m->port = o->port;
    m->keepalive_s = o->keepalive_s ? o->keepalive_s : 30;
    m->session_s = o->session_s;
    m->reconnect_ms = o->reconnect_ms ? o->reconnect_ms : 250;
    m->reconnect_max_ms = o->reconnect_max_ms ? o->reconnect_max_ms : 30000;
    if (m->reconnect_max_ms < m->reconnect_ms)
        m->reconnect_max_ms = m->reconnect_ms;
    m->wait_ms = m->reconnect_ms;
    m->max_payload = o->max_payload ? o->max_payload : (size_t)16 << 20;
    m->max_queue_bytes = o->queue_bytes ? o->queue_bytes : (size_t)16 << 20;
    if (getrandom(&m->random, sizeof(m->random), 0) < 0)
        m->random = clock_ns();
    if (m->wake_fd < 0 || !m->host || !m->client_id || !m->seen ||
        (o->status_topic && !m->status_topic))
        rc = err_set(e, SHOAL_ENOMEM, "MQTT client");
    if (rc == 0 && mosquitto_lib_init() != MOSQ_ERR_SUCCESS)
        rc = err_set(e, SHOAL_ENOMEM, "libmosquitto");
    m->has_lib = rc == 0;
    if (rc == 0)
        rc = open_spool(m, o, e);
    if (rc == 0)
        rc = set_client(m, o, e);
    if (rc < 0) {
        mqtt_close(m);
        return rc;
    }
    snprintf(m->status.broker, sizeof(m->status.broker), "%s:%u", m->host, m->port);
    *out = m;
    return 0;
}

void mqtt_set_link(struct mqtt *m, mqtt_link_fn on_link, void *ctx)
{
    m->on_link = on_link;
    m->link_ctx = ctx;
}

void mqtt_each_waiting(struct mqtt *m, mqtt_message_fn fn, void *ctx)
{
    struct mqtt_property room[MQTT_MAX_PROPERTIES];
    struct mqtt_message x;
    for (const struct out *o = m->first; o; o = o->next)
        if (mqtt_code_get(&x, room, o->bytes, o->n) == 0)
            fn(ctx, &x);
}

int mqtt_start(struct mqtt *m, struct err *e)
{
    int rc = thread_create(&m->thread, "mqtt", run, m, e);
    m->has_thread = rc == 0;
    return rc;
}

void mqtt_stop(struct mqtt *m, uint32_t wait_ms)
{
    if (!m || !m->has_thread)
        return;
    atomic_store(&m->stop_at_ns, clock_ns() + wait_ms * 1000000ull);
    atomic_store(&m->stop, true);
    wake(m);
    pthread_join(m->thread, NULL);
    m->has_thread = false;
}

static void free_outs(struct out *o)
{
    while (o) {
        struct out *next = o->next;
        mem_free(o);
        o = next;
    }
}

void mqtt_close(struct mqtt *m)
{
    if (!m)
        return;
    mqtt_stop(m, 0);
    if (m->client)
        mosquitto_destroy(m->client);
    if (m->has_lib)
        mosquitto_lib_cleanup();
    free_outs(m->first);
    free_outs(m->sent);
    while (m->subs) {
        struct sub *s = m->subs;
        m->subs = s->next;
        sub_free(s);
    }
    spool_close(m->spool);
    if (m->wake_fd >= 0)
        close(m->wake_fd);
    pthread_mutex_destroy(&m->lock);
    mem_free(m->seen);
    mem_free(m->host);
    mem_free(m->client_id);
    mem_free(m->status_topic);
    mem_free(m);
}

void mqtt_get_status(struct mqtt *m, struct mqtt_status *out)
{
    struct spool_stats st = {0};
    pthread_mutex_lock(&m->lock);
    *out = m->status;
    out->n_queued = m->n_queued;
    out->queued_bytes = m->queued_bytes;
    for (const struct sub *s = m->subs; s; s = s->next)
        out->n_unconfirmed += !s->confirmed;
    if (m->spool)
        spool_get_stats(m->spool, &st);
    pthread_mutex_unlock(&m->lock);
    out->n_kept = st.n_live;
    out->kept_bytes = st.live_bytes;
}
