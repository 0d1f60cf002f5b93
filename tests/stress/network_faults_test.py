#!/usr/bin/env python3
"""Disturbs the network between the hosts of a training at one of its phases, and looks how the training ends.

A trial is a small training (phantom images, DenseNet-121 at 32 px) on hosts that are network namespaces of this
machine, one rank each (--ranks). The cable of one host (--hit) goes through tests/cluster/tapdelay.c, and one fault
comes at one phase:

  delay, loss, reordering       10 ms with 3 ms jitter, 1 % of the packets, 20 % overtake by 5 ms; to the end of the run
  short-cut, short-black-hole   the interface is down, or the link swallows all packets, for a third of --timeout
  lost-reports                  the watchdog's connections are gone on one side, and the other side is not told
  cut, black-hole               for good
  deaf, mute                    packets to the host, or from it, vanish for good
  half-open                     as lost-reports, all connections of the host

  launch (before the ranks are started), start (the host's rank is in MPI's start), broadcast (of the weights), step,
  evaluation, checkpoint (it is being written)

After the first three rows the run (with a launch.timeout_s of 30 s) must go on to the weights and optimizer of an
undisturbed run, byte for byte, and to its losses and scores; a short cut at launch or start may end it as a long one
does: mpirun does not wait. After the others it ends within launch.timeout_s (--timeout) and --within more seconds, with
exit code 5 or 7 and a last line that names a host or the network; no process, no shared memory and no temporary file is
left on any host; and when the link is whole again `--resume auto` reaches the same bytes. (After a fault at launch it is looked for leftovers when
the link is whole: mpirun's daemon on a host that no packet reaches tries until TCP gives up.) Prints a table of faults
and phases. Short: three faults in a step, between two hosts that have IPv6 alone. Long: all faults at all phases on three
hosts, over IPv4 and over IPv6 alone, at the last host, and those of a step at the first and the second; about 80 minutes
on two cores. Needs root. Exit code 1: something was wrong; 77: no network namespaces here."""
import copy
import math
import os
import pathlib
import re
import subprocess
import sys
import time

import harness

CLUSTER = harness.ROOT / 'tests/cluster'
PREFIX = 'nf'
STEPS = 9
HEALTHY = '0 0 0 0 0'
LINKS = {'delay': '10000 3000 0 0 0', 'loss': '0 0 10 0 0', 'reordering': '5000 0 0 0 0 200', 'black-hole': '0 0 0 0 1',
         'short-black-hole': '0 0 0 0 1', 'deaf': '0 0 0 0 2', 'mute': '0 0 0 0 3'}
GOES_ON = ['delay', 'loss', 'reordering', 'short-cut', 'short-black-hole', 'lost-reports']
PATIENCE_S = 30  # launch.timeout_s of runs that go on: a loaded machine and TCP after a loss take their time
FAULTS = [*GOES_ON, 'cut', 'black-hole', 'deaf', 'mute', 'half-open']
PHASES = ['launch', 'start', 'broadcast', 'step', 'evaluation', 'checkpoint']
TAP_LOOKS_S = 0.05  # tapdelay reads its file every 10 ms
BROADCAST_BYTES = 4 << 20  # of 84 MB
WATCHDOG_PORTS = 10000  # the system chooses them; MPI takes those from 1024 on
NAMED = re.compile(r'Host [\w, ]+ \(rank [\d, ]+\) has not been heard|'
                   r'the network between (them|the hosts) does not pass data')
# Before all ranks run, and where its own host is hit, it may be mpirun that says it.
LAUNCHERS = ('launch', 'start')
LAUNCHER_NAMED = re.compile(r'unable to complete a TCP connection|unable to reliably start one or more daemons|'
                            r'lost communication with a remote daemon|unable to reach each other for')


def need(command):
    """Runs a command of the test hosts; they are not to be had where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        print(f'skipped: no network namespaces (iproute2 and root are needed): {done.stderr.strip()[-200:]}')
        sys.exit(77)


class Hosts:
    """Hosts nf1, nf2, … of one rank each. The cable of number `hit` does what the last set_link() said."""

    def __init__(self, stage, options):
        self.count, self.hit = options.ranks, f'{PREFIX}{options.hit or options.ranks}'
        self.hit_rank = int(self.hit[len(PREFIX):]) - 1
        self.control = stage.folder / 'link'
        self.state = stage.folder / 'netns'
        os.environ['NETNS_DIR'] = str(self.state)
        self.set_link(HEALTHY)
        need(['gcc', '-O2', '-w', '-o', stage.folder / 'tapdelay', CLUSTER / 'tapdelay.c'])
        need([CLUSTER / 'netns_up.sh', '-n', self.count, '-p', PREFIX, *(['-6'] if options.ipv6 else [])])
        need([CLUSTER / 'nslink', self.hit, stage.folder / 'tapdelay', self.control])
        names = [f'{PREFIX}{number}' for number in range(1, self.count + 1)]
        for name in names:  # BBR, where it is the rule, takes 10 s to believe in a delay that was not there before
            need([CLUSTER / 'nsexec', name, 'sysctl', '-qw', 'net.ipv4.tcp_congestion_control=reno'])
        hostfile = stage.folder / 'hosts'
        hostfile.write_text(''.join(f'{name} slots=1\n' for name in names))
        agent = f'launch.mpi_args=[--mca, plm_rsh_agent, {CLUSTER}/nsrsh]'
        stage.before = [str(CLUSTER / 'nsexec'), names[0]]
        stage.arguments = ['--hostfile', str(hostfile), '--set', 'launch.network=tcp:eth0', '--set', agent]
        pids = [(self.state / f'{name}.pid').read_text().strip() for name in names]
        stage.shared = [pathlib.Path('/proc', pid, 'root', 'dev', 'shm') for pid in pids]

    def set_link(self, words):
        self.control.with_suffix('.new').write_text(words + '\n')
        self.control.with_suffix('.new').rename(self.control)

    def on_hit(self, *command):
        done = subprocess.run([CLUSTER / 'nsexec', self.hit, *command], capture_output=True, text=True, check=True)
        return done.stdout

    def set_interface(self, state):
        self.on_hit('ip', 'link', 'set', 'eth0', state)

    def received_bytes(self):
        """That the host got over its cable so far."""
        of_cable = re.search(rf't{self.hit}: +(\d+ +){{8}}(\d+)', pathlib.Path('/proc/self/net/dev').read_text())
        return int(of_cable[2])

    def forget_connections(self, only_watchdogs):
        """Ends connections on the side of the host, while nothing reaches the other."""
        self.set_link(LINKS['black-hole'])
        time.sleep(TAP_LOOKS_S)
        wanted = []
        for line in self.on_hit('ss', '-Htn', 'state', 'established').splitlines():
            near, far = [end.rsplit(':', 1) for end in line.split()[2:4]]
            if near[0].strip('[]') in ('127.0.0.1', '::1'):
                continue
            if not only_watchdogs or self.is_watchdogs(near, far):
                wanted.append(f'( sport = :{near[1]} and dport = :{far[1]} )')
        if wanted:
            self.on_hit('ss', '-K', '-tn', ' or '.join(wanted))
        self.set_link(HEALTHY)
        return len(wanted)

    def is_watchdogs(self, near, far):
        """Of a rank, and not MPI's, one side of which has a port of those from 1024 on."""
        if min(int(near[1]), int(far[1])) < WATCHDOG_PORTS:
            return False
        owner = self.on_hit('ss', '-Htnp', f'sport = :{near[1]} and dport = :{far[1]}')
        return '"chexnet-train"' in owner

    def begin(self, fault):
        if fault in LINKS:
            self.set_link(LINKS[fault])
        elif fault.endswith('cut'):
            self.set_interface('down')
        else:
            return self.forget_connections(fault == 'lost-reports')
        return 1

    def heal(self):
        self.set_link(HEALTHY)
        self.set_interface('up')
        time.sleep(TAP_LOOKS_S)

    def down(self):
        """With all that runs on them."""
        subprocess.run([CLUSTER / 'netns_down.sh', '-p', PREFIX], stdout=subprocess.DEVNULL)


def await_phase(run, hosts, whole, phase, rng):
    """Whether the run came to the phase."""
    if phase == 'start':
        return run.wait_until(lambda: any(process.rank == hosts.hit_rank for process in run.processes()), 60)
    if phase == 'broadcast':
        begun = hosts.received_bytes()
        return run.wait_until(lambda: hosts.received_bytes() > begun + BROADCAST_BYTES, 60)
    if phase == 'checkpoint':
        return run.wait_until(run.has_partial_checkpoint, 60)
    if phase == 'evaluation':
        step = run.folder / 'checkpoints' / f'step-{rng.choice(whole.evaluated):08d}'
        reached = run.wait_until(step.exists, 60)
        time.sleep(rng.uniform(0, 0.1))
        return reached
    step = rng.randint(1, STEPS - 2)
    reached = run.wait_until(lambda: run.last_step() >= step, 60)
    time.sleep(rng.uniform(0, 0.2))
    return reached


def is_possible(fault, phase):
    """Before there are connections none can be lost."""
    return not (fault == 'lost-reports' and phase in ('launch', 'start')) and not (
        fault == 'half-open' and phase == 'launch')


def last_error(folder):
    """What the run said last of why it ended; lines of daemons may follow."""
    lines = [line for line in harness.read_text(folder / 'log').splitlines() if line.startswith('error: ')]
    return lines[-1] if lines else ''


def wrong_end(run, code, folder):
    """An empty text when the run ended as the pages promise."""
    if code is None:
        return 'HANG: it did not end'
    said = last_error(folder)
    if code not in (5, 7):
        return f'exit {code}: {said}'
    if NAMED.search(said) or 'mpirun ended' in said and LAUNCHER_NAMED.search(harness.read_text(folder / 'log')):
        return ''
    return f'exit {code} names neither host nor network: {said}'


def disturb(run, hosts, fault, tally):
    """How the run ended: its exit code, seconds since the fault began, and what is wrong with that."""
    began = time.monotonic()
    connections = 1 if run.phase == 'launch' else hosts.begin(fault)
    if connections == 0:
        return None, 0, 'there was no connection to lose'
    if fault.startswith('short'):
        time.sleep(tally.options.timeout / 3)
        hosts.heal()
    limit_s = tally.options.timeout + tally.options.within
    code = run.wait(limit_s if fault not in GOES_ON else 60 + 20 * run.stage.whole(hosts.count).length_s)
    ended_s = time.monotonic() - began
    if code == 0 and fault in GOES_ON:
        return code, ended_s, run.stage.whole(hosts.count).difference(run.folder)
    # mpirun does not start over a cut of any length.
    if fault not in GOES_ON or run.phase in LAUNCHERS and 'cut' in fault:
        return code, ended_s, wrong_end(run, code, run.folder.parent)
    return code, ended_s, f'ended with {code}: {last_error(run.folder.parent)}'


def start(stage, hosts, folder, fault, phase):
    if phase == 'launch':
        hosts.begin(fault)
        time.sleep(TAP_LOOKS_S)
    settings = [f'launch.timeout_s={PATIENCE_S}'] if fault in GOES_ON else []
    run = harness.Run(stage, folder / 'run', 'parent', hosts.count, settings=settings)
    run.phase = phase
    return run


def trial(stage, hosts, number, tally):
    fault, phase = tally.cells[(number - 1) % len(tally.cells)]
    rng = tally.dice(number)
    whole = stage.whole(hosts.count)
    folder = stage.trial_folder(number)
    run = start(stage, hosts, folder, fault, phase)
    left_overs = harness.LeftOvers(run, tally.options.within)
    problems = []
    code, ended_s = None, 0
    if phase == 'launch' or await_phase(run, hosts, whole, phase, rng):
        code, ended_s, problem = disturb(run, hosts, fault, tally)
        problems += [problem] if problem else []
    else:
        problems.append('the run never came to the phase')
        run.end()
    if phase == 'launch':
        hosts.heal()
    found, examples, _ = left_overs.find(time.monotonic())
    tally.left.update(found)
    if found:
        problems.append(f'left {dict(found)} {examples[:3]}')
    hosts.heal()
    lost = stage.resume_to_end(run.folder, 'parent', hosts.count) if code != 0 else ''
    if lost:
        problems.append('LOST: ' + lost)
    tally.counts['trials'] += 1
    tally.counts['went on' if code == 0 else 'ended in time'] += not problems
    tally.counts['lost'] += bool(lost)
    ended = 'FAILED' if problems else 'goes on' if code == 0 else f'{code} in {ended_s:.0f} s'
    tally.values[f'{fault}, {phase}'].append(ended)
    print(f'{number:4} {fault}, {phase}: {ended}: {last_error(folder)[7:150]}', flush=True)
    for problem in problems:
        tally.problem(number, f'{fault}, {phase}: {problem}', folder)
    if not problems:
        harness.shutil.rmtree(folder)


def table(tally):
    """Markdown: a row for each fault."""
    print('| |' + ''.join(f' {phase} |' for phase in tally.phases))
    print('|---|' + '---|' * len(tally.phases))
    for fault in tally.faults:
        cells = [', '.join(sorted(set(tally.values[f'{fault}, {phase}']))) for phase in tally.phases]
        print(f'| {fault} |' + ''.join(f' {cell} |' for cell in cells))


def trials(options):
    """Of one kind of hosts; the exit code."""
    tally = harness.Tally(options, 'network_faults')
    tally.faults, tally.phases = options.faults, options.phases
    tally.cells = [(fault, phase) for fault in tally.faults for phase in tally.phases if is_possible(fault, phase)]
    options.trials = options.trials or len(tally.cells)
    settings = [f'launch.timeout_s={options.timeout}', f'train.batch={4 * options.ranks}', f'train.max_steps={STEPS}',
                'eval.splits=[]']
    stage = harness.Stage('network-faults', settings)
    hosts = Hosts(stage, options)
    for name in ('trials', 'went on', 'ended in time', 'lost'):
        tally.counts[name] += 0
    try:
        for number in tally.numbers():
            trial(stage, hosts, number, tally)
            tally.progress()
    finally:
        hosts.down()
    table(tally)
    code = tally.finish({'ipv6': options.ipv6, 'hit': hosts.hit})
    stage.close(keep=code != 0)
    return code


def main():
    options = harness.trial_options(
        __doc__, trials=None, seconds=math.inf, ranks=(2, 3), within=60.0, timeout=(10.0, 8.0), hit=None, ipv6=not harness.LONG,
        faults=(['lost-reports', 'loss', 'deaf'], FAULTS), phases=(['step'], PHASES))
    if unknown := set(options.faults) - set(FAULTS) | set(options.phases) - set(PHASES):
        sys.exit(f'error: {", ".join(sorted(unknown))}: no such fault or phase. Hint: --help')
    harness.take_own_shared_memory('--net')
    if not os.environ.get(harness.OWN_SHARED_MEMORY):
        print('skipped: no network namespaces (iproute2 and root are needed)')
        return harness.SKIPPED
    variants = [{}]
    if harness.LONG and not sys.argv[1:]:
        variants = [{}, {'ipv6': True}, {'hit': 1, 'phases': ['step']}, {'hit': 2, 'phases': ['step']}]
    codes = []
    for variant in variants:
        chosen = copy.copy(options)
        vars(chosen).update(variant)
        codes.append(trials(chosen))
    return max(codes)


sys.exit(main())
