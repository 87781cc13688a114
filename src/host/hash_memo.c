/* hash_memo.c - see hash_memo.h. */
#include "host/hash_memo.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file_open.h"
#include "base/hash.h"

#define SETTLED_S 2
#define TEXT_BYTES 320u

/* The part of an entry before the hash. */
static int describe(char out[TEXT_BYTES], const struct stat *st)
{
    return snprintf(out, TEXT_BYTES,
                    "shoal sha256 1 %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 ".%09ld %" PRId64
                    ".%09ld ",
                    (uint64_t)st->st_dev, (uint64_t)st->st_ino, (int64_t)st->st_size,
                    (int64_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (int64_t)st->st_ctim.tv_sec,
                    st->st_ctim.tv_nsec);
}

/* false: the path is too long. */
static bool entry_path(char out[PATH_MAX], const char *dir, const char *text, size_t n)
{
    char hex[17];
    hash_hex(hex, hash_bytes(text, n, 0));
    int len = snprintf(out, PATH_MAX, "%s/sha256-%s", dir, hex);
    return len > 0 && len < PATH_MAX;
}

bool hash_memo_get(const char *dir, const struct stat *st, uint8_t out[SHA256_BYTES])
{
    char want[TEXT_BYTES], have[TEXT_BYTES + 2 * SHA256_BYTES + 1], path[PATH_MAX];
    size_t n = (size_t)describe(want, st);
    if (!dir || !entry_path(path, dir, want, n))
        return false;
    int fd = file_open_regular(path, NULL);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, have, sizeof(have) - 1);
    close(fd);
    if (got != (ssize_t)(n + 2 * SHA256_BYTES) || memcmp(have, want, n) != 0)
        return false;
    have[got] = '\0';
    return sha256_read_hex(out, have + n);
}

static bool settled(const struct stat *st)
{
    time_t now = time(NULL);
    return now - st->st_mtim.tv_sec > SETTLED_S && now - st->st_ctim.tv_sec > SETTLED_S;
}

void hash_memo_put_final(const char *dir, const struct stat *st, const uint8_t sum[SHA256_BYTES])
{
    char text[TEXT_BYTES + 2 * SHA256_BYTES + 1], path[PATH_MAX], temp[PATH_MAX + 32];
    size_t n = (size_t)describe(text, st);
    if (!dir || !entry_path(path, dir, text, n))
        return;
    sha256_hex(text + n, sum);
    n += 2 * SHA256_BYTES;
    mkdir(dir, 0755); /* usually there: weights are kept in it too */
    snprintf(temp, sizeof(temp), "%s.%d.tmp", path, (int)getpid());
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return;
    bool ok = write(fd, text, n) == (ssize_t)n;
    ok = close(fd) == 0 && ok;
    if (!ok || rename(temp, path) < 0)
        unlink(temp);
}

void hash_memo_put(const char *dir, const struct stat *st, const uint8_t sum[SHA256_BYTES])
{
    if (settled(st))
        hash_memo_put_final(dir, st, sum);
}
