/* Locks between the processes of one pod. Their files are where only root can open them: flock(2) needs no right to write, so whoever can open
   a file could hold up every job of the node. */
#ifndef SLIPWAY_LOCK_H
#define SLIPWAY_LOCK_H

/* Seconds that a lock is waited for: that of the pins is held for a moment; the holder of a job's, or of the driver's, may be running a version's
   ldconfig, which gets 60 s. */
enum { ROOT_PINS_S = 20, ROOT_LOCK_S = 100 };

/* Takes the lock of an open file or folder; it goes when that is closed. `what` names it in the reason where it cannot be had within
   `seconds`; 0 does not wait, and gives -2 without a reason where another process has it. */
int root_lock(int fd, const char *what, int seconds);

#endif
