/* ask_pack.c - see ask_pack.h. */
#include "apps/home/ask/ask_pack.h"

#include <string.h>

#include "host/pack.h"
#include "shoal/shoal.h"

#define TABLE "home" /* its name in the manifest */

static int open_model(struct shoal_engine **out, const struct pack *p, const char *name,
                      const struct ask_pack_opts *o, struct err *e)
{
    const struct pack_model *m = pack_find(p, name);
    if (!m)
        return err_set(e, SHOAL_ENOTFOUND, "%s has no model \"%s\"", p->dir, name);
    struct shoal_engine_opts eo = {.size = sizeof(eo),
                                   .int8 = m->int8,
                                   .n_threads = o->n_threads,
                                   .progress = o->progress,
                                   .progress_ctx = o->progress_ctx};
    int rc = pack_verify(m, e);
    return rc < 0 ? rc : shoal_engine_open(out, m->open, &eo, e);
}

/* An engine that the caller lends, or the pack's model of that name. */
static int take_engine(struct shoal_engine **out, bool *lent, struct shoal_engine *given,
                       const struct pack *p, const char *name, const struct ask_pack_opts *o,
                       struct err *e)
{
    *lent = given != NULL;
    *out = given;
    return given ? 0 : open_model(out, p, name, o, e);
}

static int open_table(struct home_table **out, const struct pack *p, const char *path,
                      struct err *e)
{
    if (path)
        return home_table_open(out, path, e);
    const struct pack_table *t = pack_find_table(p, TABLE);
    if (!t)
        return err_set(e, SHOAL_ENOTFOUND, "%s has no table \"" TABLE "\"", p->dir);
    int rc = pack_verify_table(t, e);
    if (rc < 0)
        return rc;
    rc = home_table_open(out, t->file.path, e);
    /* The file matches its manifest, so this program is too old for it. */
    return rc == SHOAL_EFORMAT ? err_wrap(e, "the models are of another version than this program")
                               : rc;
}

int ask_pack_open(struct ask_pack *p, const struct ask_pack_opts *o, struct err *e)
{
    struct pack *pack = NULL;
    *p = (struct ask_pack){0};
    bool all_given = o->table && o->encoder && (o->reply || o->no_reply);
    int rc = all_given ? 0 : pack_open(&pack, o->dir, e);
    if (rc == 0)
        rc = open_table(&p->table, pack, o->table, e);
    bool wants_act = rc == 0 && p->table->act;
    if (wants_act && !o->act && !pack && strcmp(p->table->act, p->table->encoder) != 0)
        rc = pack_open(&pack, o->dir, e);
    if (rc == 0)
        rc = take_engine(&p->encoder, &p->lent_encoder, o->encoder, pack, p->table->encoder, o, e);
    if (rc == 0 && wants_act && !o->act && strcmp(p->table->act, p->table->encoder) == 0) {
        p->act = p->encoder; /* one model does both */
        p->lent_act = true;
    } else if (rc == 0 && wants_act) {
        rc = take_engine(&p->act, &p->lent_act, o->act, pack, p->table->act, o, e);
    }
    if (rc == 0 && !o->no_reply)
        rc = take_engine(&p->reply, &p->lent_reply, o->reply, pack, p->table->reply, o, e);
    if (rc == 0 && pack && p->table->reader)
        rc = open_model(&p->reader, pack, p->table->reader, o, e);
    if (rc == 0 && !o->parts_only)
        rc = ask_create(&p->ask, p->table, NULL, p->encoder, p->act, p->reply, e);
    if (rc == 0 && p->ask)
        ask_use_reader(p->ask, p->reader);
    pack_close(pack);
    if (rc < 0)
        ask_pack_close(p);
    return rc;
}

void ask_pack_close(struct ask_pack *p)
{
    ask_destroy(p->ask);
    if (!p->lent_reply)
        shoal_engine_close(p->reply);
    if (!p->lent_act)
        shoal_engine_close(p->act);
    shoal_engine_close(p->reader);
    if (!p->lent_encoder)
        shoal_engine_close(p->encoder);
    home_table_close(p->table);
    *p = (struct ask_pack){0};
}

int ask_pack_table(struct home_table **out, const char *dir, const char *path, struct err *e)
{
    struct pack *pack = NULL;
    *out = NULL;
    int rc = path ? 0 : pack_open(&pack, dir, e);
    if (rc == 0)
        rc = open_table(out, pack, path, e);
    pack_close(pack);
    return rc;
}
