#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "container_environment.h"
#include "container_flags.h"
#include "container_helper.h"
#include "container_state.h"
#include "owned.h"
#include "reason.h"

static void __attribute__((noreturn)) end(bool speaks) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (speaks && *root_reason()) dprintf(2, "slipway: %s: %s\n", host, root_reason());
    _exit(1);
}

static int join(struct container_spaces *spaces) {
    if (setns(spaces->users, CLONE_NEWUSER) < 0 || setns(spaces->mounts, CLONE_NEWNS) < 0) return root_fail("entering the container: %m");
    container_close_spaces(spaces);
    return 0;
}

/* Of the ids that a container's root can give to files and take itself there is one. Package managers want more: they are told that they got it. */
static int feign_owners(void) {
    static const unsigned feigned[] = {
#ifdef SYS_chown
        SYS_chown, SYS_lchown,
#endif
        SYS_fchown, SYS_fchownat, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid, SYS_setfsgid};
    enum { COUNT = sizeof feigned / sizeof *feigned };
#if defined __x86_64__
    const unsigned machine = AUDIT_ARCH_X86_64;
#elif defined __aarch64__
    const unsigned machine = AUDIT_ARCH_AARCH64;
#else
    return 0;
#endif
    struct sock_filter rules[COUNT + 5]; /* read the machine, compare, read the call, compare with each, allow, feign */
    size_t at = 0;
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    rules[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 0, COUNT + 1);
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT; i++) rules[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, feigned[i], (unsigned char)(COUNT - i), 0);
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO);
    struct sock_fprog filter = {.len = (unsigned short)at, .filter = rules};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 ? 0 : root_fail("--container-remap-root: seccomp: %m");
}

/* Whether the step may use the container as others left it; `runs`: another step does. */
static int check_use(int state, bool runs) {
    if (container_asked->use == CONTAINER_CREATE && faccessat(state, "image", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return root_fail("--container-name=%s:create: the job has a container of that name: leave out :create to use it", container_asked->name);
    if (container_asked->use == CONTAINER_EXEC && !runs)
        return root_fail("--container-name=%s:exec: no step of the job runs in a container of that name: leave out :exec to start one", container_asked->name);
    if (container_asked->use == CONTAINER_NO_EXEC && runs)
        return root_fail("--container-name=%s:no_exec: another step runs in it, and only one container can have its files: leave out :no_exec to join it",
                         container_asked->name);
    return 0;
}

/* The step's first task on a node gives it a holder, and when that fails the others neither try again nor say so again. container_state.c has the
   states. */
static void open_container(spank_t spank, const struct container_place *place, int state, struct container_spaces *spaces) {
    owned_fd lock = container_lock_state(state);
    if (lock < 0) end(true);
    if (faccessat(state, place->failed, F_OK, AT_SYMLINK_NOFOLLOW) == 0) end(false);
    if (container_find_own(state, place, spaces)) return;
    struct container_spaces others = {-1, -1};
    bool runs = container_find_any(state, &others);
    bool has_holder = check_use(state, runs) == 0 && container_helper_hold(spank, place, lock, &others) == 0;
    container_close_spaces(&others);
    if (has_holder && container_find_own(state, place, spaces)) return;
    if (has_holder) root_fail("the container's process slipway-holder ended at once");
    owned_fd failed = openat(state, place->failed, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    end(true);
}

static volatile pid_t program;

static void pass_on(int number) {
    if (program > 0) kill(program, number);
}

/* --container-save, on the first node of the step: the task's program becomes a child of the task, which saves the container once all of the node's
   tasks have ended, and ends as its program did. Returns in the child only. */
static void stay_to_save(spank_t spank, const struct container_place *place, int state, struct container_spaces *spaces) {
    static const int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};
    int status = 0, failed = 0, task = 0;
    uint32_t node = 0;
    char **environment = NULL;
    sigset_t none;
    if (container_asked->save == NULL || spank_get_item(spank, S_JOB_NODEID, &node) != ESPANK_SUCCESS || node != 0) return;
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS) return;
    int running = openat(state, "running", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (running < 0 || flock(running, LOCK_SH) < 0) return;
    if ((program = fork()) == 0) {
        close(running);
        return;
    }
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) signal(passed[i], pass_on);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    while (program > 0 && waitpid(program, &status, 0) < 0 && errno == EINTR) continue;
    if (task == 0) {
        while (flock(running, LOCK_EX) < 0 && errno == EINTR) continue;
        failed = container_helper_save(place, environment, spaces);
    }
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : failed != 0);
}

void root_container_enter(spank_t spank) {
    static struct container_place place;
    static struct container_image image;
    root_reason_clear();
    if (container_resolve_paths() < 0) end(true);
    container_find_place(spank, &place);
    owned_fd state = container_open_state(&place);
    if (state < 0) end(true);
    struct container_spaces spaces;
    open_container(spank, &place, state, &spaces);
    container_read_image(&place, state, &image);
    stay_to_save(spank, &place, state, &spaces);
    if (join(&spaces) < 0) end(true);
    root_close_now(&state);
    container_set_environment(spank, &image);
    if (container_go_to_folder(spank, &image) < 0 || (container_asked->remap && feign_owners() < 0)) end(true);
}
