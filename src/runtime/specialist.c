/* specialist.c - which specialist a model is, if it is one. */
#include "model/encoder.h"
#include "model/model_file.h"
#include "model/t5.h"
#include "runtime/encoder_specialist.h"
#include "runtime/engine_int.h"
#include "runtime/onnx_files.h"
#include "runtime/scorer_specialist.h"
#include "runtime/seq2seq.h"

int specialist_open(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                    struct err *e)
{
    struct onnx_files files;
    if (scorer_specialist_knows(path))
        return scorer_specialist_open(&en->specialist, path, o, e);
    int found = onnx_files_find(&files, path, e);
    if (found < 0)
        return found;
    int rc = found ? onnx_files_open(&files, &en->gguf, e) : model_open(&en->gguf, path, e);
    if (rc < 0)
        return rc;
    if (t5_knows(en->gguf) && !found)
        return seq2seq_open(&en->specialist, en->gguf, path, o, e);
    if (!encoder_knows(en->gguf))
        return 0;
    rc = tokenizer_create(&en->tokenizer, en->gguf, e);
    return rc < 0 ? err_wrap(e, "%s", path)
                  : encoder_specialist_open(&en->specialist, en->gguf, en->tokenizer, path,
                                            found ? files.model : NULL, o, e);
}
