/* modbus_site.c - see modbus_site.h. */
#include "site/modbus/modbus_site.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <modbus.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "config/config_modbus.h"
#include "host/prometheus.h"
#include "site/modbus/modbus_tag.h"
#include "site/things/plant.h"

#define MAX_GAP 8u     /* registers between tags that are read along */
#define MAX_SPAN 120u  /* registers of one request; the protocol allows 125 */
#define MIN_PAUSE 500u /* milliseconds before a connection is made again */
#define MAX_PAUSE 30000u

struct link_tag {
    const struct config_modbus_tag *tag;
    uint32_t sensor; /* THINGS_NONE: none */
};

/* One controller. */
struct link {
    const struct config_modbus *config;
    struct plant *plant;
    struct link_tag *tags; /* those that are read, by table and address */
    uint32_t n_tags;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards stop, and the connection during a request */
    pthread_cond_t changed;
    bool stop;
    modbus_t *line; /* NULL: not connected */
    bool complained;
    _Atomic bool up;
    _Atomic uint64_t n_reads, n_refused, n_lost, n_writes;
};

struct modbus_site {
    const struct config_modbuses *config;
    struct link *links;
    uint32_t n;
};

/* ---- the connection; under the lock ---- */

/* The controller has answered that it will not. */
static bool is_refusal(int error)
{
    return error > MODBUS_ENOBASE && error < EMBBADCRC;
}

static void hang_up(struct link *l, const char *what)
{
    if (!l->complained)
        log_warn("modbus", "%s at %s: %s: %s", l->config->name, l->config->host, what,
                 modbus_strerror(errno));
    l->complained = true;
    if (l->line) {
        modbus_close(l->line);
        modbus_free(l->line);
        atomic_fetch_add(&l->n_lost, 1);
    }
    l->line = NULL;
    atomic_store(&l->up, false);
}

static bool call_up(struct link *l)
{
    const struct config_modbus *c = l->config;
    const char *colon = strrchr(c->host, ':');
    char host[256];
    bool bracket = c->host[0] == '[';
    snprintf(host, sizeof(host), "%.*s", (int)(colon - c->host) - 2 * bracket, c->host + bracket);
    l->line = modbus_new_tcp_pi(host, colon + 1);
    if (l->line && modbus_set_slave(l->line, (int)c->unit) == 0 &&
        modbus_set_response_timeout(l->line, c->timeout_ms / 1000, c->timeout_ms % 1000 * 1000) ==
            0 &&
        modbus_connect(l->line) == 0) {
        if (l->complained)
            log_info("modbus", "%s at %s is connected again", c->name, c->host);
        l->complained = false;
        atomic_store(&l->up, true);
        return true;
    }
    int error = errno;
    if (l->line)
        modbus_free(l->line);
    l->line = NULL;
    errno = error;
    hang_up(l, "cannot connect");
    return false;
}

/* Reads n registers, or coils, of a table; -1: see errno. */
static int read_words(modbus_t *line, uint32_t table, uint32_t address, uint32_t n, uint16_t *out)
{
    uint8_t bits[MAX_SPAN];
    int rc;
    if (table == CONFIG_MODBUS_HOLDING)
        return modbus_read_registers(line, (int)address, (int)n, out);
    if (table == CONFIG_MODBUS_INPUT)
        return modbus_read_input_registers(line, (int)address, (int)n, out);
    rc = table == CONFIG_MODBUS_COIL ? modbus_read_bits(line, (int)address, (int)n, bits)
                                     : modbus_read_input_bits(line, (int)address, (int)n, bits);
    for (uint32_t i = 0; rc >= 0 && i < n; i++)
        out[i] = bits[i];
    return rc;
}

/* ---- reading ---- */

static void tell(struct link *l, const struct link_tag *t, const uint16_t *words)
{
    const struct reading r = {.sensor = t->sensor,
                              .value = words ? modbus_tag_decode(t->tag, words) : (double)NAN,
                              .quality = words ? READING_GOOD : READING_BAD};
    plant_reading(l->plant, &r);
}

/* Reads tags [from, to) in one request. */
static int read_span(struct link *l, uint32_t from, uint32_t to, uint16_t words[MAX_SPAN])
{
    const struct config_modbus_tag *first = l->tags[from].tag, *last = l->tags[to - 1].tag;
    int rc = -1, error;
    pthread_mutex_lock(&l->lock);
    if (l->line) {
        rc = read_words(l->line, first->table, first->address,
                        last->address + config_modbus_width(last) - first->address, words);
        error = errno;
        if (rc < 0 && !is_refusal(error))
            hang_up(l, "no good answer");
        errno = error;
        atomic_fetch_add(&l->n_reads, 1);
    } else {
        errno = ENOTCONN;
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* The tag after the last one that can be read along with `from`. */
static uint32_t end_of_span(const struct link *l, uint32_t from)
{
    const struct config_modbus_tag *first = l->tags[from].tag;
    uint32_t to = from + 1, end = first->address + config_modbus_width(first);
    for (; to < l->n_tags; to++) {
        const struct config_modbus_tag *t = l->tags[to].tag;
        uint32_t stop = t->address + config_modbus_width(t);
        if (t->table != first->table || t->address > end + MAX_GAP ||
            stop - first->address > MAX_SPAN || stop < end)
            break;
        end = stop;
    }
    return to;
}

/* False: the connection is lost. */
static bool read_tags(struct link *l, uint32_t from, uint32_t to)
{
    uint16_t words[MAX_SPAN];
    if (read_span(l, from, to, words) >= 0) {
        for (uint32_t i = from; i < to; i++)
            tell(l, &l->tags[i], words + l->tags[i].tag->address - l->tags[from].tag->address);
        return true;
    }
    if (!is_refusal(errno))
        return false;
    atomic_fetch_add(&l->n_refused, 1);
    bool ok = true;
    if (to - from == 1)
        tell(l, &l->tags[from], NULL);
    for (uint32_t i = from; to - from > 1 && i < to && ok; i++)
        ok = read_tags(l, i, i + 1);
    return ok;
}

static bool read_all(struct link *l)
{
    bool ok = true;
    for (uint32_t i = 0, to; i < l->n_tags && ok; i = to) {
        to = end_of_span(l, i);
        ok = read_tags(l, i, to);
    }
    return ok;
}

static void *run(void *arg)
{
    struct link *l = arg;
    uint64_t next = clock_ns();
    uint32_t pause = MIN_PAUSE;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        bool ok = l->line || call_up(l);
        pthread_mutex_unlock(&l->lock);
        ok = ok && read_all(l);
        uint64_t now = clock_ns();
        if (ok) {
            pause = MIN_PAUSE;
            next += l->config->every_ms * 1000000ull;
            next = next > now ? next : now;
        } else {
            next = now + pause * 1000000ull;
            pause = pause < MAX_PAUSE / 2 ? 2 * pause : MAX_PAUSE;
        }
        struct timespec ts = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        pthread_mutex_lock(&l->lock);
        while (!l->stop && pthread_cond_timedwait(&l->changed, &l->lock, &ts) != ETIMEDOUT)
            ;
    }
    if (l->line) {
        modbus_close(l->line);
        modbus_free(l->line);
        l->line = NULL;
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- writing ---- */

static int write_words(modbus_t *line, const struct config_modbus_tag *t, const uint16_t *words)
{
    if (t->table == CONFIG_MODBUS_COIL)
        return modbus_write_bit(line, (int)t->address, words[0] != 0);
    if (config_modbus_width(t) == 1)
        return modbus_write_register(line, (int)t->address, words[0]);
    return modbus_write_registers(line, (int)t->address, (int)config_modbus_width(t), words);
}

int modbus_site_write(struct modbus_site *s, const char *tag, double value, struct err *e)
{
    uint32_t at;
    const struct config_modbus_tag *t = s ? config_modbus_find(s->config, tag, &at) : NULL;
    uint16_t words[MODBUS_TAG_MAX_WORDS], back[MODBUS_TAG_MAX_WORDS];
    if (!t)
        return err_set(e, SHOAL_ENOTFOUND, "there is no tag %s", tag);
    int rc = modbus_tag_encode(t, value, words, e);
    if (rc < 0)
        return rc;
    struct link *l = &s->links[at];
    pthread_mutex_lock(&l->lock);
    if (!l->line) {
        rc = err_set(e, SHOAL_EBUSY, "%s is not connected", l->config->name);
    } else if (write_words(l->line, t, words) < 0 ||
               read_words(l->line, t->table, t->address, config_modbus_width(t), back) < 0) {
        rc = err_set(e, SHOAL_EIO, "%s: %s", l->config->name, modbus_strerror(errno));
        if (!is_refusal(errno))
            hang_up(l, "no good answer");
    } else if (memcmp(words, back, config_modbus_width(t) * sizeof(words[0])) != 0) {
        rc = err_set(e, SHOAL_EIO, "%s still has %g", l->config->name, modbus_tag_decode(t, back));
    } else {
        atomic_fetch_add(&l->n_writes, 1);
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* ---- life ---- */

static int by_place(const void *a, const void *b)
{
    const struct config_modbus_tag *x = ((const struct link_tag *)a)->tag,
                                   *y = ((const struct link_tag *)b)->tag;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int open_link(struct link *l, const struct config_modbus *c, struct plant *plant,
                     struct err *e)
{
    l->config = c;
    l->plant = plant;
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->changed);
    l->tags = mem_zalloc_n(c->n_tags, sizeof(*l->tags));
    if (!l->tags)
        return err_set(e, SHOAL_ENOMEM, "modbus");
    for (uint32_t i = 0; i < c->n_tags; i++) {
        const struct config_modbus_tag *t = &c->tags[i];
        if (!t->sensor)
            continue;
        uint32_t sensor = plant ? plant_find(plant, t->sensor) : THINGS_NONE;
        if (sensor == THINGS_NONE)
            return err_set(e, SHOAL_EINVAL, "modbus: %s.%s: there is no sensor %s", c->name,
                           t->name, t->sensor);
        l->tags[l->n_tags++] = (struct link_tag){t, sensor};
    }
    qsort(l->tags, l->n_tags, sizeof(*l->tags), by_place);
    return 0;
}

int modbus_site_create(struct modbus_site **out, const struct config_modbuses *c,
                       struct plant *plant, struct err *e)
{
    *out = NULL;
    if (c->n == 0)
        return 0;
    struct modbus_site *s = mem_zalloc(sizeof(*s));
    struct link *links = mem_zalloc_n(c->n, sizeof(*links));
    if (!s || !links) {
        mem_free(s);
        mem_free(links);
        return err_set(e, SHOAL_ENOMEM, "modbus");
    }
    s->config = c;
    s->links = links;
    int rc = 0;
    for (uint32_t i = 0; i < c->n && rc == 0; i++) {
        s->n++;
        rc = open_link(&links[i], &c->v[i], plant, e);
    }
    if (rc < 0) {
        modbus_site_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

int modbus_site_start(struct modbus_site *s, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; s && i < s->n && rc == 0; i++) {
        rc = thread_create(&s->links[i].thread, "modbus", run, &s->links[i], e);
        s->links[i].has_thread = rc == 0;
    }
    return rc;
}

void modbus_site_stop(struct modbus_site *s)
{
    for (uint32_t i = 0; s && i < s->n; i++) {
        struct link *l = &s->links[i];
        if (!l->has_thread)
            continue;
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
        l->has_thread = false;
    }
}

void modbus_site_destroy(struct modbus_site *s)
{
    if (!s)
        return;
    modbus_site_stop(s);
    for (uint32_t i = 0; i < s->n; i++) {
        pthread_mutex_destroy(&s->links[i].lock);
        pthread_cond_destroy(&s->links[i].changed);
        mem_free(s->links[i].tags);
    }
    mem_free(s->links);
    mem_free(s);
}

static void put_metric(const struct modbus_site *s, struct buf *b, const char *name,
                       const char *help, size_t at)
{
    prometheus_help(b, name, "counter", help);
    for (uint32_t i = 0; i < s->n; i++)
        buf_printf(b, "%s{controller=\"%s\"} %" PRIu64 "\n", name, s->links[i].config->name,
                   atomic_load((_Atomic uint64_t *)(void *)((char *)&s->links[i] + at)));
}

void modbus_site_metrics(struct modbus_site *s, struct buf *b)
{
    if (!s)
        return;
    prometheus_help(b, "shoal_modbus_up", "gauge", "Whether a controller is connected.");
    for (uint32_t i = 0; i < s->n; i++)
        buf_printf(b, "shoal_modbus_up{controller=\"%s\"} %d\n", s->links[i].config->name,
                   atomic_load(&s->links[i].up));
    put_metric(s, b, "shoal_modbus_reads_total", "Requests to read tags.",
               offsetof(struct link, n_reads));
    put_metric(s, b, "shoal_modbus_refused_total", "Of them, refused by the controller.",
               offsetof(struct link, n_refused));
    put_metric(s, b, "shoal_modbus_lost_total", "Connections that were lost.",
               offsetof(struct link, n_lost));
    put_metric(s, b, "shoal_modbus_writes_total", "Set points that were written and read back.",
               offsetof(struct link, n_writes));
}
