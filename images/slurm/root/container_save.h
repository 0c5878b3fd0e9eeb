/* --container-save: the helper is started once more, and writes the container into a squashfs file. */
#ifndef SLIPWAY_CONTAINER_SAVE_H
#define SLIPWAY_CONTAINER_SAVE_H

/* Writes the container into a squashfs file, which appears whole or not at all. The step's tasks have ended, its holder lives. Gives the
   helper's exit status. */
int container_save(int state);

#endif
