/* ask_pack.c - see ask_pack.h. */
#include "flow/home/ask_pack.h"

#include "host/pack.h"

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

int ask_pack_open(struct ask_pack *p, const struct ask_pack_opts *o, struct err *e)
{
    struct pack *pack;
    *p = (struct ask_pack){0};
    int rc = pack_open(&pack, o->dir, e);
    if (rc < 0)
        return rc;
    rc = open_model(&p->encoder, pack, ASK_ENCODER, o, e);
    if (rc == 0 && !o->no_reply)
        rc = open_model(&p->reply, pack, ASK_REPLY, o, e);
    if (rc == 0)
        rc = ask_create(&p->ask, p->encoder, p->reply, e);
    pack_close(pack);
    if (rc < 0)
        ask_pack_close(p);
    return rc;
}

void ask_pack_close(struct ask_pack *p)
{
    ask_destroy(p->ask);
    shoal_engine_close(p->reply);
    shoal_engine_close(p->encoder);
    *p = (struct ask_pack){0};
}
