/* tok_peer.h - libllama's tokenizers behind a few functions, apart from our headers, whose names
 * clash with its own.
 *
 * Thread:    one.
 * Ownership: peer_load gives, peer_free takes back (NULL is fine).
 * Failure:   peer_open prints why and returns -1; peer_load returns NULL. */
#ifndef SHOAL_TEST_TOK_PEER_H
#define SHOAL_TEST_TOK_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct peer_vocab;
struct peer_info {
    int32_t bos, eos;
    bool add_bos, add_eos;
};

int peer_open(const char *libs);
struct peer_vocab *peer_load(const char *gguf);
void peer_free(struct peer_vocab *v);
struct peer_info peer_info(const struct peer_vocab *v);
int peer_n_tokens(const struct peer_vocab *v);
bool peer_is_eog(const struct peer_vocab *v, int32_t id);
int peer_piece(const struct peer_vocab *v, int32_t id, char *out, int n, bool special);
int peer_encode(const struct peer_vocab *v, const char *text, int n, int32_t *ids, int max,
                bool add_special, bool parse_special);

#endif
