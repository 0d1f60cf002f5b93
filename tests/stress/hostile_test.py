#!/usr/bin/env python3
"""Runs the program on files made to harm who reads them, and measures what they cost.

The files (hostile_corpus.py): bombs and headers that lie in PNG, JPEG, tar, tar.gz, TFRecord, safetensors, YAML, CSV,
DICOM and what an object store answers; polyglots; names and ids that lead elsewhere; links, pipes and devices.

Each is refused with a documented exit code and a message that names it, or left out as the docs say, in no more than
64 MB of memory beyond what the same command needs on sound input, and leaves no file outside the folder of its output,
as strace sees (skipped where it is not installed): no file opened for writing elsewhere, no socket but to the store
that was asked for.

A short run takes a fifth of the cases, without strace but for a few. --only TEXT: the cases in whose kind or name TEXT
occurs. --keep FOLDER writes the files there and keeps them. --limit S: seconds that a command may take (a busy machine
needs more). Times are printed and decide
nothing. Ends with 1 where a case went wrong."""
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import harness

sys.path.insert(0, str(harness.ROOT / 'tests/support'))
from http_answers import HttpAnswers

MOST_MB = 64
WRITES = re.compile(r'O_WRONLY|O_RDWR|O_CREAT|O_TRUNC')
CALL = re.compile(r'^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)')
SINKS = ('/dev/null', '/dev/tty', '/proc/self/', '/dev/shm/')


def working_strace():
    """Its path; None where it is absent or may not trace."""
    strace = shutil.which('strace')
    traces = strace and subprocess.run([strace, '-qq', '-o', '/dev/null', 'true'], capture_output=True).returncode == 0
    return strace if traces else None


class Store(HttpAnswers):
    """An object store that lies: buckets names, entities, sizes and endless."""
    picture = b''

    def listing(self, bucket):
        keys = ['../../evil.png', '/abs/evil.png', 'a/../../evil.png', '..', 'a//b.png', 'new&#10;line.png', 'good.png']
        size = len(self.picture)
        if bucket == 'sizes':
            keys, size = ['good.png', 'b.png'], 1 << 60
        if bucket == 'endless':
            keys = [f'{i:04d}' + 'x' * 900 + '.png' for i in range(1000)]
        parts = ''.join(f'<Contents><Key>{key}</Key><Size>{size}</Size><ETag>"e"</ETag></Contents>' for key in keys)
        head = '<?xml version="1.0"?>'
        if bucket == 'entities':
            head += '<!DOCTYPE l [<!ENTITY a "xxxxxxxxxx">' + ''.join(
                f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9)) + ']>'
            parts += '<Contents><Key>&j;.png</Key><Size>1</Size></Contents>'
        more = 'true</IsTruncated><NextContinuationToken>t</NextContinuationToken>' if bucket == 'endless' else \
            'false</IsTruncated>'
        return f'{head}<ListBucketResult><IsTruncated>{more}{parts}</ListBucketResult>'.encode()

    def do_GET(self):
        path, _, query = self.path.partition('?')
        bucket = path.split('/')[1]
        if 'list-type' in query:
            self.answer(200, self.listing(bucket))
            return
        span = re.match(r'bytes=(\d+)-(\d+)', self.headers.get('Range', ''))
        begin, end = (int(span[1]), int(span[2]) + 1) if span else (0, len(self.picture))
        part = self.picture[begin:end]
        self.answer(206 if span else 200, part,
                    [('Content-Range', f'bytes {begin}-{begin + len(part) - 1}/{len(self.picture)}'), ('ETag', '"e"')])


def serve(picture):
    Store.picture = picture
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def remove(folder):
    """Also folders nested deeper than Python goes."""
    subprocess.run(['rm', '-rf', '--', str(folder)], check=True)


def names_below(folder):
    found = set()
    for where, folders, files in os.walk(folder):
        found.update(os.path.join(where, name) for name in [*folders, *files])
    return found


class Runner:
    def __init__(self, options, scratch):
        self.build = harness.BUILD
        self.scratch = scratch
        self.corpus = scratch / 'corpus'
        self.limit_s = options.limit
        self.trace = working_strace()
        self.port = 0
        self.sound, self.sound_case, self.sound_calls = {}, {}, {}
        self.model = scratch / 'model.safetensors'
        self.home = scratch / 'home'
        self.home.mkdir()
        self.environment = {**os.environ, 'HOME': str(self.home), 'XDG_CACHE_HOME': str(self.home / 'cache'),
                            'XDG_CONFIG_HOME': str(self.home / 'config'), 'TMPDIR': str(self.home),
                            'OMP_WAIT_POLICY': 'passive', 'OMP_NUM_THREADS': '1', 'AWS_ACCESS_KEY_ID': 'AKTEST',
                            'AWS_SECRET_ACCESS_KEY': 'secret'}

    def words(self, case, out):
        names = {'{model}': str(self.model), '{out}': str(out)}
        words = []
        for word in case['command']:
            for name, value in names.items():
                word = word.replace(name, value)
            words.append(word)
        program = 'chexnet-train'
        if words[0] == 'dicom':
            program, words = 'chexnet-dicom', words[1:]
        return [str(self.build / program), *words]

    def start(self, words, out):
        """Exit code, output, CPU seconds, wall seconds, most MB of one process."""
        with open(self.scratch / 'said', 'wb') as said:
            begin = time.monotonic()
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=out,
                                       env={**self.environment, 'AWS_ENDPOINT_URL': f'http://127.0.0.1:{self.port}'},
                                       start_new_session=True)
            overdue = threading.Event()

            def end():
                overdue.set()
                os.killpg(process.pid, signal.SIGKILL)

            alarm = threading.Timer(self.limit_s, end)
            alarm.start()
            _, status, usage = os.wait4(process.pid, 0)
            alarm.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
        said = (self.scratch / 'said').read_bytes().decode(errors='replace')
        if overdue.is_set():
            said += f'\nhostile: ended after {self.limit_s:.0f} s (--limit)'
        return {'code': process.returncode, 'said': said, 'cpu_s': usage.ru_utime + usage.ru_stime,
                'wall_s': time.monotonic() - begin, 'mb': usage.ru_maxrss / 1024}

    def fresh(self):
        out = self.scratch / 'out'
        remove(out)
        out.mkdir()
        return out

    def measure(self, case):
        before = names_below(self.scratch)
        out = self.fresh()
        done = self.start(self.words(case, out), out)
        allowed = (str(out), str(self.home), str(self.scratch / 'said'))
        new = [name for name in names_below(self.scratch) - before if not name.startswith(allowed)]
        index = re.compile(r'\.index$')  # an index stands beside its archive, as the docs say
        done['problems'] = [f'wrote {name}' for name in new if not index.search(name)]
        return done

    def traced(self, case):
        """Files opened for writing and sockets outside of the configured places."""
        out = self.fresh()
        log = self.scratch / 'trace'
        calls = 'execve,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,' \
                'unlink,unlinkat,truncate,connect,bind,sendto'
        self.start([self.trace, '-f', '-qq', '-s', '4096', '-e', f'trace={calls}', '-o', str(log),
                    *self.words(case, out)], out)
        allowed = (str(out), str(self.home), *SINKS)
        found = []
        lines = log.read_text(errors='replace').splitlines()
        if not any(call and call[1] == 'execve' and call[3] == '0' for call in map(CALL.match, lines)):
            return ['no call was seen']
        for line in lines:
            call = CALL.match(line)
            if call and call[1] == 'execve':
                continue
            if call is None or (call[1].startswith('open') and not WRITES.search(call[2])):
                continue
            if int(call[3]) < 0 and call[1] not in ('connect', 'bind'):
                continue
            if call[1] in ('connect', 'bind', 'sendto'):
                if f'htons({self.port})' not in call[2] and 'sa_family' in call[2] and \
                        'AF_NETLINK' not in call[2]:
                    found.append(line.partition(' ')[2].strip())
                continue
            paths = re.findall(r'"((?:[^"\\]|\\.)*)"', call[2])
            beside = str(self.corpus / 'archives')
            for path in paths[-1:]:
                whole = path if path.startswith('/') else str(out / path)
                if not whole.startswith(allowed) and not whole.startswith(beside):
                    found.append(line.partition(' ')[2].strip())
        return found

    def own_calls(self, case):
        """Those that the same command on sound input does not make: hwloc asks for an X server, for one."""
        like = case['like']
        if like not in self.sound_calls:
            self.sound_calls[like] = set(self.traced(self.sound_case[like]))
        return [call for call in self.traced(case) if call not in self.sound_calls[like]]

    def phantom(self):
        out = self.scratch / 'phantom'
        subprocess.run([self.build / 'chexnet-train', 'phantom', out, '--images', '160', '--size', '64'], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return str(out)

    def prepare(self):
        self.corpus.mkdir()
        make = [sys.executable, str(pathlib.Path(__file__).with_name('hostile_corpus.py')), str(self.corpus), self.phantom()]
        subprocess.run(make, check=True)
        cases = json.loads((self.corpus / 'cases.json').read_text())
        self.sound_case = {case['name']: case for case in cases if case['kind'] == 'sound'}
        train = next(case for case in cases if case['kind'] == 'sound' and case['name'] == 'train')
        done = self.measure(train)
        if done['code'] != 0:
            sys.exit(f'no model: {done["said"][-2000:]}')
        shutil.copyfile(self.scratch / 'out/run/checkpoints/last/model.safetensors', self.model)
        subprocess.run([*make, str(self.model)], check=True)
        self.sound['train'] = done
        return cases

    def compare(self, case, done):
        """Problems of one case, and what it needed beyond the same command on sound input."""
        base = self.sound.get(case['like'])
        problems = done['problems']
        if done['code'] not in case['codes']:
            problems.append(f'exit code {done["code"]}, wanted {" or ".join(map(str, case["codes"]))}')
        if case['says'] not in done['said']:
            problems.append(f'does not say {case["says"]!r}')
        if 'error: ' in done['said'] and 'Hint' not in done['said']:
            problems.append('no hint')
        if base is None:
            return problems, {}
        beyond = {'mb': round(done['mb'] - base['mb'], 1), 'cpu_ms': round(1000 * (done['cpu_s'] - base['cpu_s']))}
        if beyond['mb'] > MOST_MB:
            problems.append(f'{beyond["mb"]:.0f} MB more than on sound input')
        return problems, beyond


def chosen(cases, options):
    for case in cases:
        if case['kind'] == 'sound' or (not harness.LONG and not options.only and not case['short']):
            continue
        if options.only and options.only not in f'{case["kind"]} {case["name"]}':
            continue
        yield case


def run_cases(runner, cases, options):
    results = []
    for case in chosen(cases, options):
        if case['like'] not in runner.sound:
            like = next(c for c in cases if c['kind'] == 'sound' and c['name'] == case['like'])
            runner.sound[case['like']] = runner.measure(like)
            if runner.sound[case['like']]['code'] != 0:
                sys.exit(f'{case["like"]} on sound input: {runner.sound[case["like"]]["said"][-2000:]}')
            base = runner.sound[case['like']]
            print(f'sound: {case["like"]}: {base["mb"]:.0f} MB, {base["cpu_s"]:.2f} s of CPU', flush=True)
        done = runner.measure(case)
        problems, beyond = runner.compare(case, done)
        traced = runner.trace and (harness.LONG or options.only or case['kind'] in ('names', 'dicom'))
        if traced:
            problems += [f'strace: {line[:200]}' for line in runner.own_calls(case)[:3]]
        results.append({'kind': case['kind'], 'name': case['name'], 'code': done['code'], **beyond,
                        'wall_s': round(done['wall_s'], 2), 'traced': bool(traced), 'problems': problems})
        print(f'{case["kind"]:8} {case["name"]:40} exit {done["code"]:3}  {beyond.get("mb", 0):7.1f} MB  '
              f'{beyond.get("cpu_ms", 0):6} ms  {"; ".join(problems) or "ok"}', flush=True)
        if problems:
            print('    | ' + '\n    | '.join(done['said'][-1500:].splitlines()[-6:]), flush=True)
    return results


def main():
    options = harness.options(__doc__, only='', keep='', limit=60.0)
    if not (harness.BUILD / 'chexnet-dicom').exists():
        print('skipped: built without GDCM')
        sys.exit(harness.SKIPPED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the scratch folder goes
    scratch = pathlib.Path(options.keep or tempfile.mkdtemp(prefix='chexnet-hostile-')).resolve()
    scratch.mkdir(exist_ok=True)
    begin = time.monotonic()
    try:
        runner = Runner(options, scratch)
        cases = runner.prepare()
        picture = next((runner.corpus / 'sound').iterdir()).read_bytes()
        server = serve(picture)
        runner.port = server.server_address[1]
        if runner.trace is None:
            print('skipped: what files and sockets are opened (no strace, or it may not trace)')
        results = run_cases(runner, cases, options)
        server.shutdown()
    finally:
        if not options.keep:
            remove(scratch)
    wrong = [result for result in results if result['problems']]
    slow = sum(1 for result in results if result.get('cpu_ms', 0) > 100)
    most = max((result.get('mb', 0) for result in results), default=0)
    print(f'hostile: {len(results)} cases, {len(wrong)} problems; most memory {most:.0f} MB, more than 100 ms of CPU '
          f'in {slow}; {sum(result["traced"] for result in results)} traced; {time.monotonic() - begin:.0f} s')
    sys.exit(1 if wrong or not results else 0)


if __name__ == '__main__':
    main()
