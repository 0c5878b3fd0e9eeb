/* Trees of users' that root is to remove. A prolog or epilog takes one out of its user's reach by one rename, on the same disk, and never looks into it:
   its user can go on adding to it, by a folder that a process has open. The remover (remover.c) removes it later, each user's in turns of a bounded
   time. It may be killed at any moment, follows no link, and takes neither stack nor descriptors for depth. */
#ifndef SLIPWAY_GONE_H
#define SLIPWAY_GONE_H

#include <stdbool.h>
#include <sys/types.h>

/* In a folder of root's: what has gone from there. Only root enters it. */
#define ROOT_GONE ".gone"

/* Opens it, and makes it where missing. */
int root_gone_open(int base);

/* Takes `name` of the folder `parent`, whatever it is; 0 also where there is none. */
int root_gone_put(int base, uid_t user, int parent, const char *name);

/* How many of a user's trees wait, up to `most`. */
unsigned root_gone_count(int base, uid_t user, unsigned most);

bool root_gone_is_empty(int base);

/* One turn of `seconds` for each user who has something there. */
enum root_gone { GONE_EMPTY, GONE_LEFT, GONE_STUCK /* something is left, and nothing could be removed */ };
enum root_gone root_gone_remove(int base, double seconds);

#endif
