/* fuzz_serve_config.c - the configuration file of shoal serve. */
#include <stdint.h>
#include <stdlib.h>

#include "config/config.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *c;
    struct err e = {0};
    if (config_create(&c, &e) < 0)
        return 0;
    const int rc = config_parse(c, (const char *)data, size, "fuzz", &e);
    if (rc < 0 && e.msg[0] == '\0')
        abort(); /* an error has a message */
    FUZZ_NOTE("%d %s", rc, e.msg);
    config_unref(c);
    return 0;
}
