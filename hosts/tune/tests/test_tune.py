# SPDX-License-Identifier: MIT
"""Tuning makes exactly the changes that it reports, is idempotent, and restores everything, even after a failure."""

import argparse
import json
import re

import pytest

from hosts.tune import bursts, coalescing, offloads, port_routes, routes, settings, sysctls, tcp_options
from hosts.tune.commands import CommandError, TuneError

TUNE = "hosts.tune.tune"
SHOWN = ("net/ipv4", "net/ipv6/conf/eth0")


def values(pair) -> str:
    """The readable sysctls below SHOWN, the offload features and gso_max_segs of side a, as text to compare."""
    code = (
        "from hosts.tune import sysctls; import json;"
        f"print(json.dumps([sysctls.read_all(d) for d in {SHOWN!r}], indent=1))"
    )
    features = pair.run("a", "ethtool", "-k", "eth0").stdout
    return pair.run("a", "python3", "-c", code).stdout + features + str(gso_max_segs(pair))


def gso_max_segs(pair) -> int:
    return json.loads(pair.run("a", "ip", "-j", "-d", "link", "show", "dev", "eth0").stdout)[0]["gso_max_segs"]


def tune(pair, *words, check=True):
    done = pair.python("a", TUNE, *words, check=check)
    return json.loads(done.stdout) if check else done


@pytest.mark.software
def test_tune__apply_twice_then_undo_restores_every_value(pair, tmp_path):
    state = tmp_path / "state.json"
    apply = ["apply", "--state", state, "--interface", "eth0", "--ecn", "on", "--reserve-ports", "30000-30999"]
    apply += ["--unsent-bytes", "65536"]
    before = values(pair)

    first = tune(pair, *apply, "--window-bytes", 10_000_000)
    assert first["changed"] is True
    assert first["before"]["net.ipv4.tcp_ecn"] != first["after"]["net.ipv4.tcp_ecn"] == "1"
    assert first["after"]["net.ipv4.tcp_wmem"].endswith(" 40000000")
    assert first["after"]["net.ipv4.tcp_notsent_lowat"] == "65536"
    tuned = values(pair)
    assert tune(pair, *apply, "--window-bytes", 10_000_000) == {"changed": False, "before": {}, "after": {}}
    assert values(pair) == tuned != before
    features = offloads.parse(pair.run("a", "ethtool", "-k", "eth0").stdout)
    assert not any(features[name].on for name in settings.OFFLOADS_OFF)

    assert tune(pair, "undo", "--state", state)["changed"] is True
    assert values(pair) == before
    assert not state.exists()
    assert tune(pair, "undo", "--state", state)["changed"] is False


@pytest.mark.software
def test_tune__second_apply_with_other_settings_keeps_the_first_values(pair, tmp_path):
    state = tmp_path / "state.json"
    before = values(pair)
    tune(pair, "apply", "--state", state, "--interface", "eth0", "--ecn", "on")
    again = tune(pair, "apply", "--state", state, "--interface", "eth0", "--ecn", "off")
    assert again["after"] == {"net.ipv4.tcp_ecn": "0"}
    tune(pair, "undo", "--state", state)
    assert values(pair) == before


@pytest.mark.software
def test_tune__failure_half_way_puts_back_and_names_the_key(pair, tmp_path):
    state = tmp_path / "state.json"
    before = values(pair)
    # the kernel refuses the last sysctl, after all other settings (offloads and bursts, too) have been changed
    code = (
        "import sys; from hosts.tune import settings, tune;"
        "settings.IPV6_SYSCTLS['addr_gen_mode'] = '99';"
        f"sys.exit(tune.main(['apply', '--state', {str(state)!r}, '--interface', 'eth0']))"
    )
    done = pair.run("a", "python3", "-c", code, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("tune: setting net.ipv6.conf.eth0.addr_gen_mode to '99': Invalid argument")
    assert "earlier changes of this call are undone" in done.stderr
    assert done.stderr.count("\n") == 1
    assert values(pair) == before
    assert not state.exists()


@pytest.mark.software
@pytest.mark.parametrize("former", [65535, 44])
def test_tune__one_segment_at_once_and_undo_restores_the_former_value(pair, tmp_path, former):
    state = tmp_path / "state.json"
    apply = ["apply", "--state", state, "--interface", "eth0"]
    pair.run("a", "ip", "link", "set", "dev", "eth0", "gso_max_segs", former)

    first = tune(pair, *apply)
    assert first["before"]["eth0 gso_max_segs"] == str(former)
    assert first["after"]["eth0 gso_max_segs"] == "1"
    assert tune(pair, "show")["interfaces"]["eth0"]["gso_max_segs"] == gso_max_segs(pair) == 1
    saved = state.read_text()
    assert tune(pair, *apply)["changed"] is False
    assert state.read_text() == saved

    # gso_max_segs alone is changed from outside: apply sets it again, and the value before the first apply stays saved
    pair.run("a", "ip", "link", "set", "dev", "eth0", "gso_max_segs", 7)
    again = tune(pair, *apply)
    assert (again["before"], again["after"]) == ({"eth0 gso_max_segs": "7"}, {"eth0 gso_max_segs": "1"})
    assert tune(pair, "undo", "--state", state)["after"]["eth0 gso_max_segs"] == str(former)
    assert gso_max_segs(pair) == former


@pytest.mark.software
def test_tune__fq_is_set_once_and_undo_removes_it(pair, tmp_path):
    state = tmp_path / "state.json"
    apply = ["apply", "--state", state, "--interface", "eth0", "--qdisc", "fq"]

    def kinds():
        return [qdisc["kind"] for qdisc in tune(pair, "show")["qdiscs"] if qdisc["dev"] == "eth0"]

    before = kinds()
    first = tune(pair, *apply, check=False)
    if first.returncode:
        assert "setting the qdisc of eth0 to fq: " in first.stderr
        assert "CONFIG_NET_SCH_FQ; earlier changes of this call are undone" in first.stderr
        assert not state.exists()
        pytest.skip("this kernel has no fq")
    assert json.loads(first.stdout)["after"]["eth0 qdisc"] == "fq"
    assert kinds() == ["fq"] != before
    assert tune(pair, *apply)["changed"] is False
    tune(pair, "undo", "--state", state)
    assert kinds() == before


@pytest.mark.software
def test_tune__a_root_qdisc_of_the_user_is_refused_and_survives_an_undo(pair, tmp_path):
    state = tmp_path / "state.json"
    users = ["tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "7:", "pfifo", "limit", 99]
    apply = ["apply", "--state", state, "--interface", "eth0", "--qdisc", "fq"]
    pair.run("a", *users)
    refused = tune(pair, *apply, check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("tune: eth0 has the root qdisc pfifo, which bufferscope did not set")
    assert not state.exists()

    pair.run("a", "tc", "qdisc", "del", "dev", "eth0", "root")
    if tune(pair, *apply, check=False).returncode == 0:  # else this kernel has no fq
        pair.run("a", *users)
        tune(pair, "undo", "--state", state)
    pair.run("a", *users)
    assert [q["options"]["limit"] for q in tune(pair, "show")["qdiscs"] if q["dev"] == "eth0"] == [99]


@pytest.mark.software
def test_tune__one_segment_already_is_left_alone(pair, tmp_path):
    state = tmp_path / "state.json"
    pair.run("a", "ip", "link", "set", "dev", "eth0", "gso_max_segs", 1)
    assert "eth0 gso_max_segs" not in tune(pair, "apply", "--state", state, "--interface", "eth0")["after"]
    assert "eth0 gso_max_segs" not in tune(pair, "undo", "--state", state)["after"]
    assert gso_max_segs(pair) == 1


@pytest.mark.software
def test_tune__refused_gso_max_segs_puts_offloads_back(pair, tmp_path):
    state = tmp_path / "state.json"
    before = values(pair)
    code = (
        "import sys; from hosts.tune import settings, tune;"
        "settings.GSO_MAX_SEGS = 70000;"
        f"sys.exit(tune.main(['apply', '--state', {str(state)!r}, '--interface', 'eth0']))"
    )
    done = pair.run("a", "python3", "-c", code, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("tune: setting gso_max_segs of eth0 to 70000: ")
    assert bursts.NEEDS in done.stderr
    assert done.stderr.endswith("earlier changes of this call are undone\n")
    assert done.stderr.count("\n") == 1
    assert values(pair) == before
    assert not state.exists()


@pytest.mark.software
def test_tune__state_of_another_namespace_is_not_restored_here(pair, tmp_path):
    state = tmp_path / "state.json"
    tune(pair, "apply", "--state", state, "--interface", "eth0", "--ecn", "on")
    for program in (TUNE, "hosts.tune.delay"):
        undone = pair.python("b", program, "undo", "--state", state)
        assert json.loads(undone.stdout)["changed"] is False
    assert tune(pair, "undo", "--state", state)["changed"] is True
    assert not state.exists()


@pytest.mark.software
def test_tune__show_names_every_queue(pair):
    shown = tune(pair, "show")
    assert shown["interfaces"]["eth0"]["txqlen"] == 1000
    assert shown["interfaces"]["eth0"]["offloads"]["tso"] == "on"
    assert shown["interfaces"]["eth0"]["mtu"] == 1500
    assert {"net.ipv4.tcp_rmem", "net.ipv4.tcp_congestion_control"} <= shown["sysctls"].keys()
    assert not any("fastopen_key" in name for name in shown["sysctls"])
    assert "cubic" in shown["congestion_controls"]
    pair.run("a", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit", "burst", "10k", "limit", "100k")
    assert [qdisc["kind"] for qdisc in tune(pair, "show")["qdiscs"] if qdisc["dev"] == "eth0"] == ["tbf"]


@pytest.mark.software
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--interface", "eth7"], "there is no interface 'eth7' here; there are eth0, lo"),
        (["--interface", "../eth0"], "'../eth0' is not the name of an interface"),
        (["--interface", "eth0", "--reserve-ports", "5-3"], "'5-3': give FIRST-LAST"),
        (["--interface", "eth0", "--window-bytes", "10kB"], "'10kB': give a whole number of bytes"),
        (["--interface", "eth0", "--ecn", "red"], "invalid choice: 'red'"),
    ],
)
def test_tune__bad_option_is_named_and_nothing_is_written(pair, tmp_path, words, message):
    done = tune(pair, "apply", "--state", tmp_path / "state.json", *words, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_state__of_another_program_is_refused(tmp_path, capsys):
    from hosts.tune import tune as program

    state = tmp_path / "state.json"
    state.write_text("[]")
    assert program.main(["undo", "--state", str(state)]) == 1
    assert "this is not a state file of this program" in capsys.readouterr().err
    assert state.read_text() == "[]"


@pytest.mark.parametrize(
    ("refusal", "shown", "message"),
    [
        ("RTNETLINK answers: Operation not supported", "[]", "to 1: RTNETLINK answers: Operation not supported: "),
        (None, '[{"gso_max_segs": 65535}]', "setting gso_max_segs of eth0 to 1: the kernel keeps 65535: "),
        (None, '[{"ifname": "eth0"}]', "reading gso_max_segs of eth0: ip does not print it: "),
        (None, "", "reading gso_max_segs of eth0: ip does not print it: "),
    ],
)
def test_bursts__old_kernels_and_old_ip_are_named(monkeypatch, refusal, shown, message):
    """Neither an old kernel nor an old ip can run here, so their answers are simulated."""

    def run(*words):
        if "set" in words and refusal:
            raise CommandError(words, refusal)
        return shown

    monkeypatch.setattr(bursts, "run", run)
    with pytest.raises(TuneError, match=message) as raised:
        bursts.write("eth0", 1)
    assert str(raised.value).endswith(bursts.NEEDS)


def test_sysctls__names_with_dots_in_an_interface():
    assert str(sysctls.path_of("net.ipv6.conf.eth0/10.accept_ra")) == "/proc/sys/net/ipv6/conf/eth0.10/accept_ra"
    wanted = settings.wanted_sysctls(["eth0.10"], False, 1, None)
    assert wanted["net.ipv6.conf.eth0/10.accept_ra"] == "0"
    assert wanted["net.ipv4.tcp_ecn"] == "0"


def test_sysctls__larger_buffer_stays():
    assert sysctls.completed("net.ipv4.tcp_rmem", "1000", "1 2 3000", may_shrink=False) == "1 2 3000"
    assert sysctls.completed("net.ipv4.tcp_rmem", "1000", "1 2 3000", may_shrink=True) == "1 2 1000"
    assert sysctls.completed("net.ipv4.tcp_rmem", "5000", "1 2 3000", may_shrink=False) == "1 2 5000"
    assert sysctls.completed("net.ipv4.tcp_sack", "1", "0", may_shrink=True) == "1"


def test_settings__nothing_of_the_whole_machine_is_changed():
    wanted = settings.wanted_sysctls(["eth0"], True, 1 << 20, "1-2")
    assert not any(name.startswith("net.core.") or name == "net.ipv4.tcp_mem" for name in wanted)


def test_offloads__a_group_is_fixed_if_all_that_is_on_in_it_is():
    line = "tx-checksumming: on\n\ttx-checksum-ip-generic: on{}\n\ttx-checksum-sctp: off\nscatter-gather: on\n"
    assert offloads.parse(line.format(" [fixed]"))["tx"].fixed
    assert not offloads.parse(line.format(""))["tx"].fixed


def test_offloads__groups_and_fixed_features_are_not_saved():
    text = "Features for x:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: off\n"
    text += "\ttx-checksum-sctp: on\ngeneric-receive-offload: on\nrubbish\nlarge-receive-offload: off [requested on]\n"
    features = offloads.parse(text)
    assert offloads.single_states(features) == {
        "tx-checksum-ipv4": "off",
        "tx-checksum-sctp": "on",
        "gro": "on",
        "lro": "off",
    }
    assert features["rx"].fixed
    assert features["tx"].group


@pytest.mark.software
def test_tcp_options__are_set_replaced_and_undone(pair, tmp_path):
    state = tmp_path / "state.json"
    apply = ["apply", "--state", state, "--interface", "eth0"]
    before, route = values(pair), routes_of(pair)

    first = tune(pair, *apply, "--tcp", "initcwnd=2", "--tcp", "acks=each", "--tcp", "sack=off", "--tcp", "frto=off")
    assert (first["before"]["net.ipv4.tcp_frto"], first["after"]["net.ipv4.tcp_frto"]) == ("2", "0")
    assert all(line.endswith("initcwnd 2 quickack 1") for line in routes_of(pair))
    again = tune(pair, *apply, "--tcp", "initcwnd=2", "--tcp", "acks=each", "--tcp", "sack=off", "--tcp", "frto=off")
    assert again["changed"] is False

    # Another experiment on the same host restores the options that it does not name.
    assert tune(pair, *apply, "--tcp", "initcwnd=4")["after"]["net.ipv4.tcp_frto"] == "2"
    assert all(line.endswith("initcwnd 4") for line in routes_of(pair))
    tune(pair, *apply)
    assert routes_of(pair) == route
    tune(pair, *apply, "--tcp", "acks=each")
    tune(pair, "undo", "--state", state)
    assert (values(pair), routes_of(pair)) == (before, route)


@pytest.mark.software
def test_tcp_options__without_a_route_attribute_leave_the_owners_routes_alone(pair, tmp_path):
    state = tmp_path / "state.json"
    for line in routes_of(pair):
        pair.run("a", "ip", "route", "replace", *line.split(), "dev", "eth0", "initcwnd", 7)
    route = routes_of(pair)
    assert all("initcwnd 7" in line for line in route)
    tune(pair, "apply", "--state", state, "--interface", "eth0", "--tcp", "sack=off")
    assert routes_of(pair) == route
    tune(pair, "undo", "--state", state)
    assert routes_of(pair) == route


@pytest.mark.software
def test_tcp_options__failure_puts_routes_back(pair, tmp_path):
    state, route = tmp_path / "state.json", routes_of(pair)
    code = (
        "import sys; from hosts.tune import settings, tune;"
        "settings.IPV6_SYSCTLS['addr_gen_mode'] = '99';"
        f"sys.exit(tune.main(['apply', '--state', {str(state)!r}, '--interface', 'eth0', '--tcp', 'initcwnd=2']))"
    )
    done = pair.run("a", "python3", "-c", code, check=False)
    assert done.returncode == 1
    assert "earlier changes of this call are undone" in done.stderr
    assert routes_of(pair) == route


@pytest.mark.software
def test_port_tcp__gives_some_ports_routes_that_others_do_not_have(pair, tmp_path):
    state = tmp_path / "state.json"
    apply = ["apply", "--state", state, "--interface", "eth0"]
    before, route, rules = values(pair), routes_of(pair), rules_of(pair)
    two = ["--port-tcp", "dport:5201-5201:initcwnd=2,acks=delayed", "--port-tcp", "dport:5202-5210:acks=each"]

    first = tune(pair, *apply, *two)
    assert first["before"]["dport 5201-5201"] == "none"
    assert first["after"]["dport 5202-5210"].endswith("quickack 1")
    assert [initcwnd(pair, port) for port in (5201, 5202, 5210, 5211)] == ["2", "", "", ""]
    assert tune(pair, *apply, *two)["changed"] is False

    # Another experiment on the same host replaces the routes of ports.
    tune(pair, *apply, "--tcp", "initcwnd=4", "--port-tcp", "dport:5201-5202:initcwnd=10")
    assert [initcwnd(pair, port) for port in (5201, 5203)] == ["", "4"]
    tune(pair, *apply)
    assert (routes_of(pair), rules_of(pair)) == (route, rules)
    tune(pair, *apply, *two)
    tune(pair, "undo", "--state", state)
    assert (values(pair), routes_of(pair), rules_of(pair)) == (before, route, rules)


@pytest.mark.software
def test_port_tcp__failure_removes_the_rules(pair, tmp_path):
    state, rules = tmp_path / "state.json", rules_of(pair)
    code = (
        "import sys; from hosts.tune import settings, tune;"
        "settings.IPV6_SYSCTLS['addr_gen_mode'] = '99';"
        f"sys.exit(tune.main(['apply', '--state', {str(state)!r}, '--interface', 'eth0',"
        "'--port-tcp', 'sport:5201-5300:acks=each']))"
    )
    done = pair.run("a", "python3", "-c", code, check=False)
    assert (done.returncode, rules_of(pair)) == (1, rules), done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dport:5201-5200:acks=each", "give dport:FIRST-LAST:NAME=VALUE, or sport:"),
        ("port:1-2:acks=each", "give dport:FIRST-LAST:NAME=VALUE, or sport:"),
        ("dport:1-70000:acks=each", "give dport:FIRST-LAST:NAME=VALUE, or sport:"),
        ("dport:1-2:sack=off", "sack belongs to the whole host; ports can have initcwnd, acks"),
        ("dport:1-2:initcwnd=0", "give a whole number from 1 to 1024"),
    ],
)
def test_port_tcp__refuses_what_routes_of_ports_cannot_have(text: str, says: str):
    with pytest.raises(argparse.ArgumentTypeError, match=re.escape(says)):
        port_routes.parse(text)


def initcwnd(pair, port: int) -> str:
    """initcwnd of the route to `port` of the other host; '' if the route has none (Linux's default)."""
    words = "ip", "-4", "route", "get", "10.77.0.2", "ipproto", "tcp", "dport", str(port)
    match = re.search(r"initcwnd (\d+)", pair.run("a", *words).stdout)
    return match[1] if match else ""


def rules_of(pair) -> list[str]:
    return pair.run("a", "ip", "-4", "rule", "show").stdout.splitlines()


def routes_of(pair) -> list[str]:
    return [line.strip() for line in pair.run("a", "ip", "-4", "route", "show", "dev", "eth0").stdout.splitlines()]


def test_tcp_options__rack_off_is_refused_where_it_has_no_effect():
    off = {"sack": "on", "rack": "off"}
    for release in ("6.17.0", "6.18.44-x", "7.0-rc1"):
        with pytest.raises(TuneError, match=r"RACK=off: Linux .* only by RACK"):
            tcp_options.check_kernel(off, release)
    for release in ("6.12.117-bufferscope", "6.1.0-40-amd64", "6.16.9"):
        tcp_options.check_kernel(off, release)
    tcp_options.check_kernel(off | {"sack": "off"}, "6.18.0")
    tcp_options.check_kernel({}, "6.18.0")


def test_tcp_options__a_kernel_without_the_sysctl_is_named(monkeypatch):
    from hosts.tune import tune as program

    monkeypatch.setattr(sysctls, "read", lambda name: None if name.endswith("comp_sack_nr") else "1 1 1")
    options = program.parse(["apply", "--state", "s", "--interface", "lo", "--tcp", "comp_sack_nr=0"])
    options.tcp = dict(options.tcp)
    with pytest.raises(TuneError, match=r"net.ipv4.tcp_comp_sack_nr: this kernel \(.*\) has no such setting"):
        program.plan_sysctls(options, {})


def test_tcp_options__bad_words_are_named():
    for text, said in (
        ("window=2", "give NAME=VALUE with one of initcwnd, acks"),
        ("initcwnd=0", "give a whole number from 1 to 1024"),
        ("acks=all", "give delayed or each"),
        ("sack", "give on or off"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=said):
            tcp_options.parse(text)


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


@pytest.mark.software
def test_offloads__on_leaves_them_and_puts_back_what_an_earlier_call_switched(pair, tmp_path):
    state = tmp_path / "state.json"
    apply = ["apply", "--state", state, "--interface", "eth0"]
    features = pair.run("a", "ethtool", "-k", "eth0").stdout
    segments = gso_max_segs(pair)
    first = tune(pair, *apply, "--offloads", "on")
    assert not any(name.startswith("eth0 ") for name in first["after"])
    assert tune(pair, *apply)["after"]["eth0 gso"] == "off"
    assert gso_max_segs(pair) == 1
    assert tune(pair, *apply, "--offloads", "on")["after"]["eth0 gso"] == "on"
    assert (pair.run("a", "ethtool", "-k", "eth0").stdout, gso_max_segs(pair)) == (features, segments)


@pytest.mark.software
def test_coalescing__a_device_without_it_is_named_and_nothing_is_changed(pair, tmp_path):
    before = values(pair)
    words = ["apply", "--state", tmp_path / "state.json", "--interface", "eth0", "--rx-usecs", "20"]
    done = tune(pair, *words, check=False)
    assert done.returncode == 1
    assert done.stderr == "tune: eth0 has no rx-usecs (ethtool -c): its device cannot wait for more frames\n"
    assert values(pair) == before


def test_coalescing__reads_writes_and_checks(monkeypatch):
    said = "Coalesce parameters for e:\nAdaptive RX: n/a  TX: n/a\nrx-usecs:\t20\nrx-frames:\tn/a\n"
    monkeypatch.setattr(coalescing, "run", lambda *words: said)
    assert coalescing.read("e") == 20
    coalescing.write("e", 20)
    with pytest.raises(TuneError, match="setting rx-usecs of e to 30: the device keeps 20"):
        coalescing.write("e", 30)


@pytest.mark.software
def test_pacing__sets_the_pace_and_puts_it_back(pair, tmp_path):
    def paces():
        return [
            pair.run("a", "sysctl", "-n", f"net.ipv4.tcp_pacing_{part}_ratio").stdout.strip() for part in ("ss", "ca")
        ]

    apply = ["apply", "--state", tmp_path / "state.json", "--interface", "eth0"]
    tune(pair, *apply, "--pacing-percent", "100")
    assert paces() == ["100", "100"]
    tune(pair, *apply)
    assert paces() == ["200", "120"]
    done = tune(pair, *apply, "--pacing-percent", "1001", check=False)
    assert (done.returncode, "give a whole number of percent from 1 to 1000" in done.stderr) == (2, True)
