/* --container-save: the helper is started once more, and writes the container into a squashfs file. */
#ifndef SLIPWAY_CONTAINER_SAVE_H
#define SLIPWAY_CONTAINER_SAVE_H

/* Writes the container into a squashfs file, which appears whole or not at all. Its tasks have ended, so its files are mounted once more. Gives the
   helper's exit status. */
int container_save(int state);

#endif
