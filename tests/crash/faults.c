/* Makes one system call on files below a folder fail, as a full or broken disk does. Preloaded into a process.
 *
 * FAULTS_BELOW   the folder; calls on other files are left alone
 * FAULTS_LOG     a file that gets the name of each call below the folder, one a line (not below that folder itself)
 * FAULTS_AT      number of the call that fails, from 1; 0 for none
 * FAULTS_ERRNO   what it fails with
 * FAULTS_HOW     "once"; "on" for this call and all that follow; "short" for a write that does half of its work, and all
 *                that follow fail; "late" for a call that does its work and reports a failure all the same
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
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static long count;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int is_below(const char *path) {
    const char *folder = getenv("FAULTS_BELOW");
    return folder && path && !strncmp(path, folder, strlen(folder));
}

static int is_open_below(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

enum verdict { WORKS, FAILS, WORKS_HALF, WORKS_AND_FAILS };

/* Counts a call below the folder and says what becomes of it. */
static enum verdict judge(const char *name) {
    const char *at = getenv("FAULTS_AT"), *how = getenv("FAULTS_HOW"), *log = getenv("FAULTS_LOG");
    pthread_mutex_lock(&counting);
    long number = ++count, target = at ? atol(at) : 0;
    if (log) {
        int descriptor = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        char line[32];
        int length = snprintf(line, sizeof line, "%s\n", name);
        if (descriptor >= 0) {
            syscall(SYS_write, descriptor, line, length);
            syscall(SYS_close, descriptor);
        }
    }
    pthread_mutex_unlock(&counting);
    if (!target || number < target || !how) return WORKS;
    if (number > target) return strcmp(how, "on") && strcmp(how, "short") ? WORKS : FAILS;
    if (!strcmp(how, "short")) return WORKS_HALF;
    return strcmp(how, "late") ? FAILS : WORKS_AND_FAILS;
}

static int failed(void) {
    const char *number = getenv("FAULTS_ERRNO");
    errno = number ? atoi(number) : EIO;
    return -1;
}

/* A call that does its work or not. */
#define WHOLE(name, below, call)                           \
    do {                                                   \
        if (!(below)) return call;                         \
        enum verdict verdict = judge(#name);               \
        if (verdict == FAILS || verdict == WORKS_HALF) return failed(); \
        __typeof__(call) result = call;                    \
        return verdict == WORKS ? result : failed();       \
    } while (0)

ssize_t write(int descriptor, const void *data, size_t size) {
    if (!is_open_below(descriptor)) return REAL(write)(descriptor, data, size);
    switch (judge("write")) {
    case FAILS: return failed();
    case WORKS_HALF: return size < 2 ? failed() : REAL(write)(descriptor, data, size / 2);
    case WORKS_AND_FAILS: REAL(write)(descriptor, data, size); return failed();
    default: return REAL(write)(descriptor, data, size);
    }
}

int fdatasync(int descriptor) { WHOLE(fdatasync, is_open_below(descriptor), REAL(fdatasync)(descriptor)); }
int fsync(int descriptor) { WHOLE(fsync, is_open_below(descriptor), REAL(fsync)(descriptor)); }
int ftruncate(int descriptor, off_t size) {
    WHOLE(ftruncate, is_open_below(descriptor), REAL(ftruncate)(descriptor, size));
}
int ftruncate64(int descriptor, off_t size) {
    WHOLE(ftruncate, is_open_below(descriptor), REAL(ftruncate64)(descriptor, size));
}
int rename(const char *from, const char *to) { WHOLE(rename, is_below(to), REAL(rename)(from, to)); }
int link(const char *from, const char *to) { WHOLE(link, is_below(to), REAL(link)(from, to)); }
int unlink(const char *path) { WHOLE(unlink, is_below(path), REAL(unlink)(path)); }
int mkdir(const char *path, mode_t mode) { WHOLE(mkdir, is_below(path), REAL(mkdir)(path, mode)); }

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    WHOLE(open, (flags & O_CREAT) && is_below(path), REAL(open)(path, flags, mode));
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    WHOLE(open, (flags & O_CREAT) && is_below(path), REAL(open64)(path, flags, mode));
}
