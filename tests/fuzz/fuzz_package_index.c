/* fuzz_package_index.c - pages of package indexes: a URL that is found is one. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "depot/source/package_index.h"
#include "depot/source/web.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct err e = {0};
    struct buf url;
    buf_init(&url, WEB_MAX_URL);
    int rc = package_index_pypi(&url, text, size, "https://index.test/simple/a/", "a-1.whl", &e);
    if ((rc == 0 && !web_is_url(buf_str(&url))) || (rc < 0 && !e.msg[0]))
        abort();
    FUZZ_NOTE("%d %s %s|", rc, e.msg, rc == 0 ? buf_str(&url) : "");
    buf_fini(&url);
    buf_init(&url, WEB_MAX_URL);
    e.msg[0] = '\0';
    rc = package_index_npm(&url, text, size, &e);
    if ((rc == 0 && !web_is_url(buf_str(&url))) || (rc < 0 && !e.msg[0]))
        abort();
    FUZZ_NOTE("%d %s %s", rc, e.msg, rc == 0 ? buf_str(&url) : "");
    buf_fini(&url);
    return 0;
}
