/* config_scrub.c - see config_scrub.h. */
#include "config/config_scrub.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_key.h"
#include "privacy/scrub.h"
#include "wire/json_out.h"

#define MAX_PLAIN 128u

static bool is_text(const struct config_key *k)
{
    return k->type == CONFIG_STR || k->type == CONFIG_STRS;
}

/* Names of clients may be names of people. */
static bool is_hidden(const struct config_key *k)
{
    return k->secret || strcmp(k->path, "keys[].name") == 0 ||
           strcmp(k->path, "routes[].callers") == 0;
}

/* One word, and nothing in it that would have to go. */
static bool is_plain(const char *value)
{
    const size_t n = strlen(value);
    return n <= MAX_PLAIN && strcspn(value, " \t\r\n\"'{}<>|=?&@") == n && scrub_is_clean(value, n);
}

/* The path, in which keys of clients have numbers instead of their names: keys[2].rate. */
static void put_path(struct json_out *j, const struct config_settings *all, uint32_t i)
{
    static const char list[] = "keys[";
    const char *path = all->v[i].path, *rest = strrchr(path, ']');
    char told[256];
    uint32_t n = 0;
    if (strncmp(path, list, strlen(list)) != 0 || !rest) {
        json_out_key(j, path);
        return;
    }
    for (uint32_t k = 0; k <= i; k++) /* each begins with its name */
        n += strcmp(all->v[k].key->path, "keys[].name") == 0;
    snprintf(told, sizeof(told), "%s%u%s", list, n, rest);
    json_out_key(j, told);
}

void config_scrub(struct json_out *j, const struct config *c)
{
    char told[48];
    json_out_object(j);
    for (uint32_t i = 0; i < c->set.n; i++) {
        const struct config_setting *s = &c->set.v[i];
        put_path(j, &c->set, i);
        snprintf(told, sizeof(told), "(text of %zu bytes)", strlen(s->value));
        json_out_str(j, is_hidden(s->key)                        ? SCRUB_MARK
                        : is_text(s->key) && !is_plain(s->value) ? told
                                                                 : s->value);
    }
    json_out_object_end(j);
}
