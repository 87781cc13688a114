/* model_check.c - see model_check.h. */
#include "engine/model_check.h"

#include "engine/native/scorer_specialist.h"
#include "engine/onnx/onnx_files.h"
#include "format/model_open.h"
#include "format/sealed_file.h"
#include "score/extract.h"

int model_check(const char *path, struct err *e)
{
    struct onnx_files files;
    struct model_file *file = NULL;
    if (scorer_specialist_knows(path) || extract_detect(path))
        return 0;
    int found = sealed_check(path, e); /* the rest needs its key */
    if (found == 0)
        found = onnx_files_find(&files, path, e);
    if (found != 0)
        return found < 0 ? found : 0;
    int rc = model_open(&file, path, e);
    model_file_close(file);
    return rc;
}
