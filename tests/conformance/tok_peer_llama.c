/* tok_peer_llama.c - see tok_peer.h.  Opens libllama at run time. */
#include "tok_peer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <llama.h>

#define API_MAP(X)                                                                                 \
    X(llama_backend_init)                                                                          \
    X(llama_log_set)                                                                               \
    X(llama_model_default_params)                                                                  \
    X(llama_model_load_from_file)                                                                  \
    X(llama_model_free)                                                                            \
    X(llama_model_get_vocab)                                                                       \
    X(llama_vocab_n_tokens)                                                                        \
    X(llama_vocab_is_eog)                                                                          \
    X(llama_vocab_bos)                                                                             \
    X(llama_vocab_eos)                                                                             \
    X(llama_vocab_get_add_bos)                                                                     \
    X(llama_vocab_get_add_eos)                                                                     \
    X(llama_token_to_piece)                                                                        \
    X(llama_tokenize)

static struct {
#define X(name) __typeof__(&name) name;
    API_MAP(X)
#undef X
} api;

struct peer_vocab {
    struct llama_model *model;
    const struct llama_vocab *v;
};

static void quiet(enum ggml_log_level level, const char *text, void *ctx)
{
    (void)level;
    (void)text;
    (void)ctx;
}

int peer_open(const char *libs)
{
    static const char *const names[] = {"libggml-base.so", "libggml.v0.5.0.so",
                                        "libllama.v0.5.0.so"};
    void *h = NULL;
    for (int i = 0; i < 3; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", libs, names[i]);
        h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!h) {
            fprintf(stderr, "%s\n", dlerror());
            return -1;
        }
    }
#define X(name)                                                                                    \
    *(void **)&api.name = dlsym(h, #name);                                                         \
    if (!api.name) {                                                                               \
        fprintf(stderr, "no %s\n", #name);                                                         \
        return -1;                                                                                 \
    }
    API_MAP(X)
#undef X
    api.llama_log_set(quiet, NULL);
    api.llama_backend_init();
    return 0;
}

struct peer_vocab *peer_load(const char *gguf)
{
    struct llama_model_params mp = api.llama_model_default_params();
    struct peer_vocab *p = calloc(1, sizeof(*p));
    mp.vocab_only = true;
    if (p)
        p->model = api.llama_model_load_from_file(gguf, mp);
    if (!p || !p->model) {
        free(p);
        return NULL;
    }
    p->v = api.llama_model_get_vocab(p->model);
    return p;
}

void peer_free(struct peer_vocab *v)
{
    if (v)
        api.llama_model_free(v->model);
    free(v);
}

struct peer_info peer_info(const struct peer_vocab *v)
{
    return (struct peer_info){api.llama_vocab_bos(v->v), api.llama_vocab_eos(v->v),
                              api.llama_vocab_get_add_bos(v->v), api.llama_vocab_get_add_eos(v->v)};
}

int peer_n_tokens(const struct peer_vocab *v)
{
    return api.llama_vocab_n_tokens(v->v);
}

bool peer_is_eog(const struct peer_vocab *v, int32_t id)
{
    return api.llama_vocab_is_eog(v->v, id);
}

int peer_piece(const struct peer_vocab *v, int32_t id, char *out, int n, bool special)
{
    return api.llama_token_to_piece(v->v, id, out, n, 0, special);
}

int peer_encode(const struct peer_vocab *v, const char *text, int n, int32_t *ids, int max,
                bool add_special, bool parse_special)
{
    return api.llama_tokenize(v->v, text, n, ids, max, add_special, parse_special);
}
