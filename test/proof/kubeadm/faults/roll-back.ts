/**
 * Tests a kubelet that prints its version and does not run. Its host gets the previous kubelet back, and a good kubelet
 * can be installed later.
 */
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Node } from '../../../../src/kube/resources.ts';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import { differing } from '../../checks.ts';
import { until } from '../../wait.ts';
import type { Scene } from '../upgrade.ts';
import { settled, verify } from '../verify.ts';

export async function rollBackKubelet(scene: Scene): Promise<void> {
  const { cluster, operator, checks, from, to } = scene;
  await operator.prepare();
  await settled(cluster, operator);
  const [worker] = cluster.workers;
  if (worker === undefined) throw new Error('this proof needs a worker');
  const offered = join(worker.root, 'opt/kubernetes', to, 'kubelet');
  await copyFile(offered, `${offered}.good`);
  await writeFile(offered, `#!/bin/sh\n[ "$1" = --version ] && echo Kubernetes ${to}\n`, {
    mode: 0o755,
  });
  await checks.check(
    `apply: fails on ${worker.name}, and says that its kubelet was rolled back`,
    async () => {
      const { ok, stdout, stderr } = await operator.kubeadm('apply', '--yes');
      const isSaid = (stdout + stderr).includes(
        `rolled back: Kubernetes ${from} was put back and started`,
      );
      return !ok && isSaid ? [] : [lastLines(stdout + stderr)];
    },
  );
  await checks.check(
    `${worker.name}: the kubelet of ${from} runs, and its Node is Ready`,
    async () => {
      await until(
        'the Node to be Ready',
        120,
        async () => (await readyOf(scene, worker.name)) === 'True',
      );
      const { status } = await operator.get<Node>('node', worker.name);
      const installed = (await worker.must('kubelet --version')).trim();
      return [
        ...differing({ reported: status?.nodeInfo?.kubeletVersion }, from),
        ...differing({ installed }, `Kubernetes ${from}`),
      ];
    },
  );
  await copyFile(`${offered}.good`, offered);
  await checks.check(
    'apply: takes a good kubelet later',
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify('after the roll-back', checks, cluster, operator, to);
}

async function readyOf({ operator }: Scene, name: string): Promise<string | undefined> {
  const { status } = await operator.get<Node>('node', name);
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}
