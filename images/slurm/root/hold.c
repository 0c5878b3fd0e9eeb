/* Keeps a container of any image alive, even one without a shell, while another container of its pod copies its root. Linked statically. */
#include <unistd.h>

int main(void) {
    for (;;) pause();
}
