// SPDX-License-Identifier: MIT
/* Do the vector registers of threads survive page faults, system calls, context switches, signals and fork? Two threads
 * each fill registers 0 to 15 with different numbers, cause these events, and compare; then a process and its child do
 * the same. Exit status 0: no register was lost. Compile with -march=native.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__AVX512F__)
enum { WIDTH = 64 };
#define MOVE(from, to) "vmovdqu64 " from ", " to "\n\t"
#define REGISTER       "%%zmm"
#elif defined(__AVX2__)
enum { WIDTH = 32 };
#define MOVE(from, to) "vmovdqu " from ", " to "\n\t"
#define REGISTER       "%%ymm"
#else
enum { WIDTH = 16 };
#define MOVE(from, to) "movdqu " from ", " to "\n\t"
#define REGISTER       "%%xmm"
#endif
enum { REGISTERS = 16, ROUNDS = 50 };

static int failures;
static volatile sig_atomic_t signals;

#define EACH(X)	 X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n)	 MOVE(#n "*%c[width](%[bank])", REGISTER #n)
#define STORE(n) MOVE(REGISTER #n, #n "*%c[width](%[bank])")

typedef uint8_t bank[REGISTERS][WIDTH];

/* One system call between load and store, in assembly so that no compiled code touches the registers. With number -1,
 * a write to `fault`, a page never touched before, replaces the call.
 */
static void around(bank *set, bank *got, long number, long first, long second, volatile char *fault)
{
	register void *from __asm__("r8") = set;
	register void *to __asm__("r9") = got;

	__asm__ volatile(
		EACH(LOAD) "cmp $-1, %%rax\n\tje 1f\n\tsyscall\n\tjmp 2f\n1: movb $1, (%[fault])\n2:\n\t"
			   "mov %[to], %[bank]\n\t" EACH(STORE)
		: [bank] "+&r"(from), "+a"(number)
		: [to] "r"(to), [fault] "r"(fault), "D"(first), "S"(second), [width] "i"(WIDTH)
		: "rcx", "r11", "memory", "cc");
}

static void compare(const bank *set, const bank *got, const char *what)
{
	for (int i = 0; i < REGISTERS; i++)
		if (memcmp((*set)[i], (*got)[i], WIDTH)) {
			if (__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) <= 3)
				fprintf(stderr, "register %d lost over %s\n", i, what);
			return;
		}
}

static void *thread(void *number)
{
	bank set, got;

	memset(&set, 0, sizeof(set));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < REGISTERS; i++)
			memset(set[i], (int)(16 * (long)number + i + round), WIDTH);
		around(&set, &got, 24, 0, 0, NULL); /* sched_yield */
		compare(&set, &got, "sched_yield");
		around(&set, &got, 39, 0, 0, NULL); /* getpid */
		compare(&set, &got, "getpid");
		char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		around(&set, &got, -1, 0, 0, page);
		compare(&set, &got, "a page fault");
		munmap(page, 4096);
		around(&set, &got, 200, gettid(), SIGUSR1, NULL); /* tkill */
		compare(&set, &got, "a signal");
	}
	return NULL;
}

static void handler(int number)
{
	bank other;

	(void)number;
	memset(&other, 0xee, sizeof(other));
	around(&other, &other, 39, 0, 0, NULL);
	signals++;
}

int main(void)
{
	pthread_t threads[2];
	int status;

	signal(SIGUSR1, handler);
	for (long i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)i))
			return 2;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pid_t child = fork();
	if (child == 0) {
		thread((void *)5L);
		_exit(failures != 0);
	}
	thread((void *)6L);
	if (waitpid(child, &status, 0) != child || status)
		failures++;
	if (signals != 3 * ROUNDS)
		failures++;
	return failures != 0;
}
