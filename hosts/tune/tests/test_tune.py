# SPDX-License-Identifier: MIT
"""Tuning makes exactly the changes that it reports, is idempotent, and restores everything, even after a failure."""

import json
import re
import sys

import pytest

from hosts.tune import bursts, coalescing, offloads, routes, settings, sysctls, tcp_options
from hosts.tune import tune as program
from hosts.tune.commands import CommandError, TuneError

SHOWN = ("net/ipv4", "net/ipv6/conf/eth0")


def values(pair) -> str:
    """Everything that tuning may change at side a, as text to compare: the readable sysctls below SHOWN, the offload
    features, gso_max_segs, routes and rules.
    """
    code = f"from hosts.tune import sysctls; print(*[sysctls.read_all(d) for d in {SHOWN!r}])"
    read = pair.run("a", "python3", "-c", code).stdout
    words = ("ethtool", "-k", "eth0"), ("ip", "-4", "rule", "show"), ("ip", "-4", "route", "show", "dev", "eth0")
    return "\n".join([read, *(pair.run("a", *each).stdout for each in words), str(gso_max_segs(pair))])


def gso_max_segs(pair) -> int:
    return json.loads(pair.run("a", "ip", "-j", "-d", "link", "show", "dev", "eth0").stdout)[0]["gso_max_segs"]


def tune(pair, *words, check=True):
    done = pair.python("a", "hosts.tune.tune", *words, check=check)
    return json.loads(done.stdout) if check else done


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state.json"


@pytest.fixture
def apply(state):
    return ["apply", "--state", state, "--interface", "eth0"]


@pytest.mark.software
def test_tune__applies_once_keeps_the_first_values_and_restores_every_one(pair, state, apply):
    pair.run("a", "ip", "link", "set", "dev", "eth0", "gso_max_segs", 44)
    before = values(pair)
    words = [*apply, "--reserve-ports", "30000-30999", "--unsent-bytes", "65536", "--window-bytes", 10_000_000]
    words += ["--pacing-percent", "100"]

    first = tune(pair, *words, "--ecn", "on")
    assert first["changed"] is True
    assert first["before"]["net.ipv4.tcp_ecn"] != first["after"]["net.ipv4.tcp_ecn"] == "1"
    assert first["after"]["net.ipv4.tcp_wmem"].endswith(" 40000000")
    assert first["after"]["net.ipv4.tcp_notsent_lowat"] == "65536"
    assert [first["after"][name] for name in settings.PACING_SYSCTLS] == ["100", "100"]
    assert [first[when]["eth0 gso_max_segs"] for when in ("before", "after")] == ["44", "1"]
    tuned, saved = values(pair), state.read_text()
    assert tune(pair, *words, "--ecn", "on") == {"changed": False, "before": {}, "after": {}}
    assert (values(pair), state.read_text()) == (tuned, saved)
    features = offloads.parse(pair.run("a", "ethtool", "-k", "eth0").stdout)
    assert not any(features[name].on for name in settings.OFFLOADS_OFF)

    # Settings that change from outside are set again, other words change only what they say, and the first values stay.
    pair.run("a", "ip", "link", "set", "dev", "eth0", "gso_max_segs", 7)
    again = tune(pair, *words, "--ecn", "off")
    assert again["after"] == {"net.ipv4.tcp_ecn": "0", "eth0 gso_max_segs": "1"}
    shown = tune(pair, "show")
    assert shown["interfaces"]["eth0"].items() >= {"txqlen": 1000, "mtu": 1500, "gso_max_segs": 1}.items()
    assert shown["sysctls"]["net.ipv4.tcp_ecn"] == "0"
    assert "cubic" in shown["congestion_controls"]
    # A setting that a later call does not name goes back.
    assert tune(pair, *apply)["after"][settings.PACING_SYSCTLS[0]] == "200"

    for name in ("hosts.tune.tune", "hosts.tune.delay"):  # in another namespace, the state is left alone
        assert json.loads(pair.python("b", name, "undo", "--state", state).stdout)["changed"] is False
    assert tune(pair, "undo", "--state", state)["changed"] is True
    assert values(pair) == before
    assert not state.exists()
    assert tune(pair, "undo", "--state", state)["changed"] is False


@pytest.mark.software
def test_tune__failure_half_way_puts_back_and_names_the_key(pair, state):
    before = values(pair)
    for fault, key in (
        # the kernel refuses the last sysctl, after all other settings have been changed
        ("settings.IPV6_SYSCTLS['addr_gen_mode'] = '99'", "setting net.ipv6.conf.eth0.addr_gen_mode to '99': "),
        ("settings.GSO_MAX_SEGS = 70000", "setting gso_max_segs of eth0 to 70000: "),
    ):
        words = ["apply", "--state", str(state), "--interface", "eth0", "--tcp", "initcwnd=2"]
        words += ["--port-tcp", "sport:5201-5300:acks=each"]
        code = f"import sys; from hosts.tune import settings, tune; {fault}; sys.exit(tune.main({words!r}))"
        done = pair.run("a", "python3", "-c", code, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(f"tune: {key}")
        assert done.stderr.endswith("earlier changes of this call are undone\n")
        assert done.stderr.count("\n") == 1
        assert values(pair) == before
        assert not state.exists()


@pytest.mark.software
def test_tune__fq_is_set_and_removed_and_a_qdisc_of_the_user_is_refused(pair, state, apply):
    users = ["tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "7:", "pfifo", "limit", 99]

    def kinds():
        return [qdisc["kind"] for qdisc in tune(pair, "show")["qdiscs"] if qdisc["dev"] == "eth0"]

    before = kinds()
    pair.run("a", *users)
    refused = tune(pair, *apply, "--qdisc", "fq", check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("tune: eth0 has the root qdisc pfifo")
    assert not state.exists()
    pair.run("a", "tc", "qdisc", "del", "dev", "eth0", "root")
    first = tune(pair, *apply, "--qdisc", "fq", check=False)
    if first.returncode:
        assert "CONFIG_NET_SCH_FQ; earlier changes of this call are undone" in first.stderr
        assert not state.exists()
        pytest.skip("this kernel has no fq")
    assert json.loads(first.stdout)["after"]["eth0 qdisc"] == "fq"
    assert kinds() == ["fq"] != before
    assert tune(pair, *apply, "--qdisc", "fq")["changed"] is False
    tune(pair, "undo", "--state", state)
    assert kinds() == before

    tune(pair, *apply, "--qdisc", "fq")
    pair.run("a", *users)
    tune(pair, "undo", "--state", state)
    assert kinds() == ["pfifo"]


@pytest.mark.software
def test_tune__blackhole_discards_frames_until_undo_but_never_those_of_a_login(pair, state, apply):
    def is_reached():
        return pair.run("a", "ping", "-c1", "-W1", "10.77.0.2", check=False).returncode == 0

    words = [*apply, "--qdisc", "blackhole"]
    tune(pair, *apply)
    assert tune(pair, *words)["after"] == {"eth0 qdisc": "blackhole"}
    assert not is_reached()
    assert tune(pair, *words)["changed"] is False
    tune(pair, "undo", "--state", state)
    assert is_reached()

    program = " ".join(map(str, [sys.executable, "-m", "hosts.tune.tune", *words]))
    pair.run("a", "ip", "link", "add", "bridge", "type", "bridge")
    for interface in ("eth0", "bridge"):  # the login's interface, then the one above
        pair.run("a", "ip", "address", "replace", "10.88.0.1/24", "dev", interface)
        pair.run("a", "ip", "link", "set", interface, "up")
        for client, server, changed in (("10.88.0.2", "10.88.0.1", False), ("192.0.2.1", "192.0.2.2", True)):
            login = ["env", f"SSH_CONNECTION={client} 40000 {server} 22", "sh", "-c"]  # sudo unsets it
            done = pair.run("a", *login, f"env -u SSH_CONNECTION {program}; exit $?")
            assert ("eth0 qdisc" in json.loads(done.stdout)["after"]) == changed, (interface, client)
            tune(pair, "undo", "--state", state)
        pair.run("a", "ip", "address", "flush", "dev", "eth0")
        pair.run("a", "ip", "link", "set", "eth0", "master", "bridge")

    pair.run("a", "tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "7:", "pfifo", "limit", 99)
    assert "eth0 qdisc" not in tune(pair, *words)["after"]


@pytest.mark.software
def test_tcp_options__of_hosts_and_ports_are_set_replaced_and_undone(pair, state, apply):
    for line in routes_of(pair):
        pair.run("a", "ip", "route", "replace", *line.split(), "dev", "eth0", "initcwnd", 7)
    before, route = values(pair), routes_of(pair)
    assert all("initcwnd 7" in line for line in route)
    # Options that are no attributes of routes leave the owner's routes alone.
    frto = tune(pair, *apply, "--tcp", "sack=off", "--tcp", "frto=off")
    assert (frto["before"]["net.ipv4.tcp_frto"], frto["after"]["net.ipv4.tcp_frto"]) == ("2", "0")
    assert routes_of(pair) == route

    ports = ["--port-tcp", "dport:5201-5201:initcwnd=2,acks=delayed", "--port-tcp", "dport:5202-5210:acks=each"]
    first = tune(pair, *apply, "--tcp", "initcwnd=3", "--tcp", "acks=each", *ports)
    assert first["after"]["net.ipv4.tcp_frto"] == "2"  # restored: this experiment does not name it
    assert first["before"]["dport 5201-5201"] == "none"
    assert first["after"]["dport 5202-5210"].endswith("quickack 1")
    assert all(line.endswith("initcwnd 3 quickack 1") for line in routes_of(pair))
    assert [initcwnd(pair, port) for port in (5201, 5202, 5210, 5211)] == ["2", "", "", "3"]
    assert tune(pair, *apply, "--tcp", "initcwnd=3", "--tcp", "acks=each", *ports)["changed"] is False

    # Another experiment on the same host replaces the routes of hosts and ports.
    tune(pair, *apply, "--tcp", "initcwnd=4", "--port-tcp", "dport:5201-5202:initcwnd=10")
    assert [initcwnd(pair, port) for port in (5201, 5203)] == ["", "4"]  # 10 is the default
    tune(pair, *apply)
    assert routes_of(pair) == route
    tune(pair, *apply, "--tcp", "acks=each", *ports)
    tune(pair, "undo", "--state", state)
    assert values(pair) == before


def initcwnd(pair, port: int) -> str:
    """initcwnd of the route to `port` of the other host; '' if the route has none (Linux's default)."""
    words = "ip", "-4", "route", "get", "10.77.0.2", "ipproto", "tcp", "dport", str(port)
    match = re.search(r"initcwnd (\d+)", pair.run("a", *words).stdout)
    return match[1] if match else ""


def routes_of(pair) -> list[str]:
    return [line.strip() for line in pair.run("a", "ip", "-4", "route", "show", "dev", "eth0").stdout.splitlines()]


@pytest.mark.software
def test_offloads__on_leaves_them_and_puts_back_what_an_earlier_call_switched(pair, apply):
    before = values(pair)
    unable = tune(pair, *apply, "--rx-usecs", "20", check=False)
    assert (unable.returncode, "eth0 has no rx-usecs" in unable.stderr, values(pair)) == (1, True, before)

    features, segments = pair.run("a", "ethtool", "-k", "eth0").stdout, gso_max_segs(pair)
    assert not any(name.startswith("eth0 ") for name in tune(pair, *apply, "--offloads", "on")["after"])
    assert tune(pair, *apply)["after"]["eth0 gso"] == "off"
    assert gso_max_segs(pair) == 1
    assert tune(pair, *apply, "--offloads", "on")["after"]["eth0 gso"] == "on"
    assert (pair.run("a", "ethtool", "-k", "eth0").stdout, gso_max_segs(pair)) == (features, segments)


def test_options__bad_ones_are_named_and_nothing_is_written(tmp_path, capsys):
    for words in (
        ["--interface", "eth7"],
        ["--interface", "../lo"],
        ["--reserve-ports", "5-3"],
        ["--window-bytes", "10kB"],
        ["--ecn", "red"],
        ["--pacing-percent", "1001"],
        ["--tcp", "window=2"],
        ["--tcp", "acks=all"],
        ["--port-tcp", "dport:5201-5200:acks=each"],
        ["--port-tcp", "dport:1-70000:acks=each"],
        ["--port-tcp", "dport:1-2:sack=off"],  # belongs to the whole host
    ):
        with pytest.raises(SystemExit) as ended:
            program.main(["apply", "--state", str(tmp_path / "state.json"), "--interface", "lo", *words])
        assert ended.value.code == 2, words
        assert f"argument {words[0]}: " in capsys.readouterr().err, words
    assert list(tmp_path.iterdir()) == []


def test_state__of_another_program_is_refused(state, capsys):
    state.write_text("[]")
    assert program.main(["undo", "--state", str(state)]) == 1
    assert "this is not a state file of this program" in capsys.readouterr().err
    assert state.read_text() == "[]"


def test_bursts__old_kernels_and_old_ip_are_named(monkeypatch):
    """Neither an old kernel nor an old ip can run here, so their answers are simulated."""
    for refusal, shown, message in (
        ("RTNETLINK answers: Operation not supported", "[]", "to 1: RTNETLINK answers: Operation not supported: "),
        (None, '[{"gso_max_segs": 65535}]', "setting gso_max_segs of eth0 to 1: the kernel keeps 65535: "),
        (None, '[{"ifname": "eth0"}]', "reading gso_max_segs of eth0: ip does not print it: "),
    ):

        def run(*words, refusal=refusal, shown=shown):
            if "set" in words and refusal:
                raise CommandError(words, refusal)
            return shown

        monkeypatch.setattr(bursts, "run", run)
        with pytest.raises(TuneError, match=message) as raised:
            bursts.write("eth0", 1)
        assert str(raised.value).endswith(bursts.NEEDS)


def test_coalescing__is_read_back_after_a_write(monkeypatch):
    said = "Coalesce parameters for e:\nAdaptive RX: n/a  TX: n/a\nrx-usecs:\t20\nrx-frames:\tn/a\n"
    monkeypatch.setattr(coalescing, "run", lambda *words: said)
    coalescing.write("e", 20)
    with pytest.raises(TuneError, match="setting rx-usecs of e to 30: the device keeps 20"):
        coalescing.write("e", 30)


def test_sysctls__of_an_interface_with_a_dot_larger_buffers_and_nothing_of_the_whole_machine():
    assert str(sysctls.path_of("net.ipv6.conf.eth0/10.accept_ra")) == "/proc/sys/net/ipv6/conf/eth0.10/accept_ra"
    wanted = settings.wanted_sysctls(["eth0.10"], False, 1 << 20, "1-2")
    assert wanted["net.ipv6.conf.eth0/10.accept_ra"] == "0"
    assert not any(name.startswith("net.core.") or name == "net.ipv4.tcp_mem" for name in wanted)
    for name, last, may_shrink, value in (
        ("net.ipv4.tcp_rmem", "1000", False, "1 2 3000"),
        ("net.ipv4.tcp_rmem", "1000", True, "1 2 1000"),
        ("net.ipv4.tcp_rmem", "5000", False, "1 2 5000"),
        ("net.ipv4.tcp_sack", "1", True, "1"),
    ):
        present = "1 2 3000" if name.endswith("mem") else "0"
        assert sysctls.completed(name, last, present, may_shrink=may_shrink) == value


def test_offloads__groups_and_fixed_features_are_not_saved():
    text = "Features for x:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: off\n"
    text += "\ttx-checksum-sctp: on\ngeneric-receive-offload: on\nrubbish\nlarge-receive-offload: off [requested on]\n"
    features = offloads.parse(text)
    states = {"tx-checksum-ipv4": "off", "tx-checksum-sctp": "on", "gro": "on", "lro": "off"}
    assert offloads.single_states(features) == states
    assert (features["rx"].fixed, features["tx"].group, features["tx"].fixed) == (True, True, False)
    one_fixed = text.replace("sctp: on", "sctp: on [fixed]")
    assert offloads.parse(one_fixed)["tx"].fixed  # all of it that is on
    assert not offloads.parse(one_fixed.replace("ipv4: off", "ipv4: on"))["tx"].fixed


def test_tcp_options__rack_off_is_refused_where_it_has_no_effect():
    off = {"sack": "on", "rack": "off"}
    for release in ("6.17.0", "6.18.44-x", "7.0-rc1"):
        with pytest.raises(TuneError, match=r"RACK=off: Linux .* only by RACK"):
            tcp_options.check_kernel(off, release)
    for release in ("6.12.117-bufferscope", "6.1.0-40-amd64", "6.16.9"):
        tcp_options.check_kernel(off, release)
    tcp_options.check_kernel(off | {"sack": "off"}, "6.18.0")


def test_tcp_options__a_kernel_without_the_sysctl_is_named(monkeypatch):
    monkeypatch.setattr(sysctls, "read", lambda name: None if name.endswith("comp_sack_nr") else "1 1 1")
    options = program.parse(["apply", "--state", "s", "--interface", "lo", "--tcp", "comp_sack_nr=0"])
    options.tcp = dict(options.tcp)
    with pytest.raises(TuneError, match=r"net.ipv4.tcp_comp_sack_nr: this kernel \(.*\) has no such setting"):
        program.plan_sysctls(options, {})


def test_routes__only_unicast_routes_of_the_experiment_count(monkeypatch):
    lines = {
        "-4": "default via 10.0.0.1 proto static initcwnd 7 linkdown \n"
        "10.0.0.0/24 proto kernel scope link src 10.0.0.2\n",
        "-6": "fd77::/64 proto kernel metric 256 pref medium\nfe80::/64 proto kernel metric 256\n"
        "fd88::/64 proto ra metric 1024 expires 86sec\nmulticast ff00::/8 proto kernel metric 256\n",
    }
    monkeypatch.setattr(routes, "run", lambda *words: lines[words[1]])
    assert routes.read("e") == {
        "e -4 default via 10.0.0.1 proto static": {"initcwnd": "7"},
        "e -4 10.0.0.0/24 proto kernel scope link src 10.0.0.2": {},
        "e -6 fd77::/64 proto kernel metric 256 pref medium": {},
    }
    lines["-4"] = "10.9.0.0/24 proto static \n\tnexthop via 10.0.0.1 weight 1 \n"
    with pytest.raises(TuneError, match="one of several interfaces of a route"):
        routes.read("e")
