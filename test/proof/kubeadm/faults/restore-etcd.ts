/**
 * Tests that etcd can be restored on all its members from the snapshot that `apply` took, as
 * docs/guides/kubeadm/restore.md describes, and that the upgrade can continue from there.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Node } from '../../../../src/kube/resources.ts';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import { until } from '../../wait.ts';
import type { Operator } from '../operator.ts';
import type { Scene } from '../upgrade.ts';
import { settled, verify } from '../verify.ts';

const AFTER = 'written-after-the-snapshot';

export async function restoreEtcd(scene: Scene): Promise<void> {
  const { cluster, operator, checks, to } = scene;
  const [first, ...others] = cluster.controlPlanes;
  if (first === undefined) throw new Error('a proof needs a control plane');
  await operator.administer('create', 'configmap', AFTER);
  await checks.check(
    'restore-etcd: what was written after the snapshot is gone, and every Node is Ready',
    async () => {
      const snapshot = (await first.must('ls /var/lib/refit/snapshots/*.db')).trim();
      for (const { root } of others) {
        await mkdir(dirname(join(root, snapshot)), { recursive: true });
        await cp(join(first.root, snapshot), join(root, snapshot));
      }
      const { code, output } = await answered(operator, 'restore-etcd', '--snapshot', snapshot);
      await operator.keep(['restore-etcd'], output);
      if (code !== 0) return [lastLines(output)];
      // An API server that has just started denies all requests for a moment, because it does not know any rights yet.
      const haveReported = async (): Promise<boolean> =>
        await operator.get<{ items: Node[] }>('nodes').then(
          ({ items }) => items.every(({ status }) => status?.nodeInfo?.kubeletVersion === to),
          () => false,
        );
      await until(
        'the API to answer, and kubelets to report, which the snapshot has as they were',
        300,
        haveReported,
      );
      await settled(cluster, operator);
      const left = await operator.administer(
        'get',
        'configmap',
        '--ignore-not-found',
        '-o',
        'name',
        AFTER,
      );
      return left === '' ? [] : [`${AFTER} is still there`];
    },
  );
  await checks.check(
    'apply after that: ends with exit code 0',
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify('after the restore', checks, cluster, operator, to);
}

/** Runs a command in a terminal, and answers yes as a person would. */
async function answered(
  operator: Operator,
  ...words: readonly string[]
): Promise<{ code: number | null; output: string }> {
  const [command, args] = operator.command(...words);
  const line = [command, ...args].join(' ');
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    env: { ...process.env, ...operator.environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const isFirst = !output.includes('Restore etcd?');
    output += chunk;
    if (isFirst && output.includes('Restore etcd?')) child.stdin.write('yes\n');
  });
  const [code] = await closed;
  return { code, output };
}
