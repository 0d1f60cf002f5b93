#!/usr/bin/env python3
"""An S3 server over a folder, for tests: GET with ranges, ListObjectsV2 in pages, PUT and DELETE of whole objects,
keep-alive, and real SigV4 checks. With --faults SHARE it answers that share of requests wrongly: 500, 503, a connection reset,
a body cut short, a stall. While the file of --down-while exists, all answers are 503.
usage: s3_server.py FOLDER --port-file F [--faults 0.2] [--seed 1] [--log F] [--region R] [--down-while F]
                    [--key ID SECRET]
The folder's sub-folders are the buckets; listings of buckets "loop" (two tokens
in turn), "empty" (pages without a key) and "huge" (one page) never end. Keys: AKTEST / secret, and that of --key."""
import argparse, hashlib, hmac, os, random, socket, struct, threading, time, urllib.parse
from http.server import ThreadingHTTPServer
from xml.sax.saxutils import escape

from http_answers import HttpAnswers

SECRET = {'AKTEST': 'secret/with+signs'}
GO = {"'": '&#39;', '"': '&#34;'}  # as servers written in Go escape them
counts = {'requests': 0, 'ok': 0, 'faults': 0, 'refused': 0}
lock = threading.Lock()


def count(what):
    with lock:
        counts[what] += 1


def quote(text, safe=''):
    return urllib.parse.quote(text, safe=safe + '-_.~')


def etag(path):
    with open(path, 'rb') as f:
        return hashlib.md5(f.read()).hexdigest()


def modified(path):
    return time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(os.path.getmtime(path)))


class Handler(HttpAnswers):
    disable_nagle_algorithm = True

    def error(self, status, code, more=''):
        self.answer(status, f'<Error><Code>{code}</Code><Message>The message of {code}.</Message>{more}</Error>'.encode())

    def refusal(self, path, query):
        """The code of what is wrong with the request, or None."""
        auth = self.headers.get('Authorization', '')
        if not auth:
            return 'AccessDenied'
        key, _, region = auth.partition('Credential=')[2].split('/')[:3]
        if key not in SECRET:
            return 'InvalidAccessKeyId'
        if args.region and region != args.region:
            return 'AuthorizationHeaderMalformed'
        return None if self.signed(path, query) else 'SignatureDoesNotMatch'

    def signed(self, path, query):
        """Checks the signature over what came in, by the published rules, with nothing of the client's code."""
        auth = self.headers.get('Authorization', '')
        if not auth.startswith('AWS4-HMAC-SHA256 '):
            return False
        parts = dict(p.strip().split('=', 1) for p in auth[17:].split(','))
        key, date, region, service, end = parts['Credential'].split('/')
        if key not in SECRET or end != 'aws4_request' or service != 's3':
            return False
        names = parts['SignedHeaders'].split(';')
        if 'host' not in names or 'x-amz-date' not in names:
            return False
        if abs(time.mktime(time.strptime(self.headers['x-amz-date'], '%Y%m%dT%H%M%SZ')) - time.mktime(time.gmtime())) > 900:
            return False
        headers = ''.join(f'{n}:{self.headers[n].strip()}\n' for n in names)
        pairs = '&'.join(f'{quote(n)}={quote(v)}' for n, v in sorted(query))
        canonical = '\n'.join([self.command, quote(path, '/'), pairs, headers, ';'.join(names), self.headers['x-amz-content-sha256']])
        text = '\n'.join(['AWS4-HMAC-SHA256', self.headers['x-amz-date'], f'{date}/{region}/{service}/{end}',
                          hashlib.sha256(canonical.encode()).hexdigest()])
        k = ('AWS4' + SECRET[key]).encode()
        for part in (date, region, service, end):
            k = hmac.new(k, part.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(hmac.new(k, text.encode(), hashlib.sha256).hexdigest(), parts['Signature'])

    def fault(self):
        """True when this request was answered wrongly."""
        with lock:
            if rng.random() >= args.faults:
                return False
            kind = rng.choice(['500', '503', 'reset', 'short', 'stall'] if rng.random() < 0.3 else ['500', '503', 'reset', 'short'])
        count('faults')
        if kind in ('500', '503'):
            self.answer(int(kind), b'<Error><Code>SlowDown</Code></Error>')
        elif kind == 'reset':
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            self.close_connection = True
            self.connection.close()
        else:
            self.send_response(206 if self.headers.get('Range') else 200)
            if self.headers.get('Range'):
                self.send_header('Content-Range', self.headers['Range'].replace('=', ' ') + '/999999999')
            self.send_header('Content-Length', '40000')
            self.end_headers()
            self.wfile.write(b'wrong bytes' * 10)
            self.wfile.flush()
            if kind == 'stall':
                time.sleep(args.stall)
            self.close_connection = True
        return True

    def asked(self):
        """Bucket, key and query of a request that may be answered; None: it was answered already."""
        count('requests')
        parsed = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(parsed.path)
        query = urllib.parse.parse_qsl(parsed.query, keep_blank_values=True)
        refusal = self.refusal(path, query)
        if refusal:
            count('refused')
            wrong_region = refusal == 'AuthorizationHeaderMalformed'
            return self.error(400 if wrong_region else 403, refusal, f'<Region>{args.region}</Region>' if wrong_region else '')
        if args.down_while and os.path.exists(args.down_while):
            count('faults')
            return self.error(503, 'ServiceUnavailable')
        if self.fault():
            return None
        bucket, _, key = path[1:].partition('/')
        if not os.path.isdir(os.path.join(args.folder, bucket)):
            return self.error(404, 'NoSuchBucket')
        count('ok')
        return bucket, key, dict(query)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', '0')))
        asked = self.asked()
        if not asked:
            return
        bucket, key, query = asked
        if not key or query or hashlib.sha256(body).hexdigest() != self.headers['x-amz-content-sha256']:
            return self.error(400, 'InvalidRequest')
        file = os.path.join(args.folder, bucket, key)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, 'wb') as f:
            f.write(body)
        self.answer(200, headers=[('ETag', f'"{etag(file)}"')])

    def do_DELETE(self):
        asked = self.asked()
        if not asked:
            return
        file = os.path.join(args.folder, *asked[:2])
        if os.path.isfile(file):
            os.remove(file)
        self.answer(204)

    def do_GET(self):
        asked = self.asked()
        if not asked:
            return
        bucket, key, query = asked
        if not key:
            return self.list(bucket, query)
        file = os.path.join(args.folder, bucket, key)
        if not os.path.isfile(file):
            return self.error(404, 'NoSuchKey')
        time.sleep(args.latency)
        size = os.path.getsize(file)
        wanted = self.headers.get('Range')
        with open(file, 'rb') as f:
            if not wanted:
                return self.answer(200, f.read())
            first, last = wanted[6:].split('-')
            first, last = int(first), min(int(last), size - 1)
            if first >= size:
                return self.answer(416)
            f.seek(first)
            self.answer(206, f.read(last - first + 1), [('Content-Range', f'bytes {first}-{last}/{size}')])

    def endless(self):
        self.send_response(200)
        self.send_header('Content-Length', str(1 << 40))
        self.end_headers()
        try:
            while True:
                self.wfile.write(b'<Key>' + b'a' * (1 << 20))
        except OSError:
            self.close_connection = True

    def list(self, bucket, query):
        base = os.path.join(args.folder, bucket)
        keys = sorted(os.path.relpath(os.path.join(d, n), base) for d, _, names in os.walk(base, followlinks=True) for n in names)
        keys = [k for k in keys if k.startswith(query.get('prefix', ''))]
        start = int(query.get('continuation-token', '0'))
        if bucket in ('loop', 'empty'):
            key, token = ('', start + 1) if bucket == 'empty' else ('<Contents><Key>x</Key><Size>1</Size></Contents>', 1 + start % 2)
            return self.answer(200, f'<ListBucketResult>{key}<NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>'.encode())
        if bucket == 'huge':
            return self.endless()
        page = keys[start:start + 100]
        more = start + 100 < len(keys)
        body = '<?xml version="1.0"?><ListBucketResult>' + ''.join(
            f'<Contents><Key>{escape(k, GO)}</Key><Size>{os.path.getsize(os.path.join(base, k))}</Size>'
            f'<LastModified>{modified(os.path.join(base, k))}</LastModified>'
            f'<ETag>&quot;{etag(os.path.join(base, k))}&quot;</ETag></Contents>' for k in page)
        if more:
            body += f'<NextContinuationToken>{start + 100}</NextContinuationToken>'
        self.answer(200, (body + '</ListBucketResult>').encode())


parser = argparse.ArgumentParser()
parser.add_argument('folder')
parser.add_argument('--port-file', required=True)
parser.add_argument('--faults', type=float, default=0)
parser.add_argument('--stall', type=float, default=5)
parser.add_argument('--latency', type=float, default=0)
parser.add_argument('--seed', type=int, default=1)
parser.add_argument('--log')
parser.add_argument('--region', default='')
parser.add_argument('--down-while')
parser.add_argument('--key', nargs=2, metavar=('ID', 'SECRET'))
args = parser.parse_args()
if args.key:
    SECRET[args.key[0]] = args.key[1]
rng = random.Random(args.seed)
server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
server.daemon_threads = True
with open(args.port_file + '.partial', 'w') as f:
    f.write(str(server.server_address[1]))
os.rename(args.port_file + '.partial', args.port_file)
if args.log:
    def report():
        while True:
            time.sleep(0.2)
            with open(args.log, 'w') as f:
                f.write(' '.join(f'{k}={v}' for k, v in counts.items()))
    threading.Thread(target=report, daemon=True).start()
server.serve_forever()
