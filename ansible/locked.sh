#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a command while no other make sets up or builds this checkout: `ansible/locked.sh COMMAND ARGUMENT...`. The
# checkout's directory itself is locked: this needs no lock file, survives `make clean`, and works for every user. The
# lock lasts as long as the command and its children. A command that already runs under the lock does not wait. On a
# machine without flock nothing is locked. The environment is examined first, unless this machine lacks Python.
set -eu
cd "$(dirname "$0")/.."
if [ -z "${BUFFERSCOPE_LOCKED:-}" ]; then
	if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		python3 -m lib.inherited
	fi
	if command -v flock >/dev/null; then
		exec 9<.
		if ! flock --nonblock 9; then
			echo "waiting: another make sets up or builds $PWD" >&2
			flock 9
		fi
	fi
fi
export BUFFERSCOPE_LOCKED=1
exec "$@"
