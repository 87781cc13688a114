/* collection.c - see collection.h. */
#include "store/collection.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/chunk.h"
#include "store/collection_rank.h"
#include "store/db.h"
#include "store/vectors.h"

#define DEPTH 100u /* depth of each of the two rankings */
#define LOAD_ROWS 1024u

static const struct db_schema schema = {
    0x53686f43, /* "ShoC" */
    1,
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE docs(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " title TEXT NOT NULL, hash INTEGER NOT NULL, bytes INTEGER NOT NULL, added INTEGER NOT NULL);"
    "CREATE TABLE chunks(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " doc INTEGER NOT NULL REFERENCES docs(id) ON DELETE CASCADE,"
    " heading TEXT NOT NULL, ref TEXT NOT NULL, page INTEGER NOT NULL, tokens INTEGER NOT NULL,"
    " text TEXT NOT NULL, vector BLOB NOT NULL);"
    "CREATE INDEX chunks_doc ON chunks(doc);"
    "CREATE VIRTUAL TABLE words USING fts5(heading, text, content='chunks', content_rowid='id',"
    " tokenize='porter unicode61');"
    "INSERT INTO meta VALUES('changes', 0);"};

struct collection {
    char path[PATH_MAX], graph[PATH_MAX]; /* graph: "": not kept */
    struct db write, read;
    pthread_mutex_t lock; /* guards the rest; taken before the lock of a database */
    struct vectors *vectors;
    uint32_t exact_passages;
    uint32_t n_dims;
    char version[64]; /* of the model that made the vectors; "": not known */
    int64_t changes;  /* number of changes that the vectors include; -1: load them again */
    int64_t last_id;
};

bool collection_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return n > 0 && name[n] == '\0' && n <= COLLECTION_MAX_NAME && name[0] != '-' && name[0] != '_';
}

/* ---- settings ---- */

static int set_meta(struct db *d, const char *key, const char *text, int64_t number, struct err *e)
{
    sqlite3_stmt *s = db_prepare(d, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)", e);
    if (s) {
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
        if (text)
            sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(s, 2, number);
    }
    return db_run(d, s, e);
}

static int get_meta(struct db *d, const char *key, char *text, size_t cap, int64_t *number,
                    struct err *e)
{
    sqlite3_stmt *s = db_prepare(d, "SELECT value FROM meta WHERE key = ?1", e);
    if (!s)
        return db_run(d, s, e);
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    int rc = db_step(d, s, e);
    if (rc == 1 && text) {
        const char *v = (const char *)sqlite3_column_text(s, 0);
        snprintf(text, cap, "%s", v ? v : "");
    }
    if (rc == 1 && number)
        *number = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

int collection_make(const char *path, const struct collection_settings *s, struct err *e)
{
    struct db d;
    struct collection_info old = {.model = ""};
    int rc = db_open(&d, path, &schema, true, e);
    if (rc < 0)
        return rc;
    rc = db_begin(&d, e);
    if (rc == 0) {
        rc = get_meta(&d, "model", old.model, sizeof(old.model), NULL, e);
        if (rc == 0 && old.model[0])
            rc = err_set(e, SHOAL_EINVAL, "the collection already exists");
        if (rc == 0 && strlen(s->model) >= sizeof(old.model))
            rc = err_set(e, SHOAL_EINVAL, "the name of the model is too long");
        if (rc == 0)
            rc = set_meta(&d, "model", s->model, 0, e);
        if (rc == 0)
            rc = set_meta(&d, "max_tokens", NULL, s->max_tokens, e);
        if (rc == 0)
            rc = set_meta(&d, "overlap", NULL, s->overlap, e);
        rc = db_end(&d, rc, e);
    }
    db_close(&d);
    return rc;
}

int collection_open(struct collection **out, const char *path, uint32_t exact_passages,
                    struct err *e)
{
    *out = NULL;
    struct collection *c = mem_zalloc(sizeof(*c));
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a collection");
    pthread_mutex_init(&c->lock, NULL);
    if (access(path, F_OK) != 0) {
        collection_close(c);
        return err_set(e, SHOAL_ENOTFOUND, "there is no collection %s", path);
    }
    int rc = db_open(&c->write, path, &schema, false, e);
    if (rc == 0)
        rc = db_open(&c->read, path, &schema, false, e);
    if (rc < 0) {
        collection_close(c);
        return rc;
    }
    c->exact_passages = exact_passages;
    snprintf(c->path, sizeof(c->path), "%s", path);
    *out = c;
    return 0;
}

void collection_close(struct collection *c)
{
    if (!c)
        return;
    db_close(&c->write);
    db_close(&c->read);
    vectors_destroy(c->vectors);
    if (c->graph[0] && access(c->path, F_OK) != 0) /* the collection was deleted in the meantime */
        unlink(c->graph);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static int read_info(struct db *d, struct collection_info *out, struct err *e)
{
    int64_t max_tokens = 0, overlap = 0, dims = 0, docs = 0, chunks = 0, bytes = 0, pages = 0,
            page_bytes = 0;
    int rc = get_meta(d, "model", out->model, sizeof(out->model), NULL, e);
    if (rc == 0)
        rc = get_meta(d, "version", out->version, sizeof(out->version), NULL, e);
    if (rc == 0)
        rc = get_meta(d, "max_tokens", NULL, 0, &max_tokens, e);
    if (rc == 0)
        rc = get_meta(d, "overlap", NULL, 0, &overlap, e);
    if (rc == 0)
        rc = get_meta(d, "n_dims", NULL, 0, &dims, e);
    if (rc == 0)
        rc = db_number(d, "SELECT count(*) FROM docs", 0, &docs, e);
    if (rc == 0)
        rc = db_number(d, "SELECT count(*) FROM chunks", 0, &chunks, e);
    if (rc == 0)
        rc = db_number(d, "SELECT sum(bytes) FROM docs", 0, &bytes, e);
    if (rc == 0)
        rc = db_number(d, "PRAGMA page_count", 0, &pages, e);
    if (rc == 0)
        rc = db_number(d, "PRAGMA page_size", 0, &page_bytes, e);
    out->max_tokens = (uint32_t)max_tokens;
    out->overlap = (uint32_t)overlap;
    out->n_dims = (uint32_t)dims;
    out->n_docs = (uint64_t)docs;
    out->n_chunks = (uint64_t)chunks;
    out->text_bytes = (uint64_t)bytes;
    out->file_bytes = (uint64_t)(pages * page_bytes);
    return rc;
}

int collection_info(struct collection *c, struct collection_info *out, struct err *e)
{
    *out = (struct collection_info){.model = ""};
    pthread_mutex_lock(&c->lock);
    out->memory_bytes = c->vectors ? vectors_bytes(c->vectors) : 0;
    out->n_indexed = c->vectors ? vectors_linked(c->vectors) : 0;
    pthread_mutex_unlock(&c->lock);
    db_lock(&c->read);
    int rc = read_info(&c->read, out, e);
    db_unlock(&c->read);
    return rc;
}

int collection_has(struct collection *c, const char *name, uint64_t hash, struct err *e)
{
    db_lock(&c->read);
    sqlite3_stmt *s = db_prepare(&c->read, "SELECT 1 FROM docs WHERE name = ?1 AND hash = ?2", e);
    int rc = s ? 0 : db_run(&c->read, s, e);
    if (s) {
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, (int64_t)hash);
        rc = db_step(&c->read, s, e);
        sqlite3_finalize(s);
    }
    db_unlock(&c->read);
    return rc;
}

/* ---- the vectors in memory ---- */

static int load_rows(struct collection *c, sqlite3_stmt *s, struct err *e)
{
    int64_t *ids = mem_zalloc_n(LOAD_ROWS, sizeof(*ids));
    float *rows = mem_zalloc_n((size_t)LOAD_ROWS * c->n_dims, sizeof(float));
    size_t bytes = c->n_dims * sizeof(float);
    int rc = ids && rows ? 1 : err_set(e, SHOAL_ENOMEM, "out of memory for vectors");
    while (rc == 1) {
        uint32_t n = 0;
        while (n < LOAD_ROWS && (rc = db_step(&c->read, s, e)) == 1) {
            if ((size_t)sqlite3_column_bytes(s, 1) != bytes) {
                rc = err_set(e, SHOAL_EFORMAT, "%s: a vector has the wrong length", c->read.path);
                break;
            }
            ids[n] = sqlite3_column_int64(s, 0);
            memcpy(rows + (size_t)n++ * c->n_dims, sqlite3_column_blob(s, 1), bytes);
        }
        if (rc >= 0 && n > 0) {
            int added = vectors_add(c->vectors, ids, rows, n, e);
            c->last_id = ids[n - 1];
            rc = added < 0 ? added : rc;
        }
    }
    mem_free(ids);
    mem_free(rows);
    return rc;
}

/* Passages that another process added. */
static int load_new(struct collection *c, struct err *e)
{
    sqlite3_stmt *s =
        db_prepare(&c->read, "SELECT id, vector FROM chunks WHERE id > ?1 ORDER BY id", e);
    if (!s)
        return db_run(&c->read, s, e);
    sqlite3_bind_int64(s, 1, c->last_id);
    int rc = load_rows(c, s, e);
    sqlite3_finalize(s);
    return rc;
}

/* Forgets passages that another process removed. */
static int drop_gone(struct collection *c, struct err *e)
{
    int64_t n = 0, at = 0;
    int rc = db_number(&c->read, "SELECT count(*) FROM chunks", 0, &n, e);
    sqlite3_stmt *s = rc == 0 ? db_prepare(&c->read, "SELECT id FROM chunks ORDER BY id", e) : NULL;
    int64_t *ids = mem_zalloc_n((size_t)n + 1, sizeof(*ids));
    if (rc == 0 && !s)
        rc = db_run(&c->read, s, e);
    if (rc == 0 && !ids)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for %lld ids", (long long)n);
    while (rc == 0 && at < n && (rc = db_step(&c->read, s, e)) == 1) {
        ids[at++] = sqlite3_column_int64(s, 0);
        rc = 0;
    }
    sqlite3_finalize(s);
    if (rc == 0)
        vectors_keep(c->vectors, ids, (size_t)at);
    mem_free(ids);
    return rc;
}

/* The graph is stored beside the collection. */
static int keep_graph(struct collection *c, struct err *e)
{
    const int n = snprintf(c->graph, sizeof(c->graph), "%s" COLLECTION_GRAPH, c->path);
    if (n < 0 || (size_t)n >= sizeof(c->graph))
        return err_set(e, SHOAL_EINVAL, "the path of %.200s is too long", c->path);
    return vectors_keep_graph(c->vectors, c->graph, e);
}

/* Brings the vectors up to the file.  Both locks are held; within a read transaction, so that the
 * count of changes and the rows agree. */
static int catch_up(struct collection *c, struct err *e)
{
    int64_t changes = 0, dims = 0;
    int rc = get_meta(&c->read, "changes", NULL, 0, &changes, e);
    if (rc < 0 || (changes == c->changes && c->vectors))
        return rc;
    rc = get_meta(&c->read, "n_dims", NULL, 0, &dims, e);
    if (rc < 0 || dims == 0)
        return rc;
    rc = get_meta(&c->read, "version", c->version, sizeof(c->version), NULL, e);
    if (rc < 0)
        return rc;
    bool first = !c->vectors;
    if (first) {
        c->n_dims = (uint32_t)dims;
        rc = vectors_create(&c->vectors, c->n_dims, c->exact_passages, e);
        if (rc == 0 && c->exact_passages > 0)
            rc = keep_graph(c, e);
    } else {
        rc = drop_gone(c, e);
    }
    if (rc == 0)
        rc = load_new(c, e);
    c->changes = rc == 0 ? changes : -1; /* -1: the next search retries */
    if (rc == 0) {
        struct err why;
        vectors_restore(c->vectors, &why);
        if (why.msg[0])
            log_warn("store", "%s: %s; rebuilding it", c->read.path, why.msg);
    }
    return rc;
}

/* Vectors of other weights look like vectors, and their products like similarities. */
static int other_model(struct err *e, const char *old, long long old_dims, const char *now,
                       uint32_t n_dims)
{
    return err_set(e, SHOAL_EINVAL,
                   "the passages were embedded by another model (version %s, %lld dimensions; now "
                   "%s, %u): remove the collection ('shoal index remove NAME --all') and add its "
                   "documents again, or search by words alone",
                   old[0] ? old : "unknown", old_dims, now && now[0] ? now : "unknown", n_dims);
}

static bool versions_differ(const char *old, const char *now)
{
    return old[0] && now && now[0] && strcmp(old, now) != 0; /* "": not known */
}

static int check_query(const struct collection *c, const struct collection_query *q, struct err *e)
{
    if (c->vectors && (q->n_dims != c->n_dims || versions_differ(c->version, q->version)))
        return other_model(e, c->version, c->n_dims, q->version, q->n_dims);
    return 0;
}

/* Brings the vectors up to the file, and refuses a query that cannot be compared with them. */
static int sync_vectors(struct collection *c, const struct collection_query *q, struct err *e)
{
    pthread_mutex_lock(&c->lock);
    db_lock(&c->read);
    int rc = db_exec(&c->read, "BEGIN", e);
    if (rc == 0) {
        struct err ignored;
        rc = catch_up(c, e);
        if (db_exec(&c->read, "COMMIT", rc < 0 ? &ignored : e) < 0 && rc == 0)
            rc = SHOAL_EIO;
    }
    db_unlock(&c->read);
    if (rc == 0)
        rc = check_query(c, q, e);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* ---- changes ---- */

/* Runs a statement whose only parameter is the name of a document. */
static int run_for(struct db *d, const char *sql, const char *name, struct err *e)
{
    sqlite3_stmt *s = db_prepare(d, sql, e);
    if (s)
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    return db_run(d, s, e);
}

/* 1: it was there. */
static int remove_doc(struct db *d, const char *name, struct err *e)
{
    /* the index of words first: it needs the texts that it had */
    int rc = run_for(d,
                     "INSERT INTO words(words, rowid, heading, text) SELECT 'delete', id, heading, "
                     "text FROM chunks WHERE doc = (SELECT id FROM docs WHERE name = ?1)",
                     name, e);
    if (rc == 0)
        rc = run_for(d, "DELETE FROM chunks WHERE doc = (SELECT id FROM docs WHERE name = ?1)",
                     name, e);
    if (rc == 0)
        rc = run_for(d, "DELETE FROM docs WHERE name = ?1", name, e);
    return rc < 0 ? rc : sqlite3_changes(d->handle) > 0;
}

static int count_change(struct db *d, struct err *e)
{
    return db_exec(d, "UPDATE meta SET value = value + 1 WHERE key = 'changes'", e);
}

static int insert_doc(struct db *d, const struct collection_doc *doc, struct err *e)
{
    sqlite3_stmt *s = db_prepare(
        d, "INSERT INTO docs(name, title, hash, bytes, added) VALUES(?1, ?2, ?3, ?4, ?5)", e);
    if (s) {
        sqlite3_bind_text(s, 1, doc->name, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, doc->title, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 3, (int64_t)doc->hash);
        sqlite3_bind_int64(s, 4, (int64_t)doc->n_bytes);
        sqlite3_bind_int64(s, 5, (int64_t)time(NULL));
    }
    return db_run(d, s, e);
}

static int insert_chunks(struct db *d, const struct chunk *chunks, uint32_t n, const float *vectors,
                         uint32_t n_dims, struct err *e)
{
    int64_t doc = sqlite3_last_insert_rowid(d->handle);
    sqlite3_stmt *s = db_prepare(d,
                                 "INSERT INTO chunks(doc, heading, ref, page, tokens, text, vector)"
                                 " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                                 e);
    int rc = s ? 0 : db_run(d, s, e);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        const struct chunk *k = &chunks[i];
        sqlite3_bind_int64(s, 1, doc);
        sqlite3_bind_text(s, 2, k->heading, (int)k->heading_bytes, SQLITE_STATIC);
        sqlite3_bind_text(s, 3, k->ref, (int)k->ref_bytes, SQLITE_STATIC);
        sqlite3_bind_int64(s, 4, k->page);
        sqlite3_bind_int64(s, 5, k->n_tokens);
        sqlite3_bind_text(s, 6, k->text, (int)k->text_bytes, SQLITE_STATIC);
        sqlite3_bind_blob(s, 7, vectors + (size_t)i * n_dims, (int)(n_dims * sizeof(float)),
                          SQLITE_STATIC);
        rc = db_step(d, s, e);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    if (rc < 0)
        return rc;
    s = db_prepare(d,
                   "INSERT INTO words(rowid, heading, text) SELECT id, heading, text FROM chunks "
                   "WHERE doc = ?1",
                   e);
    if (s)
        sqlite3_bind_int64(s, 1, doc);
    return db_run(d, s, e);
}

/* The model and its vector length stay those of the first document. */
static int check_model(struct db *d, uint32_t n_dims, const char *version, struct err *e)
{
    char old[64] = "";
    int64_t dims = 0;
    int rc = get_meta(d, "n_dims", NULL, 0, &dims, e);
    if (rc == 0)
        rc = get_meta(d, "version", old, sizeof(old), NULL, e);
    if (rc < 0)
        return rc;
    if (dims == 0) {
        rc = set_meta(d, "n_dims", NULL, n_dims, e);
        return rc < 0 ? rc : set_meta(d, "version", version, 0, e);
    }
    if (rc == 0 && dims == n_dims && !old[0] && version[0])
        rc = set_meta(d, "version", version, 0, e);
    if (dims != n_dims || versions_differ(old, version))
        return other_model(e, old, (long long)dims, version, n_dims);
    return rc;
}

int collection_put(struct collection *c, const struct collection_doc *doc,
                   const struct chunk *chunks, uint32_t n, const float *vectors, uint32_t n_dims,
                   const char *version, uint64_t max_chunks, struct err *e)
{
    struct db *d = &c->write;
    int64_t there = 0;
    if (strlen(doc->name) > COLLECTION_MAX_DOC_NAME || !doc->name[0])
        return err_set(e, SHOAL_EINVAL, "the name of a document has 1 to %u bytes",
                       COLLECTION_MAX_DOC_NAME);
    db_lock(d);
    int rc = db_begin(d, e);
    if (rc == 0) {
        rc = n > 0 ? check_model(d, n_dims, version, e) : 0;
        if (rc == 0)
            rc = remove_doc(d, doc->name, e);
        if (rc >= 0)
            rc = db_number(d, "SELECT count(*) FROM chunks", 0, &there, e);
        if (rc == 0 && max_chunks && (uint64_t)there + n > max_chunks)
            rc = err_set(e, SHOAL_ELIMIT,
                         "the collection would have %llu passages, and may have %llu: remove "
                         "documents, or raise the limit",
                         (unsigned long long)there + n, (unsigned long long)max_chunks);
        if (rc == 0)
            rc = insert_doc(d, doc, e);
        if (rc == 0)
            rc = insert_chunks(d, chunks, n, vectors, n_dims, e);
        if (rc == 0)
            rc = count_change(d, e);
        rc = db_end(d, rc, e);
    }
    db_unlock(d);
    return rc;
}

int collection_remove(struct collection *c, const char *doc, struct err *e)
{
    struct db *d = &c->write;
    db_lock(d);
    int rc = db_begin(d, e);
    if (rc == 0) {
        rc = remove_doc(d, doc, e);
        if (rc == 0)
            rc = err_set(e, SHOAL_ENOTFOUND, "there is no document '%.200s'", doc);
        if (rc > 0)
            rc = count_change(d, e);
        rc = db_end(d, rc, e);
    }
    db_unlock(d);
    return rc;
}

/* ---- searching ---- */

static int search_words(struct collection *c, const char *text, int64_t *ids, uint32_t *n,
                        struct err *e)
{
    struct buf match;
    buf_init(&match, 16 * COLLECTION_MAX_QUERY_BYTES);
    collection_rank_match(&match, text);
    *n = 0;
    if (match.rc < 0 || match.len == 0) {
        int rc = match.rc;
        buf_fini(&match);
        return rc < 0 ? err_set(e, rc, "out of memory for a search") : 0;
    }
    db_lock(&c->read);
    sqlite3_stmt *s = db_prepare(
        &c->read,
        "SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY bm25(words, 2.0, 1.0) LIMIT ?2", e);
    int rc = s ? 1 : db_run(&c->read, s, e);
    if (s) {
        sqlite3_bind_text(s, 1, buf_str(&match), (int)match.len, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, DEPTH);
        while (*n < DEPTH && (rc = db_step(&c->read, s, e)) == 1)
            ids[(*n)++] = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
    }
    db_unlock(&c->read);
    buf_fini(&match);
    return rc < 0 ? rc : 0;
}

int collection_count(struct collection *c, const char *word, uint64_t *out, struct err *e)
{
    struct buf match;
    *out = 0;
    buf_init(&match, 16 * COLLECTION_MAX_QUERY_BYTES);
    collection_rank_match(&match, word);
    if (match.rc < 0 || match.len == 0) {
        int rc = match.rc;
        buf_fini(&match);
        return rc < 0 ? err_set(e, rc, "out of memory for a search") : 0;
    }
    db_lock(&c->read);
    sqlite3_stmt *s = db_prepare(
        &c->read, "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)", e);
    int rc = s ? 1 : db_run(&c->read, s, e);
    if (s) {
        sqlite3_bind_text(s, 1, buf_str(&match), (int)match.len, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, COLLECTION_MAX_COUNT);
        rc = db_step(&c->read, s, e);
        if (rc == 1)
            *out = (uint64_t)sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
    }
    db_unlock(&c->read);
    buf_fini(&match);
    return rc < 0 ? rc : 0;
}

static const char *column(struct arena *a, sqlite3_stmt *s, int i)
{
    const char *p = (const char *)sqlite3_column_text(s, i);
    return arena_printf(a, "%s", p ? p : "");
}

/* Fills the fused hits from the file; hits removed in the meantime are left out. */
static int fill_hits(struct collection *c, const struct collection_rank *fused, uint32_t n_fused,
                     uint32_t most, struct arena *a, struct collection_hit *hits, uint32_t *n,
                     struct err *e)
{
    int rc = 0;
    db_lock(&c->read);
    sqlite3_stmt *s = db_prepare(&c->read,
                                 "SELECT d.name, d.title, k.heading, k.ref, k.page, k.text FROM "
                                 "chunks k JOIN docs d ON d.id = k.doc WHERE k.id = ?1",
                                 e);
    if (!s)
        rc = db_run(&c->read, s, e);
    for (uint32_t i = 0; i < n_fused && *n < most && rc == 0; i++) {
        sqlite3_reset(s);
        sqlite3_bind_int64(s, 1, fused[i].id);
        rc = db_step(&c->read, s, e);
        if (rc != 1)
            continue;
        hits[(*n)++] = (struct collection_hit){.id = fused[i].id,
                                               .doc = column(a, s, 0),
                                               .title = column(a, s, 1),
                                               .heading = column(a, s, 2),
                                               .ref = column(a, s, 3),
                                               .page = (uint32_t)sqlite3_column_int64(s, 4),
                                               .text = column(a, s, 5),
                                               .score = fused[i].score,
                                               .similarity = fused[i].similarity,
                                               .by_vector = fused[i].by_vector,
                                               .by_words = fused[i].by_words};
        rc = 0;
    }
    sqlite3_finalize(s);
    db_unlock(&c->read);
    return rc;
}

/* The vectors stay while they are searched: only this function and close free them. */
static int search_vectors(struct collection *c, const struct collection_query *q,
                          struct vectors_hit *hits, uint32_t *n, struct err *e)
{
    *n = 0;
    int rc = sync_vectors(c, q, e);
    if (rc < 0 || !c->vectors)
        return rc;
    return vectors_search(c->vectors, q->vector, DEPTH, hits, n, e);
}

int collection_search(struct collection *c, const struct collection_query *q, struct arena *a,
                      struct collection_hit **hits, uint32_t *n, struct err *e)
{
    struct vectors_hit near[DEPTH];
    int64_t words[DEPTH];
    struct collection_rank fused[2 * DEPTH];
    uint32_t n_near = 0, n_words = 0, n_fused;
    int rc = 0;
    *n = 0;
    *hits = NULL;
    if (q->n_results == 0 || q->n_results > COLLECTION_MAX_HITS)
        return err_set(e, SHOAL_EINVAL, "1 to %u results", COLLECTION_MAX_HITS);
    if (q->vector)
        rc = search_vectors(c, q, near, &n_near, e);
    if (rc == 0 && q->text)
        rc = search_words(c, q->text, words, &n_words, e);
    if (rc < 0)
        return rc;
    n_fused = collection_rank_fuse(fused, near, n_near, words, n_words);
    *hits = arena_zalloc_n(a, q->n_results, sizeof(**hits));
    if (!*hits)
        return err_set(e, SHOAL_ENOMEM, "out of memory for results");
    rc = fill_hits(c, fused, n_fused, q->n_results, a, *hits, n, e);
    return rc == 0 && a->rc < 0 ? err_set(e, a->rc, "out of memory for results") : rc;
}

int collection_docs(struct collection *c, const char *after, uint32_t max, struct arena *a,
                    const char ***names, uint32_t *n, struct err *e)
{
    *n = 0;
    *names = arena_zalloc_n(a, max ? max : 1, sizeof(char *));
    if (!*names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for names");
    db_lock(&c->read);
    sqlite3_stmt *s =
        db_prepare(&c->read, "SELECT name FROM docs WHERE name > ?1 ORDER BY name LIMIT ?2", e);
    int rc = s ? 1 : db_run(&c->read, s, e);
    if (s) {
        sqlite3_bind_text(s, 1, after ? after : "", -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, max);
        while (*n < max && (rc = db_step(&c->read, s, e)) == 1)
            (*names)[(*n)++] = column(a, s, 0);
        sqlite3_finalize(s);
    }
    db_unlock(&c->read);
    return rc < 0 ? rc : 0;
}
