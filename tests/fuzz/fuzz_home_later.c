/* fuzz_home_later.c - the schedule's file, and the actions in it.  A parsed file is written again
 * as the same file. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "apps/home/later/home_later.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(void *ctx, const struct home_later_entry *x)
{
    (void)ctx;
    (void)x;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct home_later_opts o = {.run = run};
    struct home_later *l, *again;
    struct buf one, two;
    struct err e;
    if (home_later_create(&l, &o, &e) < 0 || home_later_create(&again, &o, &e) < 0)
        abort();
    buf_init(&one, HOME_LATER_MAX_FILE * 8);
    buf_init(&two, HOME_LATER_MAX_FILE * 8);
    if (home_later_read(l, (const char *)data, size, &e) == 0) {
        home_later_write(l, &one);
        if (one.rc == 0 && one.len <= HOME_LATER_MAX_FILE) {
            if (home_later_read(again, buf_str(&one), one.len, &e) < 0)
                abort();
            home_later_write(again, &two);
            if (strcmp(buf_str(&one), buf_str(&two)) != 0)
                abort();
        }
    }
    buf_fini(&one);
    buf_fini(&two);
    home_later_destroy(l);
    home_later_destroy(again);
    return 0;
}
