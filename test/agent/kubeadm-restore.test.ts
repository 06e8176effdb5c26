/**
 * Tests that two persons may start to restore etcd at the same time. The steps of the person who began first are
 * refused.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { restoreScripts } from '../../src/dialects/kubeadm/command/restore-etcd.ts';
import { run } from '../../tools/controlplane/run.ts';

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-host-'));
  for (const folder of ['run', 'usr/bin', 'var/lib/etcd', 'etc/kubernetes/manifests'])
    await mkdir(join(root, folder), { recursive: true });
  await writeFile(
    join(root, 'etc/kubernetes/manifests/etcd.yaml'),
    '    - --data-dir=/var/lib/etcd\n    - --name=cp1\n',
  );
  const etcdutl = '#!/bin/sh\nmkdir -p "$REFIT_ROOT/var/lib/etcd/restoring/member"\n';
  await writeFile(join(root, 'usr/bin/etcdutl'), etcdutl, { mode: 0o755 });
});
afterEach(async () => await rm(root, { recursive: true }));

async function onHost(script: string): Promise<string> {
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  const { stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
  return `${stdout}${stderr}`;
}

test('each step after the first belongs to the restore that began last', async () => {
  const [first = [], second = []] = ['one', 'two'].map((stamp) =>
    Object.values(restoreScripts({ snapshot: '/a.db', stamp }, 'cp1=https://127.0.0.1:2380')),
  );
  expect([await onHost(first[0] ?? ''), await onHost(second[0] ?? '')]).toEqual(['', '']);
  for (const script of first.slice(1))
    expect(await onHost(script)).toMatch(/^another restore has begun on this host: /);
  for (const script of second.slice(1)) expect(await onHost(script)).toBe('');
});
