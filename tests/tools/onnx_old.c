/* onnx_old.c - a library that claims to be ONNX Runtime 1.17.1, which is too old for us; without
 * ONNX_OLD it is just a library. */
#include <stdint.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

struct base {
    const void *(*get_api)(uint32_t version);
    const char *(*version)(void);
};

#ifdef ONNX_OLD
static const void *get_api(uint32_t version)
{
    (void)version;
    return NULL;
}

static const char *version(void)
{
    return "1.17.1";
}

EXPORT const struct base *OrtGetApiBase(void);
const struct base *OrtGetApiBase(void)
{
    static const struct base base = {get_api, version};
    return &base;
}
#else
EXPORT int onnx_other(void);
int onnx_other(void)
{
    return 0;
}
#endif
