/* sandbox.c - see sandbox.h. */
#include "base/str.h"
#include "cluster/worker/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cluster/worker/sandbox_stat.h"

#define MAX_FILES 512u /* open at once */
#define LOWEST_PRIORITY 19

/* ---- Landlock ---- */

/* Rights by the interface version that introduced them; headers may be older than the kernel. */
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_WRITE_FILE (1ull << 1)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_DIR (1ull << 7)
#define FS_MAKE_REG (1ull << 8)
#define FS_REFER (1ull << 13)     /* 2 */
#define FS_TRUNCATE (1ull << 14)  /* 3 */
#define FS_IOCTL_DEV (1ull << 15) /* 5 */
#define FS_ALL_1 ((1ull << 13) - 1)
#define NET_ALL 3ull   /* 4: bind, connect */
#define SCOPE_ALL 3ull /* 6: abstract unix sockets, signals */

struct ruleset { /* as in the newest kernel; older ones read a prefix */
    uint64_t fs, net, scoped;
};

static int landlock_abi(void)
{
    long n = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return n > 0 ? (int)n : 0;
}

static uint64_t fs_rights(int abi)
{
    return FS_ALL_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
           (abi >= 5 ? FS_IOCTL_DEV : 0);
}

/* A path that is not there needs no rule. */
static void allow(int rules, int dir, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr a = {.parent_fd = openat(dir, path, O_PATH | O_CLOEXEC)};
    struct stat st;
    if (a.parent_fd < 0)
        return;
    if (fstat(a.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rights &=
            FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE; /* the other rights apply only to folders */
    a.allowed_access = rights;
    (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
    close(a.parent_fd);
}

/* A folder, and what links in it point to. */
static void allow_folder(int rules, const char *path)
{
    DIR *d = opendir(path);
    allow(rules, AT_FDCWD, path, FS_READ_FILE | FS_READ_DIR);
    for (struct dirent *i; d && (i = readdir(d));)
        if (i->d_type == DT_LNK)
            allow(rules, dirfd(d), i->d_name, FS_READ_FILE);
    if (d)
        closedir(d);
}

static void allow_model(int rules, const char *path)
{
    char folder[PATH_MAX];
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        allow_folder(rules, path);
    } else if (str_ends_with(path, ".onnx")) { /* its tokenizer and data lie beside it */
        const char *slash = strrchr(path, '/');
        snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
        allow_folder(rules, folder[0] ? folder : "/");
    } else {
        allow(rules, AT_FDCWD, path, FS_READ_FILE);
    }
}

/* 0: from now on only these files can be opened. */
static int confine_files(const struct sandbox_opts *o, int abi)
{
    struct ruleset set = {fs_rights(abi), abi >= 4 ? NET_ALL : 0, abi >= 6 ? SCOPE_ALL : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
    if (rules < 0)
        return SHOAL_EUNSUPPORTED;
    allow_model(rules, o->model);
    if (o->key_file)
        allow(rules, AT_FDCWD, o->key_file, FS_READ_FILE);
    if (o->cache_dir)
        allow(rules, AT_FDCWD, o->cache_dir,
              (FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_REMOVE_FILE | FS_MAKE_DIR |
               FS_MAKE_REG | FS_TRUNCATE) &
                  set.fs);
    allow(rules, AT_FDCWD, "/proc/meminfo", FS_READ_FILE);
    allow(rules, AT_FDCWD, "/proc/cpuinfo", FS_READ_FILE);
    allow(rules, AT_FDCWD, "/sys/devices/system/cpu", FS_READ_FILE | FS_READ_DIR);
    long rc = syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
    return rc == 0 ? 0 : SHOAL_EUNSUPPORTED;
}

/* ---- seccomp ---- */

#define CALL(name) SCMP_SYS(name)
static const int allowed[] = {
    /* memory */
    CALL(mmap), CALL(munmap), CALL(mremap), CALL(mprotect), CALL(madvise), CALL(brk), CALL(mlock),
    CALL(mlock2), CALL(munlock), CALL(mincore), CALL(msync), CALL(memfd_create),
    CALL(get_mempolicy), CALL(mbind),
    /* threads and time */
    CALL(futex), CALL(sched_yield), CALL(sched_getaffinity), CALL(set_robust_list), CALL(rseq),
    CALL(set_tid_address), CALL(gettid), CALL(getpid), CALL(getppid), CALL(nanosleep),
    CALL(clock_nanosleep), CALL(clock_gettime), CALL(clock_getres), CALL(gettimeofday), CALL(time),
    CALL(getcpu), CALL(membarrier), CALL(exit), CALL(exit_group), CALL(rt_sigaction),
    CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sigaltstack), CALL(restart_syscall),
    CALL(getpriority), CALL(arch_prctl),
    /* files, which Landlock limits */
    CALL(close), CALL(read), CALL(pread64), CALL(readv), CALL(preadv), CALL(write), CALL(pwrite64),
    CALL(writev), CALL(lseek), CALL(fstat), CALL(fstatfs), CALL(getdents64), CALL(getcwd),
    CALL(ftruncate), CALL(fallocate), CALL(fsync), CALL(fdatasync), CALL(rename), CALL(renameat),
    CALL(renameat2), CALL(unlink), CALL(unlinkat), CALL(mkdir), CALL(mkdirat), CALL(fadvise64),
    CALL(flock), CALL(umask), CALL(dup),
    /* the server */
    CALL(recvmsg), CALL(recvfrom), CALL(sendmsg), CALL(sendto), CALL(poll), CALL(ppoll),
    CALL(eventfd2),
    /* the machine */
    CALL(uname), CALL(sysinfo), CALL(getrandom), CALL(getrlimit), CALL(getrusage), CALL(getuid),
    CALL(geteuid), CALL(getgid), CALL(getegid)};

static int add(scmp_filter_ctx f, int call)
{
    int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, call, 0);
    return rc == -EDOM ? 0 : rc; /* this architecture does not have it */
}

/* Questions about paths; where they cannot be trapped, they are allowed, as Landlock does. */
static int add_stat(scmp_filter_ctx f)
{
    const uint32_t action = sandbox_stat_handle() == 0 ? SCMP_ACT_TRAP : SCMP_ACT_ALLOW;
    int rc = 0;
    for (size_t i = 0; sandbox_stat_calls[i] >= 0 && rc == 0; i++)
        rc = seccomp_rule_add(f, action, sandbox_stat_calls[i], 0);
    /* a descriptor that only names a file needs no right to it, and can be asked */
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, O_PATH, 0));
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
                              SCMP_A1(SCMP_CMP_MASKED_EQ, O_PATH, 0));
    return rc == -EDOM ? 0 : rc;
}

/* A thread may lower its own priority to the lowest, and choose among the CPUs only where none were
 * configured: a filter cannot read the set. */
static int add_scheduling(scmp_filter_ctx f, bool any_cpu)
{
    int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(setpriority), 3,
                              SCMP_A0(SCMP_CMP_EQ, PRIO_PROCESS, 0), SCMP_A1(SCMP_CMP_EQ, 0, 0),
                              SCMP_A2(SCMP_CMP_EQ, LOWEST_PRIORITY, 0));
    if (rc == 0 && any_cpu)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(sched_setaffinity), 1,
                              SCMP_A0(SCMP_CMP_EQ, 0, 0));
    return rc;
}

static int add_conditional(scmp_filter_ctx f)
{
    /* threads of this process, no other processes; clone3 hides its flags, so glibc is told that it
     * does not exist */
    int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (rc == 0)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                              SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0));
    /* its own limits may be read and not changed */
    if (rc == 0)
        rc =
            seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_EQ, 0, 0));
    if (rc == 0) /* the process may signal itself, for abort */
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                              SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
    /* F_GETFL and duplicates, but not F_SETFL: flags are shared with the server */
    static const int commands[] = {F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && rc == 0; i++)
        rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                              SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)commands[i], 0));
    return rc;
}

static bool has_cpus(const struct registry_apart_opts *l)
{
    for (size_t i = 0; i < sizeof(l->cpus) / sizeof(l->cpus[0]); i++)
        if (l->cpus[i])
            return true;
    return false;
}

static int confine_calls(const struct registry_apart_opts *l)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int rc = f ? 0 : -ENOMEM;
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && rc == 0; i++)
        rc = add(f, allowed[i]);
    if (rc == 0)
        rc = add_stat(f);
    if (rc == 0)
        rc = add_scheduling(f, !has_cpus(l));
    if (rc == 0)
        rc = add_conditional(f);
    if (rc == 0)
        rc = seccomp_load(f);
    if (f)
        seccomp_release(f);
    return rc == 0 ? 0 : SHOAL_EUNSUPPORTED;
}

/* ---- limits ---- */

static int set_limit(int what, size_t n)
{
    const struct rlimit r = {n, n};
    return setrlimit((__rlimit_resource_t)what, &r);
}

static int set_cpus(const struct registry_apart_opts *l, struct err *e)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (l->cpus[i / 64] >> (i % 64) & 1)
            CPU_SET(i, &set);
    if (CPU_COUNT(&set) == 0 || sched_setaffinity(0, sizeof(set), &set) == 0)
        return 0;
    return err_set(e, SHOAL_EINVAL, "this machine does not have the CPUs of 'cpus': %s",
                   strerror(errno));
}

static int limit(const struct registry_apart_opts *l, struct err *e)
{
    int rc = set_cpus(l, e);
    if (rc < 0)
        return rc;
    if (l->nice > 0 && setpriority(PRIO_PROCESS, 0, l->nice) < 0)
        return err_set(e, SHOAL_EINVAL, "cannot set the priority to %d: %s", (int)l->nice,
                       strerror(errno));
    if (set_limit(RLIMIT_CORE, 0) < 0 || set_limit(RLIMIT_NOFILE, MAX_FILES) < 0 ||
        (l->memory_bytes > 0 && set_limit(RLIMIT_AS, l->memory_bytes) < 0))
        return err_set(e, SHOAL_EINVAL, "cannot set limits: %s", strerror(errno));
    return 0;
}

/* ---- capabilities ---- */

/* As root: without them it is a user that happens to own root's files. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0); /* needs a capability, without which it is moot */
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0 ? 0 : SHOAL_EUNSUPPORTED;
}

/* ---- all ---- */

SHOAL_PRINTF(3, 4)
static void lack(char *missing, size_t cap, const char *fmt, ...)
{
    size_t n = strlen(missing);
    va_list ap;
    va_start(ap, fmt);
    if (n > 0 && n + 3 < cap)
        n += (size_t)snprintf(missing + n, cap - n, ", ");
    vsnprintf(missing + n, cap - n, fmt, ap);
    va_end(ap);
}

int sandbox_enter(const struct sandbox_opts *o, char *missing, size_t cap, struct err *e)
{
    int abi = landlock_abi();
    missing[0] = '\0';
    int rc = limit(&o->limits, e);
    if (rc < 0)
        return rc;
    if (drop_capabilities() < 0)
        lack(missing, cap, "capset (capabilities are not dropped)");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        lack(missing, cap, "no_new_privs");
    if (abi == 0 || confine_files(o, abi) < 0)
        lack(missing, cap, "Landlock (files are not confined)");
    else if (abi < 3)
        lack(missing, cap, "Landlock version 3 (it has %d: files can be truncated)", abi);
    if (confine_calls(&o->limits) < 0)
        lack(missing, cap, "seccomp (system calls are not confined)");
    return 0;
}

struct sandbox_support sandbox_support(void)
{
    /* an invalid filter address: EFAULT means that the kernel would have read it */
    bool seccomp =
        prctl(PR_SET_SECCOMP, 2 /* SECCOMP_MODE_FILTER */, NULL, 0, 0) < 0 && errno == EFAULT;
    return (struct sandbox_support){landlock_abi(), seccomp};
}
