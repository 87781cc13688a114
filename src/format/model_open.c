/* model_open.c - see model_open.h. */
#include "format/model_open.h"

#include <stdio.h>
#include <sys/stat.h>

#include "format/gguf.h"
#include "format/hf/hf_folder.h"
#include "format/whisper_ggml.h"

bool model_open_is_whisper(const char *path)
{
    unsigned char head[4];
    FILE *f = fopen(path, "rb");
    const bool yes = f && whisper_ggml_is(head, fread(head, 1, sizeof(head), f));
    if (f)
        fclose(f);
    return yes;
}

int model_open(struct model_file **out, const char *path, struct err *e)
{
    return model_open_with(out, path, NULL, e);
}

int model_open_with(struct model_file **out, const char *path, const char *key_file, struct err *e)
{
    int rc = model_open_parts(out, path, key_file, e);
    if (rc == 0 && (rc = model_file_fill(*out, e)) < 0) {
        model_file_close(*out);
        *out = NULL;
    }
    return rc;
}

int model_open_parts(struct model_file **out, const char *path, const char *key_file, struct err *e)
{
    struct stat st;
    const bool found = stat(path, &st) == 0;
    if (found && S_ISDIR(st.st_mode))
        return hf_folder_open(out, path, e);
    if (found && S_ISREG(st.st_mode) && model_open_is_whisper(path))
        return whisper_ggml_open(out, path, e);
    return gguf_open_parts(out, path, key_file, e);
}
