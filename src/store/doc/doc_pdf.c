/* doc_pdf.c - see doc_pdf.h. */
#include "store/doc/doc_pdf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define MAX_RULES 512u
#define MAX_SECONDS 90u
#define CPU_SECONDS 60u
#define MEMORY_BYTES ((rlim_t)1 << 30)
#define MISSING 127 /* exit status: there is no such program */

struct filter {
    struct sock_filter rules[MAX_RULES];
    struct sock_fprog program;
};

/* ---- confinement ---- */

static int forbid(scmp_filter_ctx ctx)
{
    static const int calls[] = {SCMP_SYS(socket),
                                SCMP_SYS(socketpair),
                                SCMP_SYS(connect),
                                SCMP_SYS(bind),
                                SCMP_SYS(listen),
                                SCMP_SYS(accept4),
                                SCMP_SYS(ptrace),
                                SCMP_SYS(process_vm_readv),
                                SCMP_SYS(mount),
                                SCMP_SYS(unlink),
                                SCMP_SYS(unlinkat),
                                SCMP_SYS(rename),
                                SCMP_SYS(renameat),
                                SCMP_SYS(renameat2),
                                SCMP_SYS(mkdir),
                                SCMP_SYS(mkdirat),
                                SCMP_SYS(rmdir),
                                SCMP_SYS(link),
                                SCMP_SYS(linkat),
                                SCMP_SYS(symlink),
                                SCMP_SYS(symlinkat),
                                SCMP_SYS(chmod),
                                SCMP_SYS(fchmod),
                                SCMP_SYS(fchmodat),
                                SCMP_SYS(chown),
                                SCMP_SYS(fchown),
                                SCMP_SYS(fchownat),
                                SCMP_SYS(truncate),
                                SCMP_SYS(mknod),
                                SCMP_SYS(mknodat),
                                SCMP_SYS(kill),
                                SCMP_SYS(tkill),
                                SCMP_SYS(fork),
                                SCMP_SYS(vfork),
                                SCMP_SYS(setns),
                                SCMP_SYS(unshare),
                                SCMP_SYS(bpf),
                                SCMP_SYS(keyctl),
                                SCMP_SYS(creat),
                                SCMP_SYS(io_uring_setup),
                                SCMP_SYS(openat2),
                                SCMP_SYS(userfaultfd),
                                SCMP_SYS(perf_event_open)};
    int rc = 0;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]) && rc == 0; i++)
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
    /* files are read, never written */
    for (scmp_datum_t how = O_WRONLY; how <= O_RDWR && rc == 0; how++) {
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, how));
        if (rc == 0)
            rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, O_ACCMODE, how));
    }
    return rc;
}

/* The kernel's filter rules, built before the fork: the child may not allocate. */
static int make_filter(struct filter *f, struct err *e)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int fd = memfd_create("filter", MFD_CLOEXEC);
    ssize_t n = -1;
    if (ctx && fd >= 0 && forbid(ctx) == 0 && seccomp_export_bpf(ctx, fd) == 0)
        n = pread(fd, f->rules, sizeof(f->rules), 0);
    if (ctx)
        seccomp_release(ctx);
    if (fd >= 0)
        close(fd);
    if (n <= 0 || (size_t)n == sizeof(f->rules))
        return err_set(e, SHOAL_EUNSUPPORTED, "cannot confine pdftotext on this machine");
    f->program = (struct sock_fprog){(unsigned short)((size_t)n / sizeof(f->rules[0])), f->rules};
    return 0;
}

static void limit(__rlimit_resource_t what, rlim_t most)
{
    const struct rlimit l = {most, most};
    setrlimit(what, &l);
}

/* In the child: only calls that are safe after a fork of a process with threads. */
static _Noreturn void run_child(const struct filter *f, int in, int out)
{
    static char *const argv[] = {
        (char *)"pdftotext", (char *)"-q", (char *)"-enc", (char *)"UTF-8", (char *)"-",
        (char *)"-",         NULL};
    static char *const env[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LC_ALL=C",
                                NULL};
    static const char *const paths[] = {"/usr/bin/pdftotext", "/usr/local/bin/pdftotext"};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || (null >= 0 && dup2(null, 2) < 0))
        _exit(126);
    close_range(3, ~0u, 0);
    limit(RLIMIT_CPU, CPU_SECONDS);
    limit(RLIMIT_AS, MEMORY_BYTES);
    limit(RLIMIT_NOFILE, 32);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    signal(SIGPIPE, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f->program) < 0)
        _exit(126);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        execve(paths[i], argv, env);
    _exit(MISSING);
}

/* ---- the parent ---- */

/* Reads the output, until the process closes it, time is up or the limit is exceeded. */
static int read_all(int fd, struct buf *out, struct err *e)
{
    uint64_t end = clock_ns() + (uint64_t)MAX_SECONDS * 1000000000u;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now = clock_ns();
        if (now >= end)
            return err_set(e, SHOAL_ELIMIT, "pdftotext took longer than %u s", MAX_SECONDS);
        if (poll(&p, 1, (int)((end - now) / 1000000u) + 1) <= 0)
            continue;
        char *room = buf_room(out, 65536);
        if (!room)
            return err_set(e, out->rc, "more than 64 MiB of text: split the PDF");
        ssize_t n = read(fd, room, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        buf_used(out, (size_t)n);
    }
}

static int check_status(int status, struct err *e)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == MISSING)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "PDF files need pdftotext: install the package poppler-utils");
    if (WIFSIGNALED(status))
        return err_set(e, SHOAL_EFORMAT,
                       "pdftotext was killed by signal %d: the PDF is damaged, or "
                       "it needs too much time or memory",
                       WTERMSIG(status));
    return err_set(e, SHOAL_EFORMAT,
                   "pdftotext cannot read it (exit status %d): damaged or "
                   "encrypted",
                   WEXITSTATUS(status));
}

static int put_input(int *fd, const char *p, size_t n, struct err *e)
{
    *fd = memfd_create("pdf", MFD_CLOEXEC);
    for (size_t at = 0; *fd >= 0 && at < n;) {
        ssize_t k = write(*fd, p + at, n - at);
        if (k < 0 && errno != EINTR) {
            close(*fd);
            *fd = -1;
        }
        at += k > 0 ? (size_t)k : 0;
    }
    if (*fd < 0 || lseek(*fd, 0, SEEK_SET) < 0)
        return err_set(e, SHOAL_EIO, "cannot hand the PDF over: %s", strerror(errno));
    return 0;
}

int doc_pdf_read(struct doc *d, const char *p, size_t n, struct err *e)
{
    struct filter f;
    struct buf text;
    int in = -1, out[2] = {-1, -1}, status = 0;
    pid_t child = -1;
    buf_init(&text, DOC_MAX_TEXT_BYTES);
    int rc = make_filter(&f, e);
    if (rc == 0)
        rc = put_input(&in, p, n, e);
    if (rc == 0 && pipe2(out, O_CLOEXEC) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot start pdftotext: %s", strerror(errno));
    if (rc == 0) {
        child = fork();
        if (child == 0)
            run_child(&f, in, out[1]);
        if (child < 0)
            rc = err_set(e, SHOAL_EIO, "cannot start pdftotext: %s", strerror(errno));
    }
    if (in >= 0)
        close(in);
    if (out[1] >= 0)
        close(out[1]);
    if (rc == 0)
        rc = read_all(out[0], &text, e);
    if (out[0] >= 0)
        close(out[0]);
    if (child > 0) {
        if (rc < 0)
            kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (rc == 0)
            rc = check_status(status, e);
    }
    if (rc == 0)
        rc = doc_pages_read(d, buf_str(&text), text.len, e);
    buf_fini(&text);
    return rc;
}
