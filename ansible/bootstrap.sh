#!/bin/sh
# SPDX-License-Identifier: MIT
# What has to be there before Ansible can run: Python, and an environment of it in .venv with the packages of the
# requirements file given. Everything else is installed by ansible/playbooks/deploy.yml.
set -eu

requirements=$1

# A minimal Debian has no Python at all, another one no venv; a python3 that is too old is not ours to replace.
missing=
if ! command -v python3 >/dev/null; then
	missing="python3 python3-venv"
elif python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	python3 -c 'import ensurepip, venv' 2>/dev/null || missing=python3-venv
fi

if [ -n "$missing" ]; then
	if [ "$(id -u)" -ne 0 ]; then
		echo "$missing missing: install it (apt-get install $missing), or run this as root" >&2
		exit 1
	fi
	echo "installing $missing"
	apt-get update -qq
	# shellcheck disable=SC2086 # two names
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
	echo "bufferscope needs Python 3.11 or newer as python3; this one is $(python3 --version)" >&2
	exit 1
}

[ -x .venv/bin/python ] || python3 -m venv .venv
echo "installing the Python packages of $requirements into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
