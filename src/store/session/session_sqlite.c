/* session_sqlite.c - conversations in a SQLite file; see session_place.h. */
#include <time.h>

#include "base/mem.h"
#include "store/db.h"
#include "store/session/session_place.h"

#define PURGE_EVERY 64u /* saves */

static const struct db_schema schema = {
    0x53686f53, /* "ShoS" */
    1,
    "CREATE TABLE sessions(key TEXT PRIMARY KEY, version INTEGER NOT NULL,"
    " expires INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX sessions_expires ON sessions(expires);"};

struct lite {
    struct session_place place; /* first */
    struct db db;
    uint32_t n_saves; /* under the lock of db */
};

static int64_t now(void)
{
    return (int64_t)time(NULL);
}

static int load(struct session_place *p, const char *key, struct buf *out, uint64_t *version,
                struct err *e)
{
    struct db *d = &((struct lite *)(void *)p)->db;
    *version = 0;
    db_lock(d);
    sqlite3_stmt *s =
        db_prepare(d, "SELECT version, data FROM sessions WHERE key = ?1 AND expires > ?2", e);
    int rc = s ? 0 : db_run(d, s, e);
    if (s) {
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, now());
        rc = db_step(d, s, e);
    }
    if (rc == 1) {
        *version = (uint64_t)sqlite3_column_int64(s, 0);
        buf_put(out, sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1));
        rc = out->rc < 0 ? err_set(e, out->rc, "a stored conversation is too long") : 0;
    }
    sqlite3_finalize(s);
    db_unlock(d);
    return rc;
}

static int purge(struct lite *x, struct err *e)
{
    if (x->n_saves++ % PURGE_EVERY)
        return 0;
    sqlite3_stmt *s = db_prepare(&x->db, "DELETE FROM sessions WHERE expires <= ?1", e);
    if (s)
        sqlite3_bind_int64(s, 1, now());
    return db_run(&x->db, s, e);
}

static int put(struct db *d, const char *key, const void *bytes, size_t n, uint64_t version,
               uint32_t ttl_s, struct err *e)
{
    /* an expired conversation counts as missing */
    sqlite3_stmt *s = db_prepare(
        d,
        "INSERT INTO sessions(key, version, expires, data) SELECT ?1, ?2 + 1, ?3, ?4 WHERE ?2 = "
        "coalesce((SELECT version FROM sessions WHERE key = ?1 AND expires > ?5), 0)"
        " ON CONFLICT(key) DO UPDATE SET version = excluded.version, expires = excluded.expires,"
        " data = excluded.data",
        e);
    if (s) {
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, (int64_t)version);
        sqlite3_bind_int64(s, 3, now() + (int64_t)ttl_s);
        sqlite3_bind_blob(s, 4, bytes, (int)n, SQLITE_STATIC);
        sqlite3_bind_int64(s, 5, now());
    }
    int rc = db_run(d, s, e);
    if (rc == 0 && sqlite3_changes(d->handle) == 0)
        rc = err_set(e, SHOAL_EBUSY, "the conversation was continued elsewhere");
    return rc;
}

static int save(struct session_place *p, const char *key, const void *bytes, size_t n,
                uint64_t version, uint32_t ttl_s, struct err *e)
{
    struct lite *x = (struct lite *)(void *)p;
    db_lock(&x->db);
    int rc = db_begin(&x->db, e);
    if (rc == 0) {
        rc = purge(x, e);
        if (rc == 0)
            rc = put(&x->db, key, bytes, n, version, ttl_s, e);
        rc = db_end(&x->db, rc, e);
    } else if (rc == SHOAL_EBUSY) {
        rc = err_set(e, SHOAL_EIO, "the file of conversations is locked");
    }
    db_unlock(&x->db);
    return rc;
}

static int remove_key(struct session_place *p, const char *key, struct err *e)
{
    struct db *d = &((struct lite *)(void *)p)->db;
    db_lock(d);
    sqlite3_stmt *s = db_prepare(d, "DELETE FROM sessions WHERE key = ?1", e);
    if (s)
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    int rc = db_run(d, s, e);
    if (rc == 0 && sqlite3_changes(d->handle) == 0)
        rc = err_set(e, SHOAL_ENOTFOUND, "there is no such conversation");
    db_unlock(d);
    return rc;
}

static void close_place(struct session_place *p)
{
    struct lite *x = (struct lite *)(void *)p;
    db_close(&x->db);
    mem_free(x);
}

int session_sqlite_open(struct session_place **out, const char *path, struct err *e)
{
    static const struct session_place_ops ops = {load, save, remove_key, close_place};
    struct lite *x = mem_zalloc(sizeof(*x));
    *out = NULL;
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "out of memory for sessions");
    x->place.ops = &ops;
    int rc = db_open(&x->db, path, &schema, true, e);
    if (rc < 0) {
        mem_free(x);
        return rc;
    }
    *out = &x->place;
    return 0;
}
