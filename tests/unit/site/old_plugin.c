/* old_plugin.c - a plug-in of another ABI version; for test_deed_plugin.c. */

#include "shoal/shoal_plugin.h"

SHOAL_PLUGIN_EXPORT const struct shoal_plugin *shoal_plugin(void);

const struct shoal_plugin *shoal_plugin(void)
{
    static const struct shoal_plugin table = {.size = sizeof(table),
                                              .version = SHOAL_PLUGIN_VERSION + 1};
    return &table;
}
