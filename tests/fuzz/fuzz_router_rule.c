/* fuzz_router_rule.c - expressions of rules: the pattern up to the first NUL, then the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "router/router_rule.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    char pattern[2048];
    size_t n = end ? (size_t)(end - data) : 0;
    struct router_regex *x;
    struct err e = {0};
    if (!end || n >= sizeof(pattern))
        return 0;
    memcpy(pattern, data, n + 1);
    int rc = router_regex_create(&x, pattern, &e);
    if ((rc < 0) != (x == NULL) || (rc < 0 && e.msg[0] == '\0'))
        abort(); /* an error has a message */
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc == 0)
        FUZZ_NOTE("%d", router_regex_matches(x, (const char *)end + 1, size - n - 1));
    router_regex_destroy(x);
    return 0;
}
