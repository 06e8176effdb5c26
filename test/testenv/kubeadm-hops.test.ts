/** Tests `refit kubeadm plan` where the target is several minor versions away, with real ssh and a real API server. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { openScene, type Scene, versions } from '../support/kubeadm/suite.ts';

const START = 'v1.35.7';
const HOP = 'v1.36.3';
const LAST = 'v1.37.0';
let scene: Scene;
beforeAll(async () => {
  scene = await openScene(startJavascriptServer, { version: START, offers: [HOP, LAST], hosts: 1 });
});
afterAll(async () => await scene[Symbol.asyncDispose]());

const binaries = (version: string): object => ({
  kubeadm: { path: `/opt/kubernetes/${version}/kubeadm` },
  kubelet: { path: `/opt/kubernetes/${version}/kubelet` },
});

test('a plan over several minor versions goes to the first one with its binaries and names the next ones', async () => {
  const path = await scene.cluster.manifest('v1.38.1', (manifest) => {
    manifest['hops'] = [HOP, LAST].map((version) => ({ version, binaries: binaries(version) }));
  });
  const run = scene.refit('plan', '-m', path);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  expect(run.stdout).toMatch(
    /cp1 +leader +v1\.35\.7 → v1\.36\.3 +kubeadm upgrade apply v1\.36\.3\n/,
  );
  expect(run.stdout).toContain(
    `After ${HOP} comes ${LAST}, then v1.38.1: run the command again for each.\n`,
  );
});

test('the same command, once for each hop, brings every host to the last version', async () => {
  const path = await scene.cluster.manifest(LAST, (manifest) => {
    manifest['hops'] = [{ version: HOP, binaries: binaries(HOP) }];
  });
  for (const [version, next] of [
    [HOP, `After ${HOP} comes ${LAST}: run the command again for each.\n`],
    [LAST, 'Verified w1: '],
  ] as const) {
    const run = scene.refit('apply', '--yes', '-m', path);
    expect([await run.ended, run.stdout]).toEqual([0, expect.stringContaining(next)]);
    expect(await versions(scene)).toEqual(['cp1', 'w1'].map((name) => [name, version]));
  }
  const { cluster } = scene;
  const commands = [HOP, LAST].map((version) => `upgrade apply --yes ${version}`);
  expect(await logOf(cluster.host('cp1'), 'kubeadm')).toEqual(commands);
  expect(await logOf(cluster.host('w1'), 'kubelet')).toEqual([`started ${HOP}`, `started ${LAST}`]);
  const again = scene.refit('apply', '-m', path);
  expect([await again.ended, again.stdout]).toEqual([
    0,
    expect.stringContaining('Nothing to do.\n'),
  ]);
});

test('workers that may skip minor versions wait during the first hop and then go to the last version', async () => {
  const from = 'v1.34.3';
  const hop = 'v1.35.7';
  const last = 'v1.36.3';
  await scene[Symbol.asyncDispose]();
  scene = await openScene(startJavascriptServer, { version: from, offers: [hop, last], hosts: 1 });
  const { cluster } = scene;
  for (const { root } of cluster.hosts)
    await writeFile(
      join(root, 'var/lib/kubelet/kubeadm-flags.env'),
      'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.local:5000/pause:3.10"\n',
    );
  const path = await cluster.manifest(last, (manifest) => {
    manifest['hops'] = [{ version: hop, binaries: binaries(hop) }];
    manifest['workersSkipMinors'] = true;
  });
  const planned = scene.refit('plan', '-m', path);
  expect([await planned.ended, planned.stderr]).toEqual([0, '']);
  expect(planned.stdout).toContain(`Stays at its version until ${last}: w1\n`);
  expect(planned.stdout).not.toMatch(/^w1 /m);
  const found = [];
  for (const version of [hop, last]) {
    const run = scene.refit('apply', '--yes', '-m', path);
    expect([await run.ended, run.stderr]).toEqual([0, '']);
    expect(run.stdout).toContain(`Verified cp1: kube-apiserver ${version}`);
    found.push(await versions(scene));
  }
  expect(found).toEqual([
    [
      ['cp1', hop],
      ['w1', from],
    ],
    [
      ['cp1', last],
      ['w1', last],
    ],
  ]);
  expect(await logOf(cluster.host('w1'), 'kubelet')).toEqual([`started ${last}`]);
  expect(await logOf(cluster.host('w1'), 'kubeadm')).toEqual(['upgrade node']);
});
