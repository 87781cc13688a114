/* session_redis.c - conversations in Redis, by hiredis, which is opened when it is needed; see
 * session_place.h.
 *
 * A value is the version (8 bytes, big-endian) and the sealed text.  One connection, used under a
 * lock; when it breaks, it is made anew, at most once a second. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/session/session_place.h"

#define TIMEOUT_MS 500
#define RETRY_NS 1000000000u
#define KEY_PREFIX "shoal:session:"
#define VERSION_BYTES 8u

/* Structs differ between its versions: only the one of the header will do. */
#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define LIBRARY "libhiredis.so." TEXT_OF(HIREDIS_SONAME)

struct api {
    redisContext *(*connect)(const char *ip, int port, const struct timeval tv);
    int (*timeout)(redisContext *c, const struct timeval tv);
    void *(*command)(redisContext *c, int argc, const char **argv, const size_t *lens);
    void (*free_reply)(void *reply);
    void (*free)(redisContext *c);
};

struct redis {
    struct session_place place; /* first */
    struct api api;
    pthread_mutex_t lock;
    redisContext *c; /* NULL: not connected */
    uint64_t retry_ns;
    char host[256], why[200];
    int port, db;
};

/* If the stored version is ARGV[1], stores ARGV[2] for ARGV[3] ms. */
static const char script[] = "local v = redis.call('GETRANGE', KEYS[1], 0, 7)\n"
                             "if v == '' then v = string.rep('\\0', 8) end\n"
                             "if v ~= ARGV[1] then return 0 end\n"
                             "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])\n"
                             "return 1";

static int load_api(struct api *a, struct err *e)
{
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "sessions in Redis need %s: install the package libhiredis0.14", LIBRARY);
    *(void **)&a->connect = dlsym(lib, "redisConnectWithTimeout");
    *(void **)&a->timeout = dlsym(lib, "redisSetTimeout");
    *(void **)&a->command = dlsym(lib, "redisCommandArgv");
    *(void **)&a->free_reply = dlsym(lib, "freeReplyObject");
    *(void **)&a->free = dlsym(lib, "redisFree");
    if (!a->connect || !a->timeout || !a->command || !a->free_reply || !a->free)
        return err_set(e, SHOAL_EUNSUPPORTED, "%s lacks functions", LIBRARY);
    return 0;
}

/* ---- the connection; the lock is held ---- */

static void disconnect(struct redis *r, const char *why)
{
    snprintf(r->why, sizeof(r->why), "%s", why);
    if (r->c)
        r->api.free(r->c);
    r->c = NULL;
    r->retry_ns = clock_ns() + RETRY_NS;
}

static int away(struct redis *r, struct err *e)
{
    return err_set(e, SHOAL_EIO, "Redis at %s:%d is unavailable: %s", r->host, r->port, r->why);
}

/* The reply, or NULL: the connection broke.  An error of Redis itself is a reply. */
static redisReply *command(struct redis *r, int n, const char **argv, const size_t *lens)
{
    redisReply *reply = r->c ? r->api.command(r->c, n, argv, lens) : NULL;
    if (!reply)
        disconnect(r, r->c && r->c->errstr[0] ? r->c->errstr : "connection lost");
    return reply;
}

static int check_reply(struct redis *r, redisReply *reply, struct err *e)
{
    if (!reply)
        return away(r, e);
    if (reply->type != REDIS_REPLY_ERROR)
        return 0;
    int rc = err_set(e, SHOAL_EIO, "Redis at %s:%d: %.150s", r->host, r->port, reply->str);
    r->api.free_reply(reply);
    return rc;
}

static int connect_it(struct redis *r, struct err *e)
{
    const struct timeval limit = {TIMEOUT_MS / 1000, TIMEOUT_MS % 1000 * 1000};
    char db[16];
    if (r->c)
        return 0;
    if (clock_ns() < r->retry_ns)
        return away(r, e);
    r->c = r->api.connect(r->host, r->port, limit);
    if (!r->c || r->c->err || r->api.timeout(r->c, limit) != REDIS_OK) {
        disconnect(r, r->c && r->c->errstr[0] ? r->c->errstr : "no connection");
        return away(r, e);
    }
    if (r->db == 0)
        return 0;
    int n = snprintf(db, sizeof(db), "%d", r->db);
    const char *argv[] = {"SELECT", db};
    const size_t lens[] = {6, (size_t)n};
    redisReply *reply = command(r, 2, argv, lens);
    int rc = check_reply(r, reply, e);
    if (rc == 0)
        r->api.free_reply(reply);
    else
        disconnect(r, "SELECT failed");
    return rc;
}

/* Runs one command; reconnects once if the connection broke in the meantime (a restart). */
static int ask(struct redis *r, int n, const char **argv, const size_t *lens, redisReply **reply,
               struct err *e)
{
    bool was_open = r->c != NULL;
    int rc = connect_it(r, e);
    if (rc < 0)
        return rc;
    *reply = command(r, n, argv, lens);
    if (!*reply && was_open) {
        r->retry_ns = 0;
        rc = connect_it(r, e);
        if (rc < 0)
            return rc;
        *reply = command(r, n, argv, lens);
    }
    return check_reply(r, *reply, e);
}

/* ---- the place ---- */

static void put_version(uint8_t out[VERSION_BYTES], uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        out[i] = (uint8_t)v;
}

static int load(struct session_place *p, const char *key, struct buf *out, uint64_t *version,
                struct err *e)
{
    struct redis *r = (struct redis *)(void *)p;
    char name[sizeof(KEY_PREFIX) + SESSION_PLACE_KEY_BYTES];
    redisReply *reply = NULL;
    *version = 0;
    int n = snprintf(name, sizeof(name), KEY_PREFIX "%s", key);
    const char *argv[] = {"GET", name};
    const size_t lens[] = {3, (size_t)n};
    pthread_mutex_lock(&r->lock);
    int rc = ask(r, 2, argv, lens, &reply, e);
    if (rc == 0 && reply->type == REDIS_REPLY_STRING) {
        if ((size_t)reply->len < VERSION_BYTES)
            rc = err_set(e, SHOAL_EFORMAT, "a conversation is stored in another format");
        for (unsigned i = 0; rc == 0 && i < VERSION_BYTES; i++)
            *version = *version << 8 | (uint8_t)reply->str[i];
        if (rc == 0)
            buf_put(out, reply->str + VERSION_BYTES, (size_t)reply->len - VERSION_BYTES);
        if (rc == 0 && out->rc < 0)
            rc = err_set(e, out->rc, "a stored conversation is too long");
    }
    if (reply)
        r->api.free_reply(reply);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static int save(struct session_place *p, const char *key, const void *bytes, size_t n,
                uint64_t version, uint32_t ttl_s, struct err *e)
{
    struct redis *r = (struct redis *)(void *)p;
    char name[sizeof(KEY_PREFIX) + SESSION_PLACE_KEY_BYTES], ttl[24];
    uint8_t old[VERSION_BYTES], *value = mem_alloc(VERSION_BYTES + n);
    redisReply *reply = NULL;
    if (!value)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a conversation");
    put_version(old, version);
    put_version(value, version + 1);
    memcpy(value + VERSION_BYTES, bytes, n);
    int name_n = snprintf(name, sizeof(name), KEY_PREFIX "%s", key);
    int ttl_n = snprintf(ttl, sizeof(ttl), "%llu", (unsigned long long)ttl_s * 1000);
    const char *argv[] = {"EVAL", script, "1", name, (char *)old, (char *)value, ttl};
    const size_t lens[] = {
        4, sizeof(script) - 1, 1, (size_t)name_n, VERSION_BYTES, VERSION_BYTES + n, (size_t)ttl_n};
    pthread_mutex_lock(&r->lock);
    int rc = ask(r, 7, argv, lens, &reply, e);
    if (rc == 0 && reply->type == REDIS_REPLY_INTEGER && reply->integer == 0)
        rc = err_set(e, SHOAL_EBUSY, "the conversation was continued elsewhere");
    if (reply)
        r->api.free_reply(reply);
    pthread_mutex_unlock(&r->lock);
    mem_free(value);
    return rc;
}

static int remove_key(struct session_place *p, const char *key, struct err *e)
{
    struct redis *r = (struct redis *)(void *)p;
    char name[sizeof(KEY_PREFIX) + SESSION_PLACE_KEY_BYTES];
    redisReply *reply = NULL;
    int n = snprintf(name, sizeof(name), KEY_PREFIX "%s", key);
    const char *argv[] = {"DEL", name};
    const size_t lens[] = {3, (size_t)n};
    pthread_mutex_lock(&r->lock);
    int rc = ask(r, 2, argv, lens, &reply, e);
    if (rc == 0 && reply->integer == 0)
        rc = err_set(e, SHOAL_ENOTFOUND, "there is no such conversation");
    if (reply)
        r->api.free_reply(reply);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static void close_place(struct session_place *p)
{
    struct redis *r = (struct redis *)(void *)p;
    if (r->c)
        r->api.free(r->c);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}

static bool read_address(struct redis *r, const char *address)
{
    const char *colon = strrchr(address, ':');
    char *end;
    size_t n = colon ? (size_t)(colon - address) : 0;
    if (n == 0 || n >= sizeof(r->host))
        return false;
    memcpy(r->host, address, n);
    r->host[n] = '\0';
    long port = strtol(colon + 1, &end, 10), db = 0;
    bool ok = end > colon + 1 && port > 0 && port < 65536;
    if (ok && *end == '/' && end[1]) {
        char *from = end + 1;
        db = strtol(from, &end, 10);
        ok = end > from && db >= 0 && db < 1000000;
    } else if (ok && *end == '/') {
        end++;
    }
    r->port = (int)port;
    r->db = (int)db;
    return ok && *end == '\0';
}

int session_redis_open(struct session_place **out, const char *address, struct err *e)
{
    static const struct session_place_ops ops = {load, save, remove_key, close_place};
    struct redis *r = mem_zalloc(sizeof(*r));
    *out = NULL;
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "out of memory for sessions");
    r->place.ops = &ops;
    snprintf(r->why, sizeof(r->why), "not connected yet");
    int rc = read_address(r, address) ? load_api(&r->api, e)
                                      : err_set(e, SHOAL_EINVAL,
                                                "'redis://%.100s' is not redis://HOST:PORT or "
                                                "redis://HOST:PORT/DB",
                                                address);
    if (rc < 0) {
        mem_free(r);
        return rc;
    }
    pthread_mutex_init(&r->lock, NULL);
    *out = &r->place;
    return 0;
}
