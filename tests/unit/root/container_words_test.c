/* What users write into the flags of containers. */
#include "container_words.c"

#include "harness.h"

static bool is_absolute(const char *path) { return path[0] == '/' && strlen(path) < CONTAINER_PATH_MAX; }

static void run_mounts(char *text, size_t length) {
    const char *rest = text;
    struct container_mount mount;
    (void)length;
    for (const char *before = rest; container_next_mount(&rest, &mount) > 0; before = rest) {
        CHECK(rest > before && rest <= text + strlen(text));
        CHECK((is_absolute(mount.source) || container_is_relative(mount.source)) && is_absolute(mount.target) && strspn(mount.target, "/") < strlen(mount.target));
    }
    root_reason_clear();
    if (container_check_mounts(text) == 0) CHECK(*text == '/' || *text == '.');
    root_reason_clear();
}

static void run_words(char *text, size_t length) {
    (void)length;
    char name[CONTAINER_NAME_MAX + 1];
    enum container_use use;
    if (container_read_name(text, name, &use) == 0) CHECK(*name && *name != '.' && !strpbrk(name, ":/\n \t") && use <= CONTAINER_NO_EXEC);
    if (container_check_env(text) == 0) CHECK(*text && !strpbrk(text, "= \n"));
    if (container_check_image(text) == 0) CHECK(*text && *text != '-' && !strpbrk(text, " \n\t"));
    if (container_check_path("container-save", text) == 0) CHECK(is_absolute(text) && !strchr(text, '\n'));
    if (container_check_file("container-save", text) == 0) CHECK((*text == '/' || *text == '.') && !strchr(text, '\n'));
    container_list_has(text, "HOME", 4);
    container_keeps(text, strlen(text));
    CHECK(!container_drops(text, strlen(text)) || !container_keeps(text, strlen(text)));
    root_reason_clear();
}

static const char *const mounts[] = {"/a:/b:ro,/c", "/data/set:/data:ro+rbind", "/a", "./a:/b:rprivate", ":", ",", "+", "rw", NULL};
static const char *const words[] = {"box-1.2_3", "box:no_exec", "../x.sqsh", "PATH,HOME", "docker://registry.example.com/a:1", "/home/alice/x.sqsh", "SLURM_JOB_ID", NULL};
const struct fuzz fuzzes[] = {{"container-mounts", run_mounts, mounts}, {"container-words", run_words, words}, {0}};

static int mounts_of(const char *text) {
    int result = container_check_mounts(text);
    root_reason_clear();
    return result;
}

static bool names(const char *text, const char *wanted, enum container_use wanted_use) {
    char name[CONTAINER_NAME_MAX + 1];
    enum container_use use;
    int result = container_read_name(text, name, &use);
    root_reason_clear();
    return result == 0 && strcmp(name, wanted) == 0 && use == wanted_use;
}

void check(void) {
    struct container_mount mount;
    CHECK(names("box", "box", CONTAINER_AUTO) && names("box:auto", "box", CONTAINER_AUTO) && names("box:create", "box", CONTAINER_CREATE));
    CHECK(names("box:exec", "box", CONTAINER_EXEC) && names("box:no_exec", "box", CONTAINER_NO_EXEC));
    CHECK(!names("box:", "box", CONTAINER_AUTO) && !names("box:run", "box", CONTAINER_AUTO) && !names(":exec", "", CONTAINER_EXEC) && !names("../x", "../x", CONTAINER_AUTO));
    CHECK(container_is_relative(".") && container_is_relative("../x") && !container_is_relative(".x") && !container_is_relative(".../x") && !container_is_relative("x"));
    CHECK(container_check_image("dockerd://a:1") < 0 && container_check_image("./a.sqsh") == 0 && container_check_image("docker://a/b:1") == 0);
    CHECK(container_check_file("container-save", "./x") == 0 && container_check_path("container-workdir", "./x") < 0);
    const char *text = "/a/b:/c:ro,/d";
    CHECK(container_next_mount(&text, &mount) == 1 && strcmp(mount.source, "/a/b") == 0 && strcmp(mount.target, "/c") == 0 && mount.is_read_only);
    CHECK(container_next_mount(&text, &mount) == 1 && strcmp(mount.source, "/d") == 0 && strcmp(mount.target, "/d") == 0 && !mount.is_read_only);
    CHECK(container_next_mount(&text, &mount) == 0);
    CHECK(mounts_of("/a:/") < 0 && mounts_of("a:/b") < 0 && mounts_of("/a:/b:rx") < 0 && mounts_of("/a:/b:ro:x") < 0 && mounts_of("") < 0);
    CHECK(mounts_of("/a:/b:rw+rbind,/c:/d:ro") == 0 && mounts_of("./a:/b:ro+rprivate+x-create=auto,..:/c") == 0 && mounts_of("./a") < 0);
    CHECK(container_list_has("A,BC", "BC", 2) && !container_list_has("A,BC", "B", 1) && !container_list_has(NULL, "A", 1));
    CHECK(container_keeps("SLURM_JOB_ID", 12) && container_keeps("PMIX_RANK", 9) && container_keeps("CUDA_VISIBLE_DEVICES", 20));
    CHECK(!container_keeps("PATH", 4) && !container_keeps("USERS", 5));
    CHECK(container_drops("BASH_ENV", 8) && container_drops("LMOD_CMD", 8) && container_drops("BASH_FUNC_ml%%", 14) && !container_drops("BASH_FUNC_mine%%", 16));
    root_reason_clear();
}
