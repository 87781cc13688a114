/* package_tools.c - see package_tools.h. */
#include "cmd/store/package_tools.h"

#include <stdio.h>
#include <string.h>

#include "depot/source/web.h"

/* What is configured, or else pip's own default, which no command of pip prints. */
#define ASK_PIP                                                                                    \
    "python3 -m pip config get global.index-url 2>/dev/null </dev/null || "                        \
    "python3 -c 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)' "            \
    "2>/dev/null </dev/null"
#define ASK_NPM "npm config get registry 2>/dev/null </dev/null"

bool package_tools_index(bool npm, char *out, size_t cap)
{
    FILE *f = popen(npm ? ASK_NPM : ASK_PIP, "re");
    out[0] = '\0';
    if (!f)
        return false;
    if (!fgets(out, (int)cap, f))
        out[0] = '\0';
    const bool ended = pclose(f) == 0;
    out[strcspn(out, "\r\n")] = '\0';
    if (ended && web_is_url(out))
        return true;
    out[0] = '\0';
    return false;
}
