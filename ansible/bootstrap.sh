#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs Python and, in .venv, the packages of a requirements file: Ansible needs both. deploy.yml installs the rest,
# but needs root, so an ordinary user gets one error here that names all missing packages.
#   bootstrap.sh FILE         installs both (Python only as root); unless root, also checks the packages of deploy.yml
#   bootstrap.sh FILE alone   does not check those packages: any machine with Python can analyse stored runs
#   bootstrap.sh deploy       as bootstrap.sh FILE, but makes no environment
set -eu

[ -n "${BUFFERSCOPE_LOCKED:-}" ] || exec "$(dirname "$0")/locked.sh" ansible/bootstrap.sh "$@"
requirements=$1
alone=${2:-}
cd "$(dirname "$0")/.."

# Prints the packages of the named parts; without names, of all parts of this machine in the lab. awk reads the file of
# the role packages, because no YAML parser is installed yet.
wanted() {
	lab=$(sed -n 's/^packages_groups: *\[\(.*\)\].*/\1/p' ansible/inventories/lab/group_vars/machines.yml)
	awk -v "groups=${*:-$lab}" '
		BEGIN { count = split(groups, names, /[ ,]+/); for (i = 1; i <= count; i++) plays[names[i]] = 1 }
		{ sub(/#.*/, "") }
		/^[a-z]/ { inside = /^packages_by_group:/; next }
		!inside { next }
		match($0, /^  [a-z_0-9]+:/) { group = substr($0, 3, RLENGTH - 3); $0 = substr($0, RLENGTH + 1) }
		group in plays { gsub(/[][,]/, " "); print }
	' ansible/roles/packages/defaults/main.yml
}

lacking() {
	for package in $(wanted "$@" | tr ' ' '\n' | sort -u); do
		is_installed "$package" || printf '%s ' "$package"
	done
}

is_installed() {
	case $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$1" 2>/dev/null) in
	ii*) return 0 ;;
	esac
	return 1
}

# A minimal Debian has no Python, other installations lack venv. Replacing a python3 that is too old is up to the user.
missing=
if ! command -v python3 >/dev/null; then
	missing="python3 python3-venv"
elif python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	python3 -c 'import ensurepip, venv' 2>/dev/null || missing=python3-venv
fi

if [ "$(id -u)" -ne 0 ]; then
	if [ "$alone" != alone ] && command -v dpkg-query >/dev/null; then
		missing="$missing${missing:+ }$(lacking)"
	fi
	missing=${missing% }
	if [ -n "$missing" ]; then
		echo "error: these Debian packages are missing: $missing; install them as root: apt-get install $missing" >&2
		exit 1
	fi
elif [ -n "$missing" ]; then
	echo "installing $missing"
	apt-get update -qq
	# shellcheck disable=SC2086 # two names
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
fi

# Only tests of HTML pages need the packages of `testers`. Without them these tests are skipped visibly.
if [ "$(basename "$requirements")" = requirements-dev.txt ] && command -v dpkg-query >/dev/null; then
	for_tests=$(lacking testers)
	if [ -n "$for_tests" ] && [ "$(id -u)" -eq 0 ]; then
		echo "installing ${for_tests% }"
		# shellcheck disable=SC2086 # some names
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $for_tests; } >/dev/null ||
			echo "warning: ${for_tests% } could not be installed; the tests that need them will be skipped" >&2
	elif [ -n "$for_tests" ]; then
		echo "note: tests that need ${for_tests% } will be skipped; to run them, as root: apt-get install ${for_tests% }"
	fi
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
	echo "bufferscope needs Python 3.11 or newer as python3; this one is $(python3 --version)" >&2
	exit 1
}

[ "$requirements" != deploy ] || exit 0

[ -x .venv/bin/python ] || python3 -m venv .venv
echo "installing the Python packages of $requirements into .venv"
# ns-3's Python bindings, and the compiler that they need, are not for us: its wheel has the libraries.
if [ "$requirements" = requirements-ns3.txt ]; then deps=--no-deps; else deps=; fi
# shellcheck disable=SC2086 # an option or none
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile $deps --requirement "$requirements"
# On all processors, which pip does not do, and without tests; the project's own packages, too: programs in a virtual
# machine cannot store what they compile. A few packages have files that no Python compiles: templates.
.venv/bin/python -m compileall -q -j 0 -x '/(tests|testing|ns3)/' .venv/lib analysis bench bufferscope captures \
	controlplane experiments hosts lib model p4src runs softswitch virtual wire >/dev/null || true
# The project itself, in place. Its dependencies and setuptools are installed by now, so this needs no network.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
