/* engine_files.c - see engine_files.h. */
#include "engine/engine_files.h"

#include "base/log.h"
#include "engine/engine_state.h"
#include "model/weights.h"

#define CHECK_EVERY_NS 100000000u

static const struct weights *weights_of(const struct shoal_engine *en)
{
    return en->specialist.ops ? en->specialist.weights : en->lm.weights;
}

int engine_files_check(struct shoal_engine *en, struct err *e)
{
    const struct weights *w = weights_of(en);
    /* relaxed: the flag is independent and never reset */
    bool changed = atomic_load_explicit(&en->files_changed, memory_order_relaxed);
    if (!changed && ((en->file && model_file_changed(en->file)) || (w && weights_changed(w)) ||
                     (en->lm.ops && en->lm.ops->changed && en->lm.ops->changed(en->lm.impl)))) {
        changed = true;
        if (!atomic_exchange_explicit(&en->files_changed, true, memory_order_relaxed))
            log_error("engine", "%s: %s", en->path, err_text(SHOAL_ECHANGED));
    }
    return changed ? err_set(e, SHOAL_ECHANGED, "%s: %s", en->path, err_text(SHOAL_ECHANGED)) : 0;
}

int engine_files_check_end(struct shoal_engine *en)
{
    if (!en->files_checked)
        (void)engine_files_check(en, NULL);
    en->files_checked = true;
    return atomic_load_explicit(&en->files_changed, memory_order_relaxed) ? SHOAL_ECHANGED : 0;
}

int engine_files_check_at(struct shoal_engine *en, uint64_t now_ns)
{
    if (now_ns < en->files_next_ns)
        return atomic_load_explicit(&en->files_changed, memory_order_relaxed) ? SHOAL_ECHANGED : 0;
    en->files_next_ns = now_ns + CHECK_EVERY_NS;
    return engine_files_check(en, NULL);
}

void engine_files_report(const struct shoal_engine *en, const char *path)
{
    const struct weights *w = weights_of(en);
    if (w && w->damage)
        log_warn("engine", "%s: rebuilt the cache of tiled weights: %s", path, w->damage);
    if (w && w->unlocked)
        log_warn("engine",
                 "%s: its decrypted weights may be swapped to disk: raise the limit of locked "
                 "memory (LimitMEMLOCK, ulimit -l), or encrypt the swap",
                 path);
}
