/*
 * pause is the only process of a pod's infra container: it holds the pod's IPC
 * and UTS namespaces, reaps orphans and ends on SIGTERM. Build it statically
 * (`make` here): it is the whole image. When it changes in a way that matters,
 * raise pauseVersion in nodeagent/runtime/pause.go: the tag of the image.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int sig)
{
	(void)sig;
	_exit(0);
}

static void reap(int sig)
{
	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(void)
{
	struct sigaction on_end = {.sa_handler = end};
	struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};

	if (sigaction(SIGTERM, &on_end, NULL) || sigaction(SIGINT, &on_end, NULL) ||
	    sigaction(SIGCHLD, &on_child, NULL))
		return 1;
	for (;;)
		pause();
}
