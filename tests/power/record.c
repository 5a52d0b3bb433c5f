/* Records what a process does to the files below $POWER_ROOT, in order, into $POWER_LOG; preloaded into it.
 *
 * A record is a line "KIND inode offset length length-of-path length-of-second-path\n", the paths, and for a write the
 * bytes. Mapped memory is not seen: SQLite maps nothing but its -shm file, which it makes anew after a crash.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int out = -1;
static const char *root;
static size_t root_length;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define BEGIN int saved; pthread_mutex_lock(&turn)
#define END saved = errno; pthread_mutex_unlock(&turn); errno = saved

static int ready(void) {
    if (out == -1 && (root = getenv("POWER_ROOT")) && getenv("POWER_LOG")) {
        root_length = strlen(root);
        out = syscall(SYS_openat, AT_FDCWD, getenv("POWER_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }
    return out != -1;
}

static int inside(const char *path) { return strncmp(path, root, root_length) == 0 && path[root_length] == '/'; }

/* Where a file is, with no link in its folder; empty if it is none of ours. */
static const char *where(int folder, const char *path, char *kept) {
    char whole[PATH_MAX], parent[PATH_MAX], link[64];
    if (!ready()) return NULL;
    if (path[0] == '/') snprintf(whole, sizeof whole, "%s", path);
    else {
        ssize_t length;
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        if ((length = readlink(link, parent, sizeof parent - 1)) < 0) return NULL;
        parent[length] = 0;
        snprintf(whole, sizeof whole, "%s/%s", parent, path);
    }
    for (size_t end = strlen(whole); end > 1 && whole[end - 1] == '/'; end--) whole[end - 1] = 0;
    char *slash = strrchr(whole, '/');
    if (!slash) return NULL;
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s", slash + 1);
    *slash = 0;
    if (!realpath(*whole ? whole : "/", parent)) return NULL;
    snprintf(kept, PATH_MAX * 2, "%s/%s", parent, name);
    return inside(kept) ? kept : NULL;
}

static int ours(int file, struct stat *status) {
    char link[64], path[PATH_MAX];
    ssize_t length;
    if (!ready()) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if ((length = readlink(link, path, sizeof path - 1)) < 0) return 0;
    path[length] = 0;
    return (inside(path) || strcmp(path, root) == 0) && fstat(file, status) == 0;
}

static void record(char kind, ino_t inode, off_t offset, size_t length, const char *path, const char *to, const void *data) {
    char head[160];
    int size = snprintf(head, sizeof head, "%c %llu %lld %zu %zu %zu\n", kind, (unsigned long long)inode,
                        (long long)offset, length, path ? strlen(path) : 0, to ? strlen(to) : 0);
    struct iovec parts[4] = {{head, size},
                             {(void *)path, path ? strlen(path) : 0},
                             {(void *)to, to ? strlen(to) : 0},
                             {(void *)data, data ? length : 0}};
    syscall(SYS_writev, out, parts, 4);
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char kept[PATH_MAX * 2];
    struct stat status;
    BEGIN;
    const char *mine = (flags & (O_CREAT | O_TRUNC)) ? where(folder, path, kept) : NULL;
    int known = mine && syscall(SYS_newfstatat, AT_FDCWD, mine, &status, AT_SYMLINK_NOFOLLOW) == 0;
    int file = syscall(SYS_openat, folder, path, flags, mode);
    if (file >= 0 && mine && fstat(file, &status) == 0) {
        if (!known) record('C', status.st_ino, 0, 0, mine, NULL, NULL);
        else if (flags & O_TRUNC) record('T', status.st_ino, 0, 0, NULL, NULL, NULL);
    }
    END;
    return file;
}

#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

ssize_t write(int file, const void *data, size_t length) {
    struct stat status;
    BEGIN;
    int mine = ours(file, &status) && S_ISREG(status.st_mode);
    off_t at = !mine ? 0 : (fcntl(file, F_GETFL) & O_APPEND) ? status.st_size : lseek(file, 0, SEEK_CUR);
    if (!mine) pthread_mutex_unlock(&turn); /* a pipe may wait for another thread */
    ssize_t done = syscall(SYS_write, file, data, length);
    if (!mine) return done;
    if (done > 0) record('W', status.st_ino, at, done, NULL, NULL, data);
    END;
    return done;
}

static ssize_t placed(int file, const void *data, size_t length, off_t at) {
    struct stat status;
    BEGIN;
    int mine = ours(file, &status);
    ssize_t done = syscall(SYS_pwrite64, file, data, length, at);
    if (mine && done > 0) record('W', status.st_ino, at, done, NULL, NULL, data);
    END;
    return done;
}
ssize_t pwrite(int file, const void *data, size_t length, off_t at) { return placed(file, data, length, at); }
ssize_t pwrite64(int file, const void *data, size_t length, off64_t at) { return placed(file, data, length, at); }

static int cut(int file, off_t length) {
    struct stat status;
    BEGIN;
    int mine = ours(file, &status), done = syscall(SYS_ftruncate, file, length);
    if (mine && done == 0) record('T', status.st_ino, length, 0, NULL, NULL, NULL);
    END;
    return done;
}
int ftruncate(int file, off_t length) { return cut(file, length); }
int ftruncate64(int file, off64_t length) { return cut(file, length); }

static int confirmed(int file, long call) {
    struct stat status;
    BEGIN;
    int mine = ours(file, &status), done = syscall(call, file);
    if (mine && done == 0) record('S', status.st_ino, 0, 0, NULL, NULL, NULL);
    END;
    return done;
}
int fsync(int file) { return confirmed(file, SYS_fsync); }
int fdatasync(int file) { return confirmed(file, SYS_fdatasync); }

static int named(char kind, int folder, const char *path, int other, const char *to, long call, int flags) {
    char first[PATH_MAX * 2], second[PATH_MAX * 2];
    struct stat status = {0};
    BEGIN;
    const char *mine = where(folder, path, first), *new = where(other, to, second);
    int done = call == SYS_linkat ? syscall(call, folder, path, other, to, flags) : syscall(call, folder, path, other, to);
    if (mine && new && done == 0) {
        syscall(SYS_newfstatat, AT_FDCWD, new, &status, AT_SYMLINK_NOFOLLOW);
        record(kind, status.st_ino, 0, 0, mine, new, NULL);
    }
    END;
    return done;
}
int rename(const char *path, const char *to) { return named('R', AT_FDCWD, path, AT_FDCWD, to, SYS_renameat, 0); }
int renameat(int a, const char *path, int b, const char *to) { return named('R', a, path, b, to, SYS_renameat, 0); }
int link(const char *path, const char *to) { return named('L', AT_FDCWD, path, AT_FDCWD, to, SYS_linkat, 0); }
int linkat(int a, const char *path, int b, const char *to, int flags) { return named('L', a, path, b, to, SYS_linkat, flags); }

static int removed(int folder, const char *path, int flags) {
    char kept[PATH_MAX * 2];
    BEGIN;
    const char *mine = where(folder, path, kept);
    int done = syscall(SYS_unlinkat, folder, path, flags);
    if (mine && done == 0) record('U', 0, 0, 0, mine, NULL, NULL);
    END;
    return done;
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return removed(folder, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

static int folded(int folder, const char *path, mode_t mode) {
    char kept[PATH_MAX * 2];
    struct stat status = {0};
    BEGIN;
    const char *mine = where(folder, path, kept);
    int done = syscall(SYS_mkdirat, folder, path, mode);
    if (mine && done == 0) {
        syscall(SYS_newfstatat, AT_FDCWD, mine, &status, AT_SYMLINK_NOFOLLOW);
        record('M', status.st_ino, 0, 0, mine, NULL, NULL);
    }
    END;
    return done;
}
int mkdir(const char *path, mode_t mode) { return folded(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return folded(folder, path, mode); }
