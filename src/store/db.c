/* db.c - see db.h. */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define BUSY_MS 5000

static int fail(struct db *d, int code, struct err *e)
{
    int kind = code & 0xff;
    int mine = kind == SQLITE_NOMEM                              ? SHOAL_ENOMEM
               : kind == SQLITE_BUSY || kind == SQLITE_LOCKED    ? SHOAL_EBUSY
               : kind == SQLITE_NOTADB || kind == SQLITE_CORRUPT ? SHOAL_EFORMAT
                                                                 : SHOAL_EIO;
    return err_set(e, mine, "%s: %s", d->path,
                   d->handle ? sqlite3_errmsg(d->handle) : sqlite3_errstr(code));
}

static int check_kind(struct db *d, const struct db_schema *schema, struct err *e)
{
    int64_t kind, version, tables;
    int rc = db_number(d, "PRAGMA application_id", 0, &kind, e);
    if (rc == 0)
        rc = db_number(d, "PRAGMA user_version", 0, &version, e);
    if (rc == 0)
        rc = db_number(d, "SELECT count(*) FROM sqlite_master", 0, &tables, e);
    if (rc < 0)
        return rc;
    if (kind == 0 && tables == 0)
        return 1;
    if (kind != (int64_t)schema->kind)
        return err_set(e, SHOAL_EFORMAT, "%s is another program's database", d->path);
    if (version != (int64_t)schema->version)
        return err_set(e, SHOAL_EFORMAT,
                       "%s has version %lld of its format, and this program reads version %u: use "
                       "the program that made it, or remove the file",
                       d->path, (long long)version, schema->version);
    return 0;
}

static int make_new(struct db *d, const struct db_schema *schema, struct err *e)
{
    char mark[96];
    snprintf(mark, sizeof(mark), "PRAGMA application_id=%u; PRAGMA user_version=%u", schema->kind,
             schema->version);
    int rc = db_begin(d, e);
    if (rc < 0)
        return rc;
    int new = check_kind(d, schema, e); /* another process may have been faster */
    rc = new < 0 ? new : 0;
    if (new == 1) {
        rc = db_exec(d, schema->sql, e);
        if (rc == 0)
            rc = db_exec(d, mark, e);
    }
    return db_end(d, rc, e);
}

int db_open(struct db *d, const char *path, const struct db_schema *schema, bool create,
            struct err *e)
{
    *d = (struct db){.path = mem_strdup(path)};
    if (!d->path)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %s", path);
    if (create) { /* with our mode; SQLite would use the umask */
        int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0) {
            int rc = err_set(e, SHOAL_EIO, "cannot create %s: %s", path, strerror(errno));
            db_close(d);
            return rc;
        }
        close(fd);
    }
    int code = sqlite3_open_v2(path, &d->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    int rc = code == SQLITE_OK ? 0 : fail(d, code, e);
    if (rc == 0) {
        pthread_mutex_init(&d->lock, NULL);
        d->has_lock = true;
        sqlite3_busy_timeout(d->handle, BUSY_MS);
        sqlite3_extended_result_codes(d->handle, 1);
        rc = db_exec(d,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; "
                     "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON",
                     e);
    }
    int new = rc == 0 ? check_kind(d, schema, e) : 0;
    if (rc == 0 && new < 0)
        rc = new;
    if (rc == 0 && new == 1)
        rc = make_new(d, schema, e);
    if (rc < 0)
        db_close(d);
    return rc;
}

void db_close(struct db *d)
{
    sqlite3_close_v2(d->handle);
    if (d->has_lock)
        pthread_mutex_destroy(&d->lock);
    mem_free(d->path);
    *d = (struct db){.handle = NULL};
}

void db_lock(struct db *d)
{
    pthread_mutex_lock(&d->lock);
}

void db_unlock(struct db *d)
{
    pthread_mutex_unlock(&d->lock);
}

int db_exec(struct db *d, const char *sql, struct err *e)
{
    int code = sqlite3_exec(d->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : fail(d, code, e);
}

sqlite3_stmt *db_prepare(struct db *d, const char *sql, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(d->handle, sql, -1, &s, NULL);
    if (code != SQLITE_OK)
        fail(d, code, e);
    return s;
}

int db_step(struct db *d, sqlite3_stmt *s, struct err *e)
{
    int code = sqlite3_step(s);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : fail(d, code, e);
}

int db_run(struct db *d, sqlite3_stmt *s, struct err *e)
{
    if (!s)
        return e && e->code < 0 ? e->code : SHOAL_EIO;
    int rc;
    do
        rc = db_step(d, s, e);
    while (rc == 1);
    sqlite3_finalize(s);
    return rc;
}

int db_number(struct db *d, const char *sql, int64_t missing, int64_t *out, struct err *e)
{
    *out = missing;
    sqlite3_stmt *s = db_prepare(d, sql, e);
    if (!s)
        return db_run(d, s, e);
    int rc = db_step(d, s, e);
    if (rc == 1 && sqlite3_column_type(s, 0) != SQLITE_NULL)
        *out = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int db_begin(struct db *d, struct err *e)
{
    return db_exec(d, "BEGIN IMMEDIATE", e);
}

int db_end(struct db *d, int rc, struct err *e)
{
    struct err lost = {0};
    if (rc == 0) {
        rc = db_exec(d, "COMMIT", e);
        if (rc == 0)
            return 0;
    }
    if (db_exec(d, "ROLLBACK", &lost) < 0 && !sqlite3_get_autocommit(d->handle))
        return err_set(e, SHOAL_EIO, "%s", lost.msg);
    return rc;
}
