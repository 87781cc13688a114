/* bare_model.h - a model without an engine, for commands that need logits, perplexity or plain
 * speed and run one thing at a time.
 *
 * Thread:    the main thread.
 * Ownership: bare_model_open fills the caller's storage, bare_model_close frees (also after a
 *            failed open). */
#ifndef SHOAL_CMD_LOCAL_BARE_MODEL_H
#define SHOAL_CMD_LOCAL_BARE_MODEL_H

#include "cmd/cli/opts.h"
#include "format/model_file.h"
#include "model/decoder.h"
#include "text/tokenizer/tokenizer.h"

struct bare_model_opts { /* all zero except path means defaults */
    const char *path;
    bool included; /* path is the name of an included model, not a file */
    const char *kernels, *key_file;
    bool kv_q8, no_cache;
    uint32_t n_threads, n_ctx, max_batch, max_logits;
    uint32_t n_seqs;   /* sequences with a cache of n_ctx tokens each; 0: 1 */
    bool no_tokenizer; /* accept a file without a vocabulary */
    int interrupt_fd;
};

struct bare_model {
    struct model_file *file;
    struct decoder *d;
    struct tokenizer *t; /* NULL with no_tokenizer */
    uint8_t *kv;
    size_t kv_bytes;
    uint32_t n_ctx, n_seqs, pages_per_seq;
    uint32_t *pages; /* [n_seqs][pages_per_seq] */
};

/* Reads the Model group of options (model_opts.h). */
struct bare_model_opts bare_model_opts_read(const struct opts *o, int interrupt_fd);
/* CMD_OK, or an exit code after a message. */
int bare_model_open(struct bare_model *m, const struct opts_page *page,
                    const struct bare_model_opts *o);
void bare_model_close(struct bare_model *m);
static inline const uint32_t *bare_model_pages(const struct bare_model *m, uint32_t seq)
{
    return m->pages + (size_t)seq * m->pages_per_seq;
}
/* Bytes of the tensors read for one token: all except lookup tables, unless the embedding is
 * also the output matrix.  *n_weights: weights of their matrices; *n_output: those of the output
 * matrix, used only for tokens with logits. */
uint64_t bare_model_touched_bytes(const struct model_file *file, uint64_t *n_weights,
                                  uint64_t *n_output);

#endif
