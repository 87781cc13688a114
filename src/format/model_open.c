/* model_open.c - see model_open.h. */
#include "format/model_open.h"

#include <sys/stat.h>

#include "format/gguf.h"
#include "format/hf/hf_folder.h"

int model_open(struct model_file **out, const char *path, struct err *e)
{
    return model_open_with(out, path, NULL, e);
}

int model_open_with(struct model_file **out, const char *path, const char *key_file, struct err *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return hf_folder_open(out, path, e);
    return gguf_open_with(out, path, key_file, e);
}
