/* engine_adapter.c - see engine_adapter.h. */
#include "engine/engine_adapter.h"

#include <math.h>
#include <string.h>

#include "base/arg.h"
#include "base/hash.h"
#include "base/mem.h"
#include "engine/engine_state.h"
#include "format/convert/lora.h"

static int open_matrices(struct shoal_adapter *a, const struct shoal_engine *en, const char *path,
                         struct err *e)
{
    struct model_file *file = NULL;
    if (!en->lm.ops || !en->lm.ops->adapt)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "adapters beside a model need a decoder that is computed here, by the "
                       "native engine; merge it ('shoal model lora merge')");
    int rc = lora_open(&file, path, en->file, e);
    if (rc < 0)
        return rc;
    rc = en->lm.ops->adapt(en->lm.impl, &a->matrices, file, e);
    model_file_close(file);
    return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

int shoal_adapter_open(struct shoal_adapter **out, struct shoal_engine *en, const char *path,
                       double scale, struct err *e)
{
    static _Atomic uint64_t last_serial;
    struct err own;
    if (!e)
        e = &own;
    int rc = arg_check(out, "out", e);
    if (rc < 0)
        return rc;
    *out = NULL;
    rc = arg_check(en, "engine", e);
    if (rc == 0)
        rc = arg_check(path, "path", e);
    if (rc < 0)
        return rc;
    if (!(fabs(scale) <= ENGINE_ADAPTER_MAX_SCALE))
        return err_set(e, SHOAL_EINVAL, "an adapter's scale is %g, expected -%g to %g", scale,
                       ENGINE_ADAPTER_MAX_SCALE, ENGINE_ADAPTER_MAX_SCALE);
    struct shoal_adapter *a = mem_zalloc(sizeof(*a));
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "out of memory for an adapter");
    atomic_init(&a->refs, 1);
    a->engine = en;
    a->scale = scale == 0 ? 1.0f : (float)scale;
    a->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
    rc = open_matrices(a, en, path, e);
    if (rc < 0) {
        shoal_adapter_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

size_t shoal_adapter_bytes(const struct shoal_adapter *a)
{
    return a ? adapter_bytes(a->matrices) : 0;
}

void shoal_adapter_close(struct shoal_adapter *a)
{
    /* acq_rel: whoever frees it sees the end of all reading */
    if (!a || atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
        return;
    adapter_destroy(a->matrices);
    mem_free(a);
}

struct shoal_adapter *engine_adapter_ref(const struct shoal_adapter *a)
{
    struct shoal_adapter *own = (struct shoal_adapter *)(uintptr_t)a; /* only the count changes */
    atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
    return own;
}

float engine_adapter_scale(const struct shoal_adapter *a, double asked)
{
    return asked == 0 ? a->scale : (float)asked;
}

uint64_t engine_adapter_scope(uint64_t scope, const struct shoal_adapter *a, float scale)
{
    uint32_t bits;
    if (!a)
        return scope;
    memcpy(&bits, &scale, sizeof(bits));
    const uint64_t all[] = {scope, a->serial, bits};
    return hash_bytes(all, sizeof(all), 0);
}
