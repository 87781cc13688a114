/* otlp_place.c - see otlp_place.h. */
#include "site/traces/otlp_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define MAX_TEXT_BYTES ((size_t)16 << 10)
#define DEFAULT_TIMEOUT_MS 10000u
#define MAX_TIMEOUT_MS 600000l

static const char *set_in(char *(*get)(const char *), const char *name)
{
    const char *v = get(name);
    return v && v[0] ? v : NULL; /* empty means unset, by the specification */
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Appends text with "%41" as the byte it stands for. */
static void put_decoded(struct buf *b, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int high = p[i] == '%' && i + 2 < n ? hex(p[i + 1]) : -1;
        const int low = high >= 0 ? hex(p[i + 2]) : -1;
        if (low >= 0) {
            buf_putc(b, (char)(high << 4 | low));
            i += 2;
        } else {
            buf_putc(b, p[i]);
        }
    }
}

/* Calls fn with every "key=value" of a list with commas; spaces around them do not count. */
static void each_pair(const char *list,
                      void (*fn)(struct otlp_place *, const char *, size_t, const char *, size_t),
                      struct otlp_place *p)
{
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        const char *from = list + strspn(list, " "), *end = list + n;
        while (end > from && end[-1] == ' ')
            end--;
        const char *is = end > from ? memchr(from, '=', (size_t)(end - from)) : NULL;
        if (is && is > from)
            fn(p, from, (size_t)(is - from), is + 1, (size_t)(end - is - 1));
        list += n + (list[n] == ',');
    }
}

static void add_header(struct otlp_place *p, const char *key, size_t n_key, const char *value,
                       size_t n)
{
    const size_t start = p->header.len;
    if (start > 0)
        buf_puts(&p->header, "\r\n");
    buf_put(&p->header, key, n_key);
    buf_puts(&p->header, ": ");
    const size_t at = p->header.len;
    put_decoded(&p->header, value, n);
    if (p->header.rc == 0 && strpbrk(p->header.data + at, "\r\n")) { /* no second header by %0d */
        p->header.len = start;
        p->header.data[start] = '\0';
    }
}

static bool has_pair(const struct otlp_place *p, const char *key)
{
    for (uint32_t i = 0; i < p->n_pairs; i++)
        if (strcmp(p->pairs[i].key, key) == 0)
            return true;
    return false;
}

/* Of two with one key the first stays. */
static void add_pair(struct otlp_place *p, const char *key, size_t n_key, const char *value,
                     size_t n)
{
    struct buf plain;
    buf_init(&plain, MAX_TEXT_BYTES);
    put_decoded(&plain, value, n);
    const char *own = arena_printf(&p->texts, "%.*s", (int)n_key, key);
    if (p->n_pairs < OTLP_PLACE_MAX_PAIRS && !has_pair(p, own))
        p->pairs[p->n_pairs++] =
            (struct otlp_pair){own, arena_printf(&p->texts, "%s", buf_str(&plain))};
    buf_fini(&plain);
}

static void add_texts(struct otlp_place *p, const char *key, const char *value)
{
    add_pair(p, key, strlen(key), value, strlen(value));
}

static int find_server(struct otlp_place *p, const struct config_tracing *c,
                       char *(*get)(const char *), struct err *e)
{
    static const char whole[] = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                      base[] = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const char *name = "tracing.endpoint", *url = c->endpoint;
    char joined[512];
    if (!url && (url = set_in(get, whole)))
        name = whole;
    if (!url && (url = set_in(get, base))) { /* its path is only the beginning */
        size_t n = strlen(name = base), k = strlen(url);
        n = k > 0 && url[k - 1] == '/' ? k - 1 : k;
        if (n + 16 > sizeof(joined))
            return err_set(e, SHOAL_EINVAL, "%s is too long", base);
        snprintf(joined, sizeof(joined), "%.*s/v1/traces", (int)n, url);
        url = joined;
    }
    const char *why = url ? config_tracing_split(url, &p->server, &p->path) : NULL;
    return why ? err_set(e, SHOAL_EINVAL, "%s is '%.100s': %s", name, url, why) : 0;
}

static double find_ratio(const struct config_tracing *c, char *(*get)(const char *))
{
    const char *sampler = set_in(get, "OTEL_TRACES_SAMPLER");
    const char *arg = set_in(get, "OTEL_TRACES_SAMPLER_ARG");
    if (c->endpoint || !sampler)
        return c->sample;
    if (strstr(sampler, "always_off"))
        return 0;
    if (!strstr(sampler, "traceidratio") || !arg)
        return 1;
    const double ratio = strtod(arg, NULL);
    return ratio >= 0 && ratio <= 1 ? ratio : 1;
}

static int fill(struct otlp_place *p, const struct config_tracing *c, const char *node,
                char *(*get)(const char *), struct err *e)
{
    const char *timeout = set_in(get, "OTEL_EXPORTER_OTLP_TIMEOUT");
    const char *service = c->service ? c->service : set_in(get, "OTEL_SERVICE_NAME");
    const char *protocol = set_in(get, "OTEL_EXPORTER_OTLP_PROTOCOL");
    const int rc = find_server(p, c, get, e);
    if (rc < 0)
        return rc;
    if (p->server && !c->endpoint && protocol && strcmp(protocol, "http/protobuf") != 0)
        return err_set(e, SHOAL_EINVAL,
                       "OTEL_EXPORTER_OTLP_PROTOCOL is '%.40s': only http/protobuf is supported",
                       protocol);
    p->ratio = find_ratio(c, get);
    const long given_ms = timeout ? strtol(timeout, NULL, 10) : 0;
    p->timeout_ms =
        given_ms > 0 && given_ms <= MAX_TIMEOUT_MS ? (uint32_t)given_ms : DEFAULT_TIMEOUT_MS;
    if (service)
        add_texts(p, "service.name", service);
    if (node)
        add_texts(p, "service.instance.id", node);
    each_pair(set_in(get, "OTEL_RESOURCE_ATTRIBUTES"), add_pair, p);
    add_texts(p, "service.name", "shoal"); /* unless one of the above has it */
    for (uint32_t i = 0; i < c->headers.n; i++)
        buf_printf(&p->header, "%s%s", p->header.len ? "\r\n" : "", c->headers.v[i]);
    if (c->headers.n == 0)
        each_pair(set_in(get, "OTEL_EXPORTER_OTLP_HEADERS"), add_header, p);
    return p->texts.rc < 0 || p->header.rc < 0 ? err_set(e, SHOAL_ENOMEM, "tracing") : 0;
}

int otlp_place_find(struct otlp_place *out, const struct config_tracing *c, const char *node,
                    char *(*get)(const char *name), struct err *e)
{
    const char *off = set_in(get, "OTEL_SDK_DISABLED");
    *out = (struct otlp_place){.ratio = c->sample};
    buf_init(&out->header, MAX_TEXT_BYTES);
    arena_init(&out->texts, MAX_TEXT_BYTES);
    if (!c->endpoint && off && strcasecmp(off, "true") == 0)
        return 0;
    const int rc = fill(out, c, node, get, e);
    if (rc < 0)
        otlp_place_fini(out);
    return rc;
}

void otlp_place_fini(struct otlp_place *p)
{
    mem_free(p->server);
    mem_free(p->path);
    buf_fini(&p->header);
    arena_fini(&p->texts);
    *p = (struct otlp_place){.n_pairs = 0};
}
