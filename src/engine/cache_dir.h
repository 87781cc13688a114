/* cache_dir.h - where tiled weights are kept. */
#ifndef SHOAL_ENGINE_CACHE_DIR_H
#define SHOAL_ENGINE_CACHE_DIR_H

#include <stddef.h>

/* $SHOAL_CACHE_DIR, else $XDG_CACHE_HOME/shoal, else ~/.cache/shoal, written into out; NULL when
 * none of them is set. */
const char *cache_dir_default(char *out, size_t cap);
/* The folder that an option names. option NULL: the default; "": no cache, returns NULL. */
const char *cache_dir_wanted(const char *option, char *out, size_t cap);

#endif
