/* model_file.c - see model_file.h. */
#include "format/model_file.h"

#include <sys/stat.h>

#include "format/hf/hf_folder.h"

int model_open(struct gguf **out, const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return hf_folder_open(out, path, e);
    return gguf_open(out, path, e);
}
