// SPDX-License-Identifier: MIT
// The lock is an flock on the directory of instances: the kernel releases it when its holder dies.
#include "instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/privileges.h"
#include "../../lib/report.h"

#define PREFIX "bufferscope-"

enum {
	TRIES = 500, /* 10 ms apart: to get the lock, or to remove an instance that has an open file */
	NAMES = 64,  /* names to try: tracers in two PID namespaces can have the same pid */
};

static void pause_10ms(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	nanosleep(&pause, NULL);
}

static int lock(int instances)
{
	for (int tries = 0; flock(instances, LOCK_EX | LOCK_NB); tries++) {
		if (errno != EWOULDBLOCK || tries == TRIES) {
			complain("locking the instances of tracefs: %s: another tracer is just starting; try "
				 "again",
				 strerror(errno));
			return -EBUSY;
		}
		pause_10ms();
	}
	return 0;
}

static bool is_in_use(int instances, const char *name)
{
	int dir = openat(instances, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool used = dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;

	if (dir >= 0)
		close(dir);
	return used;
}

/* Calls `found` for each instance that no living tracer has. */
static void for_each_stale(int instances, void (*found)(int instances, const char *name))
{
	int fd = openat(instances, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)) && !is_in_use(instances, entry->d_name))
			found(instances, entry->d_name);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
}

static void report_removed(int instances, const char *name)
{
	if (!unlinkat(instances, name, AT_REMOVEDIR))
		complain("removed tracefs instance %s, which a killed tracer had left", name);
}

static void print(int instances, const char *name)
{
	(void)instances;
	puts(name);
}

static void print_removed(int instances, const char *name)
{
	for (int tries = 0; tries < TRIES; tries++) { /* the tracer may be just ending */
		if (!unlinkat(instances, name, AT_REMOVEDIR)) {
			puts(name);
			return;
		}
		if (errno != EBUSY)
			break;
		pause_10ms();
	}
	complain("removing tracefs instance %s: %s: end the program that has its files open", name,
		 strerror(errno));
}

int instances_stale(int tracefs, bool remove)
{
	int instances = openat(tracefs, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = instances < 0 ? -errno : 0;

	if (err)
		complain("opening the instances of tracefs: %s: run as root", strerror(-err));
	if (!err)
		err = lock(instances);
	if (!err)
		for_each_stale(instances, remove ? print_removed : print);
	if (instances >= 0)
		close(instances);
	return err;
}

static int make_directory(struct instance *instance)
{
	int err = -EEXIST;

	for (int number = 0; err == -EEXIST && number < NAMES; number++) {
		snprintf(instance->name, sizeof(instance->name), PREFIX "%d-%d", (int)getpid(), number);
		err = mkdirat(instance->instances, instance->name, 0700) ? -errno : 0;
	}
	if (err) {
		complain("making tracefs instance %s: %s: run as root, on Linux 5.0 or later with "
			 "CONFIG_TRACING",
			 instance->name, strerror(-err));
		instance->name[0] = '\0';
	}
	return err;
}

/* Closes every descriptor above stderr but two; before Linux 5.9 only those below 4096. */
static void close_others(int kept, int also_kept)
{
	int first = kept < also_kept ? kept : also_kept, second = kept < also_kept ? also_kept : kept;
	long most = sysconf(_SC_OPEN_MAX);

	if (first > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, first - 1, 0);
	if (second > first + 1)
		close_range(first + 1, second - 1, 0);
	if (!close_range(second + 1, ~0U, 0))
		return;
	for (int other = STDERR_FILENO + 1; other < most && other < 4096; other++) /* Linux before 5.9 */
		if (other != kept && other != also_kept)
			close(other);
}

/* The child: waits until the tracer's end of the pipe closes, then removes the instance. The child blocks the signals
 * that end the tracer, and has its own session, so a signal to the tracer's terminal or process group does not end the
 * child.
 */
static _Noreturn void remove_at_end(const struct instance *instance, int lifeline)
{
	int fd = open("/dev/null", O_RDWR);
	char byte;

	setsid();
	prctl(PR_SET_NAME, "tcp_trace_end");
	drop_capabilities(); /* the owner of the instance removes it */
	for (int standard = STDIN_FILENO; fd >= 0 && standard <= STDERR_FILENO; standard++)
		dup2(fd, standard);
	close_others(lifeline, instance->instances);
	while (read(lifeline, &byte, 1) < 0 && errno == EINTR)
		;
	for (int tries = 0; tries < TRIES; tries++) {
		if (!unlinkat(instance->instances, instance->name, AT_REMOVEDIR) || errno == ENOENT)
			_exit(0);
		if (errno != EBUSY)
			break;
		pause_10ms();
	}
	_exit(errno);
}

static int start_remover(struct instance *instance)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC)) {
		err = -errno;
		complain("making a pipe: %s", strerror(-err));
		return err;
	}
	instance->remover = fork();
	if (!instance->remover)
		remove_at_end(instance, ends[0]);
	err = instance->remover < 0 ? -errno : 0;
	close(ends[0]);
	instance->lifeline = ends[1];
	if (err)
		complain("starting the process that removes tracefs instance %s: %s", instance->name,
			 strerror(-err));
	return err;
}

int instance_make(struct instance *instance, int tracefs)
{
	int err;

	*instance = INSTANCE_NONE;
	instance->instances = openat(tracefs, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (instance->instances < 0) {
		err = -errno;
		complain("opening the instances of tracefs: %s: run as root", strerror(-err));
		return err;
	}
	err = lock(instance->instances);
	if (err)
		return err;
	for_each_stale(instance->instances, report_removed);
	err = make_directory(instance);
	if (!err)
		err = start_remover(instance);
	if (err)
		return err;
	instance->dir = openat(instance->instances, instance->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (instance->dir < 0) {
		err = -errno;
		complain("opening tracefs instance %s: %s", instance->name, strerror(-err));
	} else {
		flock(instance->dir, LOCK_SH | LOCK_NB);
	}
	return err;
}

void instance_settled(const struct instance *instance)
{
	flock(instance->instances, LOCK_UN);
}

static int wait_for_remover(pid_t remover)
{
	int status;

	while (waitpid(remover, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

int instance_remove(struct instance *instance)
{
	int err = 0;

	if (instance->dir >= 0)
		close(instance->dir);
	if (instance->lifeline >= 0)
		close(instance->lifeline);
	if (instance->remover > 0)
		err = wait_for_remover(instance->remover);
	else if (instance->name[0] && unlinkat(instance->instances, instance->name, AT_REMOVEDIR))
		err = -errno;
	if (err)
		complain("removing tracefs instance %s: %s: the next start tries again, or: rmdir "
			 "/sys/kernel/tracing/instances/%s",
			 instance->name, strerror(-err), instance->name);
	if (instance->instances >= 0)
		close(instance->instances);
	*instance = INSTANCE_NONE;
	return err;
}
