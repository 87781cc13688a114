/* mqtt_topic.c - see mqtt_topic.h. */
#include "mqtt/mqtt_topic.h"

#include <string.h>

#include "base/utf8.h"

static bool is_text(const char *t)
{
    size_t n = strlen(t);
    if (n == 0 || n > MQTT_TOPIC_MAX_BYTES)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)t[i] < 0x20 || t[i] == 0x7f)
            return false;
    return utf8_valid_prefix(t, n) == n;
}

bool mqtt_topic_is_name(const char *topic)
{
    return is_text(topic) && !strpbrk(topic, "+#");
}

const char *mqtt_topic_unshared(const char *filter)
{
    if (strncmp(filter, "$share/", 7) != 0)
        return filter;
    const char *slash = strchr(filter + 7, '/');
    return slash ? slash + 1 : "";
}

bool mqtt_topic_is_filter(const char *filter)
{
    const char *p = mqtt_topic_unshared(filter);
    if (!is_text(filter) || !p[0])
        return false;
    if (p != filter && (filter[7] == '/' || memchr(filter + 7, '+', (size_t)(p - filter) - 7) ||
                        memchr(filter + 7, '#', (size_t)(p - filter) - 7)))
        return false;
    for (const char *at = p; *at; at++) {
        bool alone = (at == p || at[-1] == '/') && (at[1] == '\0' || at[1] == '/');
        if ((*at == '+' && !alone) || (*at == '#' && (!alone || at[1])))
            return false;
    }
    return true;
}

bool mqtt_topic_matches(const char *filter, const char *topic, struct str *wild, size_t *n_wild)
{
    size_t n = 0;
    if (n_wild)
        *n_wild = 0;
    /* A wildcard in the first level does not cover the broker's own topics. */
    if (topic[0] == '$' && filter[0] != '$')
        return false;
    for (;;) {
        size_t f = strcspn(filter, "/"), t = strcspn(topic, "/");
        if (f == 1 && (*filter == '#' || *filter == '+')) {
            bool rest = *filter == '#';
            if (wild && n < MQTT_TOPIC_MAX_LEVELS)
                wild[n++] = (struct str){topic, rest ? strlen(topic) : t};
            if (n_wild)
                *n_wild = n;
            if (rest)
                return true;
        } else if (f != t || memcmp(filter, topic, t) != 0) {
            return false;
        }
        filter += f;
        topic += t;
        if (!*filter || !*topic) /* "a/#" covers "a" too */
            return !*topic && (!*filter || strcmp(filter, "/#") == 0);
        filter++;
        topic++;
    }
}

bool mqtt_topic_fill(char *out, size_t cap, const char *pattern, const struct str *wild,
                     size_t n_wild)
{
    size_t n = 0;
    for (const char *p = pattern; *p;) {
        size_t k = 1;
        const char *from = p++;
        if (*from == '{' && from[1] >= '1' && from[1] <= '9' && from[2] == '}') {
            size_t i = (size_t)(from[1] - '1');
            if (i >= n_wild)
                return false;
            k = wild[i].n;
            from = wild[i].p;
            p += 2;
        }
        if (k >= cap - n)
            return false;
        memcpy(out + n, from, k);
        n += k;
    }
    out[n] = '\0';
    return true;
}
