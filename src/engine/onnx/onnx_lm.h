/* onnx_lm.h - a decoder in an .onnx file, as the scheduler sees it (lm.h).
 *
 * Inputs by name: input_ids, attention_mask, position_ids, use_cache_branch, num_logits_to_keep and
 * past_key_values.*; outputs: logits and present.* with the same endings.  Each slot owns the keys
 * and values of its sequence, as the library returned them; a run at position 0 starts over.
 * Opening runs the model with two tokens, so a file with wrong shapes fails there.
 *
 * Thread, ownership: lm.h.
 * Failure:   as onnx_session.h; SHOAL_EUNSUPPORTED (inputs or outputs of another kind of model).  A
 *            run that fails gives its code; the text goes to the log. */
#ifndef SHOAL_ENGINE_ONNX_ONNX_LM_H
#define SHOAL_ENGINE_ONNX_ONNX_LM_H

#include "engine/decode/lm.h"

struct onnx_lm_opts {     /* all zero but max_tasks means defaults */
    uint32_t n_threads;   /* of open; 0: number of cores */
    uint32_t n_ctx;       /* longest sequence; 0: n_ctx_train, at most 4096 */
    uint32_t n_ctx_train; /* the model's own; 0: not known */
    uint32_t max_tasks;   /* slots, and rows of logits */
    uint32_t chunk;       /* prompt tokens per run; 0: 512, fewer when the vocabulary is large */
    const char *arch;     /* for lm_info, borrowed; NULL: "onnx" */
};

SHOAL_MUST_CHECK int onnx_lm_open(struct lm *out, const char *path, const struct onnx_lm_opts *o,
                                  struct err *e);
/* The same with an open session, which it takes over even if it fails. */
struct onnx_session;
SHOAL_MUST_CHECK int onnx_lm_from_session(struct lm *out, struct onnx_session *s,
                                          const struct onnx_lm_opts *o, struct err *e);

#endif
