#!/bin/sh
# SPDX-License-Identifier: MIT
# The shell of make if root runs it in another user's checkout: `ansible/owned.sh -c LINE`. What LINE makes belongs to that
# user afterwards (lib/owner.py). The line that installs Python runs without; the next line gives its files, too.
if command -v python3 >/dev/null; then
	exec python3 -m lib.owner "$2"
fi
exec /bin/sh "$@"
