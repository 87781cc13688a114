/* mqtt_door.c - see mqtt_door.h. */
#include "gateway/mqtt/mqtt_door.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/call/call.h"
#include "gateway/call/door.h"
#include "gateway/mqtt/mqtt_request.h"
#include "host/prometheus.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "site/mqtt/mqtt_site.h"

#define MAX_ANSWER_BYTES ((size_t)8 << 20)
#define MAX_ANSWER_PROPERTIES 16u

struct mqtt_call {
    struct http_req req; /* first */
    struct mqtt_door *door;
    struct gw_loop *gl;
    struct mqtt_call *prev, *next; /* of the loop's calls */
    struct executor_task begin;
    struct arena arena; /* everything the request points to */
    struct mqtt_request request;
    const char *response_topic;
    const void *correlation;
    size_t n_correlation;
    uint8_t qos;
    bool linked, streams;
    uint32_t n_events;
    struct buf text; /* the whole answer */
    struct mqtt_property properties[MAX_ANSWER_PROPERTIES];
    size_t n_properties;
    char status[16];
};

struct mqtt_door {
    struct gw *gw;
    struct mqtt *client;
    char filter[MQTT_TOPIC_MAX_BYTES]; /* filter of requests, without $share */
    const struct config_mqtt *config;
    size_t max_values; /* JSON values in a request */
    _Atomic uint32_t next_loop, n_in_flight;
    _Atomic uint64_t n_requests, n_refused, n_unanswerable;
    _Atomic bool closed;
    struct mqtt_call *calls[GW_MAX_LOOPS]; /* each the loop's */
};

/* ---- answers, on the loop ---- */

static void call_drop(struct mqtt_call *c)
{
    struct mqtt_door *d = c->door;
    if (c->linked) {
        if (c->prev)
            c->prev->next = c->next;
        else
            d->calls[c->gl - c->gl->gw->loops] = c->next;
        if (c->next)
            c->next->prev = c->prev;
    }
    atomic_fetch_sub(&d->n_in_flight, 1);
    cJSON_Delete(c->request.body);
    buf_fini(&c->text);
    arena_fini(&c->arena);
    mem_free(c);
}

static void publish(struct mqtt_call *c, const char *bytes, size_t n, bool last, const char *type)
{
    struct mqtt_property p[MAX_ANSWER_PROPERTIES + 3];
    char number[16];
    size_t k = 0;
    struct err e = {0};
    if (last)
        p[k++] = (struct mqtt_property){"status", c->status};
    p[k++] = (struct mqtt_property){"done", last ? "true" : "false"};
    if (c->streams) {
        snprintf(number, sizeof(number), "%u", c->n_events++);
        p[k++] = (struct mqtt_property){"event", number};
    }
    for (size_t i = 0; (last || c->n_events <= 1) && i < c->n_properties; i++)
        p[k++] = c->properties[i];
    const struct mqtt_message m = {.topic = c->response_topic,
                                   .payload = bytes,
                                   .n = n,
                                   .qos = c->qos,
                                   .content_type = type,
                                   .correlation = c->correlation,
                                   .n_correlation = c->n_correlation,
                                   .properties = p,
                                   .n_properties = k};
    if (mqtt_publish(c->door->client, &m, &e) < 0)
        log_warn("mqtt", "answer lost topic=%s: %s", c->response_topic, e.msg);
}

static void on_begin(struct http_req *r, int status, const struct http_header *h, size_t n,
                     int64_t body_bytes)
{
    struct mqtt_call *c = (struct mqtt_call *)(void *)r;
    (void)body_bytes;
    snprintf(c->status, sizeof(c->status), "%d", status);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(h[i].name, "content-type") == 0) {
            c->streams = strncmp(h[i].value, SSE_TYPE, strlen(SSE_TYPE)) == 0 ||
                         strncmp(h[i].value, "application/x-ndjson", 20) == 0;
            continue;
        }
        if (c->n_properties < MAX_ANSWER_PROPERTIES)
            c->properties[c->n_properties++] =
                (struct mqtt_property){arena_printf(&c->arena, "%s", h[i].name),
                                       arena_printf(&c->arena, "%s", h[i].value)};
    }
}

/* An event of a stream, as it is in the call's out. */
static void on_event(struct call *call)
{
    struct mqtt_call *c = (struct mqtt_call *)(void *)call->req;
    if (c && call->out.len > 0 && call->out.rc == 0)
        publish(c, buf_str(&call->out), call->out.len, false, "application/json");
    buf_clear(&call->out);
}

static void on_write(struct http_req *r, const void *p, size_t n)
{
    buf_put(&((struct mqtt_call *)(void *)r)->text, p, n);
}

static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct mqtt_call *c = (struct mqtt_call *)(void *)r;
    (void)trailers;
    (void)n;
    while (c->text.len > 0 && c->text.data[c->text.len - 1] == '\n')
        c->text.data[--c->text.len] = '\0';
    if (c->text.rc < 0)
        snprintf(c->status, sizeof(c->status), "500");
    if (c->streams && c->text.len == 0)
        publish(c, "{}", 2, true, "application/json");
    else
        publish(c, buf_str(&c->text), c->text.len, true, "application/json");
    call_drop(c);
}

static size_t on_queued(const struct http_req *r)
{
    (void)r;
    return 0; /* the client's own limit counts */
}

static const struct http_ops ops = {on_begin, on_write, on_end, on_queued};

static void on_start(struct executor_task *t)
{
    struct mqtt_call *c = LOOP_OF(t, struct mqtt_call, begin);
    struct mqtt_door *d = c->door;
    struct gw_loop *gl = c->gl;
    if (atomic_load(&d->closed)) {
        call_drop(c);
        return;
    }
    struct mqtt_call **list = &d->calls[gl - gl->gw->loops];
    c->next = *list;
    if (*list)
        (*list)->prev = c;
    *list = c;
    c->linked = true;
    c->req = (struct http_req){.method = "POST",
                               .path = c->request.path,
                               .query = "",
                               .headers = c->request.headers,
                               .n_headers = c->request.n_headers,
                               .body = "",
                               .peer = "mqtt",
                               .protocol = "mqtt",
                               .via = HTTP_VIA_NETWORK,
                               .received_ns = c->req.received_ns,
                               .server = gl->http,
                               .ops = &ops};
    struct call *call = call_create(gl, &c->req);
    if (!call) /* call_create has answered c->req */
        return;
    cJSON *body = c->request.body;
    c->request.body = NULL;
    call->event = on_event;
    call->json_values = c->request.n_values;
    call->start_ns = c->req.received_ns;
    call_hold(call);
    door_enter(call, body);
    call_release(call);
}

/* ---- messages, on the client's thread ---- */

struct wanted {
    const char *name;
    unsigned kinds;
};

static void find_kinds(void *ctx, const struct registry_model *m)
{
    struct wanted *w = ctx;
    if (strcmp(m->name, w->name) == 0)
        w->kinds = m->slot->kinds;
}

static bool response_ok(const struct mqtt_door *d, const char *topic)
{
    char own[MQTT_TOPIC_MAX_BYTES];
    const struct yaml_in_strs *list = &d->config->responses;
    if (!mqtt_topic_is_name(topic))
        return false;
    snprintf(own, sizeof(own), "%s/response/#", d->config->topic);
    for (uint32_t i = 0; i < list->n; i++)
        if (mqtt_topic_matches(list->v[i], topic, NULL, NULL))
            return true;
    return mqtt_topic_matches(own, topic, NULL, NULL);
}

/* Answers a message that did not become a call. */
static void refuse(struct mqtt_door *d, struct mqtt_call *c, int status, const char *why)
{
    const struct call_error e = {.status = status, .type = call_type_of(status), .message = why};
    atomic_fetch_add(&d->n_refused, 1);
    snprintf(c->status, sizeof(c->status), "%d", status);
    call_put_error(&c->text, &e, false);
    publish(c, buf_str(&c->text), c->text.len, true, "application/json");
}

static struct mqtt_call *call_make(struct mqtt_door *d, const struct mqtt_message *m,
                                   const char *response)
{
    struct mqtt_call *c = mem_zalloc(sizeof(*c));
    if (!c)
        return NULL;
    c->door = d;
    arena_init(&c->arena, (size_t)1 << 20);
    buf_init(&c->text, MAX_ANSWER_BYTES);
    c->response_topic = arena_printf(&c->arena, "%s", response);
    c->correlation =
        m->n_correlation ? arena_copy(&c->arena, m->correlation, m->n_correlation) : NULL;
    c->n_correlation = m->n_correlation;
    c->qos = m->qos;
    c->begin.fn = on_start;
    c->gl = &d->gw->loops[atomic_fetch_add(&d->next_loop, 1) % d->gw->n_loops];
    c->req.received_ns = clock_ns();
    atomic_fetch_add(&d->n_in_flight, 1);
    if (c->arena.rc == 0)
        return c;
    call_drop(c);
    return NULL;
}

/* Checks a message before spending anything on it; its error status, or 0. */
static int check_message(const struct mqtt_door *d, const struct mqtt_message *m, char *why,
                         size_t cap)
{
    const struct config_mqtt *k = d->config;
    const char *key = mqtt_message_get(m, "key");
    struct admission *a = d->gw->admission;
    why[0] = '\0';
    if (atomic_load(&d->gw->draining)) {
        snprintf(why, cap, "the server is stopping");
        return 503;
    }
    if (admission_needed(a) && (!key || !admission_find(a, key, strlen(key)))) {
        snprintf(why, cap, key ? "unknown API key" : "no API key: send it as user property 'key'");
        return 401;
    }
    if (m->n > k->payload_bytes) {
        snprintf(why, cap, "the payload of %zu bytes is larger than mqtt.requests.payload, %zu",
                 m->n, k->payload_bytes);
        return 413;
    }
    if (k->in_flight && atomic_load(&d->n_in_flight) > k->in_flight) {
        snprintf(why, cap, "%u requests over MQTT are in flight: try again later", k->in_flight);
        return 429;
    }
    return 0;
}

static void on_message(void *ctx, const struct mqtt_message *m)
{
    struct mqtt_door *d = ctx;
    struct str name[MQTT_TOPIC_MAX_LEVELS] = {{"", 0}};
    char own[2 * MQTT_TOPIC_MAX_BYTES], text[MQTT_TOPIC_MAX_BYTES], why[200];
    size_t n = 0;
    mqtt_topic_matches(d->filter, m->topic, name, &n);
    snprintf(text, sizeof(text), "%.*s", (int)name[0].n, n ? name[0].p : "");
    atomic_fetch_add(&d->n_requests, 1);
    snprintf(own, sizeof(own), "%s/response/%s", d->config->topic, text);
    const char *response = m->response_topic ? m->response_topic : own;
    if (!response_ok(d, response)) {
        atomic_fetch_add(&d->n_unanswerable, 1);
        log_warn("mqtt",
                 "a request for '%.100s' has the response topic '%.100s': add a filter to "
                 "mqtt.requests.responses to allow it",
                 text, response);
        return;
    }
    struct mqtt_call *c = call_make(d, m, response);
    if (!c) {
        log_warn("mqtt", "a request for '%.100s' is lost: out of memory", text);
        return;
    }
    int status = check_message(d, m, why, sizeof(why));
    const char *wrong = status ? why : NULL;
    if (!wrong) {
        struct wanted w = {mqtt_message_get(m, "model"), 0};
        w.name = w.name ? w.name : text;
        registry_each(d->gw->registry, find_kinds, &w);
        wrong = mqtt_request_read(&c->request, &c->arena, m, text, w.kinds, d->max_values);
        status = 400;
    }
    if (wrong) {
        refuse(d, c, status, wrong);
        call_drop(c);
        return;
    }
    loop_post(c->gl->loop, &c->begin);
}

/* ---- life ---- */

int mqtt_door_create(struct mqtt_door **out, struct gw *gw, struct err *e)
{
    struct mqtt *client = mqtt_site_client(gw->mqtt);
    const struct config *config = client ? mqtt_site_config(gw->mqtt) : gw->config;
    const struct config_mqtt *k = &config->mqtt;
    char filter[2 * MQTT_TOPIC_MAX_BYTES];
    *out = NULL;
    if (!client || !k->requests)
        return 0;
    struct mqtt_door *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "MQTT");
    d->gw = gw;
    d->client = client;
    d->config = k;
    d->max_values = config->max_values;
    snprintf(d->filter, sizeof(d->filter), "%s/request/#", k->topic);
    snprintf(filter, sizeof(filter), "%s%s%s%s", k->share ? "$share/" : "",
             k->share ? k->share : "", k->share ? "/" : "", d->filter);
    int rc = mqtt_subscribe(client, filter, (uint8_t)k->qos, MQTT_RETAINED_NEVER, on_message, d, e);
    if (rc < 0) {
        mem_free(d);
        return rc;
    }
    *out = d;
    return 0;
}

void mqtt_door_end(struct mqtt_door *d, struct gw_loop *gl)
{
    if (!d)
        return;
    atomic_store(&d->closed, true);
    loop_flush(gl->loop); /* posted but not started */
    struct mqtt_call **list = &d->calls[gl - gl->gw->loops];
    while (*list) {
        struct mqtt_call *c = *list;
        if (c->req.cancelled)
            c->req.cancelled(&c->req);
        call_drop(c);
    }
}

void mqtt_door_destroy(struct mqtt_door *d)
{
    mem_free(d);
}

void mqtt_door_metrics(const struct mqtt_door *d, struct buf *b)
{
    if (!d)
        return;
    prometheus_help(b, "shoal_mqtt_requests_total", "counter", "Requests over MQTT.");
    buf_printf(b, "shoal_mqtt_requests_total %" PRIu64 "\n", atomic_load(&d->n_requests));
    prometheus_help(b, "shoal_mqtt_requests_in_flight", "gauge",
                    "Requests over MQTT that are running.");
    buf_printf(b, "shoal_mqtt_requests_in_flight %u\n", atomic_load(&d->n_in_flight));
}
