/* specialist.c - which specialist a model is, if it is one. */
#include "model/encoder.h"
#include "score/extract.h"
#include "format/model_file.h"
#include "model/t5.h"
#include "engine/native/encoder_specialist.h"
#include "engine/engine_int.h"
#include "engine/native/extract_specialist.h"
#include "engine/onnx/onnx_files.h"
#include "engine/onnx/onnx_session.h"
#include "engine/native/scorer_specialist.h"
#include "engine/native/seq2seq.h"

int specialist_open(struct shoal_engine *en, const char *path, const struct shoal_engine_opts *o,
                    struct err *e)
{
    struct onnx_files files;
    if (scorer_specialist_knows(path))
        return scorer_specialist_open(&en->specialist, path, o, e);
    if (extract_detect(path))
        return extract_specialist_open(&en->specialist, &en->gguf, &en->tokenizer, path, o, e);
    int found = onnx_files_find(&files, path, e);
    if (found < 0)
        return found;
    int rc = found ? onnx_files_open(&files, &en->gguf, e) : model_open(&en->gguf, path, e);
    if (rc < 0)
        return rc;
    if (found) { /* what it is, its inputs tell */
        struct onnx_session_opts so = {.n_threads = o->n_threads};
        if ((rc = onnx_session_open(&en->onnx, files.model, &so, e)) < 0)
            return rc;
        if (onnx_session_has_past(en->onnx))
            return 0;
    } else if (!t5_knows(en->gguf) && !encoder_knows(en->gguf)) {
        return 0;
    }
    rc = tokenizer_create(&en->tokenizer, en->gguf, e);
    if (rc < 0)
        return err_wrap(e, "%s", path);
    if (!found && t5_knows(en->gguf))
        return seq2seq_open(&en->specialist, en->gguf, en->tokenizer, path, o, e);
    struct onnx_session *onnx = en->onnx;
    en->onnx = NULL;
    return encoder_specialist_open(&en->specialist, en->gguf, en->tokenizer, path, onnx, o, e);
}
