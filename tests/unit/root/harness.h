/* A test program of the shared root's C: `PROGRAM check`, `PROGRAM list`, `PROGRAM fuzz TARGET SECONDS SEED` or `PROGRAM replay TARGET HEX`. */
#ifndef SLIPWAY_HARNESS_H
#define SLIPWAY_HARNESS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A fuzz target. `text` may be written to; it ends with a zero byte after `length` others, which may be zero, too. The search starts from `words`
   and puts them into other inputs; NULL is behind the last one. */
struct fuzz {
    const char *name;
    void (*run)(char *text, size_t length);
    const char *const *words;
};

/* Each program defines both; an empty target is behind its last one. */
extern const struct fuzz fuzzes[];
void check(void);

/* Ends the program where something does not hold. */
#define CHECK(holds) ((holds) ? (void)0 : broken(__FILE__, __LINE__, #holds))
_Noreturn void broken(const char *file, int line, const char *what);

/* A folder of this run, opened; it is removed with its content at the program's end. */
int scratch(void);

/* The text as a file; the caller closes it. */
FILE *as_file(const char *text, size_t length);

#endif
