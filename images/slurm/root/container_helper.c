#include "container_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf.h"
#include "container_ends.h"
#include "container_flags.h"
#include "container_hold.h"
#include "container_room.h"
#include "container_words.h"
#include "owned.h"
#include "reason.h"

#define HELPER "/usr/lib/slipway/container"

static void fill_words(char **words, char *room, size_t left, const char *const *pairs, size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count; i += 2) {
        if (pairs[i + 1] == NULL) continue;
        int length = snprintf(room, left, "%s%s%s", pairs[i], *pairs[i + 1] ? "=" : "", pairs[i + 1]);
        if (length < 0 || (size_t)length >= left) continue;
        words[at++] = room;
        room += length + 1;
        left -= (size_t)length + 1;
    }
    words[at] = NULL;
}

/* Puts each descriptor in its place, and closes all others. */
static void hand_over(const int fds[CONTAINER_FD_COUNT]) {
    int kept[CONTAINER_FD_COUNT];
    for (int fd = CONTAINER_FD_READY; fd < CONTAINER_FD_COUNT; fd++) kept[fd] = fds[fd] < 0 ? -1 : fcntl(fds[fd], F_DUPFD, CONTAINER_FD_COUNT);
    for (int fd = CONTAINER_FD_READY; fd < CONTAINER_FD_COUNT; fd++)
        if (kept[fd] < 0) close(fd);
        else dup2(kept[fd], fd);
    close_range(CONTAINER_FD_COUNT, ~0U, 0);
}

/* Starts the helper, not as a child of the task: a program that waits for its children must not meet it. It says by one byte that it is ready. */
static int start_helper(char **words, char **environment, int lock, const struct container_spaces *spaces) {
    int ends[2], status;
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) return root_fail("pipe: %m");
    owned_fd answer = ends[0], to_answer = ends[1];
    const int fds[CONTAINER_FD_COUNT] = {
        [CONTAINER_FD_READY] = to_answer,
        [CONTAINER_FD_ROOM] = container_room_end(),
        [CONTAINER_FD_LOCK] = lock,
        [CONTAINER_FD_END] = container_hold_end(),
        [CONTAINER_FD_USERS] = spaces->users,
        [CONTAINER_FD_MOUNTS] = spaces->mounts,
    };
    if (fds[CONTAINER_FD_END] < 0) return root_fail("slurmstepd has no socket for the holder of the container: the node's log says why");
    pid_t child = fork();
    if (child < 0) return root_fail("fork: %m");
    if (child == 0) {
        if (fork() != 0) _exit(0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        int null = open("/dev/null", O_RDONLY);
        dup2(null, 0);
        hand_over(fds);
        execve(HELPER, words, environment);
        dprintf(2, "slipway: this root has no " HELPER ": %s\n", strerror(errno));
        _exit(write(CONTAINER_FD_READY, "0", 1) != 1);
    }
    root_close_now(&to_answer);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    ssize_t got;
    while ((got = read(answer, &byte, 1)) < 0 && errno == EINTR) continue;
    if (got != 1) return root_fail("the program that makes the container %s", container_why_killed(SIGKILL));
    return byte == '1' ? 0 : -1; /* it has said why */
}

static const char *person_line(char *text, size_t room, uid_t user) {
    const struct passwd *found = getpwuid(user);
    if (found == NULL) return NULL;
    int length = snprintf(text, room, "%s:x:%u:%u::%s:/bin/sh", found->pw_name, user, found->pw_gid, found->pw_dir);
    return length > 0 && (size_t)length < room && !strchr(text, '\n') ? text : NULL;
}

static const char *group_line(char *text, size_t room, gid_t group) {
    const struct group *found = getgrgid(group);
    if (found == NULL) return NULL;
    int length = snprintf(text, room, "%s:x:%u:", found->gr_name, group);
    return length > 0 && (size_t)length < room ? text : NULL;
}

static const char *script_folder(spank_t spank, uint32_t step, char folder[ROOT_PATH_MAX]) {
    int count;
    char **words;
    if (step != SLURM_BATCH_SCRIPT || spank_get_item(spank, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS || count == 0) return NULL;
    if (words[0][0] != '/' || strlen(words[0]) >= ROOT_PATH_MAX) return NULL;
    strcpy(folder, words[0]);
    *strrchr(folder, '/') = 0;
    return *folder ? folder : NULL;
}

/* FNV-1a: names a file, nothing more; the file has the whole reference. */
static unsigned long long hash(const char *text) {
    unsigned long long value = 0xcbf29ce484222325ULL;
    for (; *text; text++) value = (value ^ (unsigned char)*text) * 0x100000001b3ULL;
    return value;
}

int container_helper_hold(spank_t spank, const struct container_place *place, int lock, const struct container_spaces *spaces) {
    static char room[4 * CONTAINER_LIST_MAX], passwd[2048], group[512], slurm[32], script[ROOT_PATH_MAX], record[256], host[256];
    char *words[40] = {"slipway-container"};
    const struct passwd *person = container_asked->home ? getpwuid(getuid()) : NULL;
    if (container_asked->home && person == NULL) return root_fail("--container-mount-home: nobody knows this user's home");
    gethostname(host, sizeof host - 1);
    snprintf(slurm, sizeof slurm, "%u %u", (unsigned)getuid(), (unsigned)getgid());
    if (container_asked->image) snprintf(record, sizeof record, "%s/jobs/%u/ref-%016llx", place->user_folder, place->job, hash(container_asked->image));
    const char *const pairs[] = {
        "base",    place->user_folder,
        "state",   place->path,
        "step",    place->step,
        "node",    host,
        "slurm",   container_asked->slurm ? slurm : NULL,
        "join",    spaces->mounts < 0 ? NULL : "",
        "image",   container_asked->image,
        "record",  container_asked->image ? record : NULL,
        "registry", *container_asked->registry ? container_asked->registry : NULL,
        "cache",   *container_asked->cache_mib ? container_asked->cache_mib : NULL,
        "home",    person ? person->pw_dir : NULL,
        "passwd",  person_line(passwd, sizeof passwd, getuid()),
        "group",   group_line(group, sizeof group, getgid()),
        "script",  script_folder(spank, place->number, script),
        "workdir", container_asked->workdir,
        "mounts",  container_asked->mounts,
        "remap",   container_asked->remap ? "" : NULL,
        "readonly", container_asked->readonly ? "" : NULL,
    };
    fill_words(words + 1, room, sizeof room, pairs, sizeof pairs / sizeof *pairs);
    char **environment = NULL; /* the job's: its HOME has the logins */
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || environment == NULL) return root_fail("Slurm gives no environment");
    return start_helper(words, environment, lock, spaces);
}

int container_helper_save(const struct container_place *place, char **environment, const struct container_spaces *spaces) {
    char *words[8] = {"slipway-container"}, host[256] = "";
    static char room[3 * CONTAINER_PATH_MAX];
    int status = -1;
    gethostname(host, sizeof host - 1);
    const char *const pairs[] = {"base", place->user_folder, "state", place->path, "step", place->step, "node", host, "save", container_asked->save};
    fill_words(words + 1, room, sizeof room, pairs, sizeof pairs / sizeof *pairs);
    int fds[CONTAINER_FD_COUNT];
    for (int fd = 0; fd < CONTAINER_FD_COUNT; fd++) fds[fd] = -1;
    fds[CONTAINER_FD_USERS] = spaces->users;
    fds[CONTAINER_FD_MOUNTS] = spaces->mounts;
    pid_t child = fork();
    if (child < 0) dprintf(2, "slipway: %s: --container-save: fork: %s\n", host, strerror(errno));
    if (child == 0) {
        hand_over(fds);
        execve(HELPER, words, environment);
        _exit(1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFSIGNALED(status)) dprintf(2, "slipway: %s: --container-save: the program that saves %s\n", host, container_why_killed(WTERMSIG(status)));
    return status;
}
