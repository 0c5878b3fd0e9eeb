/* The search keeps inputs that reach new branches (gcc calls __sanitizer_cov_trace_pc in each) and changes them at random. It ends at the first
   input that a sanitizer or a check stops, that leaves a descriptor or memory behind, or that hangs, and prints it as hex, with the seed. */
#include "harness.h"

#include <ftw.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

enum { LENGTH_MAX = 20000, KEPT_MAX = 4096, MAP = 1 << 16 };

static struct {
    const struct fuzz *target;
    unsigned long long seed, runs;
    char bytes[LENGTH_MAX + 1];
    size_t length;
} now;
static struct {
    char *bytes;
    size_t length;
} kept[KEPT_MAX];
static size_t kept_count;
static unsigned char reached[MAP];
static bool is_new;
static int hang_s = 20; /* processor time; HANG_S of the environment, for tests of this file */
static uintptr_t last_place;
static char scratch_path[256];
static int scratch_folder;

/* ---- what gcc and the sanitizers call */

size_t __sanitizer_get_current_allocated_bytes(void);
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    uintptr_t place = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__sanitizer_cov_trace_pc;
    place = (place * 0x9e3779b1u) >> 4;
    unsigned char *branch = &reached[(place ^ last_place) % MAP];
    is_new |= !*branch;
    *branch = 1;
    last_place = place >> 1;
}

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "abort_on_error=0:handle_abort=1:detect_leaks=0:detect_stack_use_after_return=1"; }

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }

/* ---- how it ends */

static void say(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return;
}

static void report(void) {
    static const char digits[] = "0123456789abcdef";
    static char hex[2 * LENGTH_MAX + 1], line[128];
    if (now.target == NULL) return;
    for (size_t i = 0; i < now.length; i++) {
        hex[2 * i] = digits[(unsigned char)now.bytes[i] >> 4];
        hex[2 * i + 1] = digits[(unsigned char)now.bytes[i] & 15];
    }
    hex[2 * now.length] = 0;
    snprintf(line, sizeof line, "\ntarget %s, seed %llu, run %llu, input in hex: ", now.target->name, now.seed, now.runs);
    now.target = NULL;
    say(line);
    say(hex);
    say("\n");
}

_Noreturn void broken(const char *file, int line, const char *what) {
    char text[512];
    snprintf(text, sizeof text, "%s:%d: does not hold: %s; errno %d\n", file, line, what, errno);
    say(text);
    report();
    _exit(1);
}

static void look_for_hang(int signal) {
    static unsigned long long runs;
    static int seconds;
    (void)signal;
    seconds = runs == now.runs ? seconds + 1 : 0;
    runs = now.runs;
    if (seconds < hang_s) return;
    say("an input takes too long\n");
    report();
    _exit(1);
}

static void watch(void) {
    const struct itimerval each_second = {{1, 0}, {1, 0}}; /* of this process, so that a busy machine is no hang */
    if (getenv("HANG_S")) hang_s = atoi(getenv("HANG_S"));
    sigaction(SIGPROF, &(struct sigaction){.sa_handler = look_for_hang, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_PROF, &each_second, NULL);
}

/* ---- for the programs */

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *place) {
    (void)found, (void)kind, (void)place;
    return remove(path);
}

static void remove_scratch(void) { nftw(scratch_path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

int scratch(void) { return scratch_folder; }

static void make_scratch(void) {
    const char *above = getenv("TMPDIR");
    snprintf(scratch_path, sizeof scratch_path, "%.200s/slipway-XXXXXX", above ? above : "/tmp");
    CHECK(mkdtemp(scratch_path));
    atexit(remove_scratch);
    scratch_folder = open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(scratch_folder >= 0);
}

FILE *as_file(const char *text, size_t length) {
    FILE *file = length ? fmemopen((void *)(uintptr_t)text, length, "r") : fopen("/dev/null", "re");
    CHECK(file);
    return file;
}

/* ---- the search */

static uint64_t random_state;

static uint64_t draw(uint64_t below) { /* splitmix64 */
    uint64_t value = random_state += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return below ? (value ^ value >> 31) % below : 0;
}

static void insert(size_t at, const char *bytes, size_t length) {
    if (length > LENGTH_MAX - now.length) length = LENGTH_MAX - now.length;
    memmove(now.bytes + at + length, now.bytes + at, now.length - at);
    memcpy(now.bytes + at, bytes, length);
    now.length += length;
}

static void cut(size_t at, size_t length) {
    memmove(now.bytes + at, now.bytes + at + length, now.length - at - length);
    now.length -= length;
}

static void insert_word(size_t at) {
    const char *const *words = now.target->words;
    size_t count = 0;
    while (words[count]) count++;
    if (count == 0) return;
    const char *word = words[draw(count)];
    insert(at, word, strlen(word));
}

/* Lengths around those that buffers of 16 to 4096 bytes have. */
static void insert_run(size_t at) {
    static char run[LENGTH_MAX];
    size_t length = ((size_t)16 << draw(10)) + draw(5) - 2;
    if (length > sizeof run) length = sizeof run;
    memset(run, "a/0. \n"[draw(6)], length);
    insert(at, run, length);
}

static void change(void) {
    static const char *const numbers[] = {"0", "-1", "4294967295", "4294967296", "18446744073709551615", "99999999999999999999"};
    static const char signs[] = "\0\n\t :=/,-+.#@_%0129aZ\177\377";
    static char copy[LENGTH_MAX];
    size_t at = draw(now.length + 1), length = now.length - at ? draw(now.length - at) + 1 : 0;
    const char byte = draw(2) ? (char)draw(256) : signs[draw(sizeof signs)];
    const char *number = numbers[draw(sizeof numbers / sizeof *numbers)];
    switch (draw(9)) {
    case 0: if (at < now.length) now.bytes[at] = byte; break;
    case 1: insert(at, &byte, 1); break;
    case 2: cut(at, length > 8 && draw(4) ? draw(8) : length); break;
    case 3: memcpy(copy, now.bytes + at, length), insert(draw(now.length + 1), copy, length); break;
    case 4: case 5: insert_word(at); break;
    case 6: insert_run(at); break;
    case 7: insert(at, number, strlen(number)); break;
    default: if (kept_count) { size_t other = draw(kept_count); cut(at, length); insert(at, kept[other].bytes, kept[other].length); }
    }
}

/* Bytes that it keeps. */
static long run_once(void) {
    size_t before = __sanitizer_get_current_allocated_bytes();
    char *text = malloc(now.length + 1); /* of just this size: a read behind it is seen */
    CHECK(text);
    memcpy(text, now.bytes, now.length);
    text[now.length] = 0;
    last_place = 0;
    now.target->run(text, now.length);
    free(text);
    return (long)(__sanitizer_get_current_allocated_bytes() - before);
}

static int lowest_free(void) {
    int found = fcntl(STDERR_FILENO, F_DUPFD, 0);
    close(found);
    return found;
}

/* True where it came to a branch that none before it did. */
static bool try(void) {
    static int free_before = -1;
    if (free_before < 0) free_before = lowest_free();
    is_new = false;
    now.runs++;
    /* What is kept once, a locale for one, is no leak; what is kept at each run is. */
    if (run_once() > 0 && run_once() > 0 && run_once() > 0) CHECK(!"memory is not freed");
    if (lowest_free() != free_before) CHECK(!"a descriptor is not closed");
    return is_new;
}

static void keep(void) {
    size_t place = kept_count < KEPT_MAX ? kept_count++ : draw(KEPT_MAX);
    free(kept[place].bytes);
    kept[place].bytes = malloc(now.length + 1);
    CHECK(kept[place].bytes);
    memcpy(kept[place].bytes, now.bytes, now.length);
    kept[place].length = now.length;
}

static void load(const char *bytes, size_t length) {
    now.length = length < LENGTH_MAX ? length : LENGTH_MAX;
    memcpy(now.bytes, bytes, now.length);
}

static void search(double seconds) {
    struct timespec begun, at;
    for (const char *const *word = now.target->words; *word; word++) {
        load(*word, strlen(*word));
        try();
        keep();
    }
    load("", 0);
    try();
    keep();
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        size_t from = draw(kept_count);
        load(kept[from].bytes, kept[from].length);
        for (size_t changes = 1 + draw(6); changes--;) change();
        if (try()) keep();
        clock_gettime(CLOCK_MONOTONIC, &at);
    } while ((double)(at.tv_sec - begun.tv_sec) + (double)(at.tv_nsec - begun.tv_nsec) / 1e9 < seconds);
    printf("target %s, seed %llu: %llu runs, %zu inputs kept\n", now.target->name, now.seed, now.runs, kept_count);
}

static void replay(const char *hex) {
    unsigned byte;
    for (; now.length < LENGTH_MAX && sscanf(hex, "%2x", &byte) == 1; hex += 2) now.bytes[now.length++] = (char)byte;
    try();
}

static const struct fuzz *find(const char *name) {
    for (const struct fuzz *each = fuzzes; each->name; each++)
        if (strcmp(each->name, name) == 0) return each;
    fprintf(stderr, "no target is called %s\n", name);
    exit(2);
}

int main(int count, char **words) {
    __sanitizer_set_death_callback(report);
    make_scratch();
    watch();
    if (count == 2 && strcmp(words[1], "check") == 0) {
        int free_before = lowest_free();
        check();
        CHECK(lowest_free() == free_before);
    } else if (count == 2 && strcmp(words[1], "list") == 0) {
        for (const struct fuzz *each = fuzzes; each->name; each++) puts(each->name);
    } else if (count == 5 && strcmp(words[1], "fuzz") == 0) {
        now.target = find(words[2]);
        random_state = now.seed = strtoull(words[4], NULL, 10);
        search(atof(words[3]));
    } else if (count == 4 && strcmp(words[1], "replay") == 0) {
        now.target = find(words[2]);
        replay(words[3]);
    } else {
        fprintf(stderr, "usage: %s check | list | fuzz TARGET SECONDS SEED | replay TARGET HEX\n", words[0]);
        return 2;
    }
    return 0;
}
