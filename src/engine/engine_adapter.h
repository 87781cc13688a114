/* engine_adapter.h - the inside of a shoal_adapter: a LoRA adapter that is open beside the model of
 * an engine.
 *
 * Thread:    immutable once open; any thread.
 * Ownership: counted references: the owner's, and one of each task that uses it, from submit until
 *            the task is freed.  So an adapter that is closed stays in memory while a pass may read
 *            it. */
#ifndef SHOAL_ENGINE_ENGINE_ADAPTER_H
#define SHOAL_ENGINE_ENGINE_ADAPTER_H

#include <stdatomic.h>
#include <stdint.h>

#include "model/adapter.h"
#include "shoal/shoal.h"

#define ENGINE_ADAPTER_MAX_SCALE 1000.0

struct shoal_adapter {
    _Atomic uint32_t refs;
    const struct shoal_engine *engine;
    struct adapter *matrices;
    float scale;
    uint64_t serial; /* unique in this process */
};

struct shoal_adapter *engine_adapter_ref(const struct shoal_adapter *a);
/* The scale that a task asks for; 0: the adapter's own. */
float engine_adapter_scale(const struct shoal_adapter *a, double asked);
/* The scope of cached prefixes that were computed with the adapter (kv_pages.h): what another
 * adapter, the same one at another scale, or the base alone has computed is never found in it.
 * a NULL: the scope itself. */
uint64_t engine_adapter_scope(uint64_t scope, const struct shoal_adapter *a, float scale);

#endif
