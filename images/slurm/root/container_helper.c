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

/* Starts the helper, not as a child of the task: a program that waits for its children must not meet it. It says by one byte that it is ready. */
static int start_helper(char **words, char **environment) {
    int ends[2], status;
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) return root_fail("pipe: %m");
    owned_fd answer = ends[0], to_answer = ends[1];
    pid_t child = fork();
    if (child < 0) return root_fail("fork: %m");
    if (child == 0) {
        if (fork() != 0) _exit(0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        int null = open("/dev/null", O_RDONLY);
        dup2(null, 0);
        int ready = fcntl(to_answer, F_DUPFD, 10), room = fcntl(container_room_end(), F_DUPFD, 10);
        dup2(ready, CONTAINER_FD_READY);
        if (room >= 0) dup2(room, CONTAINER_FD_ROOM);
        close_range(CONTAINER_FD_ROOM + (room >= 0), ~0U, 0);
        execve(HELPER, words, environment);
        dprintf(2, "slipway: this root has no " HELPER ": %s\n", strerror(errno));
        _exit(1);
    }
    root_close_now(&to_answer);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    ssize_t got;
    while ((got = read(answer, &byte, 1)) < 0 && errno == EINTR) continue;
    return got == 1 ? 0 : -1; /* it has said why */
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

int container_helper_make(spank_t spank, const struct container_place *place) {
    static char room[4 * CONTAINER_LIST_MAX], passwd[2048], group[512], script[ROOT_PATH_MAX], record[256], tasks[16], host[256];
    char *words[40] = {"slipway-container"};
    const struct passwd *person = container_asked->home ? getpwuid(getuid()) : NULL;
    if (container_asked->home && person == NULL) return root_fail("--container-mount-home: nobody knows this user's home");
    uint32_t count = 1;
    gethostname(host, sizeof host - 1);
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &count) != ESPANK_SUCCESS || count == 0) count = 1;
    snprintf(tasks, sizeof tasks, "%u", count);
    if (container_asked->image) snprintf(record, sizeof record, "%s/jobs/%u/ref-%016llx", place->user_folder, place->job, hash(container_asked->image));
    const char *const pairs[] = {
        "base",    place->user_folder,
        "state",   place->path,
        "step",    place->step,
        "node",    host,
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
        "tasks",   tasks,
        "remap",   container_asked->remap ? "" : NULL,
        "readonly", container_asked->readonly ? "" : NULL,
    };
    fill_words(words + 1, room, sizeof room, pairs, sizeof pairs / sizeof *pairs);
    char **environment = NULL; /* the job's: its HOME has the logins */
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || environment == NULL) return root_fail("Slurm gives no environment");
    return start_helper(words, environment);
}

int container_helper_save(const struct container_place *place, char **environment) {
    char *words[8] = {"slipway-container"}, host[256] = "";
    static char room[3 * CONTAINER_PATH_MAX];
    int status = -1;
    gethostname(host, sizeof host - 1);
    const char *const pairs[] = {"base", place->user_folder, "state", place->path, "step", place->step, "node", host, "save", container_asked->save};
    fill_words(words + 1, room, sizeof room, pairs, sizeof pairs / sizeof *pairs);
    pid_t child = fork();
    if (child == 0) {
        execve(HELPER, words, environment);
        _exit(1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}
