/* hf_map.h - shared by hf_folder.c, hf_config.c, hf_documents.c and the tables of architectures
 * (hf_map_*.c).  Private to src/format/hf. */
#ifndef SHOAL_FORMAT_HF_HF_MAP_H
#define SHOAL_FORMAT_HF_HF_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/err.h"
#include "format/model_file.h"
#include "format/safetensors.h"

enum hf_op {
    HF_COPY = 0,
    HF_SKIP,      /* known and not needed: buffers, heads of the training */
    HF_TRANSPOSE, /* matrices [in, out] (GPT-2's Conv1D); vectors stay */
    HF_ROPE_Q,    /* rows from halves to neighbouring pairs, per head: GGUF's order for llama */
    HF_ROPE_K,
    HF_QKV, /* rows of a fused matrix from (query, key, value) per head to all queries first */
    HF_MINUS_EXP, /* the fading of a state space, stored as the logarithm of what is negative here
                   */
    HF_ADD_ONE,   /* a norm whose weights are stored less 1 */
    HF_POSITIONS, /* without the first hf_folder.skip_positions rows */
    HF_CONV,      /* weights of a convolution: a row has the inputs of its first tap first */
    HF_FLAT,      /* a vector or a matrix: no dimensions of 1 in front, the inner ones joined */
    HF_HEAD,      /* `to`, or tag.output.* in a model that labels tokens */
    HF_OUTPUT,    /* skipped when it is tied to the embedding */
    HF_VECTOR,    /* stored with a dimension of 1 in front */
};

/* from and to: '#' is a layer's number, '*' the last part of the name. */
struct hf_rule {
    const char *from, *to;
    enum hf_op op;
};

struct hf_folder;

struct hf_arch {
    const char *model_type;      /* of config.json */
    const char *name;            /* general.architecture */
    const char *prefix;          /* optional prefix of the names */
    const struct hf_rule *rules; /* ends with from == NULL */
    const struct hf_rule *usual; /* those it shares with others, asked last; NULL: none */
    int (*configure)(struct hf_folder *f, struct err *e);
};

/* configure of decoders (hf_settings_decoder.c). */
int hf_settings_llama(struct hf_folder *f, struct err *e);
int hf_settings_phi(struct hf_folder *f, struct err *e);
int hf_settings_gpt2(struct hf_folder *f, struct err *e);
int hf_settings_gptneo(struct hf_folder *f, struct err *e);
int hf_settings_phi3(struct hf_folder *f, struct err *e);
int hf_settings_smollm3(struct hf_folder *f, struct err *e);
int hf_settings_granite(struct hf_folder *f, struct err *e);
int hf_settings_exaone4(struct hf_folder *f, struct err *e);
int hf_settings_gptneox(struct hf_folder *f, struct err *e);
int hf_settings_stablelm(struct hf_folder *f, struct err *e);
int hf_settings_gemma2(struct hf_folder *f, struct err *e);
int hf_settings_gemma3(struct hf_folder *f, struct err *e);
int hf_settings_lfm2(struct hf_folder *f, struct err *e);
int hf_settings_mamba2(struct hf_folder *f, struct err *e);
int hf_settings_granitehybrid(struct hf_folder *f, struct err *e);
int hf_settings_qwen35(struct hf_folder *f, struct err *e);

int hf_settings_vit(struct hf_folder *f, struct err *e);
extern const struct hf_rule hf_vit_rules[];
int hf_settings_whisper(struct hf_folder *f, struct err *e);
extern const struct hf_rule hf_whisper_rules[];
extern const struct hf_arch hf_whisper_openai; /* names of OpenAI's checkpoints, no folder */

extern const struct hf_arch hf_encoders[], hf_decoders[],
    hf_seq2seqs[]; /* end with model_type == NULL */

/* Divisors of rotation frequencies; becomes a tensor of that name (a literal). */
struct hf_rope_table {
    const char *name;
    float *v; /* mem_free */
    uint32_t n;
};

/* A folder that is being opened. */
struct hf_folder {
    const char *path;
    const struct hf_arch *arch;
    cJSON *config;
    struct safetensors *st;
    struct model_file *file; /* what is being filled */
    /* Set by configure. */
    uint32_t n_heads, n_kv_heads; /* of HF_ROPE_* */
    uint32_t skip_positions;
    bool labels_tokens; /* ForTokenClassification */
    bool tied;          /* the output matrix is the embedding */
    struct hf_rope_table rope[2];
    uint32_t n_rope;
};

/* ---- tensors (hf_tensor.c) ---- */

#define HF_NAME_BYTES 64 /* of a tensor in GGUF, with its NUL */

/* The rule for a tensor, and its name in GGUF (unset where it is skipped). */
SHOAL_MUST_CHECK int hf_tensor_name(const struct hf_folder *f, const char *name,
                                    const struct hf_rule **rule, char out[HF_NAME_BYTES],
                                    struct err *e);
/* Adds it to the model under that name, its rows in the order that op says. */
SHOAL_MUST_CHECK int hf_tensor_add(struct hf_folder *f, const struct safetensors_tensor *t,
                                   enum hf_op op, const char *name, struct err *e);

/* Weights [out][in][taps], as PyTorch has them, to rows [taps][in]; the new ones belong to m. */
SHOAL_MUST_CHECK int hf_tensor_conv(struct model_file *m, struct model_file_tensor *g,
                                    struct err *e);

/* ---- files of the folder (hf_documents.c) ---- */

bool hf_documents_has(const struct hf_folder *f, const char *name);
/* config.json, or another document of that kind, becomes f->config. */
SHOAL_MUST_CHECK int hf_documents_read_config(struct hf_folder *f, const char *name, struct err *e);
/* Adds the modules that modules.json of a sentence embedder names: their config.json and, if
 * wanted, their tensors.  An unsupported module is an error.  Before hf_documents_add. */
SHOAL_MUST_CHECK int hf_documents_add_modules(struct hf_folder *f, bool tensors, struct err *e);
/* Adds all documents, verbatim, to the metadata. */
SHOAL_MUST_CHECK int hf_documents_add(struct hf_folder *f, struct err *e);

/* ---- config.json (hf_config.c) ---- */

/* A whole number from 1 to max under the first key, or else under the second (NULL: none).  _or:
 * the value when the key is missing or null. */
SHOAL_MUST_CHECK int hf_config_u32(const struct hf_folder *f, const char *key, const char *second,
                                   uint32_t max, uint32_t *out, struct err *e);
SHOAL_MUST_CHECK int hf_config_u32_or(const struct hf_folder *f, const char *key, uint32_t max,
                                      uint32_t missing, uint32_t *out, struct err *e);
SHOAL_MUST_CHECK int hf_config_f32_or(const struct hf_folder *f, const cJSON *object,
                                      const char *key, double missing, float *out, struct err *e);
bool hf_config_bool_or(const struct hf_folder *f, const char *key, bool missing);
/* "" when missing. */
const char *hf_config_str(const cJSON *object, const char *key);
/* The name of an activation, which must be in the list (NULL at its end: ""). */
SHOAL_MUST_CHECK int hf_config_act(const struct hf_folder *f, const char *key, const char *missing,
                                   const char *const *known, const char **out, struct err *e);
/* Settings of the rotation of `width` values of each head (hf_rope.c).  number: from the settings,
 * or else from the top of config.json. */
SHOAL_MUST_CHECK int hf_rope_configure(struct hf_folder *f, const cJSON *rope, uint32_t width,
                                       struct err *e);
SHOAL_MUST_CHECK int hf_rope_number(const struct hf_folder *f, const cJSON *rope, const char *key,
                                    double missing, float *out, struct err *e);
/* rope_parameters, or rope_scaling of older files; NULL: none. */
const cJSON *hf_rope_object(const struct hf_folder *f);
/* Sizes of an encoder and a decoder, as BART's and Whisper's configurations name them; refuses
 * sides of different widths. */
SHOAL_MUST_CHECK int hf_config_two_sides(struct hf_folder *f, struct err *e);
/* "<arch>.<key>" */
void hf_config_put_u32(struct hf_folder *f, const char *key, uint32_t v);
void hf_config_put_f32(struct hf_folder *f, const char *key, float v);
void hf_config_put_bool(struct hf_folder *f, const char *key, bool v);
void hf_config_put_str(struct hf_folder *f, const char *key, const char *v);

#endif
