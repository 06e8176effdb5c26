/**
 * Tests the stand-in for kubeadm against recordings of a real kubeadm: the same commands run in the same order on hosts
 * of the same kind.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { run } from '../../tools/controlplane/run.ts';
import type { Change } from '../support/kubeadm/changes.ts';
import {
  orderOfManifests,
  type Recorded,
  readRecorded,
  record,
} from '../support/kubeadm/recording.ts';
import { FROM, openScene, type Scene, TO, useCgroupV1 } from '../support/kubeadm/suite.ts';

const RECORDED = await readRecorded();
let scene: Scene;
let done: readonly Recorded[] = [];

beforeAll(async () => {
  scene = await openScene(startJavascriptServer, { offers: [TO] });
  const rootOf = (name: string): string => scene.cluster.host(name).root;
  for (const { root } of scene.cluster.hosts) await useCgroupV1(root);
  done = await record({
    from: FROM,
    to: TO,
    root: rootOf,
    kubeadm: (name, version) => join(rootOf(name), 'opt/kubernetes', version, 'kubeadm'),
    async sh(name, script) {
      const environment = { ...process.env, REFIT_ROOT: rootOf(name) };
      return (await run('sh', ['-c', script], { environment })).stdout;
    },
  });
});
afterAll(async () => await scene[Symbol.asyncDispose]());

/** The parts of an output that give the reason for a refusal, in words that the real kubeadm and the stand-in share. */
const REASONS = [
  /\[ERROR \w+\]/,
  /won't proceed; the user didn't answer/,
  /is too high; kubeadm can upgrade only 1 minor version at a time/,
  /is higher than the kubeadm version "v[\d.]+"/,
  /don't specify individual checks if 'all' is used/,
  /invalid argument "maybe" for "--certificate-renewal/,
  /failed to load admin kubeconfig/,
  /no such file or directory/,
  /--nonsense/,
];
const reasonsIn = ({ output }: Recorded): string[] =>
  output.flatMap((line) => REASONS.flatMap((reason) => reason.exec(line)?.[0] ?? [])).toSorted();

/**
 * Files that are not compared. The stand-in has no certificates and no kubeconfigs of components, and the configuration
 * files of its kubelets contain the name of the program that wrote them.
 */
const OTHERS = /^\/etc\/kubernetes\/(?:pki\/|[a-z-]+\.conf$)|^\/var\/lib\/kubelet\//;
const made = (changes: readonly Change[]): string[] =>
  changes
    .filter(({ path }) => !OTHERS.test(path))
    .map(({ path, how, from }) => [path, how, from].join(' '))
    .toSorted();

describe.each(
  RECORDED.map((real, index) => [`${real.host}: ${real.command}`, index, real] as const),
)('%s', (_name, index, real) => {
  const standIn = (): Recorded => done[index] ?? expect.fail('the stand-in was not asked');

  test('ends with the same exit code, for the same reason', () => {
    expect([standIn().exitCode, reasonsIn(standIn())]).toEqual([real.exitCode, reasonsIn(real)]);
    expect(reasonsIn(real).length > 0).toBe(real.exitCode !== 0);
  });

  test('leaves the same files, manifests replaced in the same order', () => {
    expect(made(standIn().changes)).toEqual(made(real.changes));
    expect(orderOfManifests(standIn().changes)).toEqual(orderOfManifests(real.changes));
  });
});

test('a kubelet from v1.35 on refuses the flag that kubeadm before it writes', async () => {
  const host = scene.cluster.host('w1');
  const flags =
    'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=images.refit.internal/pause:3.10.1"\n';
  await writeFile(join(host.root, 'var/lib/kubelet/kubeadm-flags.env'), flags);
  await run(join(host.root, 'usr/bin/kubelet'), [host.name], {
    environment: { REFIT_ROOT: host.root },
  });
  expect((await logOf(host, 'kubelet')).at(-1)).toBe('unknown flag: --pod-infra-container-image');
});
