// A process in state D by its own doing. usage: waits child SECONDS TIMES | seccomp
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static int listener;
static pthread_t asks;

static void ignore(int number) {
	(void)number;
}

// Takes the notification and never answers it. A signal has who waits for the answer look again: from now on it cannot be interrupted.
static void *supervise(void *unused) {
	(void)unused;
	struct seccomp_notif request = {0};
	while (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
		memset(&request, 0, sizeof request);
	}
	pthread_kill(asks, SIGUSR1);
	pause();
	return NULL;
}

static void wait_for_an_answer(void) {
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	pthread_t thread;
	asks = pthread_self();
	signal(SIGUSR1, ignore);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (listener < 0 || pthread_create(&thread, NULL, supervise, NULL) != 0) {
		err(1, "seccomp");
	}
	syscall(__NR_getppid);
}

int main(int argc, char **argv) {
	if (argc == 4 && strcmp(argv[1], "child") == 0) {
		useconds_t each = (useconds_t)(atof(argv[2]) * 1e6);
		for (volatile int left = atoi(argv[3]); left > 0; left--) {
			if (vfork() == 0) {
				usleep(each);
				_exit(0);
			}
		}
	} else {
		wait_for_an_answer();
	}
	return 0;
}
