#!/bin/sh
# SPDX-License-Identifier: MIT
# What has to be there before Ansible can run: a Python environment in .venv with the packages of the
# requirements file given. Everything else is installed by ansible/playbooks/deploy.yml.
set -eu

requirements=$1

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
	echo "bufferscope needs Python 3.11 or newer as python3 (Debian 12 has it: apt-get install python3)" >&2
	exit 1
}

if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
	if [ "$(id -u)" -ne 0 ]; then
		echo "python3-venv is missing: install it (apt-get install python3-venv), or run this as root" >&2
		exit 1
	fi
	echo "installing python3-venv"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
fi

[ -x .venv/bin/python ] || python3 -m venv .venv
echo "installing the Python packages of $requirements into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
