/* deferred_store.c - see deferred_store.h. */
#include "store/deferred_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file/file_lock.h"
#include "base/mem.h"
#include "store/db.h"

#define ROW_BYTES 512       /* counted for a row, besides its texts */
#define PURGE_MS 60000      /* maximum interval between two purges */
#define ID_RANDOM_BYTES 16u /* not to be guessed */

static const struct db_schema schema = {
    0x53686f44, /* "ShoD" */
    1,
    "CREATE TABLE deferred(id TEXT PRIMARY KEY, client TEXT NOT NULL, key BLOB,"
    " digest BLOB NOT NULL, state INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " created INTEGER NOT NULL, expires INTEGER NOT NULL, due INTEGER NOT NULL,"
    " forget INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, why TEXT NOT NULL DEFAULT '',"
    " status INTEGER NOT NULL DEFAULT 0, type TEXT NOT NULL DEFAULT '',"
    " path TEXT NOT NULL, query TEXT NOT NULL, headers BLOB, body BLOB, answer BLOB);"
    "CREATE UNIQUE INDEX deferred_key ON deferred(client, key) WHERE key IS NOT NULL;"
    "CREATE INDEX deferred_due ON deferred(state, due);"
    "CREATE INDEX deferred_size ON deferred(client, state, bytes);"};

struct deferred_store {
    struct db db;
    int lock_fd;
    struct deferred_store_opts opts;
};

int deferred_store_open(struct deferred_store **out, const char *path,
                        const struct deferred_store_opts *o, struct err *e)
{
    struct deferred_store *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for deferred requests");
    s->opts = *o;
    s->lock_fd = -1;
    /* One process at a time: what another one has taken must not be run twice. */
    int rc = file_lock(&s->lock_fd, path, e);
    if (rc == 0)
        rc = db_open(&s->db, path, &schema, true, e);
    if (rc == 0) /* taken by a process that died */
        rc = db_exec(&s->db, "UPDATE deferred SET state = 0 WHERE state = 1", e);
    if (rc < 0) {
        deferred_store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void deferred_store_close(struct deferred_store *s)
{
    if (!s)
        return;
    db_close(&s->db);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    mem_free(s);
}

static int make_id(char id[DEFERRED_STORE_ID_BYTES], struct err *e)
{
    unsigned char random[ID_RANDOM_BYTES];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set(e, SHOAL_EIO, "cannot get random bytes: %s", strerror(errno));
    memcpy(id, "def_", 5);
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(id + 4 + 2 * i, 3, "%02x", random[i]);
    return 0;
}

/* ---- statements; the lock is held ---- */

static void bind_text(sqlite3_stmt *st, int at, const char *text)
{
    sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
}

static void bind_bytes(sqlite3_stmt *st, int at, const void *p, size_t n)
{
    sqlite3_bind_blob64(st, at, n > 0 ? p : "", n, SQLITE_STATIC);
}

static void copy_text(char *out, size_t cap, sqlite3_stmt *st, int column)
{
    const unsigned char *text = sqlite3_column_text(st, column);
    snprintf(out, cap, "%s", text ? (const char *)text : "");
}

/* Expires requests without an answer; then removes everything obsolete. */
static int purge(struct deferred_store *s, int64_t now_ms, struct err *e)
{
    struct db *d = &s->db;
    sqlite3_stmt *st =
        db_prepare(d,
                   "UPDATE deferred SET state = 3, headers = NULL, body = NULL, bytes = ?3,"
                   " forget = ?1 + ?2 WHERE state = 0 AND expires <= ?1",
                   e);
    if (st) {
        sqlite3_bind_int64(st, 1, now_ms);
        sqlite3_bind_int64(st, 2, s->opts.keep_ms);
        sqlite3_bind_int64(st, 3, ROW_BYTES);
    }
    int rc = db_run(d, st, e);
    if (rc < 0)
        return rc;
    st = db_prepare(d, "DELETE FROM deferred WHERE state >= 2 AND forget <= ?1", e);
    if (st)
        sqlite3_bind_int64(st, 1, now_ms);
    return db_run(d, st, e);
}

/* A repeated key: 1 if it is the same request. */
static int find_key(struct db *d, const char *client, const uint8_t *key, const uint8_t *digest,
                    char id[DEFERRED_STORE_ID_BYTES], struct err *e)
{
    sqlite3_stmt *st =
        db_prepare(d, "SELECT id, digest FROM deferred WHERE client = ?1 AND key = ?2", e);
    if (!st)
        return db_run(d, st, e);
    bind_text(st, 1, client);
    bind_bytes(st, 2, key, DEFERRED_STORE_DIGEST_BYTES);
    int rc = db_step(d, st, e);
    if (rc == 1) {
        copy_text(id, DEFERRED_STORE_ID_BYTES, st, 0);
        const void *was = sqlite3_column_blob(st, 1);
        if (!was || sqlite3_column_bytes(st, 1) != (int)DEFERRED_STORE_DIGEST_BYTES ||
            memcmp(was, digest, DEFERRED_STORE_DIGEST_BYTES) != 0)
            rc = err_set(e, SHOAL_EINVAL, "another request was deferred with this idempotency key");
    }
    sqlite3_finalize(st);
    return rc;
}

static int sum(struct db *d, const char *sql, const char *client, int64_t *n, int64_t *bytes,
               struct err *e)
{
    sqlite3_stmt *st = db_prepare(d, sql, e);
    *n = *bytes = 0;
    if (!st)
        return db_run(d, st, e);
    if (client)
        bind_text(st, 1, client);
    int rc = db_step(d, st, e);
    if (rc == 1) {
        *n = sqlite3_column_int64(st, 0);
        *bytes = sqlite3_column_int64(st, 1);
    }
    sqlite3_finalize(st);
    return rc < 0 ? rc : 0;
}

/* Whether one more request of this many bytes has room. */
static int check_room(struct deferred_store *s, const char *client, uint64_t bytes, struct err *e)
{
    int64_t n, all, mine, unused;
    int rc =
        sum(&s->db, "SELECT count(*), coalesce(sum(bytes), 0) FROM deferred", NULL, &n, &all, e);
    if (rc == 0)
        rc = sum(&s->db, "SELECT count(*), 0 FROM deferred WHERE client = ?1", client, &mine,
                 &unused, e);
    if (rc < 0)
        return rc;
    uint32_t share = (s->opts.max_requests + 3) / 4;
    if (n >= (int64_t)s->opts.max_requests)
        return err_set(e, SHOAL_ELIMIT, "%u requests are deferred already: try again later",
                       s->opts.max_requests);
    if (client[0] && mine >= (int64_t)share)
        return err_set(e, SHOAL_ELIMIT,
                       "this client has %u deferred requests already: delete those whose answers "
                       "are read, or try again later",
                       share);
    if ((uint64_t)all + bytes > s->opts.max_bytes)
        return err_set(e, SHOAL_ELIMIT,
                       "the space for deferred requests and answers is used up (deferred.bytes): "
                       "try again later");
    return 0;
}

static int insert(struct deferred_store *s, const struct deferred_item *r, const uint8_t *digest,
                  const uint8_t *key, int64_t now_ms, int64_t expires_ms, const char *id,
                  struct err *e)
{
    sqlite3_stmt *st = db_prepare(
        &s->db,
        "INSERT INTO deferred(id, client, key, digest, state, bytes, created, expires, due,"
        " forget, path, query, headers, body)"
        " VALUES(?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?6, 0, ?8, ?9, ?10, ?11)",
        e);
    if (st) {
        bind_text(st, 1, id);
        bind_text(st, 2, r->client);
        if (key)
            bind_bytes(st, 3, key, DEFERRED_STORE_DIGEST_BYTES);
        bind_bytes(st, 4, digest, DEFERRED_STORE_DIGEST_BYTES);
        sqlite3_bind_int64(st, 5, (int64_t)(r->n_body + r->n_headers) + ROW_BYTES);
        sqlite3_bind_int64(st, 6, now_ms);
        sqlite3_bind_int64(st, 7, expires_ms);
        bind_text(st, 8, r->path);
        bind_text(st, 9, r->query);
        bind_bytes(st, 10, r->headers, r->n_headers);
        bind_bytes(st, 11, r->body, r->n_body);
    }
    return db_run(&s->db, st, e);
}

int deferred_store_put(struct deferred_store *s, const struct deferred_item *r,
                       const uint8_t digest[DEFERRED_STORE_DIGEST_BYTES], const uint8_t *key,
                       int64_t now_ms, int64_t expires_ms, char id[DEFERRED_STORE_ID_BYTES],
                       struct err *e)
{
    struct db *d = &s->db;
    bool again = false;
    db_lock(d);
    int rc = db_begin(d, e);
    if (rc == 0) {
        rc = purge(s, now_ms, e);
        if (rc == 0 && key)
            rc = find_key(d, r->client, key, digest, id, e);
        again = rc == 1;
        if (rc == 0)
            rc = check_room(s, r->client, r->n_body + r->n_headers + ROW_BYTES, e);
        if (rc == 0)
            rc = make_id(id, e);
        if (rc == 0)
            rc = insert(s, r, digest, key, now_ms, expires_ms, id, e);
        rc = db_end(d, rc < 0 ? rc : 0, e);
    }
    db_unlock(d);
    return rc < 0 ? rc : again;
}

/* ---- running ---- */

static const char *keep_text(struct arena *a, sqlite3_stmt *st, int column, size_t *n)
{
    const void *p = sqlite3_column_blob(st, column);
    size_t bytes = p ? (size_t)sqlite3_column_bytes(st, column) : 0;
    char *copy = arena_bytes(a, bytes + 1);
    if (!copy)
        return NULL;
    if (bytes > 0)
        memcpy(copy, p, bytes);
    copy[bytes] = '\0';
    if (n)
        *n = bytes;
    return copy;
}

static int read_item(sqlite3_stmt *st, struct deferred_item *out, struct arena *a, struct err *e)
{
    *out = (struct deferred_item){.n_tries = (uint32_t)sqlite3_column_int64(st, 6)};
    copy_text(out->id, sizeof(out->id), st, 0);
    out->client = keep_text(a, st, 1, NULL);
    out->path = keep_text(a, st, 2, NULL);
    out->query = keep_text(a, st, 3, NULL);
    out->headers = keep_text(a, st, 4, &out->n_headers);
    out->body = keep_text(a, st, 5, &out->n_body);
    return out->client && out->path && out->query && out->headers && out->body
               ? 0
               : err_set(e, SHOAL_ENOMEM, "out of memory for a deferred request");
}

static int take_due(struct db *d, int64_t now_ms, struct deferred_item *out, struct arena *a,
                    struct err *e)
{
    sqlite3_stmt *st = db_prepare(d,
                                  "SELECT id, client, path, query, headers, body, tries FROM "
                                  "deferred WHERE state = 0 AND due <= ?1 ORDER BY due LIMIT 1",
                                  e);
    if (!st)
        return db_run(d, st, e);
    sqlite3_bind_int64(st, 1, now_ms);
    int found = db_step(d, st, e), rc = found;
    if (found == 1)
        rc = read_item(st, out, a, e);
    sqlite3_finalize(st);
    if (found != 1 || rc < 0)
        return rc;
    st = db_prepare(d, "UPDATE deferred SET state = 1, tries = tries + 1 WHERE id = ?1", e);
    if (st)
        bind_text(st, 1, out->id);
    rc = db_run(d, st, e);
    return rc < 0 ? rc : 1;
}

int deferred_store_take(struct deferred_store *s, int64_t now_ms, struct deferred_item *out,
                        struct arena *a, int64_t *next_ms, struct err *e)
{
    struct db *d = &s->db;
    int64_t due = now_ms + PURGE_MS;
    db_lock(d);
    int rc = db_begin(d, e), found = 0;
    if (rc == 0) {
        rc = purge(s, now_ms, e);
        if (rc == 0)
            rc = found = take_due(d, now_ms, out, a, e);
        if (rc == 0)
            rc = db_number(d, "SELECT min(due) FROM deferred WHERE state = 0", due, &due, e);
        rc = db_end(d, rc < 0 ? rc : 0, e);
    }
    db_unlock(d);
    *next_ms = due < now_ms + PURGE_MS ? due : now_ms + PURGE_MS;
    return rc < 0 ? rc : found;
}

int deferred_store_put_back(struct deferred_store *s, const char *id, int64_t due_ms,
                            const char *why, struct err *e)
{
    struct db *d = &s->db;
    db_lock(d);
    sqlite3_stmt *st = db_prepare(
        d, "UPDATE deferred SET state = 0, due = ?2, why = ?3 WHERE id = ?1 AND state = 1", e);
    if (st) {
        bind_text(st, 1, id);
        sqlite3_bind_int64(st, 2, due_ms);
        bind_text(st, 3, why);
    }
    int rc = db_run(d, st, e);
    db_unlock(d);
    return rc;
}

/* The oldest answers of the client whose answers take most go until n more bytes have room. */
static int make_room(struct deferred_store *s, uint64_t n, struct err *e)
{
    for (;;) {
        int64_t rows, bytes;
        int rc = sum(&s->db, "SELECT count(*), coalesce(sum(bytes), 0) FROM deferred", NULL, &rows,
                     &bytes, e);
        if (rc < 0 || (uint64_t)bytes + n <= s->opts.max_bytes)
            return rc;
        rc = db_run(&s->db,
                    db_prepare(&s->db,
                               "DELETE FROM deferred WHERE id = (SELECT id FROM deferred WHERE "
                               "state >= 2 AND client = (SELECT client FROM deferred WHERE state "
                               ">= 2 GROUP BY client ORDER BY sum(bytes) DESC LIMIT 1) "
                               "ORDER BY forget LIMIT 1)",
                               e),
                    e);
        if (rc < 0)
            return rc;
        if (sqlite3_changes(s->db.handle) == 0)
            return err_set(e, SHOAL_ELIMIT, "there is no space for the answer (deferred.bytes)");
    }
}

static int set_answer(struct deferred_store *s, const char *id, int64_t now_ms, int status,
                      const char *type, const void *answer, size_t n, struct err *e)
{
    sqlite3_stmt *st =
        db_prepare(&s->db,
                   "UPDATE deferred SET state = 2, status = ?2, type = ?3, answer = ?4, bytes = ?5,"
                   " forget = ?6, why = '', headers = NULL, body = NULL WHERE id = ?1"
                   " AND state = 1",
                   e);
    if (st) {
        bind_text(st, 1, id);
        sqlite3_bind_int(st, 2, status);
        bind_text(st, 3, type);
        bind_bytes(st, 4, answer, n);
        sqlite3_bind_int64(st, 5, (int64_t)n + ROW_BYTES);
        sqlite3_bind_int64(st, 6, now_ms + s->opts.keep_ms);
    }
    return db_run(&s->db, st, e);
}

int deferred_store_finish(struct deferred_store *s, const char *id, int64_t now_ms, int status,
                          const char *type, const void *answer, size_t n, struct err *e)
{
    struct db *d = &s->db;
    db_lock(d);
    int rc = db_begin(d, e);
    if (rc == 0) {
        rc = make_room(s, n, e);
        if (rc == 0)
            rc = set_answer(s, id, now_ms, status, type, answer, n, e);
        rc = db_end(d, rc, e);
    }
    db_unlock(d);
    return rc;
}

/* ---- for clients ---- */

static int read_view(sqlite3_stmt *st, struct deferred_view *v, struct buf *out, struct err *e)
{
    *v = (struct deferred_view){.state = (enum deferred_state)sqlite3_column_int(st, 0),
                                .created_ms = sqlite3_column_int64(st, 1),
                                .expires_ms = sqlite3_column_int64(st, 2),
                                .n_tries = (uint32_t)sqlite3_column_int64(st, 3),
                                .status = sqlite3_column_int(st, 5)};
    copy_text(v->why, sizeof(v->why), st, 4);
    copy_text(v->type, sizeof(v->type), st, 6);
    if (v->state == DEFERRED_DONE) {
        const void *p = sqlite3_column_blob(st, 7);
        if (p)
            buf_put(out, p, (size_t)sqlite3_column_bytes(st, 7));
    }
    return out->rc < 0 ? err_set(e, out->rc, "the answer does not fit into memory") : 0;
}

int deferred_store_show(struct deferred_store *s, const char *client, const char *id,
                        struct deferred_view *v, struct buf *out, struct err *e)
{
    struct db *d = &s->db;
    db_lock(d);
    sqlite3_stmt *st =
        db_prepare(d,
                   "SELECT state, created, expires, tries, why, status, type, answer FROM deferred "
                   "WHERE id = ?1 AND client = ?2",
                   e);
    int rc = st ? 0 : db_run(d, st, e);
    if (st) {
        bind_text(st, 1, id);
        bind_text(st, 2, client);
        rc = db_step(d, st, e);
        if (rc == 1)
            rc = read_view(st, v, out, e);
        else if (rc == 0)
            rc = err_set(e, SHOAL_ENOTFOUND, "there is no deferred request '%s'", id);
    }
    sqlite3_finalize(st);
    db_unlock(d);
    return rc;
}

int deferred_store_drop(struct deferred_store *s, const char *client, const char *id, struct err *e)
{
    struct db *d = &s->db;
    db_lock(d);
    sqlite3_stmt *st = db_prepare(d, "DELETE FROM deferred WHERE id = ?1 AND client = ?2", e);
    if (st) {
        bind_text(st, 1, id);
        bind_text(st, 2, client);
    }
    int rc = db_run(d, st, e);
    if (rc == 0 && sqlite3_changes(d->handle) == 0)
        rc = err_set(e, SHOAL_ENOTFOUND, "there is no deferred request '%s'", id);
    db_unlock(d);
    return rc;
}
