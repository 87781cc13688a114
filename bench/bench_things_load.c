/* bench_things_load.c - sensors that send readings to an MQTT broker, some of them suddenly too
 * high, and the time until the alarm and its explanation are on the alarm topic.  For
 * bench/things.js.
 *
 * Usage: bench_things_load HOST PORT SENSORS HZ SECONDS SPIKES ALARM_FILTER
 * Readings go to bench/sN, spread evenly over time.  After half of the time, SPIKES sensors get one
 * reading of 150 each (normal: about 50), one after the other.  An alarm counts for a sensor if its
 * topic ends with /sN; a message with "explained" in it is the explanation.
 * Prints {"sent", "spikes", "alarms_ms": [...], "explanations_ms": [...]}. */
#include <mosquitto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"

struct load {
    pthread_mutex_t lock;
    uint32_t n;
    uint64_t *spiked_ns;             /* [n]; 0: not yet */
    double *alarm_ms, *explained_ms; /* [n]; 0: not seen */
    bool up;
};

static void on_connect(struct mosquitto *m, void *ctx, int rc)
{
    struct load *l = ctx;
    (void)m;
    pthread_mutex_lock(&l->lock);
    l->up = rc == 0;
    pthread_mutex_unlock(&l->lock);
}

static void on_message(struct mosquitto *m, void *ctx, const struct mosquitto_message *msg)
{
    struct load *l = ctx;
    uint64_t now = clock_ns();
    const char *level = strrchr(msg->topic, '/');
    unsigned long i = level && level[1] == 's' ? strtoul(level + 2, NULL, 10) : l->n;
    bool explained = memmem(msg->payload, (size_t)msg->payloadlen, "\"explained\"", 11) != NULL;
    (void)m;
    pthread_mutex_lock(&l->lock);
    if (i < l->n && l->spiked_ns[i]) {
        double *at = explained ? &l->explained_ms[i] : &l->alarm_ms[i];
        if (*at == 0)
            *at = (double)(now - l->spiked_ns[i]) / 1e6;
    }
    pthread_mutex_unlock(&l->lock);
}

static void print_seen(const char *name, const double *v, uint32_t n)
{
    const char *comma = "";
    printf("\"%s\":[", name);
    for (uint32_t i = 0; i < n; i++)
        if (v[i] > 0) {
            printf("%s%.3f", comma, v[i]);
            comma = ",";
        }
    printf("]");
}

static void send_all(struct load *l, struct mosquitto *m, double hz, double seconds,
                     uint32_t spikes, uint64_t *n_sent)
{
    uint64_t total = (uint64_t)(l->n * hz * seconds), begun = clock_ns(), half = total / 2;
    uint64_t every = spikes ? (total - half) / (spikes + 1) : 0;
    uint32_t n_spiked = 0;
    for (uint64_t k = 0; k < total; k++) {
        uint64_t due = begun + (uint64_t)((double)k / (l->n * hz) * 1e9), now = clock_ns();
        char topic[32], text[32];
        uint32_t i = (uint32_t)(k % l->n);
        double value = 50 + (double)((k * 2654435761u) % 1000) / 1000;
        if (due > now + 200000) {
            const struct timespec ts = {.tv_nsec =
                                            (long)(due - now > 999999999 ? 999999999 : due - now)};
            nanosleep(&ts, NULL);
        }
        pthread_mutex_lock(&l->lock);
        if (n_spiked < spikes && k >= half + n_spiked * every && l->spiked_ns[i] == 0) {
            value = 150;
            n_spiked++;
            l->spiked_ns[i] = clock_ns();
        }
        pthread_mutex_unlock(&l->lock);
        snprintf(topic, sizeof(topic), "bench/s%u", i);
        int n = snprintf(text, sizeof(text), "%.3f", value);
        if (mosquitto_publish(m, NULL, topic, n, text, 0, false) == MOSQ_ERR_SUCCESS)
            ++*n_sent;
    }
}

int main(int argc, char **argv)
{
    struct load l = {.lock = PTHREAD_MUTEX_INITIALIZER};
    uint64_t n_sent = 0;
    if (argc != 8) {
        fprintf(stderr,
                "usage: bench_things_load HOST PORT SENSORS HZ SECONDS SPIKES ALARM_FILTER\n");
        return 2;
    }
    l.n = (uint32_t)strtoul(argv[3], NULL, 10);
    l.spiked_ns = mem_zalloc_n(l.n, sizeof(*l.spiked_ns));
    l.alarm_ms = mem_zalloc_n(l.n, sizeof(double));
    l.explained_ms = mem_zalloc_n(l.n, sizeof(double));
    mosquitto_lib_init();
    struct mosquitto *m = mosquitto_new(NULL, true, &l);
    if (!m || l.n == 0 || !l.spiked_ns || !l.alarm_ms || !l.explained_ms)
        return 1;
    mosquitto_connect_callback_set(m, on_connect);
    mosquitto_message_callback_set(m, on_message);
    mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
    if (mosquitto_connect(m, argv[1], atoi(argv[2]), 30) != MOSQ_ERR_SUCCESS ||
        mosquitto_subscribe(m, NULL, argv[7], 0) != MOSQ_ERR_SUCCESS ||
        mosquitto_loop_start(m) != MOSQ_ERR_SUCCESS) {
        fprintf(stderr, "bench_things_load: no broker at %s:%s\n", argv[1], argv[2]);
        return 1;
    }
    send_all(&l, m, atof(argv[4]), atof(argv[5]), (uint32_t)strtoul(argv[6], NULL, 10), &n_sent);
    const struct timespec rest = {.tv_sec = 2}; /* for messages still in flight */
    nanosleep(&rest, NULL);
    mosquitto_disconnect(m);
    mosquitto_loop_stop(m, false);
    uint32_t n_spiked = 0;
    for (uint32_t i = 0; i < l.n; i++)
        n_spiked += l.spiked_ns[i] != 0;
    printf("{\"sent\":%llu,\"spikes\":%u,", (unsigned long long)n_sent, n_spiked);
    print_seen("alarms_ms", l.alarm_ms, l.n);
    printf(",");
    print_seen("explanations_ms", l.explained_ms, l.n);
    printf("}\n");
    mosquitto_destroy(m);
    mosquitto_lib_cleanup();
    mem_free(l.spiked_ns);
    mem_free(l.alarm_ms);
    mem_free(l.explained_ms);
    return 0;
}
