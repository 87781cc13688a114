/* specialist.c - which specialist a model is, if it is one. */
#include "runtime/engine_int.h"

int specialist_open(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                    struct err *e)
{
    (void)en;
    (void)path;
    (void)o;
    (void)e;
    return 0;
}
