/* sealed_file.h - a file encrypted with AES-256-GCM, in chunks, with a key of its own.
 *
 *   0  "SHOALENC"
 *   8  version (1), wrap (enum sealed_wrap), log2 of scrypt's N (0 without), log2 of the chunk
 *  12  u32: bytes of the header (116); another wrap may need more
 *  16  u64: bytes of the plain file
 *  24  salt (32)
 *  56  nonce (12), key of the file (32) encrypted by the user's, tag (16); authenticates 0 to 56
 * 116  chunks: as many bytes as the plain chunk has, then a tag (16); the nonce is the chunk's
 * index
 *
 * The user's key is scrypt of a passphrase with the salt (r = 8, p = 1), or HMAC-SHA-256 of the
 * salt with the key of a key file.  A file's key encrypts nothing else, so indexes are nonces that
 * never repeat.  Any changed, moved, missing or added byte fails.
 *
 * Thread:    no state.  Opening uses several threads of its own.
 * Ownership: sealed_open fills a map that file_map_close closes.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT: damaged, SHOAL_EINVAL: the key does not open it, or is none;
 *            the text says what to do.  SHOAL_ENOMEM. */
#ifndef SHOAL_FORMAT_SEALED_FILE_H
#define SHOAL_FORMAT_SEALED_FILE_H

#include "base/file/file_map.h"

#define SEALED_HEAD_BYTES 116u
#define SEALED_TAG_BYTES 16u

enum sealed_wrap { SEALED_PASSPHRASE = 1, SEALED_KEY_FILE = 2 };

struct sealed_head {
    enum sealed_wrap wrap;
    uint32_t log_n;   /* of scrypt */
    size_t chunk;     /* bytes of a plain chunk */
    uint64_t n_bytes; /* of the plain file */
};

/* Whether the bytes are the beginning of such a file. */
bool sealed_is(const void *bytes, size_t n);
/* 1: the file is one, with a header that can be read; 0: it is another, or cannot be opened. */
SHOAL_MUST_CHECK int sealed_check(const char *path, struct err *e);
/* Reads the header, and checks that a file of file_bytes can have it. */
SHOAL_MUST_CHECK int sealed_head_read(struct sealed_head *out, const void *bytes, size_t n,
                                      uint64_t file_bytes, struct err *e);

struct sealed_opts {
    enum sealed_wrap wrap;
    const char *key_file; /* with 64 hex digits or 32 bytes; or with a passphrase in a line */
    uint32_t log_n;       /* 0: 17, which takes 128 MiB */
    uint32_t log_chunk;   /* 0: 18 */
};
/* Both replace `out`, which only its owner can read. */
SHOAL_MUST_CHECK int sealed_encrypt(const char *path, const char *out, const struct sealed_opts *o,
                                    struct err *e);
SHOAL_MUST_CHECK int sealed_decrypt(const char *path, const char *out, const char *key_file,
                                    struct err *e);
/* Decrypts into memory that no disk sees (file_map_secret). */
SHOAL_MUST_CHECK int sealed_open(struct file_map *out, const char *path, const char *key_file,
                                 struct err *e);

/* The same, but every part when file_map_need asks for it. */
SHOAL_MUST_CHECK int sealed_open_parts(struct file_map *out, const char *path, const char *key_file,
                                       struct err *e);

/* n bytes made of an encrypted file, with the key that its map has for that: written, which
 * replaces the file, and read into memory of the caller. */
SHOAL_MUST_CHECK int sealed_put(const char *path, const uint8_t key[FILE_KEY_BYTES],
                                const uint8_t *bytes, size_t n, struct err *e);
SHOAL_MUST_CHECK int sealed_get(const char *path, const uint8_t key[FILE_KEY_BYTES], uint8_t *out,
                                size_t n, struct err *e);

#endif
