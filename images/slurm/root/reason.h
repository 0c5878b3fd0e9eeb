/* Why something failed, in words for a person. A function that fails returns -1 after root_fail; who called from outside tells it. */
#ifndef SLIPWAY_REASON_H
#define SLIPWAY_REASON_H

/* Keeps the text as one more line and gives -1. */
int root_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The lines kept so far, without a line feed at the end. */
const char *root_reason(void);

void root_reason_clear(void);

#endif
