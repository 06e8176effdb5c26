/** Tests `refit kubeadm plan` where the target is several minor versions away, with real ssh and a real API server. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { openScene, type Scene } from '../kubeadm/suite.ts';

const HOP = 'v1.37.4';
let scene: Scene;
beforeAll(async () => {
  scene = await openScene(startJavascriptServer, { offers: [HOP] });
});
afterAll(async () => await scene[Symbol.asyncDispose]());

test('a plan goes to the first minor version with its own binaries, and says what comes next', async () => {
  const path = await scene.cluster.manifest('v1.39.1', (manifest) => {
    const binaries = (version: string): object => ({
      kubeadm: { path: `/opt/kubernetes/${version}/kubeadm` },
      kubelet: { path: `/opt/kubernetes/${version}/kubelet` },
    });
    manifest['hops'] = [HOP, 'v1.38.2'].map((version) => ({ version, binaries: binaries(version) }));
  });
  const run = scene.refit('plan', '-m', path);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  expect(run.stdout).toMatch(/cp1 +leader +v1\.36\.2 → v1\.37\.4 +kubeadm upgrade apply v1\.37\.4\n/);
  expect(run.stdout).toContain(`After ${HOP} comes v1.38.2, then v1.39.1: run the command again for each.\n`);
});
