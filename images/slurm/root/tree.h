/* Removes a folder that users wrote to, as root: no link is followed, and neither depth nor number of files costs descriptors or stack. */
#ifndef SLIPWAY_TREE_H
#define SLIPWAY_TREE_H

int root_tree_remove(int parent, const char *name);

#endif
