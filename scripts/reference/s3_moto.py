#!/usr/bin/env python3
"""Our S3 client against moto, an independent S3 server: the same bytes as from the folder, and a pack written to it.
usage: s3_moto.py PROGRAM FOLDER   (FOLDER: a phantom set; needs the Python packages moto[server] and boto3)"""
import glob, os, shutil, subprocess, sys, tempfile, time

import boto3

import phantom_config

program, folder = sys.argv[1:3]
port, work = 5557, tempfile.mkdtemp()
server = subprocess.Popen([os.path.join(os.path.dirname(sys.executable), 'moto_server'), '-H', '127.0.0.1', '-p', str(port)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    env = dict(os.environ, AWS_ACCESS_KEY_ID='key', AWS_SECRET_ACCESS_KEY='secret', AWS_ENDPOINT_URL=f'http://127.0.0.1:{port}', XDG_CACHE_HOME=work)
    client = boto3.client('s3', endpoint_url=env['AWS_ENDPOINT_URL'], aws_access_key_id='key', aws_secret_access_key='secret', region_name='us-east-1')
    for _ in range(100):
        try:
            client.create_bucket(Bucket='xrays')
            break
        except Exception:
            time.sleep(0.1)
    config = work + '/cfg.yaml'
    phantom_config.write(config, folder)

    def pack(out, *more):
        subprocess.run([program, 'pack', config, '--out', out, *more], check=True, env=env, stderr=subprocess.DEVNULL)

    pack(work + '/local.pack')
    pack(work + '/records', '--format', 'tfrecord', '--per-shard', '50')
    uploads = {f'a folder/with+odd (names)/{os.path.basename(p)}': p for p in glob.glob(folder + '/images/*.png')}
    uploads.update({f'records/{os.path.basename(p)}': p for p in glob.glob(work + '/records/train*')})
    for key, path in uploads.items():
        client.upload_file(path, 'xrays', key)
    for place in ('a folder/with+odd (names)', 'records'):
        out = work + '/s3.pack'
        if os.path.exists(out):
            os.remove(out)
        start = time.time()
        pack(out, '--set', f'data.images=["s3://xrays/{place}"]')
        assert open(out, 'rb').read() == open(work + '/local.pack', 'rb').read(), place
        print(f's3://xrays/{place}: the same bytes as the folder, {time.time() - start:.1f} s')

    pack('s3://xrays/written.pack')
    written = client.get_object(Bucket='xrays', Key='written.pack')['Body'].read()
    assert written == open(work + '/local.pack', 'rb').read()
    print('s3://xrays/written.pack: the same bytes as a local file')
finally:
    server.terminate()
    shutil.rmtree(work)
