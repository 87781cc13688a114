/* session_store.c - see session_store.h. */
#include "store/session/session_store.h"

#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "base/mem.h"
#include "store/session/session_keys.h"
#include "store/session/session_place.h"

struct session_store {
    struct session_place *place;
    const struct session_keys *keys;
    uint32_t ttl_s;
};

int session_store_open(struct session_store **out, const struct session_store_opts *o,
                       struct err *e)
{
    struct session_store *s = mem_zalloc(sizeof(*s));
    int rc;
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for sessions");
    s->keys = o->keys;
    s->ttl_s = o->ttl_s;
    if (strncmp(o->place, "sqlite:", 7) == 0 && o->place[7])
        rc = session_sqlite_open(&s->place, o->place + 7, e);
    else if (strncmp(o->place, "redis://", 8) == 0)
        rc = session_redis_open(&s->place, o->place + 8, e);
    else
        rc = err_set(e, SHOAL_EINVAL,
                     "'%.100s' is not a session store: use sqlite:PATH or redis://HOST:PORT",
                     o->place);
    if (rc < 0) {
        mem_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void session_store_close(struct session_store *s)
{
    if (!s)
        return;
    s->place->ops->close(s->place);
    mem_free(s);
}

/* Neither tenants nor ids can be read from the place. */
static void key_of(char out[SESSION_PLACE_KEY_BYTES + 1], const char *tenant, const char *id)
{
    uint8_t sum[SHA256_DIGEST_LENGTH];
    char both[256];
    int n = snprintf(both, sizeof(both), "%s%c%s", tenant, 0, id);
    SHA256((const uint8_t *)both, (size_t)(n < (int)sizeof(both) ? n : (int)sizeof(both) - 1), sum);
    for (size_t i = 0; i < sizeof(sum); i++)
        snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

int session_store_load(struct session_store *s, const char *tenant, const char *id, struct buf *out,
                       uint64_t *version, struct err *e)
{
    char key[SESSION_PLACE_KEY_BYTES + 1];
    struct buf sealed;
    key_of(key, tenant, id);
    buf_init(&sealed, SESSION_STORE_MAX_BYTES + 256);
    int rc = s->place->ops->load(s->place, key, &sealed, version, e);
    if (rc == 0 && *version > 0)
        rc = session_keys_unseal(s->keys, tenant, id, buf_str(&sealed), sealed.len, out, e);
    buf_fini(&sealed);
    return rc;
}

int session_store_save(struct session_store *s, const char *tenant, const char *id,
                       const char *text, size_t n, uint64_t *version, struct err *e)
{
    char key[SESSION_PLACE_KEY_BYTES + 1];
    struct buf sealed;
    if (n > SESSION_STORE_MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "the conversation exceeds %zu MiB: start a new one",
                       SESSION_STORE_MAX_BYTES >> 20);
    key_of(key, tenant, id);
    buf_init(&sealed, SESSION_STORE_MAX_BYTES + 256);
    int rc = session_keys_seal(s->keys, tenant, id, text, n, &sealed, e);
    if (rc == 0)
        rc =
            s->place->ops->save(s->place, key, buf_str(&sealed), sealed.len, *version, s->ttl_s, e);
    if (rc == 0)
        ++*version;
    buf_fini(&sealed);
    return rc;
}

int session_store_delete(struct session_store *s, const char *tenant, const char *id, struct err *e)
{
    char key[SESSION_PLACE_KEY_BYTES + 1];
    key_of(key, tenant, id);
    return s->place->ops->remove(s->place, key, e);
}
