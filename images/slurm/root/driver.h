/* Driver files of the node, such as NVIDIA's: /run/nvidia/{lib,bin}, which programs/worker/share-driver.sh fills. They stay out of the shared tree;
   a node-local ld.so.cache of the version's own folders and of the driver's, over the version's own, makes programs find them. */
#ifndef SLIPWAY_DRIVER_H
#define SLIPWAY_DRIVER_H

#define ROOT_DRIVER_LIB "/run/nvidia/lib"
#define ROOT_DRIVER_BIN "/run/nvidia/bin"

/* Runs inside the version. Does nothing on a node without a driver. */
int root_driver_cache(const char *version);

#endif
